/* What came again and again, and comes no more: tasks, timers, descriptors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "judgement_help.h"

#define US 1000ull
#define TASKS 4u
#define TICKER 50u /* a task that wakes others */
#define PEER 6u	   /* a descriptor of a client */
#define CONDITION 0x77u

static const char *const rule = "rhythm-stopped";

/* Tasks that are woken by another thread, and what else happens; times in ms. */
struct drawing {
	uint32_t beats, every;
	double jitter; /* every second time between two is longer by that part, the others shorter */
	uint32_t longest;   /* in the middle, once: instead of `every`; 0: not */
	uint32_t end;	    /* of the window; 0: 3 s */
	uint32_t turns_end; /* until then the loop goes on; 0: to the end */
	uint32_t peer_end;  /* until then a descriptor is ready each 10 ms; 0: never */
	int by_loop;	    /* the loop wakes them, after a wait that reported something */
	int by_timer;	    /* the same after one that reported nothing */
	int by_task;	    /* another task does, 1: that goes on, 2: that stops as well */
	int tasks_end;	 /* of those that were woken, 1: all end, 2: all but one of another kind */
	int waker_waits; /* at a condition, since it stopped */
	int hole;	 /* records are missing after the last */
	int is_handle;	 /* it was not spawned */
};

static void poll(struct trace *m, uint64_t at, uint32_t kind, uint64_t task, uint32_t result)
{
	PUT(m, at, POLL_BEGIN, kind, task);
	PUT(m, at + 10 * US, POLL_END, result);
}

/* When they are woken for the i-th time, in whole ms. */
static uint64_t time_of(const struct drawing *d, uint32_t i)
{
	double ns = (double)(d->every * MS);

	for (uint32_t k = 1; k <= i; k++)
		ns += d->longest && k == d->beats / 2
			      ? (double)(d->longest * MS)
			      : (double)(d->every * MS) * (k % 2 ? 1 + d->jitter : 1 - d->jitter);
	return (uint64_t)ns / MS * MS;
}

static uint32_t kind_of(const struct drawing *d, uint32_t task)
{
	return d->tasks_end == 2 && !task ? KIND_B : KIND_A;
}

static void wake_all(struct trace *m, uint64_t at)
{
	for (uint32_t i = 0; i < TASKS; i++)
		PUT(m, at + 2 * US, WAKE, 0, 1 + i);
}

/* What the loop does when they are woken. */
static void beat(const struct drawing *d, struct trace *m, uint64_t at, int is_last)
{
	PUT(m, at, UNPARK, d->by_timer ? 0 : 1);
	if (d->by_task) {
		PUT(m, at, WAKE, 0, TICKER);
		PUT(m, at + US, POLL_BEGIN, KIND_B, TICKER);
	}
	if (d->by_loop || d->by_timer || d->by_task)
		wake_all(m, at);
	if (d->by_task)
		PUT(m, at + 3 * US, POLL_END, TACHO_PENDING);
	for (uint32_t i = 0; i < TASKS; i++) {
		int ends = is_last && (d->tasks_end == 1 || (d->tasks_end == 2 && i));

		poll(m, at + (10 + 20 * i) * US, kind_of(d, i), 1 + i,
		     ends ? TACHO_DONE : TACHO_PENDING);
	}
	PUT(m, at + 200 * US, PARK, LOOP_3);
}

static void begin_loop(const struct drawing *d, struct trace *m)
{
	PUT(m, 0, PARK, LOOP_3);
	PUT(m, US, UNPARK, 0);
	for (uint32_t i = 0; !d->is_handle && i < TASKS; i++)
		PUT(m, 2 * US, SPAWN, kind_of(d, i), PLACE, 1 + i, 0);
	if (d->by_task)
		PUT(m, 2 * US, SPAWN, KIND_B, PLACE, TICKER, 0);
	PUT(m, 10 * US, PARK, LOOP_3);
}

/* What it does beside that, each 10 ms. */
static void turn_at(const struct drawing *d, struct trace *m, uint64_t ms, int has_stopped)
{
	uint64_t at = ms * MS + 500 * US;

	PUT(m, at, UNPARK, ms < d->peer_end);
	if (ms < d->peer_end)
		PUT(m, at, READY, 1, PEER);
	if (has_stopped && d->by_task == 1)
		poll(m, at + 10 * US, KIND_B, TICKER, TACHO_PENDING);
	PUT(m, at + 100 * US, PARK, LOOP_3);
}

