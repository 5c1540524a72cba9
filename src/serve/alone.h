/* The page in one file, which opens without a server. */
#ifndef TACHO_SERVE_ALONE_H
#define TACHO_SERVE_ALONE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Of a trace that is written into it. */
#define TACHO__ALONE_MAX (UINT64_C(512) << 20)

/* Writes it to `out`, with the trace of `fd`, which has `size` bytes, or without one (-1). 0, or a
   negative errno. */
int tacho__alone_write(FILE *out, int fd, uint64_t size);

#endif
