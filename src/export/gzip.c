#include "export/gzip.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define WINDOW_AND_GZIP (15 + 16) /* zlib's way to say: the largest window, with gzip's head */
#define MEMORY_DEFAULT 8

void tacho__gzip_begin(struct tacho__gzip *g, const struct tacho__sink *sink)
{
	memset(g, 0, offsetof(struct tacho__gzip, block));
	g->sink = *sink;
	if (deflateInit2(&g->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_AND_GZIP,
			 MEMORY_DEFAULT, Z_DEFAULT_STRATEGY) != Z_OK)
		g->error = -ENOMEM;
}

/* Compresses what is left of the input; with Z_FINISH all that zlib still holds, too. */
static void deflate_all(struct tacho__gzip *g, int flush)
{
	do {
		g->stream.next_out = g->block;
		g->stream.avail_out = sizeof(g->block);
		deflate(&g->stream, flush);
		if (g->stream.avail_out < sizeof(g->block))
			g->error = g->sink.write(g->sink.arg, g->block,
						 sizeof(g->block) - g->stream.avail_out);
	} while (!g->error && !g->stream.avail_out);
}

void tacho__gzip_write(struct tacho__gzip *g, const void *data, size_t size)
{
	const uint8_t *at = data;

	while (size && !g->error) {
		size_t n = size < INT_MAX ? size : INT_MAX;

		g->stream.next_in = (z_const Bytef *)at;
		g->stream.avail_in = (uInt)n;
		deflate_all(g, Z_NO_FLUSH);
		at += n;
		size -= n;
	}
}

int tacho__gzip_end(struct tacho__gzip *g)
{
	if (!g->error)
		deflate_all(g, Z_FINISH);
	deflateEnd(&g->stream);
	return g->error;
}
