/*
 * From a trace to its cause.
 *
 * tacho__explain reads the trace once into a summary (model/summary.h), runs the rules over it,
 * folds findings that others explain, ranks the rest by the time that they cost, and says in one
 * line what kind of trouble it is: or that there is none, or that there is not enough to tell.
 *
 * A rule never guesses: where what it needs was not recorded, or not enough of it, it finds
 * nothing and says so in the coverage.
 *
 * No OS calls, as src/model.
 */
#ifndef TACHO_EXPLAIN_EXPLAIN_H
#define TACHO_EXPLAIN_EXPLAIN_H

#include <stdint.h>

#include "explain/finding.h"
#include "model/summary.h"

/* A number that a rule compares with; `tacho report --threshold NAME=VALUE`. */
struct tacho__threshold {
	const char *name; /* such as "long-callback.warn" */
	const char *unit; /* "ns", "%", "count", "per-second" */
	const char *text; /* what it means */
	double value;	  /* the default */
};
extern const struct tacho__threshold tacho__thresholds[];
extern const uint32_t tacho__threshold_count;

struct tacho__rule {
	const char *id;
	const char *text;  /* one line: what it finds */
	const char *needs; /* which sources, in words; "": none but the loop's own records */
};
extern const struct tacho__rule tacho__rules[];
extern const uint32_t tacho__rule_count;

/* Whether a rule could look, and what it would have needed. */
struct tacho__coverage {
	const char *rule;
	int checked; /* 1: it had what it needs */
	char why[160];
};

struct tacho__verdict {
	const char *category; /* "none", "not-enough-data", "blocked-loop", "lock", "scheduling",
				 "pool", "overload", "latency", "leak", "stuck", "downstream",
				 "crash", "hang", "recording", "memory" */
	char summary[TACHO__SUMMARY_MAX];
};

struct tacho__explanation {
	struct tacho__verdict verdict;
	struct tacho__finding *findings; /* ranked; those that are folded come after all others */
	uint32_t count;
	struct tacho__coverage *coverage;
	uint32_t coverage_count;
	struct tacho__summary *summary;
};

struct tacho__explain_options {
	const double *thresholds; /* tacho__threshold_count of them; NULL: the defaults */
	void (*progress)(void *arg, uint64_t ns);
	void *progress_arg;
};

/* NULL with a negative errno in *error. */
struct tacho__explanation *tacho__explain(struct tacho_reader *reader,
					  const struct tacho__explain_options *options, int *error);
void tacho__explanation_free(struct tacho__explanation *e);

const char *tacho__severity_name(enum tacho__severity severity);

/* "73.2 ms", as the sentences of findings have it. */
#define TACHO__TEXT 96u
const char *tacho__ns_text(char out[TACHO__TEXT], double ns);

#endif
