/*
 * What a trace comes to: its facts (model.h) summed up by kind, loop, lock, call, pool, task and
 * so on. Stats print it, rules look at it, two of them are compared by diff.
 *
 * Everything that is summed up remembers its worst cases whole, so that whoever names a cause
 * can point to a time and a place.
 *
 * Bounds: so many kinds, locks and so on are told apart; what is beyond is counted in the
 * `missed` of its table.
 */
#ifndef TACHO_MODEL_SUMMARY_H
#define TACHO_MODEL_SUMMARY_H

#include "model/hist.h"
#include "model/model.h"
#include "model/rhythm.h"
#include "model/table.h"

#define TACHO__WORST 8u	   /* cases remembered of each */
#define TACHO__SERIES 240u /* steps of time that the window is cut into */

/* Something over time: a step is (last - first) / TACHO__SERIES long. */
struct tacho__series {
	uint64_t at[TACHO__SERIES];
};

/* The largest so far, largest first. */
struct tacho__worst_polls {
	struct tacho__poll at[TACHO__WORST];
	uint32_t count;
};
struct tacho__worst_locks {
	struct tacho__lock at[TACHO__WORST];
	uint32_t count;
};
struct tacho__worst_calls {
	struct tacho__call at[TACHO__WORST];
	uint32_t count;
};
struct tacho__worst_wakes {
	struct tacho__wake at[TACHO__WORST];
	uint32_t count;
};
struct tacho__worst_works {
	struct tacho__work at[TACHO__WORST];
	uint32_t count;
};
struct tacho__worst_spans {
	struct tacho__span at[TACHO__WORST];
	uint32_t count;
};

/* Who wakes tasks of one kind, but for others of that kind. */
struct tacho__wakers {
	uint64_t count;
	uint64_t by_loop;	 /* of these: loops, outside of polls, for a descriptor or timer */
	uint64_t for_ready;	 /* of these: their wait had reported something */
	struct tacho__wake last; /* ns 0: none was seen */
};

/* Polls of one kind; kind 0: turns of loops whose callbacks are not seen, one for each loop. */
struct tacho__kind_sum {
	struct tacho__entry entry; /* key: process << 32 | kind, loop if kind is 0 */
	uint32_t process, kind, loop;
	uint64_t cut; /* polls of which an end is not known: not in `ns` */
	/* Length. Short polls that the recorder only counted are there as well, each with a length
	   of about its own, and all together with theirs. */
	struct tacho__hist ns;
	struct tacho__hist wake;	      /* from wake to begin */
	struct tacho__hist late;	      /* of timers */
	struct tacho__worst_polls worst;      /* by length */
	struct tacho__worst_polls worst_late; /* by late_ns */
	struct tacho__rhythm rhythm;	      /* their begins */
	uint64_t counted;		      /* short ones, whose begins are not known */
	struct tacho__wakers wakers;
};

struct tacho__loop_sum {
	struct tacho__entry entry; /* key: process << 32 | loop, thread */
	uint32_t process, loop, thread, level;
	uint64_t turns, polls;
	uint64_t first_ns, last_ns; /* seen */
	uint64_t parked_ns, busy_ns;
	uint64_t short_waits_ns; /* of parked_ns: waits that no thread sleeps for */
	uint64_t delay_ns;	 /* of parked_ns: runnable but not running, where that was long */
	uint64_t no_ready;	 /* waits that ended with nothing ready and nothing done after */
	struct tacho__hist ns;	 /* turns */
	struct tacho__rhythm rhythm; /* their begins */
	uint64_t reports;	     /* turns whose wait reported something */
	/* ns of turns, of waits that no thread sleeps for, and of delay_ns: it did not wait for work. */
	struct tacho__series busy;
	struct tacho__series did; /* turns that had something to do */
	/* Whether others of the process have its name, and its name on a thread of the same name. */
	int shares_name, shares_thread_name;
	int serves_one;	  /* client, as all threads of the loop do */
	uint32_t listens; /* definition of an address; 0: none is known */
};

struct tacho__lock_sum {
	struct tacho__entry entry; /* key: process, lock */
	uint32_t process;
	uint8_t is_signal; /* a condition variable or semaphore */
	uint64_t lock;
	struct tacho__hist ns;	   /* waits that ended */
	struct tacho__hist inside; /* of these, inside a poll or turn of a loop thread */
	uint64_t gave_up;
	struct tacho__worst_locks worst; /* of those inside, by length */
	struct tacho__worst_locks worst_any;
};

/* Calls of one name from one place (the innermost frame of its stack that is the program's). */
struct tacho__call_sum {
	struct tacho__entry entry; /* key: process << 32 | name, stack */
	uint32_t process, name, stack;
	struct tacho__hist ns;
	uint64_t errors;
	struct tacho__worst_calls worst;
};

/* Work of one kind given to a pool. */
struct tacho__work_sum {
	struct tacho__entry entry; /* key: process, kind */
	uint32_t process, kind;
	struct tacho__hist wait, run; /* submit to begin, begin to end */
	/* Submit to done, at least, where its begin is not seen: of those that found a thread
	   free, and of those that may have waited for one. */
	struct tacho__hist at_once, crowded;
	/* At the end: the oldest that a thread of the pool has not ended, and that none has taken,
	   as far as can be told; submit_ns 0: none. */
	struct tacho__work kept, left;
	uint64_t left_count;
	struct tacho__worst_works worst; /* by wait */
	struct tacho__worst_works worst_crowded;
};

/* Threads of libuv's pool, unless UV_THREADPOOL_SIZE says otherwise. */
#define TACHO__POOL_THREADS 4u

