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

#include <stddef.h>
#include <stdint.h>

#include "explain/at_end.h"
#include "explain/finding.h"
#include "explain/ledger.h"
#include "model/summary.h"

/* Whether a rule could look, and what it would have needed. */
struct tacho__coverage {
	int is_known;	  /* the rule was run */
	int is_partial;	  /* of some processes it had, and of some not */
	int checked;	  /* 1: it had what it needs, of one process at least */
	uint32_t process; /* the first that was looked at */
	char why[240];
};

/* What was looked at and is no finding. */
#define TACHO__CONSIDERED 32u
struct tacho__considered {
	enum tacho__rule_id rule;
	uint32_t process;
	char what[TACHO__SUMMARY_MAX];
	char reason[TACHO__SUMMARY_MAX];
	double cost_ns, waiting_ns; /* as of findings */
};

struct tacho__verdict {
	const char *category; /* one of tacho__category_names */
	char summary[TACHO__SUMMARY_MAX];
	/* What it covers, of all processes: loops that were judged, and threads that ran and were not. */
	uint32_t loops, others;
	double others_cpus; /* that these used on average; -1: nobody saw it */
};

/* How much of what was recorded can be read. */
struct tacho__readable {
	uint64_t records, lost;
	uint8_t is_damaged; /* the file is; else records are lost because they found no room */
	uint8_t is_cut;
	uint8_t is_uncounted;	       /* more are lost than `lost`, and nobody knows how many */
	double share;		       /* of the records; if uncounted, so much at most. 0..1 */
	char text[TACHO__SUMMARY_MAX]; /* a sentence; "" of a file that is whole */
};

/* What was looked at of one process. */
struct tacho__explained {
	struct tacho__readable readable;
	uint64_t events;
	uint64_t first_ns, last_ns;   /* its window; 0, 0 without events */
	uint64_t missing, dropped;    /* records */
	struct tacho__hist callbacks; /* their lengths */
	uint32_t loops;		      /* that were judged */
	uint32_t others;	      /* threads that ran and were not */
	uint64_t others_ns;	      /* for so long */
	int sees_cpu;		      /* it was seen which threads ran */
	int is_idle;		      /* its loops had almost nothing to do */
	/* It was killed, and not because somebody asked it to end, or it hangs, or may have done so. */
	int ended_badly;
};

struct tacho__explanation {
	struct tacho__verdict verdict;
	struct tacho__readable readable; /* of all processes */
	uint32_t
		process; /* that the verdict is about: that of the first finding, else of most events */
	/* One for each cause, ranked (fold.c); those that are folded come after all others. */
	struct tacho__finding *findings;
	uint32_t count;
	struct tacho__instance *instances;			/* of findings */
	struct tacho__considered considered[TACHO__CONSIDERED]; /* the costliest of these */
	uint32_t considered_count;
	uint64_t considered_more; /* that there was no room for */
	struct tacho__coverage coverage[TACHO__RULE_COUNT];
	struct tacho__ledger *ledger;	    /* of all processes */
	struct tacho__explained *processes; /* as the reader has them */
	uint32_t process_count;
	struct tacho__at_ends at_ends;
	struct tacho__tracker_limits missed;
};

struct tacho__explain_options {
	const double *thresholds; /* TACHO__LIMIT_COUNT of them; NULL: the defaults */
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
/* "waiter", "holder", "holder-did" */
const char *tacho__role_name(enum tacho__role role);
/* "holder  thread flush (4714) at flush_cache (cache.c:18)" */
const char *tacho__part_text(char *out, size_t size, const struct tacho_reader *reader,
			     uint32_t process, const struct tacho__part *p);
/* Nobody was seen to wait because of it: it has no rank. */
int tacho__is_condition(const struct tacho__finding *f);
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
