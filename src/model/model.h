/*
 * The model: from events to facts.
 *
 * A tracker takes the events of one reader in the order of time and hands out facts: a poll with
 * its begin, its end and what it spent its time on; a wake with the poll that it led to; a wait
 * for a lock with whoever released it. A fact is handed out when nothing can be added to it any
 * more, so facts come roughly in the order of their ends. What is still open at the end of
 * the trace is handed out then, marked as cut.
 *
 * Several may subscribe to one tracker, each to the facts that it wants: every event is decoded
 * and tracked once.
 *
 * Nothing else is kept: memory depends on what is open at one time (threads, tasks, locks, work,
 * spans), not on the length of the trace, and each of these has a bound; what was beyond it is
 * counted. Whoever needs an order, a sum or a second look builds that from facts (summary.h), or
 * reads the stretch of time again.
 *
 * CUT. An end that lies outside of what was recorded is not known. Such a fact has the time of
 * the edge in its place and a flag; its length is a lower bound, and never counts as long.
 *
 * Whatever the events are, no fact ends before it begins: times may be subtracted.
 *
 * A turn of a loop whose callbacks are not seen (level 1) is also handed out as a poll, of kind 0:
 * the code between two waits is all that is known of it.
 *
 * No OS calls, no threads, no globals: these files run in the page as well.
 */
#ifndef TACHO_MODEL_MODEL_H
#define TACHO_MODEL_MODEL_H

#include <stdint.h>

#include "tacho_read.h"

struct tacho__tracker;

enum tacho__cut {
	TACHO__CUT_BEGIN = 1, /* it began before what was recorded, nobody knows when */
	TACHO__CUT_END = 2,   /* it was still going on where the records end */
	TACHO__CUT_HOLE = 4,  /* both ends are known, but records in between are missing */
};

/* Where something happened. */
struct tacho__at {
	uint32_t process, thread;
	uint32_t loop;	  /* definition; 0: on no loop */
	uint32_t kind;	  /* of the innermost poll that was running; 0: none */
	uint64_t task;	  /* of that poll */
	uint64_t poll_ns; /* when that poll began; 0: none was running */
};

/* What the time of a poll or a turn went to, as far as it was seen. Parts may overlap. */
struct tacho__spent {
	uint64_t lock_ns, call_ns; /* waiting for locks, in blocking calls */
	uint64_t sample_ns;	   /* CPU time that samples stand for */
	uint64_t off_cpu_ns;	   /* switched out, where switches were recorded */
	uint64_t preempted_ns;	   /* of these: runnable */
	uint64_t delay_ns;	   /* runnable but not running, by the kernel's count; if sched */
	uint32_t involuntary, minor_faults, major_faults; /* if sched */
	uint32_t sched;					  /* 1: the kernel was asked */
	uint32_t calls, locks, samples;
};

/* Without what the kernel was asked for: that stays with the poll that it was asked for. */
static inline void tacho__spent_add(struct tacho__spent *to, const struct tacho__spent *from)
{
	/* Most polls just run. */
	if (!(from->locks | from->calls | from->samples | from->off_cpu_ns))
		return;
	to->lock_ns += from->lock_ns;
	to->call_ns += from->call_ns;
	to->sample_ns += from->sample_ns;
	to->off_cpu_ns += from->off_cpu_ns;
	to->preempted_ns += from->preempted_ns;
	to->calls += from->calls;
	to->locks += from->locks;
	to->samples += from->samples;
}

struct tacho__poll {
	struct tacho__at at;	    /* kind, task and poll_ns are those of the poll around it */
	uint32_t kind;		    /* 0: a turn of a loop whose callbacks are not seen */
	uint8_t cut, result, depth; /* depth: polls around it */
	uint8_t first;		    /* 1: first poll of its task */
	uint64_t task;
	uint64_t begin_ns, end_ns;
	uint64_t inner_ns; /* of polls inside of it */
	uint64_t turn_ns;  /* begin of the turn: what a descriptor's readiness is known from; 0 */
	uint64_t wake_ns;  /* of the wake that led to it; 0: none was seen */
	uint32_t waker;	   /* thread, when wake_ns */
	uint32_t wakes;	   /* since the poll before */
	/* Its timer was so late; 0 also when it is no timer's. Of kind 0: the wait before it
	   outlasted its time-out by so much. */
	uint64_t late_ns;
	struct tacho__spent spent;
};

