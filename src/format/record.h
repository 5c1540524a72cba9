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

#include "tacho_events.h"

#define TACHO_RECORD_MAX_WORDS 128u /* payload of one record: 1 KiB */
#define TACHO_RECORD_MAX_BYTES (8u + 8u * TACHO_RECORD_MAX_WORDS)
#define TACHO_ARG_MAX 0xffffffu

#define TACHO_REC_CLASS(type) ((unsigned)(type) >> 6)
#define TACHO_REC_CLASS_VARIABLE 3u

/* The records of events have the numbers, arguments and words of these: include/tacho_events.h. */
#define TACHO__RECORD(name, number, ...) TACHO_REC_##name = (number),
#define TACHO__NO_FIELD(...)
enum tacho_record_type {
	TACHO_REC_NONE = 0x00, /* never written; a zeroed word is no record */
	TACHO_REC_TIME = 0x40, /* w0: absolute ticks of the next record */
	/* Never written: readers use it for an event of their own. */
	TACHO_REC_RESUME = 0x3f,
	TACHO_EVENTS(TACHO__RECORD, TACHO__NO_FIELD)
};
#undef TACHO__RECORD

/*
 * PACKED records stand in chunks alone, for one event or for several of one instant. A reader turns
 * them into the records of those events; they never get into EVENTS blocks, and what counts records
 * counts the events.
 *
 *   P(NAME, number, state, events that it stands for, what it holds)
 */
/* clang-format off */
#define TACHO_PACKED(P) \
	P(WAKE_SMALL, 0x10, PLAIN, "WAKE", "argument: the task, 1 to 2^24 - 1") \
	P(TASK_END_SMALL, 0x11, PLAIN, "TASK_END", "argument: the task, 1 to 2^24 - 1") \
	P(POLL_BEGIN_SMALL, 0x12, STATE, "POLL_BEGIN", \
	  "its header has bits of its own: 8..19 kind, 20..43 task, 44..63 ticks since the record " \
	  "before") \
	P(END_PARK, 0x13, STATE, "POLL_END, PARK", "argument: bits 0..21 loop, 22..23 result") \
	P(UNPARK_READY, 0x60, STATE, "UNPARK, READY", "argument: number ready; w0: item") \
	P(UNPARK_LIST, 0xe0, STATE, "UNPARK, a READY for each item", \
	  "argument: number ready, which may be more than there are items; data: 0; w1...: items")

enum tacho_packed_type {
#define TACHO__RECORD(name, number, ...) TACHO_REC_##name = (number),
	TACHO_PACKED(TACHO__RECORD)
#undef TACHO__RECORD
};
/* clang-format on */

/* The parts of POLL_BEGIN_SMALL. */
#define TACHO_SMALL_KIND_BITS 12u
#define TACHO_SMALL_TASK_BITS 24u
#define TACHO_SMALL_DELTA_BITS 20u
#define TACHO_SMALL_TASK_AT (8u + TACHO_SMALL_KIND_BITS)
#define TACHO_SMALL_DELTA_AT (TACHO_SMALL_TASK_AT + TACHO_SMALL_TASK_BITS)
/* The parts of END_PARK's argument. */
#define TACHO_END_PARK_LOOP_BITS 22u

/*
 * An item of UNPARK_READY and UNPARK_LIST: a READY in one word.
 *
 *   bit 63 clear   bits 0..30 descriptor, 32..55 events
 *   bit 63 set     bits 0..46 what the program keeps for it, 47..62 events
 */
#define TACHO_ITEM_DATA (1ull << 63)
#define TACHO_ITEM_DATA_BITS 47u

/* The item, 0 when it does not fit. `data`: of epoll. */
static inline uint64_t tacho_item_pack(uint64_t data, uint32_t events)
{
	if (data <= INT32_MAX)
		return data | (uint64_t)(events & TACHO_ARG_MAX) << 32;
	if (data >> TACHO_ITEM_DATA_BITS || events >> 16)
		return 0;
	return TACHO_ITEM_DATA | data | (uint64_t)events << TACHO_ITEM_DATA_BITS;
}

static inline uint32_t tacho_item_events(uint64_t item)
{
	return item & TACHO_ITEM_DATA ? (uint32_t)(item >> TACHO_ITEM_DATA_BITS & 0xffff)
				      : (uint32_t)(item >> 32) & TACHO_ARG_MAX;
}

/* The word of READY, by what epoll gave back: a descriptor, where programs keep that there. */
static inline uint64_t tacho_ready_word(uint64_t data)
{
	return data <= INT32_MAX ? data : TACHO_ITEM_DATA | data;
}

/* The same of an item. */
static inline uint64_t tacho_item_word(uint64_t item)
{
	return item & TACHO_ITEM_DATA
		       ? TACHO_ITEM_DATA | (item & ((1ull << TACHO_ITEM_DATA_BITS) - 1))
		       : item & INT32_MAX;
}

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

/* Payload words that a record of this type has at least; 0 for types that are not known. */
static inline unsigned tacho_record_least_words(unsigned type)
{
	switch (type) {
#define TACHO__LEAST(name, number, text_name, words, ...) \
	case (number):                                    \
		return (words);
		TACHO_EVENTS(TACHO__LEAST, TACHO__NO_FIELD)
#undef TACHO__LEAST
	default:
		return 0;
	}
}

/* Events that a record stands for, given its number of payload words. */
static inline __attribute__((always_inline)) uint32_t tacho_record_events(unsigned type,
									  uint32_t words)
{
	if (type == TACHO_REC_UNPARK_LIST)
		return words;
	return type == TACHO_REC_UNPARK_READY || type == TACHO_REC_END_PARK ? 2 : 1;
}

/* Whether it changes what is open on its thread (underway.h). A constant where the type is one. */
static inline __attribute__((always_inline)) int tacho_record_is_stateful(unsigned type)
{
	enum { PLAIN, STATE };

#define TACHO__IF_STATE(name, number, text_name, words, state, ...) \
	|| (type == (number) && (state) == STATE)
#define TACHO__IF_PACKED_STATE(name, number, state, ...) || (type == (number) && (state) == STATE)
	return 0 TACHO_EVENTS(TACHO__IF_STATE, TACHO__NO_FIELD)
		TACHO_PACKED(TACHO__IF_PACKED_STATE);
#undef TACHO__IF_PACKED_STATE
#undef TACHO__IF_STATE
}

/* Durations of short polls are counted in powers of two of nanoseconds: bucket
   b counts durations d with 2^b <= d < 2^(b+1), bucket 0 also d = 0. */
#define TACHO_HIST_BUCKETS 40u

#endif
