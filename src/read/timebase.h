/*
 * From ticks to nanoseconds of CLOCK_MONOTONIC, by anchors: instants of which
 * both are known. Between two anchors time is linear; beyond the first and the
 * last it goes on by the slope between those two.
 */
#ifndef TACHO_READ_TIMEBASE_H
#define TACHO_READ_TIMEBASE_H

#include <stdint.h>

struct tacho__point {
	uint64_t ticks, ns;
	/* A chunk's anchor: two clock reads that may have been interrupted in between. One
	   that is close to another says less about the rate than it disturbs it. */
	uint32_t soft;
};

enum tacho__timebase_state {
	TACHO__TIMEBASE_GOOD,
	TACHO__TIMEBASE_ROUGH,	 /* anchors too close to each other for a good rate */
	TACHO__TIMEBASE_UNKNOWN, /* no rate at all: a tick is taken for a nanosecond */
};

struct tacho__timebase {
	struct tacho__point *points;
	uint32_t count, capacity;
	uint32_t kind;			/* enum tacho_clock */
	uint64_t slope_ns, slope_ticks; /* first to last */
};

int tacho__timebase_add(struct tacho__timebase *t, uint64_t ticks, uint64_t ns, int soft);
/* Once all anchors are there. Keeps those that agree; -ENOMEM or enum tacho__timebase_state. */
int tacho__timebase_settle(struct tacho__timebase *t);
/* *hint speeds up a sequence of calls with growing ticks; begin with 0. Never decreases
   when ticks do not; saturates. */
uint64_t tacho__timebase_ns(const struct tacho__timebase *t, uint64_t ticks, uint32_t *hint);
/* A duration. */
uint64_t tacho__timebase_span(const struct tacho__timebase *t, uint64_t ticks);
void tacho__timebase_free(struct tacho__timebase *t);

#endif
