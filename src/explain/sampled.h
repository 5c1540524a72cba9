/* Stacks that were sampled, as many as there is room for. */
#ifndef TACHO_EXPLAIN_SAMPLED_H
#define TACHO_EXPLAIN_SAMPLED_H

#include <stdint.h>

#define TACHO__CASE_SAMPLES 128u
#define TACHO__SAMPLE_FRAMES 12u

/* A stack that was sampled in a poll, or on a loop; of a long poll it may stand for its neighbours as
   well. */
struct tacho__sampled {
	uint32_t stack;	      /* definition; 0: frames */
	uint32_t frame_count; /* of the program, innermost first */
	uint64_t frames[TACHO__SAMPLE_FRAMES];
	uint32_t count;
	uint64_t ns; /* CPU time */
};

/* All of them, or as many that were picked at random. */
struct tacho__samples {
	struct tacho__sampled at[TACHO__CASE_SAMPLES];
	uint32_t count, seen; /* of `at`; what was picked from */
	uint32_t all;	      /* samples, each of `at` for one or more */
};

/* Adds one. Each that was seen is there with the same chance. */
void tacho__samples_pick(struct tacho__samples *to, const struct tacho__sampled *s);

#endif
