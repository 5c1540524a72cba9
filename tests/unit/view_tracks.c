/* What a page draws of things in time, against a walk over all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/track.h"

#define THINGS 200000u /* several chunks */
#define ORIGIN 5000000000ull

static struct tacho__thing *all;
static struct tacho__track track;
static uint64_t seed = 1;

static uint64_t random_below(uint64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % below;
}

/* Mostly short ones, now and then a long one, some of no length; gaps of all sizes. */
static uint64_t random_length(void)
{
	uint64_t sort = random_below(1000);

	return sort == 0    ? 5000000000 + random_below(1000000)
	       : sort < 10  ? random_below(10000000)
	       : sort < 900 ? random_below(2000)
			    : 0;
}

static int make(void **state)
{
	uint64_t at = ORIGIN;

	(void)state;
	all = calloc(THINGS, sizeof(*all));
	assert_non_null(all);
	for (uint32_t i = 0; i < THINGS; i++) {
		at += random_below(10) ? random_below(300) : random_below(100000);
		all[i] = (struct tacho__thing){at, random_length(), 1 + (uint32_t)random_below(9),
					       i};
		at += all[i].ns;
		assert_int_equal(tacho__track_add(&track, &all[i]), 0);
	}
	assert_int_equal(track.count, THINGS);
	return 0;
}

static int end(void **state)
{
	(void)state;
	tacho__track_free(&track);
	free(all);
	return 0;
}

static void things_come_back_as_they_were(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < THINGS; i++) {
		struct tacho__thing thing = tacho__track_at(&track, i);

		assert_memory_equal(&thing, &all[i], sizeof(thing));
	}
	assert_int_equal(track.clipped, 0);
}

static void times_are_found(void **state)
{
	uint32_t after = 0, from = 0;
	uint64_t span = track.last_ns - ORIGIN;

	(void)state;
	for (uint64_t k = 0; k <= 20000; k++) {
		uint64_t ns = ORIGIN - 10 + (span + 20) / 20000 * k;

		while (after < THINGS && all[after].begin_ns + all[after].ns <= ns)
			after++;
		while (from < THINGS && all[from].begin_ns < ns)
			from++;
		assert_int_equal(tacho__track_after(&track, ns), after);
		assert_int_equal(tacho__track_from(&track, ns), from);
	}
	assert_int_equal(tacho__track_after(&track, UINT64_MAX), THINGS);
	assert_int_equal(tacho__track_after(&track, 0), 0);
}

static void the_longest_of_a_stretch_is_found(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < 300; k++) {
		uint32_t from = (uint32_t)random_below(THINGS);
		uint32_t size = 1 + (uint32_t)random_below(k % 2 ? 100 : THINGS - from);
		uint32_t to = size < THINGS - from ? from + size : THINGS;
		struct tacho__track_part s = tacho__track_stretch(&track, from, to);
		uint64_t longest = 0, busy = 0;

		for (uint32_t i = from; i < to; i++) {
			busy += all[i].ns;
			longest = all[i].ns > longest ? all[i].ns : longest;
		}
		assert_in_range(s.longest, from, to - 1);
		assert_int_equal(all[s.longest].ns, longest);
		assert_int_equal(s.busy_ns, busy);
	}
}

/* Each thing is in one box, all boxes are in order, and none is of several but where they are
   shorter than a column. */
static void check_picture(uint64_t from, uint64_t to, uint32_t columns)
{
	struct tacho__box *boxes = calloc(2 * columns + 1, sizeof(*boxes));
	uint32_t n, i = tacho__track_after(&track, from);
	uint64_t column = (to - from) / columns ? (to - from) / columns : 1;

	assert_non_null(boxes);
	n = tacho__track_draw(&track, ORIGIN, from, to, columns, boxes, 2 * columns + 1);
	assert_true(n <= 2 * columns);
	for (uint32_t b = 0; b < n; b++) {
		uint64_t longest = 0, busy = 0;

		assert_true(boxes[b].count >= 1);
		assert_true((double)(all[i].begin_ns - ORIGIN) == boxes[b].begin);
		for (uint32_t k = 0; k < boxes[b].count; k++, i++) {
			busy += all[i].ns;
			longest = all[i].ns > longest ? all[i].ns : longest;
			assert_true(boxes[b].count == 1 || all[i].ns <= column);
		}
		assert_true((double)(all[i - 1].begin_ns + all[i - 1].ns - ORIGIN) ==
			    boxes[b].begin + boxes[b].ns);
		assert_int_equal(all[boxes[b].index].ns, longest);
		assert_true(boxes[b].longest_ns == (double)longest);
		assert_true(boxes[b].longest_begin ==
			    (double)(int64_t)(all[boxes[b].index].begin_ns - ORIGIN));
		assert_int_equal(all[boxes[b].index].what, boxes[b].what);
		assert_true(boxes[b].count == 1 || boxes[b].ns <= (double)column);
		assert_true(!boxes[b].ns || boxes[b].busy == (float)((double)busy / boxes[b].ns));
	}
	assert_int_equal(i, tacho__track_from(&track, to) > i ? 0 : i); /* none is left out */
	free(boxes);
}

