#include "explain/diff_test.h"

#include <math.h>
#include <stdlib.h>

#include "model/judgement.h"
#include "read/memory.h"

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *sorted, uint32_t count)
{
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double tacho__quantile(double *values, uint32_t count, double share)
{
	double at, part;
	uint32_t below;

	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), by_number);
	at = share * (count - 1);
	below = (uint32_t)at;
	part = at - below;
	return below + 1 < count ? values[below] * (1 - part) + values[below + 1] * part
				 : values[below];
}

/* From the number of pairs in which the first is larger, and the sum of t^3 - t over all ties. */
static double chance_of(double u, double ties, uint32_t n, uint32_t m)
{
	double all = (double)n + m, pairs = (double)n * m;
	double variance = pairs / 12 * (all + 1 - ties / (all * (all - 1)));
	double z;

	if (!(variance > 0))
		return 1;
	z = (fabs(u - pairs / 2) - 0.5) / sqrt(variance);
	return z > 0 ? erfc(z / sqrt(2)) : 1;
}

double tacho__mann_whitney(const double *a, uint32_t n, const double *b, uint32_t m)
{
	double u = 0, ties = 0;

	if (!n || !m)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < m; k++)
			u += a[i] > b[k] ? 1 : a[i] < b[k] ? 0 : 0.5;
	for (uint32_t i = 0; i < n + m; i++) {
		double x = i < n ? a[i] : b[i - n], same = 0;

		for (uint32_t k = 0; k < n + m; k++)
			same += (k < n ? a[k] : b[k - n]) == x;
		/* Each of a group of t adds t^2 - 1: together t^3 - t. */
		ties += same * same - 1;
	}
	return chance_of(u, ties, n, m);
}

double tacho__mann_whitney_least(uint32_t n, uint32_t m)
{
	return n && m ? chance_of(0, 0, n, m) : 1;
}

double tacho__common_factor(double *ratios, uint32_t count)
{
	uint32_t most = 0;
	double factor = 1;

	TACHO__SORT(ratios, count, by_number);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t end = i;
		double centre;

		while (end < count && ratios[end] <= ratios[i] * tacho__diff_together)
			end++;
		centre = middle(ratios + i, end - i);
		if (end - i < most || (end - i == most && fabs(log(centre)) >= fabs(log(factor))))
			continue;
		most = end - i;
		factor = centre;
	}
	return factor;
}
