/* Constants of model/judgement.def on both sides, each in a trace: what is said of wakes, tasks, locks and
   what grows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "judgement_help.h"

#define US 1000ull

static void poll(struct trace *m, uint64_t at, uint32_t kind, uint64_t task, uint64_t ns)
{
	PUT(m, at, POLL_BEGIN, kind, task);
	PUT(m, at + ns, POLL_END, TACHO_PENDING);
}

/* ----------------------------------------------------------------------- wakes */

/* A wake each 10 ms, so many of which lead to a poll `late_ns` later. */
static int are_late(uint64_t wakes, uint64_t late, uint64_t late_ns)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < wakes; i++) {
		again(&x.m, i);
		PUT(&x.m, i * 10 * MS, WAKE, 0, 7);
		poll(&x.m, i * 10 * MS + (i * late % wakes < late ? late_ns : 10 * US), KIND_A, 7,
		     US);
	}
	PUT(&x.m, wakes * 10 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_WAKE_LATENCY);
}

static void one_wake_of_hundred_may_be_late(void **state)
{
	(void)state;
	assert_true(are_late(1000, 11, 8 * MS));
	assert_false(are_late(1000, 10, 8 * MS));
}

/* Two wakes at a time, late together, at four times, in a window of 1 s: for so long in all. */
static int are_late_for(uint64_t ms)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = i * 50 * MS, ns = i % 5 ? 10 * US : ms * MS / 4;

		PUT(&x.m, at, WAKE, 0, 7);
		PUT(&x.m, at, WAKE, 0, 8);
		poll(&x.m, at + ns, KIND_A, 7, US);
		poll(&x.m, at + ns + 2 * US, KIND_A, 8, US);
	}
	PUT(&x.m, 1000 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_WAKE_LATENCY);
}

static void what_is_late_for_a_part_of_the_window_is_no_moment(void **state)
{
	(void)state;
	assert_true(are_late_for(104));
	assert_false(are_late_for(96));
}

/* 10 polls in 1 ms with so many needless wakes. */
static int is_storm(uint64_t needless)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 600; i++) {
		again(&x.m, 20 * i + 19);
		for (uint64_t k = 0; k < 10; k++) {
			uint64_t at = i * MS + k * 100 * US;

			for (uint64_t n = 0; n <= needless / 10 + (k < needless % 10); n++)
				PUT(&x.m, at + n, WAKE, 0, 7);
			poll(&x.m, at + 10 * US, KIND_A, 7, US);
		}
	}
	PUT(&x.m, 600 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_WAKE_STORM);
}

static void some_wakes_are_needless(void **state)
{
	(void)state;
	assert_true(is_storm(41));
	assert_false(is_storm(39));
}

/* A poll wakes that many tasks at once; while these run, another one waits for `ns`. 40 times in 1 s. */
static int is_herd(uint32_t tasks, uint64_t ns)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t at = (i + 1) * 25 * MS;

		trace_stream(&x.m, 1, 0);
		PUT(&x.m, at, UNPARK, 1);
		PUT(&x.m, at, WAKE, 0, 1000);
		PUT(&x.m, at + US, POLL_BEGIN, KIND_B, 1000);
		for (uint32_t k = 0; k < tasks; k++)
			PUT(&x.m, at + 2 * US, WAKE, 0, 1 + k);
		PUT(&x.m, at + 2 * US, WAKE, 0, 1001);
		PUT(&x.m, at + 3 * US, POLL_END, TACHO_PENDING);
		for (uint32_t k = 0; k < tasks; k++)
			poll(&x.m, at + 2 * US + (k + 1) * ns / tasks, KIND_A, 1 + k, 10);
		poll(&x.m, at + 3 * US + ns, KIND_B, 1001, US);
		PUT(&x.m, at + 10 * US + ns, PARK, LOOP_3);
	}
	return finds(&x, TACHO__RULE_WAKE_STORM);
}

static void few_that_are_woken_at_once_are_no_herd(void **state)
{
	(void)state;
	assert_true(is_herd(100, 5 * MS));
	assert_false(is_herd(99, 5 * MS));
}

