/*
 * Findings: causes of trouble that rules found in a trace, with their evidence.
 */
#ifndef TACHO_EXPLAIN_FINDING_H
#define TACHO_EXPLAIN_FINDING_H

#include <stdint.h>

#include "model/place.h"

enum tacho__severity {
	TACHO__SEVERITY_INFO = 1,
	TACHO__SEVERITY_WARNING = 2,
	TACHO__SEVERITY_CRITICAL = 3,
};

#define TACHO__SUMMARY_MAX 320u
#define TACHO__EVIDENCE 6u
#define TACHO__WHERE 6u

/* A time range that shows it, with a number. */
struct tacho__evidence {
	uint32_t process, thread; /* thread 0: of the process */
	uint64_t task;		  /* that it is about; 0: none */
	uint64_t from_ns, to_ns;
	double value;  /* in `unit` */
	char unit[16]; /* "ns", "records", "tasks", "%"; "": none */
	char text[200];
};

struct tacho__finding {
	const char *rule; /* stable id, such as "long-callback" */
	enum tacho__severity severity;
	uint32_t process;
	char summary[TACHO__SUMMARY_MAX]; /* one plain sentence */
	/* The place in the code that is to blame, first; then what called it. Texts live as long
	   as the reader. */
	struct tacho__place where[TACHO__WHERE];
	uint32_t where_count;
	uint32_t where_other; /* bit i: where[i] did not call where[i - 1] but has to do with it:
				 who waits for the lock, what was woken, where it was spawned */
	struct tacho__evidence evidence[TACHO__EVIDENCE];
	uint32_t evidence_count;
	char advice[TACHO__SUMMARY_MAX];
	char names[TACHO__SUMMARY_MAX]; /* how to get names of functions that a language hides; ""
					   when none is hidden */
	double cost_ns;			/* time that it took */
	double waiting_ns;		/* of all that waited because of it, in all; 0: not known */
	/* What it cost whoever uses the program: what findings are ranked by. */
	double rank_ns;
	/* What it is about, so that what explains what can be told: 0 when not. */
	uint32_t loop, kind, thread;
	char loop_name[TACHO__SUMMARY_MAX]; /* "": it is about none */
	int shares_loop_name; /* others are called so, without what tells them apart */
	uint64_t lock, task;
	/* Of the program's own, index in the ledger + 1: it has too few threads, or a loop waits for room in
	   its queue. */
	uint32_t pool;
	int once; /* it came once or twice: what goes on all the time may cost more */
	/* Index of the finding that explains this one; -1: it stands for itself. */
	int32_t folded_into;
};

#endif
