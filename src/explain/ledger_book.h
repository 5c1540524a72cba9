/*
 * A ledger being made.
 *
 *   ledger.c         its life, lines and owners
 *   ledger_workers.c the threads, from their begin to their end
 *   ledger_steps.c   what they do, step by step
 *   ledger_waits.c   where they wait in the middle of work
 *   ledger_time.c    which owner gets a stretch of time, and its cost
 *   ledger_kernel.c  what of it the kernel took away
 *   ledger_cpus.c    who had the CPUs meanwhile
 *   ledger_stops.c   when the whole process is stopped
 *   ledger_pools.c   pools of threads of the program's own
 *   ledger_arrivals.c whether what they serve comes by itself
 *   ledger_queue.c   queues of work: what waits, who serves
 *   ledger_code.c    samples: which functions code is
 *   ledger_text.c    names and places of owners
 *   diary.c          which stretches of time they had, where somebody looks at these
 */
#ifndef TACHO_EXPLAIN_LEDGER_BOOK_H
#define TACHO_EXPLAIN_LEDGER_BOOK_H

#include "explain/diary.h"
#include "explain/ledger.h"

#define TACHO__NONE UINT32_MAX

/* What is done for each step of each thread. */
#define TACHO__INLINED inline __attribute__((always_inline))

#define TACHO__BOOK_QUEUES 4096u
#define TACHO__BOOK_POINTS 16u
#define TACHO__BOOK_PIECES 32u
#define TACHO__BOOK_FRAMES 18u
#define TACHO__BOOK_OFFS 32u
#define TACHO__BOOK_SAMPLES 32u
#define TACHO__BOOK_GAPS 4u
#define TACHO__BOOK_TURNS 15u
#define TACHO__BOOK_BLOCKS 16u
#define TACHO__BOOK_KINDS 8u
#define TACHO__BOOK_KEPT 8u
#define TACHO__BOOK_STRETCHES 32u
#define TACHO__BOOK_SILENT 8u

/* Where the slope of what a queue costs changes. */
struct tacho__point {
	uint64_t at, cost, parked_ns;
};

/* The process was stopped while a thread was parked, and what waited is not all known; to 0: not. */
struct tacho__queue_stop {
	uint64_t from, to;
	uint8_t told; /* some is */
};

struct tacho__queue {
	struct tacho__entry entry; /* key: process, loop or set */
	uint32_t joined;	   /* index of the queue that it is one with now + 1; 0: itself */
	uint32_t serving, parked, idle; /* threads; of these parked at it, idle elsewhere */
	uint32_t most_serving;
	uint32_t pool;	       /* index in `pools` + 1, which are told what waits; 0 */
	uint8_t is_no_pool;    /* loops wait for that condition as well */
	uint32_t waiting;      /* things */
	uint64_t reported;     /* by waits of all its threads, ever */
	uint32_t last_worker;  /* that served; TACHO__NONE */
	uint32_t first_worker; /* the first that did; TACHO__NONE */
	uint64_t at;	       /* until when the sums go */
	uint64_t cost;	       /* for each busy thread, ever */
	uint64_t carried;      /* too little to be shared out evenly */
	uint64_t parked_ns;    /* in which a thread was parked */
	uint64_t late;	       /* cost that is for the next one to come back */
	uint64_t late_ns;      /* how long something waited for it */
	uint64_t asked_ns;     /* one of its threads last asked what is ready */
	uint32_t old;	       /* things that wait since before rest_ns */
	uint64_t rest_ns;      /* none of its threads was busy then */
	uint64_t forgotten_ns; /* what waited before does not count any more */
	struct tacho__queue_stop stop;
	uint32_t point_count; /* ever */
	struct tacho__point points[TACHO__BOOK_POINTS];
};

enum tacho__standing { TACHO__OUT, TACHO__BUSY, TACHO__PARKED, TACHO__IDLING };
enum tacho__doing { TACHO__UNBORN, TACHO__UNSEEN, TACHO__WAITING, TACHO__RUNNING };

