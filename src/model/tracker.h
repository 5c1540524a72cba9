/*
 * What a tracker remembers while it goes through the events.
 *
 *   tracker.c   threads, turns, holes; which event goes where; the end
 *   polls.c     polls and spans
 *   tasks.c     tasks and wakes
 *   waits.c     locks, calls, switches
 *   pool.c      work of pools
 *   moments.c   samples, counters, readiness, all others
 */
#ifndef TACHO_MODEL_TRACKER_H
#define TACHO_MODEL_TRACKER_H

#include "model/model.h"
#include "model/table.h"

#define TACHO__DEPTH 16u /* of polls and spans of one thread */
#define TACHO__THREADS_MODELLED (1u << 15)
#define TACHO__TASKS_MODELLED (1u << 20)
#define TACHO__LOCKS_MODELLED (1u << 17)
#define TACHO__WORKS_MODELLED (1u << 18)
#define TACHO__SPANS_MODELLED (1u << 18)
#define TACHO__RECENT 16u
#define TACHO__RECENT_TASKS_BITS 11u
#define TACHO__LEARNED 256u /* places and kinds that something is known of */

enum tacho__frame_type {
	TACHO__FRAME_POLL,
	TACHO__FRAME_SPAN,
	TACHO__FRAME_UNKNOWN, /* where records begin: one of those that were not listed */
};

/* A poll or span that is open. */
struct tacho__frame {
	enum tacho__frame_type type;
	uint32_t task; /* of a poll: index of its task + 1, where that is tracked; 0 */
	union {
		struct tacho__poll poll;
		struct tacho__span span;
	} u;
};

struct tacho__thread {
	struct tacho__entry entry; /* key: process << 32 | thread, stream */
	uint32_t process, number;
	uint32_t loop, level; /* after these two, as in struct tacho__step */
	struct tacho__tracked_process *of;
	uint8_t parked, in_turn, turn_cut, has_ended;
	uint8_t waiting; /* for a lock */
	uint8_t calling; /* `call` has not returned */
	uint8_t lock_done, off_cpu, off_runnable;
	uint8_t called; /* the last that it recorded is a call; began at called_ns */
	uint8_t perf;	/* has samples from perf */
	uint8_t known;
	/* Of its own records: all that is open began before, or then. */
	uint64_t last_ns;
	uint64_t kernel_ns; /* of what the kernel says of it */
	uint32_t pauses;    /* of its process that it knows of */
	uint64_t park_ns;   /* 0: not known */
	struct tacho__turn turn;
	uint64_t turn_before_ns; /* begin of the one before; 0 */
	struct tacho__spent turn_spent;
	uint64_t late_ns; /* of the next poll's timer */
	uint64_t off_ns, called_ns;
	uint64_t work; /* of a pool that it began last, 0 */
	uint32_t depth;
	struct tacho__poll ended; /* waits for its SCHED, if has_ended */
	struct tacho__call call;
	struct tacho__lock lock; /* being waited for, or waits for its STACK, if lock_done */
	struct tacho__frame open[TACHO__DEPTH];
};

#define TACHO__PAST_WAITS 3u

struct tacho__tracked_task {
	struct tacho__entry entry; /* key: process, task */
	struct tacho__task task;
	struct tacho__wake wake;      /* that has had no poll yet, if task.woken_ns */
	uint64_t longest_ns;	      /* poll */
	uint32_t loop;		      /* of its last poll; 0: none yet */
	uint32_t wake_loop;	      /* whose wake that is taken to be; 0: not known */
	struct tacho__task_wait wait; /* that it is in, if begin_ns; end_ns: woken, 0: not yet */
	uint64_t waited_for;	      /* what it was woken from: a bit for each remainder of 64 */
	uint32_t by_kind;	      /* as in wait, of the last wake */
	/* The waits before, that it was woken from. */
	struct tacho__past_wait {
		uint64_t begin_ns, end_ns;
		uint32_t what, stack;
	} past[TACHO__PAST_WAITS];
	uint32_t past_count;		   /* ever */
	uint64_t late_from_ns, late_to_ns; /* from its last wake to its poll */
};

struct tacho__tracked_lock {
	struct tacho__entry entry; /* key: process, lock */
	uint64_t release_ns;
	struct tacho__at releaser;
	uint32_t place;
};

struct tacho__tracked_work {
	struct tacho__entry entry; /* key: process, work */
	struct tacho__work work;
	uint8_t queued, running; /* it counts as waiting, as begun */
	uint8_t told;		 /* as waiting: its begin will be seen */
};

struct tacho__tracked_span {
	struct tacho__entry entry; /* key: process, id */
	struct tacho__span span;
};

struct tacho__tracked_process {
	uint64_t events;
	uint64_t last_ns; /* of its events; at the end, where its window ends */
	uint64_t hole_ns; /* a stream of it went on here after records that are missing; 0 */
	uint32_t pauses;  /* of the recorder */
	uint32_t queued;  /* work that was submitted and has not begun */
	uint32_t running; /* work that has begun and not ended */
	uint8_t living;	  /* 1: which of its threads ran at the end is known */
};

