/*
 * The self-check: a process that does a known number of things for about a second under the hooks,
 * and is killed; and what of that its box holds.
 */
#ifndef TACHO_DOCTOR_SELF_H
#define TACHO_DOCTOR_SELF_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "text/text.h"

struct tacho__self_counts {
	uint64_t waits;	  /* of a loop, on epoll */
	uint64_t locks;	  /* waits for a mutex that another thread held */
	uint64_t calls;	  /* blocking calls of a millisecond or more */
	uint64_t cpu_ns;  /* of its thread; recorded: that samples stand for */
	uint64_t samples; /* recorded: how many */
};

struct tacho__self {
	bool ran; /* else `reason` says why not */
	char reason[1024];
	uint64_t box_bytes;   /* size of its box */
	char box_reason[256]; /* why that is not the size that was wanted; "": it is */
	uint64_t took_ns;
	struct tacho__self_counts did, recorded;
	bool sched;		     /* a slow turn told how the scheduler treated it */
	char box[PATH_MAX];	     /* where it was recorded; it is deleted */
	char warning[TEXT_SENTENCE]; /* ... or why that failed; "": it did not */
};

struct tacho__checks;

/* Makes a check, and adds what came of it. */
void tacho__doctor_self(struct tacho__checks *c, struct tacho__self *self);

/* subject.c: what that process does; writes `did` to `out` and kills itself. A negative errno when
   it could not. */
int tacho__doctor_subject(int out);

#endif
