/*
 * What really happened in a victim, kept outside of its box in memory that it shares
 * with the test: it survives the victim's death, whichever way that comes.
 */
#ifndef TACHO_TESTS_CRASH_TRUTH_H
#define TACHO_TESTS_CRASH_TRUTH_H

#include <stddef.h>
#include <stdint.h>

#define TRUTH_SEQUENCES 24576u
#define TRUTH_BOXES 3u
#define TRUTH_REASON "number %u" /* of a trigger */

enum truth_ended {
	TRUTH_RECORDS = 0,	/* its thread goes on */
	TRUTH_ENDED = 1,	/* it records no more, and others may have overwritten it all */
	TRUTH_ENDED_LATELY = 2, /* it records no more, and all must be there */
};

struct truth_sequence {
	uint64_t begun; /* records whose call was entered */
	uint64_t done;	/* records whose call has returned: committed */
	uint32_t ended; /* enum truth_ended */
	uint32_t tid;
	uint64_t pace; /* truth.pace when it last waited for the others; 0: it does not */
};

/* A box that a victim is about to make or has made. */
struct truth_box {
	char path[256];	     /* "" until the call that makes it has returned */
	uint32_t first, end; /* the sequences that go into it */
};

struct truth {
	uint32_t boxes;
	uint32_t finished; /* processes that came to their end */
	uint32_t used;	   /* sequences in use: the next thread takes this one */
	uint64_t pace;	   /* bytes recorded by the threads that wait for each other */
	int64_t passed;	   /* how often the test point was passed, by those that finished */
	uint64_t polls_begun, polls_done; /* short polls */
	uint64_t value[8];		  /* of the scenario */
	struct truth_box box[TRUTH_BOXES];
	struct truth_sequence sequence[TRUTH_SEQUENCES];
};

/* Shared memory for one, emptied by truth_clear. */
struct truth *truth_map(void);
void truth_clear(struct truth *truth);

/* The next three sequences; how many there were before, or TRUTH_SEQUENCES when all are used. */
uint32_t truth_take(struct truth *truth, int tid);

/* Record n of the sequence is made, and its beginning and end noted. */
void truth_put(struct truth *truth, uint32_t sequence);

/*
 * Waits while another thread is far behind: one that does not run for a while could
 * else find, rightly, that all its records made room for those of the others.
 */
void truth_wait(struct truth *truth, uint32_t sequence);

/* This process is about to make a box: the sequences that are taken from now on go into it. */
void truth_box_begin(struct truth *truth);
/* The box is there. */
void truth_box_made(struct truth *truth);

#endif
