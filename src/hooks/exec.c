/*
 * What a recorded program starts is recorded as well, also when it starts it with an environment of
 * its own: the library and the variables of the recording are given back where they are missing.
 *
 * The environment as it was at load is what is given back, because programs clear theirs long before
 * they start others. Left alone is an environment that has it all, that belongs to another
 * recording or says TACHO=off; that is for a program which cannot load the library (of another
 * machine or C library, or where the library cannot be read, as after chroot): its dynamic linker
 * would complain, or fail. An LD_PRELOAD of the program's own stays in front.
 *
 * These run in children of vfork and of programs with threads: nothing here allocates, locks, or
 * writes to other memory than the stack, and what it takes of that is bounded. Where it would be
 * more, the call is the plain one.
 *
 * system(3) and popen(3) start their shell inside libc, with the program's own environment, which is
 * not ours to change. An agent is told, and looks who was started.
 */
#include "hooks/calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/trigger.h"

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#else
#define OUR_MACHINE EM_AARCH64
#endif
#define KEPT_MAX 48u
#define TEXT_MAX 8192u
#define ENTRIES_MAX 2048u /* of an environment that is copied: 16 KiB */
#define ROOM_MAX 32768u
#define ALLOW_ORDER "verify_asan_link_order=0" /* see agent/run_environment.c */

static int ended;

/* What the process had at load. Written by the constructor alone. */
static struct {
	char text[TEXT_MAX];
	size_t used;
	const char *preload; /* how LD_PRELOAD named this library; NULL: nothing is given */
	const char *variable[KEPT_MAX]; /* TACHO_NAME=value */
	unsigned count;
	const char *recording;	   /* the value of TACHO_RECORDING, or NULL */
	char linker[NAME_MAX + 1]; /* the last part of the dynamic linker's path, or "" */
} kept;

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The value, when `entry` is NAME=value; else NULL. */
static const char *value_of(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* Where `list` (of LD_PRELOAD) names a file with this last part, and how many bytes; or NULL. */
static const char *find_named(const char *list, const char *part, size_t *size)
{
	size_t n = strlen(part);

	for (; *list; list += *size + (list[*size] != 0)) {
		*size = strcspn(list, ": ");
		if (*size >= n && !memcmp(list + *size - n, part, n) &&
		    (*size == n || list[*size - n - 1] == '/'))
			return list;
	}
	return NULL;
}

/* ------------------------------------------------------------------- at load */

static const char *keep(const char *text, size_t size)
{
	char *copy = kept.text + kept.used;

	if (size >= TEXT_MAX - kept.used)
		return NULL;
	memcpy(copy, text, size);
	copy[size] = 0;
	kept.used += size + 1;
	return copy;
}

static void keep_linker(void)
{
	const ElfW(Phdr) *p = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	uintptr_t bias = 0;

	for (unsigned long i = 0; p && i < count; i++)
		if (p[i].p_type == PT_PHDR)
			bias = (uintptr_t)p - p[i].p_vaddr;
	for (unsigned long i = 0; p && i < count; i++)
		if (p[i].p_type == PT_INTERP)
			strncpy(kept.linker, last_part((const char *)(bias + p[i].p_vaddr)),
				sizeof(kept.linker) - 1);
}

static void remember(void)
{
	const char *list = NULL;
	size_t size = 0;
	Dl_info self;

	for (char **e = environ; e && *e; e++) {
		if (!list)
			list = value_of(*e, "LD_PRELOAD");
		if (strncmp(*e, "TACHO_", 6) != 0)
			continue;
		if (kept.count == KEPT_MAX)
			return;
		kept.variable[kept.count] = keep(*e, strlen(*e));
		if (!kept.variable[kept.count])
			return;
		if (value_of(*e, "TACHO_RECORDING"))
			kept.recording = value_of(kept.variable[kept.count], "TACHO_RECORDING");
		kept.count++;
	}
	if (!list || !dladdr(&kept, &self) || !self.dli_fname)
		return;
	list = find_named(list, last_part(self.dli_fname), &size);
	keep_linker();
	kept.preload = list ? keep(list, size) : NULL;
}

/* ------------------------------------------------------------ what is started */

/* Whether the program in `fd` can load the library; 1 also when that can't be told. A script's
   interpreter is put into `script`, else that is "". */
static int fits(int fd, char *script, size_t size)
{
	union {
		ElfW(Ehdr) head;
		char text[256];
	} file;
	char path[256];
	long n = tacho__pread(fd, &file, sizeof(file), 0);

	script[0] = 0;
	if (n > 2 && file.text[0] == '#' && file.text[1] == '!') {
		size_t at = 2, length;

		file.text[n < (long)sizeof(file) ? n : (long)sizeof(file) - 1] = 0;
		at += strspn(file.text + at, " \t");
		length = strcspn(file.text + at, " \t\n");
		if (length < size) {
			memcpy(script, file.text + at, length);
			script[length] = 0;
		}
	}
	if (n < (long)sizeof(file.head) || memcmp(file.text, ELFMAG, SELFMAG) != 0)
		return 1;
	if (file.head.e_ident[EI_CLASS] != ELFCLASS64 || file.head.e_machine != OUR_MACHINE)
		return 0;
	for (unsigned i = 0; i < file.head.e_phnum; i++) {
		ElfW(Phdr) p;

		if (tacho__pread(fd, &p, sizeof(p), file.head.e_phoff + i * sizeof(p)) !=
		    (long)sizeof(p))
			return 1;
		if (p.p_type != PT_INTERP)
			continue;
		n = tacho__pread(fd, path, p.p_filesz < sizeof(path) ? p.p_filesz : sizeof(path),
				 p.p_offset);
		if (n <= 0 || !kept.linker[0])
			return 1;
		path[n < (long)sizeof(path) ? n : (long)sizeof(path) - 1] = 0;
		return !strcmp(last_part(path), kept.linker);
	}
	return 1; /* a static one loads nothing, but what it starts may */
}

/* The same of a path; -1: there is nothing to be read. */
static int fits_path(int dir, const char *path)
{
	char script[256] = "";
	int fd = tacho__openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0), yes;

	if (fd < 0)
		return -1;
	yes = fits(fd, script, sizeof(script));
	tacho__close(fd);
	fd = script[0] ? tacho__openat(AT_FDCWD, script, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0) : -1;
	if (fd >= 0) {
		yes = fits(fd, script, sizeof(script));
		tacho__close(fd);
	}
	return yes;
}

