/*
 * What rules need beyond the summary: long polls one by one, with what they spent their time on.
 *
 * A poll of a loop that is long has one cause, the one that took most of it: a call that blocked, a
 * lock, the kernel that ran others, a process that did not run at all, or its own code. Polls with
 * the same cause in the same place are one case. Where a poll's own code ran, the place is the
 * innermost function that nearly all of its samples have in common; with too few samples to say,
 * what tells it from others is only its kind, or its loop.
 */
#ifndef TACHO_EXPLAIN_GATHER_H
#define TACHO_EXPLAIN_GATHER_H

#include "explain/at_end.h"
#include "model/summary.h"

enum tacho__cause {
	TACHO__CAUSE_CODE = 1,	  /* its own code ran */
	TACHO__CAUSE_CALL = 2,	  /* it was blocked in a call */
	TACHO__CAUSE_LOCK = 3,	  /* it waited for a lock */
	TACHO__CAUSE_SCHED = 4,	  /* it could have run, and others did */
	TACHO__CAUSE_PAUSE = 5,	  /* nothing of the process ran */
	TACHO__CAUSE_UNKNOWN = 6, /* nothing was seen that would explain it */
	TACHO__CAUSE_OPEN = 7,	  /* it still runs where the records end */
	TACHO__CAUSE_SIGNAL = 8,  /* it waited until another thread signalled a condition */
	TACHO__CAUSE_WOKEN = 9, /* no poll: its loop could have come out of its wait long before */
};

#define TACHO__CASE_SAMPLES 128u
#define TACHO__SAMPLE_FRAMES 12u

/* A stack that was sampled in polls of a case, or on a loop; of a long poll it may stand for its
   neighbours as well. */
struct tacho__sampled {
	uint32_t stack;	      /* definition; 0: frames */
	uint32_t frame_count; /* of the program, innermost first */
	uint64_t frames[TACHO__SAMPLE_FRAMES];
	uint32_t count;
	uint64_t ns; /* CPU time */
};

/* All of them, or as many that were picked at random. */
struct tacho__samples {
	struct tacho__sampled at[TACHO__CASE_SAMPLES];
	uint32_t count, seen; /* of `at`; what was picked from */
	uint32_t all;	      /* samples, each of `at` for one or more */
};

/* All samples of a loop's threads, and those in its callbacks of one kind. */
struct tacho__hot {
	struct tacho__entry entry; /* key: process << 32 | loop, kind; 0: all */
	struct tacho__samples samples;
};

struct tacho__case {
	struct tacho__entry entry; /* key: process << 32 | cause, what */
	uint32_t process, cause;
	int by_code; /* 1: that the polls have a function in common is what makes them one */
	uint32_t count;
	uint64_t sum_ns;   /* of the polls */
	uint64_t cause_ns; /* of that the part that the cause took */
	/* What they would have taken with a CPU of their own: in all, and the longest. */
	uint64_t own_ns, longest_own_ns;
	uint64_t sample_ns;
	uint32_t unsure; /* polls of which the kernel's part is not known */
	uint64_t first_ns, last_ns;
	struct tacho__worst_polls worst;
	/* The longest call or lock wait among them. */
	struct tacho__call call;
	struct tacho__lock lock;
	struct tacho__samples samples;
};

/* Times in which something that was woken waited for long, of a process; those that overlap are
   one. */
struct tacho__late {
	struct tacho__entry entry; /* key: process, 0 */
	uint64_t from_ns, to_ns;   /* the last one */
	uint64_t sum_ns;	   /* of all */
	uint32_t count;
};

/* Polls of a process that were cut lately, the innermost of each thread. */
#define TACHO__OPENED 16u
struct tacho__opened {
	struct tacho__entry entry; /* key: process, 0 */
	struct tacho__poll at[TACHO__OPENED];
	uint32_t count; /* ever */
};

/* Who did something lately, in any process. */
#define TACHO__ACTIVITY 256u
struct tacho__active {
	uint64_t ns;
	uint32_t process, thread;
};

/* A wait for a lock that has not ended, and of which it is known who has the lock. */
#define TACHO__STUCK 64u

struct tacho__gathered {
	const struct tacho_reader *reader;
	uint64_t long_ns; /* polls of at least this length are long */
	uint64_t late_ns; /* from a wake to its poll */
	struct tacho__table cases;
	struct tacho__table late;    /* struct tacho__late */
	struct tacho__table threads; /* what each did lately */
	struct tacho__table hot;     /* struct tacho__hot */
	struct tacho__table opened;  /* struct tacho__opened */
	struct tacho__active active[TACHO__ACTIVITY];
	uint32_t active_count; /* ever */
	struct tacho__lock stuck[TACHO__STUCK];
	uint32_t stuck_count;
	struct tacho__at_ends *at_ends; /* to which threads are added at the end */
	int error;
};

/* What a poll would have taken with a CPU of its own, as far as it is known. */
uint64_t tacho__own_ns(const struct tacho__poll *p);

void tacho__gather_init(struct tacho__gathered *g, const struct tacho_reader *reader,
			uint64_t long_ns, uint64_t late_ns);
/* To subscribe with. */
struct tacho__facts tacho__gather_facts(struct tacho__gathered *g);
void tacho__gather_free(struct tacho__gathered *g);

#endif
