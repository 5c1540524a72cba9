/* Thresholds of rules on both sides: a finding is there when the threshold is just what was measured,
   and not, or not as severe, when it is a little more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

#define SECOND (1000 * MS)
#define US 1000ull
#define STRETCH 60u /* rounds between two stretches: their records fit */

/* The severity of a rule's finding, with one threshold set; 0: there is none. */
static int severity(struct tacho_reader *reader, const char *rule, const char *threshold,
		    double value)
{
	struct tacho__explain_options options = {0};
	struct tacho__explanation *e;
	double thresholds[TACHO__LIMIT_COUNT];
	int error, found = 0, set = 0;

	for (uint32_t i = 0; i < TACHO__LIMIT_COUNT; i++) {
		int is = strcmp(tacho__thresholds[i].name, threshold) == 0;

		thresholds[i] = is ? value : tacho__thresholds[i].value;
		set |= is;
	}
	assert_true(set);
	options.thresholds = thresholds;
	assert_int_equal(tacho_read_seek(reader, 0), 0);
	e = tacho__explain(reader, &options, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0)
			found = (int)e->findings[i].severity;
	tacho__explanation_free(e);
	return found;
}

static void both_sides(struct tacho_reader *reader, const char *rule, const char *threshold,
		       double measured)
{
	int at = severity(reader, rule, threshold, measured);
	int above = severity(reader, rule, threshold, measured * (1 + 1e-9));

	print_message("%s at %g: %d, above: %d\n", threshold, measured, at, above);
	assert_true(at > above);
}

static void trace_end(struct trace *m, struct tacho_reader *reader)
{
	tacho_read_close(reader);
	tb_free(&m->t);
}

/* 3000 waits in a second, of which 2000 end with nothing. */
static void futile_waits(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 3000; i++) {
		if (i % STRETCH == STRETCH - 1)
			trace_stream(&m, 1, 0);
		PUT(&m, i * 333 * US + 100, UNPARK, i % 3 == 0);
		PUT(&m, i * 333 * US + 200, PARK, LOOP_1);
	}
	PUT(&m, SECOND, UNPARK, 1);
	reader = trace_reader(&m);
	both_sides(reader, "futile-wakeups", "futile-wakeups.rate", 2000);
	both_sides(reader, "futile-wakeups", "futile-wakeups.share", 100.0 * 2000 / 3001);
	trace_end(&m, reader);
}

/* 1000 polls in a second, each woken seven times: six more than are of use. */
static void needless_wakes(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 1000; i++) {
		if (i % 10 == 9)
			trace_stream(&m, 1, 0);
		for (uint64_t k = 0; k < 7; k++)
			PUT(&m, i * MS + k * US, WAKE, 0, 7);
		PUT(&m, i * MS + 10 * US, POLL_BEGIN, KIND_A, 7);
		PUT(&m, i * MS + 11 * US, POLL_END, TACHO_PENDING);
	}
	PUT(&m, SECOND, PARK, LOOP_3);
	reader = trace_reader(&m);
	both_sides(reader, "wake-storm", "wake-storm.rate", 6000);
	trace_end(&m, reader);
}

/* A task that is polled 3000 times in a second: 2000 times it woke itself, else another did. */
static void wakes_of_its_own(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 3000; i++) {
		if (i % STRETCH == STRETCH - 1)
			trace_stream(&m, 1, 0);
		if (i >= 2000)
			PUT(&m, i * 333 * US, WAKE, 0, 7);
		PUT(&m, i * 333 * US + 10 * US, POLL_BEGIN, KIND_A, 7);
		if (i < 2000)
			PUT(&m, i * 333 * US + 11 * US, WAKE, 0, 7);
		PUT(&m, i * 333 * US + 12 * US, POLL_END, TACHO_PENDING);
	}
	PUT(&m, SECOND, PARK, LOOP_3);
	reader = trace_reader(&m);
	both_sides(reader, "self-wake", "self-wake.rate", 2000);
	both_sides(reader, "self-wake", "self-wake.share", 100.0 * 2000 / 3000);
	trace_end(&m, reader);
}

/* A task every 2 ms that never ends, and a queue that is as long as there are tasks by then. */
static void what_piles_up(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	for (uint64_t i = 1; i <= 1500; i++) {
		if (i % STRETCH == STRETCH - 1)
			trace_stream(&m, 1, 0);
		PUT(&m, i * 2 * MS, SPAWN, KIND_A, 0, i, 0);
		PUT(&m, i * 2 * MS + US, QUEUE_DEPTH, LOOP_3, i);
	}
	PUT(&m, 3 * SECOND + 2 * US, PARK, LOOP_3);
	reader = trace_reader(&m);
	both_sides(reader, "task-leak", "task-leak.count", 1500);
	both_sides(reader, "queue-growth", "queue-growth.warn", 1500);
	both_sides(reader, "queue-growth", "queue-growth.critical", 1500);
	trace_end(&m, reader);
}

