/*
 * tacho_read.h - read boxes and trace files.
 *
 * Link with -ltacho-read. C11 and C++17.
 *
 * A reader opens a box (of a running, stopped, hung or dead process), a trace
 * file with all its parts, or a folder of trace files as one, and gives their events in the
 * order of time. It keeps no global state; different readers may be used in different
 * threads at the same time, one reader in one thread at a time.
 *
 * Every input is hostile: whatever the bytes are, calls return events, a
 * reported problem or an error, in bounded memory. Nothing is printed.
 *
 * Memory: what a running box holds when it is opened is copied at once (at most
 * its size); of a trace file only the block being read of each stream, the
 * definitions and the list of blocks are held.
 *
 * Pointers that a reader hands out live until it is closed, unless said
 * otherwise. Texts are zero-terminated, and any bytes may stand in them: escape
 * them before showing them. What the numbers mean is in tacho_values.h; a member that
 * answers a question (live, cut, lossy) is 1 for yes and 0 for no.
 *
 * Functions that can fail return 0 or more when they succeed and a negative
 * errno value when they do not.
 *
 * GROWTH. Later versions may add members at the end of structs. A program and a library that
 * were built with different versions of this header still work together:
 *   - A struct that the caller allocates begins with `size`, which the caller sets to its
 *     sizeof. The library touches no byte beyond that, and leaves in `size` how many bytes it
 *     filled. A size without room for the first member is -EINVAL.
 *   - A struct that the library hands out by pointer may be longer than the caller knows. A
 *     call that takes one wants the library's own, not a copy.
 *   - Structs that stand in arrays (tacho_event_field, tacho_open_item, tacho_field) do not grow.
 */
#ifndef TACHO_READ_H
#define TACHO_READ_H

#include <stddef.h>
#include <stdint.h>

#include "tacho_events.h"
#include "tacho_values.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TACHO_READ_API __attribute__((visibility("default")))
#else
#define TACHO_READ_API
#endif

struct tacho_reader;

/* What is not wanted is zero, and so is what the library does not know. */
struct tacho_read_options {
	size_t size;
	uint64_t from_ns; /* events before are left out (CLOCK_MONOTONIC; 0: none) */
	uint64_t to_ns;	  /* events after are left out (0: none) */
	uint64_t last_ns; /* only this long before the last event (0: all); box or file */
	/* Called now and then during long work with done and total in bytes, may be NULL. */
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	/* Only processes with this id (0: all), and of this name (NULL: all): what the program, or
	   the file that it was started from, is called. The text must stay until close. */
	uint32_t pid;
	const char *process;
};

/*
 * Opens `path`: a box, a trace file or a folder of trace files. On failure *out is
 * NULL and `message` (if not NULL) holds one sentence: what was tried, on what,
 * why it failed, what to do.
 *   -EBADMSG  neither box nor trace, or nothing in it can be read
 *   -ENOTSUP  made by a newer tacho
 *   -ENODATA  a box that says why its process does not record: *message says it
 *   -ESRCH    no process in it is one of those that the options ask for
 *   -EINVAL   the size of the options is not set, or they ask for what a newer tacho can
 *   else what open(2), read(2) or malloc(3) said
 */
TACHO_READ_API int tacho_read_open(struct tacho_reader **out, const char *path,
				   const struct tacho_read_options *options, char *message,
				   size_t message_size);

/* The same for several paths, as one. Each must be one that can be opened. */
TACHO_READ_API int tacho_read_open_all(struct tacho_reader **out, const char *const *paths,
				       uint32_t count, const struct tacho_read_options *options,
				       char *message, size_t message_size);

/* The same for the bytes of one file in memory, which must stay until close. */
TACHO_READ_API int tacho_read_open_memory(struct tacho_reader **out, const void *data, size_t size,
					  const struct tacho_read_options *options, char *message,
					  size_t message_size);

TACHO_READ_API void tacho_read_close(struct tacho_reader *reader);

/* ------------------------------------------------------------------ events */

