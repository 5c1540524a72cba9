/*
 * The ledger: who had the time of each thread, and what waited meanwhile.
 *
 * TIME. The time of a thread, from the first that is known of it to the last, is divided without
 * rest: each stretch has one owner. A wait of a loop is idle, less what was late in it. The rest is
 * turns: calls, locks and what the kernel took away are cut out of them, and what is left is code,
 * by callback, and within a callback by function, in the proportion of its samples. The owners of a
 * thread add up to its span to the nanosecond.
 *
 * WAITING. Things wait in a queue of work: tasks that were woken, in that of their loop; what a
 * wait of the kernel reported, in that of the thread that got it; work, in that of its pool: of
 * libuv, or at the condition at which the program's own threads wait for it. A queue belongs to the
 * threads that serve it: those that wait on the same epoll set or run the same loop, and loops
 * between which tasks go to and fro. While m things wait, each ns costs m. Threads that serve the
 * queue and are busy pay for it in equal parts, and what has their time then has the cost. While
 * one of them is parked, or none is busy, it is nobody's doing but that of those who come late: the
 * next one to come back has it as "late".
 *
 * ESTIMATES. When something became ready while its loop was busy is not seen. What a wait returns
 * at once became ready during the turn before: half of that turn, less the part in which another
 * thread was parked at the same queue, is counted for each; of a thread that receives from one client,
 * where that does not wait for each answer (ledger_arrivals.c). Where callbacks are not seen, what a
 * wait reported is served evenly over the turn. Both are also summed up for themselves. All other
 * waiting is exact: wake to poll, due to begin, submit to begin, and the place of a callback among
 * those of its turn.
 *
 * STOPS. A stop of the whole process, told from outside, takes its time away from all that its
 * threads did. What a wait returns right after it became ready while the process was stopped: half
 * of the stop is counted for each, an estimate. A stop in which nothing waited is no occurrence.
 *
 * The costs of all owners, and `unserved_ns`, add up to `waiting_ns`.
 *
 * WHAT THE KERNEL TOOK. How long a thread was runnable without running is a sum without a place in
 * time. It is taken from the call, the wait, the callback or the turn that the record is about; if
 * that has less room, from what was before.
 *
 * LOST. Time in calls and locks in the middle of work is capacity lost, whatever waited.
 *
 * One pass over the steps and facts of a tracker, in bounded memory. Of owners that find no room
 * their time is with the owner "not observed", reason TACHO__UNSEEN_ROOM.
 */
#ifndef TACHO_EXPLAIN_LEDGER_H
#define TACHO_EXPLAIN_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "model/hist.h"
#include "model/model.h"
#include "model/place.h"
#include "model/table.h"

enum tacho__owns {
	TACHO__OWNS_IDLE = 1,	     /* it waits for work */
	TACHO__OWNS_LATE = 2,	     /* it should have come back from that already */
	TACHO__OWNS_CODE = 3,	     /* it runs */
	TACHO__OWNS_CALL = 4,	     /* blocked in a call */
	TACHO__OWNS_LOCK = 5,	     /* it waits for a lock, a condition or a semaphore */
	TACHO__OWNS_DESCHEDULED = 6, /* it could run, and others do */
	TACHO__OWNS_THROTTLED = 7,   /* the same because of a CPU quota */
	TACHO__OWNS_STOPPED = 8,     /* nothing of the process runs */
	TACHO__OWNS_FAULTING = 9,    /* it waits for pages from a disk */
	TACHO__OWNS_RECORDER = 10,   /* tacho itself runs */
	TACHO__OWNS_NOT_OBSERVED = 11,
	TACHO__OWNS_COUNT
};

