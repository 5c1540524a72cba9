/* Constants of model/judgement.def on both sides, each in a trace: what is said of loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "judgement_help.h"

/* ----------------------------------------------------------------- what is full */

/* A loop that idles for `idle` ms, then has so many turns of 4 ms, without a pause. */
static int is_saturated(uint64_t idle, uint64_t turns)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < turns; i++)
		turn(&x.m, (idle + 4 * i) * MS + 1000, (idle + 4 * i + 4) * MS);
	return finds(&x, TACHO__RULE_LOOP_SATURATED);
}

static void a_loop_is_full_that_is_so_for_most_of_the_window(void **state)
{
	(void)state;
	assert_true(is_saturated(360, 400));
	assert_false(is_saturated(440, 400));
}

static void a_loop_with_few_turns_is_not_full(void **state)
{
	(void)state;
	for (uint64_t turns = 9; turns <= 10; turns++) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < turns; i++)
			turn(&x.m, i * 200 * MS + 1000, (i + 1) * 200 * MS);
		for (uint64_t i = 0; i < 60; i++)
			PUT(&x.m, turns * 200 * MS + i, COUNTER, COUNTER, i);
		assert_int_equal(finds(&x, TACHO__RULE_LOOP_SATURATED), turns == 10);
	}
}

/* Waits that only ask whether there is something are work. */
static void a_wait_that_only_asks_is_work(void **state)
{
	(void)state;
	for (uint64_t ns = 3900; ns <= 4300; ns += 400) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0, at = 0; i < 4000; i++, at += 12000 + ns) {
			again(&x.m, i);
			turn(&x.m, at + ns, at + ns + 12000);
		}
		assert_int_equal(finds(&x, TACHO__RULE_LOOP_SATURATED), ns == 3900);
	}
}

/* Waits that end with nothing, at a loop of which only waits are seen. */
static void in_a_short_turn_nothing_was_done(void **state)
{
	(void)state;
	for (uint64_t ns = 9500; ns <= 10500; ns += 1000) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, OTHER);
		for (uint64_t i = 0; i < 4000; i++) {
			again(&x.m, i);
			PUT(&x.m, i * MS / 2 + MS / 10, UNPARK, 0);
			PUT(&x.m, i * MS / 2 + MS / 10 + ns, PARK, OTHER);
		}
		assert_int_equal(finds(&x, TACHO__RULE_FUTILE_WAKEUPS), ns == 9500);
	}
}

static void a_loop_that_hardly_works_has_nothing_to_do(void **state)
{
	(void)state;
	for (uint64_t ns = 19; ns <= 21; ns += 2) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 20; i++)
			turn(&x.m, (100 * i + 50) * MS, (100 * i + 50) * MS + ns * MS / 20);
		PUT(&x.m, 2000 * MS, UNPARK, 0);
		explain(&x);
		assert_int_equal(strstr(x.e->verdict.summary, "almost nothing to do") != NULL,
				 ns == 19);
		end(&x);
	}
}

/* ------------------------------------------------------------ what it is busy with */

/* A full loop with a callback that takes so many % of each turn. */
static int is_busy_with(uint64_t percent)
{
	struct explained x;
	int is;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < 400; i++) {
		again(&x.m, i);
		PUT(&x.m, 4 * i * MS + 1000, UNPARK, 1);
		PUT(&x.m, 4 * i * MS + 2000, POLL_BEGIN, KIND_A, 7);
		PUT(&x.m, 4 * i * MS + 2000 + percent * 4 * MS / 100, POLL_END, 0);
		PUT(&x.m, (4 * i + 4) * MS, PARK, LOOP_3);
	}
	explain(&x);
	assert_non_null(found(x.e, "loop-saturated", 0));
	is = found(x.e, "loop-saturated", 0)->kind == KIND_A;
	end(&x);
	return is;
}

static void a_callback_with_a_small_part_is_not_what_a_loop_is_busy_with(void **state)
{
	(void)state;
	assert_true(is_busy_with(26));
	assert_false(is_busy_with(24));
}

static void few_samples_do_not_tell_what_a_loop_is_busy_with(void **state)
{
	(void)state;
	for (uint64_t samples = 3; samples <= 4; samples++) {
		struct explained x;

		draw(&x);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 400; i++) {
			again(&x.m, i);
			PUT(&x.m, 4 * i * MS + 1000, UNPARK, 1);
			if (i < samples)
				PUT(&x.m, 4 * i * MS + 2000, SAMPLE_FRAMES, 0, 0, 10 * MS,
				    CODE + 0x1000, CODE + 0x5000, CODE + 0x9000);
			PUT(&x.m, (4 * i + 4) * MS, PARK, LOOP_1);
		}
		explain(&x);
		assert_non_null(found(x.e, "loop-saturated", 0));
		assert_int_equal(found(x.e, "loop-saturated", 0)->where_count > 0, samples == 4);
		end(&x);
	}
}

