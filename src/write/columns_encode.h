/*
 * Records of one stretch into the payload of an EVENTS block (format/trace.h). The
 * decoder is in read/columns.h.
 */
#ifndef TACHO_WRITE_COLUMNS_ENCODE_H
#define TACHO_WRITE_COLUMNS_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "read/records.h"

/* Keeps its memory from one call to the next. Zeroed to begin with. */
struct tacho__encoder {
	uint8_t *data; /* the payload */
	size_t size;
	size_t capacity;
	uint32_t *cuts; /* offsets in data at which another kind of bytes begins: good places to
			   end a block of a compressor */
	uint32_t cut_count;
	uint32_t cut_capacity;
	int error;	     /* of what is being encoded: the first */
	uint8_t after_large; /* the bytes before e->size were worth a cut */
	uint8_t quick;	     /* set by the caller: sooner done rather than small */
	struct tacho__encoder_scratch *scratch;
};

/*
 * Encodes `r` into e->data. Records must be as a reader gives them: known or unknown
 * types, never NONE or TIME; times that never decrease. first_ns and last_ns are
 * taken from the records, if there are any, the rest of the head is kept.
 *   -EINVAL  more than TACHO_BLOCK_EVENTS_MAX records, or such as no reader gives
 *   -EFBIG   the payload would be larger than TACHO_BLOCK_MAX
 *   -ENOMEM
 */
int tacho__columns_encode(struct tacho__encoder *e, const struct tacho__records *r);
void tacho__encoder_free(struct tacho__encoder *e);

#endif
