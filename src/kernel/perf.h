/*
 * perf events of the threads of one process: samples with kernel frames, context switches.
 *
 * Each CPU has one ring, which an event of our own thread owns that never counts anything;
 * the events of all followed threads write into the ring of the CPU they run on. So the
 * memory that is locked is that of the CPUs, as the limit on it is (perf_event_mlock_kb),
 * and no ring ends with its thread. Threads that followed ones make are followed by the
 * kernel itself, children by fork are not (since Linux 5.13; before, tacho__perf_threads
 * looks for new threads). An exec ends it all.
 *
 * Nobody is woken before a ring is half full, so an idle program wakes nobody.
 */
#ifndef TACHO_KERNEL_PERF_H
#define TACHO_KERNEL_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/perf_record.h"

struct tacho__perf;

struct tacho__perf_options {
	uint32_t pid;
	uint32_t sample_hz; /* 0: no samples */
	bool switches;
};

/* At which step something failed. */
enum tacho__perf_step {
	TACHO__PERF_MEMORY,
	TACHO__PERF_OPEN,  /* perf_event_open */
	TACHO__PERF_RING,  /* mapping the rings */
	TACHO__PERF_TASKS, /* reading /proc/PID/task */
};

/* 0, or -errno and where. */
int tacho__perf_new(struct tacho__perf **out, const struct tacho__perf_options *options,
		    enum tacho__perf_step *step);
void tacho__perf_free(struct tacho__perf *p);
/* For poll(2). */
int tacho__perf_fd(const struct tacho__perf *p);

/* Follows threads that are not followed yet. */
void tacho__perf_threads(struct tacho__perf *p);
/* Threads that could not be followed, and the last reason (an errno). */
uint32_t tacho__perf_missed(const struct tacho__perf *p, int *error);

/* Hands out and forgets what is in the rings: of each CPU in the order of time. */
void tacho__perf_drain(struct tacho__perf *p,
		       void (*record)(void *arg, const struct tacho__perf_record *record),
		       void *arg);
/* Records that found no room in a ring, or could not be made sense of. */
uint64_t tacho__perf_lost(const struct tacho__perf *p);

#endif