static void who_waits_for_a_moment_is_not_kept_waiting(void **state)
{
	(void)state;
	assert_true(is_herd(120, 1080 * US));
	assert_false(is_herd(120, 980 * US));
}

/* -------------------------------------------------------------------- locks */

/* Two threads without loops that wait for a lock, so many times in all, for most of the time. */
static int is_crowded(uint64_t waits)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	turn(&x.m, 999 * MS, 1000 * MS);
	for (uint32_t t = 2; t <= 3; t++) {
		trace_stream(&x.m, t, 0);
		for (uint64_t i = 0; i < waits / 2 + (t == 2 && waits % 2); i++) {
			PUT(&x.m, i * 150 * MS, LOCK_WAIT, PLACE, 0x77);
			PUT(&x.m, i * 150 * MS + 140 * MS, LOCK_WAITED, 1, 0x77);
		}
	}
	return finds(&x, TACHO__RULE_LOCK_CONTENTION);
}

static void a_lock_that_is_waited_for_now_and_then_is_not_crowded(void **state)
{
	(void)state;
	assert_true(is_crowded(10));
	assert_false(is_crowded(9));
}

/* ----------------------------------------------------------- tasks that are stuck */

/* Ten tasks wait for good, so many of their kind have ended soon. */
static int are_stuck(uint64_t ended)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < ended + 10; i++) {
		PUT(&x.m, i * MS, SPAWN, KIND_A, 0, 1 + i, 0);
		poll(&x.m, i * MS + US, KIND_A, 1 + i, US);
		if (i >= 10)
			PUT(&x.m, i * MS + 10 * US, TASK_END, 0, 1 + i);
	}
	for (uint64_t i = 0; i < 100; i++)
		poll(&x.m, (100 + 20 * i) * MS, KIND_B, 1000, MS);
	PUT(&x.m, 3000 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_STUCK_TASK);
}

static void where_most_end_the_rest_is_stuck(void **state)
{
	(void)state;
	assert_true(are_stuck(31));
	assert_false(are_stuck(29));
}

/* Tasks that were woken 1.5 s ago, and a loop that is busy with others for so much of the time. */
static int wait_for_loop(uint64_t permille)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < 10; i++)
		PUT(&x.m, (i + 1) * US, SPAWN, KIND_A, 0, 1 + i, 0);
	for (uint64_t i = 0; i < 10; i++)
		PUT(&x.m, 20 * US + i, WAKE, 0, 1 + i);
	for (uint64_t i = 0; i < 150; i++) {
		again(&x.m, i);
		PUT(&x.m, (10 * i + 1) * MS, UNPARK, 1);
		poll(&x.m, (10 * i + 1) * MS, KIND_B, 1000, permille * MS / 100);
		PUT(&x.m, (10 * i + 1) * MS + permille * MS / 100, PARK, LOOP_3);
	}
	PUT(&x.m, 1501 * MS, UNPARK, 0);
	return finds(&x, TACHO__RULE_STUCK_TASK);
}

static void who_waits_for_a_full_loop_is_not_stuck(void **state)
{
	(void)state;
	assert_true(wait_for_loop(895));
	assert_false(wait_for_loop(905));
}

/* Of two tasks in turn: rounds 90 to 100 are those of the second. */
static uint64_t task_in(uint64_t round)
{
	return round >= 90 && round <= 100 ? 2 : 1;
}

/* Tasks that wait for a request, for which a loop wakes them, then for a reply, for which the loop wakes
   them in so many of 200 rounds, and a thread in the others; but not in round 100. */
