/* Ledgers: what the kernel took away, and whose it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ledger_help.h"

static void a_call_that_was_preempted_did_not_block(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 20 * MS, NAME, 6 * MS);
	PUT(&b.m, 20 * MS, SCHED, 0, 6 * MS, 0); /* of the call */
	put_call(&b.m, 30 * MS, NAME, 2 * MS);
	PUT(&b.m, 30 * MS, SCHED, 0, 0, 0);
	put_call(&b.m, 60 * MS, SLEEP, 20 * MS);
	PUT(&b.m, 60 * MS, SCHED, 0, 4 * MS, 0); /* it slept, and came back late */
	PUT(&b.m, 61 * MS, PARK, LOOP_1);
	PUT(&b.m, 61 * MS, SCHED, 0, 3 * MS, 0); /* the rest is of code alone */
	PUT(&b.m, 70 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, 6 + 4 + 3);
	ALL_MS(&b, 1, CALL, 2 + 16);
	ALL_MS(&b, 1, CODE, 51 - 28 - 3);
	for (uint32_t i = 0; i < b.l->line_count; i++) {
		const struct tacho__ledger_line *x = &b.l->lines[i];

		if (x->owns != TACHO__OWNS_CALL)
			continue;
		assert_int_equal(x->count, 1);
		/* The longest of one is all of it, without what the kernel took. */
		assert_int_equal(x->longest_ns, x->ns);
	}
	book_end(&b);
}

static void a_delay_that_a_turn_has_no_room_for_was_in_the_wait_before(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 12 * MS, PARK, LOOP_1);
	PUT(&b.m, 12 * MS, SCHED, 0, 7 * MS, 0);
	PUT(&b.m, 22 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, 2);
	ALL_MS(&b, 1, LATE, 5);
	COST_MS(&b, 1, LATE, 5);
	ALL_MS(&b, 1, IDLE, 20 - 5);
	book_end(&b);
}

/* A turn of a runtime that tells its polls, and has 9 ms beside them. */
static void a_turn_is_delayed_outside_of_its_polls(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	PUT(&b.m, 1 * MS, PARK, LOOP_3);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 11 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(&b.m, 12 * MS, POLL_END, 1);
	PUT(&b.m, 20 * MS, PARK, LOOP_3);
	PUT(&b.m, 20 * MS, SCHED, 0, 7 * MS, 0);
	PUT(&b.m, 30 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, 7);
	ALL_MS(&b, 1, CODE, 1 + 10 - 7);
	book_end(&b);
}

/* Three became ready in a turn of 20 ms, of which 15 were not the code's. */
static void what_becomes_ready_meanwhile_waits_for_both(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 30 * MS, PARK, SET_A);
	PUT(&b.m, 30 * MS, SCHED, 0, 15 * MS, 0);
	PUT(&b.m, 30 * MS, UNPARK, 3);
	PUT(&b.m, 30 * MS + 1, PARK, SET_A);
	book_make(&b);
	COST_MS(&b, 1, DESCHEDULED, 3 * 15 / 2.0);
	assert_in_range(had(&b, 1, TACHO__OWNS_CODE).waiting, 3 * 5 * MS / 2, 3 * 5 * MS / 2 + 2);
	book_end(&b);
}

/* A wait for a condition of 40 ms, signalled by thread `by` 10 ms before it ends; the thread is one of
   two that serve a set, and does many other turns. */
static void signalled(struct booked *b, uint32_t by)
{
	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, PARK, SET_A);
	PUT(&b->m, 1 * MS, UNPARK, 1);
	PUT(&b->m, 2 * MS, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b->m, 42 * MS, LOCK_WAITED, 3, 0x1000);
	PUT(&b->m, 43 * MS, PARK, SET_A);
	PUT(&b->m, 43 * MS, SCHED, 0, 10 * MS, 0);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&b->m, (50 + 2 * i) * MS, UNPARK, 1);
		PUT(&b->m, (51 + 2 * i) * MS, PARK, SET_A);
	}
	trace_stream(&b->m, 2, 0);
	PUT(&b->m, 0, PARK, SET_B);
	PUT(&b->m, 31 * MS, UNPARK, 1);
	if (by == 2)
		PUT(&b->m, 32 * MS, LOCK_RELEASE, PLACE, 0x1000, 1);
	PUT(&b->m, 33 * MS, PARK, SET_B);
	trace_stream(&b->m, 3, 0);
	PUT(&b->m, 0, PARK, LOOP_3);
	PUT(&b->m, 31 * MS, UNPARK, 1);
	if (by == 3)
		PUT(&b->m, 32 * MS, LOCK_RELEASE, PLACE, 0x1000, 1);
	PUT(&b->m, 33 * MS, PARK, LOOP_3);
	book_make(b);
}