/* What kind of event: tacho_events.h has them one by one, with what they hold. */
#define TACHO__EVENT_TYPE(name, number, ...) TACHO_EV_##name = (number),
#define TACHO__SKIP_FIELD(...)
enum tacho_event_type {
	/* Not recorded but made by the reader: the stream's records begin here, or go on
	   after a hole. event->resume says what is known. */
	TACHO_EV_RESUME = 0x3f,
	TACHO_EVENTS(TACHO__EVENT_TYPE, TACHO__SKIP_FIELD)
};
#undef TACHO__EVENT_TYPE
#define TACHO_EV_IS_VARIABLE(type) (((type) >> 6) == 3)

/* What tacho_events.h says of a type. */
struct tacho_event_field {
	const char *name;
	uint8_t type; /* of the event */
	uint8_t role; /* enum tacho_role */
	int8_t word;  /* that it stands in; -1: the argument */
	uint8_t from; /* its lowest bit there */
	uint8_t bits; /* 0: all words from there on */
};
struct tacho_event_info {
	const char *name; /* "poll-begin" */
	const char *text; /* how it reads */
	const struct tacho_event_field *fields;
	uint32_t field_count;
	uint32_t words; /* that every event of it has at least: others are damage */
};
/* NULL: not known. */
TACHO_READ_API const struct tacho_event_info *tacho_read_event_info(unsigned type);

/* A poll or span that was open where a stream's records begin. */
struct tacho_open_item {
	uint32_t id;   /* kind or name */
	uint32_t what; /* TACHO_EV_POLL_BEGIN or TACHO_EV_SPAN_BEGIN */
	uint64_t task;
	uint64_t since_ns; /* 0: not known */
};

struct tacho_resume_info {
	uint64_t missing; /* records of this stream between the last event and here that
			      were overwritten or damaged; 0 also for the first */
	uint32_t dropped; /* records that never found room, just before here */
	uint32_t first;	  /* the stream begins here for this reader */
	uint32_t loop;	  /* of the thread, or 0 */
	uint32_t parked;  /* parked on that loop since parked_ns */
	uint64_t parked_ns;
	uint32_t open_count;  /* open polls and spans */
	uint32_t open_listed; /* of these in open[], outermost first */
	struct tacho_open_item open[TACHO_OPEN_MAX];
};

struct tacho_event {
	uint64_t ns;	  /* CLOCK_MONOTONIC of the recorded host */
	uint32_t process; /* index, see tacho_read_process */
	uint32_t thread;  /* number, see tacho_read_thread; unique in its process */
	uint16_t stream;  /* TACHO_STREAM_* */
	uint8_t type;	  /* enum tacho_event_type */
	uint8_t reserved;
	uint32_t arg;
	uint32_t words;
	const uint64_t *word;			/* `words` of them */
	const struct tacho_resume_info *resume; /* TACHO_EV_RESUME */
};

/* A field of an event whose type it is of. 0 for fields that are all words from one on. */
static inline uint64_t tacho_read_value(const struct tacho_event *event,
					const struct tacho_event_field *field)
{
	return tacho__bits(event->arg, event->word, field->word, field->from, field->bits);
}

/* The stack that an event carries with it. Returns 1, 0 when it has none, or -errno. */
struct tacho_frames {
	size_t size;
	const uint64_t *frames; /* of the kernel, then of the program; each innermost first */
	uint32_t count;
	uint32_t kernel; /* how many are the kernel's; the first of either is exact */
	int cut;	 /* there were more */
};
TACHO_READ_API int tacho_read_frames(const struct tacho_event *event, struct tacho_frames *out);

/*
 * The next event in the order of time (events of one stream in their order; of
 * different streams at one instant in a fixed order). Returns 1, 0 at the end, or
 * a negative errno. Blocks that turn out to be damaged become problems, not errors.
 *
 * *event, and what it points to, lives until the next call of tacho_read_next or
 * tacho_read_seek; NULL unless 1 is returned.
 */
