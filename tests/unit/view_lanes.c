/* What a page is told of a trace: lanes, what waits, and all of it while the trace is read in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <cmocka.h>

#include "explain_help.h"
#include "view/view.h"

#define POLLS 400u

struct seen {
	struct explained x;
	struct tacho__view view;
	struct tacho__facts facts;
	struct tacho__waits waits;
	struct tacho__explaining *reading;
};

static void read_begin(struct seen *s)
{
	struct tacho__explain_options options = {.watcher = &s->facts, .waits = &s->waits};

	s->x.reader = trace_reader(&s->x.m);
	tacho__view_init(&s->view, s->x.reader);
	s->facts = tacho__view_facts(&s->view);
	s->waits = tacho__view_waits(&s->view);
	s->reading = tacho__explain_begin(s->x.reader, &options);
	assert_non_null(s->reading);
}

static void read_all(struct seen *s, uint32_t step)
{
	uint32_t process;
	uint64_t ns;
	int result;

	read_begin(s);
	while ((result = tacho__explain_some(s->reading, step, &process, &ns)) > 0)
		assert_int_equal(process, 0);
	assert_int_equal(result, 0);
	s->x.e = tacho__explain_end(s->reading);
	assert_non_null(s->x.e);
}

static void seen_end(struct seen *s)
{
	tacho__view_free(&s->view);
	end(&s->x);
}

/* NULL: there is none. */
static const struct tacho__row *row(const struct seen *s, uint32_t thread,
				    enum tacho__track_type type, uint32_t n)
{
	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&s->view.lanes, l));)
		for (uint32_t i = 0; l->thread == thread && i < l->row_count; i++)
			if (l->rows[i].type == type && !n--)
				return &l->rows[i];
	return NULL;
}

static float at(const struct tacho__row *r, uint64_t ns)
{
	float value;

	assert_non_null(r);
	assert_non_null(r->curve);
	tacho__curve_draw(r->curve, T0 + ns, T0 + ns + 1, 1, &value);
	return isnan(value) ? 0 : value;
}

