/*
 * Execution traces of Go 1.22 and later (the format that its sources call v2).
 *
 *   header       16 bytes: "go 1.NN trace", three zeros
 *   batches      byte 1, then as LEB128: generation, thread (M), base time, size; then the bytes.
 *                Byte 49 (from 1.23 on): of an experiment, with a byte that says which: left out
 *   byte 52      from 1.26 on: the end of a generation
 *
 * A generation is about a second, complete in itself: its texts, stacks, CPU samples and clock are
 * in batches that begin with byte 4, 2, 6 and 8 (50 from 1.25 on), mostly at its end; all other
 * batches are events of their M. So a generation is read as a whole (go_wire.c), then its events
 * are put in order (go_order.c) and told to the trace that is made (go_emit.c).
 *
 * THE ORDER. Times of different CPUs may contradict each other; the truth is the order in the
 * batches of an M, and numbers on what is done to a goroutine or P from elsewhere. Of the next
 * events of all Ms the earliest is taken that fits the state of its M, P and goroutine. Where none
 * fits, or an event contradicts the state, the trace lacks something: the earliest is then believed,
 * the state put right by it, and that is counted.
 */
#ifndef TACHO_IMPORT_GO_H
#define TACHO_IMPORT_GO_H

#include <stddef.h>
#include <stdint.h>

#include "import/import.h"
#include "import/stream.h"
#include "write/trace_output.h"

#define GO_NONE UINT64_MAX /* no thread, no P, no goroutine */
#define GO_ARGS 5u
#define GO_FRAMES 128u
#define GO_REGIONS 8u /* of a goroutine, inside of each other; deeper ones are left out */
#define GO_MARKS 8u   /* polls of a goroutine whose kind is not known yet */

enum go_type {
	GO_EVENT_BATCH = 1,
	GO_STACKS = 2,
	GO_STACK = 3,
	GO_STRINGS = 4,
	GO_STRING = 5,
	GO_CPU_SAMPLES = 6,
	GO_CPU_SAMPLE = 7,
	GO_FREQUENCY = 8,
	GO_PROCS_CHANGE = 9,
	GO_PROC_START = 10,
	GO_PROC_STOP = 11,
	GO_PROC_STEAL = 12,
	GO_PROC_STATUS = 13,
	GO_CREATE = 14,
	GO_CREATE_SYSCALL = 15,
	GO_START = 16,
	GO_DESTROY = 17,
	GO_DESTROY_SYSCALL = 18,
	GO_STOP = 19,
	GO_BLOCK = 20,
	GO_UNBLOCK = 21,
	GO_SYSCALL_BEGIN = 22,
	GO_SYSCALL_END = 23,
	GO_SYSCALL_END_BLOCKED = 24,
	GO_STATUS = 25,
	GO_STW_BEGIN = 26,
	GO_STW_END = 27,
	GO_GC_ACTIVE = 28,
	GO_GC_BEGIN = 29,
	GO_GC_END = 30,
	GO_SWEEP_ACTIVE = 31,
	GO_SWEEP_BEGIN = 32,
	GO_SWEEP_END = 33,
	GO_ASSIST_ACTIVE = 34,
	GO_ASSIST_BEGIN = 35,
	GO_ASSIST_END = 36,
	GO_HEAP_ALLOC = 37,
	GO_HEAP_GOAL = 38,
	GO_LABEL = 39,
	GO_TASK_BEGIN = 40,
	GO_TASK_END = 41,
	GO_REGION_BEGIN = 42,
	GO_REGION_END = 43,
	GO_LOG = 44,
	GO_SWITCH = 45,
	GO_SWITCH_DESTROY = 46,
	GO_CREATE_BLOCKED = 47,
	GO_STATUS_STACK = 48,
	GO_EXPERIMENTAL_BATCH = 49,
	GO_SYNC = 50,
	GO_CLOCK_SNAPSHOT = 51,
	GO_END_OF_GENERATION = 52,
};

enum go_proc_status { GO_P_RUNNING = 1, GO_P_IDLE = 2, GO_P_SYSCALL = 3, GO_P_ABANDONED = 4 };
enum go_status { GO_G_RUNNABLE = 1, GO_G_RUNNING = 2, GO_G_SYSCALL = 3, GO_G_WAITING = 4 };

/* Numbers by key, none of which is GO_NONE; each stands for an entry of an array. */
struct go_map {
	uint64_t *key;
	uint32_t *value; /* entry + 1; 0: free; UINT32_MAX: was removed */
	uint32_t capacity, used;
};
#define GO_MAP_NO UINT32_MAX
uint32_t go_map_find(const struct go_map *m, uint64_t key);
int go_map_put(struct go_map *m, uint64_t key, uint32_t value);
void go_map_remove(struct go_map *m, uint64_t key);
void go_map_clear(struct go_map *m);
void go_map_free(struct go_map *m);

/* ---------------------------------------------------------------- go_wire.c */

struct go_batch {
	uint64_t m, time;
	size_t at; /* in bytes of the generation */
	uint32_t size;
};

struct go_stack {
	size_t at; /* of its frames, in bytes of the generation */
	uint32_t frames;
	uint32_t end;	  /* bytes after `at` that may be theirs */
	uint32_t defined; /* in the trace that is made; 0: not yet */
};

struct go_sample {
	uint64_t time, m, p, g, stack;
};

struct go_frame {
	const char *function, *file;
	uint32_t line;
};