TACHO_READ_API int tacho_read_next(struct tacho_reader *reader, const struct tacho_event **event);

/* Goes to the first event at or after `ns`. Costs the blocks that contain it. */
TACHO_READ_API int tacho_read_seek(struct tacho_reader *reader, uint64_t ns);

/* From the first event to the last one, or to the latest until_ns of a process; -ENODATA if there
   are no events. */
TACHO_READ_API int tacho_read_window(struct tacho_reader *reader, uint64_t *first_ns,
				     uint64_t *last_ns);

/* Text of a TACHO_EV_LOG; not zero-terminated. *cut: it was longer. */
TACHO_READ_API int tacho_read_text(const struct tacho_event *event, const char **text, size_t *size,
				   int *cut);

/* --------------------------------------------------------------- processes */

/* Whether the process of a box runs, or that of a trace ran when it was taken. */
enum tacho_alive {
	TACHO_ALIVE_UNKNOWN = -1,
	TACHO_ALIVE_NO = 0,
	TACHO_ALIVE_YES = 1,
};

struct tacho_process {
	uint32_t pid, uid, parent_pid; /* parent_pid 0: not known */
	uint64_t start_time;
	uint8_t boot_id[16];
	const char *exe, *comm, *service, *host, *version; /* "": not known */
	const uint8_t *build_id;
	uint32_t build_id_size;
	uint32_t arch;	    /* ELF e_machine, 0 not known */
	uint32_t clock;	    /* enum tacho_clock */
	uint32_t state;	    /* enum tacho_state */
	uint32_t taken_by;  /* enum tacho_taken_by */
	int alive;	    /* enum tacho_alive */
	const char *reason; /* why off or degraded; "": all well */
	uint64_t max_bytes, min_age_ns, poll_threshold_ns;
	uint64_t used_bytes;	  /* box: of memory; trace: 0 */
	uint64_t created_mono_ns; /* recording began */
	uint64_t created_real_ns;
	uint64_t taken_mono_ns; /* trace or copy taken */
	uint64_t taken_real_ns;
	uint32_t threads_seen;
	const char *why;       /* the trace was taken for this; "": end of the process, or asked */
	uint64_t why_mono_ns;  /* when that happened; 0 not known */
	uint64_t segment;      /* number, from 1; 0: not a segment */
	uint64_t recording;    /* the same for all processes of one tacho run; 0: of none */
	uint64_t agent_cpu_ns; /* CPU time of the agent until then; 0 not known */
	uint32_t agent_pid;    /* box: an agent that says it looks after it; 0 none */
	uint32_t end_how;      /* enum tacho_end */
	uint32_t end_status;   /* exit status or number of the signal */
	uint32_t end_flags;    /* TACHO_END_CORE and kin */
	uint64_t end_ns;       /* when it ended or was last seen alive; 0 not known */
	/* The records tell all that happened until then: what is open lasts until then. 0: until
	   the last record. */
	uint64_t until_ns;
	const char *command_line; /* its arguments, with spaces between, without credentials;
				     "": not known */
	const char *imported;	  /* "a Go 1.26 execution trace"; "": it was recorded by tacho */
};
TACHO_READ_API uint32_t tacho_read_process_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_process *tacho_read_process(const struct tacho_reader *reader,
							      uint32_t process);

/* CLOCK_REALTIME of an event of that process, from its anchors. 0: not known. */
TACHO_READ_API uint64_t tacho_read_real_ns(const struct tacho_reader *reader, uint32_t process,
					   uint64_t ns);

struct tacho_thread {
	uint32_t process, number, tid;
	int live;	   /* it ran when the trace was taken */
	uint64_t start_ns; /* first record; 0 not known */
	const char *name;
};
TACHO_READ_API uint32_t tacho_read_thread_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_thread *tacho_read_thread(const struct tacho_reader *reader,
							    uint32_t index);
TACHO_READ_API const struct tacho_thread *
tacho_read_thread_by_number(const struct tacho_reader *reader, uint32_t process, uint32_t number);