static void put_loop(const struct drawing *d, struct trace *m, uint64_t end)
{
	uint64_t turns = d->turns_end ? d->turns_end : end, step = 0;
	uint32_t next = 0;

	begin_loop(d, m);
	for (uint64_t ms = 1; ms < end; ms++) {
		if (next < d->beats && ms * MS >= time_of(d, next)) {
			again(m, step++);
			beat(d, m, time_of(d, next), next + 1 == d->beats);
			if (++next == d->beats && d->hole)
				trace_hole(m, 1, 0, 100);
		} else if (ms % 10 == 7 && ms <= turns) {
			again(m, step++);
			turn_at(d, m, ms, next == d->beats);
		}
	}
}

static void put_waker(const struct drawing *d, struct trace *m, uint64_t end)
{
	trace_stream(m, 2, 0);
	for (uint32_t i = 0; i < d->beats; i++) {
		again(m, i);
		wake_all(m, time_of(d, i));
	}
	if (!d->waker_waits)
		return;
	PUT(m, time_of(d, d->beats - 1) + 300 * US, LOCK_WAIT, PLACE, CONDITION);
	PUT(m, (end - 10) * MS, LOCK_WAITED, 3, CONDITION);
}

static void put_end(struct trace *m, uint64_t end)
{
	trace_stream(m, 3, 0);
	PUT(m, end * MS, COUNTER, COUNTER, 1);
}

static void drawn(struct explained *x, const struct drawing *d)
{
	uint64_t ms = d->end ? d->end : 3000;

	draw(x);
	put_loop(d, &x->m, ms);
	if (!d->by_loop && !d->by_timer && !d->by_task)
		put_waker(d, &x->m, ms);
	put_end(&x->m, ms);
	explain(x);
}

/* The severity of what is found; 0: nothing is. */
static int severity(struct drawing d)
{
	const struct tacho__finding *f;
	struct explained x;
	int is;

	drawn(&x, &d);
	f = found(x.e, rule, 0);
	is = f ? (int)f->severity : 0;
	end(&x);
	return is;
}

#define FOUND(...) severity((struct drawing){__VA_ARGS__})

/* ------------------------------------------------------------------------- tasks */

static void tasks_that_are_woken_no_more_are_told_with_who_woke_them(void **state)
{
	struct drawing d = {.beats = 50, .every = 20};
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	drawn(&x, &d);
	f = found(x.e, rule, 0);
	assert_non_null(f);
	assert_int_equal(f->severity, TACHO__SEVERITY_WARNING);
	assert_true(says(f, "kind a was woken every 20.0 ms and has not been for 2.00 s"));
	assert_true(says(f, "4 tasks wait"));
	assert_true(shows(f, "last woken by thread 0"));
	assert_true(shows(f, "never silent for longer than 19.9 ms"));
	assert_true(f->evidence[0].from_ns - (T0 + time_of(&d, 49)) < MS);
	assert_int_equal(f->evidence[0].to_ns, T0 + 3000 * MS);
	assert_null(found(x.e, rule, 1));
	assert_string_equal(x.e->verdict.category, "stuck");
	end(&x);
}

static void a_task_that_wakes_them_no_more_is_named(void **state)
{
	struct drawing d = {.beats = 50, .every = 20, .by_task = 1};
	struct explained x;

	(void)state;
	drawn(&x, &d);
	assert_true(says(found(x.e, rule, 0), "kind b on thread 0"));
	end(&x);
}

static void what_came_a_few_times_has_no_rhythm(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 10, .every = 50), TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 9, .every = 50), 0);
}

static void what_came_for_a_moment_has_no_rhythm(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 52, .every = 5), TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 50, .every = 5), 0);
}

static void what_comes_by_chance_has_no_rhythm(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 51, .every = 50, .jitter = 0.68, .end = 5000),
			 TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 51, .every = 50, .jitter = 0.72, .end = 5000), 0);
}

/* Silent for 3 s in the end, and once before for a fifth of that. */
static void what_was_silent_before_may_be_so_again(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 20, .every = 300, .longest = 590, .end = 9290),
			 TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 20, .every = 300, .longest = 610, .end = 9310), 0);
}

static void a_short_silence_is_none(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .end = 2010), TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 50, .every = 20, .end = 1990), 0);
}

