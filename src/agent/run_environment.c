/*
 * What the command of `tacho run` finds in its environment: the hooks, and what recorders are told.
 */
#define _GNU_SOURCE 1 /* environ */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/engine.h"
#include "agent/run.h"
#include "agent/run_child.h"
#include "agent/run_program.h"

#define DEAD_BOXES "64" /* boxes of ended processes that wait to be saved */
#define ALLOW_ORDER "verify_asan_link_order=0"

/* Hooks in a program of another machine or C library would make its dynamic linker
   complain, or fail. */
static bool can_preload(const struct tacho__program *p)
{
	return p->hindrance != TACHO__HINDRANCE_MACHINE && p->hindrance != TACHO__HINDRANCE_LIBC;
}

/* What LD_PRELOAD becomes; "" when the hooks cannot be used and there was none. */
static int find_preload(char *out, size_t size, const struct tacho__program *program, char *message,
			size_t message_size)
{
	const char *before = getenv("LD_PRELOAD");
	char path[PATH_MAX] = "", why[512];
	int error = 0;

	if (can_preload(program)) {
		error = tacho__preload_find(path, sizeof(path), why, sizeof(why));
		if (error < 0) {
			snprintf(message, message_size, "nothing will be recorded: %s", why);
			return error;
		}
		if (tacho__preload_for(program->libc, path, sizeof(path)) < 0)
			path[0] = 0;
	}
	if (!before)
		before = "";
	/* There already in a `tacho run` inside another. */
	if (path[0] && strstr(before, path))
		path[0] = 0;
	if ((size_t)snprintf(out, size, "%s%s%s", before, before[0] && path[0] ? ":" : "", path) <
	    size)
		return 0;
	snprintf(message, message_size,
		 "nothing will be recorded: LD_PRELOAD is too long already; shorten it.");
	return -ENAMETOOLONG;
}

/* What recorders shall watch for from their first record on, before we know of them. */
static const char *watched_inside(const struct tacho__sentinels *s, char *out, size_t size)
{
	static const char *const names[TACHO_SENTINEL_COUNT] = {
		[TACHO_SENTINEL_POLL] = "poll",	  [TACHO_SENTINEL_WAKE] = "wake",
		[TACHO_SENTINEL_LAG] = "lag",	  [TACHO_SENTINEL_SCHED] = "sched",
		[TACHO_SENTINEL_QUEUE] = "queue",
	};
	size_t used = 0;

	for (unsigned i = 0; i < TACHO_SENTINEL_COUNT; i++) {
		uint64_t limit = tacho__sentinels_limit(s, (enum tacho__watched)i);

		if (limit && used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s>%" PRIu64 "%s",
						 used ? "," : "", names[i], limit,
						 i == TACHO_SENTINEL_QUEUE ? "" : "ns");
	}
	return used && used < size ? out : NULL;
}

/*
 * Programs that gcc built with AddressSanitizer refuse to start where another library comes before
 * the sanitizer's, unless this option allows it. What was in the variable before comes last, and
 * so takes precedence.
 */
static const char *sanitizer_options(char *out, size_t size)
{
	const char *before = getenv("ASAN_OPTIONS");

	if (!before || !before[0])
		return ALLOW_ORDER;
	if (strstr(before, "verify_asan_link_order") ||
	    (size_t)snprintf(out, size, ALLOW_ORDER ":%s", before) >= size)
		return before;
	return out;
}

/* What is set for `--names`, in addition to what is there. */
#define NODE_NAMES "--perf-basic-prof-only-functions --interpreted-frames-native-stack"

static int name_options(char *out, size_t size, char *message, size_t message_size)
{
	const char *before = getenv("NODE_OPTIONS");

	if (!before)
		before = "";
	if ((size_t)snprintf(out, size, "%s%s" NODE_NAMES, before, before[0] ? " " : "") < size)
		return 0;
	snprintf(message, message_size,
		 "--names has no effect: NODE_OPTIONS is too long already; shorten it.");
	return -ENAMETOOLONG;
}

int tacho__run_environment(char ***out, const struct tacho__run_options *o, const char *recording,
			   char *message, size_t message_size)
{
	char preload[2 * PATH_MAX], watched[256], sanitizer[4096], node[4096];
	int error = find_preload(preload, sizeof(preload), o->program, message, message_size);
	int unnamed = !o->engine->names ? -ENODATA
		      : error		? error
					: name_options(node, sizeof(node), message, message_size);
	/* What is not given stays as the environment has it. */
	const struct tacho__variable given[] = {
		{"TACHO_DEAD_BOXES", getenv("TACHO_DEAD_BOXES") ? NULL : DEAD_BOXES},
		{"TACHO_MAX_BYTES", o->memory},
		{"TACHO_MIN_AGE", o->min_age},
		{"TACHO_POLL_THRESHOLD", o->poll_threshold},
		{"TACHO_CALL_THRESHOLD", o->call_threshold},
		{"TACHO_EXCLUDE", o->exclude},
		{"TACHO_CRASH", o->no_crash ? "off" : NULL},
		{"TACHO_REDACT", o->engine->no_redact ? "off" : NULL},
		{"TACHO_SERVICE", o->engine->service},
		{"NODE_OPTIONS", unnamed ? NULL : node},
		{"PYTHONPERFSUPPORT", unnamed ? NULL : "1"},
		{"ASAN_OPTIONS",
		 error || !preload[0] ? NULL : sanitizer_options(sanitizer, sizeof(sanitizer))},
	};
	struct tacho__variable v[4 + sizeof(given) / sizeof(given[0])];
	size_t n = 0;

	/* Without the hooks, what LD_PRELOAD had before stays. */
	if (!error)
		v[n++] = (struct tacho__variable){"LD_PRELOAD", preload[0] ? preload : NULL};
	v[n++] = (struct tacho__variable){"TACHO_RECORDING", recording};
	v[n++] = (struct tacho__variable){"TACHO_KEEP_BOX", "1"};
	v[n++] = (struct tacho__variable){
		"TACHO_ON", watched_inside(&o->engine->rules.sentinels, watched, sizeof(watched))};
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		if (given[i].value)
			v[n++] = given[i];
	*out = tacho__environment(environ, v, n);
	if (!*out) {
		snprintf(message, message_size, "nothing will be recorded: out of memory.");
		return -ENOMEM;
	}
	return error ? error : o->engine->names ? unnamed : 0;
}
