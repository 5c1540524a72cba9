/*
 * The box: one file on tmpfs into which one process records.
 *
 * The process maps it shared and its threads store into it; other processes
 * read it with pread(2), also when the process is stopped, hung, or gone. All
 * integers are in the byte order of the writer (little-endian on both supported
 * architectures); offsets are from the start of the file.
 *
 *   superblock    struct tacho_box_super, TACHO_BOX_SUPER_SIZE bytes at 0
 *   regions       where the superblock's table says:
 *     CONTROL     struct tacho_box_control; the only part others may write
 *     LOSSES      u64 counters, by enum tacho_loss
 *     TRIGGERS    struct tacho_box_trigger, a ring
 *     CRASHES     struct tacho_box_crash
 *     THREADS     struct tacho_box_thread
 *     HISTOGRAMS  struct tacho_box_hist
 *     DEF_DIR     struct tacho_box_def, by id; entry 0 unused
 *     DEF_BUCKETS u32 heads of hash chains through DEF_DIR
 *     DEF_DATA    payloads of definitions (definition.h)
 *     SLOTS       struct tacho_box_slot, one a slot
 *     POOL        slots of `slot_size` bytes
 *     UNDERWAY    struct tacho_box_underway, one for each entry of THREADS
 *
 * A box whose state is TACHO_STATE_OFF has only the superblock, which holds the
 * reason: the process wanted to record and could not.
 *
 * SLOTS AND CHUNKS. A slot of the pool is unused, or holds one whole chunk, or is
 * split into `slot_size / small_size` small chunks. A chunk begins with struct
 * tacho_chunk and is followed by records (record.h). It belongs to one stream
 * of one thread at a time, and only that thread writes to it. Stream 0 holds
 * what the thread records in its normal course, streams 1 and up what signal
 * handlers record while they interrupt the storing of a record of the stream
 * below.
 *
 * THE RULE THAT TELLS LIVE FROM STALE. `generation` is 0 while a chunk header is
 * being made, else a number that no other chunk of this box ever had or will
 * have. `commit` counts the valid bytes of the chunk, header included, and only
 * grows while the generation stays. A record is stored completely before the
 * commit that covers it (release order). A reader:
 *
 *   1. loads the slot's `state`; takes its chunks from the shape it says;
 *   2. loads the chunk header; generation 0: nothing here;
 *   3. copies `commit` bytes;
 *   4. loads generation and commit again, and the slot's state: if the
 *      generation or the slot's shape count changed, what was copied may be a
 *      mixture and is thrown away; if commit is now lower, the first load was
 *      torn and the lower one holds; if it is higher, the copy is not sealed.
 *
 * copy.h does steps 2 to 4.
 *
 * What a SIGKILL leaves behind is read by the same rule: a record that was being
 * stored is not covered by commit, a chunk that was being made has generation 0.
 *
 * DEFINITIONS are never moved nor overwritten. An entry of DEF_DIR counts when
 * its `offset` is not 0; it was stored last, in release order. Entries that were
 * reserved and never finished stay 0 and are stepped over. A definition is
 * complete before the first record that uses it is committed, so a reader that
 * copies chunks first and definitions afterwards finds them all.
 *
 * A reader trusts nothing: every offset, size, count and id is checked against
 * the file's size before use.
 */
#ifndef TACHO_FORMAT_BOX_H
#define TACHO_FORMAT_BOX_H

#include <stdint.h>

#include "format/record.h"
#include "tacho_values.h"

#define TACHO_BOX_MAGIC "TACHOBOX"
#define TACHO_BOX_VERSION 2u /* 1: without packed records */
#define TACHO_BOX_SUPER_SIZE 4096u
#define TACHO_BOX_ALIGN 4096u /* of regions; the pool is aligned to TACHO_SLOT_SIZE */

#define TACHO_SLOT_SIZE 65536u /* a whole chunk */
#define TACHO_SMALL_SIZE 4096u /* a small chunk: 16 to the slot */
#define TACHO_SMALL_PER_SLOT (TACHO_SLOT_SIZE / TACHO_SMALL_SIZE)

#define TACHO_BOX_MIN_BYTES (1ull << 20)
#define TACHO_BOX_MAX_BYTES (1ull << 36)

