/*
 * How far each stream of a process has been delivered, and what its thread was doing there.
 */
#ifndef TACHO_AGENT_SEGMENT_STREAMS_H
#define TACHO_AGENT_SEGMENT_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/records.h"

struct tacho__delivery {
	uint32_t thread;
	uint16_t stream;
	bool gone;		     /* its thread had ended, and it had no chunk, the last time */
	bool present;		     /* it has a chunk in the box */
	bool held;		     /* a chunk that is being written to was left for later: ... */
	uint32_t hold;		     /* ... this one of the sequence */
	bool unsealed;		     /* its newest chunk is being written to, ... */
	uint64_t prior;		     /* ... after so many records */
	uint64_t delivered;	     /* records, lost ones too */
	uint64_t begun;		     /* the same when the segment began */
	uint64_t generation, commit; /* of the open chunk that was copied last */
	/* The head of a block that would go on from here: no records, what is open. */
	struct tacho_trace_events head;
	struct tacho_open open[TACHO_OPEN_MAX];
};

struct tacho__streams {
	struct tacho__delivery *items; /* by thread and stream */
	uint32_t count, capacity;
};

/* NULL: it is not there; with `add`: no memory. Moves the others. */
struct tacho__delivery *tacho__streams_find(struct tacho__streams *s, uint32_t thread,
					    uint16_t stream, bool add);
/* Records up to the end of `r` are delivered; `r` is used up. */
void tacho__stream_advance(struct tacho__delivery *at, struct tacho__records *r);
/* Leaves those for which `keep` is true; returns the records of the others. */
uint64_t tacho__streams_keep(struct tacho__streams *s,
			     bool (*keep)(void *arg, struct tacho__delivery *at), void *arg);
void tacho__streams_free(struct tacho__streams *s);

/* What a segment, in file `fd`, tells of them and of what is missing. */
struct tacho__segment_facts {
	struct tacho__streams streams;
	uint64_t past; /* records of streams that it does not mention */
	bool past_known;
	uint64_t missing; /* records between its blocks of one stream, before new streams, and of
			      streams that were gone before anybody saw them */
	uint64_t counted; /* ... that its gaps say */
	uint64_t missing_from_ns, missing_to_ns;
	uint64_t gap_ns;		 /* where its last gap begins */
	struct tacho_trace_index *index; /* its whole blocks */
	uint32_t blocks, capacity;
	uint32_t tag;
	uint64_t size; /* of what is whole */
	bool known;    /* it says whose it is, so its head is whole */
	bool ended;    /* it has its end */
};

/* 0; -EBADMSG: it is no trace file; -ENOMEM; or as of pread(2). */
int tacho__segment_examine(struct tacho__segment_facts *facts, int fd);
void tacho__segment_facts_free(struct tacho__segment_facts *facts);

#endif
