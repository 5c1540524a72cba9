/*
 * A gzip file (RFC 1952) of stored blocks (RFC 1951, 3.2.4): for formats that ask for gzip where
 * size does not matter enough for a compressor.
 */
#ifndef TACHO_EXPORT_GZIP_H
#define TACHO_EXPORT_GZIP_H

#include "export/proto.h"

#define TACHO__GZIP_BLOCK 65535u

struct tacho__gzip {
	struct tacho__sink sink;
	uint32_t crc, size;
	uint32_t used;
	int error; /* of the first write that failed */
	uint8_t block[TACHO__GZIP_BLOCK];
};

void tacho__gzip_begin(struct tacho__gzip *g, const struct tacho__sink *sink);
void tacho__gzip_write(struct tacho__gzip *g, const void *data, size_t size);
/* 0, or the error of the first write that failed. */
int tacho__gzip_end(struct tacho__gzip *g);

#endif
