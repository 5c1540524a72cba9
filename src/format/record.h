/*
 * The record: what a thread stores into its chunk for one event.
 *
 * A record is a header word and nought or more payload words, all of eight
 * bytes, in the byte order of the machine that wrote them (little-endian on
 * both supported architectures).
 *
 *   header   bits  0..7   type
 *            bits  8..31  argument (24 bits)
 *            bits 32..63  ticks since the previous record of the chunk
 *                         (the first: since the chunk's anchor)
 *
 * The two top bits of the type say how many payload words follow, so that a
 * reader can step over a type it does not know:
 *
 *   00  none
 *   01  one
 *   10  two
 *   11  as many as bits 0..15 of the first payload word say, itself included
 *       (1..TACHO_RECORD_MAX_WORDS); bits 16..63 of that word are data
 *
 * More than 2^32 - 1 ticks since the previous record: a TACHO_REC_TIME record
 * precedes, which carries the absolute ticks. Records never cross a chunk, and
 * ticks never run backwards inside one.
 *
 * Ids (24 bits, in the argument or in a payload word) are definition ids, see
 * definition.h. Id 0 is "not given".
 *
 * Numbers here are part of the format: they are never reused.
 */
#ifndef TACHO_FORMAT_RECORD_H
#define TACHO_FORMAT_RECORD_H

#include <stdint.h>

#define TACHO_RECORD_MAX_WORDS 128u /* payload of one record: 1 KiB */
#define TACHO_RECORD_MAX_BYTES (8u + 8u * TACHO_RECORD_MAX_WORDS)
#define TACHO_ARG_MAX 0xffffffu

#define TACHO_REC_CLASS(type) ((unsigned)(type) >> 6)
#define TACHO_REC_CLASS_VARIABLE 3u

enum tacho_record_type {
	/* No payload. */
	TACHO_REC_NONE = 0x00,	     /* never written; a zeroed word is no record */
	TACHO_REC_PARK = 0x01,	     /* arg: loop */
	TACHO_REC_UNPARK = 0x02,     /* arg: number ready, saturated */
	TACHO_REC_POLL_END = 0x03,   /* arg: enum tacho_poll_result */
	TACHO_REC_SPAN_BEGIN = 0x04, /* arg: name; nests within its thread */
	TACHO_REC_SPAN_END = 0x05,   /* arg: name */
	TACHO_REC_PAUSE = 0x06,	     /* arg: 1 recording paused, 0 resumed */
	TACHO_REC_LOOP = 0x07,	     /* arg: loop that this thread runs from now on; 0: none */
	/* Of stream TACHO_STREAM_KERNEL, which agents write into trace files: */
	TACHO_REC_SWITCH_OUT = 0x08, /* the thread left its CPU; arg: 1 runnable (preempted), 0
					it waits */
	TACHO_REC_SWITCH_IN = 0x09,  /* it runs again; arg: CPU */

	/* One payload word. */
	TACHO_REC_TIME = 0x40,	      /* w0: absolute ticks of the next record */
	TACHO_REC_POLL_BEGIN = 0x41,  /* arg: kind; w0: task */
	TACHO_REC_POLL_SWITCH = 0x42, /* end of one poll, begin of the next: as POLL_BEGIN */
	TACHO_REC_WAKE = 0x43,	      /* w0: task woken by this thread */
	TACHO_REC_TASK_END = 0x44,    /* w0: task */
	TACHO_REC_LOCK_WAIT = 0x45,   /* arg: place or stack; w0: lock */
	TACHO_REC_LOCK_WAITED = 0x46, /* arg: bit 0: 1 got it, 0 gave up; bit 1: 1 what
					was waited for is a signal (condition variable,
					semaphore), not a lock; w0: lock */
	TACHO_REC_QUEUE_DEPTH = 0x47, /* arg: loop; w0: depth */
	TACHO_REC_COUNTER = 0x48,     /* arg: counter or gauge; w0: value, by its definition */
	TACHO_REC_ASYNC_END = 0x49,   /* arg: name; w0: span id */
	TACHO_REC_TRIGGER = 0x4a,     /* arg: reason; w0: trigger number, from 1 */
	TACHO_REC_WORK_SUBMIT = 0x4b, /* arg: kind; w0: work given to a thread pool */
	TACHO_REC_WORK_BEGIN = 0x4c,  /* arg: kind; w0: work; on the thread of the pool */
	TACHO_REC_WORK_END = 0x4d,    /* arg: 0; w0: work */
	TACHO_REC_READY = 0x4e,	 /* arg: epoll or poll events; w0: descriptor, or 1 << 63 | what
					 the program keeps for it (epoll_data) */
	TACHO_REC_LATE = 0x4f,	 /* w0: ns by which the timer of the next poll is late; where
					 callbacks are not seen: by which the wait before this turn
					 outlasted its time-out */
	TACHO_REC_STACK = 0x50,	 /* arg: stack; w0: what it belongs to: the lock, the task */
	TACHO_REC_SAMPLE = 0x51, /* arg: stack of this thread; w0: ns of its CPU time since the
					 sample before */

