#include "hooks/exec_target.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#else
#define OUR_MACHINE EM_AARCH64
#endif
#define BEGIN_MAX 1024u	   /* holds headers and linker of nearly every program */
#define SEGMENTS_MAX 64u   /* that are looked at */
#define SCRIPT_MAX 256u	   /* bytes that the kernel reads of a first line */
#define INTERPRETERS_MAX 5 /* scripts whose interpreter is a script: as many as Linux allows */
#define SHELL "/bin/sh"	   /* runs what is neither a program nor a script, for execvp */

/* A file and its first bytes. */
struct file {
	int fd;
	size_t size; /* of `begin` */
	union {
		ElfW(Ehdr) head;
		char begin[BEGIN_MAX];
	};
};

static int read_at(const struct file *f, void *to, size_t size, uint64_t at)
{
	if (at <= f->size && size <= f->size - at) {
		memcpy(to, f->begin + at, size);
		return 1;
	}
	return tacho__pread(f->fd, to, size, at) == (long)size;
}

static int is_there(const char *path)
{
	int fd = tacho__openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd >= 0)
		tacho__close(fd);
	return fd >= 0;
}

/* Of a static program, or of a dynamic linker that is started as a program. */
static int libc_without_linker(const char *path)
{
	enum tacho__libc_kind kind = path ? tacho__libc_of_linker(path) : TACHO__LIBC_OTHER;

	if (kind != TACHO__LIBC_OTHER)
		return (int)kind;
	if (is_there(TACHO__LINKER_GLIBC))
		return TACHO__GLIBC;
	return is_there(TACHO__LINKER_MUSL) ? TACHO__MUSL : TACHO__LIBC_UNKNOWN;
}

static int libc_of_elf(const struct file *f, const char *path)
{
	char linker[SCRIPT_MAX];

	if (f->head.e_ident[EI_CLASS] != ELFCLASS64 || f->head.e_machine != OUR_MACHINE)
		return TACHO__LIBC_OTHER;
	for (unsigned i = 0; i < f->head.e_phnum && i < SEGMENTS_MAX; i++) {
		ElfW(Phdr) p;

		if (!read_at(f, &p, sizeof(p), f->head.e_phoff + i * sizeof(p)))
			return TACHO__LIBC_UNKNOWN;
		if (p.p_type != PT_INTERP)
			continue;
		if (!p.p_filesz || p.p_filesz > sizeof(linker) ||
		    !read_at(f, linker, p.p_filesz, p.p_offset))
			return TACHO__LIBC_UNKNOWN;
		linker[p.p_filesz - 1] = 0;
		return (int)tacho__libc_of_linker(linker);
	}
	return libc_without_linker(path);
}

/* The interpreter that a script's first line names, into `out`; "" when it names none. */
static void script_interpreter(const struct file *f, char out[SCRIPT_MAX])
{
	size_t at = 2, end = f->size < SCRIPT_MAX ? f->size : SCRIPT_MAX - 1, n = 0;

	while (at < end && (f->begin[at] == ' ' || f->begin[at] == '\t'))
		at++;
	for (; at < end && !strchr(" \t\n", f->begin[at]); at++)
		out[n++] = f->begin[at];
	out[n] = 0;
}

/* Of the open file. `next`: the file that decides instead, or "". */
static int libc_of_file(int fd, const char *path, char next[SCRIPT_MAX])
{
	struct file f = {.fd = fd};
	long n = tacho__pread(fd, f.begin, sizeof(f.begin), 0);

	next[0] = 0;
	if (n < 0)
		return TACHO__LIBC_UNKNOWN;
	f.size = (size_t)n;
	if (f.size >= sizeof(f.head) && !memcmp(f.begin, ELFMAG, SELFMAG))
		return libc_of_elf(&f, path);
	if (f.size > 2 && f.begin[0] == '#' && f.begin[1] == '!')
		script_interpreter(&f, next);
	else
		memcpy(next, SHELL, sizeof(SHELL));
	return TACHO__LIBC_UNKNOWN;
}

/* `fd` is open, and stays so. */
static int libc_of(int fd, const char *path)
{
	char next[SCRIPT_MAX];
	int result = libc_of_file(fd, path, next);

	for (int i = 0; next[0] && i < INTERPRETERS_MAX; i++) {
		fd = tacho__openat(AT_FDCWD, next, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
		if (fd < 0)
			return TACHO__LIBC_UNKNOWN;
		result = libc_of_file(fd, NULL, next);
		tacho__close(fd);
	}
	return result;
}

/* The same of a path. *found: 0 when there is nothing that can be read. */
static int libc_of_path(int dir, const char *path, int *found)
{
	int fd = tacho__openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0), result;

	*found = fd >= 0;
	if (fd < 0)
		return TACHO__LIBC_UNKNOWN;
	result = libc_of(fd, path);
	tacho__close(fd);
	return result;
}

static const char *search_list(void)
{
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "PATH=", 5))
			return *e + 5;
	return "/bin:/usr/bin";
}

/* Of the first that execvp(3) would find. */
static int libc_of_name(const char *name)
{
	const char *list = search_list();
	char path[PATH_MAX];
	int found, result;

	for (size_t n = strlen(name);; list++) {
		size_t folder = strcspn(list, ":");

		if (folder + n + 2 <= sizeof(path)) {
			memcpy(path, list, folder);
			path[folder] = '/';
			memcpy(path + folder + (folder > 0), name, n + 1);
			result = libc_of_path(AT_FDCWD, path, &found);
			if (found)
				return result;
		}
		list += folder;
		if (!*list)
			return TACHO__LIBC_UNKNOWN;
	}
}

/* Of a descriptor, which may be one that only names the file (O_PATH). */
static int libc_of_descriptor(int fd)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(fd)];
	struct tacho__text t;
	int found;

	if (fd < 0 || tacho__pread(fd, path, 1, 0) >= 0)
		return libc_of(fd, NULL);
	tacho__text_init(&t, path, sizeof(path));
	tacho__text_put(&t, "/proc/self/fd/");
	tacho__text_put_u64(&t, (uint64_t)fd);
	return libc_of_path(AT_FDCWD, path, &found);
}

int tacho__exec_libc(const struct tacho__exec_target *t)
{
	int found;

	if (t->search && !strchr(t->path, '/'))
		return libc_of_name(t->path);
	if (t->path && t->path[0])
		return libc_of_path(t->search ? AT_FDCWD : t->fd, t->path, &found);
	return libc_of_descriptor(t->fd);
}