/* Why it is late, not observed, or stopped. */
enum tacho__owns_reason {
	TACHO__LATE_RUNNABLE = 1, /* it was woken, and others ran */
	TACHO__LATE_QUOTA = 2,	  /* the same because of a CPU quota */
	TACHO__LATE_STOPPED = 3,  /* it overslept its time-out, and lacked no CPU */
	TACHO__LATE_TIMER = 4,	  /* a timer was due */
	TACHO__LATE_WOKEN = 5,	  /* things were woken or submitted, and it had not come back yet */
	TACHO__UNSEEN_GAP = 6,	  /* recording was paused */
	TACHO__UNSEEN_LOSS = 7,	  /* records are missing */
	TACHO__UNSEEN_EDGE = 8,	  /* the thread was there before its first record */
	TACHO__UNSEEN_ROOM = 9,	  /* of owners beyond the bound */
	/* Stopped, as who watched it from outside says; without: nothing of it was seen to run. */
	TACHO__STOPPED_SIGNAL = 10,
	TACHO__STOPPED_TRACED = 11,
	TACHO__STOPPED_FROZEN = 12,
};

/*
 * Occurrences by their length: of less than 1, 10 and 50 ms, and longer ones. A turn that had several
 * things to do counts without what the others usually take.
 */
#define TACHO__SIZES 4u
struct tacho__size {
	uint64_t count, ns, waiting_ns;
	uint64_t longest_ns, longest_at_ns; /* of these: part of `ns` */
	uint64_t wall_ns; /* of the longest: from its begin to its end, whoever had the time */
	uint64_t next_ns, next_at_ns; /* the longest but one; 0: not known */
};

/* What an owner had of the time of one thread. */
struct tacho__owned {
	struct tacho__entry entry;
	enum tacho__owns owns;
	enum tacho__owns_reason reason; /* late, not observed, stopped; else 0 */
	uint32_t thread;		/* index in `threads` */
	uint32_t process;
	/* Callback, 0: the turn, outside of those that are seen; and the loop. Of all but code: those
	   of the longest. */
	uint32_t kind, loop;
	uint32_t name;	     /* call */
	uint32_t place;	     /* call, lock: stack or place of the longest; 0 */
	uint32_t holder;     /* lock: thread that released it; 0: not seen */
	uint32_t held_place; /* where it did, of the longest */
	uint32_t did;	     /* lock: what the holder did meanwhile: index in `owned` + 1; 0 */
	uint8_t is_signal;   /* lock: a condition or semaphore */
	uint8_t is_librarys; /* of such: no code of the program is in the middle of it */
	uint8_t is_open;     /* call: the longest has not returned */
	/* Descheduled, late: the longest is a sum over an iteration or wait, not one stretch of time. */
	uint8_t is_sum;
	uint64_t lock;
	uint64_t own_ns; /* descheduled, late: of its time, threads of the process had the CPUs */
	uint64_t holder_off_ns; /* lock: of its time, the kernel ran others instead of the holder */
	uint64_t handed_ns;	/* lock: that one of those who serve the same queue signalled */
	uint64_t gave_up_ns;	/* lock: of its time, until a time-out */
	/* Lock: of its time, until a thread of a pool had taken a piece of work; and that pool: index in
	   `pools` + 1, or 0. */
	uint64_t room_ns;
	uint32_t room_of;
	uint64_t code; /* call that has not returned: where it was called; 0 */
	uint64_t ns;
	uint64_t count; /* occurrences: of code, callbacks or turns */
	uint64_t longest_ns, longest_at_ns, first_ns, last_ns;
	uint64_t waiting_ns;	/* cost: what waited meanwhile */
	uint64_t estimated_ns;	/* of that */
	uint64_t sample_ns;	/* code: CPU time of its samples */
	double sample_cost;	/* code: of these, weighed with what waited */
	uint64_t work_place_ns; /* idle by now: its thread waited for work there */
	struct tacho__size size[TACHO__SIZES];
};

