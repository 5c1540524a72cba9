/*
 * Findings: causes of trouble that rules found in a trace, with their evidence.
 */
#ifndef TACHO_EXPLAIN_FINDING_H
#define TACHO_EXPLAIN_FINDING_H

#include <stdint.h>

#include "explain/rule.h"
#include "model/place.h"

enum tacho__severity {
	/* It is too small in its process; with the same in others it may not be. None is left in the end. */
	TACHO__SEVERITY_NONE = 0,
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

/*
 * What was counted, and how long it took. longest <= total <= count * longest, and total is not more than
 * the window of each thread whose time it adds up: tacho__measured sees to it.
 */
struct tacho__measure {
	uint64_t count; /* occurrences; 0: nothing was measured */
	uint64_t longest_ns, total_ns;
	uint32_t threads; /* whose time `total_ns` adds up */
	/* Not 0: an occurrence is what an iteration of the loop, or a wait, had of it, added up over parts
	   of which none need be as long; else it is one stretch of time. */
	int is_sum;
};

/* What a finding was in one process. */
struct tacho__instance {
	uint32_t process;
	uint32_t thread;  /* of the longest; 0: of none */
	uint32_t threads; /* that it was in; 0: of none */
	double cost_ns, waiting_ns;
	uint64_t count, longest_ns; /* as in its measure; 0: nothing was measured */
};

/* All that a finding was in. */
#define TACHO__INSTANCES 32u
struct tacho__spread {
	const struct tacho__instance *at; /* most waiting first */
	uint32_t count, left_out;
	/* In all: that do the same kind of work, whether it was in them or not. */
	uint32_t processes, processes_in_all;
	uint32_t threads, threads_in_all;
};

enum tacho__role {
	TACHO__ROLE_WAITER = 1,
	TACHO__ROLE_HOLDER = 2,	    /* of what is waited for */
	TACHO__ROLE_HOLDER_DID = 3, /* meanwhile */
};

/* A link of the chain from who waits to why. */
#define TACHO__PARTS 6u
struct tacho__part {
	enum tacho__role role;
	uint32_t thread;	   /* 0: not known */
	uint64_t task;		   /* 0: none */
	char what[96];		   /* "blocked in read"; "" */
	struct tacho__place place; /* function "" and address 0: not known */
};

struct tacho__finding {
	enum tacho__rule_id rule;
	enum tacho__severity severity;
	uint32_t process;		  /* of the worst, as all that follows */
	char summary[TACHO__SUMMARY_MAX]; /* one plain sentence */
	/* The same of several workers, with TACHO__WHO where these stand; "": the summary says it all. */
	char many[TACHO__SUMMARY_MAX];
	struct {
		/* The place in the code that is to blame, first; then what called it. Texts live as
		   long as the reader. */
		struct tacho__place where[TACHO__WHERE];
		uint32_t where_count;
		uint32_t where_other;  /* bit i: where[i] did not call where[i - 1] but has to do
					 with it: who waits for the lock, what was woken, where it
					 was spawned */
		uint8_t where_sampled; /* the line of the first is one of several */
	};
	struct tacho__evidence evidence[TACHO__EVIDENCE];
	uint32_t evidence_count;
	struct tacho__part parts[TACHO__PARTS];
	uint32_t part_count;
	char advice[TACHO__SUMMARY_MAX]; /* at first that of the rule */
	char names[TACHO__SUMMARY_MAX];	 /* how to get names of functions that a language hides; ""
					   when none is hidden */
	/* What it cost. Waiting is what findings are ranked by; one without is a condition. */
	struct {
		double cost_ns;	   /* time that it took; 0: not measured */
		double waiting_ns; /* of all that waited because of it, in all */
		double served_ns;  /* of that: of what the blocked threads served */
		uint64_t stalls;   /* of 50 ms and more */
		struct tacho__measure measure;
		uint8_t once; /* it came once or twice: what goes on all the time explains more */
		uint8_t is_shared; /* the cost is of all processes that it is found in */
	};
	enum tacho__rests rests;
	uint64_t absent; /* records that it misses, if it rests on these; 0: one */
	/* What it is about, so that what explains what can be told: 0 when not. */
	struct {
		uint32_t loop, kind, thread;
		uint64_t lock, task;
		/* Of the program's own, index in the ledger + 1: it has too few threads, or a loop
		   waits for room in its queue. */
		uint32_t pool;
		uint64_t subject; /* what tells it from others of its rule beside its place */
	};
	char loop_name[TACHO__SUMMARY_MAX]; /* "": it is about none */
	int shares_loop_name; /* others are called so, without what tells them apart */
	uint32_t cause;	      /* group.h */
	struct tacho__spread spread;
	/* Index of the finding that explains this one; -1: it stands for itself. */
	int32_t folded_into;
};

#define TACHO__WHO '\001'

#endif