enum tacho_region {
	TACHO_REGION_CONTROL,
	TACHO_REGION_LOSSES,
	TACHO_REGION_TRIGGERS,
	TACHO_REGION_CRASHES,
	TACHO_REGION_THREADS,
	TACHO_REGION_HISTOGRAMS,
	TACHO_REGION_DEF_DIR,
	TACHO_REGION_DEF_BUCKETS,
	TACHO_REGION_DEF_DATA,
	TACHO_REGION_SLOTS,
	TACHO_REGION_POOL,
	TACHO_REGION_UNDERWAY, /* boxes of before have none */
	TACHO_REGION_COUNT
};

struct tacho_box_region {
	uint64_t offset;
	uint64_t size;	     /* bytes in use: entry_size * count */
	uint32_t entry_size; /* of one element; DEF_DATA: 1 */
	uint32_t count;
};

/* The same instant on three clocks. */
struct tacho_anchor {
	uint64_t ticks;
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint64_t real_ns; /* CLOCK_REALTIME; 0: not taken */
};

/* Where events come from. Each says in the superblock how it stands. */
enum tacho_source {
	TACHO_SOURCE_API,
	TACHO_SOURCE_CRASH_HANDLER,
	TACHO_SOURCE_WAITS,
	TACHO_SOURCE_THREADS,
	TACHO_SOURCE_LOCKS,
	TACHO_SOURCE_CALLS,
	TACHO_SOURCE_LIBUV,
	TACHO_SOURCE_LIBEVENT,
	TACHO_SOURCE_CPU_SAMPLES,
	TACHO_SOURCE_SCHED,
	TACHO_SOURCE_COUNT,
};
#define TACHO_SOURCE_MAX 32u

struct tacho_box_source {
	uint16_t state; /* enum tacho_source_state */
	uint16_t reserved;
	int32_t error; /* errno */
};

/* What the box may take of the memory that it shares with others. */
#define TACHO_BOX_LIMITS 8u
struct tacho_box_room {
	uint64_t granted; /* bytes that it has or may take without asking */
	/* Memory limits that it counts against: inodes of cgroups, or 2^64 - 1: of the machine. */
	uint64_t limits[TACHO_BOX_LIMITS];
	uint64_t
		kept_at; /* bytes below max_bytes at which they keep it; `reason` says why. 0: none */
};

#define TACHO_ABORTED_MAX 256u
#define TACHO_BOX_LINE_MAX 1024u
struct tacho_box_super {
	char magic[8];
	uint32_t version;
	uint32_t super_size;
	uint64_t box_size; /* of the whole file: the budget */
	uint32_t state;	   /* enum tacho_state */
	int32_t error;	   /* errno behind state OFF or a box that could not grow; else 0 */
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time; /* of the process, in clock ticks since boot (/proc/PID/stat) */
	uint8_t boot_id[16];
	uint32_t clock; /* enum tacho_clock */
	uint32_t region_count;
	struct tacho_anchor created;
	uint64_t min_age_ns;
	uint64_t poll_threshold_ns;
	uint32_t slot_size;
	uint32_t small_size;
	uint32_t slots_used;   /* slots 0..slots_used-1 have been in use */
	uint32_t threads_used; /* likewise for THREADS */
	uint32_t hists_used;
	uint32_t threads_seen;	/* thread numbers handed out */
	uint32_t next_def;	/* ids 1..next_def-1 were reserved */
	uint32_t trigger_count; /* triggers so far; the ring keeps the newest */
	uint64_t def_bytes;	/* bytes of DEF_DATA reserved */
	uint64_t generation;	/* last generation handed out */
	uint64_t recording;	/* number that all boxes of one `tacho run` share, or 0 */
	uint32_t keep;		/* 1: the program asked that the box stay when it ends in order */
	uint32_t reserved2;
	uint64_t reserved0[2];
	struct tacho_box_region regions[16];
	struct tacho_box_source sources[TACHO_SOURCE_MAX];
	uint32_t parent_pid; /* of a box made after fork: the process forked from; else 0 */
	uint8_t build_id_size;
	uint8_t whole_arguments; /* 1: credentials in command_line were not replaced */
	uint8_t reserved1[2];
	uint8_t build_id[20];
	char comm[16];
	char service[64];
	char exe[512];	  /* zero-terminated, as all text here */
	char reason[256]; /* a sentence, for state OFF and for degraded recording */
	uint32_t reserved3;
	char aborted[TACHO_ABORTED_MAX]; /* what the C library said when it aborted the program */
	/* The arguments, with spaces between them; cut, and without credentials (base/redact.h). */
	char command_line[TACHO_BOX_LINE_MAX];
	struct tacho_box_room room; /* boxes of before have zeros */
};

