#include "base/crc32c.h"

#include <string.h>

/*
 * One table of 256 entries would be smaller and
 * slower; eight ("slicing by eight") run at about a byte
 * a cycle. They are computed at first use: the result is the same whoever
 * computes it, so threads and signal handlers that race do no harm.
 */
#define POLY 0x82f63b78u

static uint32_t table[8][256];
static int ready;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int k = 0; k < 8; k++)
			c = (c >> 1) ^ (POLY & (0u - (c & 1)));
		__atomic_store_n(&table[0][i], c, __ATOMIC_RELAXED);
	}
	for (int t = 1; t < 8; t++) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = table[t - 1][i];

			c = (c >> 8) ^ table[0][c & 0xff];
			__atomic_store_n(&table[t][i], c, __ATOMIC_RELAXED);
		}
	}
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

uint32_t tacho__crc32c(uint32_t crc, const void *data, size_t size)
{
	const uint8_t *p = data;
	uint32_t c = ~crc;

	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		make_tables();
	while (size >= 8) {
		uint64_t w;

		memcpy(&w, p, 8);
		w ^= c;
		c = table[7][w & 0xff] ^ table[6][(w >> 8) & 0xff] ^ table[5][(w >> 16) & 0xff] ^
		    table[4][(w >> 24) & 0xff] ^ table[3][(w >> 32) & 0xff] ^
		    table[2][(w >> 40) & 0xff] ^ table[1][(w >> 48) & 0xff] ^ table[0][w >> 56];
		p += 8;
		size -= 8;
	}
	while (size--)
		c = (c >> 8) ^ table[0][(c ^ *p++) & 0xff];
	return ~c;
}