struct tacho__turn {
	uint32_t process, thread, loop;
	uint32_t ready; /* as the wait before it said */
	uint8_t cut;
	uint64_t begin_ns, end_ns; /* from the end of one wait to the beginning of the next */
	uint64_t parked_ns;	   /* how long that wait before it was; 0 also when not known */
	uint64_t delay_ns;	   /* of that wait: runnable but not running, where that was long */
	uint32_t polls;
	uint64_t polls_ns; /* of outermost polls */
};

struct tacho__wake {
	struct tacho__at at; /* of the waker */
	uint64_t task;
	uint64_t ns;
	uint64_t begin_ns;     /* of the poll that it led to; 0: none in the trace */
	uint32_t thread, kind; /* of that poll */
	uint32_t again;	       /* wakes of the same task that came before that poll, too */
	uint32_t stack;	       /* of the waker; 0: not told */
	uint8_t self;	       /* 1: by the task's own poll */
	uint8_t for_ready; /* 1: by a loop, outside of polls, whose wait had reported something */
	uint8_t lost;	   /* 1: the records where its poll would be are missing */
};

struct tacho__lock {
	struct tacho__at at; /* of the waiter */
	uint64_t lock;
	uint64_t begin_ns, end_ns;
	uint8_t cut, got;
	uint8_t is_signal;  /* a condition variable or semaphore, not a lock */
	uint32_t place;	    /* definition of a place or stack where it waits; 0 */
	uint32_t stack;	    /* its stack, when long; 0 */
	uint32_t owner;	    /* of one that is cut: thread id of who had it when the wait began; 0 */
	uint8_t for_signal; /* of one that is cut: it is known to be no lock */
	/* Who released it last before the waiter got it; release_ns 0: not seen. */
	uint64_t release_ns;
	struct tacho__at releaser;
	uint32_t release_place;
};

struct tacho__call {
	struct tacho__at at;
	uint64_t begin_ns, end_ns;
	uint32_t name, stack, path; /* definitions; 0: none */
	int error;		    /* errno, 0 none */
	uint32_t fd_kind;
	int64_t fd;	 /* -1 none */
	uint8_t cut;	 /* it has not returned */
	uint8_t untimed; /* of such: it may have begun later than begin_ns */
	uint64_t code;	 /* of such: where it was called; 0 */
};

struct tacho__work {
	uint64_t work;
	uint32_t process, kind;
	uint32_t submitter, worker; /* threads; 0: not seen */
	uint32_t submit_kind;	    /* poll that submitted it */
	/* 0: not seen. An end without a begin is when its callback ran on the loop. */
	uint64_t submit_ns, begin_ns, end_ns;
	/* Where its begin is not seen: it was not done before this, as the loop had looked; 0: it
	   has not. What came between this and end_ns may be the loop's doing. */
	uint64_t done_ns;
	uint32_t waiting; /* others that waited for a thread of the pool when it was submitted */
	uint32_t ahead;	  /* the same with those that a thread had begun */
};

struct tacho__span {
	struct tacho__at at; /* where it began */
	uint32_t name;
	uint8_t cut, async;
	uint64_t begin_ns, end_ns;
	uint64_t id, parent;		/* async: as the program numbers them */
	uint64_t trace_high, trace_low; /* trace id; 0, 0: none */
};

struct tacho__sample {
	struct tacho__at at;
	uint64_t ns, cpu_ns;
	uint32_t stack;	 /* definition; 0: frames */
	uint32_t kernel; /* how many of the frames are the kernel's, first */
	uint32_t count;
	uint8_t perf; /* 1: from outside, with kernel frames; where a thread has these, those of
			 its own timer say the same again */
	const uint64_t *frames; /* innermost first; until the callback returns */
};

struct tacho__switch {
	struct tacho__at at;
	uint64_t begin_ns, end_ns; /* off the CPU */
	uint8_t cut, runnable;
	uint8_t parked; /* 1: while it waited for events; 0 also when cut */
	uint32_t cpu;	/* that it went on with */
};

/*
 * How the kernel treated the thread in [begin_ns, end_ns], handed out when its record is read. The
 * kernel keeps totals: begin_ns is when they were read before, which may be before the subject began.
 * runnable_ns is without what other such facts say of intervals inside of this one.
 */
struct tacho__sched {
	struct tacho__at at;
	uint8_t subject; /* enum tacho_sched_subject: what ended right before end_ns */
	uint64_t begin_ns, end_ns;
	uint64_t runnable_ns; /* but not running */
	uint32_t involuntary, minor_faults, major_faults;
};