/*
 * Conditions that the recorder watches for an agent, because what they compare is at hand
 * where it records. One that holds fires: a trigger is stored, with the sentinel in its
 * flags, and the agent is woken.
 */
enum tacho_sentinel {
	TACHO_SENTINEL_POLL,  /* ns that a poll took; where callbacks are not seen, a turn */
	TACHO_SENTINEL_WAKE,  /* ns from the wake of a task to its poll */
	TACHO_SENTINEL_LAG,   /* ns of a turn, and ns by which a timer was late */
	TACHO_SENTINEL_SCHED, /* ns that a slow poll was runnable but did not run */
	TACHO_SENTINEL_QUEUE, /* depth of a loop's queue; work that waits for a pool's thread */
	TACHO_SENTINEL_COUNT
};
#define TACHO_SENTINEL_MAX 16u

/*
 * Written by agents as well; the recorder trusts none of it for memory safety. Each word has
 * one writer, the recorder (R) or the agent (A), except `idle`. The recorder looks at
 * `config` and `idle` when a loop unparks, and at `config` when a chunk is taken. A box that is made
 * for a `tacho run` that watches for something has its limits, armed, before its magic.
 */
struct tacho_box_control {
	uint32_t wake_seq;  /* R: futex; grows when something wants attention */
	uint32_t agent_pid; /* A: an agent that looks after this box, or 0 */
	uint32_t config;    /* A: grows after a change of `limit` or `follow` */
	uint32_t idle;	    /* A: 1: wake me when a loop unparks; R: 0, when it does so */
	uint32_t follow;    /* A: wake me after so many sealed chunks; 0: don't */
	uint32_t sealed;    /* R: chunks sealed so far */
	uint64_t limit[TACHO_SENTINEL_MAX];	 /* A: fires above this; 0: off */
	uint32_t armed[TACHO_SENTINEL_MAX];	 /* A: grows when it wants to hear (again) */
	uint32_t fired[TACHO_SENTINEL_MAX];	 /* R: `armed` when it fired last */
	uint64_t suppressed[TACHO_SENTINEL_MAX]; /* R: how often it held since, unheard */
	uint32_t unrecorded; /* R: programs that it started past its hooks, without the library */
	uint32_t reserved0;
	uint64_t reserved[12];
};

enum tacho_loss {
	TACHO_LOSS_NO_CHUNK,		/* records dropped: every chunk was owned */
	TACHO_LOSS_NO_THREAD,		/* records dropped: no place for their thread */
	TACHO_LOSS_NESTING,		/* records dropped: signal handlers nested too deeply */
	TACHO_LOSS_DEFS_FULL,		/* definitions that became "(names full)" */
	TACHO_LOSS_TEXT_CUT,		/* names and texts that were cut */
	TACHO_LOSS_STACK_CUT,		/* stacks that were cut */
	TACHO_LOSS_OVERWRITTEN_RECORDS, /* records that made room for newer ones */
	TACHO_LOSS_OVERWRITTEN_CHUNKS,
	TACHO_LOSS_MIN_AGE,	/* chunks overwritten although younger than min_age */
	TACHO_LOSS_GROW,	/* slots that tmpfs had no room for */
	TACHO_LOSS_CLOCK_BACK,	/* clock reads that were before the last; taken as equal */
	TACHO_LOSS_MODULES,	/* modules that could not be read or kept */
	TACHO_LOSS_HIST_FULL,	/* short polls recorded in full: no histogram left */
	TACHO_LOSS_RECORD_BIG,	/* records dropped: larger than a record may be */
	TACHO_LOSS_ABANDONED,	/* streams left in the middle of a record (longjmp, cancel) */
	TACHO_LOSS_UNWIND,	/* stacks that were asked for and could not be taken */
	TACHO_LOSS_NOT_SAMPLED, /* threads that got no timer for CPU samples */
	TACHO_LOSS_COUNT
};
#define TACHO_LOSS_MAX 64u