/* One task that is woken again and again for 400 ms, as at the start of a program. */
static int is_busy_before(uint64_t every_us)
{
	struct explained x;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	PUT(&x.m, US, UNPARK, 0);
	PUT(&x.m, 2 * US, SPAWN, KIND_A, PLACE, 1, 0);
	for (uint64_t us = 100; us < 400000; us += every_us) {
		again(&x.m, us / every_us);
		poll(&x.m, us * US, KIND_A, 1, TACHO_PENDING);
	}
	PUT(&x.m, 400 * MS, PARK, LOOP_3);
	for (uint64_t ms = 410; ms < 3000; ms += 10) {
		again(&x.m, ms / 10);
		PUT(&x.m, ms * MS, UNPARK, 0);
		PUT(&x.m, ms * MS + US, PARK, LOOP_3);
	}
	trace_stream(&x.m, 2, 0);
	for (uint64_t us = 100; us < 400000; us += every_us) {
		again(&x.m, us / every_us);
		PUT(&x.m, us * US - 10 * US, WAKE, 0, 1);
	}
	put_end(&x.m, 3000);
	return finds(&x, TACHO__RULE_RHYTHM_STOPPED);
}

static void what_was_busy_for_a_while_has_no_rhythm(void **state)
{
	(void)state;
	assert_true(is_busy_before(1100));
	assert_false(is_busy_before(900));
}

static void tasks_that_have_ended_are_not_missed(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .tasks_end = 1), 0);
}

/* One of another kind, which the same thread woke, waits on. */
static void who_is_left_when_the_others_end_is_not_missed(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .tasks_end = 2), 0);
}

static void what_peers_wake_tasks_for_may_never_come_again(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .by_loop = 1), 0);
}

/* The loop tells of what is ready, so what it wakes without that is a timer's. */
static void tasks_of_timers_are_missed(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .by_timer = 1, .peer_end = 2900),
			 TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 50, .every = 20, .by_timer = 1), 0);
}

static void what_is_woken_by_what_stopped_as_well_is_not_told(void **state)
{
	struct drawing d = {.beats = 50, .every = 20, .by_task = 2};
	struct explained x;

	(void)state;
	drawn(&x, &d);
	for (uint32_t i = 0; found(x.e, rule, i); i++)
		assert_false(says(found(x.e, rule, i), "kind a was woken"));
	end(&x);
}

static void a_client_that_goes_away_makes_all_quiet(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .peer_end = 2900),
			 TACHO__SEVERITY_WARNING);
	assert_int_equal(FOUND(.beats = 50, .every = 20, .peer_end = 1010), 0);
}

static void a_process_that_does_nothing_any_more_misses_nothing(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .turns_end = 1200), 0);
}

static void what_is_missing_may_have_been_it(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .hole = 1), 0);
}

/* It may have nothing to give to them. */
static void where_the_waker_waits_for_work_there_is_a_note(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .waker_waits = 1), TACHO__SEVERITY_INFO);
}

/* A handle of a library, which nobody spawned, may be kept for later. */
static void of_handles_there_is_a_note(void **state)
{
	(void)state;
	assert_int_equal(FOUND(.beats = 50, .every = 20, .is_handle = 1), TACHO__SEVERITY_INFO);
}

/* ------------------------------------------------------------------------ timers */

/* What else happens to the timer when it fires for the last time. */
enum { NOTHING, IS_CLOSED, IS_COUNTED };

/* A timer that fires 50 times, every 20 ms; then other things happen until 3 s. */
static int timer_stops(int what, uint64_t turns_end_ms)
{
	const struct tacho__finding *f;
	struct explained x;
	int is;

	draw(&x);
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t i = 1; i * 20 < 3000; i++) {
		if (i > 50 && i * 20 > turns_end_ms)
			break;
		again(&x.m, i);
		PUT(&x.m, i * 20 * MS, UNPARK, 0);
		if (i <= 50)
			poll(&x.m, i * 20 * MS, TIMER, 7,
			     i == 50 && what == IS_CLOSED ? TACHO_DONE : TACHO_PENDING);
		if (i == 50 && what == IS_COUNTED)
			PUT(&x.m, i * 20 * MS + 40 * US, POLL_HIST, TIMER, LOOP_3, 0, T0, 9000,
			    10ull << 48 | 3);
		PUT(&x.m, i * 20 * MS + 50 * US, PARK, LOOP_3);
	}
	put_end(&x.m, 3000);
	explain(&x);
	f = found(x.e, rule, 0);
	assert_true(!f || says(f, "the timer uv_timer fired every 20.0 ms and has not for 2.00 s"));
	is = f ? (int)f->severity : 0;
	end(&x);
	return is;
}

