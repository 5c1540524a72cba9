/*
 * A curve: a number over time, as how many things wait or how deep a queue is. Kept as buckets of
 * equal width over the whole window, each with the most that there was in it, so that a curve has a
 * bound whatever the trace has, a peak shows however far one is away, and one may be added to in
 * hindsight. Of what is shorter than a bucket only the most is known.
 */
#ifndef TACHO_VIEW_CURVE_H
#define TACHO_VIEW_CURVE_H

#include <stdint.h>

#define TACHO__CURVE_BUCKETS (1u << 17)
#define TACHO__CURVE_PART 1024u /* buckets that are allocated together */

struct tacho__curve {
	uint64_t first_ns, bucket_ns;
	/* NaN in a bucket, or no part: nothing is known, or it is 0. */
	float *parts[TACHO__CURVE_BUCKETS / TACHO__CURVE_PART];
	uint32_t at; /* bucket until which it is filled, with the value since then */
	float value;
	uint64_t next_ns; /* begin of the bucket after it */
	float most;	  /* ever */
};

void tacho__curve_init(struct tacho__curve *c, uint64_t first_ns, uint64_t last_ns);
void tacho__curve_free(struct tacho__curve *c);
/* From now on it is that. All return 0 or -ENOMEM. */
int tacho__curve_set(struct tacho__curve *c, uint64_t ns, float value);
/* At that time it was so much, and neither before nor afterwards. */
int tacho__curve_peak(struct tacho__curve *c, uint64_t ns, float value);
/* In hindsight: it was more by `before` at from_ns, by `after` at to_ns, and evenly in between. */
int tacho__curve_add(struct tacho__curve *c, uint64_t from_ns, uint64_t to_ns, float before,
		     float after);
/* The most in each column of equal width; NaN: nothing. */
void tacho__curve_draw(const struct tacho__curve *c, uint64_t from_ns, uint64_t to_ns,
		       uint32_t columns, float *out);

#endif