/* A callback that does not end, so many % of whose samples go through one function. */
static uint64_t place_of_most(uint64_t percent)
{
	struct explained x;
	uint64_t place;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	PUT(&x.m, 100 * MS, UNPARK, 1);
	PUT(&x.m, 100 * MS, POLL_BEGIN, KIND_A, 7);
	sampled(&x.m, 100 * MS, (100 + 20 * percent) * MS, 0x1000, 0x5000);
	sampled(&x.m, (100 + 20 * percent) * MS, 2100 * MS, 0x2000, 0x6000);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, 2100 * MS, WAKE, 0, 9);
	explain(&x);
	assert_non_null(found(x.e, "never-yields", 0));
	place = found(x.e, "never-yields", 0)->where[0].address - CODE;
	end(&x);
	return place;
}

static void what_most_samples_go_through_is_their_place(void **state)
{
	(void)state;
	assert_int_equal(place_of_most(76), 0x5000);
	assert_int_equal(place_of_most(74), 0x9000);
}

/* ------------------------------------------------------------------ one descriptor */

struct flood {
	uint32_t clients, times; /* that the first is served */
	uint64_t ns, others_ns;	 /* of a turn for it, and of all for another one */
	uint64_t idle_ns;	 /* before each turn */
};

/* Descriptors from 4 on. */
static int is_flood(const struct flood *w)
{
	struct explained x;
	uint64_t at = 0;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint32_t i = 0; i < w->times + w->clients - 1; i++) {
		uint64_t ns = i < w->times ? w->ns : w->others_ns;

		again(&x.m, i);
		at += w->idle_ns;
		PUT(&x.m, at, UNPARK, 1);
		PUT(&x.m, at, READY, 1, i < w->times ? 4 : 5 + i - w->times);
		PUT(&x.m, at + ns, PARK, LOOP_1);
		at += ns;
	}
	return finds(&x, TACHO__RULE_FD_FLOOD);
}

static void a_flood_is_of_one_client_of_several(void **state)
{
	(void)state;
	assert_true(is_flood(&(struct flood){4, 1000, MS, MS, 1000}));
	assert_false(is_flood(&(struct flood){3, 1000, MS, MS, 1000}));
}

static void a_flood_comes_often(void **state)
{
	(void)state;
	assert_true(is_flood(&(struct flood){5, 1000, MS, MS, 1000}));
	assert_false(is_flood(&(struct flood){5, 999, MS, MS, 1000}));
}

static void a_flood_takes_far_more_than_the_next_client(void **state)
{
	(void)state;
	assert_true(is_flood(&(struct flood){4, 1000, MS, 195 * MS, 1000}));
	assert_false(is_flood(&(struct flood){4, 1000, MS, 205 * MS, 1000}));
}

static void a_flood_keeps_a_loop_that_is_busy(void **state)
{
	(void)state;
	assert_true(is_flood(&(struct flood){4, 1000, 680000, MS, 320000}));
	assert_false(is_flood(&(struct flood){4, 1000, 660000, MS, 340000}));
}

/* --------------------------------------------------------------------- balance */

static int is_unbalanced(uint64_t turns)
{
	struct explained x;

	draw(&x);
	for (uint32_t t = 1; t <= 3; t++) {
		trace_stream(&x.m, t, 0);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < turns; i++) {
			PUT(&x.m, (10 * i + 1) * MS, UNPARK, t == 1 ? 8 : 1);
			PUT(&x.m, (10 * i + (t == 1 ? 10 : 2)) * MS, PARK, LOOP_1);
		}
	}
	return finds(&x, TACHO__RULE_WORKER_IMBALANCE);
}

static void loops_that_have_just_begun_need_no_balance(void **state)
{
	(void)state;
	assert_true(is_unbalanced(100));
	assert_false(is_unbalanced(99));
}

/* ---------------------------------------------------------------------- timers */

/* Timers of which some come 30 ms late, the others 1 ms. */
static int are_late(uint32_t count, uint32_t late)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < count; i++) {
		again(&x.m, i);
		PUT(&x.m, (i + 1) * 40 * MS, LATE, 0, i < late ? 30 * MS : MS);
		PUT(&x.m, (i + 1) * 40 * MS, POLL_BEGIN, TIMER, 7);
		PUT(&x.m, (i + 1) * 40 * MS + 1000, POLL_END, 0);
	}
	PUT(&x.m, (count + 1) * 40 * MS, PARK, LOOP_3);
	return finds(&x, TACHO__RULE_TIMER_LATE);
}

