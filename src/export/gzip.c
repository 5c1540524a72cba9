#include "export/gzip.h"

#include <string.h>

static void put(struct tacho__gzip *g, const void *data, size_t size)
{
	if (!g->error)
		g->error = g->sink.write(g->sink.arg, data, size);
}

void tacho__gzip_begin(struct tacho__gzip *g, const struct tacho__sink *sink)
{
	/* Deflate, no flags, no time, fastest, any system. */
	static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255};

	g->sink = *sink;
	g->crc = 0xffffffffu;
	g->size = g->used = 0;
	g->error = 0;
	put(g, head, sizeof(head));
}

static void flush(struct tacho__gzip *g, int last)
{
	uint8_t head[5] = {last ? 1 : 0, (uint8_t)g->used, (uint8_t)(g->used >> 8),
			   (uint8_t)~g->used, (uint8_t)(~g->used >> 8)};

	put(g, head, sizeof(head));
	put(g, g->block, g->used);
	g->used = 0;
}

/* Four bits at a time: the polynomial 0xedb88320, reflected. */
static uint32_t crc_of(uint32_t crc, const uint8_t *data, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};

	for (size_t i = 0; i < size; i++) {
		crc = table[(crc ^ data[i]) & 15] ^ crc >> 4;
		crc = table[(crc ^ data[i] >> 4) & 15] ^ crc >> 4;
	}
	return crc;
}

void tacho__gzip_write(struct tacho__gzip *g, const void *data, size_t size)
{
	const uint8_t *b = data;

	g->crc = crc_of(g->crc, b, size);
	g->size += (uint32_t)size; /* modulo 2^32, as the format wants it */
	while (size) {
		size_t n = TACHO__GZIP_BLOCK - g->used;

		if (n > size)
			n = size;
		memcpy(g->block + g->used, b, n);
		g->used += (uint32_t)n;
		b += n;
		size -= n;
		if (g->used == TACHO__GZIP_BLOCK)
			flush(g, 0);
	}
}

int tacho__gzip_end(struct tacho__gzip *g)
{
	uint32_t tail[2] = {~g->crc, g->size};
	uint8_t bytes[8];

	flush(g, 1);
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(tail[i / 4] >> 8 * (i % 4));
	put(g, bytes, sizeof(bytes));
	return g->error;
}