/* A task when it ends, or at the end of the trace. */
struct tacho__task {
	uint32_t process, kind;
	uint64_t task, parent;
	uint32_t place; /* of its spawn */
	uint64_t spawn_ns, first_ns, last_ns,
		end_ns; /* 0: not seen; polls: first begin, last end */
	uint64_t polls, busy_ns, wakes, self_wakes;
	uint64_t woken_ns;		 /* a wake that has had no poll yet; 0 none */
	uint64_t waited_ns;		 /* sum of wake to poll */
	uint32_t waits_for, waits_stack; /* what it said it waits for (text, stack); 0 */
	uint64_t no_waker_ns;	 /* since then nobody can wake it: nobody has a waker of it; 0 */
	uint32_t no_waker_stack; /* of who dropped the last one; 0 not known */
	uint8_t running, spawned;
	uint8_t lost; /* 1: records are missing since it was seen last: it may have run, or ended */
};

/* A task said what it waits for, and was woken; or has not been when the trace ends. */
/* The task that let another go on. Where they wait for the same thing and hand it on to each other, as
   a lock, it is who kept them all waiting, if that was for most of the time. */
struct tacho__holder {
	uint64_t task;	      /* 0: none */
	uint32_t kind, stack; /* stack: where it woke the first of them; 0 not known */
	/* The longest that it waited itself meanwhile, if it did: for what, where. */
	uint32_t waits_for, waits_stack;
	uint64_t waited_ns;
	uint64_t late_ns; /* meanwhile it was woken and did not run, for so long without a break */
};

struct tacho__task_wait {
	uint32_t process, kind;
	uint64_t task;
	uint32_t what, stack; /* as it said (text, stack) */
	uint64_t begin_ns, end_ns;
	uint8_t open;	 /* nobody has woken it: end_ns is the end of the trace */
	uint8_t by_loop; /* the wake came from a loop, outside of polls: for a descriptor or timer */
	uint8_t again;	 /* it had waited for that before, and was woken */
	uint32_t by_kind; /* of the poll that woke it, see tasks.c; 0: none, or not seen */
	uint8_t handed;	  /* who woke it had itself waited for that until then, mostly */
	struct tacho__holder by;
};

struct tacho__counter {
	struct tacho__at at;
	uint64_t ns;
	uint32_t name;	/* definition, COUNTER or GAUGE; queue depth: of the loop */
	uint8_t depth;	/* 1: a queue's depth */
	uint64_t value; /* by its definition */
};

struct tacho__ready {
	struct tacho__at at;
	uint64_t ns;
	uint32_t events;
	uint64_t what; /* as in TACHO_EV_READY */
};

/* Where records are missing inside a stream. */
struct tacho__hole {
	uint32_t process, thread;
	uint64_t from_ns, to_ns, missing, dropped;
};

/* What a thread was in where its process ends: no part of it need be known. */
struct tacho__left {
	struct tacho__at
		at;	  /* with the poll that it is in, or the turn, if callbacks are not seen */
	uint64_t end_ns;  /* of the process */
	uint8_t parked;	  /* it waits for events of its loop */
	uint64_t park_ns; /* since then; 0: not known */
	uint32_t work;	  /* kind of the work of a pool that it does; 0 */
	uint64_t work_ns; /* when that began */
	const struct tacho__call *call; /* that has not returned; NULL: none is known */
	const struct tacho__lock *lock; /* that it waits for; NULL */
};

/*
 * What happens on a thread, when it happens and so in the order of time: for those who keep an
 * account of all that goes on at once. Facts above say the same with more, but later.
 */
enum tacho__step_type {
	TACHO__STEP_PARKS = 1, /* `value` 1: the turn that ends was all that is seen of it */
	TACHO__STEP_UNPARKS,   /* value: number ready. Again without a park: the number is new */
	TACHO__STEP_LOOP,      /* it runs `loop` from now on */
	TACHO__STEP_BEGINS, /* a poll of `kind`; `from`: loop of the task's poll before, 0 none */
	TACHO__STEP_ENDS,   /* the innermost poll */
	TACHO__STEP_WAITS,  /* for a lock at `place`; value 1: conditions are waited for there */
	TACHO__STEP_WAITED, /* value 1: it was a condition or semaphore */
	TACHO__STEP_WOKEN,  /* it woke a task that was suspended, of loop `from` (0: not known) */
	TACHO__STEP_SERVED, /* one that was woken so at `value` runs, or nobody knows any more */
	TACHO__STEP_SUBMITTED, /* work for a pool; value 1: what its threads do of it is seen */
	TACHO__STEP_TAKEN,     /* such work waits no longer */
	TACHO__STEP_WORKS,     /* the thread begins work of a pool */
	TACHO__STEP_WORKED,    /* it is done */
	TACHO__STEP_QUEUED, /* at `lock`, where threads wait for work: value, as LOCK_QUEUE has it */
	TACHO__STEP_DELAYED,	  /* value: ns runnable in the poll or turn that ended last */
	TACHO__STEP_WAIT_DELAYED, /* value: the same, in the wait that has just ended, or before */
	TACHO__STEP_TURN_DELAYED, /* value: the same, in what a turn did outside of its polls */
	TACHO__STEP_CALL_DELAYED, /* value: the same, in the call that has just returned */
	TACHO__STEP_LATE,	  /* value: ns, as in struct tacho__poll */
	TACHO__STEP_CUT,     /* what is open ends here: records are missing, or there are no more */
	TACHO__STEP_RESUMES, /* records go on: PARKS and BEGINS before it say what was open */
};