/* A function that samples of an owner ended in: the innermost of the program. */
#define TACHO__LEDGER_FRAMES 12u
struct tacho__function {
	struct tacho__entry entry; /* key: index of the owner, function */
	uint32_t owned;
	uint32_t samples;
	uint64_t ns;
	/* Callbacks and turns, all but the shortest, that it had most of; and its part of these. */
	struct tacho__size size[TACHO__SIZES];
	uint64_t size_cpu_ns[TACHO__SIZES];
	uint64_t longest_ns, longest_at_ns;
	double cost;
	struct tacho__place place;
	/* One of the stacks, of the line that it is in most. */
	uint32_t stack;	      /* definition; 0: frames */
	uint32_t frame_count; /* of the program, innermost first */
	uint64_t frames[TACHO__LEDGER_FRAMES];
	uint64_t at_ns;
	uint32_t line_votes;
	uint8_t is_recorder;
};

/* In callbacks and turns of 10 ms and more that one function had most of: what another had, or (both are
   the same) all of them. */
struct tacho__beside {
	struct tacho__entry entry; /* key: the two */
	uint32_t most, other;	   /* indexes in `functions` */
	uint64_t ns;
};

/*
 * Threads that wait for work at a condition of the program's own, and what others gave them while all
 * of them were busy, counted from the first time that something waited.
 */
#define TACHO__POOL_POINTS 32u
struct tacho__ledger_pool {
	uint32_t process, threads;
	uint32_t place;		 /* where work was given last; 0 */
	uint32_t given, waiting; /* as the last record has it */
	uint8_t is_told;	 /* there was one */
	uint64_t lock;
	uint64_t count;			    /* that had to wait */
	struct tacho__hist wait;	    /* of all that began, and at the end of the rest */
	uint64_t longest_ns, longest_at_ns; /* that one waited, and since when */
	uint32_t point_count;
	struct {
		uint64_t ns;
		uint32_t given; /* so many were, by then; not all points are kept */
	} points[TACHO__POOL_POINTS];
};

/* What came for a thread, after turns in which it could have been kept waiting and after all others
   (ledger_arrivals.c). */
struct tacho__arrivals {
	uint64_t kept, kept_polls; /* turns of a millisecond and more; callbacks in these */
	uint64_t found; /* that the waits after these returned at once, one after the other */
	uint64_t brief, brief_polls; /* all other turns */
	uint64_t
		soon; /* of these: the next wait was no longer than a client's who has its answer */
};

struct tacho__ledger_thread {
	uint32_t process, thread;
	uint32_t loop, level;	  /* that it waited on last; 0 */
	uint8_t is_loop, is_pool; /* neither: of no interest, unless something waited for it */
	uint32_t pool;		  /* index in `pools` + 1; 0: none, or that of libuv */
	/* Its waits for work that ended; waits of threads and tasks that it ended. */
	uint64_t handed, answers;
	uint64_t first_ns, last_ns; /* its owners add up to what is between */
	uint64_t turns, works;
	uint64_t idle_ns;
	uint32_t most_ready; /* that a wait of it reported */
	uint64_t waiting_ns; /* cost of all its owners */
	struct tacho__arrivals arrivals;
	struct tacho__owned rest; /* of those that found no room */
};

/* Whether things come for a thread while it is busy: nobody waits for its answers before. */
int tacho__arrive_by_themselves(const struct tacho__arrivals *a);

/* Who hands it something mostly waits for its answer: what it does meanwhile is a part of that wait. */
static inline int tacho__is_asked(const struct tacho__ledger_thread *t)
{
	return t->pool && !t->is_loop && 2 * t->answers > t->handed;
}

static inline int tacho__is_of_interest(const struct tacho__ledger_thread *t)
{
	return t->is_loop || t->is_pool || t->waiting_ns;
}

/* A line of the ledger: an owner, or a function of one. Sorted by thread, and by time. */
struct tacho__ledger_line {
	enum tacho__owns owns;
	uint32_t thread;   /* index */
	uint32_t owned;	   /* index in `owned` + 1; 0: the rest of the thread */
	uint32_t function; /* index in `functions` + 1; 0: none */
	uint64_t ns, count, longest_ns, waiting_ns, estimated_ns;
};

