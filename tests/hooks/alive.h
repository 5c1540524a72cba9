/* When the programs of alive.py begin something: once for each 5 ms of 4 s that have passed, however
   busy the machine is. */
#ifndef TESTS_HOOKS_ALIVE_H
#define TESTS_HOOKS_ALIVE_H

#include <stdint.h>
#include <time.h>

#define TICKS 800u

static unsigned ticks;

/* Counts one that is due; 0: none is. */
static inline int tick_due(void)
{
	static int64_t begin;
	struct timespec t;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	if (!begin)
		begin = now;
	if (ticks >= TICKS || now - begin < 5 * ticks)
		return 0;
	ticks++;
	return 1;
}

#endif
