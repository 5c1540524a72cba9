/* A trace file being written: its header, its blocks one by one, its index, its end. */
#ifndef TACHO_WRITE_TRACE_OUTPUT_H
#define TACHO_WRITE_TRACE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include <zstd.h>

#include "format/trace.h"

struct tacho__output {
	int fd;
	int level; /* of zstd; 0: the default; -1: nothing is compressed */
	uint32_t tag;
	uint32_t blocks; /* written */
	uint64_t offset; /* bytes written */
	uint8_t *buffer; /* one block */
	size_t capacity;
	ZSTD_CCtx *zstd;
	struct tacho_trace_index *index;
	uint32_t index_count, index_capacity;
	int error;     /* the first: a negative errno; nothing is written after it */
	char *message; /* the sentence that goes with it; may be NULL */
	size_t message_size;
};

/* Where a compressor may better begin anew; see columns_encode.h. */
struct tacho__cuts {
	const uint32_t *at;
	uint32_t count;
};

/* Bytes being put together for a payload. */
struct tacho__bytes {
	uint8_t *data;
	size_t size;
	size_t capacity;
	int error; /* -ENOMEM: some are missing */
};

/* The entry of a block in the index; `events`: the head of an EVENTS block, else NULL. */
struct tacho_trace_index tacho__index_entry(uint64_t offset, uint32_t size, uint16_t type,
					    const struct tacho_trace_events *events);

/* All return o->error: whoever writes several things looks at the last. */

int tacho__output_begin(struct tacho__output *o);
/* `events` names what is in an EVENTS block, for the index; else NULL. */
int tacho__output_block(struct tacho__output *o, enum tacho_block_type type, const void *payload,
			size_t size, const struct tacho__cuts *cuts,
			const struct tacho_trace_events *events);
/* A block of what was put together; frees it. */
int tacho__output_bytes(struct tacho__output *o, enum tacho_block_type type,
			struct tacho__bytes *b);
int tacho__output_end(struct tacho__output *o);
void tacho__output_free(struct tacho__output *o);

/* Says what failed, unless something failed before. */
int tacho__output_fail(struct tacho__output *o, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int tacho__output_no_memory(struct tacho__output *o);

/* Return b->error. */
int tacho__bytes_put(struct tacho__bytes *b, const void *data, size_t size);
int tacho__bytes_pad(struct tacho__bytes *b); /* with zeros to 8 bytes */
void tacho__bytes_free(struct tacho__bytes *b);

#endif
