/*
 * What rules need beyond the summary and the ledger: polls that have not ended, with what they were
 * in, and when what was woken came late.
 */
#ifndef TACHO_EXPLAIN_GATHER_H
#define TACHO_EXPLAIN_GATHER_H

#include "explain/at_end.h"
#include "explain/herds.h"
#include "explain/sole.h"
#include "model/summary.h"

/* A poll that has not ended, the outermost of its thread. */
struct tacho__open_poll {
	struct tacho__entry entry; /* key: process, thread */
	struct tacho__poll poll;
	/* What it was in; with `cut`, if it still is. */
	struct tacho__call call;
	struct tacho__lock lock;
	struct tacho__samples samples;
};

/* For how long a thread ran, by those who saw it: its own samples, those of perf, switches. */
struct tacho__ran {
	struct tacho__entry entry; /* key: process, thread */
	uint64_t sampled_ns[2];	   /* by struct tacho__sample.perf */
	uint64_t switched_ns, since_ns;
};
uint64_t tacho__ran_ns(const struct tacho__ran *r);

/* The longest that a thread waited for others to give it something to do: at a condition or semaphore, or
   in a call on a descriptor. */
struct tacho__long_wait {
	struct tacho__entry entry; /* key: process, thread */
	uint64_t begin_ns, end_ns;
	uint32_t call; /* its name; 0: it was no call */
};

/* Times in which something that was woken waited for long, of a process; those that overlap are
   one. */
struct tacho__late {
	struct tacho__entry entry; /* key: process, 0 */
	uint64_t from_ns, to_ns;   /* the last one */
	uint64_t sum_ns;	   /* of all */
	uint64_t wakes;
	uint32_t count; /* of times: those that wait at once are one */
};

/* Polls of a process that were cut lately, the innermost of each thread. */
#define TACHO__OPENED 16u
struct tacho__opened {
	struct tacho__entry entry; /* key: process, 0 */
	struct tacho__poll at[TACHO__OPENED];
	uint32_t count; /* ever */
};

/* Tasks that waited for a lock, by the kind of the task that had it and the place where it let it go. */
struct tacho__task_lock {
	struct tacho__entry entry; /* key: process << 32 | kind, address of the place */
	uint32_t process;
	uint64_t count, sum_ns; /* of waits of a millisecond and more */
	struct tacho__task_wait longest;
};

/* What a task waits for beside clients of other services. Mostly timers, and never a descriptor: it works at its
   own pace, and nobody waits for it. */
struct tacho__pace {
	struct tacho__entry entry; /* key: process, task */
	uint32_t timers, descriptors, others;
};

/* Waits of tasks, of one stack, in a client of another service. */
struct tacho__outside {
	struct tacho__entry entry; /* key: process, stack */
	uint32_t process;
	uint8_t looked, is_client;
	struct tacho__hist ns;
	struct tacho__task_wait longest;
};

/* A wait for a lock that has not ended, and of which it is known who has the lock. */
#define TACHO__STUCK 64u

struct tacho__gathered {
	const struct tacho_reader *reader;
	uint64_t late_ns;		/* from a wake to its poll */
	struct tacho__table open;	/* struct tacho__open_poll */
	struct tacho__table late;	/* struct tacho__late */
	struct tacho__table ran;	/* struct tacho__ran */
	struct tacho__table long_waits; /* struct tacho__long_wait */
	struct tacho__table threads;	/* what each did lately */
	uint32_t last_thread;		/* that was looked up: index + 1; 0 */
	struct tacho__table opened;	/* struct tacho__opened */
	struct tacho__herding herding;
	struct tacho__table soles; /* struct tacho__sole */
	struct tacho__table task_locks;
	struct tacho__table outside; /* also of stacks that are no clients */
	struct tacho__table paces;   /* struct tacho__pace */
	struct tacho__lock stuck[TACHO__STUCK];
	uint32_t stuck_count;
	struct tacho__at_ends *at_ends; /* to which threads are added at the end */
	int error;
};

/* Whether the task of the wait works at its own pace, so that nobody waits for it. */
int tacho__is_own_pace(const struct tacho__gathered *g, const struct tacho__task_wait *w);
/* Whether a text of what tasks wait for names a lock. */
int tacho__is_lock(const struct tacho_definition *d);

void tacho__gather_init(struct tacho__gathered *g, const struct tacho_reader *reader,
			uint64_t late_ns);
/* To subscribe with. */
struct tacho__facts tacho__gather_facts(struct tacho__gathered *g);
void tacho__gather_free(struct tacho__gathered *g);

#endif