static void a_picture_shows_all(void **state)
{
	uint64_t span = track.last_ns - ORIGIN;

	(void)state;
	check_picture(ORIGIN, track.last_ns + 1, 1500);
	check_picture(0, UINT64_MAX / 2, 1500);
	for (uint32_t k = 0; k < 200; k++) {
		uint64_t width = span >> random_below(30);
		uint64_t from = ORIGIN + random_below(span);

		check_picture(from, from + (width ? width : 1), 1 + (uint32_t)random_below(2000));
	}
}

static void what_overlaps_is_cut(void **state)
{
	struct tacho__track t = {0};
	struct tacho__thing second = {150, 100, 2, 0}, inside = {160, 10, 3, 0};

	(void)state;
	assert_int_equal(tacho__track_add(&t, &(struct tacho__thing){100, 100, 1, 0}), 0);
	assert_int_equal(tacho__track_add(&t, &second), 0);
	assert_int_equal(tacho__track_add(&t, &inside), 0);
	assert_int_equal(tacho__track_at(&t, 1).begin_ns, 200);
	assert_int_equal(tacho__track_at(&t, 1).ns, 50);
	assert_int_equal(tacho__track_at(&t, 2).begin_ns, 250);
	assert_int_equal(tacho__track_at(&t, 2).ns, 0);
	assert_int_equal(t.clipped, 2);
	tacho__track_free(&t);
}

/* All widths of bits, up to the widest. */
static void things_of_all_sizes_are_packed(void **state)
{
	struct tacho__track t = {0};
	static struct tacho__thing made[64 * TACHO__GROUP_THINGS];
	uint64_t at_ns = 1;

	(void)state;
	for (uint32_t i = 0; i < 64 * TACHO__GROUP_THINGS; i++) {
		uint32_t bits = i / TACHO__GROUP_THINGS;
		uint64_t ns = i % 7 ? 0 : UINT64_C(1) << bits;

		/* The last of all ends at the end of time. */
		if (bits > 56)
			ns = i + 1 == 64 * TACHO__GROUP_THINGS ? UINT64_MAX - at_ns : 0;
		made[i] = (struct tacho__thing){at_ns, ns, i % 3 ? UINT32_MAX >> bits % 32 : 0,
						i % 5 ? 0 : UINT32_MAX};
		at_ns += ns;
		assert_int_equal(tacho__track_add(&t, &made[i]), 0);
	}
	for (uint32_t i = 0; i < t.count; i++) {
		struct tacho__thing thing = tacho__track_at(&t, i);

		assert_memory_equal(&thing, &made[i], sizeof(thing));
	}
	assert_int_equal(tacho__track_busy(&t, 0, UINT64_MAX), UINT64_MAX - 1);
	tacho__track_free(&t);
}

static void nothing_is_drawn_of_nothing(void **state)
{
	struct tacho__track t = {0};
	struct tacho__box box;

	(void)state;
	assert_int_equal(tacho__track_draw(&t, 0, 0, 100, 10, &box, 1), 0);
	assert_int_equal(tacho__track_after(&t, 5), 0);
	tacho__track_free(&t);
}

/* A window ends before its last instant: what begins there is in the next. */
static void what_begins_where_a_window_ends_is_not_in_it(void **state)
{
	const struct tacho__thing things[] = {{100, 50, 1, 0}, {200, 50, 2, 1}};
	struct tacho__track t = {0};
	struct tacho__box boxes[3];

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(tacho__track_add(&t, &things[i]), 0);
	assert_int_equal(tacho__track_draw(&t, 0, 0, 200, 200, boxes, 3), 1);
	assert_int_equal(tacho__track_draw(&t, 0, 0, 201, 201, boxes, 3), 2);
	/* What ends where it begins is in the one before. */
	assert_int_equal(tacho__track_draw(&t, 0, 150, 201, 51, boxes, 3), 1);
	assert_int_equal(boxes[0].what, 2);
	assert_int_equal(tacho__track_draw(&t, 0, 149, 201, 52, boxes, 3), 2);
	tacho__track_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(things_come_back_as_they_were),
		cmocka_unit_test(times_are_found),
		cmocka_unit_test(the_longest_of_a_stretch_is_found),
		cmocka_unit_test(a_picture_shows_all),
		cmocka_unit_test(what_overlaps_is_cut),
		cmocka_unit_test(things_of_all_sizes_are_packed),
		cmocka_unit_test(nothing_is_drawn_of_nothing),
		cmocka_unit_test(what_begins_where_a_window_ends_is_not_in_it),
	};

	return cmocka_run_group_tests(tests, make, end);
}
