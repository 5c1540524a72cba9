/*
 * Measuring in blocks: a case is a loop over one operation, a block some
 * milliseconds of it. All cases take turns, block by block, so that what else
 * happens on the machine meets all of them alike.
 */
#ifndef TACHO_BENCH_BLOCKS_H
#define TACHO_BENCH_BLOCKS_H

#include <stdint.h>

#define BENCH_THREADS 2

/* What the operation leaves behind must not be moved out of the loop, nor the loop away. */
#define BENCH_BARRIER() __asm__ volatile("" ::: "memory")

struct bench_case {
	const char *name;
	void (*run)(uint64_t operations);
	uint64_t operations;  /* in a block of one thread */
	uint32_t events;      /* in one operation; costs are per event */
	void (*before)(void); /* in the main thread before a block, and after; may be NULL */
	void (*after)(void);
};

/*
 * Runs each case `repeats` times on one thread and as often on two, and prints for
 * each block and thread
 *
 *   block CASE THREADS REPEAT WALL CPU
 *
 * with nanoseconds per event of the wall clock and of the thread's CPU clock. A
 * block in which both are near each other was not disturbed by other processes.
 * How many events were made in all is added to made[case]. Returns 0 or -errno.
 */
int bench_blocks(const struct bench_case *cases, unsigned count, unsigned repeats, uint64_t *made);

#endif
