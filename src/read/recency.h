/*
 * The recency list of the DICT transform (format/trace.h), for both directions:
 * the decoder asks which value stands at a place, the encoder at which place a
 * value stands.
 *
 * A list moved about in memory would cost its length for each step, and hostile
 * input chooses the length. Here each use takes the next position in time; a bit
 * says that the position is the last use of its value; the place of a value is the
 * number of set bits after its own. Counts of the bits, in a tree over words of 64
 * of them, make every step logarithmic.
 */
#ifndef TACHO_READ_RECENCY_H
#define TACHO_READ_RECENCY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tacho__recency {
	uint64_t *bits;
	uint32_t *tree; /* 1..words: sums of bits, as a binary indexed tree */
	uint32_t words;
	uint32_t capacity; /* of both arrays, in words */
	uint32_t top;	   /* the largest power of two that is not above words */
	uint32_t uses;	   /* positions taken so far */
	uint32_t live;	   /* bits set: values in the list */
};

/* Makes the list empty, with room for `uses` uses. */
static inline int tacho__recency_reset(struct tacho__recency *r, uint32_t uses)
{
	uint32_t words = uses / 64 + 1;

	if (words > r->capacity) {
		free(r->bits);
		free(r->tree);
		r->bits = malloc((size_t)words * sizeof(*r->bits));
		r->tree = malloc(((size_t)words + 1) * sizeof(*r->tree));
		r->capacity = r->bits && r->tree ? words : 0;
		if (!r->capacity)
			return -ENOMEM;
	}
	memset(r->bits, 0, (size_t)words * sizeof(*r->bits));
	memset(r->tree, 0, ((size_t)words + 1) * sizeof(*r->tree));
	r->words = words;
	for (r->top = 1; r->top <= words / 2;)
		r->top *= 2;
	r->uses = 0;
	r->live = 0;
	return 0;
}

static inline void tacho__recency_free(struct tacho__recency *r)
{
	free(r->bits);
	free(r->tree);
	*r = (struct tacho__recency){0};
}

/* Puts a value in front; returns its position. */
static inline uint32_t tacho__recency_push(struct tacho__recency *r)
{
	uint32_t position = r->uses++;

	r->bits[position / 64] |= 1ull << (position % 64);
	for (uint32_t i = position / 64 + 1; i <= r->words; i += i & (0u - i))
		r->tree[i]++;
	r->live++;
	return position;
}

/* Takes the value at `position` out. */
static inline void tacho__recency_take(struct tacho__recency *r, uint32_t position)
{
	r->bits[position / 64] &= ~(1ull << (position % 64));
	for (uint32_t i = position / 64 + 1; i <= r->words; i += i & (0u - i))
		r->tree[i]--;
	r->live--;
}

/* The place, from 0 for the front, of the value at `position`. */
static inline uint32_t tacho__recency_place(const struct tacho__recency *r, uint32_t position)
{
	uint64_t upto = ~0ull >> (63 - position % 64);
	uint32_t older = (uint32_t)__builtin_popcountll(r->bits[position / 64] & upto);

	for (uint32_t i = position / 64; i; i -= i & (0u - i))
		older += r->tree[i];
	return r->live - older;
}

/* The position of the value at `place`, which must be below live. */
static inline uint32_t tacho__recency_find(const struct tacho__recency *r, uint32_t place)
{
	uint32_t before = r->live - 1 - place; /* set bits before the one looked for */
	uint32_t word = 0;
	uint64_t bits;

	for (uint32_t step = r->top; step; step /= 2) {
		uint32_t sum = word + step <= r->words ? r->tree[word + step] : UINT32_MAX;
		uint32_t all = 0u - (sum <= before); /* nobody could guess a branch */

		word += step & all;
		before -= sum & all;
	}
	bits = r->bits[word];
	while (before--)
		bits &= bits - 1;
	return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

#endif
