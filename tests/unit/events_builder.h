/* EVENTS blocks for tests, made with the writer's encoder. */
#ifndef TESTS_EVENTS_BUILDER_H
#define TESTS_EVENTS_BUILDER_H

#include <zstd.h>

#include "write/columns_encode.h"
#include "box_builder.h"

struct eb {
	struct tacho__records r;
};

static inline void eb_init(struct eb *e, uint32_t thread, uint32_t sequence, uint64_t prior)
{
	memset(e, 0, sizeof(*e));
	assert(!tacho__records_reserve(&e->r, 4096, 16384));
	e->r.head.size = sizeof(e->r.head);
	e->r.head.thread = thread;
	e->r.head.tid = 1000 + thread;
	e->r.head.sequence = sequence;
	e->r.head.prior_records = prior;
	e->r.head.flags = TACHO_CHUNK_SEALED;
	strcpy(e->r.head.name, "worker");
}

static inline void eb_record(struct eb *e, uint64_t ns, unsigned type, uint32_t arg,
			     const uint64_t *words, uint32_t n)
{
	tacho__records_put(&e->r, ns, tacho_record_head(type, arg), words, n);
	if (e->r.head.count == 1)
		e->r.head.first_ns = ns;
	e->r.head.last_ns = ns;
}

/* `n` records, one each ten nanoseconds. */
static inline void eb_fill(struct eb *e, uint64_t ns, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t task = 0x1000 + i % 7;

		eb_record(e, ns + 10 * i, TACHO_REC_WAKE, 0, &task, 1);
	}
}

/* Adds the block and frees the records; the offset of the block. */
static inline uint64_t eb_done(struct eb *e, struct tb *t)
{
	struct tacho__encoder encoder = {0};
	uint64_t offset;
	uint8_t *stored;
	size_t size;

	assert(!tacho__columns_encode(&encoder, &e->r));
	size = ZSTD_compressBound(encoder.size);
	stored = malloc(size);
	size = ZSTD_compress(stored, size, encoder.data, encoder.size, 3);
	assert(!ZSTD_isError(size));
	offset = tb_block(t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_ZSTD, stored, (uint32_t)size,
			  (uint32_t)encoder.size);
	t->index[t->index_count - 1].thread = e->r.head.thread;
	t->index[t->index_count - 1].stream = e->r.head.stream;
	t->index[t->index_count - 1].count = e->r.head.count;
	t->index[t->index_count - 1].first_ns = e->r.head.first_ns;
	t->index[t->index_count - 1].last_ns = e->r.head.last_ns;
	free(stored);
	tacho__encoder_free(&encoder);
	tacho__records_free(&e->r);
	return offset;
}

#endif
