#include "agent/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "symbols/elf_file.h"

#define INTERPRETERS_MAX 5 /* scripts whose interpreter is a script: as many as Linux allows */

const char *tacho__machine_name(unsigned machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_386:
		return "x86 (32 bit)";
	case EM_AARCH64:
		return "arm64";
	case EM_ARM:
		return "arm (32 bit)";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "POWER";
	case EM_S390:
		return "s390";
	default:
		return NULL;
	}
}

/* Whether `path` is a file that may be executed: 0 or a negative errno. */
static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

/* Looks for `name` in the folders of $PATH. */
static int search_path(char *out, size_t size, const char *name)
{
	const char *list = getenv("PATH");
	int result = -ENOENT;

	if (!list)
		list = "/bin:/usr/bin";
	for (;;) {
		size_t n = strcspn(list, ":");
		int found;

		/* An empty entry is the current folder. */
		if ((size_t)snprintf(out, size, "%.*s/%s", n ? (int)n : 1, n ? list : ".", name) <
		    size) {
			found = check_executable(out);
			if (found == 0)
				return 0;
			/* As shells do: a file that is not executable is told, once nothing better
			   was found; folders, and what cannot be looked at, are passed over. */
			if (found == -EACCES && access(out, F_OK) == 0 && result == -ENOENT)
				result = found;
		}
		if (!list[n])
			return result;
		list += n + 1;
	}
}

/* Fills in machine, bits and linker; ELF files of other machines have no linker of ours. */
static void inspect_elf(int fd, struct tacho__program *p)
{
	struct tacho__elf_file f;

	if (tacho__elf_file_read(&f, fd) == -ENOEXEC)
		return;
	p->machine = f.head.e_machine;
	p->bits = f.head.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	p->hindrance = f.ours ? TACHO__HINDRANCE_STATIC : TACHO__HINDRANCE_MACHINE;
	for (uint32_t i = 0; i < f.segments; i++) {
		const Elf64_Phdr *s = &f.segment[i];
		uint64_t n = s->p_filesz < PATH_MAX ? s->p_filesz : PATH_MAX - 1;

		if (s->p_type != PT_INTERP)
			continue;
		p->linker[tacho__elf_file_get(&f, p->linker, n, s->p_offset) ? 0 : n] = 0;
		p->hindrance = TACHO__HINDRANCE_NONE;
		return;
	}
}

/* The word after "#!", or "" . */
static void script_interpreter(const unsigned char *head, size_t size, char *out, size_t out_size)
{
	size_t at = 2, n = 0;

	while (at < size && (head[at] == ' ' || head[at] == '\t'))
		at++;
	for (; at < size && n < out_size - 1; at++) {
		if (head[at] == ' ' || head[at] == '\t' || head[at] == '\n' || !head[at])
			break;
		out[n++] = (char)head[at];
	}
	out[n] = 0;
}

/* What the file p->elf is. 1: a script, whose interpreter is in p->elf now. */
static int inspect_file(struct tacho__program *p)
{
	unsigned char head[PATH_MAX];
	ssize_t n;
	int fd = open(p->elf, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	/* It may be executable and not readable; then nothing is known of it. */
	if (fd < 0)
		return 0;
	n = pread(fd, head, sizeof(head), 0);
	inspect_elf(fd, p);
	close(fd);
	if (n >= 2 && head[0] == '#' && head[1] == '!') {
		script_interpreter(head, (size_t)n, p->elf, sizeof(p->elf));
		return p->elf[0] == '/';
	}
	p->is_text = n >= 0 && !p->machine && strcmp(p->elf, p->path) == 0;
	return 0;
}

/* Whether the kernel gives the program rights that its caller has not: then its dynamic
   linker loads no foreign library. */
static int gains_rights(const char *path)
{
	struct statvfs fs;
	struct stat st;
	char value;

	if (stat(path, &st) < 0 || (statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOSUID)))
		return 0;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return 1;
	if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getgid())
		return 1;
	/* Root has the capabilities already. */
	return getuid() != 0 &&
	       (getxattr(path, "security.capability", &value, sizeof(value)) >= 0 ||
		errno == ERANGE);
}

/* Sets the C library that it runs on. 0: there is no recording library for that. */
static int has_library(struct tacho__program *p)
{
	char path[PATH_MAX], message[256];

	p->libc = p->linker[0] ? tacho__libc_of_linker(p->linker) : TACHO__OWN_LIBC;
	if (p->libc == TACHO__OWN_LIBC)
		return 1;
	return p->libc != TACHO__LIBC_OTHER &&
	       tacho__preload_find(path, sizeof(path), message, sizeof(message)) == 0 &&
	       tacho__preload_for(p->libc, path, sizeof(path)) == 0;
}

static int explain_missing(const char *name, int error, char *message, size_t size)
{
	if (error == -ENOENT && !strchr(name, '/'))
		snprintf(message, size,
			 "there is no command %s in the folders of PATH: give its path, or install "
			 "it.",
			 name);
	else if (error == -ENOENT || error == -ENOTDIR)
		snprintf(message, size, "cannot start %s: there is no such file.", name);
	else if (error == -EISDIR)
		snprintf(message, size, "cannot start %s: it is a folder.", name);
	else if (error == -EACCES)
		snprintf(
			message, size,
			"cannot start %s: it is not executable for this user ('namei -l' shows the "
			"rights on its way, 'chmod +x' makes it executable).",
			name);
	else
		snprintf(message, size, "cannot start %s: %s.", name, strerror(-error));
	return error == -ENOTDIR ? -ENOENT : error;
}

