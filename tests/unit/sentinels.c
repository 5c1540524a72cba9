/* The conditions of --on: what is understood, what is refused and where, and when they hold. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sentinel.h"

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct tacho__sentinels parsed(const char *text)
{
	struct tacho__sentinels s = {0};
	char message[200];
	size_t at;

	if (tacho__sentinels_add(&s, text, &at, message, sizeof(message)))
		fail_msg("\"%s\": at %zu: %s", text, at, message);
	return s;
}

static void condition_is(const struct tacho__condition *c, unsigned watched, uint64_t limit,
			 unsigned group)
{
	assert_int_equal(c->watched, watched);
	assert_int_equal(c->limit, limit);
	assert_int_equal(c->group, group);
}

static void each_measure_is_understood(void **state)
{
	struct tacho__sentinels s;

	(void)state;
	s = parsed("poll>50ms, wake>20us, lag>1.5s, sched>.5ms, stall>2s, queue>1000, exit!=0");
	assert_int_equal(s.count, 7);
	condition_is(&s.conditions[0], TACHO__WATCH_POLL, 50 * MS, 0);
	condition_is(&s.conditions[1], TACHO__WATCH_WAKE, 20000, 1);
	condition_is(&s.conditions[2], TACHO__WATCH_LAG, 1500 * MS, 2);
	condition_is(&s.conditions[3], TACHO__WATCH_SCHED, 500000, 3);
	condition_is(&s.conditions[4], TACHO__WATCH_STALL, 2 * SECOND, 4);
	condition_is(&s.conditions[5], TACHO__WATCH_QUEUE, 1000, 5);
	condition_is(&s.conditions[6], TACHO__WATCH_EXIT, 0, 6);
	assert_false(s.conditions[6].equal);
	s = parsed("exit = 3");
	condition_is(&s.conditions[0], TACHO__WATCH_EXIT, 3, 0);
	assert_true(s.conditions[0].equal);
	assert_true(parsed("exit==139").conditions[0].equal);
}

static void space_may_stand_anywhere_between_words(void **state)
{
	static const char *const same[] = {
		"poll>50ms and queue>3", " \t poll > 50ms and\nqueue > 3 ", "poll> 50 ms&&queue >3",
		"poll>50ms&& queue>3",	 "poll > 50 ms and queue>3",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct tacho__sentinels s = parsed(same[i]);

		assert_int_equal(s.count, 2);
		condition_is(&s.conditions[0], TACHO__WATCH_POLL, 50 * MS, 0);
		condition_is(&s.conditions[1], TACHO__WATCH_QUEUE, 3, 0);
	}
}

static void and_binds_closer_than_or(void **state)
{
	struct tacho__sentinels s = parsed("poll>1ms and lag>2ms or wake>3ms && queue>4 || exit=5");
	static const unsigned groups[] = {0, 0, 1, 1, 2};

	(void)state;
	assert_int_equal(s.count, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(s.conditions[i].group, groups[i]);
}

static void several_options_are_joined_by_or(void **state)
{
	struct tacho__sentinels s = parsed("poll>1ms and lag>2ms");
	char message[100];
	size_t at;

	(void)state;
	assert_int_equal(tacho__sentinels_add(&s, "wake > 3ms", &at, message, sizeof(message)), 0);
	assert_string_equal(s.text, "poll>1ms and lag>2ms or wake > 3ms");
	assert_int_equal(s.conditions[2].group, 1);
	assert_memory_equal(s.text + s.conditions[2].from, "wake > 3ms", 10);
	assert_int_equal(s.conditions[2].to - s.conditions[2].from, 10);
}

static void an_error_names_what_was_expected_and_where(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *part;
	} bad[] = {
		{"", 0, "expected poll, wake"},
		{"   ", 3, "expected poll, wake"},
		{"poll", 4, "expected \">\""},
		{"pol>5ms", 0, "no such sentinel"},
		{"polls>5ms", 0, "no such sentinel"},
		{"Poll>5ms", 0, "no such sentinel"},
		{"poll<5ms", 4, "expected \">\""},
		{"poll>=5ms", 5, "no \">=\""},
		{"poll=5ms", 4, "expected \">\""},
		{"poll>", 5, "expected a time"},
		{"poll>ms", 5, "expected a time"},
		{"poll>-5ms", 5, "expected a time"},
		{"poll>50", 7, "expected a unit"},
		{"poll>50 and lag>1s", 7, "expected a unit"},
		{"poll>50 parsecs", 7, "expected a unit"},
		{"poll>50mss", 7, "no unit of time"},
		{"poll>50min", 7, "no unit of time"},
		{"poll>0", 5, "above 0"},
		{"poll>0ms", 5, "above 0"},
		{"poll>1.2.3ms", 5, "too large"},
		{"poll>99999999999999999999s", 5, "too large"},
		{"poll>00000000000000000000000000000000000005ms", 5, "too large"},
		{"queue>", 6, "expected a number"},
		{"queue>10ms", 8, "whole number"},
		{"queue>1.5", 7, "whole number"},
		{"queue>0", 6, "above 0"},
		{"queue>99999999999999999999", 6, "64 bits"},
		{"exit", 4, "expected \"!=\""},
		{"exit>0", 4, "expected \"!=\""},
		{"exit!0", 4, "expected \"!=\""},
		{"exit!=", 6, "exit status"},
		{"exit!=256", 6, "0 to 255"},
		{"exit!=x", 6, "0 to 255"},
		{"poll>5ms lag>5ms", 9, "expected \"and\""},
		{"poll>5ms; rm", 8, "expected \"and\""},
		{"poll>5ms and", 12, "expected poll"},
		{"poll>5ms,", 9, "expected poll"},
		{"poll>5ms,,lag>1s", 9, "expected poll"},
		{"or poll>5ms", 0, "no such sentinel"},
		{"poll>5ms & lag>1s", 9, "expected \"and\""},
		{"poll>5ms andlag>1s", 9, "expected \"and\""},
		{"poll>5\xc3\xbcs", 6, "expected a unit"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tacho__sentinels s = parsed("exit=1"), before = s;
		char message[200] = "";
		size_t at = 999;

		if (tacho__sentinels_add(&s, bad[i].text, &at, message, sizeof(message)) !=
			    -EINVAL ||
		    at != bad[i].at || !strstr(message, bad[i].part))
			fail_msg("\"%s\": at %zu: %s", bad[i].text, at, message);
		assert_memory_equal(&s, &before, sizeof(s));
	}
}

static void what_is_too_much_is_refused(void **state)
{
	struct tacho__sentinels s = {0};
	char text[2000] = "", message[200];
	size_t at;

	(void)state;
	for (int i = 0; i < 17; i++)
		strcat(text, i ? ",exit=1" : "exit=1");
	assert_int_equal(tacho__sentinels_add(&s, text, &at, message, sizeof(message)), -EINVAL);
	assert_int_equal(at, 16 * 7);
	assert_non_null(strstr(message, "at most 16"));
	text[15 * 7 + 6] = 0;
	assert_int_equal(tacho__sentinels_add(&s, text, &at, message, sizeof(message)), 0);
	assert_int_equal(s.count, 16);
	assert_int_equal(tacho__sentinels_add(&s, "exit=1", &at, message, sizeof(message)),
			 -EINVAL);
	assert_int_equal(at, 0);

	memset(&s, 0, sizeof(s));
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "exit=1", 6);
	text[512] = 0;
	assert_int_equal(tacho__sentinels_add(&s, text, &at, message, sizeof(message)), -EINVAL);
	assert_int_equal(at, 511);
	assert_non_null(strstr(message, "at most 511"));
	text[511] = 0;
	assert_int_equal(tacho__sentinels_add(&s, text, &at, message, sizeof(message)), 0);
	assert_int_equal(tacho__sentinels_add(&s, "exit=1", &at, message, sizeof(message)),
			 -EINVAL);
	assert_int_equal(at, 0);
	/* A sentence that does not fit is cut. */
	assert_int_equal(tacho__sentinels_add(&s, "x", &at, message, 5), -EINVAL);
	assert_true(strlen(message) == 4);
}