/* Time in a call or lock, as it is noted. */
struct tacho__blocked {
	uint32_t owned; /* index; TACHO__NONE: there is none */
	uint64_t ns, waiting_ns, end_ns;
	uint64_t woken_ns;	       /* of that: what it waited for was there */
	uint8_t is_told;	       /* how long the kernel ran others meanwhile */
	uint8_t is_handed;	       /* it waited for one that serves the same queue */
	uint64_t before, before_at_ns; /* the longest of its owner until then */
};

/* A poll that is open, or the turn around all of them. */
struct tacho__paid {
	uint32_t kind;
	uint32_t owned;		 /* index; TACHO__NONE: not looked up yet */
	uint64_t ns, waiting_ns; /* its own code */
	uint64_t off_ns;	 /* runnable, seen by switches */
	uint64_t begin_ns, sample_ns;
	uint64_t from_ns, end_ns; /* when it has ended: between these it was, polls in it too */
	uint32_t ready;		  /* of a turn: things that there were to do */
	uint32_t got;		  /* of these: as its wait reported */
	/* The function that most of its samples are in, if one has more than half: each sample of it
	   is a vote, each other one against it. */
	uint32_t function; /* index + 1; 0: none */
	uint64_t votes_ns;
	struct tacho__blocked block; /* its largest call or lock */
};

struct tacho__book_process;
struct tacho__recent_sample {
	uint64_t at, ns;
	uint32_t owned, function; /* indexes */
};

struct tacho__left_turn {
	uint32_t loop, owned; /* index; TACHO__NONE: there is none */
	uint32_t function;    /* that had most of it: index + 1; 0 */
	uint64_t ns, waiting_ns;
	uint32_t block_count;
	struct tacho__blocked blocks[TACHO__BOOK_BLOCKS];
};