/* The first that execvp(3) would find. */
static int fits_name(const char *name)
{
	const char *list = NULL;
	char path[PATH_MAX];
	int yes;

	if (strchr(name, '/'))
		return fits_path(AT_FDCWD, name);
	for (char **e = environ; e && *e && !list; e++)
		list = value_of(*e, "PATH");
	if (!list)
		list = "/bin:/usr/bin";
	for (size_t n = strlen(name);; list++) {
		size_t folder = strcspn(list, ":");

		if (folder + n + 2 <= sizeof(path)) {
			memcpy(path, list, folder);
			path[folder] = '/';
			memcpy(path + folder + (folder > 0), name, n + 1);
			yes = fits_path(AT_FDCWD, path);
			if (yes >= 0)
				return yes;
		}
		list += folder;
		if (!*list)
			return 1;
	}
}

/* Where a program is that is to be started. */
struct target {
	int fd; /* of it, or the folder that `path` starts from */
	const char *path;
	int search; /* in PATH */
};

static int can_load(const struct target *t)
{
	int fd;

	if (strchr(kept.preload, '/')) {
		fd = tacho__openat(AT_FDCWD, kept.preload, O_RDONLY, 0);
		if (fd < 0)
			return 0;
		tacho__close(fd);
	}
	if (t->search)
		return fits_name(t->path);
	if (t->path && t->path[0])
		return fits_path(t->fd, t->path);
	return fits(t->fd, (char[1]){0}, 0);
}

/* ------------------------------------------------------------ its environment */

/* What is missing in an environment. */
struct missing {
	uint64_t variables;    /* bits: of kept.variable */
	const char *preload;   /* its own LD_PRELOAD, or "" */
	const char *sanitizer; /* its own ASAN_OPTIONS, or "" */
	int library;	       /* 1: the library is */
	int recording;	       /* 1: TACHO_RECORDING is */
	size_t entries, room;  /* of the new one: pointers, bytes in all */
};

static size_t name_size(const char *variable)
{
	return (size_t)(strchr(variable, '=') - variable) + 1;
}

