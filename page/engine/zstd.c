#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define FAILED SIZE_MAX
#define UNKNOWN ((unsigned long long)-1)
#define MAGIC 0xfd2fb528u

/* Decompresses one whole frame; 0 unless it has `out_size` bytes. */
__attribute__((import_module("page"), import_name("unzstd"))) int
page_unzstd(const void *in, size_t in_size, void *out, size_t out_size);

struct tacho_page_zstd {
	char *whole; /* of a frame that is wanted in part only */
	size_t capacity;
};

/* The first bytes of a frame say how long it is, in 1, 2, 4 or 8 bytes (RFC 8878, 3.1.1.1). */
unsigned long long ZSTD_getFrameContentSize(const void *src, size_t size)
{
	const uint8_t *p = src;
	static const uint8_t sizes[] = {0, 2, 4, 8}, dictionaries[] = {0, 1, 2, 4};
	uint32_t magic;
	uint64_t content = 0;
	size_t at, bytes;

	if (size < 18)
		return UNKNOWN;
	memcpy(&magic, p, sizeof(magic));
	bytes = sizes[p[4] >> 6];
	if (!bytes && p[4] & 0x20)
		bytes = 1;
	if (magic != MAGIC || !bytes)
		return UNKNOWN;
	at = 5 + (p[4] & 0x20 ? 0 : 1) + dictionaries[p[4] & 3];
	memcpy(&content, p + at, bytes);
	return bytes == 2 ? content + 256 : content;
}

/* Whether there is more than one frame is found out when it is decompressed. */
size_t ZSTD_findFrameCompressedSize(const void *src, size_t size)
{
	(void)src;
	return size;
}

ZSTD_DCtx *ZSTD_createDCtx(void)
{
	return calloc(1, sizeof(ZSTD_DCtx));
}

size_t ZSTD_freeDCtx(ZSTD_DCtx *zstd)
{
	if (zstd)
		free(zstd->whole);
	free(zstd);
	return 0;
}

size_t ZSTD_DCtx_reset(ZSTD_DCtx *zstd, ZSTD_ResetDirective reset)
{
	(void)zstd;
	(void)reset;
	return 0;
}

size_t ZSTD_decompressStream(ZSTD_DCtx *zstd, ZSTD_outBuffer *out, ZSTD_inBuffer *in)
{
	unsigned long long size = ZSTD_getFrameContentSize(in->src, in->size);

	if (out->pos || in->pos || size < out->size || size > SIZE_MAX / 2)
		return FAILED;
	if (size == out->size) {
		if (!page_unzstd(in->src, in->size, out->dst, out->size))
			return FAILED;
	} else {
		if (size > zstd->capacity) {
			free(zstd->whole);
			zstd->whole = malloc((size_t)size);
			zstd->capacity = zstd->whole ? (size_t)size : 0;
		}
		if (!zstd->whole ||
		    !page_unzstd(in->src, in->size, zstd->whole, (size_t)size))
			return FAILED;
		memcpy(out->dst, zstd->whole, out->size);
	}
	out->pos = out->size;
	in->pos = in->size;
	return 0;
}

unsigned ZSTD_isError(size_t code)
{
	return code == FAILED;
}