struct go_generation {
	uint64_t number;
	struct tacho__bytes bytes;
	struct go_batch *batches; /* of events */
	uint32_t batch_count, batch_capacity;
	size_t *strings; /* in texts, each ended by a zero */
	uint32_t string_count, string_capacity;
	struct tacho__bytes texts;
	struct go_map string_map, stack_map;
	struct go_stack *stacks;
	uint32_t stack_count, stack_capacity;
	struct go_sample *samples;
	uint32_t sample_count, sample_capacity;
	uint64_t frequency, min_time;
	uint64_t snapshot_time, snapshot_mono, snapshot_wall; /* 0: none */
};

/* Reads LEB128 from *at, which it moves; 0 when what is there is none. */
int go_number(const uint8_t **at, const uint8_t *end, uint64_t *out);
/* How many numbers follow the type of an event, its time included; 0: there is no such event. */
unsigned go_arguments(unsigned version, unsigned type);

const char *go_string(const struct go_generation *g, uint64_t id); /* "" not known */
/* How many frames, innermost first. */
uint32_t go_frames(const struct go_generation *g, uint64_t stack, struct go_frame out[GO_FRAMES]);

/* ------------------------------------------------------------------- state */

struct go_m {
	uint64_t id, p, g; /* GO_NONE: none */
};

struct go_p {
	uint64_t id;
	uint8_t status; /* enum go_proc_status; 0: not known */
	uint8_t parked; /* as it was told */
	uint64_t generation, seq;
	/* What was told of it. */
	uint32_t thread, loop;
	uint64_t unparked_ns; /* not told yet: it may find nothing to do; 0: nothing to tell */
	uint64_t polled;      /* goroutine, GO_NONE: none */
	uint64_t sweep;	      /* span; 0: none */
};

struct go_g {
	uint64_t id;
	uint8_t status; /* enum go_status; 0: not known */
	uint8_t marks;
	uint8_t regions;
	uint64_t generation, seq;
	uint32_t kind; /* definition; 0: not known yet */
	uint32_t syscall_stack, syscall_name;
	uint64_t syscall_ns; /* when it began; 0: not known */
	uint64_t assist;     /* span; 0: none */
	struct {
		uint32_t thread, index;
	} mark[GO_MARKS];
	struct {
		uint64_t span;
		uint32_t name;
	} region[GO_REGIONS];
	uint32_t next_free;
};

struct go_event {
	uint64_t ns;
	uint64_t args[GO_ARGS];
	uint8_t type;
};

struct go {
	struct tacho__importing *importing;
	struct tacho__made *made;
	struct tacho__stream *stream;
	unsigned version;
	struct go_generation now;
	struct {
		uint64_t number; /* 0: none */
		struct go_batch batch;
		uint8_t *data;
		uint8_t experimental;
	} spilled;
	uint64_t first_generation;
	uint64_t last_ns;
	int cut;   /* this generation is not whole */
	int ended; /* there is none after it */

	struct go_m *ms;
	uint32_t m_count, m_capacity;
	struct go_p *ps;
	uint32_t p_count, p_capacity;
	struct go_g *gs;
	uint32_t g_count, g_capacity, g_free; /* first free entry + 1; 0: none */
	struct go_map m_map, p_map, g_map, task_map;

	uint64_t gc_seq, gc_span, stw_span, spans;
	uint32_t stw_name;
	int gc_state;	/* 0 not known, 1 on, 2 off */
	uint32_t apart; /* thread for what Ms without a P do; 0: none yet */

	uint64_t forced;   /* events that contradicted the state, or that nothing led to */
	uint64_t left_out; /* events that this has no room for */
	uint64_t unread;   /* batches of which a part could not be read */
	uint64_t counts[256];
};

/* NULL: out of memory, or too many. */
struct go_m *go_m(struct go *go, uint64_t id);
struct go_p *go_p(struct go *go, uint64_t id);
struct go_g *go_g(struct go *go, uint64_t id);	    /* made if it is not there */
struct go_g *go_g_find(struct go *go, uint64_t id); /* or NULL */
void go_g_remove(struct go *go, struct go_g *g);

/* go_order.c: tells all events of the generation. */
int go_order(struct go *go);

/* go_emit.c: what happened, in order. `p`: where, NULL: on an M without one. */
uint32_t go_stack_defined(struct go *go, uint64_t stack);
void go_tell_proc(struct go *go, struct go_p *p, uint64_t ns);
void go_tell_unpark(struct go *go, struct go_p *p, uint64_t ns);
void go_tell_park(struct go *go, struct go_p *p, uint64_t ns);
void go_tell_running(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns);
void go_tell_create(struct go *go, struct go_p *p, const struct go_event *e, struct go_g *made,
		    uint64_t parent);
void go_tell_start(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns);
void go_tell_destroy(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns);
void go_tell_stop(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e);
void go_tell_block(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, const char *reason,
		   uint64_t stack);
void go_tell_waiting(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, uint64_t stack);
void go_tell_wake(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns, uint64_t stack);
void go_tell_syscall(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e);
void go_tell_syscall_end(struct go *go, struct go_p *p, struct go_g *g, uint64_t ns);
void go_tell_other(struct go *go, struct go_p *p, struct go_g *g, const struct go_event *e);
void go_tell_sample(struct go *go, const struct go_sample *s, uint64_t ns);

#endif
