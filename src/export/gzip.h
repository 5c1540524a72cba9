/* A gzip file (RFC 1952), made by zlib. */
#ifndef TACHO_EXPORT_GZIP_H
#define TACHO_EXPORT_GZIP_H

#include <zlib.h>

#include "export/proto.h"

struct tacho__gzip {
	struct tacho__sink sink;
	z_stream stream;
	int error; /* the first: a negative errno, or what the sink returned */
	uint8_t block[65536];
};

void tacho__gzip_begin(struct tacho__gzip *g, const struct tacho__sink *sink);
void tacho__gzip_write(struct tacho__gzip *g, const void *data, size_t size);
/* Writes the rest unless there was an error, and frees. Returns the error or 0. */
int tacho__gzip_end(struct tacho__gzip *g);

#endif
