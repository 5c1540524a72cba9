/*
 * One event as words, and as members of a JSON object. Both decode everything
 * that the event carries.
 */
#ifndef TACHO_CLI_EVENT_H
#define TACHO_CLI_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/describe.h"
#include "text/json.h"
#include "tacho_read.h"

/* Without time, thread, type and newline. `zero_ns`: what times inside are relative to. */
void event_put_text(FILE *out, const struct tacho_reader *reader, const struct tacho_event *event,
		    uint64_t zero_ns);
void event_put_json(struct json *j, const struct tacho_reader *reader,
		    const struct tacho_event *event);

/* Payload word i, 0 where a damaged or foreign record has fewer. */
static inline uint64_t event_word(const struct tacho_event *event, uint32_t i)
{
	return i < event->words ? event->word[i] : 0;
}

/* The "data" of a variable record: bits 16 to 63 of its first word. */
static inline uint64_t event_data(const struct tacho_event *event)
{
	return event_word(event, 0) >> 16;
}

/* An id that stands in a word; ids have 24 bits, others name nothing. */
static inline uint32_t event_id(uint64_t value)
{
	return value <= 0xffffff ? (uint32_t)value : 0xffffffu;
}

/* TACHO_EV_KERNEL_SAMPLE: how many of its frames are the kernel's. They come first. */
static inline uint32_t event_kernel_frames(const struct tacho_event *event)
{
	uint32_t frames = event->words > 2 ? event->words - 2 : 0;

	return event->arg < frames ? event->arg : frames;
}

/* Its frames of the kernel, or those of the program: each begins with one that was interrupted. */
static inline struct describe_stack event_kernel_stack(const struct tacho_event *event, bool kernel)
{
	uint32_t first = event_kernel_frames(event);
	uint32_t all = event->words > 2 ? event->words - 2 : 0;

	return (struct describe_stack){
		.frames = event->words > 2 ? event->word + 2 + (kernel ? 0 : first) : NULL,
		.count = kernel ? first : all - first,
		.exact = true,
		.cut = !kernel && (event_data(event) & 1) != 0,
	};
}

/* The stack that a TACHO_EV_SAMPLE_FRAMES carries with it. */
static inline struct describe_stack event_stack(const struct tacho_event *event)
{
	return (struct describe_stack){
		.frames = event->words > 2 ? event->word + 2 : NULL,
		.count = event->words > 2 ? event->words - 2 : 0,
		.exact = true,
		.cut = (event_data(event) & 1) != 0,
	};
}

/* A pair of TACHO_EV_POLL_HIST. */
#define EVENT_HIST_FIRST 4u
static inline uint32_t event_hist_bucket(uint64_t word)
{
	return (uint32_t)(word >> 48);
}

static inline uint64_t event_hist_count(uint64_t word)
{
	return word & 0xffffffffffffu;
}

/* Shortest duration that a bucket counts; saturates for buckets that cannot be. */
static inline uint64_t event_hist_ns(uint32_t bucket)
{
	return bucket == 0 ? 0 : bucket < 64 ? 1ull << bucket : UINT64_MAX;
}

/* What TACHO_EV_READY names: a descriptor, or what the program keeps for one. */
static inline bool event_ready_is_data(uint64_t word)
{
	return word >> 63;
}

/* TACHO_EV_SCHED */
static inline uint32_t event_minor_faults(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t event_major_faults(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* TACHO_EV_CALL, word 3 */
static inline uint32_t event_call_path(uint64_t word)
{
	return (uint32_t)(word & 0xffffffffu);
}

static inline int event_call_errno(uint64_t word)
{
	return (int)(word >> 32 & 0xffff);
}

static inline unsigned event_call_kind(uint64_t word)
{
	return (unsigned)(word >> 48);
}
#define EVENT_NO_DESCRIPTOR UINT64_MAX

/* The bits of a counter's value as its definition says. */
static inline double event_f64(uint64_t bits)
{
	union {
		uint64_t bits;
		double value;
	} u = {.bits = bits};

	return u.value;
}

#endif