/* A queue that grows for `growing` of 300 steps, and is as long as that from then on. */
static int is_growing(uint64_t growing)
{
	struct tacho_reader *reader;
	struct trace m;
	int found;

	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	for (uint64_t i = 1; i <= 300; i++) {
		if (i % STRETCH == STRETCH - 1)
			trace_stream(&m, 1, 0);
		PUT(&m, i * 10 * MS, QUEUE_DEPTH, LOOP_3, 5 * (i < growing ? i : growing));
	}
	reader = trace_reader(&m);
	found = severity(reader, "queue-growth", "queue-growth.warn", 100);
	trace_end(&m, reader);
	return found;
}

/* What comes to rest has grown, but does not grow. */
static void what_has_become_full(void **state)
{
	(void)state;
	assert_int_not_equal(is_growing(300), 0);
	assert_int_not_equal(is_growing(270), 0);
	assert_int_equal(is_growing(180), 0);
}

/* 120 records in a second, of which a share is missing. */
static void lost(uint64_t missing, const char *threshold, double share)
{
	struct tacho_reader *reader;
	struct trace m;

	trace_begin(&m);
	trace_stream(&m, 1, 0);
	for (uint64_t i = 0; i < 60; i++) {
		if (i == 30)
			trace_hole(&m, 1, 0, missing);
		PUT(&m, i * SECOND / 60, UNPARK, 1);
		PUT(&m, i * SECOND / 60 + MS, PARK, LOOP_1);
	}
	reader = trace_reader(&m);
	both_sides(reader, "recorder-loss", threshold, share);
	trace_end(&m, reader);
}

static void missing_records(void **state)
{
	(void)state;
	lost(5, "recorder-loss.share", 100.0 * 5 / 125);
	lost(30, "recorder-loss.warn", 100.0 * 30 / 150);
	lost(180, "recorder-loss.critical", 100.0 * 180 / 300);
}

/* Of 40 polls of 1 ms one takes 40 ms. */
static void an_outlier(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&m, i * 50 * MS, POLL_BEGIN, KIND_A, 7);
		PUT(&m, i * 50 * MS + (i == 20 ? 40 : 1) * MS, POLL_END, TACHO_PENDING);
	}
	PUT(&m, 2 * SECOND, PARK, LOOP_3);
	reader = trace_reader(&m);
	both_sides(reader, "outlier", "outlier.ns", 40 * MS);
	trace_end(&m, reader);
}

/* A poll that began 2 s before the end, with nothing that says what it does, and one that runs. */
static void polls_that_do_not_end(void **state)
{
	(void)state;
	for (int runs = 0; runs < 2; runs++) {
		struct tacho_reader *reader;
		struct trace m;

		trace_begin(&m);
		trace_stream(&m, 1, 0);
		PUT(&m, 0, PARK, LOOP_1);
		for (uint64_t i = 1; i < 100; i++) {
			PUT(&m, i * MS, UNPARK, 1);
			PUT(&m, i * MS + US, PARK, LOOP_1);
		}
		PUT(&m, 100 * MS, UNPARK, 1);
		PUT(&m, 100 * MS, POLL_BEGIN, KIND_A, 7);
		for (uint64_t i = 1; runs && i < 200; i++)
			PUT(&m, (100 + 10 * i) * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, 0x1000, 0x2000,
			    0x3000);
		trace_stream(&m, 2, 0);
		PUT(&m, 2100 * MS, WAKE, 0, 9);
		reader = trace_reader(&m);
		both_sides(reader, runs ? "never-yields" : "hang",
			   runs ? "never-yields.ns" : "hang.ns", 2000 * MS);
		trace_end(&m, reader);
	}
}

/* 100 records in a second are enough, and with a threshold above they are not. */
static void enough_to_tell(void **state)
{
	struct tacho_reader *reader;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	for (uint64_t i = 0; i < 50; i++) {
		PUT(&m, i * 20 * MS, UNPARK, 1);
		PUT(&m, i == 49 ? SECOND : (i * 20 + 10) * MS, PARK, LOOP_1);
	}
	reader = trace_reader(&m);
	assert_int_equal(severity(reader, "not-enough-data", "not-enough-data.events", 100), 0);
	assert_int_not_equal(severity(reader, "not-enough-data", "not-enough-data.events", 101), 0);
	assert_int_equal(severity(reader, "not-enough-data", "not-enough-data.ns", SECOND), 0);
	assert_int_not_equal(severity(reader, "not-enough-data", "not-enough-data.ns", SECOND + 1),
			     0);
	trace_end(&m, reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(futile_waits),		cmocka_unit_test(needless_wakes),
		cmocka_unit_test(wakes_of_its_own),	cmocka_unit_test(what_piles_up),
		cmocka_unit_test(what_has_become_full), cmocka_unit_test(missing_records),
		cmocka_unit_test(an_outlier),		cmocka_unit_test(polls_that_do_not_end),
		cmocka_unit_test(enough_to_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
