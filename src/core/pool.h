/* The chunks of the box: taking one, giving it back. Lock-free, async-signal-safe. */
#ifndef TACHO_CORE_POOL_H
#define TACHO_CORE_POOL_H

#include <stdint.h>

#include "core/recorder.h"

/*
 * Takes a chunk: a whole one if wanted and to be had, else a small one. Returns its
 * offset in the pool in units of TACHO_SMALL_SIZE and its size in *size, or
 * TACHO_NO_CHUNK. What was in it is gone.
 */
uint32_t tacho__pool_take(int whole, uint32_t *size);

/* The thread is done with the chunk; its records stay until the hand comes by. */
void tacho__pool_release(uint32_t chunk);

/* Ticks that `ns` nanoseconds take, at the rate seen since recording began; UINT64_MAX in the
   first milliseconds, when that is not known. */
uint64_t tacho__ticks_of_ns(uint64_t ns);

/* Nanoseconds that a stretch of `ticks` since the first box was made took, at the same rate. */
uint64_t tacho__ns_of_ticks(uint64_t ticks);

static inline uint32_t tacho__chunk_index(const struct tacho_chunk *c)
{
	return (uint32_t)((uint64_t)((const uint8_t *)c - tacho__rec->pool) / TACHO_SMALL_SIZE);
}

#endif