/* What a variable that is there says about the one that was remembered. 1: leave all alone. */
static int note(struct missing *m, const char *entry)
{
	const char *value = value_of(entry, "LD_PRELOAD");
	size_t size;

	if (value) {
		m->preload = value;
		m->library = !find_named(value, last_part(kept.preload), &size);
	}
	value = value_of(entry, "ASAN_OPTIONS");
	if (value)
		m->sanitizer = value;
	value = value_of(entry, "TACHO");
	if (value && !strcmp(value, "off"))
		return 1;
	if (strncmp(entry, "TACHO_", 6) != 0)
		return 0;
	for (unsigned i = 0; i < kept.count; i++)
		if (!strncmp(entry, kept.variable[i], name_size(kept.variable[i])))
			m->variables &= ~(UINT64_C(1) << i);
	value = value_of(entry, "TACHO_RECORDING");
	if (value)
		m->recording = 0;
	return value && (!kept.recording || strcmp(value, kept.recording) != 0);
}

/* 0: the environment stays as it is. */
static int is_missing(struct missing *m, char *const *environment)
{
	if (!kept.preload || tacho__load(&ended))
		return 0;
	*m = (struct missing){.variables = (UINT64_C(1) << kept.count) - 1,
			      .preload = "",
			      .sanitizer = "",
			      .recording = kept.recording != NULL,
			      .library = 1};
	for (; environment && environment[m->entries]; m->entries++)
		if (m->entries == ENTRIES_MAX || note(m, environment[m->entries]))
			return 0;
	m->entries += kept.count + 3;
	m->room = m->entries * sizeof(char *) + strlen(m->preload) + strlen(kept.preload) +
		  strlen(m->sanitizer) + sizeof("LD_PRELOAD=:ASAN_OPTIONS=:" ALLOW_ORDER) + 1;
	return (m->library || m->recording) && m->room <= ROOM_MAX;
}

static char *put(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n + 1);
	return to + n;
}

static int is_replaced(const struct missing *m, const char *entry)
{
	return m->library && (value_of(entry, "LD_PRELOAD") || value_of(entry, "ASAN_OPTIONS"));
}

/* The whole environment, into `room`. */
static char *const *complete(const struct missing *m, char *const *environment, void *room)
{
	char **out = room, *text = room;
	size_t n = 0;

	text += m->entries * sizeof(char *);
	for (char *const *e = environment; e && *e; e++)
		if (!is_replaced(m, *e))
			out[n++] = *e;
	for (unsigned i = 0; i < kept.count; i++)
		if (m->variables >> i & 1)
			out[n++] = (char *)(uintptr_t)kept.variable[i];
	if (m->library) {
		out[n++] = text;
		text = put(put(text, "LD_PRELOAD="), m->preload);
		text = put(put(text, m->preload[0] ? ":" : ""), kept.preload) + 1;
		out[n++] = text;
		text = put(text, "ASAN_OPTIONS=");
		if (!strstr(m->sanitizer, "verify_asan_link_order"))
			text = put(put(text, ALLOW_ORDER), m->sanitizer[0] ? ":" : "");
		put(text, m->sanitizer);
	}
	out[n] = NULL;
	return out;
}

/* Declares `name`, the environment that the program gets; the rest says what it is. */
#define COMPLETE(name, given, ...)                                                            \
	char *const *name = (given);                                                          \
	struct missing tacho__missing;                                                        \
	int tacho__is =                                                                       \
		is_missing(&tacho__missing, name) && can_load(&(struct target){__VA_ARGS__}); \
	char *tacho__room[tacho__is ? tacho__missing.room / sizeof(char *) + 1 : 1];          \
	if (tacho__is)                                                                        \
	name = complete(&tacho__missing, name, tacho__room)
#define AT_PATH(p) .fd = AT_FDCWD, .path = (p)
#define BY_NAME(p) .path = (p), .search = 1

/* ----------------------------------------------------------------------- exec */

typedef char *const *strings;

TACHO__HOOKED(int, execve, (const char *path, strings args, strings given));
TACHO__HOOKED(int, execvpe, (const char *name, strings args, strings given));

/* These are called by several hooks, which must not call each other by their names: another
   library in front would see calls that there are not. */
static int exec_path(const char *path, strings args, strings given)
{
	COMPLETE(environment, given, AT_PATH(path));
	return TACHO__NEXT(execve)(path, args, environment);
}

static int exec_name(const char *name, strings args, strings given)
{
	COMPLETE(environment, given, BY_NAME(name));
	return TACHO__NEXT(execvpe)(name, args, environment);
}

