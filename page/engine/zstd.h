/*
 * What src/read needs of zstd, for the page: the browser's side decompresses (engine.c asks it to).
 * Frames of the kind that traces have, with their size in front.
 */
#ifndef TACHO_PAGE_ZSTD_H
#define TACHO_PAGE_ZSTD_H

#include <stddef.h>

typedef struct tacho_page_zstd ZSTD_DCtx;
typedef struct {
	const void *src;
	size_t size, pos;
} ZSTD_inBuffer;
typedef struct {
	void *dst;
	size_t size, pos;
} ZSTD_outBuffer;
typedef enum { ZSTD_reset_session_only = 1 } ZSTD_ResetDirective;

unsigned long long ZSTD_getFrameContentSize(const void *src, size_t size);
size_t ZSTD_findFrameCompressedSize(const void *src, size_t size);
ZSTD_DCtx *ZSTD_createDCtx(void);
size_t ZSTD_freeDCtx(ZSTD_DCtx *zstd);
size_t ZSTD_DCtx_reset(ZSTD_DCtx *zstd, ZSTD_ResetDirective reset);
size_t ZSTD_decompressStream(ZSTD_DCtx *zstd, ZSTD_outBuffer *out, ZSTD_inBuffer *in);
unsigned ZSTD_isError(size_t code);

#endif