struct tacho__worker {
	struct tacho__entry entry; /* key: process, thread */
	struct tacho__book_process *of;
	uint64_t at;	      /* until when its time is shared out */
	uint64_t cost;	      /* of its queue, paid until then */
	uint64_t parked_ns;   /* of its queue, at `at` */
	uint64_t owed;	      /* of a queue that it was at */
	uint64_t touched;     /* last seen */
	uint64_t code_parked; /* of its turns: others were parked at its queue */
	uint32_t queue;	      /* index; TACHO__NONE */
	uint32_t loop, level;
	uint32_t depth;
	enum tacho__doing doing;
	enum tacho__standing standing;
	uint32_t halves; /* things that only this thread can serve, twice */
	uint32_t half;
	uint32_t ready;	     /* as its last wait said */
	uint32_t left_ready; /* as the one before said: may be left to do */
	/* Connections of this turn that are told, a millisecond apart at least. */
	uint32_t accepted;
	uint32_t thread; /* index in `threads` */
	uint32_t process, number;
	uint32_t idle_owned;	     /* index; TACHO__NONE */
	uint32_t signal_owned;	     /* that had the last wait for a condition; TACHO__NONE */
	enum tacho__owns_reason why; /* it is not observed */
	uint64_t took_ns;	     /* when it told last that it has come for work; 0 */
	uint32_t blocked_on; /* a loop that it waits on in the middle of a turn of another; 0 */
	uint32_t main_loop, main_waits, other_waits;
	uint32_t home_waits;   /* for the condition that most are for, less those for others */
	uint64_t submitted_ns; /* it gave work to libuv last; 0 */
	uint32_t home_fed;     /* how many of these a loop or a thread of a pool ended */
	uint64_t home, waits_for;
	uint32_t turn_loop;				/* that it came from */
	uint32_t block_count;				/* of `blocks` */
	uint32_t ended_blocks;				/* of the turn that ended last */
	uint32_t off_count;				/* of `offs` */
	uint32_t each_count, piece_count, sample_count; /* ever */
	uint8_t halves_estimated, in_lock, gone, is_dead, signal_guess;
	uint8_t unblocked; /* its last step: it came out of a wait in the middle of a turn */
	uint8_t is_cut;	   /* what it is blocked in has not ended: it is no occurrence yet */
	uint8_t perf;	   /* it has samples of the kernel */
	uint8_t own;	   /* it serves one client, and no queue */
	uint8_t is_behind; /* since a turn that took long, each wait has returned at once */
	uint32_t cpus;	   /* that it may run on; 0: not known */
	struct tacho__queue_stop stop;			  /* then; else that of its queue counts */
	uint64_t wait_from, wait_to, wait_late, wait_off; /* its last wait */
	uint32_t wait_woke;    /* tasks that it woke itself in that: what the wait found ready */
	uint64_t wait_stopped; /* of that: the process was */
	uint64_t wait_ns;      /* the one before `wait_from` */
	uint64_t itself_ns, itself_waiting; /* code of the last turn outside of its polls */
	uint64_t woken_late;	/* what was woken meanwhile waited so much for its end */
	uint64_t turn_from;	/* 0: not known */
	uint64_t turn_before;	/* begin of the one before */
	uint64_t turn_size;	/* what the last one counts as */
	uint64_t turn_reported; /* of its queue, when it began */
	uint32_t turn_polls;	/* callbacks in it, but for timers */
	uint64_t turn_parked_then, turn_parked; /* others were parked until then, and in it */
	uint64_t late_next;
	uint64_t empty_turns, calls;
	uint64_t off_ns, off_waiting, late_off_ns; /* since the quota was last read */
	uint64_t first_piece;			   /* begin of the first ever */
	struct tacho__each {
		uint64_t ns;
		uint32_t things;
	} each[TACHO__BOOK_TURNS]; /* what one thing that was ready took, in the last turns */
	struct tacho__paid ended;  /* not counted yet, if kind is not TACHO__NONE */
	struct {
		uint32_t kind, loop, owned;
	} known[TACHO__BOOK_KINDS];
	struct tacho__paid open[TACHO__BOOK_FRAMES];
	struct {
		uint64_t from, to;
		enum tacho__owns_reason stopped; /* why; 0: others ran */
	} offs[TACHO__BOOK_OFFS];
	/* Of code that is not counted yet: nothing of the process was seen meanwhile. */
	uint32_t silent_count;
	struct {
		uint64_t from, to;
	} silent[TACHO__BOOK_SILENT];
	/* Its time lately: who had it, until when. */
	struct {
		uint64_t to;
		uint32_t owned;
	} pieces[TACHO__BOOK_PIECES];
	struct tacho__recent_sample samples[TACHO__BOOK_SAMPLES];
	/* Where it was blocked in this turn: if it does not end, its thread had left the loop. */
	struct tacho__blocked blocks[TACHO__BOOK_BLOCKS];
	struct tacho__blocked last_block; /* of all */
	/* Who waited lately for a lock that it had: owner, from when, until it released it. */
	struct {
		uint32_t owned;
		uint64_t from, to;
	} kept[TACHO__BOOK_KEPT];
	/* Turns and polls of it lately in which the kernel ran others for `off`. */
	struct {
		uint64_t from, to, off;
	} lacked[TACHO__BOOK_KEPT];
	uint32_t kept_count, lacked_count; /* ever */
	/* The last turn from which the thread did not come back to its loop. */
	struct tacho__left_turn left;
};

/* Between these a thread lacked a CPU for `ns`, or its code ran for that. */
struct tacho__cpu_time {
	uint64_t from, to, ns;
	uint64_t size_ns;    /* of code: that it counts as */
	uint64_t waiting_ns; /* of one that lacked a CPU: what that cost */
	uint64_t left_ns;    /* the same: of `ns`, the kernel's so far */
	uint32_t owned;	     /* index */
	uint32_t function;   /* of code: that had most of it: index + 1; 0 */
	uint32_t worker, cpus;
};

struct tacho__book_process {
	uint64_t last_ns;      /* anything was seen of it */
	uint64_t throttled_us; /* as it was read last */
	uint64_t looked_ns;    /* for threads that are gone */
	uint32_t gap_count;    /* ever */
	struct {
		uint64_t from, to;
	} gaps[TACHO__BOOK_GAPS];
	/* It is stopped, or was when this was told last; until_ns 0: not. */
	struct {
		uint64_t from_ns, seen_ns, until_ns;
		enum tacho__owns_reason reason;
	} stop;
	uint64_t stop_ns;		  /* of the last that is over */
	uint64_t interpreter_lock;	  /* Python's: made of a condition; 0: none is known */
	uint32_t lacked_count, ran_count; /* ever */
	struct tacho__cpu_time lacked[TACHO__BOOK_STRETCHES], ran[TACHO__BOOK_STRETCHES];
	uint8_t throttle_known, wakes, is_sampled, sees_calls, known, living;
	uint8_t stop_cost; /* something waited in that */
};

