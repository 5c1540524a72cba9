/*
 * The life of one task: what the trace has of it, read again, as stretches that add up to the time
 * from its spawn to its end.
 */
#ifndef TACHO_PAGE_TASK_H
#define TACHO_PAGE_TASK_H

#include <stdbool.h>

#include "engine.h"

/* What a task does at a time. */
enum phase {
	PHASE_RUNNING, /* a poll of it runs */
	PHASE_READY,   /* woken or spawned, and no poll has begun */
	PHASE_IDLE,    /* it waits to be woken */
	PHASE_GONE,    /* it has ended, and its number is used again later */
	PHASE_UNSEEN,  /* records are missing */
	PHASES
};

/* A poll of it, with the wake that led to it. */
struct visit {
	uint64_t begin_ns, end_ns;
	uint64_t wake_ns; /* 0: none was seen */
	uint64_t waker_task, waker_poll_ns;
	uint32_t thread, kind, waker, waker_kind;
	uint32_t waits_for, waits_stack; /* as it said before it went idle; 0 */
	uint64_t idle_ns;		 /* after it, until it was woken or the next poll */
	uint64_t ready_ns;		 /* before it: since the wake, or since it was spawned */
};

struct lived {
	uint64_t spawn_ns, end_ns; /* 0: not seen */
	uint64_t parent, woken_ns;
	uint32_t kind, place;
	bool running, lost;
};

struct life {
	uint32_t process;
	uint64_t task;
	uint64_t from_ns, to_ns;
	struct visit *visits;
	uint32_t visit_count, visit_capacity;
	/* What it said that it waits for, in the order of time. */
	struct tacho__task_wait *waits;
	uint32_t wait_count, wait_capacity;
	/* Wakes of it that have not been given to a poll yet: the newest. */
	struct tacho__wake wake;
	struct lived *lives;
	uint32_t life_count, life_capacity;
	struct tacho__hole *holes;
	uint32_t hole_count, hole_capacity;
	uint64_t cut_ns; /* there were more polls than are kept, from here on; 0: no */
	int error;
	uint64_t sums[PHASES];
};

/* Reads it; true: there is something of it. Ends with life_free in any case. */
bool life_read(struct life *l, uint32_t process, uint64_t task);
void life_free(struct life *l);

/* All stretches in the order of time; they touch and reach from from_ns to to_ns. `visit` is the poll
   that runs or that this comes before; visit_count: it comes after the last. */
typedef void (*on_stretch)(void *arg, enum phase phase, uint64_t from_ns, uint64_t to_ns,
			   uint32_t visit);
void life_walk(const struct life *l, on_stretch take, void *arg);

#endif
