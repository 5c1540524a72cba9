#include "view/curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void tacho__curve_init(struct tacho__curve *c, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t window = last_ns > first_ns ? last_ns - first_ns : 0;

	memset(c, 0, sizeof(*c));
	c->first_ns = first_ns;
	c->bucket_ns = window / TACHO__CURVE_BUCKETS + 1;
	c->next_ns = first_ns + c->bucket_ns;
}

void tacho__curve_free(struct tacho__curve *c)
{
	for (uint32_t i = 0; i < TACHO__CURVE_BUCKETS / TACHO__CURVE_PART; i++)
		free(c->parts[i]);
	memset(c, 0, sizeof(*c));
}

static uint32_t bucket_of(const struct tacho__curve *c, uint64_t ns)
{
	uint64_t at = ns > c->first_ns ? (ns - c->first_ns) / c->bucket_ns : 0;

	return at < TACHO__CURVE_BUCKETS ? (uint32_t)at : TACHO__CURVE_BUCKETS - 1;
}

/* NULL without memory. */
static float *bucket(struct tacho__curve *c, uint32_t at)
{
	float **part = &c->parts[at / TACHO__CURVE_PART];

	if (!*part) {
		*part = malloc(TACHO__CURVE_PART * sizeof(**part));
		for (uint32_t i = 0; *part && i < TACHO__CURVE_PART; i++)
			(*part)[i] = NAN;
	}
	return *part ? *part + at % TACHO__CURVE_PART : NULL;
}

static int raise_to(struct tacho__curve *c, uint32_t at, float value)
{
	float *b = bucket(c, at);

	if (!b)
		return -ENOMEM;
	if (!(*b >= value))
		*b = value;
	if (value > c->most)
		c->most = value;
	return 0;
}

int tacho__curve_set(struct tacho__curve *c, uint64_t ns, float value)
{
	int error = 0;

	if (ns >= c->next_ns) {
		uint32_t to = bucket_of(c, ns);

		/* What is 0 all along needs no room. */
		for (uint32_t i = c->at + 1; i <= to && c->value != 0 && !error; i++)
			error = raise_to(c, i, c->value);
		c->at = to > c->at ? to : c->at;
		c->next_ns = c->first_ns + (uint64_t)(c->at + 1) * c->bucket_ns;
	}
	c->value = value;
	return error || value == 0 ? error : raise_to(c, c->at, value);
}

int tacho__curve_peak(struct tacho__curve *c, uint64_t ns, float value)
{
	return raise_to(c, bucket_of(c, ns), value);
}

int tacho__curve_add(struct tacho__curve *c, uint64_t from_ns, uint64_t to_ns, float before,
		     float after)
{
	uint32_t from = bucket_of(c, from_ns), to = bucket_of(c, to_ns);
	float steps = (float)(to - from ? to - from : 1);

	for (uint32_t i = from; i <= to && to_ns > from_ns; i++) {
		float *b = bucket(c, i);
		float more = before + (after - before) * ((float)(i - from) / steps);

		/* Both ends are in the one bucket: it has the larger. */
		if (from == to && after > before)
			more = after;
		if (!b)
			return -ENOMEM;
		*b = isnan(*b) ? more : *b + more;
		*b = *b > 0 ? *b : 0;
		if (*b > c->most)
			c->most = *b;
	}
	return 0;
}

static float most_of(const struct tacho__curve *c, uint32_t from, uint32_t to)
{
	float most = NAN;

	while (from <= to) {
		const float *part = c->parts[from / TACHO__CURVE_PART];
		uint32_t i = from % TACHO__CURVE_PART;
		uint32_t end =
			to - from < TACHO__CURVE_PART - i ? i + to - from + 1 : TACHO__CURVE_PART;

		from += end - i;
		for (; part && i < end; i++)
			if (!(most >= part[i]) && !isnan(part[i]))
				most = part[i];
	}
	return most;
}

void tacho__curve_draw(const struct tacho__curve *c, uint64_t from_ns, uint64_t to_ns,
		       uint32_t columns, float *out)
{
	double width = (double)(to_ns - from_ns) / columns;
	uint64_t end_ns = c->first_ns + TACHO__CURVE_BUCKETS * c->bucket_ns;

	for (uint32_t i = 0; i < columns; i++) {
		uint64_t from = from_ns + (uint64_t)(width * i);
		uint64_t to = from_ns + (uint64_t)(width * (i + 1));

		to = to > from ? to - 1 : from;
		out[i] = to < c->first_ns || from >= end_ns
				 ? NAN
				 : most_of(c, bucket_of(c, from), bucket_of(c, to));
	}
}
