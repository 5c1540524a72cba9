/*
 * tacho.h - the flight recorder for asynchronous programs: recording.
 *
 * This header is the manual. Link with -ltacho. C11 and C++17, x86-64 and arm64
 * Linux.
 *
 * A process that records maps one file on tmpfs, its box, and its threads store
 * records into it. The box has one size, chosen at the start; when it is full the
 * oldest records make room. Nothing else is added to the process: no thread, no
 * lock, no allocator, no descriptor. The window of the last seconds can be taken
 * at any time from outside (`tacho dump PID`), from inside (tacho_snapshot), by
 * the crash handler, and after the process is gone (`tacho recover`).
 *
 *	static struct tacho_name loop = TACHO_LOOP("main");
 *	static struct tacho_name read_request = TACHO_KIND("read_request");
 *
 *	tacho_start(NULL);
 *	...
 *	tacho_park(&loop);
 *	n = epoll_wait(...);
 *	tacho_unpark(&loop, n);
 *	...
 *	tacho_poll_begin(&read_request, task_id);
 *	run_task(task);
 *	tacho_poll_end(TACHO_PENDING);
 *
 * COST. While recording, a call costs one read of the clock and a few stores (about
 * 10 ns where the clock is the TSC). It makes no system call, takes no lock and
 * allocates nothing, except that one call in some thousands changes to the next
 * chunk, which takes some microseconds, and that the first use of a name defines
 * it. When recording is off or paused, a call is one predictable branch.
 *
 * SAFETY. Unless a call says otherwise it may be made from any thread and from
 * signal handlers, does not change errno, is no point of cancellation, and cannot
 * fail: what finds no room is counted, and the trace says so. After fork the child
 * records into a box of its own; after vfork the child's records are its parent's.
 * A child made by clone(2) with CLONE_VM that runs beside its parent must have its
 * own thread-local storage (CLONE_SETTLS) to record.
 */
#ifndef TACHO_H
#define TACHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tacho_values.h"

#define TACHO_VERSION_MAJOR 0
#define TACHO_VERSION_MINOR 1
#define TACHO_VERSION_PATCH 0
#define TACHO_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

#define TACHO_API __attribute__((visibility("default")))

/* ------------------------------------------------------- start and stop */

/*
 * Options of tacho_start. Set `size` to sizeof(struct tacho_options) and the rest
 * to zero, then what is wanted; TACHO_OPTIONS_INIT does that. Zero means the
 * default. Each can be set from the environment too, by the variable named
 * beside it, which then wins: the one who runs the program decides. A program that
 * has more rights than the one who runs it (setuid, setgid, file capabilities) does
 * not look at the environment.
 *
 * Bytes in the environment take K, M or G (1024 each); durations take ns, us, ms,
 * s, m or h. A value that is not understood is refused: recording stays off and
 * tacho_status says why.
 */
struct tacho_options {
	size_t size;

	/* TACHO_MAX_BYTES: size of the whole box. 1 MiB to 64 GiB, default 32 MiB.
	   Memory is taken from tmpfs step by step as it is needed. A box stays smaller
	   where it would harm the program: all boxes together leave at least half of
	   the file system free, and take at most 5 % (TACHO_MEMORY_SHARE, in percent)
	   of the memory limit of their cgroup. tacho_status says so. */
	uint64_t max_bytes;

	/* TACHO_MIN_AGE: the window that is wanted. While all older records fit this
	   age, the box takes no more memory but uses the oldest part again. When
	   max_bytes forces out younger records, that is counted. Default 0: the
	   window is as long as max_bytes allows. */
	uint64_t min_age_ns;

	/* TACHO_POLL_THRESHOLD: polls shorter than this, in which nothing else was
	   recorded, are counted in a histogram per kind and loop instead of being
	   recorded one by one. Default 0: every poll is recorded. */
	uint64_t poll_threshold_ns;

	/* TACHO_BOX_DIR: where the box is made; must be on tmpfs. Default:
	   /dev/shm/tacho-<uid>, else $XDG_RUNTIME_DIR/tacho or /run/user/<uid>/tacho. */
	const char *box_dir;

