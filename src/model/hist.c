#include "model/hist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void place_of(uint64_t value, uint32_t *row, uint32_t *step)
{
	*row = tacho__hist_row(value);
	*step = tacho__hist_step(value, *row);
}

/* The largest value of a step. */
static uint64_t top_of(uint32_t row, uint32_t step)
{
	if (!row)
		return step;
	return ((uint64_t)(TACHO__HIST_STEPS + step + 1) << (row - 1)) - 1;
}

static uint32_t *row_of(struct tacho__hist *h, uint32_t row)
{
	if (!h->rows[row])
		h->rows[row] = calloc(TACHO__HIST_STEPS, sizeof(*h->rows[row]));
	return h->rows[row];
}

int tacho__hist_add_many(struct tacho__hist *h, uint64_t value, uint64_t times)
{
	uint32_t row, step;
	uint32_t *counts;

	if (!times)
		return 0;
	if (!h->count || value < h->least)
		h->least = value;
	if (value > h->most)
		h->most = value;
	h->count += times;
	h->sum += value * times;
	place_of(value, &row, &step);
	counts = row_of(h, row);
	if (!counts)
		return -ENOMEM;
	counts[step] =
		times < UINT32_MAX - counts[step] ? counts[step] + (uint32_t)times : UINT32_MAX;
	return 0;
}

int tacho__hist_merge(struct tacho__hist *to, const struct tacho__hist *from)
{
	if (!from->count)
		return 0;
	if (!to->count || from->least < to->least)
		to->least = from->least;
	if (from->most > to->most)
		to->most = from->most;
	to->count += from->count;
	to->sum += from->sum;
	for (uint32_t r = 0; r < TACHO__HIST_ROWS; r++) {
		uint32_t *counts;

		if (!from->rows[r])
			continue;
		counts = row_of(to, r);
		if (!counts)
			return -ENOMEM;
		for (uint32_t s = 0; s < TACHO__HIST_STEPS; s++) {
			uint64_t sum = (uint64_t)counts[s] + from->rows[r][s];

			counts[s] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
		}
	}
	return 0;
}

uint64_t tacho__hist_at(const struct tacho__hist *h, double share)
{
	double wanted = share * (double)h->count;
	uint64_t seen = 0;

	if (!h->count)
		return 0;
	if (share >= 1)
		return h->most;
	for (uint32_t r = 0; r < TACHO__HIST_ROWS; r++) {
		if (!h->rows[r])
			continue;
		for (uint32_t s = 0; s < TACHO__HIST_STEPS; s++) {
			uint64_t top = top_of(r, s);

			seen += h->rows[r][s];
			if (!h->rows[r][s] || (double)seen < wanted)
				continue;
			top = top < h->most ? top : h->most;
			return top > h->least ? top : h->least;
		}
	}
	return h->most;
}

uint64_t tacho__hist_above(const struct tacho__hist *h, uint64_t value)
{
	uint32_t row, step;
	uint64_t n = 0;

	place_of(value, &row, &step);
	for (uint32_t r = row; r < TACHO__HIST_ROWS; r++)
		for (uint32_t s = r == row ? step + 1 : 0; h->rows[r] && s < TACHO__HIST_STEPS; s++)
			n += h->rows[r][s];
	return n;
}

void tacho__hist_powers(const struct tacho__hist *h, uint64_t out[64])
{
	memset(out, 0, 64 * sizeof(out[0]));
	for (uint32_t r = 0; r < TACHO__HIST_ROWS; r++)
		for (uint32_t s = 0; h->rows[r] && s < TACHO__HIST_STEPS; s++) {
			uint64_t top = top_of(r, s);

			out[top ? 63 - (uint32_t)__builtin_clzll(top) : 0] += h->rows[r][s];
		}
}

void tacho__hist_free(struct tacho__hist *h)
{
	for (uint32_t r = 0; r < TACHO__HIST_ROWS; r++)
		free(h->rows[r]);
	memset(h, 0, sizeof(*h));
}
