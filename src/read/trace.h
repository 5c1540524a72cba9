/* A trace file while it is opened. */
#ifndef TACHO_READ_TRACE_H
#define TACHO_READ_TRACE_H

#include "read/reader.h"

struct tacho__trace {
	struct tacho_reader *reader;
	uint32_t source;
	struct tacho__input *in;
	uint64_t begin; /* of the blocks */
	uint32_t tag;
	struct tacho_trace_index *blocks; /* offset, size and type; the rest only if listed */
	uint32_t block_count, block_capacity;
	uint32_t expected; /* number of the next block */
	uint32_t problems; /* that there were before */
	int listed;	   /* from the index */
	int index_checked; /* the INDEX block was loaded, and reported if it was damaged */
};

/* Reads all blocks but those of events; -EBADMSG: there is not one good block. */
int tacho__trace_contents(struct tacho__trace *t);

#endif