static void who_is_handed_work_by_one_that_serves_the_same_queue_was_idle(void **state)
{
	struct booked b;

	(void)state;
	signalled(&b, 2);
	ALL_MS(&b, 1, LOCK, 0);
	/* From the signal on others ran. */
	ALL_MS(&b, 1, LATE, 10);
	ALL_MS(&b, 1, DESCHEDULED, 0);
	book_end(&b);
	/* One that serves something else did what this one waited for in the middle of its work. */
	signalled(&b, 3);
	ALL_MS(&b, 1, LOCK, 30);
	ALL_MS(&b, 1, DESCHEDULED, 10);
	book_end(&b);
}

static void who_waits_before_it_serves_anything_is_idle(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b.m, 50 * MS, LOCK_WAITED, 3, 0x1000);
	PUT(&b.m, 51 * MS, PARK, SET_A);
	PUT(&b.m, 60 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, LOCK, 0);
	ALL_MS(&b, 1, IDLE, 50 + 9);
	book_end(&b);
}

/* One of two comes back 30 ms late; the other asks what is ready 10 ms before that, or never. */
static uint64_t late_beside(int asks)
{
	struct booked b;
	uint64_t cost;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 100 * MS, UNPARK, 1);
	PUT(&b.m, 100 * MS, SCHED, 0, 30 * MS, 0);
	PUT(&b.m, 100 * MS + 1000, PARK, SET_A);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_A);
	if (asks) {
		PUT(&b.m, 89 * MS, UNPARK, 1);
		PUT(&b.m, 90 * MS, PARK, SET_A);
	}
	PUT(&b.m, 110 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, LATE, 30);
	cost = had(&b, 1, TACHO__OWNS_LATE).waiting;
	book_end(&b);
	return cost;
}

static void what_another_thread_would_have_got_did_not_wait(void **state)
{
	(void)state;
	assert_int_equal(late_beside(0), 30 * MS);
	assert_int_equal(late_beside(1), 10 * MS);
}

/* Turns of 8 things of 1.5 ms each, and three times as many of one that takes 50 us. */
static void what_one_thing_takes_is_counted_by_things(void **state)
{
	struct booked b;
	const struct tacho__owned *o;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&b.m, (50 * i + 10) * MS, UNPARK, 8);
		PUT(&b.m, (50 * i + 22) * MS, PARK, SET_A);
		for (uint64_t k = 30; k < 45; k += 5) {
			PUT(&b.m, (50 * i + k) * MS, UNPARK, 1);
			PUT(&b.m, (50 * i + k) * MS + 50000, PARK, SET_A);
		}
	}
	book_make(&b);
	o = tacho__ledger_owned(b.l, line_of(&b, TACHO__OWNS_CODE));
	assert_int_equal(o->size[2].count, 0);
	assert_int_equal(o->size[1].count, 40);
	book_end(&b);
}

/* One thread lacks a CPU for 20 ms, in which another of the process runs for 15; what that code has
   of the cost. Each may run on `cpus`; 0: that is not told. */
static uint64_t cost_of_code(uint64_t cpus, int ends_first)
{
	struct booked b;
	uint64_t cost;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	if (cpus)
		PUT(&b.m, 0, COUNTER, CPUS, cpus);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 50 * MS, UNPARK, 1);
	PUT(&b.m, 50 * MS, SCHED, 0, 20 * MS, 0);
	PUT(&b.m, 51 * MS, PARK, LOOP_1);
	PUT(&b.m, 150 * MS, UNPARK, 0);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, (ends_first ? 45 : 100) * MS, PARK, SET_A);
	PUT(&b.m, (ends_first ? 45 : 100) * MS, SCHED, 0, ends_first ? 0 : 18 * MS, 0);
	PUT(&b.m, 120 * MS, UNPARK, 0);
	book_make(&b);
	ALL_MS(&b, 1, LATE, 20);
	cost = had(&b, 2, TACHO__OWNS_CODE).waiting;
	assert_int_equal(cost + had(&b, 1, TACHO__OWNS_LATE).waiting, 20 * MS);
	book_end(&b);
	return cost;
}

static void code_of_the_process_that_has_the_cpus_keeps_its_threads_waiting(void **state)
{
	(void)state;
	assert_int_equal(cost_of_code(0, 1), 0);
	assert_int_equal(cost_of_code(1, 1), 15 * MS);
	assert_int_equal(cost_of_code(2, 1), 15 * MS / 2);
	/* It ran for 72 of its 90 ms, and so for 16 of the 20. */
	assert_int_equal(cost_of_code(1, 0), 16 * MS);
}

/* The same with three that were ready: what two of them waited is an estimate, and most of it is the code's. */
static void an_estimate_goes_with_what_waited(void **state)
{
	struct booked b;
	struct had late;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, COUNTER, CPUS, 1);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 50 * MS, UNPARK, 3);
	PUT(&b.m, 50 * MS, SCHED, 0, 20 * MS, 0);
	PUT(&b.m, 51 * MS, PARK, LOOP_1);
	PUT(&b.m, 150 * MS, UNPARK, 0);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 45 * MS, PARK, SET_A);
	PUT(&b.m, 45 * MS, SCHED, 0, 0, 0);
	PUT(&b.m, 46 * MS, UNPARK, 1);
	PUT(&b.m, 46 * MS + 1000, PARK, SET_A);
	PUT(&b.m, 120 * MS, UNPARK, 0);
	book_make(&b);
	late = had(&b, 1, TACHO__OWNS_LATE);
	assert_int_equal(late.waiting, 10 * MS); /* a quarter of 40 */
	assert_true(late.estimated <= late.waiting);
	book_end(&b);
}