#define TACHO_TRIGGERS 64u
#define TACHO_REASON_MAX 200u
struct tacho_box_trigger {
	uint32_t number; /* from 1; stored last. 0: free or being stored */
	uint32_t tid;
	uint64_t ticks;
	uint32_t size;	/* bytes of reason */
	uint32_t flags; /* TACHO_DEF_CUT; bits 8..15: enum tacho_sentinel that fired + 1, or 0 */
	char reason[TACHO_REASON_MAX];
	uint64_t value; /* of a sentinel: what was above its limit, in the limit's unit */
	uint8_t reserved[24];
};
#define TACHO_TRIGGER_SENTINEL(flags) (((flags) >> 8) & 0xffu)

#define TACHO_CRASHES 8u
#define TACHO_CRASH_REGS 34u
#define TACHO_CRASH_FRAMES 64u
enum tacho_crash_state {
	TACHO_CRASH_FREE = 0,
	TACHO_CRASH_BEGUN = 1, /* signal and address are there */
	TACHO_CRASH_REGS_DONE = 2,
	TACHO_CRASH_STACK_DONE = 3,
};
struct tacho_box_crash {
	uint32_t state; /* enum tacho_crash_state */
	uint32_t tid;
	int32_t signal;
	int32_t code;	  /* si_code */
	uint64_t address; /* si_addr */
	uint64_t ticks;
	char thread_name[16];
	uint32_t regs;	 /* in use: x86-64 gregs order of <sys/ucontext.h>; arm64 x0-x30, sp, pc,
			    pstate */
	uint32_t frames; /* in use */
	uint32_t arch;	 /* ELF e_machine */
	uint32_t flags;	 /* TACHO_CRASH_UNWIND_FAILED etc. */
	uint64_t reg[TACHO_CRASH_REGS];
	uint64_t frame[TACHO_CRASH_FRAMES]; /* innermost first */
};
#define TACHO_CRASH_UNWIND_FAILED 1u /* the stack was damaged; frames are what was got */
#define TACHO_CRASH_SURVIVED 2u	     /* the process ended in order later */
/* Bits 8..15: it was raised in a handler, and this frame is what that interrupted; 0: none. */
#define TACHO_CRASH_INTERRUPTED(flags) (((flags) >> 8) & 0xffu)

enum tacho_thread_state {
	TACHO_THREAD_FREE = 0,
	TACHO_THREAD_LIVE = 1,
	TACHO_THREAD_ENDED = 2, /* the entry may be taken again */
};

#define TACHO_NO_CHUNK 0xffffffffu
struct tacho_box_thread {
	uint32_t state;
	uint32_t number; /* never used again in this box */
	uint32_t tid;
	uint32_t chunk; /* of stream 0: offset in the pool / small_size, or TACHO_NO_CHUNK */
	uint64_t start_ticks;
	/* A poll that is still so short that it may yet be only counted (poll threshold).
	   pending_kind is stored last, and cleared when the poll was counted or its begin is
	   recorded. */
	uint64_t pending_task;
	uint64_t pending_ticks;
	uint32_t pending_kind;
	uint32_t drops; /* records of this thread dropped since its last chunk began */
	char name[16];
};

/*
 * What a thread is in that gets a record only when it has returned, and who holds what it waits
 * for: known so when the process ends or hangs. Either half counts when its `since` is not 0, which
 * is stored last and taken back before the record that follows.
 */
struct tacho_box_underway {
	uint64_t call_since; /* ticks, or TACHO_UNDERWAY_UNTIMED: after all that it recorded */
	uint64_t call_at;    /* code: in the instruction that called */
	uint64_t call_on;    /* descriptor, process or thread, or 2^64 - 1: none */
	uint32_t call;	     /* name: a definition */
	uint32_t wait_owner; /* tid that had the lock when the wait began; 0: not known; or
				TACHO_UNDERWAY_SIGNAL: it is a condition variable or semaphore */
	uint64_t wait_since; /* ticks */
	uint64_t wait_lock;
	uint64_t reserved[2];
};
#define TACHO_UNDERWAY_UNTIMED UINT64_C(1)
#define TACHO_UNDERWAY_SIGNAL UINT32_MAX

/* Short polls of one kind on one loop by one thread, since `since`. */
struct tacho_box_hist {
	uint32_t kind; /* 0: free */
	uint32_t loop;
	uint32_t thread; /* number */
	uint32_t reserved;
	uint64_t since; /* ticks; a TACHO_REC_POLL_HIST record of this thread with the same
			   kind, loop and since already holds these counts */
	uint64_t total; /* ticks */
	uint32_t count[TACHO_HIST_BUCKETS];
	uint8_t reserved1[64];
};