/* An owner over all threads of a process. Sorted by cost, then by time. */
struct tacho__ledger_owner {
	enum tacho__owns owns;
	uint32_t process;
	uint32_t threads; /* that it had time of */
	uint32_t line;	  /* of the most costly of these: index in `lines` */
	uint64_t ns, count, longest_ns, waiting_ns, estimated_ns;
	uint64_t lost_ns; /* capacity: in calls and locks in the middle of work */
	struct tacho__size
		size[TACHO__SIZES]; /* of its lines; a function has those of its callback */
};

/* When a process was stopped, as who watched it from outside says; whatever waited. */
struct tacho__ledger_stops {
	enum tacho__owns_reason reason; /* of the last */
	uint64_t count, ns;
	uint64_t longest_ns, longest_at_ns;
	uint64_t first_ns;	 /* begin of the first */
	uint64_t from_ns, to_ns; /* the last */
};

/*
 * Who wants to see what waits for each thread, while the ledger is made. What waits in a queue that
 * several threads serve is told of the first of them.
 */
struct tacho__waits {
	void *arg;
	/* From now on so many: in its queue; and of those that only this thread can serve. */
	void (*queue)(void *arg, uint32_t process, uint32_t thread, uint64_t ns, uint32_t waiting);
	void (*own)(void *arg, uint32_t process, uint32_t thread, uint64_t ns, uint32_t waiting);
	/* An estimate, in hindsight: more by `before` at from_ns, by `after` at to_ns, evenly. */
	void (*more)(void *arg, uint32_t process, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
		     double before, double after);
};

struct tacho__ledger_book; /* while it is made */

struct tacho__ledger {
	struct tacho__ledger_thread *threads;
	uint32_t thread_count, thread_capacity;
	struct tacho__ledger_pool *pools;
	uint32_t pool_count, pool_capacity;
	struct tacho__table owned;     /* struct tacho__owned */
	struct tacho__table functions; /* struct tacho__function */
	struct tacho__table beside;    /* struct tacho__beside */
	struct tacho__ledger_line *lines;
	uint32_t line_count, line_capacity;
	struct tacho__ledger_owner *owners;
	uint32_t owner_count;
	struct tacho__ledger_stops *stops; /* by process */
	uint64_t waiting_ns;		   /* all that was seen */
	uint64_t unserved_ns;		   /* of that: nobody was seen who could have served */
	uint64_t missed;		   /* owners and functions that found no room */
	struct tacho__ledger_book *book;
	const struct tacho_reader *reader;
};

/* NULL without memory. */
struct tacho__ledger *tacho__ledger_new(struct tacho_reader *reader);
/* To subscribe with, to one tracker, for what the reader is limited to then. */
struct tacho__facts tacho__ledger_facts(struct tacho__ledger *l);
/* Before the facts. It stays the caller's. */
void tacho__ledger_watch(struct tacho__ledger *l, const struct tacho__waits *waits);
/* After each tracker that it was subscribed to. 0 or a negative errno. */
int tacho__ledger_turn_page(struct tacho__ledger *l);
/* After the last: lines and owners. 0 or a negative errno. */
int tacho__ledger_close(struct tacho__ledger *l);
/* All of it: each process in its own window. */
struct tacho__ledger *tacho__ledger_make(struct tacho_reader *reader, int *error);
void tacho__ledger_free(struct tacho__ledger *l);

const char *tacho__owns_name(enum tacho__owns owns);
const char *tacho__ledger_reason(enum tacho__owns_reason reason);
/* Behind a line: an entry of `owned`, or the rest of its thread. */
const struct tacho__owned *tacho__ledger_owned(const struct tacho__ledger *l,
					       const struct tacho__ledger_line *line);
/* Its key in words: "on_request", "clock_nanosleep", "0x7f10, held by worker (12) in code flush"; "": none. */
const char *tacho__ledger_key(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			      char *out, size_t size);
/* Where it is in the code: the innermost of the program. 0: not known. */
int tacho__ledger_place(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			struct tacho__place *place);

#endif