/* Two tasks are woken while a third runs for 40 ms. */
static void make_tasks(struct trace *m)
{
	begin(m, 4);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_3);
	PUT(m, 10 * MS, UNPARK, 0);
	PUT(m, 10 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(m, 11 * MS, POLL_END, 1);
	PUT(m, 11 * MS, POLL_BEGIN, KIND_A, 2);
	PUT(m, 12 * MS, POLL_END, 1);
	PUT(m, 13 * MS, POLL_BEGIN, KIND_B, 3);
	PUT(m, 53 * MS, POLL_END, 1);
	PUT(m, 53 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(m, 54 * MS, POLL_END, 1);
	PUT(m, 54 * MS, POLL_BEGIN, KIND_A, 2);
	PUT(m, 55 * MS, POLL_END, 1);
	PUT(m, 60 * MS, PARK, LOOP_3);
	PUT(m, 90 * MS, UNPARK, 0);
	PUT(m, 100 * MS, PARK, LOOP_3);
	trace_stream(m, 2, 0);
	PUT(m, 24 * MS, WAKE, 0, 1);
	PUT(m, 34 * MS, WAKE, 0, 2);
	PUT(m, 70 * MS, COUNTER, COUNTER, 5);
	PUT(m, 80 * MS, COUNTER, COUNTER, 1);
}

static void what_waits_is_seen_from_wake_to_poll(void **state)
{
	const struct tacho__row *waiting, *lag;
	struct seen s;

	(void)state;
	make_tasks(&s.x.m);
	read_all(&s, 1u << 20);
	waiting = row(&s, 1, TACHO__TRACK_WAITING, 0);
	assert_true(at(waiting, 20 * MS) == 0);
	assert_true(at(waiting, 30 * MS) == 1);
	assert_true(at(waiting, 40 * MS) == 2);
	assert_true(at(waiting, 53 * MS + MS / 2) == 1);
	assert_true(at(waiting, 58 * MS) == 0);
	lag = row(&s, 1, TACHO__TRACK_LAG, 0);
	assert_true(at(lag, 53 * MS) == 29 * MS);
	assert_true(at(lag, 54 * MS) == 20 * MS);
	assert_true(at(lag, 40 * MS) == 0);
	seen_end(&s);
}

static void parks_and_counters_are_rows(void **state)
{
	const struct tacho__row *parks, *counter;
	struct seen s;

	(void)state;
	make_tasks(&s.x.m);
	read_all(&s, 1u << 20);
	parks = row(&s, 1, TACHO__TRACK_PARKS, 0);
	assert_non_null(parks);
	assert_int_equal(parks->track.count, 2);
	assert_int_equal(tacho__track_at(&parks->track, 1).begin_ns, T0 + 60 * MS);
	assert_int_equal(tacho__track_busy(&parks->track, T0 + 50 * MS, T0 + 70 * MS), 10 * MS);
	assert_int_equal(tacho__track_busy(&parks->track, T0 + 5 * MS, T0 + 95 * MS), 35 * MS);
	assert_non_null(row(&s, 1, TACHO__TRACK_BUSY, 0));
	counter = row(&s, 0, TACHO__TRACK_COUNTERS, 0);
	assert_true(at(counter, 75 * MS) == 5);
	assert_true(at(counter, 95 * MS) == 0);
	tacho__view_end(&s.view);
	assert_true(at(counter, 95 * MS) == 1);
	seen_end(&s);
}

/* Callbacks are not seen: what a wait reported is served evenly over the turn; and what the next wait
   returns at once came during it. */
/* Nobody signals the first, as of workers without work; somebody has the second. */
static void a_wait_that_lasts_is_for_a_condition_or_a_lock(void **state)
{
	const struct tacho__row *signals, *locks;
	struct seen s;

	(void)state;
	make_tasks(&s.x.m);
	trace_stream(&s.x.m, 3, 0);
	PUT(&s.x.m, MS, LOCK_WAIT, 0, 0xabc);
	PUT(&s.x.m, MS, LOCK_OWNER, 1u << 23, 0xabc);
	trace_stream(&s.x.m, 4, 0);
	PUT(&s.x.m, MS, LOCK_WAIT, 0, 0xdef);
	PUT(&s.x.m, MS, LOCK_OWNER, 101, 0xdef);
	read_all(&s, 1u << 20);
	signals = row(&s, 3, TACHO__TRACK_SIGNALS, 0);
	locks = row(&s, 4, TACHO__TRACK_LOCKS, 0);
	assert_true(signals && signals->track.count == 1);
	assert_null(row(&s, 3, TACHO__TRACK_LOCKS, 0));
	assert_true(locks && locks->track.count == 1);
	assert_null(row(&s, 4, TACHO__TRACK_SIGNALS, 0));
	seen_end(&s);
}

static void what_a_wait_reports_is_served_evenly(void **state)
{
	const struct tacho__row *waiting;
	struct seen s;

	(void)state;
	begin(&s.x.m, 4);
	trace_stream(&s.x.m, 1, 0);
	for (uint64_t t = 0; t < 10; t++) {
		PUT(&s.x.m, 10 * t * MS, PARK, LOOP_1);
		PUT(&s.x.m, (10 * t + 9) * MS, UNPARK, 1);
	}
	PUT(&s.x.m, 100 * MS, PARK, LOOP_1);
	PUT(&s.x.m, 110 * MS, UNPARK, 9);
	PUT(&s.x.m, 150 * MS, PARK, LOOP_1);
	PUT(&s.x.m, 150 * MS + 100, UNPARK, 4);
	PUT(&s.x.m, 151 * MS, PARK, LOOP_1);
	PUT(&s.x.m, 200 * MS, UNPARK, 0);
	read_all(&s, 1u << 20);
	waiting = row(&s, 1, TACHO__TRACK_WAITING, 0);
	assert_true(fabsf(at(waiting, 110 * MS + MS / 10) - 8) < 0.2F);
	/* 8 less a half, and half of 4 more. */
	assert_true(fabsf(at(waiting, 130 * MS) - 6) < 0.2F);
	assert_true(fabsf(at(waiting, 150 * MS - MS / 10) - 4) < 0.2F);
	assert_true(at(waiting, 105 * MS) == 0);
	seen_end(&s);
}

static void steps_give_what_one_pass_gives(void **state)
{
	struct seen s, whole;

	(void)state;
	make_tasks(&whole.x.m);
	read_all(&whole, 1u << 20);
	for (uint32_t step = 1; step < 8; step += 3) {
		make_tasks(&s.x.m);
		read_all(&s, step);
		assert_int_equal(s.view.things, whole.view.things);
		assert_int_equal(s.x.e->count, whole.x.e->count);
		assert_string_equal(s.x.e->verdict.summary, whole.x.e->verdict.summary);
		assert_int_equal(s.x.e->ledger->waiting_ns, whole.x.e->ledger->waiting_ns);
		assert_int_equal(s.x.e->processes[0].events, whole.x.e->processes[0].events);
		seen_end(&s);
	}
	seen_end(&whole);
}

/* After any number of steps: nothing is left behind, and what was read is there. */
static void reading_can_be_given_up(void **state)
{
	(void)state;
	for (uint32_t steps = 0; steps < 19; steps++) {
		struct seen s = {0};
		uint64_t ns = 0, before = 0;
		uint32_t process;

		make_tasks(&s.x.m);
		read_begin(&s);
		for (uint32_t i = 0; i < steps; i++) {
			assert_int_equal(tacho__explain_some(s.reading, 1, &process, &ns), 1);
			assert_true(ns >= before);
			before = ns;
		}
		assert_null(tacho__explain_end(s.reading));
		assert_true(steps < 12 || row(&s, 1, TACHO__TRACK_POLLS, 0));
		/* The reader is as it was: it can be read again. */
		s.x.e = tacho__explain(s.x.reader, NULL, &(int){0});
		assert_non_null(s.x.e);
		assert_int_equal(s.x.e->processes[0].events, 19);
		seen_end(&s);
	}
}

/* Beyond the budget what is too short to be seen in the whole window is left out, and counted. */
static void a_view_keeps_to_its_budget(void **state)
{
	struct seen s;
	uint32_t process;
	uint64_t ns;

	(void)state;
	begin(&s.x.m, 4);
	trace_stream(&s.x.m, 1, 0);
	PUT(&s.x.m, 0, PARK, LOOP_3);
	PUT(&s.x.m, MS, UNPARK, 0);
	for (uint64_t i = 0; i < POLLS; i++) {
		uint64_t length = i % 100 ? 1000 : 100000;

		PUT(&s.x.m, MS + i * MS / 5, POLL_BEGIN, KIND_A, 1);
		PUT(&s.x.m, MS + i * MS / 5 + length, POLL_END, 1);
	}
	read_begin(&s);
	s.view.budget = 1000;
	while (tacho__explain_some(s.reading, 1u << 20, &process, &ns) > 0)
		;
	s.x.e = tacho__explain_end(s.reading);
	assert_in_range(s.view.thinned, POLLS / 2, POLLS - POLLS / 100);
	assert_int_equal(s.view.thinned + row(&s, 1, TACHO__TRACK_POLLS, 0)->track.count, POLLS);
	assert_in_range(row(&s, 1, TACHO__TRACK_POLLS, 0)->track.count, POLLS / 100, POLLS / 2);
	seen_end(&s);
}

/* A number that a second task has after the first has ended: what both did is that number's. */
static void lives_of_one_number_are_added_up(void **state)
{
	const struct tacho__view_task *k;
	struct seen s;

	(void)state;
	begin(&s.x.m, 4);
	trace_stream(&s.x.m, 1, 0);
	PUT(&s.x.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t at_ns = (10 + 10 * i) * MS;

		if (i != 1)
			PUT(&s.x.m, at_ns, SPAWN, KIND_A, 0, 7, 0);
		PUT(&s.x.m, at_ns + MS, POLL_BEGIN, KIND_A, 7);
		PUT(&s.x.m, at_ns + 3 * MS, POLL_END, i == 0 ? TACHO_PENDING : TACHO_DONE);
	}
	PUT(&s.x.m, 90 * MS, PARK, LOOP_3);
	read_all(&s, 1u << 20);
	k = tacho__table_find(&s.view.tasks, 7, 0);
	assert_non_null(k);
	assert_int_equal(k->polls, 3);
	assert_int_equal(k->busy_ns, 6 * MS);
	assert_int_equal(k->spawn_ns, T0 + 10 * MS);
	seen_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_seen_from_wake_to_poll),
		cmocka_unit_test(parks_and_counters_are_rows),
		cmocka_unit_test(a_wait_that_lasts_is_for_a_condition_or_a_lock),
		cmocka_unit_test(what_a_wait_reports_is_served_evenly),
		cmocka_unit_test(steps_give_what_one_pass_gives),
		cmocka_unit_test(lives_of_one_number_are_added_up),
		cmocka_unit_test(reading_can_be_given_up),
		cmocka_unit_test(a_view_keeps_to_its_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