/* What a stack that was sampled is called. */
struct tacho__resolved {
	struct tacho__entry entry; /* key: process, hash */
	uint64_t function;
	struct tacho__place place;
	uint8_t known, is_recorder;
	uint8_t is_lock;	 /* of the stack of a wait for a condition: it is one for a lock */
	uint8_t is_interpreters; /* that lock is an interpreter's */
};

/* What was looked up of definitions lately: kinds that are timers, the counter of a quota, and
   the queues of loops (index + 1). */
#define TACHO__BOOK_KNOWN 64u
struct tacho__known_id {
	uint32_t process, id, value;
};

/* Owners that were looked up lately: index + 1. */
#define TACHO__BOOK_OWNED_BITS 7u
struct tacho__known_owned {
	uint64_t key[2];
	uint32_t index;
};

struct tacho__ledger_book {
	struct tacho__ledger *l;
	struct tacho_reader *reader;
	struct tacho__table workers, queues, resolved, moves;
	uint32_t *by_index; /* of the tracker: index of the worker + 1 */
	uint32_t by_index_count, by_index_capacity;
	struct tacho__known_id kinds[TACHO__BOOK_KNOWN], counters[TACHO__BOOK_KNOWN],
		loops[TACHO__BOOK_KNOWN];
	struct tacho__known_owned owned[1u << TACHO__BOOK_OWNED_BITS];
	uint32_t recent[TACHO__BOOK_KNOWN]; /* workers by their thread: index + 1 */
	struct tacho__book_process *processes;
	uint32_t process_count;
	uint64_t first_ns;		  /* of the window */
	uint64_t halves;		  /* of waiting, that threads had for themselves */
	uint64_t waited;		  /* in queues, and what was due */
	uint64_t relieved;		  /* of both: what did not wait after all */
	struct tacho__diary *diary;	  /* NULL: none is kept */
	const struct tacho__waits *waits; /* NULL: nobody wants to see them */
	int error;
};

/* So much that sums of it do not run over, whatever a trace says. */
#define TACHO__MUCH (UINT64_C(1) << 62)
static inline uint64_t tacho__add(uint64_t a, uint64_t b)
{
	return a + b < TACHO__MUCH && a + b >= a ? a + b : TACHO__MUCH;
}

/* The same where both are no more than that already. */
static inline uint64_t tacho__sum(uint64_t a, uint64_t b)
{
	return a + b < TACHO__MUCH ? a + b : TACHO__MUCH;
}

static inline uint64_t tacho__times(uint64_t count, uint64_t ns)
{
	uint64_t all;

	return __builtin_mul_overflow(count, ns, &all) || all > TACHO__MUCH ? TACHO__MUCH : all;
}

static inline uint64_t tacho__least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline struct tacho__owned *tacho__owned_at(const struct tacho__ledger *l, uint32_t index)
{
	return (struct tacho__owned *)(void *)(l->owned.entries +
					       (size_t)index * sizeof(struct tacho__owned));
}

static inline struct tacho__book_process *tacho__book_process(const struct tacho__ledger_book *b,
							      uint32_t process)
{
	return &b->processes[process < b->process_count ? process : b->process_count];
}

/* Entries of these tables are never removed while the book is kept. */
static inline struct tacho__worker *tacho__worker_at(const struct tacho__ledger_book *b,
						     uint32_t index)
{
	return (struct tacho__worker *)(void *)(b->workers.entries +
						(size_t)index * sizeof(struct tacho__worker));
}

static inline struct tacho__queue *tacho__queue_root(const struct tacho__ledger_book *b,
						     uint32_t index)
{
	struct tacho__queue *q;

	do {
		q = (struct tacho__queue *)(void *)(b->queues.entries +
						    (size_t)index * sizeof(struct tacho__queue));
		index = q->joined - 1;
	} while (__builtin_expect(q->joined != 0, 0));
	return q;
}

