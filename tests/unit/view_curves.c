/* Numbers over time: no peak is lost, however far one is away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "view/curve.h"

#define ORIGIN 7000000000ull
/* Buckets of 1000 ns. */
#define WINDOW (1000ull * TACHO__CURVE_BUCKETS - 1)

static void begin(struct tacho__curve *c)
{
	tacho__curve_init(c, ORIGIN, ORIGIN + WINDOW);
	assert_int_equal(c->bucket_ns, 1000);
}

/* What is drawn of one stretch. */
static float most(const struct tacho__curve *c, uint64_t from, uint64_t to)
{
	float value;

	tacho__curve_draw(c, ORIGIN + from, ORIGIN + to, 1, &value);
	return value;
}

static void a_value_lasts_until_the_next(void **state)
{
	struct tacho__curve c;
	float columns[10];

	(void)state;
	begin(&c);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 10000, 3), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 5000000, 0), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 9000000, 2), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 9000010, 7), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 9000020, 0), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 20000000, 0), 0);
	assert_true(isnan(most(&c, 0, 10000)));
	assert_true(most(&c, 10000, 11000) == 3);
	assert_true(most(&c, 4000000, 4001000) == 3);
	assert_true(isnan(most(&c, 5001000, 9000000)));
	assert_true(most(&c, 0, WINDOW) == 7);
	assert_true(isnan(most(&c, 9001000, WINDOW)));
	tacho__curve_draw(&c, ORIGIN, ORIGIN + 10000000, 10, columns);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(columns[i] == 3);
	assert_true(columns[9] == 7);
	assert_true(c.most == 7);
	tacho__curve_free(&c);
}

/* The same through many values, against the most of each bucket. */
static void no_peak_is_lost(void **state)
{
	static float expected[TACHO__CURVE_BUCKETS];
	struct tacho__curve c;
	uint64_t at = 0, seed = 3;
	float value = 0;

	(void)state;
	begin(&c);
	while (at < WINDOW) {
		uint64_t next;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		next = at + (seed >> 33) % (seed >> 60 ? 1500 : 400000);
		for (uint64_t b = at / 1000; b <= (next < WINDOW ? next : WINDOW) / 1000; b++)
			expected[b] = value > expected[b] ? value : expected[b];
		at = next;
		value = (float)(seed >> 40 & 15);
		if (at < WINDOW && value > expected[at / 1000])
			expected[at / 1000] = value;
		assert_int_equal(tacho__curve_set(&c, ORIGIN + at, value), 0);
	}
	for (uint64_t width = 1; width < TACHO__CURVE_BUCKETS; width *= 7)
		for (uint64_t from = 0; from + width <= TACHO__CURVE_BUCKETS;
		     from += width * 13 + TACHO__CURVE_BUCKETS / 500) {
			float wanted = 0, is = most(&c, from * 1000, (from + width) * 1000);

			for (uint64_t b = from; b < from + width; b++)
				wanted = expected[b] > wanted ? expected[b] : wanted;
			assert_true(isnan(is) ? wanted == 0 : is == wanted);
		}
	tacho__curve_free(&c);
}

static void hindsight_is_added_evenly(void **state)
{
	struct tacho__curve c;

	(void)state;
	begin(&c);
	assert_int_equal(tacho__curve_set(&c, ORIGIN, 2), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN + 200000, 0), 0);
	assert_int_equal(tacho__curve_add(&c, ORIGIN + 100000, ORIGIN + 200000, 0, 10), 0);
	assert_true(most(&c, 50000, 51000) == 2);
	assert_true(fabsf(most(&c, 150000, 151000) - 7) < 0.1F);
	assert_true(fabsf(most(&c, 199000, 200000) - 11.9F) < 0.1F);
	/* What did not wait after all. There is never less than nothing. */
	assert_int_equal(tacho__curve_add(&c, ORIGIN, ORIGIN + 60000, -5, -5), 0);
	assert_true(most(&c, 20000, 21000) == 0);
	tacho__curve_free(&c);
}

static void a_peak_is_at_its_time_alone(void **state)
{
	struct tacho__curve c;

	(void)state;
	begin(&c);
	assert_int_equal(tacho__curve_peak(&c, ORIGIN + 50000, 9), 0);
	assert_int_equal(tacho__curve_peak(&c, ORIGIN + 50010, 4), 0);
	assert_true(most(&c, 50000, 51000) == 9);
	assert_true(isnan(most(&c, 51000, 60000)));
	assert_true(isnan(most(&c, 0, 50000)));
	tacho__curve_free(&c);
}

/* Times outside of the window, as hostile traces have them. */
static void what_is_outside_does_no_harm(void **state)
{
	struct tacho__curve c;
	float columns[8];

	(void)state;
	begin(&c);
	assert_int_equal(tacho__curve_set(&c, 0, 5), 0);
	assert_int_equal(tacho__curve_peak(&c, UINT64_MAX, 6), 0);
	assert_int_equal(tacho__curve_add(&c, 0, UINT64_MAX, 1, 1), 0);
	assert_int_equal(tacho__curve_set(&c, UINT64_MAX, 7), 0);
	assert_int_equal(tacho__curve_set(&c, ORIGIN, 1), 0);
	tacho__curve_draw(&c, 0, 100, 8, columns);
	assert_true(isnan(columns[0]));
	tacho__curve_draw(&c, UINT64_MAX - 100, UINT64_MAX, 8, columns);
	assert_true(isnan(columns[7]));
	tacho__curve_free(&c);
	tacho__curve_init(&c, 5, 5);
	assert_int_equal(tacho__curve_set(&c, 5, 1), 0);
	tacho__curve_draw(&c, 5, 6, 1, columns);
	assert_true(columns[0] == 1);
	tacho__curve_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_lasts_until_the_next),
		cmocka_unit_test(no_peak_is_lost),
		cmocka_unit_test(hindsight_is_added_evenly),
		cmocka_unit_test(a_peak_is_at_its_time_alone),
		cmocka_unit_test(what_is_outside_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
