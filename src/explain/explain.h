/*
 * From a trace to its cause.
 *
 * tacho__explain reads the events of each process once into a summary (model/summary.h) and runs
 * the rules over it: each process is judged by itself and in its own window. Then it folds
 * findings that others explain, ranks those of all processes by the time that they cost, and
 * says in one line what kind of trouble it is: or that there is none, or that there is not enough
 * to tell.
 *
 * A rule never guesses: where what it needs was not recorded, or not enough of it, it finds
 * nothing and says so in the coverage.
 *
 * No OS calls, as src/model.
 */
#ifndef TACHO_EXPLAIN_EXPLAIN_H
#define TACHO_EXPLAIN_EXPLAIN_H

#include <stdint.h>

#include "explain/at_end.h"
#include "explain/finding.h"
#include "explain/ledger.h"
#include "model/summary.h"

/* A number that a rule compares with; `tacho report --threshold NAME=VALUE`. */
struct tacho__threshold {
	const char *name; /* such as "waiting.share" */
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
	int checked;	  /* 1: it had what it needs, of one process at least */
	uint32_t process; /* the first that was looked at */
	char why[240];
};

/* What was looked at and is no finding. */
#define TACHO__CONSIDERED 32u
struct tacho__considered {
	const char *rule;
	uint32_t process;
	char what[TACHO__SUMMARY_MAX];
	char reason[TACHO__SUMMARY_MAX];
	double cost_ns, waiting_ns; /* as of findings */
};

struct tacho__verdict {
	const char *category; /* "none", "not-enough-data", "blocked-loop", "lock", "scheduling",
				 "pool", "overload", "latency", "leak", "stuck", "downstream",
				 "crash", "hang", "recording", "memory", "runtime" */
	char summary[TACHO__SUMMARY_MAX];
};

/* What was looked at of one process. */
struct tacho__explained {
	uint64_t events;
	uint64_t first_ns, last_ns;   /* its window; 0, 0 without events */
	uint64_t missing, dropped;    /* records */
	struct tacho__hist callbacks; /* their lengths */
	/* It was killed, and not because somebody asked it to end, or it hangs, or may have done so. */
	int ended_badly;
};

struct tacho__explanation {
	struct tacho__verdict verdict;
	uint32_t
		process; /* that the verdict is about: that of the first finding, else of most events */
	struct tacho__finding *findings; /* ranked; those that are folded come after all others */
	uint32_t count;
	struct tacho__considered considered[TACHO__CONSIDERED]; /* the costliest of these */
	uint32_t considered_count;
	uint64_t considered_more; /* that there was no room for */
	struct tacho__coverage *coverage;
	uint32_t coverage_count;
	struct tacho__ledger *ledger;	    /* of all processes */
	struct tacho__explained *processes; /* as the reader has them */
	uint32_t process_count;
	struct tacho__at_ends at_ends;
	struct tacho__tracker_limits missed;
};

struct tacho__explain_options {
	const double *thresholds; /* tacho__threshold_count of them; NULL: the defaults */
	void (*progress)(void *arg, uint64_t ns);
	void *progress_arg;
	const struct tacho__facts *watcher; /* gets all facts in the same pass; NULL: nobody */
	const struct tacho__waits *waits;   /* is told what waits; NULL: nobody */
};

/* NULL with a negative errno in *error. */
struct tacho__explanation *tacho__explain(struct tacho_reader *reader,
					  const struct tacho__explain_options *options, int *error);
/*
 * The same in steps, for who does something else in between. NULL without memory; the options are
 * copied, what they point to is not.
 */
struct tacho__explaining;
struct tacho__explaining *tacho__explain_begin(struct tacho_reader *reader,
					       const struct tacho__explain_options *options);
/* Reads `most` events at most. 1: it goes on, at *ns of *process; 0: that was all. */
int tacho__explain_some(struct tacho__explaining *x, uint32_t most, uint32_t *process,
			uint64_t *ns);
/* NULL before that was all: it is given up then. */
struct tacho__explanation *tacho__explain_end(struct tacho__explaining *x);
void tacho__explanation_free(struct tacho__explanation *e);
/* The first event of all processes, and the last if `last` is not NULL. */
uint64_t tacho__explained_window(const struct tacho__explanation *e, uint64_t *last);

const char *tacho__severity_name(enum tacho__severity severity);
/* Whether a wait is for a condition or semaphore, which is what threads do that have nothing to do. */
int tacho__idles(const struct tacho_reader *reader, const struct tacho__lock *l);

#define TACHO__TEXT 96u
/* "nginx (4711)" */
const char *tacho__process_text(const struct tacho_reader *reader, char out[TACHO__TEXT],
				uint32_t process);
/* "parse (server.c:42)", "parse", "libfoo.so+0x1f30", or its address */
const char *tacho__place_text(char out[2 * TACHO__TEXT], const struct tacho__place *p);
/* "73.2 ms", as the sentences of findings have it. */
const char *tacho__ns_text(char out[TACHO__TEXT], double ns);

#endif