struct tacho_source_info {
	size_t size;
	const char *name;
	uint32_t state; /* enum tacho_source_state */
	int error;	/* errno when refused */
};
TACHO_READ_API uint32_t tacho_read_source_count(const struct tacho_reader *reader);
TACHO_READ_API int tacho_read_source(const struct tacho_reader *reader, uint32_t process,
				     uint32_t index, struct tacho_source_info *info);

/* What an agent asked the recorder of a box to watch for: it fires above the limit, which is in
   ns, of "queue" in entries. 0: it is off. In traces all are off. */
struct tacho_sentinel_info {
	size_t size;
	const char *name; /* as in struct tacho_trigger_info */
	uint64_t limit;
};
TACHO_READ_API uint32_t tacho_read_sentinel_count(const struct tacho_reader *reader);
TACHO_READ_API int tacho_read_sentinel(const struct tacho_reader *reader, uint32_t process,
				       uint32_t index, struct tacho_sentinel_info *info);

/* ------------------------------------------------------------- definitions */

struct tacho_field {
	const char *name;
	uint8_t type; /* enum tacho_field_type */
	uint8_t optional;
};

struct tacho_definition {
	uint32_t id;
	uint8_t def_class;  /* enum tacho_definition_class */
	uint8_t cut;	    /* a string or stack was longer */
	uint8_t level;	    /* LOOP: enum tacho_level */
	uint8_t value_type; /* COUNTER, GAUGE: enum tacho_value_type */
	const char *name;   /* "" for STACK; MODULE: path */
	const char *file;   /* "" not given */
	const char *unit;
	uint32_t line; /* 0 not given */
	/* LOOP: its number; KIND: function or 0; PLACE: return address or 0; COUNTER, GAUGE: definition
	   of the place or stack that begins what it counts, or 0 */
	uint64_t value;
	uint32_t count; /* SCHEMA: fields; STACK: frames */
	const struct tacho_field *fields;
	const uint64_t *frames;		       /* innermost first */
	uint64_t start, end, offset, since_ns; /* MODULE */
	const uint8_t *build_id;
	uint32_t build_id_size;
	uint32_t exact; /* STACK: frames[0] was interrupted; else it is a return address too */
};

/* NULL: no such definition in the trace (never written, or damaged). */
TACHO_READ_API const struct tacho_definition *
tacho_read_definition(const struct tacho_reader *reader, uint32_t process, uint32_t id);
/* Ids are below this. */
TACHO_READ_API uint32_t tacho_read_definition_limit(const struct tacho_reader *reader,
						    uint32_t process);
/* The module that holds `address` at time `ns` (the newest seen before), or NULL. */
TACHO_READ_API const struct tacho_definition *
tacho_read_module_at(const struct tacho_reader *reader, uint32_t process, uint64_t address,
		     uint64_t ns);

/*
 * What the code at `address` is called, where the trace says so (tacho dump and kin put it
 * in): the function at `index` 0, then those it was inlined into. NULL when there is no such. A
 * return address lies behind its call: look up the address before.
 */
struct tacho_symbol {
	const char *function; /* demangled; "" not known */
	const char *file;     /* "" not known */
	uint32_t line;	      /* 0 not known */
};
TACHO_READ_API const struct tacho_symbol *tacho_read_symbol(const struct tacho_reader *reader,
							    uint32_t process, uint64_t address,
							    uint64_t ns, uint32_t index);

/* Field `index` of a TACHO_EV_EVENT. Returns 1, 0 when it is absent, or -errno. */
struct tacho_field_value {
	size_t size;
	uint8_t type; /* enum tacho_field_type */
	uint8_t cut;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
	} number;	  /* bool: u64 */
	const char *text; /* string; not zero-terminated */
	size_t text_size;
};
TACHO_READ_API int tacho_read_field(const struct tacho_reader *reader,
				    const struct tacho_event *event, uint32_t index,
				    struct tacho_field_value *value);