/* That of a worker; NULL: none. */
static inline struct tacho__queue *tacho__queue_at(const struct tacho__ledger_book *b,
						   const struct tacho__worker *w)
{
	return w->queue == TACHO__NONE ? NULL : tacho__queue_root(b, w->queue);
}

/* ledger_queue.c: all times here never go back. */
struct tacho__queue *tacho__queue_of(struct tacho__ledger_book *b, uint32_t process, uint32_t loop);
/* That a thread serves; NULL: one client alone. */
struct tacho__queue *tacho__queue_served(struct tacho__ledger_book *b, struct tacho__worker *w,
					 uint32_t loop);
struct tacho__queue *tacho__queue_of_pool(struct tacho__ledger_book *b, uint32_t process);
/* Of a pool of the program's own. NULL: not known, and (`make`) there is no room. */
struct tacho__queue *tacho__queue_at_condition(struct tacho__ledger_book *b, uint32_t process,
					       uint64_t lock, int make);
void tacho__queue_set(struct tacho__ledger_book *b, struct tacho__queue *q, uint32_t waiting,
		      uint64_t ns);
void tacho__queue_pay(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t took);
/* The sums until then. */
static inline void tacho__queue_move(struct tacho__ledger_book *b, struct tacho__queue *q,
				     uint64_t ns)
{
	if (ns <= q->at)
		return;
	if (q->parked)
		q->parked_ns += ns - q->at;
	if (q->waiting)
		tacho__queue_pay(b, q, ns - q->at);
	q->at = ns;
}
/* What only this thread can serve has changed; or none of it waits any more. */
void tacho__own_waits(const struct tacho__ledger_book *b, const struct tacho__worker *w,
		      uint64_t ns);
void tacho__own_waits_end(const struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns);
/* One more waits; or one less, that did since `since`. */
void tacho__queue_adds(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t ns);
void tacho__queue_takes(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t ns,
			uint64_t since);
/* The worker's time must be shared out until then. */
void tacho__queue_stand(struct tacho__ledger_book *b, struct tacho__worker *w,
			struct tacho__queue *q, enum tacho__standing standing, uint64_t ns);
/* Of a time that may be past, but not before what the worker has paid: what each busy thread paid
   until then, and how long one was parked. */
struct tacho__point tacho__queue_then(struct tacho__ledger_book *b, struct tacho__queue *q,
				      const struct tacho__worker *w, uint64_t ns);
/* A task of one loop runs on another. */
void tacho__queue_migrates(struct tacho__ledger_book *b, uint32_t process, uint32_t from,
			   uint32_t to, uint64_t ns);
void tacho__queue_join(struct tacho__ledger_book *b, struct tacho__queue *a, struct tacho__queue *c,
		       uint64_t ns);
void tacho__queue_steals(struct tacho__ledger_book *b, uint32_t process, uint32_t thief,
			 uint32_t victim, uint64_t ns);
/* Wakes that came before are not known any more. */
void tacho__queues_forget(struct tacho__ledger_book *b, uint32_t process, uint64_t ns);

/* ledger_time.c */
uint32_t tacho__book_owned(struct tacho__ledger_book *b, const struct tacho__worker *w,
			   enum tacho__owns owns, uint32_t what, uint64_t key);
/* One with a reason. */
uint32_t tacho__book_reasoned(struct tacho__ledger_book *b, const struct tacho__worker *w,
			      enum tacho__owns owns, enum tacho__owns_reason reason);
/* The time of the worker until `to` belongs to it. What it cost. */
uint64_t tacho__book_give(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
			  uint64_t to);
/* The same for what it is doing now. */
void tacho__book_settle(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to);
/* Until `to` it is blocked: what the kernel took away is not the block's. The time that is. */
uint64_t tacho__book_block(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
			   uint64_t to);