	/* TACHO_SERVICE: a name for this program, shown by the tools. At most 63 bytes. */
	const char *service;

	/* TACHO_CRASH_FILE: install the crash handler, see tacho_crash_handler. */
	const char *crash_file;

	/* TACHO_CLOCK=auto|monotonic. */
	uint32_t clock;
#define TACHO_CLOCK_OPTION_AUTO 0
#define TACHO_CLOCK_OPTION_MONOTONIC 1

	/* TACHO_KEEP_BOX=1: leave the box behind when the process ends in order (exit,
	   return from main) or tacho_stop is called. A process that ends otherwise
	   always leaves its box. */
	uint32_t keep_box;

	/* TACHO_DEAD_BOXES: how many boxes of dead processes may lie in the folder; when a
	   box is made, the oldest above that are deleted. Default 8. */
	uint32_t dead_boxes;

	uint32_t reserved;
};
#define TACHO_OPTIONS_INIT                                                 \
	{                                                                  \
		sizeof(struct tacho_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
	}

/*
 * Starts recording. `options` may be NULL. TACHO=off in the environment keeps it
 * off whatever the program asks. Not for signal handlers.
 *
 * Returns 0, or a negative errno: then recording is off, every call of this header
 * still works (as a branch), and tacho_status tells the reason in a sentence.
 *   -EINVAL    an option or variable was not understood
 *   -EALREADY  recording already
 *   -ECANCELED switched off by TACHO=off
 *   else what making the box met: -ENOSPC, -EACCES, ...
 */
TACHO_API int tacho_start(const struct tacho_options *options);

/*
 * Ends recording for good and removes the box (see keep_box). Records that other
 * threads are storing at this moment may or may not be in it. tacho_start may be
 * called again and makes a new box. Each cycle leaves the address space (not the
 * memory) of the old box behind: for switching on and off use pause and resume.
 * Not for signal handlers.
 */
TACHO_API void tacho_stop(void);

/* Recording rests, the window stays. The trace says when. */
TACHO_API void tacho_pause(void);
TACHO_API void tacho_resume(void);

struct tacho_status_info {
	size_t size;
	uint32_t state;	  /* enum tacho_state */
	int32_t error;	  /* errno behind OFF, or behind a box that could not grow; else 0 */
	char reason[256]; /* a sentence; "" when all is well */
	char box[256];	  /* path of the box; "" without one */
	uint64_t max_bytes;
	uint64_t used_bytes;	      /* memory that the box holds now */
	uint64_t overwritten_records; /* made room for newer ones */
	uint64_t dropped_records;     /* never found room: lost */
	uint32_t definitions;
	uint32_t threads; /* that have recorded so far */
};

/* Fills `status` (set its size first). Returns 0 or -EINVAL. Async-signal-safe. */
TACHO_API int tacho_status(struct tacho_status_info *status);

/* ---------------------------------------------------------------- names */

/*
 * What loops, kinds of tasks, spans, counters and places are called. A name is a
 * variable of the program with static or otherwise lasting storage, initialised
 * by one of the macros and handed to the calls by address:
 *
 *	static struct tacho_name accept_kind = TACHO_KIND("accept");
 *
 * It is written into the box at its first use while recording. Texts are cut
 * at 255 bytes. Two names of the same class, text and place are one, except loops.
 */
struct tacho_name {
	uint32_t id; /* 0 until first use; private */
	uint8_t name_class;
	uint8_t detail;
	uint16_t reserved;
	uint32_t line;
	uint32_t reserved1;
	const char *text;
	const char *file;
	const char *unit;
	const void *address; /* of the function, where there is one: shown by its symbol */
};

#define TACHO__NAME(class_, detail_, text_, unit_, address_)                         \
	{                                                                            \
		0, class_, detail_, 0, __LINE__, 0, text_, __FILE__, unit_, address_ \
	}
#define TACHO_TEXT(text) TACHO__NAME(TACHO_DEF_TEXT, 0, text, 0, 0)
#define TACHO_KIND(text) TACHO__NAME(TACHO_DEF_KIND, 0, text, 0, 0)
#define TACHO_KIND_OF(text, function) \
	TACHO__NAME(TACHO_DEF_KIND, 0, text, 0, (const void *)(function))
#define TACHO_LOOP(text) TACHO__NAME(TACHO_DEF_LOOP, TACHO_LEVEL_API, text, 0, 0)
#define TACHO_SPAN_NAME(text) TACHO__NAME(TACHO_DEF_SPAN, 0, text, 0, 0)
#define TACHO_COUNTER(text, unit) TACHO__NAME(TACHO_DEF_COUNTER, TACHO_VALUE_I64, text, unit, 0)
#define TACHO_GAUGE(text, unit) TACHO__NAME(TACHO_DEF_GAUGE, TACHO_VALUE_F64, text, unit, 0)
#define TACHO_PLACE(text) TACHO__NAME(TACHO_DEF_PLACE, 0, text, 0, 0)

/* This place in the code, as `struct tacho_name *`. */
#define TACHO_HERE                                                                           \
	(__extension__({                                                                     \
		static struct tacho_name tacho__here = TACHO_PLACE(0);                       \
		if (!__atomic_load_n(&tacho__here.text, __ATOMIC_RELAXED))                   \
			__atomic_store_n(&tacho__here.text, &__func__[0], __ATOMIC_RELAXED); \
		&tacho__here;                                                                \
	}))

/* What the calls below are made of. Private: programs call the inline functions. */
extern TACHO_API int tacho__on;
TACHO_API uint32_t tacho__define(struct tacho_name *name);
TACHO_API void tacho__loop(uint32_t loop);
TACHO_API void tacho__park(uint32_t loop);
TACHO_API void tacho__unpark(uint32_t loop, uint32_t ready);
TACHO_API void tacho__poll_begin(uint32_t kind, uint64_t task);
TACHO_API void tacho__poll_switch(uint32_t kind, uint64_t task);
TACHO_API void tacho__poll_end(uint32_t result);
TACHO_API void tacho__poll_end_park(uint32_t result, uint32_t loop);
TACHO_API void tacho__unpark_poll(uint32_t loop, uint32_t ready, uint32_t kind, uint64_t task);
TACHO_API void tacho__span_begin(uint32_t name);
TACHO_API void tacho__span_end(uint32_t name);
TACHO_API void tacho__put1(uint32_t type, uint32_t arg, uint64_t a);
TACHO_API void tacho__put2(uint32_t type, uint32_t arg, uint64_t a, uint64_t b);
TACHO_API void tacho__put(uint32_t type, uint32_t arg, uint64_t data, const uint64_t *words,
			  uint32_t count);
TACHO_API void tacho__log(uint32_t level, const char *text, size_t size);
TACHO_API uint32_t tacho__stack(void);
TACHO_API uint32_t tacho__stack_of(const uint64_t *frames, uint32_t count);

static inline int tacho__recording(void)
{
	return __builtin_expect(__atomic_load_n(&tacho__on, __ATOMIC_RELAXED), 0) != 0;
}

static inline uint32_t tacho__id(struct tacho_name *name)
{
	uint32_t id;

	if (!name)
		return 0;
	id = __atomic_load_n(&name->id, __ATOMIC_RELAXED);
	return __builtin_expect(id != 0, 1) ? id : tacho__define(name);
}

/* -------------------------------------------------------- loops, workers */

/* This thread runs `loop` from now on (NULL: none). Optional where the thread parks on
   it; a worker that never parks says so here. Under `tacho run`, blocking calls, CPU samples and
   scheduling are recorded of threads that say so, park or poll tasks. */
static inline void tacho_loop(struct tacho_name *loop)
{
	if (tacho__recording())
		tacho__loop(tacho__id(loop));
}

/* The thread is about to wait for events on behalf of `loop`. */
static inline void tacho_park(struct tacho_name *loop)
{
	if (tacho__recording())
		tacho__park(tacho__id(loop));
}

/* It is back, with `ready` events, tasks or wakes to handle (0: time-out or nothing). */
static inline void tacho_unpark(struct tacho_name *loop, uint32_t ready)
{
	if (tacho__recording())
		tacho__unpark(tacho__id(loop), ready);
}

/* Tasks that are queued for `loop` now. */
static inline void tacho_queue_depth(struct tacho_name *loop, uint64_t depth)
{
	if (tacho__recording())
		tacho__put1(0x47, tacho__id(loop), depth);
}

/* `thief` took `tasks` tasks from `victim`. */
static inline void tacho_steal(struct tacho_name *thief, struct tacho_name *victim, uint64_t tasks)
{
	if (tacho__recording())
		tacho__put2(0x81, tacho__id(thief), tacho__id(victim), tasks);
}

/* ----------------------------------------------------------------- tasks */

/*
 * A task is a number of 64 bits that the program chooses, such as its address;
 * between its spawn and its end it names one task. tacho_task_new gives numbers
 * that this process never uses twice, at the cost of a few instructions (also
 * when recording is off, so that tasks spawned then can be followed later).
 */
TACHO_API uint64_t tacho_task_new(void);

/* `task` was made. parent 0: no task; place NULL: that of the kind. */
static inline void tacho_task_spawn(uint64_t task, struct tacho_name *kind, uint64_t parent,
				    struct tacho_name *place)
{
	if (tacho__recording()) {
		uint64_t words[2];

		words[0] = task;
		words[1] = parent;
		tacho__put(0xc0, tacho__id(kind), tacho__id(place), words, 2);
	}
}

/* The thread runs `task` (a callback, a coroutine step) from now until poll_end. */
static inline void tacho_poll_begin(struct tacho_name *kind, uint64_t task)
{
	if (tacho__recording())
		tacho__poll_begin(tacho__id(kind), task);
}

/* TACHO_PENDING, TACHO_DONE or TACHO_UNKNOWN. */
static inline void tacho_poll_end(uint32_t result)
{
	if (tacho__recording())
		tacho__poll_end(result);
}

/* poll_end (result unknown) and poll_begin in one, with one read of the clock. */
static inline void tacho_poll_switch(struct tacho_name *kind, uint64_t task)
{
	if (tacho__recording())
		tacho__poll_switch(tacho__id(kind), task);
}

/* poll_end and park in one, with one read of the clock: where a runtime waits right after a poll. */
static inline void tacho_poll_end_park(uint32_t result, struct tacho_name *loop)
{
	if (tacho__recording())
		tacho__poll_end_park(result, tacho__id(loop));
}

/* unpark and poll_begin in one, with one read of the clock: where a runtime runs `task` at once. */
static inline void tacho_unpark_poll(struct tacho_name *loop, uint32_t ready,
				     struct tacho_name *kind, uint64_t task)
{
	if (tacho__recording())
		tacho__unpark_poll(tacho__id(loop), ready, tacho__id(kind), task);
}

/* `task` can go on. Who woke it is what this thread is doing now. */
static inline void tacho_wake(uint64_t task)
{
	if (tacho__recording())
		tacho__put1(0x43, 0, task);
}

static inline void tacho_task_end(uint64_t task)
{
	if (tacho__recording())
		tacho__put1(0x44, 0, task);
}

/*
 * What a task that is about to be suspended waits for: a text or NULL, a resource
 * (an address, a descriptor, an id of the program's) or 0. With TACHO_WITH_STACK
 * the stack of the caller is taken too, which costs some microseconds; not in
 * signal handlers, and see tacho_stacks_prepare.
 */
#define TACHO_WITH_STACK 1u
static inline void tacho_task_waits(uint64_t task, struct tacho_name *what, uint64_t resource,
				    unsigned flags)
{
	if (tacho__recording()) {
		uint64_t words[2];

		words[0] = task;
		words[1] = resource;
		tacho__put(0xc1, tacho__id(what), (flags & TACHO_WITH_STACK) ? tacho__stack() : 0,
			   words, 2);
	}
}

/* ----------------------------------------------------------------- locks */

/* For lock types of one's own. `place` may be NULL or TACHO_HERE. */

/* The thread must wait for `lock` and begins to. Call it only when it has to wait. */
static inline void tacho_lock_wait(const void *lock, struct tacho_name *place)
{
	if (tacho__recording())
		tacho__put1(0x45, tacho__id(place), (uint64_t)(uintptr_t)lock);
}

/* It waited no longer: got the lock (1) or gave up (0). */
static inline void tacho_lock_waited(const void *lock, int got)
{
	if (tacho__recording())
		tacho__put1(0x46, got != 0, (uint64_t)(uintptr_t)lock);
}

/* The thread releases `lock` while others wait for it. */
static inline void tacho_lock_release(const void *lock, uint64_t waiters, struct tacho_name *place)
{
	if (tacho__recording())
		tacho__put2(0x80, tacho__id(place), (uint64_t)(uintptr_t)lock, waiters);
}

/* ----------------------------------------------------------------- spans */

/* A synchronous span begins and ends on one thread, within one poll; spans nest. */
static inline void tacho_span_begin(struct tacho_name *name)
{
	if (tacho__recording())
		tacho__span_begin(tacho__id(name));
}

static inline void tacho_span_end(struct tacho_name *name)
{
	if (tacho__recording())
		tacho__span_end(tacho__id(name));
}

static inline void tacho__span_cleanup(struct tacho_name **name)
{
	tacho_span_end(*name);
}

#define TACHO__JOIN2(a, b) a##b
#define TACHO__JOIN(a, b) TACHO__JOIN2(a, b)

/* A span from here to the end of the enclosing block: TACHO_SPAN("parse"); */
#define TACHO_SPAN(text)                                                                      \
	static struct tacho_name TACHO__JOIN(tacho__name_, __LINE__) = TACHO_SPAN_NAME(text); \
	__attribute__((cleanup(tacho__span_cleanup), unused)) struct tacho_name *TACHO__JOIN( \
		tacho__span_, __LINE__) = &TACHO__JOIN(tacho__name_, __LINE__);               \
	tacho_span_begin(TACHO__JOIN(tacho__span_, __LINE__))

/* An asynchronous span begins and ends anywhere; `span` is a number of the program's
   (tacho_task_new gives some), parent another span or 0. */
static inline void tacho_async_begin(struct tacho_name *name, uint64_t span, uint64_t parent)
{
	if (tacho__recording())
		tacho__put2(0x82, tacho__id(name), span, parent);
}

static inline void tacho_async_end(struct tacho_name *name, uint64_t span)
{
	if (tacho__recording())
		tacho__put1(0x49, tacho__id(name), span);
}

/* The 128-bit trace id of the program's tracing system, for the innermost synchronous
   span of the thread (span 0) or an asynchronous one. */
static inline void tacho_span_trace_id(uint64_t span, uint64_t high, uint64_t low)
{
	if (tacho__recording()) {
		uint64_t words[3];

		words[0] = span;
		words[1] = high;
		words[2] = low;
		tacho__put(0xc2, 0, 0, words, 3);
	}
}

/* --------------------------------------------- logs, counters and gauges */

/* A line of text, cut at 512 bytes. level: the program's own, 0 to 255. */
static inline void tacho_log(uint32_t level, const char *text)
{
	if (tacho__recording())
		tacho__log(level, text, (size_t)-1);
}

/* The same for `size` bytes that need no terminator. */
static inline void tacho_log_n(uint32_t level, const char *text, size_t size)
{
	if (tacho__recording())
		tacho__log(level, text, size);
}

/* Value of a TACHO_COUNTER: a total that only grows. */
static inline void tacho_counter(struct tacho_name *counter, int64_t value)
{
	if (tacho__recording())
		tacho__put1(0x48, tacho__id(counter), (uint64_t)value);
}

/* Value of a TACHO_GAUGE: it goes up and down. */
static inline void tacho_gauge(struct tacho_name *gauge, double value)
{
	if (tacho__recording()) {
		uint64_t bits;

		__builtin_memcpy(&bits, &value, sizeof(bits));
		tacho__put1(0x48, tacho__id(gauge), bits);
	}
}

/* --------------------------------------------------------- custom events */

/*
 * An event of the program's own with typed fields, declared once, at file level:
 *
 *	TACHO_EVENT(request_done, (u64, bytes), (string, path), (opt_i64, status))
 *
 * defines
 *
 *	void tacho_event_request_done(uint64_t bytes, const char *path,
 *				      const int64_t *status);
 *
 * which records it. The trace describes name and fields itself. Types: u64, i64,
 * f64, bool, string, and with opt_ before them optional: these take a pointer, or
 * NULL when absent (opt_string: a const char *, or NULL). A string that is NULL
 * is absent as well. 1 to 16 fields; strings are cut at 512 bytes, a record at 1 KiB.
 */
struct tacho__field {
	uint8_t type;
	const char *name;
};

struct tacho__schema {
	uint32_t id;
	uint32_t count;
	const char *name;
	const struct tacho__field *fields;
};

struct tacho__event {
	uint32_t schema;
	uint32_t used;	/* words */
	uint32_t field; /* of the next value */
	uint32_t present;
	uint64_t words[128];
};

TACHO_API uint32_t tacho__define_schema(struct tacho__schema *schema);
TACHO_API void tacho__event_string(struct tacho__event *event, const char *text);
TACHO_API void tacho__event_put(struct tacho__event *event);

static inline void tacho__event_word(struct tacho__event *event, uint64_t word)
{
	event->present |= 1u << event->field++;
	event->words[event->used++] = word;
}

static inline void tacho__event_u64(struct tacho__event *e, uint64_t v)
{
	tacho__event_word(e, v);
}

static inline void tacho__event_i64(struct tacho__event *e, int64_t v)
{
	tacho__event_word(e, (uint64_t)v);
}

static inline void tacho__event_f64(struct tacho__event *e, double v)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &v, sizeof(bits));
	tacho__event_word(e, bits);
}

