/*
 * The blocks of a trace file: their headers, their payloads, and what stands in these. For the
 * reader, which looks at all of a file and searches on behind damage, and for an agent, which goes
 * through the segments that it finds block by block (agent/segment_blocks.h).
 */
#ifndef TACHO_READ_BLOCK_H
#define TACHO_READ_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "format/trace.h"
#include "read/input.h"

/* 0; -EBADMSG: magic or checksum fail; -ENOTSUP: a newer version; -EINVAL: sizes that none has. */
int tacho__file_check(const struct tacho_trace_file *file);
/* 1: a header of a block of this file, by magic, tag and checksum, with possible sizes. */
int tacho__block_check(const struct tacho_trace_block *head, const uint32_t *tag);
/* 1: an end mark. */
int tacho__end_check(const struct tacho_trace_end *end);
/* Header, payload and padding. */
uint64_t tacho__block_size(const struct tacho_trace_block *head);

/* ----------------------------------------------------------------- payload */

/* Buffers for one block. */
struct tacho__block_room {
	uint8_t *stored, *raw;
	size_t stored_size, raw_size;
	void *zstd; /* ZSTD_DCtx */
};

/*
 * Reads and checks the payload of the block at `offset`, whose header was checked, and decodes the
 * first *size bytes of it, or all if there are no more. *data lives until the next call. -EBADMSG,
 * -ENOMEM or what the input says, with *wrong: what is wrong with the block.
 */
int tacho__block_decode(struct tacho__block_room *room, struct tacho__input *in, uint64_t offset,
			const struct tacho_trace_block *head, const uint8_t **data, uint32_t *size,
			const char **wrong);
void tacho__block_room_free(struct tacho__block_room *room);

/* -------------------------------------------------------------------- META */

struct tacho__meta {
	const uint8_t *data; /* the payload */
	uint32_t size;
	uint32_t at;
	/* The entry. */
	uint32_t key; /* enum tacho_meta_key */
	uint32_t bytes;
	const uint8_t *value;
	uint64_t number; /* the value, if it is one */
};

/* 1: the next entry; 0: there are no more; -EBADMSG: what follows does not fit. */
int tacho__meta_next(struct tacho__meta *m);

/* ------------------------------------------------------------------ arrays */

struct tacho__array {
	const uint8_t *entries;
	uint32_t entry_size, count;
};

/* -EBADMSG: entries of less than `least` bytes, or more of them than the payload holds. */
int tacho__array_open(struct tacho__array *a, const uint8_t *data, uint32_t size, size_t least);
/* The first `size` bytes of an entry; what a shorter one lacks is 0. */
void tacho__array_get(const struct tacho__array *a, uint32_t index, void *to, size_t size);

#endif
