/*
 * Compares what can be read of a box or trace file with what really happened: every
 * committed record is there, none is invented, and holes are where the reader says.
 */
#ifndef TACHO_TESTS_CRASH_VERIFY_H
#define TACHO_TESTS_CRASH_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "truth.h"

enum verify_flag {
	VERIFY_SIGNALS = 1, /* signal handlers recorded as well */
	VERIFY_LIVE = 2,    /* the process goes on recording while it is read */
	VERIFY_CUT = 4,	    /* a file that is allowed to end early */
	VERIFY_OTHERS = 8,  /* records that are not of the pattern are passed over */
};

struct verify {
	/* in */
	const struct truth *truth;
	uint32_t first, end; /* sequences that may be there */
	unsigned flags;
	/* out */
	char why[512];
	uint64_t events;  /* of the pattern */
	uint64_t missing; /* in holes that the reader told of */
	uint64_t holes;
	uint64_t overwritten; /* chunks, as the recorder counts */
	uint64_t nested;      /* events of signal handlers in streams of their own */
	uint64_t torn;	      /* reads that met chunks being overwritten: 0 or 1 */
	uint32_t crashes;
	uint64_t polls_counted;	 /* short polls in histograms */
	uint64_t polls_recorded; /* ... and one by one */
	uint64_t polls_open;
};

/* 0, or 1 with `why`, or a negative errno with the reader's message when it cannot be opened. */
int verify_file(struct verify *v, const char *path);

#endif
