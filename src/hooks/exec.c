/*
 * What a recorded program starts is recorded as well, also when it starts it with an environment of
 * its own: the library and the variables of the recording are given back where they are missing.
 *
 * Before each start the hooks look which C library the new program will run on. The library in
 * LD_PRELOAD is the one that was built for it. Where there is none (a program of another machine,
 * of another C library, or a file system without the library, as after chroot), ours is taken out:
 * the dynamic linker would complain, or fail. Other libraries stay, in their order.
 *
 * The environment as it was at load is what is given back, because programs clear theirs long before
 * they start others. An environment that belongs to another recording or says TACHO=off gets
 * nothing back. An LD_PRELOAD of the program's own stays in front.
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
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/trigger.h"
#include "hooks/exec_target.h"

#define KEPT_MAX 48u
#define TEXT_MAX 12288u
#define ENTRIES_MAX 2048u /* of an environment that is copied: 16 KiB */
#define ROOM_MAX 32768u
#define ALLOW_ORDER "verify_asan_link_order=0" /* see agent/run_environment.c */

#if defined(__GLIBC__)
#define BUILT_FOR TACHO__GLIBC
#else
#define BUILT_FOR TACHO__MUSL
#endif

static int ended;

/* What the process had at load. Written by the constructor alone. */
static struct {
	char text[TEXT_MAX];
	size_t used;
	/* The libraries, as LD_PRELOAD names them. NULL: not known. Without ours nothing is done. */
	const char *library[TACHO__LIBC_KINDS];
	const char *variable[KEPT_MAX]; /* TACHO_NAME=value */
	unsigned count;
	const char *recording; /* the value of TACHO_RECORDING, or NULL */
	int gives;	       /* 1: what is missing is given back */
} kept;

/* The value, when `entry` is NAME=value; else NULL. */
static const char *value_of(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(entry, name, n) && entry[n] == '=' ? entry + n + 1 : NULL;
}

static int is_named(const char *entry, size_t size, const char *part)
{
	size_t n = strlen(part);

	return size >= n && !memcmp(entry + size - n, part, n) &&
	       (size == n || entry[size - n - 1] == '/');
}

/* ------------------------------------------------------------------- at load */

static char *keep(const char *text, size_t size, const char *more)
{
	char *copy = kept.text + kept.used;
	size_t n = strlen(more);

	if (size + n >= TEXT_MAX - kept.used)
		return NULL;
	memcpy(copy, text, size);
	memcpy(copy + size, more, n + 1);
	kept.used += size + n + 1;
	return copy;
}

/* Ours is what LD_PRELOAD calls it. The other one lies beside it, unless ours has an unusual name. */
static void keep_libraries(const char *list)
{
	const char *own, *other = TACHO__PRELOAD_FILE(TACHO__LIBC_KINDS - 1 - BUILT_FOR);
	size_t size;
	Dl_info self;

	if (!dladdr(&kept, &self) || !self.dli_fname)
		return;
	own = tacho__last_part(self.dli_fname);
	for (; *list; list += size + (list[size] != 0)) {
		size = strcspn(list, ": ");
		if (!is_named(list, size, own))
			continue;
		kept.library[BUILT_FOR] = keep(list, size, "");
		size -= strlen(own);
		if (kept.library[BUILT_FOR] && size && strcmp(own, other) != 0)
			kept.library[TACHO__LIBC_KINDS - 1 - BUILT_FOR] = keep(list, size, other);
		return;
	}
}

static void remember(int record)
{
	const char *list = NULL;

	kept.gives = record;
	for (char **e = environ; e && *e; e++) {
		const char *value = value_of(*e, "TACHO");

		if (value && !strcmp(value, "off"))
			kept.gives = 0;
		if (!list)
			list = value_of(*e, "LD_PRELOAD");
		if (strncmp(*e, "TACHO_", 6) != 0)
			continue;
		if (kept.count == KEPT_MAX)
			return;
		kept.variable[kept.count] = keep(*e, strlen(*e), "");
		if (!kept.variable[kept.count])
			return;
		if (value_of(*e, "TACHO_RECORDING"))
			kept.recording = value_of(kept.variable[kept.count], "TACHO_RECORDING");
		kept.count++;
	}
	if (list)
		keep_libraries(list);
}

