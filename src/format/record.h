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

	/* One payload word. */
	TACHO_REC_TIME = 0x40,	      /* w0: absolute ticks of the next record */
	TACHO_REC_POLL_BEGIN = 0x41,  /* arg: kind; w0: task */
	TACHO_REC_POLL_SWITCH = 0x42, /* end of one poll, begin of the next: as POLL_BEGIN */
	TACHO_REC_WAKE = 0x43,	      /* w0: task woken by this thread */
	TACHO_REC_TASK_END = 0x44,    /* w0: task */
	TACHO_REC_LOCK_WAIT = 0x45,   /* arg: place or stack; w0: lock */
	TACHO_REC_LOCK_WAITED = 0x46, /* arg: 1 got it, 0 gave up; w0: lock */
	TACHO_REC_QUEUE_DEPTH = 0x47, /* arg: loop; w0: depth */
	TACHO_REC_COUNTER = 0x48,     /* arg: counter or gauge; w0: value, by its definition */
	TACHO_REC_ASYNC_END = 0x49,   /* arg: name; w0: span id */
	TACHO_REC_TRIGGER = 0x4a,     /* arg: reason; w0: trigger number, from 1 */

	/* Two payload words. */
	TACHO_REC_LOCK_RELEASE = 0x80, /* arg: place or stack; w0: lock; w1: waiters */
	TACHO_REC_STEAL = 0x81,	       /* arg: thief loop; w0: victim loop; w1: tasks taken */
	TACHO_REC_ASYNC_BEGIN = 0x82,  /* arg: name; w0: span id; w1: parent span id or 0 */

	/* Variable. "data" is bits 16..63 of the first word. */
	TACHO_REC_SPAWN = 0xc0,	     /* arg: kind; data: location; w1: task; w2: parent or 0 */
	TACHO_REC_TASK_WAITS = 0xc1, /* arg: what for (text) or 0; data: stack or 0; w1: task;
					w2: resource or 0 */
	TACHO_REC_TRACE_ID = 0xc2,   /* arg: 0; w1: async span id, or 0 for the innermost span of
					the thread; w2, w3: high and low half of the trace id */
	TACHO_REC_LOG = 0xc3,	     /* arg: level; data: bytes | cut << 15; then the text */
	TACHO_REC_EVENT = 0xc4,	     /* arg: schema; data: presence mask, bit i for field i; then
					the fields that are present, see definition.h */
	TACHO_REC_POLL_HIST = 0xc5,  /* arg: kind; data: loop; w1: slot; w2: ticks at which
					counting began; w3: total ticks; w4...: pairs of
					bucket << 48 | count, one word each */
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
