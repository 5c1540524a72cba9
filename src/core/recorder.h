/*
 * The recorder's own memory: what the process knows of its box, and what each
 * thread needs to store a record.
 *
 * All of it lies in one private anonymous mapping that the kernel empties in a
 * child made by fork or clone (MADV_WIPEONFORK): a child finds zeros, takes the
 * slow path at its first record, and makes a box of its own. So no record of a
 * child ever goes into its parent's box, whoever made the child and however.
 */
#ifndef TACHO_CORE_RECORDER_H
#define TACHO_CORE_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "format/box.h"
#include "format/definition.h"
#include "format/underway.h"

#define TACHO__THREADS_MAX 8192u
#define TACHO__HIST_WAYS 8u

#define tacho__likely(x) __builtin_expect(!!(x), 1)
#define tacho__unlikely(x) __builtin_expect(!!(x), 0)
/* Keeps the compiler, though not the CPU, from moving memory accesses across: enough
   between a thread and the signal handlers that interrupt it. */
#define tacho__signal_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Variables that nearly every record reads and hardly anything changes: beside each other, so that
   they take two or three lines of the cache and not one each. */
#define TACHO__HOT __attribute__((section("tacho_hot")))
/* The same of functions. */
#define TACHO__HOT_CODE __attribute__((section(".text.tacho_hot")))

#define tacho__load(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define tacho__store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

/* Two words of the control area that are looked at together. */
typedef uint64_t __attribute__((may_alias)) tacho__calls;

/* Where one stream of one thread stores. */
struct tacho__stream {
	uint8_t *cur;	/* the next record goes here */
	uint8_t *end;	/* of what may be stored without the slow path; NULL: nothing */
	uint64_t last;	/* ticks of the last record */
	uintptr_t busy; /* frame that is storing a record, or 0 */
	struct tacho_chunk *chunk;
	uint8_t *limit;	   /* of the chunk; `end` is this unless something wants the slow path */
	uint32_t records;  /* in this chunk */
	uint32_t sequence; /* of the next chunk */
	uint64_t prior;	   /* records before this chunk */
};

struct tacho__writer {
	struct tacho__stream stream[TACHO_STREAMS];
	uint32_t epoch; /* of the box that it writes to; 0: none */
	uint32_t index; /* in the thread table */
	/* Of that box. It stays mapped when it is stopped, while tacho__rec is of the next one. */
	struct tacho_box_thread *entry;
	struct tacho_box_underway *underway; /* NULL: it writes to no box */
	struct tacho_box_hist *hists;
	uint32_t number;
	uint32_t tid;
	uint32_t next_free; /* index + 1 in the list of free writers */
	/* `config` and `idle` of the control area, as one word, and what it was when it was heeded
	   last. They are compared when a loop unparks, and `called` says that they differed. */
	uint32_t called;
	const tacho__calls *calls;
	uint64_t calls_heeded;
	uint64_t pending_ticks; /* poll threshold: a poll begun and not recorded yet */
	uint64_t pending_task;
	uint32_t pending_kind; /* 0: none */
	uint32_t hist_count;
	uint32_t hist[TACHO__HIST_WAYS];			/* slots in HISTOGRAMS, by kind */
	struct tacho_underway now __attribute__((aligned(64))); /* times are ticks */
} __attribute__((aligned(64)));

enum tacho__phase {
	TACHO__PHASE_NONE = 0, /* no box: also what a child finds after fork */
	TACHO__PHASE_MAKING = 1,
	TACHO__PHASE_READY = 2,
	TACHO__PHASE_FAILED = 3,
	TACHO__PHASE_STOPPED = 4,
};

struct tacho__recorder {
	/* These go on from box to box; other threads may change them while one is made. */
	uint32_t phase;
	uint32_t epoch;	     /* grows with each box */
	uintptr_t maker;     /* thread that makes the box */
	uint32_t inside;     /* threads between tacho__enter and tacho__leave */
	uint32_t lost_early; /* records lost while there was no box yet */
	int32_t noted_by;    /* hooks: process whose crashes are noted; 0: not given yet */
	int64_t pool_waits;  /* hooks: what was given to a thread pool and waits there */

	/* Of this box; while one is made, pointers are of the one before, which stays mapped. */
	uint8_t *base;
	uint64_t size;
	struct tacho_box_super *super;
	struct tacho_box_control *control;
	uint64_t *losses;
	struct tacho_box_trigger *triggers;
	struct tacho_box_crash *crashes;
	struct tacho_box_thread *threads;
	struct tacho_box_hist *hists;
	struct tacho_box_def *defs;
	uint32_t *buckets;
	uint8_t *def_data;
	struct tacho_box_slot *slots;
	struct tacho_box_underway *underway;
	uint8_t *pool;
	uint32_t slot_count;
	uint32_t thread_count;
	uint64_t filled[TACHO_REGION_COUNT]; /* bytes of a region with memory behind them */
	uint64_t used;			     /* bytes of the box with memory behind them */
	uint64_t granted;		     /* bytes that the box may take (room.c) */
	uint64_t spare;	       /* bytes that it can take while somebody asks for more */
	uint64_t refused_ns;   /* when more was refused last; 0: it was not */
	uint32_t asking;       /* a thread asks for more */
	uint32_t no_populate;  /* kernel without MADV_POPULATE_WRITE: memory was taken at once */
	uint32_t full;	       /* tmpfs had no more memory: the pool stays as it is */
	uint64_t free_writers; /* tag << 32 | index + 1 */
	uint32_t hand;	       /* slot that is looked at next */
	uint32_t split_slot;   /* slot + 1 that small chunks are taken from, or 0 */
	uint32_t whole_open;   /* whole chunks that threads hold */
	uint32_t process;      /* hooks: number of this process among its forks; 0: not given yet */
	uint32_t
		sealed_told; /* chunks that were sealed when an agent that follows was woken last */
	char box_name[48];
};

/* Set once; the memory behind it is emptied in children. NULL before the first start. */
extern struct tacho__recorder *tacho__rec;
extern struct tacho__writer *tacho__writers;
extern uint32_t tacho__clock_kind; /* enum tacho_clock */
/* When the first box was made. Not emptied by fork: the longer ago, the better is the rate of the
   clock known. */
extern struct tacho_anchor tacho__first_anchor;

/* Stands for the writer of every thread that has none: its `end` is NULL, so that the
   first record takes the slow path. */
extern struct tacho__writer tacho__no_writer;
extern __thread struct tacho__writer *tacho__self __attribute__((tls_model("initial-exec")));

/* Out of line, so that the hot path needs no registers for a call that it seldom makes. */
static __attribute__((cold, noinline, unused)) uint64_t tacho__ticks_cold(void)
{
	return tacho__clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t tacho__ticks(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	if (tacho__likely(tacho__clock_kind != TACHO_CLOCK_MONOTONIC))
		return tacho__counter();
#endif
	return tacho__ticks_cold();
}

static inline void tacho__count(enum tacho_loss what, uint64_t n)
{
	uint64_t *losses = tacho__load(&tacho__rec->losses);

	if (losses)
		__atomic_fetch_add(&losses[what], n, __ATOMIC_RELAXED);
}

/* Maps the memory above if it is not there yet; 0 or -ENOMEM. */
int tacho__recorder_init(void);

/* Private memory that a child finds empty; 0 or a negative errno. */
int tacho__map_emptied(size_t size, void **out);

#endif