int tacho__program_find(struct tacho__program *p, const char *name, char *message,
			size_t message_size)
{
	int error;

	memset(p, 0, sizeof(*p));
	if (strlen(name) >= sizeof(p->path)) {
		error = -ENAMETOOLONG;
	} else if (strchr(name, '/')) {
		strcpy(p->path, name);
		error = check_executable(name);
	} else {
		error = name[0] ? search_path(p->path, sizeof(p->path), name) : -ENOENT;
	}
	if (error)
		return explain_missing(name, error, message, message_size);
	memcpy(p->elf, p->path, sizeof(p->elf));
	for (int i = 0; i < INTERPRETERS_MAX && inspect_file(p); i++)
		;
	if (!has_library(p) && p->hindrance == TACHO__HINDRANCE_NONE)
		p->hindrance = TACHO__HINDRANCE_LIBC;
	if (p->hindrance != TACHO__HINDRANCE_MACHINE && gains_rights(p->elf))
		p->hindrance = TACHO__HINDRANCE_SETID;
	return 0;
}

void tacho__program_explain(const struct tacho__program *p, int error, char *message, size_t size)
{
	const char *machine = tacho__machine_name(p->machine);
	const char *ours = tacho__machine_name(TACHO__OUR_MACHINE);

	if (error == ENOEXEC && p->machine && p->hindrance == TACHO__HINDRANCE_MACHINE)
		snprintf(message, size,
			 "cannot start %s: it is a program for %s, and this machine is %s.",
			 p->path, machine ? machine : "another architecture", ours ? ours : "not");
	else if (error == ENOEXEC)
		snprintf(message, size,
			 "cannot start %s: it is neither a program for this machine nor a script.",
			 p->path);
	else if (error == ENOENT && strcmp(p->elf, p->path) != 0)
		snprintf(message, size,
			 "cannot start %s: its interpreter %s is not there; correct its first line "
			 "or install it.",
			 p->path, p->elf);
	else if (error == ENOENT && p->linker[0])
		snprintf(message, size,
			 "cannot start %s: its dynamic linker %s is not there; install the C "
			 "library that it was made for.",
			 p->path, p->linker);
	else if (error == EACCES)
		snprintf(message, size,
			 "cannot start %s: the system refuses to execute it (is its file system "
			 "mounted with noexec?).",
			 p->path);
	else
		snprintf(message, size, "cannot start %s: %s.", p->path, strerror(error));
}

static int usable_library(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

/* Where this program is; without /proc, as far as its caller said so. "": not known. */
static void find_self(char self[PATH_MAX])
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);

	self[n > 0 ? n : 0] = 0;
	if (n <= 0 && (!started || !realpath(started, self)))
		self[0] = 0;
}

/* In the folder of this program and `tail`. */
static int beside_program(char *path, size_t size, const char *tail)
{
	char self[PATH_MAX];
	char *slash;

	find_self(self);
	slash = strrchr(self, '/');
	if (!slash)
		return 0;
	*slash = 0;
	return (size_t)snprintf(path, size, "%s/%s", self, tail) < size && usable_library(path);
}

int tacho__preload_find(char *path, size_t size, char *message, size_t message_size)
{
	const char *given = getenv("TACHO_PRELOAD");
	char found[PATH_MAX], *real;

	if (given && given[0]) {
		if (!usable_library(given)) {
			snprintf(message, message_size,
				 "the library that TACHO_PRELOAD names, %s, cannot be read: %s.",
				 given, strerror(errno ? errno : EINVAL));
			return -ENOENT;
		}
		snprintf(found, sizeof(found), "%s", given);
	} else if (!beside_program(found, sizeof(found), TACHO_PRELOAD_BUILT) &&
		   !beside_program(found, sizeof(found), TACHO_PRELOAD_RELATIVE)) {
		snprintf(found, sizeof(found), "%s", TACHO_PRELOAD_INSTALLED);
		if (!usable_library(found)) {
			snprintf(message, message_size,
				 "the library that records, %s, is not there: install tacho "
				 "completely, or name it in TACHO_PRELOAD.",
				 found);
			return -ENOENT;
		}
	}
	real = realpath(found, NULL);
	if (!real || strlen(real) >= size || strpbrk(real, ": ")) {
		/* The dynamic linker takes its list apart at colons and blanks. */
		snprintf(message, message_size,
			 "the library that records, %s, cannot be preloaded from there: use a path "
			 "without colons and blanks.",
			 real ? real : found);
		free(real);
		return -EINVAL;
	}
	strcpy(path, real);
	free(real);
	return 0;
}

int tacho__preload_for(enum tacho__libc_kind libc, char *path, size_t size)
{
	const char *file = TACHO__PRELOAD_FILE(libc);
	size_t folder = (size_t)(tacho__last_part(path) - path);

	if (libc == TACHO__OWN_LIBC)
		return 0;
	if (libc == TACHO__LIBC_OTHER || folder + strlen(file) >= size)
		return -ENOENT;
	strcpy(path + folder, file);
	return usable_library(path) ? 0 : -ENOENT;
}
