/* A box while it is read. */
#ifndef TACHO_READ_BOX_H
#define TACHO_READ_BOX_H

#include "read/reader.h"

struct tacho__box {
	struct tacho_reader *reader;
	uint32_t source;
	struct tacho__input *in;
	struct tacho_box_super super;
	struct tacho__parts parts;
	uint64_t newest; /* generation: younger chunks were made after we began */
};

/* Entries of a region that can be read: at most `wanted`, 0 if it is not what it should be.
   Every version of a box has entries of one size. */
uint32_t tacho__box_region(struct tacho__box *b, enum tacho_region which, uint32_t entry,
			   uint32_t wanted);

/* box_chunks.c: copies all chunks and makes stretches of them. */
int tacho__box_chunks(struct tacho__box *b);

#endif