static int is_lost(uint64_t by_loop)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 201; i++) {
		uint64_t at = i * 10 * MS, task = task_in(i);

		again(&x.m, i);
		PUT(&x.m, at, WAKE, 0, task);
		PUT(&x.m, at + 10 * US, POLL_BEGIN, KIND_A, task);
		PUT(&x.m, at + 11 * US, TASK_WAITS, NAME, PLACE, task, 0);
		PUT(&x.m, at + 12 * US, POLL_END, TACHO_PENDING);
		if (i == 100)
			continue;
		if (i * by_loop % 200 < by_loop)
			PUT(&x.m, at + MS, WAKE, 0, task);
		PUT(&x.m, at + MS + 10 * US, POLL_BEGIN, KIND_A, task);
		PUT(&x.m, at + MS + 11 * US, TASK_WAITS, REQUEST, 0, task, 0);
		PUT(&x.m, at + MS + 12 * US, POLL_END, TACHO_PENDING);
	}
	trace_stream(&x.m, 2, 0);
	for (uint64_t i = 0; i < 201; i++) {
		again(&x.m, i);
		if (i != 100 && i * by_loop % 200 >= by_loop)
			PUT(&x.m, i * 10 * MS + MS, WAKE, 0, task_in(i));
	}
	PUT(&x.m, 2900 * MS, WAKE, 0, 1000);
	return finds(&x, TACHO__RULE_STUCK_TASK);
}

static void what_loops_wake_tasks_for_may_never_come(void **state)
{
	(void)state;
	assert_true(is_lost(19));
	assert_false(is_lost(21));
}

/* --------------------------------------------------------------- tasks that pile up */

/* Tasks that are alive after each quarter of 2 s. */
static int pile_up(const uint32_t alive[4])
{
	struct explained x;
	uint64_t task = 0;

	draw(&x);
	for (uint32_t q = 0; q < 4; q++)
		for (uint32_t n = alive[q] - (q ? alive[q - 1] : 0), i = 0; i < n; i++)
			PUT(&x.m, (500 * q + 10 + i) * MS, SPAWN, KIND_A, PLACE, ++task, 0);
	PUT(&x.m, 2000 * MS, COUNTER, COUNTER, 1);
	return finds(&x, TACHO__RULE_TASK_LEAK);
}

static void tasks_that_stay_become_twice_as_many(void **state)
{
	static const uint32_t leak[4] = {150, 200, 250, 305}, none[4] = {150, 200, 250, 295};

	(void)state;
	assert_true(pile_up(leak));
	assert_false(pile_up(none));
}

/* 150 tasks of so many do not end. */
static int stay(uint64_t spawned)
{
	struct explained x;

	draw(&x);
	for (uint64_t i = 0; i < spawned; i++) {
		again(&x.m, 2 * i);
		again(&x.m, 2 * i + 1);
		PUT(&x.m, i * MS / 2, SPAWN, KIND_A, PLACE, 1 + i, 0);
		if (i * 150 % spawned >= 150)
			PUT(&x.m, i * MS / 2 + 10 * US, TASK_END, 0, 1 + i);
	}
	return finds(&x, TACHO__RULE_TASK_LEAK);
}

static void where_nearly_all_tasks_end_there_is_no_leak(void **state)
{
	(void)state;
	assert_true(stay(7100));
	assert_false(stay(8000));
}

/* ------------------------------------------------------------------ what grows */

/* A queue that has these depths in the quarters of 2 s, told so often in each. */
static int grows(const uint32_t depth[4], uint64_t times)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 4 * times; i++)
		PUT(&x.m, (2 * i + 1) * 250 * MS / times, QUEUE_DEPTH, LOOP_3, depth[i / times]);
	PUT(&x.m, 2000 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_QUEUE_GROWTH);
}

static void what_comes_to_rest_does_not_grow(void **state)
{
	static const uint32_t grown[4] = {100, 200, 300, 343}, rests[4] = {100, 200, 300, 337};

	(void)state;
	assert_true(grows(grown, 10));
	assert_false(grows(rests, 10));
}

/* A queue that is told so many times, evenly, over so many % of the window of 2 s. */
static int is_trend(uint64_t times, uint64_t percent)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < times; i++)
		PUT(&x.m, 100 * MS + i * percent * 20 * MS / (times - 1), QUEUE_DEPTH, LOOP_3,
		    100 + 100 * i);
	PUT(&x.m, 2000 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_QUEUE_GROWTH);
}