static inline uint32_t tacho__size_of(uint64_t ns)
{
	const uint64_t ms = 1000000;

	return ns < ms ? 0 : 1 + (uint32_t)(ns >= 10 * ms) + (uint32_t)(ns >= 50 * ms);
}
/* One more of a size, since `at_ns`: of the time until it ended, `wall_ns`, it had `ns`. */
static inline void tacho__size_more(struct tacho__size *s, uint64_t ns, uint64_t waiting_ns,
				    uint64_t at_ns, uint64_t wall_ns)
{
	s->count++;
	s->ns = tacho__add(s->ns, ns);
	s->waiting_ns = tacho__add(s->waiting_ns, waiting_ns);
	if (ns > s->longest_ns) {
		s->next_ns = s->longest_ns;
		s->next_at_ns = s->longest_at_ns;
		s->longest_ns = ns;
		s->longest_at_ns = at_ns;
		s->wall_ns = wall_ns > ns ? wall_ns : ns;
	} else if (ns > s->next_ns) {
		s->next_ns = ns;
		s->next_at_ns = at_ns;
	}
}
/* An occurrence of it is over, which counts as if it had taken `size_ns`. */
static inline void tacho__book_note_as(struct tacho__owned *o, uint64_t ns, uint64_t size_ns,
				       uint64_t waiting_ns, uint64_t end_ns, uint64_t wall_ns)
{
	uint64_t at_ns = end_ns - (end_ns > ns ? ns : end_ns);

	o->count++;
	tacho__size_more(&o->size[tacho__size_of(size_ns)], ns, waiting_ns, at_ns, wall_ns);
	if (ns > o->longest_ns) {
		o->longest_ns = ns;
		o->longest_at_ns = at_ns;
		o->is_sum = 0;
	}
}
static inline void tacho__book_note(struct tacho__owned *o, uint64_t ns, uint64_t waiting_ns,
				    uint64_t end_ns)
{
	tacho__book_note_as(o, ns, ns, waiting_ns, end_ns, ns);
}
/* The same of a sum over what ended then. */
static inline void tacho__book_note_sum(struct tacho__owned *o, uint64_t ns, uint64_t waiting_ns,
					uint64_t end_ns)
{
	int is_longest = ns > o->longest_ns;

	tacho__book_note(o, ns, waiting_ns, end_ns);
	if (is_longest)
		o->is_sum = 1;
}
/* It was none. */
void tacho__book_unnote(struct tacho__owned *o, uint64_t ns, uint64_t waiting_ns);
void tacho__book_unblock(struct tacho__ledger_book *b, const struct tacho__blocked *blocks,
			 uint32_t count);
/* From here on it works: what is ready when it comes back became ready since. */
static inline void tacho__book_turns(struct tacho__worker *w, uint64_t ns)
{
	w->turn_from = ns;
	w->turn_parked_then = w->parked_ns;
}
/* At the end: what of its code, by its samples, can not have run. */
void tacho__book_unsampled(struct tacho__ledger_book *b, struct tacho__worker *w);
/* Part of what one had belongs to another. */
void tacho__book_shift(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
		       uint64_t waiting_ns);
/* The same where it is known until when the other had it. */
void tacho__book_shift_at(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
			  uint64_t waiting_ns, uint64_t until);
/* `amount` is waiting of the time from..to, which is past; or was taken to be, and is not. */
enum tacho__charge { TACHO__EXACT, TACHO__ESTIMATED, TACHO__RELIEVED };
void tacho__book_charge(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			uint64_t to, uint64_t amount, enum tacho__charge how);
/* The last wait was late by so much of its end. Index of that owner. */
uint32_t tacho__book_late(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns,
			  enum tacho__owns_reason reason, uint64_t waiting_ns);
/* What had most of the time between these of a worker that had the lock; TACHO__NONE. */
uint32_t tacho__book_did(const struct tacho__ledger_book *b, const struct tacho__worker *w,
			 uint64_t from, uint64_t to, uint64_t lock);

/* The owner of the code of a kind, of the loop that the worker is on: index; TACHO__NONE. */
uint32_t tacho__book_code(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t kind);

/* diary.c: if one is kept. The worker's time until `to` is of `owned`; of what `from` has, the last
   `ns` before `until` are of `to`; a function was sampled. */
void tacho__book_write(struct tacho__ledger_book *b, const struct tacho__worker *w, uint32_t owned,
		       uint64_t to);