TACHO_HOOK int tacho__hooked_execve(const char *path, strings args, strings given)
{
	return exec_path(path, args, given);
}

TACHO_HOOK int tacho__hooked_execvpe(const char *name, strings args, strings given)
{
	return exec_name(name, args, given);
}

TACHO__HOOKED(int, execv, (const char *path, strings args))
{
	return exec_path(path, args, environ);
}

TACHO__HOOKED(int, execvp, (const char *name, strings args))
{
	return exec_name(name, args, environ);
}

TACHO__HOOKED(int, fexecve, (int fd, strings args, strings given))
{
	COMPLETE(environment, given, .fd = fd);
	return TACHO__NEXT(fexecve)(fd, args, environment);
}

TACHO__HOOKED(int, execveat, (int dir, const char *path, strings args, strings given, int flags))
{
	COMPLETE(environment, given, .fd = dir, .path = path);
	return TACHO__NEXT(execveat)(dir, path, args, environment, flags);
}

/* With the first, which is not in the list. */
static size_t count_of(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *))
		n++;
	return n;
}

/* The list is behind their end then. */
static void gather(char **args, const char *first, va_list *list)
{
	args[0] = (char *)(uintptr_t)first;
	do
		args[1] = va_arg(*list, char *);
	while (*++args);
}

/* Declares `args`, on the stack, as libc does, and `list`, which is to be ended. */
#define GATHERED(args, list, first)    \
	va_list list;                  \
	size_t tacho__count;           \
	va_start(list, first);         \
	tacho__count = count_of(list); \
	va_end(list);                  \
	char *args[tacho__count + 1];  \
	va_start(list, first);         \
	gather(args, first, &list)

TACHO__HOOKED(int, execl, (const char *path, const char *first, ...))
{
	GATHERED(args, list, first);
	va_end(list);
	return exec_path(path, args, environ);
}

TACHO__HOOKED(int, execlp, (const char *name, const char *first, ...))
{
	GATHERED(args, list, first);
	va_end(list);
	return exec_name(name, args, environ);
}

TACHO__HOOKED(int, execle, (const char *path, const char *first, ...))
{
	strings environment;

	GATHERED(args, list, first);
	environment = va_arg(list, strings);
	va_end(list);
	return exec_path(path, args, environment);
}

/* ---------------------------------------------------------------------- spawn */

/* In libc's own way, past the hooks of fork and exec: it returns when the new program runs. */
#define SPAWN(name, ...)                                                                          \
	TACHO__HOOKED(int, name,                                                                  \
		      (pid_t * process, const char *path, const void *actions,                    \
		       const void *attributes, strings args, strings given))                      \
	{                                                                                         \
		uint64_t since =                                                                  \
			TACHO__CALL_BEGINS(tacho__call_counts(), #name, TACHO__ON_NOTHING);       \
		COMPLETE(environment, given, __VA_ARGS__);                                        \
		int result =                                                                      \
			TACHO__NEXT(name)(process, path, actions, attributes, args, environment); \
                                                                                                  \
		TACHO__CALL_ENDS(since, #name, result, TACHO__PATH(path));                        \
		return result;                                                                    \
	}
SPAWN(posix_spawn, AT_PATH(path))
SPAWN(posix_spawnp, BY_NAME(path))

/* ---------------------------------------------------------------------- shell */

const char *tacho__shell_begins(const char *command)
{
	struct missing m;
	uint64_t mask;

	if (!command || !is_missing(&m, environ) || !tacho__recording() || !tacho__rec ||
	    tacho__load(&tacho__rec->phase) != TACHO__PHASE_READY)
		return command;
	if (tacho__enter(&mask)) {
		__atomic_fetch_add(&tacho__rec->control->unrecorded, 1, __ATOMIC_RELAXED);
		tacho__wake_agent();
	}
	tacho__leave(mask);
	return command;
}

/* ------------------------------------------------------------------- at load */

void tacho__exec_begin(int record)
{
	/* Looked up now: in a child of a program with threads that would be too late. */
	(void)TACHO__NEXT(execve);
	(void)TACHO__NEXT(execvpe);
	(void)TACHO__NEXT(fexecve);
	(void)TACHO__NEXT(execveat);
	if (record)
		remember();
}

void tacho__exec_end(void)
{
	tacho__store(&ended, 1);
}