/* --------------------------------------------------- losses and incidents */

/* What the recorder counted: name is stable ("no_chunk", ...), text is a sentence.
   lossy: events or names are missing because of it; else it is for information. */
struct tacho_loss_info {
	size_t size;
	const char *name;
	const char *text;
	int lossy;
	uint64_t count;
};
TACHO_READ_API uint32_t tacho_read_loss_count(const struct tacho_reader *reader);
TACHO_READ_API int tacho_read_loss(const struct tacho_reader *reader, uint32_t process,
				   uint32_t index, struct tacho_loss_info *info);

/* What is wrong with the input itself: damaged or missing blocks, chunks overwritten
   while they were copied, definitions missing. Grows while events are read. */
struct tacho_problem {
	const char *name; /* stable: "damaged-block", "cut", ... */
	const char *text; /* a sentence */
	const char *path;
	uint64_t offset, size; /* in the file; 0, 0 when it is not about a place */
	uint32_t process;      /* whose records it concerns; UINT32_MAX: not known */
};
TACHO_READ_API uint32_t tacho_read_problem_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_problem *tacho_read_problem(const struct tacho_reader *reader,
							      uint32_t index);

/* A stretch of time of which an agent could not deliver all. */
struct tacho_gap {
	uint32_t process;
	uint64_t from_ns, to_ns;
	uint64_t records;   /* lost; 0 also when that is not known */
	const char *reason; /* stable: "no-agent", "no-space", "unwritable", "too-fast", "kernel",
				"unknown" */
	const char *text;   /* a sentence */
	int error;	    /* errno, or 0 */
};
TACHO_READ_API uint32_t tacho_read_gap_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_gap *tacho_read_gap(const struct tacho_reader *reader,
						      uint32_t index);

/* A process of the same `tacho run` that was seen and not recorded. Times as of the other
   processes. */
struct tacho_absent {
	uint32_t pid, parent_pid;
	uint64_t seen_ns;   /* when it was seen first */
	const char *comm;   /* its name */
	const char *exe;    /* path; "" not known */
	const char *reason; /* stable: "rights", "static", "machine", "libc", "environment",
				"library", "excluded", "idle", "refused", "hidden", "unknown" */
	const char *text;   /* the same in words */
	const char *said;   /* what its recorder said, or "" */
	int error;	    /* errno, or 0 */
	int hindered;	    /* 1: it could not be recorded; 0: it was not to be, or had nothing */
};
TACHO_READ_API uint32_t tacho_read_absent_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_absent *tacho_read_absent(const struct tacho_reader *reader,
							    uint32_t index);

struct tacho_trigger_info {
	uint32_t process, number, tid;
	uint64_t ns;
	const char *reason;
	uint64_t value;	      /* of a sentinel: what was above its limit */
	const char *sentinel; /* "poll", "wake", "lag", "sched", "queue", "unknown"; "": the
				 program asked */
};
TACHO_READ_API uint32_t tacho_read_trigger_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_trigger_info *
tacho_read_trigger(const struct tacho_reader *reader, uint32_t index);

struct tacho_crash_info {
	uint32_t process, tid;
	int signal, code;
	uint64_t address, ns;
	const char *thread_name;
	uint32_t arch;
	uint32_t reg_count; /* x86-64: order of gregs in <sys/ucontext.h>; arm64: x0-x30, sp, pc,
			       pstate */
	uint32_t frame_count;
	int unwind_failed;
	const uint64_t *regs;
	const uint64_t *frames; /* innermost first */
	const char *said; /* by the C library when it aborted the program, as of an assert; or "" */
	int survived;	  /* 1: the process went on, and ended in order */
	uint32_t interrupted; /* it was raised in a handler, and this frame is what that
				   interrupted; 0: it was not */
};
TACHO_READ_API uint32_t tacho_read_crash_count(const struct tacho_reader *reader);
TACHO_READ_API const struct tacho_crash_info *tacho_read_crash(const struct tacho_reader *reader,
							       uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
