#include "read/timebase.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/box.h"
#include "read/memory.h"

/* An anchor is off by a microsecond when it was interrupted: over 10 ms that is 100 ppm. */
#define SOFT_DISTANCE_NS 10000000u
/* Below this, first and last anchor say too little about the rate. */
#define BASELINE_NS 1000000u

int tacho__timebase_add(struct tacho__timebase *t, uint64_t ticks, uint64_t ns, int soft)
{
	if (TACHO__GROW(t->points, t->capacity, t->count + 1))
		return -ENOMEM;
	t->points[t->count++] = (struct tacho__point){ticks, ns, soft != 0};
	return 0;
}

static int compare(const void *va, const void *vb)
{
	const struct tacho__point *a = va, *b = vb;

	if (a->ticks != b->ticks)
		return a->ticks < b->ticks ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (int)a->soft - (int)b->soft;
}

/*
 * Keeps the longest run of anchors that grow in both: one false anchor, wherever it
 * stands, costs itself and not those behind it. tail[k] is the anchor that ends the
 * best run of k + 1 anchors, before[i] the one before i in its run.
 */
static int keep_growing(struct tacho__timebase *t)
{
	uint32_t n = t->count, length = 0;
	uint32_t *tail = malloc(((size_t)n + 1) * sizeof(*tail));
	uint32_t *before = malloc(((size_t)n + 1) * sizeof(*before));

	if (!tail || !before) {
		free(tail);
		free(before);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t low = 0, high = length;

		while (low < high) {
			uint32_t mid = low + (high - low) / 2;

			if (t->points[tail[mid]].ns < t->points[i].ns)
				low = mid + 1;
			else
				high = mid;
		}
		before[i] = low ? tail[low - 1] : UINT32_MAX;
		/* Of two anchors at one tick only one can be in a run. */
		if (low && t->points[before[i]].ticks == t->points[i].ticks)
			continue;
		tail[low] = i;
		if (low == length)
			length++;
	}
	if (length) {
		uint32_t at = tail[length - 1];

		/* Runs hold ascending places, so tail[] can take the run itself. */
		for (uint32_t k = length; k-- > 0; at = before[at])
			tail[k] = at;
		for (uint32_t k = 0; k < length; k++)
			t->points[k] = t->points[tail[k]];
	}
	t->count = length;
	free(tail);
	free(before);
	return 0;
}

static void thin(struct tacho__timebase *t)
{
	struct tacho__point last = t->points[t->count - 1];
	uint32_t kept = 0;

	for (uint32_t i = 0; i < t->count; i++) {
		struct tacho__point p = t->points[i];

		if (p.soft && kept && p.ns - t->points[kept - 1].ns < SOFT_DISTANCE_NS)
			continue;
		if (!p.soft && kept > 1 && t->points[kept - 1].soft &&
		    p.ns - t->points[kept - 1].ns < SOFT_DISTANCE_NS)
			kept--;
		t->points[kept++] = p;
	}
	/* However close, two say more than one. */
	if (kept == 1 && t->count > 1)
		t->points[kept++] = last;
	t->count = kept;
}

static int is_identity(const struct tacho__timebase *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (t->points[i].ticks != t->points[i].ns)
			return 0;
	return t->count > 0;
}

int tacho__timebase_settle(struct tacho__timebase *t)
{
	const struct tacho__point *first, *last;
	uint64_t ns;

	t->slope_ns = t->slope_ticks = 1;
	if (t->count) {
		qsort(t->points, t->count, sizeof(*t->points), compare);
		if (keep_growing(t))
			return -ENOMEM;
		thin(t);
	}
	if (is_identity(t) || (t->kind == TACHO_CLOCK_MONOTONIC && t->count < 2))
		return TACHO__TIMEBASE_GOOD;
	if (t->count < 2)
		return TACHO__TIMEBASE_UNKNOWN;
	first = &t->points[0];
	last = &t->points[t->count - 1];
	ns = last->ns - first->ns;
	t->slope_ns = ns;
	t->slope_ticks = last->ticks - first->ticks;
	if (ns >= BASELINE_NS)
		return TACHO__TIMEBASE_GOOD;
	return t->kind == TACHO_CLOCK_MONOTONIC ? TACHO__TIMEBASE_GOOD : TACHO__TIMEBASE_ROUGH;
}

/* a * b / c without overflow on the way, saturated. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t product;
	unsigned __int128 wide;

	if (!__builtin_mul_overflow(a, b, &product))
		return product / c;
	wide = (unsigned __int128)a * b / c;
	return wide > UINT64_MAX ? UINT64_MAX : (uint64_t)wide;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t tacho__timebase_span(const struct tacho__timebase *t, uint64_t ticks)
{
	return scale(ticks, t->slope_ns, t->slope_ticks);
}

/* The last point that is not after ticks; there is one. */
static uint32_t find(const struct tacho__timebase *t, uint64_t ticks, uint32_t hint)
{
	uint32_t low = 0, high = t->count;

	if (hint < t->count && t->points[hint].ticks <= ticks) {
		if (hint + 1 == t->count || ticks < t->points[hint + 1].ticks)
			return hint;
		low = hint;
	}
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (t->points[mid].ticks <= ticks)
			low = mid;
		else
			high = mid;
	}
	return low;
}

uint64_t tacho__timebase_ns(const struct tacho__timebase *t, uint64_t ticks, uint32_t *hint)
{
	const struct tacho__point *p, *next;
	uint64_t back;

	if (!t->count)
		return ticks;
	p = &t->points[0];
	if (ticks < p->ticks) {
		back = tacho__timebase_span(t, p->ticks - ticks);
		return back < p->ns ? p->ns - back : 0;
	}
	*hint = find(t, ticks, *hint);
	p = &t->points[*hint];
	if (*hint + 1 == t->count)
		return plus(p->ns, tacho__timebase_span(t, ticks - p->ticks));
	next = p + 1;
	return p->ns + scale(ticks - p->ticks, next->ns - p->ns, next->ticks - p->ticks);
}

void tacho__timebase_free(struct tacho__timebase *t)
{
	free(t->points);
	*t = (struct tacho__timebase){0};
}
