/*
 * What a page draws of a trace: lanes, one for each thread, with tracks of what happened on it.
 *
 * A view subscribes to a tracker, next to all others who do, and keeps what it is told packed
 * (track.h): about eight bytes for a callback. More than its time, its kind and its task is not kept;
 * who wants to know all about one thing reads that stretch of the trace again. Numbers over time are
 * curves (curve.h).
 *
 * No OS calls, as src/model.
 */
#ifndef TACHO_VIEW_VIEW_H
#define TACHO_VIEW_VIEW_H

#include <stdint.h>

#include "explain/ledger.h"
#include "model/model.h"
#include "model/table.h"
#include "view/curve.h"
#include "view/track.h"

enum tacho__track_type {
	TACHO__TRACK_POLLS = 1,	  /* callbacks, polls, turns; what: kind, 0 of a turn. Row: depth */
	TACHO__TRACK_CALLS = 2,	  /* blocking calls; what: name */
	TACHO__TRACK_LOCKS = 3,	  /* waits for locks; what: place */
	TACHO__TRACK_SIGNALS = 4, /* the same for conditions and semaphores */
	TACHO__TRACK_RUNNABLE = 5, /* off the CPU though it could run */
	TACHO__TRACK_OFF = 6,	   /* off the CPU */
	TACHO__TRACK_LATE = 7,	   /* the end of a wait in which it was runnable and did not run */
	TACHO__TRACK_WORK = 8,	   /* of a pool; what: kind */
	TACHO__TRACK_SPANS = 9,	   /* of the program; what: name. As many rows as overlap */
	TACHO__TRACK_SAMPLES = 10, /* of no length */
	TACHO__TRACK_HOLES = 11,   /* records are missing */
	TACHO__TRACK_COUNTERS =
		12,		 /* curve; name: its own. Row 1: a queue's depth, name: the loop */
	TACHO__TRACK_PARKS = 13, /* waits of a loop for work */
	TACHO__TRACK_WAITING = 14, /* curve: how many things wait for the thread */
	TACHO__TRACK_LAG = 15,	   /* curve: ns from wake or due to begin */
	TACHO__TRACK_TASKS = 16,   /* from spawn to end; what: kind. As many rows as overlap */
	TACHO__TRACK_HELD = 17, /* a lock while others waited for it, until it was released; what:
				       place of that, task: thread. A row for each lock, name: its number */
	TACHO__TRACK_STOPPED = 18, /* nothing of the process ran: somebody stopped it */
	TACHO__TRACK_BUSY = 19,	   /* curve, made of the parks: share of the time in turns */
	TACHO__TRACK_TYPES
};

#define TACHO__VIEW_ROWS 32u
#define TACHO__VIEW_LOCKS 64u
#define TACHO__VIEW_COUNTERS 256u

struct tacho__row {
	enum tacho__track_type type;
	uint32_t row;
	uint32_t name; /* counters have a row for each; else 0 */
	struct tacho__track track;
	struct tacho__curve *curve; /* NULL: it is things */
};

/* A thread, or what belongs to all of a process (thread 0): spans that are on no thread, counters. */
struct tacho__lane {
	struct tacho__entry entry; /* key: process << 32 | thread */
	uint32_t process, thread;
	uint32_t loop; /* that it ran last; 0 */
	struct tacho__row *rows;
	uint32_t row_count, row_capacity;
	uint32_t queue, own; /* things that wait, as was told last */
	uint8_t has_parks;
};

struct tacho__view {
	struct tacho__table lanes;
	struct tacho__table tasks; /* number in the view: index + 1 */
	struct tacho__table locks; /* the same; key: lock, process */
	const struct tacho_reader *reader;
	uint64_t first_ns, last_ns;
	uint64_t things;
	uint64_t dropped; /* that overlap more than there are rows, or found no lane */
	uint64_t crowded; /* tasks that overlap more than there are rows */
	/* Beyond the budget only things of `thin_ns` and more are kept; of others how many there were. */
	size_t bytes, budget;
	uint64_t thin_ns, thinned;
	int error;
};

/* A number that was used again stands for all tasks that had it. */
struct tacho__view_task {
	struct tacho__entry entry; /* key: task, process */
	uint32_t kind, place;	   /* place: of its spawn; 0 */
	uint64_t spawn_ns, end_ns; /* 0: not seen */
	uint64_t polls, busy_ns, waited_ns, wakes;
};

/* Of what the reader has. It stays the caller's. */
void tacho__view_init(struct tacho__view *v, struct tacho_reader *reader);
void tacho__view_free(struct tacho__view *v);
struct tacho__facts tacho__view_facts(struct tacho__view *v);
struct tacho__waits tacho__view_waits(struct tacho__view *v);
/* All has been read: counters keep their last value until the end of the window. */
void tacho__view_end(struct tacho__view *v);
/* The task that a number stands for; 0: none. */
uint64_t tacho__view_task(const struct tacho__view *v, uint32_t number);
/* The lock that the name of a row stands for. */
uint64_t tacho__view_lock(const struct tacho__view *v, uint32_t number);
/* NULL: there is no such row. */
const struct tacho__row *tacho__view_row(const struct tacho__view *v, uint32_t lane, uint32_t row);

#endif