struct tacho__pool_sum {
	uint32_t workers; /* threads that ran work, at most 64 told apart */
	uint32_t worker_ids[64];
	uint32_t most_waiting, most_ahead;
};

struct tacho__wake_sum {
	struct tacho__hist latency;
	uint64_t count, again;
	struct tacho__worst_wakes worst;
};

/* Tasks of one kind and spawn place. */
struct tacho__task_sum {
	struct tacho__entry entry; /* key: process << 32 | kind, place */
	uint32_t process, kind, place;
	uint64_t seen, spawned, ended;
	struct tacho__hist life, busy;
	struct tacho__series spawned_at, ended_at; /* count */
	uint64_t idle_at_end;	      /* spawned, not ended, not running and without a wake */
	uint64_t idle_polls, idle_ns; /* of these: polls, and from the first to the last of each */
	uint64_t woken_at_end;
	struct tacho__task stuck;    /* that of idle_at_end whose last poll is longest ago */
	uint64_t forsaken_at_end;    /* of idle_at_end: those that nobody can wake */
	uint64_t forsaken_ended;     /* such that have ended: they were cancelled */
	struct tacho__task forsaken; /* that of forsaken_at_end that is so for longest */
	struct tacho__task woken;    /* that of woken_at_end whose wake is longest ago */
	uint64_t self_wakes, wakes;
	struct tacho__task self; /* with the most self-wakes */
	struct tacho__task busiest;
	uint64_t next_busy_ns; /* of the busiest but one */
};

/* What tasks of one kind say they wait for. */
struct tacho__task_wait_sum {
	struct tacho__entry entry; /* key: process << 32 | kind, what; without: stack << 32 */
	uint32_t process, kind, what;
	uint32_t stack;		 /* of the longest that ended; 0 */
	uint64_t count, by_loop; /* waits that ended */
	uint64_t sum_ns;	 /* of these, and of those that have not */
	uint64_t longest_ns, longest_at_ns, last_begin_ns;
	uint64_t kept, kept_ns; /* of a millisecond or more */
	/* Of these, by the kind of who woke them: if one has more than half of the time, that. */
	uint32_t by_kind;
	uint64_t votes_ns;
	struct tacho__task_wait oldest; /* that has not; begin_ns 0: none */
};

/* A counter, gauge or queue over time. */
struct tacho__counter_sum {
	struct tacho__entry entry; /* key: process << 32 | name, depth */
	uint32_t process, name;
	uint8_t depth, is_float;
	uint64_t count;
	uint64_t first_ns, last_ns;
	double first, last, least, most;
	struct tacho__series above; /* ns between two points of which neither is 0 */
	uint64_t above_ns;	    /* all of these */
	/* Of value over seconds since first_ns, for a line through all points. */
	double sum_x, sum_y, sum_xx, sum_xy;
	uint32_t kind;		      /* of the poll that set it highest; 0 none */
	uint32_t thread;	      /* likewise */
	double series[TACHO__SERIES]; /* last value in the step */
	uint8_t set[TACHO__SERIES];
};

/* A descriptor (or what a program keeps for it). */
struct tacho__ready_sum {
	struct tacho__entry entry; /* key: process << 32 | loop, what */
	uint32_t process, loop;
	uint64_t what, count;
	uint64_t ns; /* of turns in which it was ready, shared evenly with what else was */
	struct tacho__rhythm rhythm;
};

struct tacho__span_sum {
	struct tacho__entry entry; /* key: process << 32 | name, async */
	uint32_t process, name;
	uint8_t async;
	uint64_t cut;
	struct tacho__hist ns;
	struct tacho__worst_spans worst;
};

struct tacho__process_sum {
	uint64_t events;
	uint64_t end_ns; /* of its window */
	uint64_t samples;
	uint64_t missing, dropped; /* records */
	uint64_t hole_ns;	   /* where the last of the holes ends that they leave; 0: none */
	struct tacho__pool_sum pool;
	struct tacho__wake_sum wakes;
};

struct tacho__summary {
	uint64_t first_ns, last_ns;
	uint64_t events;
	uint32_t processes;
	struct tacho__process_sum *process;
	/* Entries are looked through with tacho__table_at. */
	struct tacho__table kinds, loops, locks, calls, works, tasks, task_waits, counters, ready,
		spans;
	struct tacho__tracker_limits missed;
};

/*
 * Reads all events of the reader (from where its limits say). `more` subscribe to the same facts,
 * TACHO__SUMMARY_MORE at most. NULL with a negative errno in *error.
 */
#define TACHO__SUMMARY_MORE 3u
struct tacho__summary *tacho__summary_make(struct tacho_reader *reader,
					   const struct tacho__facts *more, uint32_t count,
					   void (*progress)(void *arg, uint64_t ns), void *arg,
					   int *error);
void tacho__summary_free(struct tacho__summary *s);
/* The same in steps. NULL without memory. */
struct tacho__summing;
struct tacho__summing *tacho__summing_new(struct tacho_reader *reader,
					  const struct tacho__facts *more, uint32_t count);
/* As tacho__tracker_some. */
int tacho__summing_some(struct tacho__summing *g, uint32_t most, uint64_t *ns);
/* What was summed up; it frees the rest. */
struct tacho__summary *tacho__summing_end(struct tacho__summing *g);

/* What a loop is called, so that a person can tell it from all others of its process: "uv loop";
   where several have that name, "uv loop, thread worker-3, listens on 127.0.0.1:80". */
const char *tacho__loop_name(char *out, size_t size, const struct tacho_reader *reader,
			     const struct tacho__loop_sum *l);

/* Step of a series that `ns` falls into. */
uint32_t tacho__summary_step(const struct tacho__summary *s, uint64_t ns);
uint64_t tacho__summary_step_ns(const struct tacho__summary *s);

#endif
