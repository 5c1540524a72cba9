#define _GNU_SOURCE 1 /* environ */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "doctor/program_elf.h"
#include "agent/run_child.h"
#include "agent/run_program.h"
#include "text/text.h"
#include "model/language.h"

#define LIST_MAX (256u << 10) /* bytes that the dynamic linker may tell */
#define LIST_MS 10000
#define FRAMED_MOST 60u /* percent of functions from which on a program keeps frame pointers */
#define FRAMED_FEW 20u

/* Libraries whose callbacks are recorded, and the function by which they are known inside a
   program. */
static const struct runtime {
	const char *name;     /* of the check */
	const char *library;  /* beginning of the shared library's name */
	const char *function; /* NULL: not looked for */
	const char *seen;     /* what is recorded of it */
} runtimes[] = {
	{"libuv", "libuv.so", "uv_run", "every callback of libuv is recorded"},
	{"libevent", "libevent", "event_base_loop", "every callback of libevent is recorded"},
	{"liburing", "liburing.so", "io_uring_get_sqe",
	 "waits of io_uring are recorded as waits of a loop"},
	{"tacho-api", "libtacho.so", "tacho_start", "the program records itself, by tacho.h"},
};
#define RUNTIMES (sizeof(runtimes) / sizeof(runtimes[0]))

struct linked {
	bool known;			  /* the dynamic linker told */
	char missing[128];		  /* a library that it did not find */
	char shared[RUNTIMES][PATH_MAX];  /* path of the shared library; "": none */
	char bundled[RUNTIMES][PATH_MAX]; /* another file that has it inside; "": none */
};

static const char *const *function_names(void)
{
	static const char *names[RUNTIMES + 1];

	for (size_t i = 0; i < RUNTIMES; i++)
		names[i] = runtimes[i].function;
	return names;
}

/* ---------------------------------------------------- which libraries it loads */

static void see_library(const char *name, const char *path, struct linked *l)
{
	const char *base = strrchr(name, '/');
	struct tacho__elf_facts facts;

	base = base ? base + 1 : name;
	for (size_t i = 0; i < RUNTIMES; i++) {
		if (!strncmp(base, runtimes[i].library, strlen(runtimes[i].library))) {
			snprintf(l->shared[i], sizeof(l->shared[i]), "%s", path);
			return;
		}
	}
	if (tacho__elf_facts(path, function_names(), &facts))
		return;
	for (size_t i = 0; i < RUNTIMES; i++)
		if (facts.defines >> i & 1)
			snprintf(l->bundled[i], sizeof(l->bundled[i]), "%s", path);
}

/*
 * "\tlibuv.so.1 => /lib/libuv.so.1 (0x7f...)", "\tlibuv.so.1 => not found",
 * "\t/opt/lib/libuv.so (0x7f...)", and on its error stream
 * "PROGRAM: error while loading shared libraries: /opt/lib/libuv.so: cannot open ..."
 */
static void see_line(char *line, struct linked *l)
{
	static const char failed[] = "error while loading shared libraries: ";
	char *path, *end;

	path = strstr(line, failed);
	if (path) {
		path += strlen(failed);
		snprintf(l->missing, sizeof(l->missing), "%.*s", (int)strcspn(path, ":"), path);
		return;
	}
	line += strspn(line, " \t");
	path = strstr(line, " => ");
	if (path) {
		*path = 0;
		path += 4;
	} else {
		path = line;
	}
	if (!strncmp(path, "not found", 9)) {
		snprintf(l->missing, sizeof(l->missing), "%s", line);
		return;
	}
	end = strstr(path, " (0x");
	if (end)
		*end = 0;
	if (path[0] == '/')
		see_library(line, path, l);
}

