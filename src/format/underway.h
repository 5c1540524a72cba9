/*
 * What is under way on a thread: its loop, whether it is parked, the polls and spans that it is in.
 *
 * The recorder keeps it so that a chunk can begin with it; a reader that leaves records out at the
 * beginning of a stretch makes it from these; whoever watches a process keeps it from record to
 * record. All three apply records here. Nothing is allocated: the recorder runs it in signal
 * handlers and on its hot path, where the type is a constant and this is a few stores.
 */
#ifndef TACHO_FORMAT_UNDERWAY_H
#define TACHO_FORMAT_UNDERWAY_H

#include <stddef.h>
#include <stdint.h>

#include "format/box.h"

struct tacho_underway {
	uint32_t loop;	/* that the thread runs, or last ran; 0: none */
	uint32_t depth; /* of open polls and spans, also those that open[] has no room for */
	uint32_t parked;
	uint32_t reserved;
	uint64_t park_time; /* since when it is parked, or not parked; 0: it never was */
	struct tacho_open open[TACHO_OPEN_MAX]; /* outermost first */
};

static inline void tacho_underway_push(struct tacho_underway *s, uint32_t what, uint32_t id,
				       uint64_t task, uint64_t t)
{
	if (__builtin_expect(s->depth < TACHO_OPEN_MAX, 1)) {
		struct tacho_open *o = &s->open[s->depth];

		o->id = id;
		o->what = what;
		o->task = task;
		o->since = t;
	}
	s->depth++;
}

/* The innermost poll ends, and with it the spans that were left open in it. */
static inline void tacho_underway_pop_poll(struct tacho_underway *s)
{
	while (s->depth) {
		s->depth--;
		if (s->depth >= TACHO_OPEN_MAX || s->open[s->depth].what == TACHO_REC_POLL_BEGIN)
			return;
	}
}

static inline void tacho_underway_pop_span(struct tacho_underway *s)
{
	if (s->depth > TACHO_OPEN_MAX ||
	    (s->depth && s->open[s->depth - 1].what == TACHO_REC_SPAN_BEGIN))
		s->depth--;
}

/* A record of `type`, packed or not, at time `t`, in the unit of all times here. `task`: its first
   word, of those that have one. */
static inline __attribute__((always_inline)) void tacho_underway_apply(struct tacho_underway *s,
								       unsigned type, uint32_t arg,
								       uint64_t task, uint64_t t)
{
	switch (type) {
	case TACHO_REC_POLL_SWITCH:
		tacho_underway_pop_poll(s);
		tacho_underway_push(s, TACHO_REC_POLL_BEGIN, arg, task, t);
		break;
	case TACHO_REC_POLL_BEGIN:
		tacho_underway_push(s, TACHO_REC_POLL_BEGIN, arg, task, t);
		break;
	case TACHO_REC_POLL_END:
		tacho_underway_pop_poll(s);
		break;
	case TACHO_REC_SPAN_BEGIN:
		tacho_underway_push(s, TACHO_REC_SPAN_BEGIN, arg, 0, t);
		break;
	case TACHO_REC_SPAN_END:
		tacho_underway_pop_span(s);
		break;
	case TACHO_REC_PARK:
		s->loop = arg;
		s->parked = 1;
		s->park_time = t;
		break;
	case TACHO_REC_END_PARK:
		tacho_underway_pop_poll(s);
		s->loop = arg & ((1u << TACHO_END_PARK_LOOP_BITS) - 1);
		s->parked = 1;
		s->park_time = t;
		break;
	case TACHO_REC_UNPARK:
	case TACHO_REC_UNPARK_READY:
	case TACHO_REC_UNPARK_LIST:
		s->parked = 0;
		s->park_time = t;
		break;
	case TACHO_REC_LOOP:
		s->loop = arg;
		break;
	default:
		break;
	}
}

/* The innermost poll that is open, NULL: none, or none that is listed. */
static inline const struct tacho_open *tacho_underway_poll(const struct tacho_underway *s)
{
	for (uint32_t d = s->depth; d && d <= TACHO_OPEN_MAX; d--)
		if (s->open[d - 1].what == TACHO_REC_POLL_BEGIN)
			return &s->open[d - 1];
	return NULL;
}

/* The outermost. */
static inline const struct tacho_open *tacho_underway_outer_poll(const struct tacho_underway *s)
{
	for (uint32_t i = 0; i < s->depth && i < TACHO_OPEN_MAX; i++)
		if (s->open[i].what == TACHO_REC_POLL_BEGIN)
			return &s->open[i];
	return NULL;
}

#endif
