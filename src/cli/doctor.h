/*
 * The self-check of `tacho doctor`: a process that does a known number of things for about a
 * second under the hooks, and is killed; and what of that its box holds.
 */
#ifndef TACHO_CLI_DOCTOR_H
#define TACHO_CLI_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/cli.h"

struct doctor_counts {
	uint64_t waits;	  /* of a loop, on epoll */
	uint64_t locks;	  /* waits for a mutex that another thread held */
	uint64_t calls;	  /* blocking calls of a millisecond or more */
	uint64_t cpu_ns;  /* of its thread; recorded: that samples stand for */
	uint64_t samples; /* recorded: how many */
};

struct doctor_self {
	bool ran; /* else `reason` says why not */
	char reason[CLI_MESSAGE];
	uint64_t took_ns;
	struct doctor_counts did, recorded;
	bool sched;	    /* a slow turn told how the scheduler treated it */
	char box[PATH_MAX]; /* where it was recorded; it is deleted */
};

void doctor_self_check(struct doctor_self *self);

/* doctor_subject.c: what that process does; writes `did` to standard output and kills itself. */
int doctor_subject(void);

#endif