size_t tacho__doctor_read(int fd, char *to, size_t room, int patience_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t got = 0;

	while (got < room && poll(&p, 1, patience_ms) > 0) {
		ssize_t n = read(fd, to + got, room - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

pid_t tacho__doctor_spawn(const char *path, char **argv, char **environment, int out, int errors)
{
	posix_spawn_file_actions_t files;
	pid_t pid = -1;

	if (!environment || posix_spawn_file_actions_init(&files)) {
		free(environment);
		return -1;
	}
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out, 1);
	posix_spawn_file_actions_adddup2(&files, errors, 2);
	if (posix_spawn(&pid, path, &files, NULL, argv, environment))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	free(environment);
	return pid;
}

static pid_t start_linker(const char *linker, const char *program, int out)
{
	static const struct tacho__variable unset[] = {{"LD_PRELOAD", NULL}};
	char *argv[] = {(char *)(uintptr_t)linker, (char *)"--list", (char *)(uintptr_t)program,
			NULL};

	return tacho__doctor_spawn(linker, argv, tacho__environment(environ, unset, 1), out, out);
}

/* Asks our own dynamic linker, which executes nothing of the program. */
static void list_libraries(const char *program, struct linked *l)
{
	static struct tacho__program self;
	char message[256], *text, *line, *rest;
	int ends[2];
	size_t n;
	pid_t pid;

	if (tacho__program_find(&self, "/proc/self/exe", message, sizeof(message)) ||
	    !self.linker[0] || pipe2(ends, O_CLOEXEC) < 0)
		return;
	text = calloc(1, LIST_MAX + 1);
	pid = text ? start_linker(self.linker, program, ends[1]) : -1;
	close(ends[1]);
	if (pid > 0) {
		n = tacho__doctor_read(ends[0], text, LIST_MAX, LIST_MS);
		kill(pid, SIGKILL); /* it has told all, or takes too long */
		waitpid(pid, NULL, 0);
		l->known = n > 0;
	}
	close(ends[0]);
	for (line = l->known ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		see_line(line, l);
	free(text);
}

/* ------------------------------------------------------------- what it is */

static void check_hindrance(struct tacho__checks *checks, const struct tacho__program *p)
{
	const char *machine = tacho__machine_name(p->machine);
	bool none = p->hindrance == TACHO__HINDRANCE_NONE;
	struct tacho__check *c =
		tacho__check_add(checks, "linking", none ? TACHO__CHECK_OK : TACHO__CHECK_CANNOT);

	switch (p->hindrance) {
	case TACHO__HINDRANCE_NONE:
		if (!p->machine) {
			c->state = TACHO__CHECK_UNKNOWN;
			tacho__check_value(c, "unknown");
			tacho__check_means(
				c, p->is_text ? "the shell runs it; the programs that it starts "
						"are recorded if they are linked dynamically"
					      : "the file cannot be read, so nothing more is "
						"known of it");
			return;
		}
		tacho__check_value(c, "dynamic");
		tacho__check_means(c,
				   "linked dynamically, so waits of its loops, threads, contended "
				   "locks and slow blocking calls can be recorded");
		return;
	case TACHO__HINDRANCE_STATIC:
		tacho__check_value(c, "static");
		tacho__check_means(c,
				   "linked statically, so nothing inside it is recorded; programs "
				   "that it starts are recorded if they are linked dynamically");
		tacho__check_todo(c,
				  "link it dynamically (without -static), or call tacho.h in it");
		return;
	case TACHO__HINDRANCE_SETID:
		tacho__check_value(c, "setid");
		tacho__check_means(
			c, "runs with more rights than its caller (set-user-id, "
			   "set-group-id or capabilities), so nothing inside it is recorded");
		tacho__check_todo(c, "run tacho as the user that it runs as");
		return;
	case TACHO__HINDRANCE_MACHINE:
		tacho__check_value(c, "machine");
		tacho__check_means(c, "a program for %s, so nothing inside it is recorded",
				   machine ? machine : "another architecture");
		tacho__check_todo(c, "use tacho and the program on a machine of that kind");
		return;
	case TACHO__HINDRANCE_LIBC:
		tacho__check_value(c, "libc");
		tacho__check_means(c,
				   "made for another C library (%s), so nothing inside it is "
				   "recorded",
				   p->linker);
		tacho__check_todo(c, "build tacho for that C library as well");
		return;
	}
}

static void check_runtime(struct tacho__checks *checks, size_t i, const struct linked *l,
			  const struct tacho__elf_facts *own)
{
	const struct runtime *r = &runtimes[i];
	struct tacho__check *c = tacho__check_add(checks, r->name, TACHO__CHECK_OK);
	const char *inside = own->defines >> i & 1 ? "the program itself" : l->bundled[i];

	if (l->shared[i][0]) {
		tacho__check_value(c, "shared");
		tacho__check_means(c, "%s (%s)", r->seen, l->shared[i]);
	} else if (inside[0]) {
		tacho__check_value(c, "static");
		c->state = TACHO__CHECK_WARNING;
		tacho__check_means(c,
				   "%s is inside %s, so its callbacks are not seen: a turn of the "
				   "loop is recorded as a whole",
				   r->name, inside);
		tacho__check_todo(c, "link it with the shared %s to see each callback", r->name);
		/* The program calls these itself, or the kernel. */
		if (!strncmp(r->library, "libtacho", 8)) {
			c->state = TACHO__CHECK_OK;
			tacho__check_means(c, "%s (linked statically)", r->seen);
			c->todo[0] = 0;
		}
	} else if (!l->known) {
		c->state = TACHO__CHECK_UNKNOWN;
		tacho__check_value(c, "unknown");
		tacho__check_means(c, "the dynamic linker did not say what the program loads");
	} else {
		tacho__check_value(c, "none");
		tacho__check_means(c, "not linked; if the program loads it later, %s", r->seen);
	}
}

static void check_missing(struct tacho__checks *checks, const struct linked *l)
{
	struct tacho__check *c;

	if (!l->missing[0])
		return;
	c = tacho__check_add(checks, "libraries", TACHO__CHECK_CANNOT);
	tacho__check_value(c, "%s", l->missing);
	tacho__check_means(c, "the program does not start: the library %s is not found",
			   l->missing);
	tacho__check_todo(c, "install it, or name its folder in LD_LIBRARY_PATH");
}

/* Only of programs that have it inside: which they do not show from outside. */
static void check_tokio(struct tacho__checks *checks, const struct tacho__elf_facts *own)
{
	struct tacho__check *c;

	if (!own->tokio)
		return;
	c = tacho__check_add(checks, "tokio",
			     own->tacho_tokio ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	if (own->tacho_tokio) {
		tacho__check_value(c, "told");
		tacho__check_means(c, "the program tells of its tasks by the crate tacho-tokio");
		return;
	}
	tacho__check_value(c, "workers");
	tacho__check_means(c, "what Tokio's workers wait for, and what blocks them, is recorded; "
			      "their tasks are not");
	tacho__check_todo(c, "%s", TACHO__TOKIO_HOW);
}

/* ------------------------------------------------------------ names and stacks */

static void check_stacks(struct tacho__checks *checks, const struct tacho__elf_facts *f)
{
	uint32_t percent = f->functions ? 100 * f->framed / f->functions : 0;
	struct tacho__check *c = tacho__check_add(
		checks, "unwind-tables", f->eh_frame ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);

	tacho__check_value(c, "%s", f->eh_frame ? "yes" : "no");
	tacho__check_means(
		c, "%s",
		f->eh_frame ? "stacks can be taken by .eh_frame"
			    : "there is no .eh_frame, so stacks end where frame pointers do");
	if (!f->eh_frame)
		tacho__check_todo(c, "compile without -fno-asynchronous-unwind-tables");
	c = tacho__check_add(checks, "frame-pointers", TACHO__CHECK_OK);
	if (f->functions < 8 || (percent >= FRAMED_FEW && percent < FRAMED_MOST)) {
		c->state = TACHO__CHECK_UNKNOWN;
		tacho__check_value(c, "unknown");
		tacho__check_means(c, "%u of %u functions seem to keep one", f->framed,
				   f->functions);
	} else if (percent >= FRAMED_MOST) {
		tacho__check_value(c, "yes");
		tacho__check_means(c, "%u of %u functions keep one", f->framed, f->functions);
	} else {
		tacho__check_value(c, "no");
		tacho__check_means(c, "only %u of %u functions keep one%s", f->framed, f->functions,
				   f->eh_frame ? ", which .eh_frame makes up for" : "");
		if (!f->eh_frame) {
			c->state = TACHO__CHECK_WARNING;
			tacho__check_todo(c, "compile with -fno-omit-frame-pointer");
		}
	}
}

/* The file with debug information that belongs to it: as gdb looks for it. */
static bool find_debug(const char *elf, const char *build_id, char *path, size_t size)
{
	char real[PATH_MAX];

	if (build_id[0]) {
		snprintf(path, size, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
			 build_id + 2);
		if (access(path, R_OK) == 0)
			return true;
	}
	if (!realpath(elf, real))
		return false;
	snprintf(path, size, "/usr/lib/debug%s.debug", real);
	return access(path, R_OK) == 0;
}

static void check_names(struct tacho__checks *checks, const char *elf,
			const struct tacho__elf_facts *f)
{
	char build_id[2 * sizeof(f->build_id) + 1] = "", path[2 * PATH_MAX];
	struct tacho__check *c = tacho__check_add(
		checks, "build-id", f->build_id_size ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	bool separate;

	text_hex(build_id, f->build_id, f->build_id_size);
	tacho__check_value(c, "%s", build_id);
	if (f->build_id_size) {
		tacho__check_means(c, "its debug file can be told from those of other builds");
	} else {
		tacho__check_means(c, "without one, names can only be looked up where it runs");
		tacho__check_todo(c, "link with -Wl,--build-id");
	}
	separate = !f->debug_info && find_debug(elf, build_id, path, sizeof(path));
	c = tacho__check_add(checks, "debug-info",
			     f->debug_info || separate ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	tacho__check_value(c, "%s", f->debug_info ? "own" : separate ? "separate" : "none");
	if (f->debug_info) {
		tacho__check_means(c, "functions, files and lines are in the program");
	} else if (separate) {
		tacho__check_means(c, "functions, files and lines are in %s", path);
	} else {
		tacho__check_means(c, "%s have names, but no files and lines",
				   f->symtab ? "functions" : "only exported functions");
		tacho__check_todo(c, "install its debug symbols (package NAME-dbgsym), let "
				     "tacho dump --debuginfod fetch them, or compile with -g");
	}
}

/* Of programs that run scripts. */
static void check_language(struct tacho__checks *checks, const char *elf)
{
	char real[PATH_MAX];
	const char *path = realpath(elf, real) ? real : elf;
	const struct tacho__language *l = tacho__language_of(path, "");
	struct tacho__check *c;
	bool has;

	if (!l)
		return;
	has = tacho__language_has_names(l, path);
	c = tacho__check_add(checks, "script-names", has ? TACHO__CHECK_OK : TACHO__CHECK_WARNING);
	tacho__check_value(c, "%s", tacho__base_name(path));
	if (has) {
		tacho__check_means(c, "runs scripts of %s: %s", tacho__language_name(l),
				   tacho__language_how(l, path));
		return;
	}
	tacho__check_means(c,
			   "runs scripts of %s, and its stacks do not show the functions of these",
			   tacho__language_name(l));
	tacho__check_todo(c, "%s", tacho__language_how(l, path));
}

/* ---------------------------------------------------------------- all of it */

void tacho__doctor_program(struct tacho__checks *checks, const char *name)
{
	static struct tacho__program p;
	static struct linked linked;
	struct tacho__elf_facts facts;
	char message[512];
	int err = tacho__program_find(&p, name, message, sizeof(message));
	struct tacho__check *c =
		tacho__check_add(checks, "program", err ? TACHO__CHECK_CANNOT : TACHO__CHECK_OK);

	if (err) {
		tacho__check_value(c, "%s", name);
		tacho__check_means(c, "%s", message);
		return;
	}
	tacho__check_value(c, "%s", p.path);
	if (strcmp(p.path, p.elf))
		tacho__check_means(c, "a script, run by %s; what follows is about that", p.elf);
	else
		tacho__check_means(c, "it is there, and can be executed");
	check_hindrance(checks, &p);
	err = tacho__elf_facts(p.elf, function_names(), &facts);
	if (err)
		return;
	memset(&linked, 0, sizeof(linked));
	if (p.hindrance == TACHO__HINDRANCE_NONE) {
		list_libraries(p.elf, &linked);
		check_missing(checks, &linked);
		for (size_t i = 0; i < RUNTIMES; i++)
			check_runtime(checks, i, &linked, &facts);
		check_tokio(checks, &facts);
	}
	check_stacks(checks, &facts);
	check_names(checks, p.elf, &facts);
	check_language(checks, p.elf);
}