static inline void tacho__event_bool(struct tacho__event *e, bool v)
{
	tacho__event_word(e, v);
}

#define TACHO__OPTIONAL(type_, ctype_)                                                       \
	static inline void tacho__event_opt_##type_(struct tacho__event *e, const ctype_ *v) \
	{                                                                                    \
		if (v)                                                                       \
			tacho__event_##type_(e, *v);                                         \
		else                                                                         \
			e->field++;                                                          \
	}

TACHO__OPTIONAL(u64, uint64_t)
TACHO__OPTIONAL(i64, int64_t)
TACHO__OPTIONAL(f64, double)
TACHO__OPTIONAL(bool, bool)

static inline void tacho__event_opt_string(struct tacho__event *e, const char *v)
{
	tacho__event_string(e, v);
}

#define TACHO__TYPE_u64 TACHO_FIELD_U64
#define TACHO__TYPE_i64 TACHO_FIELD_I64
#define TACHO__TYPE_f64 TACHO_FIELD_F64
#define TACHO__TYPE_bool TACHO_FIELD_BOOL
#define TACHO__TYPE_string TACHO_FIELD_STRING
#define TACHO__TYPE_opt_u64 (TACHO_FIELD_OPTIONAL | TACHO_FIELD_U64)
#define TACHO__TYPE_opt_i64 (TACHO_FIELD_OPTIONAL | TACHO_FIELD_I64)
#define TACHO__TYPE_opt_f64 (TACHO_FIELD_OPTIONAL | TACHO_FIELD_F64)
#define TACHO__TYPE_opt_bool (TACHO_FIELD_OPTIONAL | TACHO_FIELD_BOOL)
#define TACHO__TYPE_opt_string (TACHO_FIELD_OPTIONAL | TACHO_FIELD_STRING)

