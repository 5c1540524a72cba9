/*
 * A histogram of durations (or of any numbers) that answers percentiles within 1/32 of the
 * value: 32 steps for each power of two. The exact least, largest and sum are kept beside it.
 */
#ifndef TACHO_MODEL_HIST_H
#define TACHO_MODEL_HIST_H

#include <stdint.h>

#define TACHO__HIST_STEP_BITS 5u
#define TACHO__HIST_STEPS (1u << TACHO__HIST_STEP_BITS)
#define TACHO__HIST_ROWS (65u - TACHO__HIST_STEP_BITS)

struct tacho__hist {
	uint64_t count, sum, least, most;
	uint32_t *rows[TACHO__HIST_ROWS]; /* of TACHO__HIST_STEPS counts, made when needed */
};

/* Row 0 holds the values below 32 one by one, row r those of [2^(r+4), 2^(r+5)) in 32 steps. */
static inline uint32_t tacho__hist_row(uint64_t value)
{
	uint32_t bits = value ? 64 - (uint32_t)__builtin_clzll(value) : 0;

	return bits > TACHO__HIST_STEP_BITS ? bits - TACHO__HIST_STEP_BITS : 0;
}

static inline uint32_t tacho__hist_step(uint64_t value, uint32_t row)
{
	return (uint32_t)(value >> (row ? row - 1 : 0)) & (TACHO__HIST_STEPS - 1);
}

/* The same value `times` times. 0 or -ENOMEM; then it is in count, sum, least and most alone. */
int tacho__hist_add_many(struct tacho__hist *h, uint64_t value, uint64_t times);

static inline int tacho__hist_add(struct tacho__hist *h, uint64_t value)
{
	uint32_t row = tacho__hist_row(value);
	uint32_t *counts = h->rows[row], step = tacho__hist_step(value, row);

	/* The first of its row, or the last that can be counted. */
	if (!counts || counts[step] == UINT32_MAX || !h->count)
		return tacho__hist_add_many(h, value, 1);
	if (value < h->least)
		h->least = value;
	if (value > h->most)
		h->most = value;
	h->count++;
	h->sum += value;
	counts[step]++;
	return 0;
}

int tacho__hist_merge(struct tacho__hist *to, const struct tacho__hist *from);
/* The value that `share` (0..1) of all are not above; 0 without any. */
uint64_t tacho__hist_at(const struct tacho__hist *h, double share);
/* How many are above `value`, within the steps. */
uint64_t tacho__hist_above(const struct tacho__hist *h, uint64_t value);
/* Counts by powers of two: out[i] are those with 2^i <= value < 2^(i+1); out[0] also 0. */
void tacho__hist_powers(const struct tacho__hist *h, uint64_t out[64]);
void tacho__hist_free(struct tacho__hist *h);

#endif