static void the_least_limit_is_what_the_recorder_watches(void **state)
{
	struct tacho__sentinels s = parsed("poll>50ms or poll>10ms and queue>3, poll>70ms");

	(void)state;
	assert_int_equal(tacho__sentinels_limit(&s, TACHO__WATCH_POLL), 10 * MS);
	assert_int_equal(tacho__sentinels_limit(&s, TACHO__WATCH_QUEUE), 3);
	assert_int_equal(tacho__sentinels_limit(&s, TACHO__WATCH_LAG), 0);
}

static void a_single_condition_holds_above_its_limit(void **state)
{
	struct tacho__sentinels s = parsed("poll>50ms, queue>7, exit!=0");
	struct tacho__watch w = {0};
	char why[100];

	(void)state;
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_POLL, 5, 50 * MS, why, 100), 0);
	assert_string_equal(why, "");
	assert_int_equal(
		tacho__watch_value(&s, &w, TACHO__WATCH_POLL, 5, 73250000, why, sizeof(why)), 1);
	assert_string_equal(why, "poll>50ms: a poll took 73.2 ms");
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_QUEUE, 5, 8, why, 100), 2);
	assert_string_equal(why, "queue>7: the depth of a queue was 8");
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_EXIT, 5, 0, why, 100), 0);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_EXIT, 5, 134, why, 100), 3);
	assert_string_equal(why, "exit!=0: the program ended with status 134");
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_LAG, 5, UINT64_MAX, why, 100), 0);
}