#define TACHO__CTYPE_u64 uint64_t
#define TACHO__CTYPE_i64 int64_t
#define TACHO__CTYPE_f64 double
#define TACHO__CTYPE_bool bool
#define TACHO__CTYPE_string const char *
#define TACHO__CTYPE_opt_u64 const uint64_t *
#define TACHO__CTYPE_opt_i64 const int64_t *
#define TACHO__CTYPE_opt_f64 const double *
#define TACHO__CTYPE_opt_bool const bool *
#define TACHO__CTYPE_opt_string const char *

/* In C, bool is a macro and has become _Bool when it gets here. */
#define TACHO__TYPE__Bool TACHO__TYPE_bool
#define TACHO__CTYPE__Bool TACHO__CTYPE_bool
#define tacho__event__Bool tacho__event_bool

#define TACHO__NAME_OF(type, name) name
#define TACHO__PARAM(type, name) TACHO__CTYPE_##type name
#define TACHO__FIELD(type, name)          \
	{                                 \
		TACHO__TYPE_##type, #name \
	}
#define TACHO__VALUE(type, name) tacho__event_##type(&tacho__e, name)

/* TACHO__MAP(m, sep, (a, b), (c, d)) is m(a, b) sep() m(c, d), for 1 to 16 pairs. */
#define TACHO__COMMA() ,
#define TACHO__SEMICOLON() ;
#define TACHO__M1(m, s, x) m x
#define TACHO__M2(m, s, x, ...) m x s() TACHO__M1(m, s, __VA_ARGS__)
#define TACHO__M3(m, s, x, ...) m x s() TACHO__M2(m, s, __VA_ARGS__)
#define TACHO__M4(m, s, x, ...) m x s() TACHO__M3(m, s, __VA_ARGS__)
#define TACHO__M5(m, s, x, ...) m x s() TACHO__M4(m, s, __VA_ARGS__)
#define TACHO__M6(m, s, x, ...) m x s() TACHO__M5(m, s, __VA_ARGS__)
#define TACHO__M7(m, s, x, ...) m x s() TACHO__M6(m, s, __VA_ARGS__)
#define TACHO__M8(m, s, x, ...) m x s() TACHO__M7(m, s, __VA_ARGS__)
#define TACHO__M9(m, s, x, ...) m x s() TACHO__M8(m, s, __VA_ARGS__)
#define TACHO__M10(m, s, x, ...) m x s() TACHO__M9(m, s, __VA_ARGS__)
#define TACHO__M11(m, s, x, ...) m x s() TACHO__M10(m, s, __VA_ARGS__)
#define TACHO__M12(m, s, x, ...) m x s() TACHO__M11(m, s, __VA_ARGS__)
#define TACHO__M13(m, s, x, ...) m x s() TACHO__M12(m, s, __VA_ARGS__)
#define TACHO__M14(m, s, x, ...) m x s() TACHO__M13(m, s, __VA_ARGS__)
#define TACHO__M15(m, s, x, ...) m x s() TACHO__M14(m, s, __VA_ARGS__)
#define TACHO__M16(m, s, x, ...) m x s() TACHO__M15(m, s, __VA_ARGS__)
#define TACHO__NTH(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, n, ...) n
#define TACHO__COUNT(...) \
	TACHO__NTH(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TACHO__MAP(m, s, ...) TACHO__JOIN(TACHO__M, TACHO__COUNT(__VA_ARGS__))(m, s, __VA_ARGS__)

#define TACHO_EVENT(name, ...)                                                          \
	__attribute__((unused, noinline)) static void tacho__record_##name(             \
		TACHO__MAP(TACHO__PARAM, TACHO__COMMA, __VA_ARGS__))                    \
	{                                                                               \
		static const struct tacho__field tacho__fields[] = {                    \
			TACHO__MAP(TACHO__FIELD, TACHO__COMMA, __VA_ARGS__)};           \
		static struct tacho__schema tacho__s = {                                \
			0, sizeof(tacho__fields) / sizeof(tacho__fields[0]), #name,     \
			tacho__fields};                                                 \
		struct tacho__event tacho__e;                                           \
                                                                                        \
		tacho__e.schema = __atomic_load_n(&tacho__s.id, __ATOMIC_RELAXED);      \
		if (!tacho__e.schema)                                                   \
			tacho__e.schema = tacho__define_schema(&tacho__s);              \
		tacho__e.used = 1;                                                      \
		tacho__e.field = tacho__e.present = 0;                                  \
		TACHO__MAP(TACHO__VALUE, TACHO__SEMICOLON, __VA_ARGS__);                \
		tacho__event_put(&tacho__e);                                            \
	}                                                                               \
	__attribute__((unused)) static inline void tacho_event_##name(                  \
		TACHO__MAP(TACHO__PARAM, TACHO__COMMA, __VA_ARGS__))                    \
	{                                                                               \
		if (tacho__recording())                                                 \
			tacho__record_##name(                                           \
				TACHO__MAP(TACHO__NAME_OF, TACHO__COMMA, __VA_ARGS__)); \
	}

