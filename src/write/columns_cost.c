#include "write/columns_cost.h"

#include <string.h>

/* log2(x) in 1/256, for x > 0; a straight line between powers of two, at most 0.09 off. */
static uint64_t log2_256(uint32_t x)
{
	unsigned whole = 31 - (unsigned)__builtin_clz(x);
	uint64_t part = ((uint64_t)x << 8 >> whole) - 256;

	return 256u * whole + part;
}

static uint64_t entropy(const uint32_t histogram[256], uint32_t total)
{
	uint64_t sum = 0, used = 0;

	if (!total)
		return 0;
	for (unsigned i = 0; i < 256; i++) {
		if (histogram[i]) {
			sum += histogram[i] * (log2_256(total) - log2_256(histogram[i]));
			used++;
		}
	}
	/* Each symbol also needs a place in the compressor's table. */
	return sum / 256 + (used > 1 ? 3 * used : 0);
}

static unsigned width_of(uint64_t largest)
{
	return largest ? (71 - (unsigned)__builtin_clzll(largest)) / 8 : 0;
}

unsigned tacho__cost_width(const uint64_t *v, uint32_t count)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < count; i++)
		all |= v[i];
	return width_of(all);
}

static uint64_t plane_bits(const uint64_t *v, uint32_t count, unsigned plane)
{
	uint32_t histogram[256] = {0};

	for (uint32_t i = 0; i < count; i++)
		histogram[v[i] >> (8 * plane) & 0xff]++;
	return entropy(histogram, count);
}

void tacho__cost_plain(const uint64_t *v, uint32_t count, struct tacho__cost *plain)
{
	plain->bits = 0;
	plain->width = (uint8_t)tacho__cost_width(v, count);
	for (unsigned k = 0; k < plain->width; k++)
		plain->bits += plane_bits(v, count, k);
}

void tacho__cost_simple(const uint64_t *v, uint32_t count, struct tacho__cost *plain,
			struct tacho__cost *delta)
{
	uint32_t histogram[8][256];
	uint64_t before = 0, all = 0;

	tacho__cost_plain(v, count, plain);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t d = v[i] - before;

		all |= (d << 1) ^ (0 - (d >> 63));
		before = v[i];
	}
	delta->bits = 0;
	delta->width = (uint8_t)width_of(all);
	memset(histogram, 0, delta->width * sizeof(histogram[0]));
	before = 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t d = v[i] - before;
		uint64_t z = (d << 1) ^ (0 - (d >> 63));

		for (unsigned k = 0; k < delta->width; k++)
			histogram[k][z >> (8 * k) & 0xff]++;
		before = v[i];
	}
	for (unsigned k = 0; k < delta->width; k++)
		delta->bits += entropy(histogram[k], count);
}