struct tacho__step {
	uint32_t process, thread;
	uint32_t loop, level; /* that it runs */
	uint32_t index;	      /* of the thread among all of the tracker */
	enum tacho__step_type type;
	uint32_t kind, from, place;
	uint32_t faults; /* DELAYED: major ones */
	uint64_t ns, value;
	uint64_t lock; /* WAITS, WAITED, QUEUED */
};

/* Whether threads of this loop have a client each: what one does keeps no other waiting. NULL: no. */
int tacho__serves_one(const struct tacho_definition *loop);

/* A subscriber: what it wants; NULL: not. */
struct tacho__facts {
	void *arg;
	int *error; /* where it notes a negative errno when it cannot go on; NULL: it always can */
	void (*poll)(void *arg, const struct tacho__poll *poll);
	void (*turn)(void *arg, const struct tacho__turn *turn);
	void (*wake)(void *arg, const struct tacho__wake *wake);
	void (*lock)(void *arg, const struct tacho__lock *lock);
	void (*call)(void *arg, const struct tacho__call *call);
	void (*work)(void *arg, const struct tacho__work *work);
	void (*span)(void *arg, const struct tacho__span *span);
	void (*sample)(void *arg, const struct tacho__sample *sample);
	void (*off_cpu)(void *arg, const struct tacho__switch *off);
	void (*sched)(void *arg, const struct tacho__sched *sched);
	void (*task)(void *arg, const struct tacho__task *task);
	void (*task_wait)(void *arg, const struct tacho__task_wait *wait);
	void (*counter)(void *arg, const struct tacho__counter *counter);
	void (*ready)(void *arg, const struct tacho__ready *ready);
	void (*hole)(void *arg, const struct tacho__hole *hole);
	/* At the end, of each thread that recorded something and has not ended. */
	void (*left)(void *arg, const struct tacho__left *left);
	void (*step)(void *arg, const struct tacho__step *step);
	/* Logs and custom events, as they are. */
	void (*other)(void *arg, const struct tacho__at *at, const struct tacho_event *event);
};

/* What did not fit. */
struct tacho__tracker_limits {
	uint64_t tasks, locks, works, spans, threads, depth;
};

/* NULL without memory. A fact is handed to the subscribers in their order; they and the reader stay
   the caller's and must live as long. */
struct tacho__tracker *tacho__tracker_new(struct tacho_reader *reader,
					  const struct tacho__facts *subscribers, uint32_t count);
/*
 * Once: the events of the reader from where it is. What is open at the end is cut where its process
 * ended, if the trace says so; else where the window ends. `stop`, if not NULL, is asked now and then with the time
 * reached; not 0 ends it. 0 or a negative errno, that of a subscriber among them.
 */
int tacho__tracker_run(struct tacho__tracker *t, int (*stop)(void *arg, uint64_t ns),
		       void *stop_arg);
/* The same in steps of at most `most` events: 1: there may be more; *ns is the time reached. */
int tacho__tracker_some(struct tacho__tracker *t, uint32_t most, uint64_t *ns);
/* Then: where the window of the process ends, which is not before its last event. */
uint64_t tacho__tracker_end(const struct tacho__tracker *t, uint32_t process);
/* How many events of the process there were. */
uint64_t tacho__tracker_events(const struct tacho__tracker *t, uint32_t process);
struct tacho__tracker_limits tacho__tracker_missed(const struct tacho__tracker *t);
void tacho__tracker_free(struct tacho__tracker *t);

/* All of the above in one, for a single subscriber. */
int tacho__model_run(struct tacho_reader *reader, const struct tacho__facts *facts,
		     int (*stop)(void *arg, uint64_t ns), void *stop_arg,
		     struct tacho__tracker_limits *missed);

#endif