/* -------------------------------------------- taking the window, crashes */

/*
 * Something worth keeping happened. The reason is recorded, stands in the list of
 * triggers of the trace, and wakes an agent that watches this box. Costs a system
 * call. Returns the number of the trigger (from 1), or 0 when recording is off.
 */
TACHO_API uint32_t tacho_trigger(const char *reason);

/*
 * Writes the window as a trace file to `fd` with write(2), uncompressed, from the
 * current position. Recording goes on meanwhile; chunks that are overwritten in
 * the middle are left out and counted. Takes some milliseconds per 10 MB.
 * Async-signal-safe; a signal handler that interrupts it and forks must not return in
 * the child, which has no window. Returns 0 or a negative errno:
 *   -ENODATA not recording     -EBUSY another snapshot is being written
 */
TACHO_API int tacho_snapshot(int fd);

/*
 * Installs the crash handler: on SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT and
 * SIGSYS, signal, address, registers and stack of the failing thread go into the
 * box, the window is written to the file `path`, and then whatever handled the
 * signal before is run: an earlier handler, or the default action with its core
 * dump. In `path`, %p becomes the process id and %% a percent sign; a relative path
 * counts from the folder at the time of the call. The file replaces an older one
 * when the next crash comes, if that is this user's, with one name, and no other user may read or
 * write it. Each thread that calls this gets an alternate signal
 * stack if it has none; other threads run the handler on their own stack unless
 * they call tacho_crash_stack. Handlers that the program installs later replace
 * this one. Not for signal handlers. Returns 0 or a negative errno:
 *   -EPERM the program is setuid, setgid or has file capabilities, and writes no crash file
 */