struct tacho_box_def {
	uint32_t offset; /* in DEF_DATA / 8, plus 1; stored last. 0: not there */
	uint16_t size;	 /* bytes of payload */
	uint8_t class;	 /* enum tacho_definition_class */
	uint8_t flags;	 /* TACHO_DEF_* */
	uint32_t hash;
	uint32_t next; /* id of the next in the chain, 0 ends it */
};

/*
 * state: bits 0..1  shape: 0 unused, 1 whole, 2 split
 *        bit  2     spare: passed over once by the hand (see src/core/pool.c)
 *        bits 8..23 open: chunk i belongs to a thread (whole: bit 8)
 *        bits 24..39 taken: small chunk i was given out since the split
 *        bits 40..63 shape count: grows with each change of shape
 */
struct tacho_box_slot {
	uint64_t state;
	uint32_t pages; /* bit i: small_size part i has memory behind it */
	uint32_t reserved;
};
#define TACHO_SLOT_UNUSED 0u
#define TACHO_SLOT_WHOLE 1u
#define TACHO_SLOT_SPLIT 2u
#define TACHO_SLOT_SHAPE(s) ((unsigned)((s)&3))
#define TACHO_SLOT_SHAPE_COUNT(s) ((uint32_t)((s) >> 40))

#define TACHO_CHUNK_MAGIC 0x504e4843u	/* "CHNP" */
#define TACHO_CHUNK_MAGIC_1 0x4b4e4843u /* "CHNK": without packed records */
#define TACHO_STREAMS 3u

enum tacho_chunk_flag {
	TACHO_CHUNK_SEALED = 1, /* records and last_ticks are there; nothing more will be stored */
	TACHO_CHUNK_PARKED = 2, /* at the beginning of the chunk the thread was parked on loop */
};

/* A poll or span that was open when the chunk began. */
struct tacho_open {
	uint32_t id;	/* kind, or name of the span */
	uint32_t what;	/* TACHO_REC_POLL_BEGIN or TACHO_REC_SPAN_BEGIN */
	uint64_t task;	/* of a poll */
	uint64_t since; /* ticks */
};

struct tacho_chunk {
	uint64_t generation;
	uint64_t commit; /* valid bytes from the start of the chunk */
	uint32_t magic;
	uint32_t size;	 /* of the chunk */
	uint32_t thread; /* number */
	uint32_t tid;
	uint32_t flags; /* TACHO_CHUNK_* */
	uint16_t stream;
	uint16_t open_count; /* polls and spans open at the beginning, also those that found no
				room in open[] (the innermost are left out) */
	uint32_t sequence; /* of the chunks of this stream, from 0: a hole is an overwritten one */
	uint32_t loop;	   /* that the thread runs or last ran, or 0 */
	struct tacho_anchor anchor; /* base of the first delta; real_ns is not taken */
	uint64_t last_ticks;	    /* of the last record, once sealed */
	uint64_t prior_records;	    /* that this stream stored before this chunk */
	uint32_t records;	    /* once sealed */
	uint32_t drops;		    /* records of this thread dropped just before this chunk */
	char name[16];		    /* of the thread */
	struct tacho_open open[TACHO_OPEN_MAX]; /* outermost first */
	/* Since when it is PARKED; else, since when it is not parked, 0: it never was. */
	uint64_t park_ticks;
	uint64_t reserved[2];
};

#define TACHO_CHUNK_HEAD 256u
_Static_assert(sizeof(struct tacho_chunk) == TACHO_CHUNK_HEAD, "chunk header is 256 bytes");
_Static_assert(sizeof(struct tacho_box_super) <= TACHO_BOX_SUPER_SIZE, "superblock fits a page");
_Static_assert(sizeof(struct tacho_box_thread) == 64, "thread entry is 64 bytes");
_Static_assert(sizeof(struct tacho_box_underway) == 64, "what is under way is 64 bytes");
_Static_assert(sizeof(struct tacho_box_hist) == 256, "histogram is 256 bytes");
_Static_assert(sizeof(struct tacho_box_trigger) == 256, "trigger is 256 bytes");
_Static_assert(sizeof(struct tacho_box_def) == 16, "directory entry is 16 bytes");
_Static_assert(sizeof(struct tacho_box_slot) == 16, "slot entry is 16 bytes");

#endif