void tacho__book_rewrite(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
			 uint64_t until);
void tacho__book_write_sample(struct tacho__ledger_book *b, const struct tacho__worker *w,
			      const struct tacho__recent_sample *sample);

/* The poll or turn that is open, with its owner looked up. */
static inline struct tacho__paid *tacho__book_open(struct tacho__ledger_book *b,
						   struct tacho__worker *w)
{
	struct tacho__paid *p = &w->open[w->depth];

	if (p->owned == TACHO__NONE)
		p->owned = tacho__book_code(b, w, p->kind);
	return p;
}

/* ledger_code.c */
void tacho__book_sample(void *arg, const struct tacho__sample *s);
/* A callback or turn, which counts as of this size, belongs to the function that had most of it. */
void tacho__book_dominated(struct tacho__ledger_book *b, const struct tacho__worker *w,
			   const struct tacho__paid *p, uint64_t size_ns);
/* One of that length was none. */
void tacho__size_less(struct tacho__size *sizes, uint64_t ns, uint64_t waiting_ns);
void tacho__book_sample_costs(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			      uint64_t to, double each);

/* ledger_kernel.c: all is known of code that is over, or cut. What of it neither ran nor was ready to run while
   nothing of the process was seen is a stop. */
void tacho__book_silent(struct tacho__ledger_book *b, struct tacho__worker *w,
			struct tacho__paid *p, int is_cut);
/* A step that tells for how long the kernel ran others. */
void tacho__book_delayed(struct tacho__ledger_book *b, struct tacho__worker *w,
			 const struct tacho__step *s);
/* The last wait outlasted its time-out by so much. */
void tacho__book_overslept(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns);
void tacho__book_off_cpu(void *arg, const struct tacho__switch *o);
void tacho__book_counter(void *arg, const struct tacho__counter *c);

/* ledger_cpus.c: of the time from..to the thread lacked a CPU for `ns`, which cost so much. */
void tacho__book_lacks(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
		       uint64_t from, uint64_t to, uint64_t ns, uint64_t waiting_ns);
/* What was charged for a piece of it, of that length, later on. */
void tacho__book_lack_costs(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
			    uint64_t at, uint64_t length, uint64_t waiting_ns);
/* A poll or turn that is over, and counts as of this size, ran. */
void tacho__book_ran(struct tacho__ledger_book *b, struct tacho__worker *w,
		     const struct tacho__paid *p, uint64_t size_ns);

/* ledger_stops.c: somebody says that the process is stopped; something of it is seen after that began;
   it is over, or nothing is known any more after `ns`. */
void tacho__book_stop(struct tacho__ledger_book *b, const struct tacho_event *e);
void tacho__book_stop_seen(struct tacho__ledger_book *b, uint32_t process, uint64_t ns);
void tacho__book_stop_ends(struct tacho__ledger_book *b, uint32_t process, uint64_t ns);
/* The worker's time until `to` is that of a stop. */
void tacho__book_stopped(struct tacho__ledger_book *b, struct tacho__worker *w,
			 enum tacho__owns_reason reason, uint64_t to);
/* So much waited in it, which makes it an occurrence. */
void tacho__book_stop_cost(struct tacho__worker *w, struct tacho__owned *o, uint64_t waiting);
/* A worker comes out of a wait. */
void tacho__book_stop_waited(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ready,
			     uint64_t ns);

/* ledger_arrivals.c: whether the wait that ends had something to return when it began: it was short by itself,
   or beside the turn before, in which there was far more time for things to become ready. */
int tacho__was_at_once(const struct tacho__worker *w, uint64_t ns);
/* A worker comes out of a wait that it began after a turn. */
void tacho__book_arrives(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ready,
			 uint64_t ns);

/* ledger_workers.c: looked up by what the tracker calls it, or by its number. NULL: no room. */
struct tacho__worker *tacho__book_worker_of(struct tacho__ledger_book *b,
					    const struct tacho__step *s);
struct tacho__worker *tacho__book_worker(struct tacho__ledger_book *b, uint32_t process,
					 uint32_t thread);