TACHO_API int tacho_crash_handler(const char *path);

/* Gives this thread an alternate signal stack, so that even an overflow of its stack is
   reported. Freed when the thread ends. Returns 0 or a negative errno. */
TACHO_API int tacho_crash_stack(void);

/* Loads what taking stacks needs (once, allocates); done by tacho_crash_handler and by the
   first stack that is taken. Call it early if stacks are taken later. */
TACHO_API void tacho_stacks_prepare(void);

/* The program loaded or unloaded libraries: puts the list of mapped code into the box
   again. Costs about a millisecond. Not for signal handlers. */
TACHO_API void tacho_modules_changed(void);

/* Version of the library that runs, e.g. "0.1.0". */
TACHO_API const char *tacho_version(void);

#ifdef __cplusplus
} /* extern "C" */

namespace tacho
{
/* A synchronous span for the life of this object. */
class span
{
      public:
	explicit span(struct tacho_name &n) : name_(&n)
	{
		tacho_span_begin(name_);
	}
	~span()
	{
		tacho_span_end(name_);
	}
	span(const span &) = delete;
	span &operator=(const span &) = delete;
	void trace_id(uint64_t high, uint64_t low) const
	{
		tacho_span_trace_id(0, high, low);
	}

      private:
	struct tacho_name *name_;
};

/* A poll for the life of this object; done() marks the task as finished. */
class poll
{
      public:
	poll(struct tacho_name &kind, uint64_t task)
	{
		tacho_poll_begin(&kind, task);
	}
	~poll()
	{
		tacho_poll_end(result_);
	}
	poll(const poll &) = delete;
	poll &operator=(const poll &) = delete;
	void done()
	{
		result_ = TACHO_DONE;
	}

      private:
	uint32_t result_ = TACHO_PENDING;
};
} // namespace tacho
#endif

#endif