static void a_few_timers_may_be_late(void **state)
{
	(void)state;
	/* There are several, */
	assert_true(are_late(5, 5));
	assert_false(are_late(4, 4));
	/* of which some are late, */
	assert_true(are_late(20, 3));
	assert_false(are_late(20, 2));
	/* and no small part. */
	assert_true(are_late(200, 10));
	assert_false(are_late(200, 9));
}

/* A loop that is full with so many callbacks of a timer in a second. */
static int is_storm(uint64_t rate)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < rate; i++) {
		uint64_t from = i * 1000 * MS / rate, to = (i + 1) * 1000 * MS / rate;

		again(&x.m, i);
		PUT(&x.m, from + 1000, UNPARK, 0);
		PUT(&x.m, from + 1000, POLL_BEGIN, TIMER, 7);
		PUT(&x.m, to - 1000, POLL_END, 0);
		PUT(&x.m, to, PARK, LOOP_3);
	}
	explain(&x);
	assert_non_null(found(x.e, "loop-saturated", 0));
	if (found(x.e, "timer-storm", 0))
		assert_true(found(x.e, "loop-saturated", 0)->folded_into >= 0);
	rate = found(x.e, "timer-storm", 0) != NULL;
	end(&x);
	return (int)rate;
}

static void a_timer_that_fills_its_loop_is_slow_or_a_storm(void **state)
{
	(void)state;
	assert_true(is_storm(4040));
	assert_false(is_storm(3960));
}

/* --------------------------------------------------------------- what does not end */

/* Turns before one that does not end. */
struct open_turn {
	uint64_t turns, longest; /* ms, of these */
	uint64_t ns;		 /* of the one that does not end */
};

static int hangs(const struct open_turn *o)
{
	struct explained x;
	uint64_t at = 0;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < o->turns; i++, at += 10 * MS) {
		turn(&x.m, at + MS, at + (i ? 2 : o->longest) * MS);
		at += i ? 0 : o->longest * MS;
	}
	PUT(&x.m, at, UNPARK, 1);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, at + o->ns, WAKE, 0, 9);
	return finds(&x, TACHO__RULE_HANG);
}

static void a_loop_hangs_for_far_longer_than_it_ever_took(void **state)
{
	(void)state;
	assert_true(hangs(&(struct open_turn){60, 146, 1500 * MS}));
	assert_false(hangs(&(struct open_turn){60, 156, 1500 * MS}));
}

static void a_thread_with_few_turns_was_no_loop(void **state)
{
	(void)state;
	assert_true(hangs(&(struct open_turn){49, 2, 1500 * MS}));
	assert_false(hangs(&(struct open_turn){48, 2, 1500 * MS}));
}

/* A callback that does not end for 2 s, for so many ms of which samples saw it run. */
static int runs(uint64_t ms)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_1);
	PUT(&x.m, 100 * MS, UNPARK, 1);
	PUT(&x.m, 100 * MS, POLL_BEGIN, KIND_A, 7);
	sampled(&x.m, 100 * MS, (100 + ms) * MS, 0x1000, 0x5000);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, 2100 * MS, WAKE, 0, 9);
	return finds(&x, TACHO__RULE_NEVER_YIELDS);
}

static void what_runs_is_seen_by_samples(void **state)
{
	(void)state;
	assert_true(runs(520));
	assert_false(runs(480));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_is_full_that_is_so_for_most_of_the_window),
		cmocka_unit_test(a_loop_with_few_turns_is_not_full),
		cmocka_unit_test(a_wait_that_only_asks_is_work),
		cmocka_unit_test(in_a_short_turn_nothing_was_done),
		cmocka_unit_test(a_loop_that_hardly_works_has_nothing_to_do),
		cmocka_unit_test(a_callback_with_a_small_part_is_not_what_a_loop_is_busy_with),
		cmocka_unit_test(few_samples_do_not_tell_what_a_loop_is_busy_with),
		cmocka_unit_test(what_most_samples_go_through_is_their_place),
		cmocka_unit_test(a_flood_is_of_one_client_of_several),
		cmocka_unit_test(a_flood_comes_often),
		cmocka_unit_test(a_flood_takes_far_more_than_the_next_client),
		cmocka_unit_test(a_flood_keeps_a_loop_that_is_busy),
		cmocka_unit_test(loops_that_have_just_begun_need_no_balance),
		cmocka_unit_test(a_few_timers_may_be_late),
		cmocka_unit_test(a_timer_that_fills_its_loop_is_slow_or_a_storm),
		cmocka_unit_test(a_loop_hangs_for_far_longer_than_it_ever_took),
		cmocka_unit_test(a_thread_with_few_turns_was_no_loop),
		cmocka_unit_test(what_runs_is_seen_by_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
