/* Hashes for tables. None withstands somebody who looks for collisions. */
#ifndef TACHO_BASE_HASH_H
#define TACHO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* For one number, in one multiplication: the upper bits depend on all of it, and numbers in a
   row lie far apart there. */
static inline uint64_t tacho__mix(uint64_t v)
{
	return v * 0x9e3779b97f4a7c15ull; /* 2^64 divided by the golden section */
}

/* FNV-1a of 32 bits. */
static inline uint32_t tacho__fnv1a(const void *data, size_t size, uint32_t seed)
{
	const uint8_t *b = data;
	uint32_t h = 2166136261u ^ seed;

	for (size_t i = 0; i < size; i++)
		h = (h ^ b[i]) * 16777619u;
	return h;
}

/* Hashes of 64 good bits: two with different seeds are independent of each other. */
static inline uint64_t tacho__hash_words(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h = (a ^ tacho__mix(b)) + (c ^ c >> 29) * 0xbf58476d1ce4e5b9ull;

	h = (h ^ h >> 32) * 0xff51afd7ed558ccdull;
	h = (h ^ h >> 29) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 32;
}

static inline uint64_t tacho__hash_bytes(const void *data, size_t size, uint64_t seed)
{
	const uint8_t *b = data;
	uint64_t h = 0xcbf29ce484222325ull ^ tacho__mix(seed); /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		h = (h ^ b[i]) * 0x100000001b3ull;
	return tacho__hash_words(h, size, seed);
}

#endif