static void few_values_are_no_trend(void **state)
{
	(void)state;
	assert_true(is_trend(8, 80));
	assert_false(is_trend(7, 80));
	/* Nor are those of a part of the window. */
	assert_true(is_trend(20, 26));
	assert_false(is_trend(20, 24));
}

/* ------------------------------------------------------------------- what matters */

static void what_is_far_above_its_threshold_is_critical(void **state)
{
	(void)state;
	for (uint64_t ms = 190; ms <= 210; ms += 20) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 20; i++)
			turn(&x.m, (100 * i + 50) * MS, (100 * i + 60) * MS);
		PUT(&x.m, 1960 * MS, UNPARK, 1);
		PUT(&x.m, 1960 * MS, COUNTER, QUOTA, 0);
		PUT(&x.m, 2000 * MS, COUNTER, QUOTA, ms * 1000);
		explain(&x);
		assert_int_equal(found(x.e, "cpu-throttled", 0)->severity,
				 ms == 190 ? TACHO__SEVERITY_WARNING : TACHO__SEVERITY_CRITICAL);
		end(&x);
	}
}

/* So many callbacks of a timer in 2 s, each of so many ns: whether that is told with the reason. */
static int is_considered(uint64_t count, uint64_t ns)
{
	struct explained x;
	int is = 0;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < count; i++) {
		again(&x.m, i);
		poll(&x.m, i * 2000 * MS / count, TIMER, 7, ns);
	}
	PUT(&x.m, 2000 * MS, PARK, LOOP_3);
	explain(&x);
	assert_null(found(x.e, "timer-storm", 0));
	for (uint32_t i = 0; i < x.e->considered_count; i++)
		is |= x.e->considered[i].rule == TACHO__RULE_TIMER_STORM;
	end(&x);
	return is;
}

static void what_is_far_below_its_threshold_is_not_worth_a_word(void **state)
{
	(void)state;
	assert_true(is_considered(210, 100 * US));
	assert_false(is_considered(190, 100 * US));
}

static void what_is_a_tiny_part_of_the_window_is_not_worth_a_word(void **state)
{
	(void)state;
	assert_true(is_considered(1000, 2050));
	assert_false(is_considered(1000, 1950));
}

/* One of so many callbacks takes long. */
static int is_outlier(uint64_t count)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < count; i++)
		poll(&x.m, i * 100 * MS, KIND_A, 7, (i == 5 ? 40 : 1) * MS);
	PUT(&x.m, count * 100 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_OUTLIER);
}

static void of_few_none_is_unusual(void **state)
{
	(void)state;
	assert_true(is_outlier(20));
	assert_false(is_outlier(19));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_wake_of_hundred_may_be_late),
		cmocka_unit_test(what_is_late_for_a_part_of_the_window_is_no_moment),
		cmocka_unit_test(some_wakes_are_needless),
		cmocka_unit_test(few_that_are_woken_at_once_are_no_herd),
		cmocka_unit_test(who_waits_for_a_moment_is_not_kept_waiting),
		cmocka_unit_test(a_lock_that_is_waited_for_now_and_then_is_not_crowded),
		cmocka_unit_test(where_most_end_the_rest_is_stuck),
		cmocka_unit_test(who_waits_for_a_full_loop_is_not_stuck),
		cmocka_unit_test(what_loops_wake_tasks_for_may_never_come),
		cmocka_unit_test(tasks_that_stay_become_twice_as_many),
		cmocka_unit_test(where_nearly_all_tasks_end_there_is_no_leak),
		cmocka_unit_test(what_comes_to_rest_does_not_grow),
		cmocka_unit_test(few_values_are_no_trend),
		cmocka_unit_test(what_is_far_above_its_threshold_is_critical),
		cmocka_unit_test(what_is_far_below_its_threshold_is_not_worth_a_word),
		cmocka_unit_test(what_is_a_tiny_part_of_the_window_is_not_worth_a_word),
		cmocka_unit_test(of_few_none_is_unusual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
