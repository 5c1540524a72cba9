/* When the agent wants a window, by the clock: cooldown, what came in it, when it arms again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/demand.h"
#include "format/box.h"

#define SECOND UINT64_C(1000000000)
#define COOLDOWN (60 * SECOND)
#define AFTER (2 * SECOND)

static struct tacho__demand_rules rules_of(const char *text)
{
	struct tacho__demand_rules r = {.cooldown_ns = COOLDOWN, .after_ns = AFTER};
	char message[200];
	size_t at;

	if (text)
		assert_int_equal(
			tacho__sentinels_add(&r.sentinels, text, &at, message, sizeof(message)), 0);
	return r;
}

/* The program asks. Whether that made a window wanted. */
static bool asked(const struct tacho__demand_rules *r, struct tacho__demand *d, uint64_t ns)
{
	static const struct tacho_box_control control;
	struct tacho_box_trigger t = {.number = 1, .size = 4, .reason = "slow"};
	bool before = d->wanted;

	tacho__demand_trigger(r, d, ns, &t, &control);
	return d->wanted && !before;
}

static void the_cooldown_ends_when_it_is_over(void **state)
{
	struct tacho__demand_rules r = rules_of(NULL);
	struct tacho__demand d = {0};

	(void)state;
	assert_true(asked(&r, &d, SECOND));
	assert_string_equal(d.why, "slow");
	tacho__demand_taken(&d);
	assert_false(asked(&r, &d, SECOND + COOLDOWN - 1));
	assert_true(asked(&r, &d, SECOND + COOLDOWN));
	assert_string_equal(d.why, "slow (1 more since the last window, in the cooldown)");
}

static void a_window_is_due_after_what_follows(void **state)
{
	struct tacho__demand_rules r = rules_of(NULL);
	struct tacho__demand d = {0};

	(void)state;
	assert_int_equal(tacho__demand_next(&d), UINT64_MAX);
	assert_true(asked(&r, &d, SECOND));
	assert_int_equal(tacho__demand_next(&d), SECOND + AFTER);
	assert_false(tacho__demand_due(&d, SECOND + AFTER - 1));
	assert_true(tacho__demand_due(&d, SECOND + AFTER));
	/* A second one meanwhile is part of the first. */
	assert_false(asked(&r, &d, SECOND + 1));
	tacho__demand_taken(&d);
	assert_false(tacho__demand_due(&d, SECOND + AFTER));
	assert_int_equal(tacho__demand_next(&d), SECOND + COOLDOWN);
	assert_false(tacho__demand_arm(&d, SECOND + COOLDOWN - 1));
	assert_true(tacho__demand_arm(&d, SECOND + COOLDOWN));
	assert_false(tacho__demand_arm(&d, SECOND + COOLDOWN));
}

/* A trigger says which sentinel it is of, and the limit is the agent's. */
static void a_sentinel_is_heard_above_its_limit(void **state)
{
	struct tacho__demand_rules r = rules_of("queue>100");
	static const struct tacho_box_control control;
	struct tacho_box_trigger t = {
		.number = 7, .value = 100, .flags = (TACHO_SENTINEL_QUEUE + 1) << 8};
	struct tacho__demand d = {0};

	(void)state;
	tacho__demand_trigger(&r, &d, SECOND, &t, &control);
	assert_false(d.wanted);
	t.value = 101;
	tacho__demand_trigger(&r, &d, SECOND, &t, &control);
	assert_true(d.wanted);
	assert_int_equal(d.trigger, 7);
	/* No such sentinel. */
	d = (struct tacho__demand){0};
	t.flags = (TACHO_SENTINEL_COUNT + 1) << 8;
	tacho__demand_trigger(&r, &d, SECOND, &t, &control);
	assert_false(d.wanted);
}

static void an_exit_is_heard_in_the_cooldown(void **state)
{
	struct tacho__demand_rules r = rules_of("stall>1s or exit!=0");
	struct tacho__demand d = {0};

	(void)state;
	assert_true(tacho__demand_value(&r, &d, TACHO__WATCH_STALL, SECOND, SECOND + 1, NULL));
	tacho__demand_taken(&d);
	assert_true(tacho__demand_value(&r, &d, TACHO__WATCH_STALL, 2 * SECOND, SECOND + 1, NULL));
	assert_false(d.wanted);
	assert_false(tacho__demand_value(&r, &d, TACHO__WATCH_EXIT, 3 * SECOND, 0, NULL));
	assert_true(tacho__demand_value(&r, &d, TACHO__WATCH_EXIT, 3 * SECOND, 1, NULL));
	assert_true(d.wanted);
	assert_non_null(strstr(d.why, "(1 more since the last window"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cooldown_ends_when_it_is_over),
		cmocka_unit_test(a_window_is_due_after_what_follows),
		cmocka_unit_test(a_sentinel_is_heard_above_its_limit),
		cmocka_unit_test(an_exit_is_heard_in_the_cooldown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
