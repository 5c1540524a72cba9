/*
 * What the kernel tells of the threads of recorded processes: samples with kernel frames, context
 * switches, and when the process was stopped. Kept in memory, at most so many bytes for each
 * process, until a trace is written.
 */
#ifndef TACHO_AGENT_KERNEL_H
#define TACHO_AGENT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tacho__records;
struct tacho__stop;
struct tacho__kernel; /* of one process */

struct tacho__kernel_options {
	uint32_t sample_hz; /* 0: no samples */
	bool switches;	    /* --sched */
	uint64_t max_bytes; /* that are kept; older ones make room */
	/*
	 * Since when a window may want them, CLOCK_MONOTONIC; 0: always. Asked before more memory
	 * is taken: what is older makes room first, so that no more is held than the box reaches
	 * back. NULL: it is not known.
	 */
	uint64_t (*since)(void *arg);
	void *arg;
};

/* 0: perf can do this here, for processes of this user; else -errno and a sentence that says
   what to do. Asked before a command is started, and by tacho doctor. */
int tacho__kernel_possible(const struct tacho__kernel_options *options, char *message,
			   size_t message_size);

/* NULL with a sentence when it cannot be had; with neither samples nor switches it always can.
   Threads that begin later are followed as well: at once, or before Linux 5.13 from the next tacho__kernel_drain on. */
struct tacho__kernel *tacho__kernel_new(uint32_t pid, const struct tacho__kernel_options *options,
					char *message, size_t message_size);
/* Threads that could not be followed, and the last reason (an errno). */
uint32_t tacho__kernel_missed(const struct tacho__kernel *k, int *error);
/* Told as a record of this thread. Where switches are known, they say when it was. */
void tacho__kernel_stopped(struct tacho__kernel *k, uint32_t tid, struct tacho__stop *stop);
/* A descriptor for poll(2): readable when tacho__kernel_drain should be called; -1: none. */
int tacho__kernel_fd(const struct tacho__kernel *k);
void tacho__kernel_drain(struct tacho__kernel *k);
/*
 * What is kept, as stretches for struct tacho__trace_options, one or more for each thread that
 * `thread` knows: it gives the number of a thread in the box, 0: none. They live until the next
 * call of any function here but tacho__kernel_delivered. *lost: samples and switches that the
 * kernel dropped so far. What is taken stays kept: readers tell by its number what two traces
 * share, as with chunks.
 */
int tacho__kernel_take(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid),
		       void *arg, const struct tacho__records **out, uint32_t *count,
		       uint64_t *lost);
/*
 * The same, of what was not delivered before. *lost counts also what made room undelivered.
 * Then tacho__kernel_delivered: the first `count` of the stretches are where they belong.
 */
int tacho__kernel_take_new(struct tacho__kernel *k, uint32_t (*thread)(void *arg, uint32_t tid),
			   void *arg, const struct tacho__records **out, uint32_t *count,
			   uint64_t *lost);
void tacho__kernel_delivered(struct tacho__kernel *k, uint32_t count);
void tacho__kernel_free(struct tacho__kernel *k);

#endif