	/* Two payload words. */
	TACHO_REC_LOCK_RELEASE = 0x80, /* arg: place or stack; w0: lock; w1: waiters */
	TACHO_REC_STEAL = 0x81,	       /* arg: thief loop; w0: victim loop; w1: tasks taken */
	TACHO_REC_ASYNC_BEGIN = 0x82,  /* arg: name; w0: span id; w1: parent span id or 0 */
	TACHO_REC_SCHED =
		0x83, /* of the poll, or the wait, that just ended: arg: involuntary switches; w0:
					  ns runnable but not running; w1: minor faults | major
					  faults << 32 */

	/* Variable. "data" is bits 16..63 of the first word. */
	TACHO_REC_SPAWN = 0xc0,		/* arg: kind; data: location; w1: task; w2: parent or 0 */
	TACHO_REC_TASK_WAITS = 0xc1,	/* arg: what for (text) or 0; data: stack or 0; w1: task;
					w2: resource or 0 */
	TACHO_REC_TRACE_ID = 0xc2,	/* arg: 0; w1: async span id, or 0 for the innermost span of
					the thread; w2, w3: high and low half of the trace id */
	TACHO_REC_LOG = 0xc3,		/* arg: level; data: bytes | cut << 15; then the text */
	TACHO_REC_EVENT = 0xc4,		/* arg: schema; data: presence mask, bit i for field i; then
					the fields that are present, see definition.h */
	TACHO_REC_POLL_HIST = 0xc5,	/* arg: kind; data: loop; w1: slot; w2: ticks at which
					counting began; w3: total ticks; w4...: pairs of
					bucket << 48 | count, one word each */
	TACHO_REC_CALL = 0xc6,		/* a blocking call that just returned: arg: name (text);
					data: stack or 0; w1: ns that it took; w2: descriptor, process,
					thread, or ~0: none; w3: path (text) or 0 | errno << 32 | enum
					tacho_fd_kind << 48 */
	TACHO_REC_KERNEL_SAMPLE = 0xc8, /* a sample of perf, in stream TACHO_STREAM_KERNEL: arg:
					   frames of the kernel; data: 1 there were more; w1: ns of
					   CPU time it stands for; w2...: the kernel's frames, then
					   the program's, each innermost first */
	TACHO_REC_SAMPLE_FRAMES = 0xc7, /* as SAMPLE, when no more stacks may be defined: arg: 0;
					   data: 1 there were more frames; w1: ns; w2...: program
					   counters, innermost first */
};

/* Stream of what the kernel reported of a thread. Those below are of the box. */
#define TACHO_STREAM_KERNEL 15u

/* What a descriptor is, as far as it matters to whoever waits for it. */
enum tacho_fd_kind {
	TACHO_FD_UNKNOWN = 0,
	TACHO_FD_FILE = 1,
	TACHO_FD_FOLDER = 2,
	TACHO_FD_PIPE = 3,
	TACHO_FD_TERMINAL = 4,
	TACHO_FD_TCP = 5,
	TACHO_FD_UDP = 6,
	TACHO_FD_UNIX = 7,
	TACHO_FD_SOCKET = 8, /* of another kind */
	TACHO_FD_EVENT = 9,  /* eventfd, timerfd, signalfd, inotify and the like */
	TACHO_FD_DEVICE = 10,
};

/* What TACHO_REC_POLL_END says of the poll that ended. */
enum tacho_poll_result {
	TACHO_POLL_RESULT_UNKNOWN = 0,
	TACHO_POLL_RESULT_PENDING = 1, /* the task is suspended */
	TACHO_POLL_RESULT_DONE = 2,    /* the task is finished */
};

static inline uint32_t tacho_record_head(uint32_t type, uint32_t arg)
{
	return type | (arg << 8);
}

static inline unsigned tacho_record_type(uint64_t header)
{
	return (unsigned)(header & 0xff);
}

static inline uint32_t tacho_record_arg(uint64_t header)
{
	return (uint32_t)(header >> 8) & TACHO_ARG_MAX;
}

static inline uint32_t tacho_record_delta(uint64_t header)
{
	return (uint32_t)(header >> 32);
}

/*
 * Payload words of a record, given its header and, for variable records, its
 * first payload word (else ignored). 0 payload words for a variable record
 * means that the record is not valid.
 */
static inline unsigned tacho_record_words(unsigned type, uint64_t first)
{
	unsigned class = TACHO_REC_CLASS(type);
	unsigned words = (unsigned)(first & 0xffff);

	if (class != TACHO_REC_CLASS_VARIABLE)
		return class;
	return words <= TACHO_RECORD_MAX_WORDS ? words : 0;
}

/* Durations of short polls are counted in powers of two of nanoseconds: bucket
   b counts durations d with 2^b <= d < 2^(b+1), bucket 0 also d = 0. */
#define TACHO_HIST_BUCKETS 40u

#endif