/* ------------------------------------------------------------ its environment */

/* The environment of a program that is started, and what has to change. */
struct change {
	uint64_t variables;    /* missing ones. Bits: of kept.variable */
	const char *preload;   /* its own LD_PRELOAD, or "" */
	const char *sanitizer; /* its own ASAN_OPTIONS, or "" */
	int ours;	       /* libraries of ours in its LD_PRELOAD */
	int recording;	       /* 1: TACHO_RECORDING is missing */
	int gives;	       /* 1: it gets what is missing */
	const char *library;   /* that its LD_PRELOAD shall have, or NULL for none */
	int preload_changes;
	size_t entries, room; /* of the new one: pointers, bytes in all */
};

static size_t name_size(const char *variable)
{
	return (size_t)(strchr(variable, '=') - variable) + 1;
}

/* Whether an entry of LD_PRELOAD is one of our libraries. */
static int is_ours(const char *entry, size_t size)
{
	for (int i = 0; i < TACHO__LIBC_KINDS; i++)
		if (kept.library[i] && is_named(entry, size, tacho__last_part(kept.library[i])))
			return 1;
	return 0;
}

static int count_ours(const char *list)
{
	size_t size;
	int count = 0;

	for (; *list; list += size + (list[size] != 0)) {
		size = strcspn(list, ": ");
		count += is_ours(list, size);
	}
	return count;
}

static void note(struct change *c, const char *entry)
{
	const char *value = value_of(entry, "LD_PRELOAD");

	if (value) {
		c->preload = value;
		c->ours = count_ours(value);
	}
	value = value_of(entry, "ASAN_OPTIONS");
	if (value)
		c->sanitizer = value;
	value = value_of(entry, "TACHO");
	if (value && !strcmp(value, "off"))
		c->gives = 0;
	if (strncmp(entry, "TACHO_", 6) != 0)
		return;
	for (unsigned i = 0; i < kept.count; i++)
		if (!strncmp(entry, kept.variable[i], name_size(kept.variable[i])))
			c->variables &= ~(UINT64_C(1) << i);
	value = value_of(entry, "TACHO_RECORDING");
	if (!value)
		return;
	c->recording = 0;
	if (!kept.recording || strcmp(value, kept.recording) != 0)
		c->gives = 0;
}

/* Looks at an environment. 0: it stays as it is, whatever program gets it. */
static int survey(struct change *c, char *const *environment)
{
	if (!kept.library[BUILT_FOR])
		return 0;
	*c = (struct change){.variables = (UINT64_C(1) << kept.count) - 1,
			     .preload = "",
			     .sanitizer = "",
			     .gives = kept.gives && !tacho__load(&ended),
			     .recording = kept.recording != NULL};
	for (; environment && environment[c->entries]; c->entries++) {
		if (c->entries == ENTRIES_MAX)
			return 0;
		note(c, environment[c->entries]);
	}
	return c->ours || c->gives;
}

static int lacks(const struct change *c)
{
	return c->gives && (!c->ours || c->recording);
}

/* The library for this C library; NULL when it cannot be loaded. */
static const char *library_for(int libc)
{
	const char *library = libc < TACHO__LIBC_KINDS ? kept.library[libc] : NULL;
	int fd;

	if (!library || !strchr(library, '/'))
		return library;
	fd = tacho__openat(AT_FDCWD, library, O_RDONLY, 0);
	if (fd < 0)
		return NULL;
	tacho__close(fd);
	return library;
}