static void of_two_limits_only_the_exceeded_one_holds(void **state)
{
	struct tacho__sentinels s = parsed("poll>50ms and queue>3 or poll>10ms and lag>1s");
	struct tacho__watch w = {0};
	char why[200];

	(void)state;
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_QUEUE, SECOND, 9, why, 200), 0);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_LAG, SECOND, 2 * SECOND, why, 200),
			 0);
	/* Above 10 and not above 50: the second group, with queue's having held as well. */
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_POLL, SECOND, 20 * MS, why, 200),
			 2);
	assert_string_equal(why, "poll>10ms: a poll took 20.0 ms; lag>1s: a loop or a timer was "
				 "late by 2.0 s");
	assert_int_equal(w.held_ns[0], 0);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_POLL, SECOND, 60 * MS, why, 200),
			 1);
	assert_string_equal(why, "poll>50ms: a poll took 60.0 ms; queue>3: the depth of a queue "
				 "was 9");
}

static void together_means_within_a_second(void **state)
{
	struct tacho__sentinels s = parsed("poll>50ms and queue>3");
	struct tacho__watch w = {0}, other = {0};
	char why[200];

	(void)state;
	assert_int_equal(
		tacho__watch_value(&s, &w, TACHO__WATCH_POLL, 10 * SECOND, SECOND, why, 200), 0);
	/* Another process does not count. */
	assert_int_equal(
		tacho__watch_value(&s, &other, TACHO__WATCH_QUEUE, 10 * SECOND, 4, why, 200), 0);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_QUEUE,
					    10 * SECOND + TACHO__TOGETHER_NS + 1, 4, why, 200),
			 0);
	/* The queue's is the one of before now: what came first does not matter. */
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_POLL,
					    10 * SECOND + 2 * TACHO__TOGETHER_NS + 1, SECOND, why,
					    200),
			 1);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_QUEUE,
					    10 * SECOND + 3 * TACHO__TOGETHER_NS + 1, 3, why, 200),
			 0);
	assert_int_equal(tacho__watch_value(&s, &w, TACHO__WATCH_QUEUE,
					    10 * SECOND + 3 * TACHO__TOGETHER_NS + 1, 4, why, 200),
			 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_measure_is_understood),
		cmocka_unit_test(space_may_stand_anywhere_between_words),
		cmocka_unit_test(and_binds_closer_than_or),
		cmocka_unit_test(several_options_are_joined_by_or),
		cmocka_unit_test(an_error_names_what_was_expected_and_where),
		cmocka_unit_test(what_is_too_much_is_refused),
		cmocka_unit_test(the_least_limit_is_what_the_recorder_watches),
		cmocka_unit_test(a_single_condition_holds_above_its_limit),
		cmocka_unit_test(of_two_limits_only_the_exceeded_one_holds),
		cmocka_unit_test(together_means_within_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