#define TACHO__QUIET_NS UINT64_C(50000000)
#define TACHO__AT_ONCE_NS 50000u /* a wait of that length had something to return when it began */
#define TACHO__GONE_NS UINT64_C(1000000000)
void tacho__book_quiet(struct tacho__ledger_book *b, uint32_t process, uint64_t ns);
void tacho__book_look_gone(struct tacho__ledger_book *b, uint32_t process, uint64_t ns);
void tacho__book_begins(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns);
/* Something of the process is seen. */
static inline void tacho__book_seen(struct tacho__ledger_book *b, struct tacho__book_process *p,
				    uint32_t process, uint64_t ns)
{
	if (p->stop.until_ns && ns > p->stop.from_ns)
		tacho__book_stop_seen(b, process, ns);
	if (ns > p->last_ns) {
		if (ns - p->last_ns >= TACHO__QUIET_NS)
			tacho__book_quiet(b, process, ns);
		if (ns - p->looked_ns >= TACHO__GONE_NS)
			tacho__book_look_gone(b, process, ns);
		p->last_ns = ns;
	}
}

/* The thread does something at `ns`: it is there, and seen. */
static inline void tacho__book_lives(struct tacho__ledger_book *b, struct tacho__worker *w,
				     uint64_t ns)
{
	tacho__book_seen(b, w->of, w->process, ns);
	w->touched = ns;
	w->gone = 0;
	if (w->doing <= TACHO__UNSEEN)
		tacho__book_begins(b, w, ns);
}

/* ledger_steps.c */
/* The process has ended in order: what a thread did after its loop kept no loop. */
void tacho__book_forget_left(struct tacho__ledger_book *b, struct tacho__worker *w);
void tacho__book_step(void *arg, const struct tacho__step *s);
/* The poll or turn that ended last is counted, now that all is known of it. */
void tacho__book_count(struct tacho__ledger_book *b, struct tacho__worker *w);
/* What a thread of a pool did with what it was handed is over. */
void tacho__book_turn_ends(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns);

/* ledger_text.c: at the end. What was taken to wait for it, and did not. */
uint64_t tacho__book_idle_place(struct tacho__ledger_book *b, struct tacho__worker *w);

/* ledger_pools.c */
void tacho__book_queued(struct tacho__ledger_book *b, const struct tacho__step *s);
void tacho__book_end_pool(struct tacho__ledger_book *b, const struct tacho__queue *q);
/* The thread waits for a condition, or has. 1: that is where it waits for work. */
int tacho__book_idles(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns);
int tacho__book_idled(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns);
/* It was one, at `ns`, after which it may belong to another pool. */
void tacho__book_home(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns);
/* Threads wait for something else than work there. */
void tacho__book_no_pool(struct tacho__ledger_book *b, uint32_t process, uint64_t lock,
			 uint64_t ns);
/* How that wait ended: who is handed work there belongs to a pool. */
void tacho__book_fed(struct tacho__ledger_book *b, struct tacho__worker *w,
		     const struct tacho__lock *l);

/* ledger_waits.c */
/* From `from` to `to` the kernel ran others for `off`. */
void tacho__book_lacked(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			uint64_t to, uint64_t off);
void tacho__book_waits(struct tacho__ledger_book *b, struct tacho__worker *w,
		       const struct tacho__step *s, uint64_t ns);
void tacho__book_waited(struct tacho__ledger_book *b, struct tacho__worker *w,
			const struct tacho__step *s, uint64_t ns);
void tacho__book_call(void *arg, const struct tacho__call *c);
/* ledger_signals.c: the wait for a condition that has just ended, by its stack. */
void tacho__book_inside(struct tacho__ledger_book *b, struct tacho__worker *w,
			const struct tacho__lock *l);
/* Learns whether the condition is the lock of an interpreter. */
void tacho__book_interpreter_lock(struct tacho__ledger_book *b, struct tacho__worker *w,
				  const struct tacho__lock *l);
void tacho__book_lock(void *arg, const struct tacho__lock *l);
void tacho__book_hole(void *arg, const struct tacho__hole *h);
void tacho__book_other(void *arg, const struct tacho__at *at, const struct tacho_event *e);

#endif