/* A turn in which a quota stopped it twice: nothing was seen of it, and the kernel says why. */
static void silence_is_no_stop_if_it_was_ready_to_run(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 15 * MS, SAMPLE_FRAMES, 0, 0, 5 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 115 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 205 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 210 * MS, PARK, LOOP_1);
	PUT(&b.m, 210 * MS, SCHED, 0, 175 * MS, 0);
	PUT(&b.m, 220 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 0);
	ALL_MS(&b, 1, DESCHEDULED, 175);
	ALL_MS(&b, 1, LATE, 0);
	ALL_MS(&b, 1, CODE, 200 - 175);
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&b.l->owned, o));)
		if (o->owns == TACHO__OWNS_STOPPED)
			assert_int_equal(o->count, 0);
	book_end(&b);
}

/* A computation on a busy CPU: each of its samples is far from the next, and the kernel ran others in between.
   `told`: of how much of that. What it does not tell was a stop. */
static void computes_beside_others(uint64_t told, uint64_t stopped)
{
	struct booked b;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	for (uint64_t i = 1; i <= 10; i++)
		PUT(&b.m, (10 + 80 * i) * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 810 * MS, PARK, LOOP_1);
	PUT(&b.m, 810 * MS, SCHED, 0, told * MS, 0);
	PUT(&b.m, 820 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, told);
	ALL_MS(&b, 1, STOPPED, stopped);
	ALL_MS(&b, 1, CODE, 800 - told - stopped);
	book_end(&b);
}

static void time_on_the_run_queue_is_no_stop(void **state)
{
	(void)state;
	computes_beside_others(700, 0);
	computes_beside_others(660, 0);
	/* Too little is left of the last for one to be told. */
	computes_beside_others(500, 2 * 80);
}

/* Others had its CPU twice, in a turn that ran for long before: samples say when it ran. */
static void what_was_seen_to_run_did_not_wait_for_a_cpu(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	for (uint64_t at = 20; at <= 110; at += 10)
		PUT(&b.m, at * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 180 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 240 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 240 * MS, PARK, LOOP_1);
	PUT(&b.m, 240 * MS, SCHED, 0, 110 * MS, 0);
	PUT(&b.m, 250 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 0);
	ALL_MS(&b, 1, DESCHEDULED, 110);
	ALL_MS(&b, 1, CODE, 230 - 110);
	book_end(&b);
}

/* What it did before its first wait is not seen: it may have slept, or waited for its peers. */
static void a_thread_that_has_no_loop_yet_was_not_stopped(void **state)
{
	struct booked b;

	(void)state;
	for (int has_loop = 0; has_loop < 2; has_loop++) {
		book_begin(&b);
		trace_stream(&b.m, 1, 0);
		if (has_loop)
			PUT(&b.m, 0, LOOP, LOOP_1);
		else
			PUT(&b.m, 0, SPAWN, KIND_A, 0, 7, 0);
		PUT(&b.m, 100 * MS, PARK, LOOP_1);
		PUT(&b.m, 110 * MS, UNPARK, 1);
		PUT(&b.m, 115 * MS, SAMPLE_FRAMES, 0, 0, 5 * MS, SERVER_CODE + 0x10);
		PUT(&b.m, 120 * MS, PARK, LOOP_1);
		book_make(&b);
		ALL_MS(&b, 1, STOPPED, has_loop ? 100 : 0);
		book_end(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_has_no_loop_yet_was_not_stopped),
		cmocka_unit_test(code_of_the_process_that_has_the_cpus_keeps_its_threads_waiting),
		cmocka_unit_test(an_estimate_goes_with_what_waited),
		cmocka_unit_test(silence_is_no_stop_if_it_was_ready_to_run),
		cmocka_unit_test(time_on_the_run_queue_is_no_stop),
		cmocka_unit_test(what_was_seen_to_run_did_not_wait_for_a_cpu),
		cmocka_unit_test(a_call_that_was_preempted_did_not_block),
		cmocka_unit_test(a_delay_that_a_turn_has_no_room_for_was_in_the_wait_before),
		cmocka_unit_test(a_turn_is_delayed_outside_of_its_polls),
		cmocka_unit_test(what_becomes_ready_meanwhile_waits_for_both),
		cmocka_unit_test(who_is_handed_work_by_one_that_serves_the_same_queue_was_idle),
		cmocka_unit_test(who_waits_before_it_serves_anything_is_idle),
		cmocka_unit_test(what_another_thread_would_have_got_did_not_wait),
		cmocka_unit_test(what_one_thing_takes_is_counted_by_things),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
