/* The statistics of diff.h: numbers only, no traces. */
#ifndef TACHO_EXPLAIN_DIFF_TEST_H
#define TACHO_EXPLAIN_DIFF_TEST_H

#include <stdint.h>

/* The value at this share (0..1) of them, between two if it falls there. Sorts the values; 0 without
   any. */
double tacho__quantile(double *values, uint32_t count, double share);

/*
 * The test of Mann and Whitney, two-sided, by the normal approximation with corrections for ties
 * and for continuity: how often chance alone would order two equal sets so much or more.
 */
double tacho__mann_whitney(const double *a, uint32_t n, const double *b, uint32_t m);
/* The least that it can say of sets of these sizes; 1 when one is empty. */
double tacho__mann_whitney_least(uint32_t n, uint32_t m);

/*
 * The factor that most ratios have in common: the median of those that lie together, within
 * 5 %; among equally many those nearest to 1. A few that really changed do not move it, as they
 * would a mean; half of them do not either, as they would a median. Sorts the ratios.
 */
double tacho__common_factor(double *ratios, uint32_t count);

#endif
