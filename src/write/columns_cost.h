/*
 * What a column would take once compressed: the entropy of each of its planes, which
 * is close to what the compressor's Huffman coding reaches. Good enough to choose
 * a transform by, at a nanosecond or two a byte; runs and repetitions, which the
 * compressor would also find, are not seen.
 */
#ifndef TACHO_WRITE_COLUMNS_COST_H
#define TACHO_WRITE_COLUMNS_COST_H

#include <stddef.h>
#include <stdint.h>

struct tacho__cost {
	uint64_t bits;
	uint8_t width; /* bytes that the largest value needs */
};

void tacho__cost_plain(const uint64_t *v, uint32_t count, struct tacho__cost *plain);
/* Of the values as they are and of the zigzag of their differences. */
void tacho__cost_simple(const uint64_t *v, uint32_t count, struct tacho__cost *plain,
			struct tacho__cost *delta);
unsigned tacho__cost_width(const uint64_t *v, uint32_t count);

#endif