static void of_a_timer_that_stops_there_is_a_note(void **state)
{
	(void)state;
	assert_int_equal(timer_stops(NOTHING, 3000), TACHO__SEVERITY_INFO);
	assert_int_equal(timer_stops(IS_CLOSED, 3000), 0);
	assert_int_equal(timer_stops(NOTHING, 1100), 0);
}

/* It may go on, and be too short to be recorded. */
static void of_what_is_only_counted_nothing_is_said(void **state)
{
	(void)state;
	assert_int_equal(timer_stops(IS_COUNTED, 3000), 0);
}

/* ------------------------------------------------------------------- descriptors */

/* One is ready every 20 ms for 1 s, another one until `other_ms`; the first is closed at `closed_ms`. */
static int feed_stops(uint64_t other_ms, uint64_t closed_ms, int is_own, int hole)
{
	uint8_t payload[64];
	struct tb p = {0};
	const struct tacho__finding *f;
	struct explained x;
	int is;

	draw(&x);
	tb_definition(&p, REQUEST + 1, TACHO_DEF_DESCRIPTOR, payload,
		      bb_name(payload, "eventfd", "", 0, is_own ? PEER : 99, 0, ""));
	PUT(&x.m, 0, PARK, LOOP_3);
	for (uint64_t ms = 10; ms < 3000; ms += 10) {
		if (ms == 1010 && hole)
			trace_hole(&x.m, 1, 0, 10);
		again(&x.m, ms / 10);
		PUT(&x.m, ms * MS, UNPARK, 1);
		if ((ms % 20 == 0 && ms <= 1000) || ms == closed_ms)
			PUT(&x.m, ms * MS, READY, 1, PEER);
		if (ms < other_ms)
			PUT(&x.m, ms * MS, READY, 1, PEER + 1);
		PUT(&x.m, ms * MS + 50 * US, PARK, LOOP_3);
	}
	put_end(&x.m, 3000);
	trace_close(&x.m);
	tb_plain(&x.m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
	explain(&x);
	f = found(x.e, rule, 0);
	assert_true(!f ||
		    says(f, "descriptor 6 was ready every 20.0 ms and has not been for 2.00 s"));
	is = f ? (int)f->severity : 0;
	end(&x);
	return is;
}

static void of_a_feed_that_stops_there_is_a_note(void **state)
{
	(void)state;
	assert_int_equal(feed_stops(2900, 0, 0, 0), TACHO__SEVERITY_INFO);
	assert_int_equal(feed_stops(2900, 2950, 0, 0),
			 TACHO__SEVERITY_INFO); /* silent until it was closed */
	assert_int_equal(feed_stops(1050, 0, 0, 0), 0);
	assert_int_equal(feed_stops(0, 0, 0, 0), 0);
	assert_int_equal(feed_stops(2900, 0, 0, 1), 0); /* records are missing */
	assert_int_equal(feed_stops(2900, 0, 1, 0), 0); /* the program itself made it ready */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_that_are_woken_no_more_are_told_with_who_woke_them),
		cmocka_unit_test(a_task_that_wakes_them_no_more_is_named),
		cmocka_unit_test(what_came_a_few_times_has_no_rhythm),
		cmocka_unit_test(what_came_for_a_moment_has_no_rhythm),
		cmocka_unit_test(what_comes_by_chance_has_no_rhythm),
		cmocka_unit_test(what_was_silent_before_may_be_so_again),
		cmocka_unit_test(a_short_silence_is_none),
		cmocka_unit_test(what_was_busy_for_a_while_has_no_rhythm),
		cmocka_unit_test(tasks_that_have_ended_are_not_missed),
		cmocka_unit_test(who_is_left_when_the_others_end_is_not_missed),
		cmocka_unit_test(what_peers_wake_tasks_for_may_never_come_again),
		cmocka_unit_test(tasks_of_timers_are_missed),
		cmocka_unit_test(what_is_woken_by_what_stopped_as_well_is_not_told),
		cmocka_unit_test(a_client_that_goes_away_makes_all_quiet),
		cmocka_unit_test(a_process_that_does_nothing_any_more_misses_nothing),
		cmocka_unit_test(what_is_missing_may_have_been_it),
		cmocka_unit_test(where_the_waker_waits_for_work_there_is_a_note),
		cmocka_unit_test(of_handles_there_is_a_note),
		cmocka_unit_test(of_a_timer_that_stops_there_is_a_note),
		cmocka_unit_test(of_what_is_only_counted_nothing_is_said),
		cmocka_unit_test(of_a_feed_that_stops_there_is_a_note),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
