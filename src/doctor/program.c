#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "doctor/libraries.h"
#include "doctor/program_elf.h"
#include "agent/run_program.h"
#include "text/text.h"
#include "model/language.h"
#include "model/place.h"

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
	bool known;			  /* all that it loads could be read */
	char missing[PATH_MAX];		  /* a library that is not found */
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

static void see_library(void *arg, const char *name, const char *path)
{
	struct linked *l = arg;
	const char *base = tacho__base_name(name);
	struct tacho__elf_facts facts;

	if (!path) {
		snprintf(l->missing, sizeof(l->missing), "%s", name);
		return;
	}
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
		tacho__check_todo(c, "%s",
				  p->libc == TACHO__MUSL ? TACHO__NO_MUSL
							 : "use a build for glibc or musl");
		return;
	}
}

/* Which of the recording libraries it gets. */
static void check_library(struct tacho__checks *checks, const struct tacho__program *p)
{
	struct tacho__check *c;
	char path[PATH_MAX], message[512];

	if (p->hindrance != TACHO__HINDRANCE_NONE || !p->machine ||
	    tacho__preload_find(path, sizeof(path), message, sizeof(message)) < 0 ||
	    tacho__preload_for(p->libc, path, sizeof(path)) < 0)
		return;
	c = tacho__check_add(checks, "library", TACHO__CHECK_OK);
	tacho__check_value(c, "%s", path);
	tacho__check_means(c, "the library that records it: it runs on %s (%s)",
			   p->libc == TACHO__MUSL ? "musl" : "glibc", p->linker);
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
		tacho__check_means(c,
				   "not all of the libraries that the program loads could be read");
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
	tacho__check_todo(c, l->missing[0] == '/' ? "install it"
						  : "install it, or name its folder in "
						    "LD_LIBRARY_PATH");
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
	check_library(checks, &p);
	err = tacho__elf_facts(p.elf, function_names(), &facts);
	if (err)
		return;
	memset(&linked, 0, sizeof(linked));
	if (p.hindrance == TACHO__HINDRANCE_NONE) {
		linked.known = tacho__libraries(
			p.elf, p.linker,
			&(struct tacho__libraries){.see = see_library, .arg = &linked});
		check_missing(checks, &linked);
		for (size_t i = 0; i < RUNTIMES; i++)
			check_runtime(checks, i, &linked, &facts);
		check_tokio(checks, &facts);
	}
	check_stacks(checks, &facts);
	check_names(checks, p.elf, &facts);
	check_language(checks, p.elf);
}
