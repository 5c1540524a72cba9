/* Ticks to nanoseconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/box.h"
#include "read/timebase.h"

static uint64_t ns_of(const struct tacho__timebase *t, uint64_t ticks)
{
	uint32_t hint = 0;

	return tacho__timebase_ns(t, ticks, &hint);
}

static void time_is_linear_between_anchors_and_beyond(void **state)
{
	struct tacho__timebase t = {.kind = TACHO_CLOCK_TSC};

	(void)state;
	/* Twice two ticks a nanosecond, then one: 4 s and 3 s. */
	assert_int_equal(tacho__timebase_add(&t, 4000000000, 2000000000, 0), 0);
	assert_int_equal(tacho__timebase_add(&t, 8000000000, 4000000000, 0), 0);
	assert_int_equal(tacho__timebase_add(&t, 11000000000, 7000000000, 0), 0);
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_GOOD);
	assert_int_equal(ns_of(&t, 4000000000), 2000000000);
	assert_int_equal(ns_of(&t, 4000000010), 2000000005);
	assert_int_equal(ns_of(&t, 8000000010), 4000000010);
	/* Beyond: 5 s in 7e9 ticks. */
	assert_int_equal(ns_of(&t, 11000000700), 7000000500);
	assert_int_equal(ns_of(&t, 3999999300), 1999999500);
	assert_int_equal(tacho__timebase_span(&t, 1400), 1000);
	tacho__timebase_free(&t);
}

static void one_false_anchor_does_not_spoil_the_others(void **state)
{
	(void)state;
	for (unsigned bad = 0; bad < 10; bad++) {
		struct tacho__timebase t = {.kind = TACHO_CLOCK_TSC};

		for (unsigned i = 0; i < 10; i++)
			tacho__timebase_add(&t, i * 3000000000ull, i * 1000000000ull, 1);
		tacho__timebase_add(&t, bad * 3000000000ull + 1, bad < 5 ? UINT64_MAX : 0, 1);
		assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_GOOD);
		if (bad != 0 && bad != 9)
			assert_int_equal(t.count, 10);
		assert_int_equal(ns_of(&t, 15000000300), 5000000100);
		tacho__timebase_free(&t);
	}
}

static void too_few_anchors_are_told(void **state)
{
	struct tacho__timebase t = {.kind = TACHO_CLOCK_TSC};

	(void)state;
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_UNKNOWN);
	assert_int_equal(ns_of(&t, 77), 77);
	tacho__timebase_add(&t, 1000, 5000, 0);
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_UNKNOWN);
	assert_int_equal(ns_of(&t, 1007), 5007);
	t.kind = TACHO_CLOCK_MONOTONIC;
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_GOOD);
	t.kind = TACHO_CLOCK_TSC;
	tacho__timebase_add(&t, 3000, 6000, 0);
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_ROUGH);
	assert_int_equal(ns_of(&t, 2000), 5500);
	tacho__timebase_free(&t);
	/* A file whose ticks are nanoseconds needs no rate. */
	tacho__timebase_add(&t, 5000, 5000, 0);
	t.kind = TACHO_CLOCK_TSC;
	assert_int_equal(tacho__timebase_settle(&t), TACHO__TIMEBASE_GOOD);
	assert_int_equal(ns_of(&t, 6), 6);
	tacho__timebase_free(&t);
}

static void hostile_anchors_neither_overflow_nor_run_back(void **state)
{
	static const uint64_t edge[] = {0, 1, 1ull << 32, 1ull << 63, UINT64_MAX - 1, UINT64_MAX};
	const unsigned n = sizeof(edge) / sizeof(edge[0]);

	(void)state;
	srand(1);
	for (int round = 0; round < 3000; round++) {
		struct tacho__timebase t = {.kind = TACHO_CLOCK_TSC};
		uint64_t last = 0, ticks = 0;
		uint32_t hint = 0;

		for (int i = rand() % 8; i >= 0; i--)
			tacho__timebase_add(&t, edge[(unsigned)rand() % n] ^ (uint64_t)(rand() % 4),
					    edge[(unsigned)rand() % n] ^ (uint64_t)(rand() % 4),
					    rand() % 2);
		assert_true(tacho__timebase_settle(&t) >= 0);
		for (int i = 0; i < 66; i++) {
			uint64_t ns = tacho__timebase_ns(&t, ticks, &hint);

			assert_true(ns >= last);
			assert_int_equal(ns, ns_of(&t, ticks));
			last = ns;
			ticks = ticks * 2 + 1;
			tacho__timebase_span(&t, ticks);
		}
		tacho__timebase_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_linear_between_anchors_and_beyond),
		cmocka_unit_test(one_false_anchor_does_not_spoil_the_others),
		cmocka_unit_test(too_few_anchors_are_told),
		cmocka_unit_test(hostile_anchors_neither_overflow_nor_run_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
