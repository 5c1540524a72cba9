/*
 * The blocks of a trace file one after the other, as its writer left them: for finishing a
 * segment whose agent died, and for finding out what a segment holds without reading it all.
 *
 * Stops at the first thing that is not a whole block. A file that is damaged further in is
 * for the reader (read/), which searches on.
 */
#ifndef TACHO_AGENT_SEGMENT_BLOCKS_H
#define TACHO_AGENT_SEGMENT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/block.h"

struct tacho__blocks {
	struct tacho__fd_input file;
	uint32_t tag;
	uint64_t next;	 /* where the next block begins */
	uint32_t number; /* of the next block */
	bool ended;	 /* the end mark was reached, and nothing follows it */
	/* The block that tacho__blocks_next found. */
	uint64_t offset;
	struct tacho_trace_block head;
	struct tacho__block_room room;
};

/* 0; -EBADMSG: it does not begin as a trace file does; or as of pread(2). */
int tacho__blocks_open(struct tacho__blocks *b, int fd);
/* 1: there is a block, by its header; 0: no more; or as of pread(2). */
int tacho__blocks_next(struct tacho__blocks *b);
/*
 * Checks the payload of the block, and decodes up to `wanted` bytes of it. *data lives until
 * the next call. -EBADMSG: it is damaged; -ENOMEM; or as of pread(2).
 */
int tacho__blocks_load(struct tacho__blocks *b, uint32_t wanted, const uint8_t **data,
		       uint32_t *size);
void tacho__blocks_free(struct tacho__blocks *b);

/* Whose a segment is. */
struct tacho__identity {
	uint32_t pid;
	uint64_t start_time, created_mono_ns;
	uint8_t boot_id[16];
	uint64_t segment;
	uint32_t taken_by;
	bool past_known;
	uint64_t past; /* TACHO_META_PAST */
};
bool tacho__identity_same(const struct tacho__identity *a, const struct tacho__identity *b);
/* From the payload of a META block. */
void tacho__identity_parse(struct tacho__identity *identity, const uint8_t *data, uint32_t size);
/* From the file: 0; -ENODATA: it has no META; -EBADMSG; or as of pread(2). */
int tacho__identity_read(struct tacho__identity *identity, int fd);

#endif