struct tacho__tracker {
	struct tacho_reader *reader;
	const struct tacho__facts *subscribers, *end_subscriber; /* the second: behind the last */
	struct tacho__table threads, tasks, locks, works, spans;
	/* Looked up lately, by their numbers. One that is new may move all of them. */
	struct tacho__thread *recent[TACHO__RECENT];
	/* Where conditions are waited for, and work whose begin is seen: process << 32 | definition.
	   One may drive out another. */
	uint64_t conditions[TACHO__LEARNED], begun_kinds[TACHO__LEARNED];
	const struct tacho__facts *steppers; /* the first that wants steps; NULL: nobody does */
	/* Tasks that were looked up lately, by a part of their hash: index + 1; 0 none. */
	uint32_t recent_tasks[1u << TACHO__RECENT_TASKS_BITS];
	uint64_t depth_missed;
	struct tacho__tracked_process *processes; /* one more than there are, for what is none */
	uint32_t process_count;
	int error; /* -ENOMEM */
};

/* A fact: to all that want it. */
#define TACHO__GIVE(t, what, ...)                                             \
	do {                                                                  \
		const struct tacho__facts *tacho__to = (t)->subscribers;      \
		const struct tacho__facts *tacho__end = (t)->end_subscriber;  \
                                                                              \
		for (; tacho__to < tacho__end; tacho__to++)                   \
			if (tacho__to->what)                                  \
				tacho__to->what(tacho__to->arg, __VA_ARGS__); \
	} while (0)

/* The place of a definition among those that something was learned of. */
static inline uint64_t *tacho__learned(uint64_t *list, uint32_t id)
{
	return &list[id % TACHO__LEARNED];
}

/* A step of a thread, to all that want it. Signal handlers take no part in what their thread
   does. */
#define TACHO__STEP(t, s, ...)                                                            \
	do {                                                                              \
		const struct tacho__facts *tacho__to = (t)->steppers;                     \
		const struct tacho__facts *tacho__end = (t)->end_subscriber;              \
                                                                                          \
		if (tacho__to && !(s)->entry.key[1]) {                                    \
			const struct tacho__step tacho__one = {.process = (s)->process,   \
							       .thread = (s)->number,     \
							       .loop = (s)->loop,         \
							       .level = (s)->level,       \
							       .index = (s)->entry.index, \
							       __VA_ARGS__};              \
                                                                                          \
			for (; tacho__to < tacho__end; tacho__to++)                       \
				if (tacho__to->step)                                      \
					tacho__to->step(tacho__to->arg, &tacho__one);     \
		}                                                                         \
	} while (0)

static inline uint64_t tacho__later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline struct tacho__tracked_process *tacho__process_of(struct tacho__tracker *t,
							       uint32_t process)
{
	return &t->processes[process < t->process_count ? process : t->process_count];
}

/* An event of a thread, with as many payload words as its type must have. */
typedef void tacho__handler(struct tacho__tracker *t, struct tacho__thread *s,
			    const struct tacho_event *e);

/* polls.c */
void tacho__at_of(const struct tacho__thread *s, struct tacho__at *at);
/* What time inside the thread counts for: the innermost poll, else the turn; NULL: neither. */
struct tacho__spent *tacho__spent_of(struct tacho__thread *s);
/* The poll that ended last is given when it is sure that no SCHED follows. */
void tacho__give_ended(struct tacho__tracker *t, struct tacho__thread *s);
void tacho__poll_begins(struct tacho__tracker *t, struct tacho__thread *s, uint32_t kind,
			uint64_t task, uint64_t ns, uint8_t cut);
/* The innermost poll ends, and with it the spans that were left open in it. */
void tacho__poll_ends(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns,
		      uint8_t result);
void tacho__span_begins(struct tacho__tracker *t, struct tacho__thread *s, uint32_t name,
			uint64_t ns, uint8_t cut);
void tacho__span_ends(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns);
tacho__handler tacho__async_begins, tacho__async_ends, tacho__trace_id;
/* All async spans that are open end with their processes, as cut. */
void tacho__async_cut(struct tacho__tracker *t);
/* All that is open on the thread ends at `ns`, as cut. */
void tacho__open_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns);
/* What was open where records go on, after all of before was cut. */
void tacho__open_again(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_resume_info *r, uint64_t ns);
/* 1: the same is open before and after a hole; now it is marked. */
int tacho__open_still(struct tacho__thread *s, const struct tacho_resume_info *r);

/* tasks.c */
void tacho__task_begins(struct tacho__tracker *t, struct tacho__thread *s, struct tacho__frame *f);
void tacho__task_ended_poll(struct tacho__tracker *t, const struct tacho__thread *s,
			    const struct tacho__frame *f);
tacho__handler tacho__task_event, tacho__task_stack;
void tacho__tasks_end(struct tacho__tracker *t);

/* waits.c */
tacho__handler tacho__lock_waits, tacho__lock_waited, tacho__lock_released, tacho__lock_stack;
tacho__handler tacho__called, tacho__calls, tacho__lock_owned, tacho__lock_queued, tacho__switched;
/* The wait that ended last is given when it is sure that no STACK follows. */
void tacho__lock_flush(struct tacho__tracker *t, struct tacho__thread *s);
void tacho__waits_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns);
/* What the kernel says of the thread has a hole, or the trace ends. */
void tacho__off_cpu_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns);

/* pool.c */
tacho__handler tacho__work_event;
/* A poll of `task` begins: was that work of a pool of which nothing else is seen, it is done. */
void tacho__work_polled(struct tacho__tracker *t, const struct tacho__thread *s, uint64_t task,
			uint64_t ns);
/* The work that the thread does; NULL: none is known. */
const struct tacho__work *tacho__work_of(const struct tacho__tracker *t,
					 const struct tacho__thread *s);
void tacho__works_end(struct tacho__tracker *t);

/* moments.c */
tacho__handler tacho__sampled, tacho__counter_set, tacho__got_ready, tacho__other;

#endif
