#include "write/columns_put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/columns_cost.h"

/* Fewer bytes than these share a block of the compressor with their neighbours: the
   tables of a block of their own would cost more than they save. */
#define CUT_BYTES 192u

int tacho__put_room(struct tacho__encoder *e, size_t size)
{
	size_t capacity = e->capacity ? e->capacity : 65536;
	uint8_t *data;

	if (!e->error && size > TACHO_BLOCK_MAX - e->size)
		e->error = -EFBIG;
	if (e->error || e->size + size <= e->capacity)
		return e->error;
	while (capacity < e->size + size)
		capacity *= 2;
	data = realloc(e->data, capacity);
	if (!data)
		return e->error = -ENOMEM;
	e->data = data;
	e->capacity = capacity;
	return 0;
}

void tacho__put_raw(struct tacho__encoder *e, const void *bytes, size_t size)
{
	if (tacho__put_room(e, size))
		return;
	if (size)
		memcpy(e->data + e->size, bytes, size);
	e->size += size;
}

void tacho__put_cut(struct tacho__encoder *e, size_t size)
{
	int large = size >= CUT_BYTES;
	int wanted = large || e->after_large;

	e->after_large = (uint8_t)large;
	if (!wanted)
		return;
	if (e->cut_count == e->cut_capacity) {
		uint32_t capacity = e->cut_capacity ? 2 * e->cut_capacity : 256;
		uint32_t *cuts = realloc(e->cuts, capacity * sizeof(*cuts));

		if (!cuts) {
			e->error = -ENOMEM;
			return;
		}
		e->cuts = cuts;
		e->cut_capacity = capacity;
	}
	e->cuts[e->cut_count++] = (uint32_t)e->size;
}

static void put_column_head(struct tacho__encoder *e, enum tacho_transform transform, uint8_t width,
			    uint8_t list)
{
	const uint8_t head[3] = {(uint8_t)transform, width, list};

	tacho__put_raw(e, head, transform == TACHO_TRANSFORM_DICT ? 3 : 2);
}

static void put_planes(struct tacho__encoder *e, const uint64_t *v, uint32_t count, unsigned width)
{
	if (tacho__put_room(e, (size_t)count * width))
		return;
	for (unsigned k = 0; k < width; k++) {
		uint8_t *p = e->data + e->size;

		if (k)
			tacho__put_cut(e, count);
		for (uint32_t i = 0; i < count; i++)
			p[i] = (uint8_t)(v[i] >> (8 * k));
		e->size += count;
	}
}

static void put_bits(struct tacho__encoder *e, const uint64_t *v, uint32_t count, unsigned bits)
{
	size_t size = ((size_t)count * bits + 7) / 8;
	uint8_t *p;

	if (tacho__put_room(e, size))
		return;
	p = e->data + e->size;
	memset(p, 0, size);
	for (uint32_t i = 0; i < count; i++)
		p[(size_t)i * bits / 8] |= (uint8_t)(v[i] << (size_t)i * bits % 8);
	e->size += size;
}

/*
 * Bits of a value when the column is better packed, else 0. Huffman coding needs a
 * bit for each byte at least; packed bytes hold several values.
 */
static unsigned packed_bits(const uint64_t *v, uint32_t count)
{
	struct tacho__cost cost;
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++)
		all |= v[i];
	if (all == 0 || all > 15)
		return 0;
	if (all < 4)
		return all == 1 ? 1 : 2;
	tacho__cost_plain(v, count, &cost);
	return cost.bits < count ? 4 : 0;
}

void tacho__put_column(struct tacho__encoder *e, enum tacho_transform transform, uint8_t list,
		       const uint64_t *v, uint32_t count)
{
	unsigned bits = packed_bits(v, count);
	unsigned width = bits ? TACHO_COLUMN_BITS | bits : tacho__cost_width(v, count);

	tacho__put_cut(e, bits ? (size_t)count * bits / 8 : width ? count : 0);
	put_column_head(e, transform, (uint8_t)width, list);
	if (bits)
		put_bits(e, v, count, bits);
	else
		put_planes(e, v, count, width);
}

void tacho__put_bytes(struct tacho__encoder *e, const uint64_t *v, uint32_t count)
{
	tacho__put_cut(e, count);
	put_column_head(e, TACHO_TRANSFORM_PLAIN, 1, 0);
	put_planes(e, v, count, 1);
}

static uint64_t zigzag(uint64_t d)
{
	return (d << 1) ^ (0 - (d >> 63));
}

void tacho__put_simple(struct tacho__encoder *e, uint64_t *v, uint32_t count)
{
	struct tacho__cost plain = {0}, delta = {0};

	if (!e->quick)
		tacho__cost_simple(v, count, &plain, &delta);
	if (delta.bits < plain.bits) {
		for (uint32_t i = count - 1; i > 0; i--)
			v[i] = zigzag(v[i] - v[i - 1]);
		v[0] = zigzag(v[0]);
		tacho__put_column(e, TACHO_TRANSFORM_DELTA, 0, v, count);
	} else {
		tacho__put_column(e, TACHO_TRANSFORM_PLAIN, 0, v, count);
	}
}

void tacho__put_words_head(struct tacho__encoder *e, uint32_t count)
{
	tacho__put_cut(e, (size_t)count * 8);
	put_column_head(e, TACHO_TRANSFORM_WORDS, 8, 0);
}