/* Whether the environment changes for this program, and how. */
static int decide(struct change *c, const struct tacho__exec_target *target)
{
	/* A filter of the program forbids what recording needs, and holds for what it starts, too. Then
	   ours is taken out, and no system call is made for it. */
	int libc = tacho__load(&ended) ? TACHO__LIBC_OTHER : tacho__exec_libc(target);

	/* A file that only the kernel can read stays with what it has. */
	if (libc == TACHO__LIBC_UNKNOWN && !lacks(c))
		return 0;
	c->library = library_for(libc == TACHO__LIBC_UNKNOWN ? (int)BUILT_FOR : libc);
	c->gives &= c->library != NULL;
	if (!lacks(c) && !c->ours)
		return 0;
	if (!c->gives)
		c->variables = 0;
	/* Exactly the one, once. */
	c->preload_changes = c->ours != (c->library != NULL);
	for (const char *at = c->preload; c->ours && *at && !c->preload_changes;) {
		size_t size = strcspn(at, ": ");

		c->preload_changes = is_ours(at, size) && (strlen(c->library) != size ||
							   memcmp(at, c->library, size) != 0);
		at += size + (at[size] != 0);
	}
	c->entries += kept.count + 3;
	c->room = c->entries * sizeof(char *) + strlen(c->preload) + strlen(c->sanitizer) +
		  (c->library ? strlen(c->library) : 0) +
		  sizeof("LD_PRELOAD=:ASAN_OPTIONS=:" ALLOW_ORDER) + 1;
	return (c->preload_changes || lacks(c)) && c->room <= ROOM_MAX;
}

static char *put_n(char *to, const char *text, size_t n)
{
	memcpy(to, text, n);
	to[n] = 0;
	return to + n;
}

static char *put(char *to, const char *text)
{
	return put_n(to, text, strlen(text));
}

/* The new LD_PRELOAD: the library in the place of the first that was ours, or else at the end. */
static char *put_list(char *to, const struct change *c)
{
	const char *library = c->library;
	char *begin = to;
	size_t size;

	for (const char *at = c->preload; *at; at += size + (at[size] != 0)) {
		int ours;

		size = strcspn(at, ": ");
		ours = is_ours(at, size);
		if (!size || (ours && !library))
			continue;
		if (to != begin)
			to = put(to, ":");
		to = ours ? put(to, library) : put_n(to, at, size);
		if (ours)
			library = NULL;
	}
	if (library)
		to = put(put(to, to != begin ? ":" : ""), library);
	return to;
}

static int is_replaced(const struct change *c, const char *entry)
{
	return c->preload_changes &&
	       (value_of(entry, "LD_PRELOAD") || (c->library && value_of(entry, "ASAN_OPTIONS")));
}

/* The whole environment, into `room`. */
static char *const *complete(const struct change *c, char *const *environment, void *room)
{
	char **out = room, *text = room, *list;
	size_t n = 0;

	text += c->entries * sizeof(char *);
	for (char *const *e = environment; e && *e; e++)
		if (!is_replaced(c, *e))
			out[n++] = *e;
	for (unsigned i = 0; i < kept.count; i++)
		if (c->variables >> i & 1)
			out[n++] = (char *)(uintptr_t)kept.variable[i];
	if (c->preload_changes) {
		out[n] = text;
		list = put(text, "LD_PRELOAD=");
		text = put_list(list, c) + 1;
		n += text - 1 > list; /* an empty one is left out */
	}
	if (c->preload_changes && c->library) {
		out[n++] = text;
		text = put(text, "ASAN_OPTIONS=");
		if (!strstr(c->sanitizer, "verify_asan_link_order"))
			text = put(put(text, ALLOW_ORDER), c->sanitizer[0] ? ":" : "");
		put(text, c->sanitizer);
	}
	out[n] = NULL;
	return out;
}

/* Declares `name`, the environment that the program gets; the rest says what it is. */
#define COMPLETE(name, given, ...)                                                         \
	char *const *name = (given);                                                       \
	struct change tacho__change;                                                       \
	int tacho__is = survey(&tacho__change, name) &&                                    \
			decide(&tacho__change, &(struct tacho__exec_target){__VA_ARGS__}); \
	char *tacho__room[tacho__is ? tacho__change.room / sizeof(char *) + 1 : 1];        \
	if (tacho__is)                                                                     \
	name = complete(&tacho__change, name, tacho__room)
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
	struct change c;
	uint64_t mask;

	if (!command || !survey(&c, environ) || !lacks(&c) || !tacho__recording() || !tacho__rec ||
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
	remember(record);
}

void tacho__exec_end(void)
{
	tacho__store(&ended, 1);
}
