/* The ledger: a process that is stopped, as who watches it from outside says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ledger_help.h"

#define KERNEL 15

static void put_stop(struct booked *b, uint64_t from, uint64_t seen, uint64_t until, uint32_t how)
{
	PUT(&b->m, from, STOPPED, how, T0 + until, T0 + seen);
}

/* In size of all stops that something waited in. */
static struct tacho__size costly(const struct booked *b)
{
	struct tacho__size sum = {.count = 0};

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&b->l->owned, o));)
		for (uint32_t i = 0; o->owns == TACHO__OWNS_STOPPED && i < TACHO__SIZES; i++) {
			sum.count += o->size[i].count;
			sum.ns += o->size[i].ns;
			sum.waiting_ns += o->size[i].waiting_ns;
		}
	return sum;
}

static void what_is_ready_right_after_a_stop_waited_in_it(void **state)
{
	struct booked b;
	char key[64];

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	/* epoll_wait fails with EINTR then, and is called again. */
	PUT(&b.m, 60 * MS, UNPARK, 0);
	PUT(&b.m, 60 * MS, PARK, LOOP_1);
	PUT(&b.m, 60 * MS, UNPARK, 3);
	PUT(&b.m, 61 * MS, PARK, LOOP_1);
	PUT(&b.m, 100 * MS, UNPARK, 1);
	trace_stream(&b.m, 1, KERNEL);
	/* A window was written in the middle of it. */
	put_stop(&b, 10 * MS, 10 * MS, 30 * MS, 0);
	put_stop(&b, 30 * MS, 30 * MS, 61 * MS, 0);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 49);
	ALL_MS(&b, 1, STOPPED, 50);
	COST_MS(&b, 1, STOPPED, 75);
	assert_int_equal(had(&b, 1, TACHO__OWNS_STOPPED).estimated, 75 * MS);
	assert_int_equal(costly(&b).count, 1);
	assert_int_equal(costly(&b).ns, 50 * MS);
	tacho__ledger_key(b.l, line_of(&b, TACHO__OWNS_STOPPED), key, sizeof(key));
	assert_string_equal(key, "by a signal");
	book_end(&b);
}

/* EINTR, and the thread hands the wait on to another, which gets one thing at a time. */
static void who_serves_the_queue_then_does_not_matter(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 60 * MS, UNPARK, 0);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_B);
	PUT(&b.m, 1 * MS, UNPARK, 1);
	PUT(&b.m, 2 * MS, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b.m, 60 * MS, LOCK_WAITED, 3, 0x1000);
	for (uint64_t i = 0; i < 3; i++) {
		PUT(&b.m, 60 * MS + 100000 * i, PARK, SET_B);
		PUT(&b.m, 60 * MS + 100000 * i + 1000, UNPARK, 1);
	}
	PUT(&b.m, 61 * MS, PARK, SET_B);
	PUT(&b.m, 62 * MS, UNPARK, 1); /* came then */
	PUT(&b.m, 63 * MS, PARK, SET_B);
	trace_stream(&b.m, 1, KERNEL);
	put_stop(&b, 10 * MS, 50 * MS, 60 * MS, 0);
	book_make(&b);
	COST_MS(&b, 2, STOPPED, 75);
	assert_int_equal(costly(&b).count, 1);
	book_end(&b);
}

/* After EINTR; what comes out of a wait that waits came then. */
static void what_the_next_wait_returns_at_once_waited_in_the_stop(void **state)
{
	(void)state;
	for (uint64_t waits = 0; waits < 2; waits++) {
		struct booked b;

		book_begin(&b);
		trace_stream(&b.m, 1, 0);
		PUT(&b.m, 0, PARK, LOOP_1);
		PUT(&b.m, 90 * MS, UNPARK, 0);
		PUT(&b.m, 91 * MS, PARK, LOOP_1);
		PUT(&b.m, (91 + 2 * waits) * MS, UNPARK, 1);
		PUT(&b.m, 95 * MS, PARK, LOOP_1);
		trace_stream(&b.m, 1, KERNEL);
		put_stop(&b, 10 * MS, 50 * MS, 60 * MS, 0);
		book_make(&b);
		COST_MS(&b, 1, STOPPED, waits ? 0 : 25);
		book_end(&b);
	}
}

static void a_stop_in_which_nothing_waits_costs_nothing(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 60 * MS, UNPARK, 0);
	PUT(&b.m, 60 * MS, PARK, LOOP_1);
	PUT(&b.m, 90 * MS, UNPARK, 3);
	trace_stream(&b.m, 1, KERNEL);
	put_stop(&b, 10 * MS, 50 * MS, 60 * MS, 2);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 50);
	assert_int_equal(b.l->waiting_ns, 0);
	assert_int_equal(costly(&b).count, 0);
	assert_int_equal(b.l->stops[0].count, 1);
	assert_int_equal(b.l->stops[0].longest_ns, 50 * MS);
	assert_int_equal(b.l->stops[0].reason, TACHO__STOPPED_FROZEN);
	book_end(&b);
}

/* What a process records it does not record while it is stopped. */
static void records_tell_when_it_began_and_ended(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 14 * MS, UNPARK, 1);
	PUT(&b.m, 15 * MS, PARK, LOOP_1);
	PUT(&b.m, 75 * MS, UNPARK, 2);
	PUT(&b.m, 76 * MS, PARK, LOOP_1);
	trace_stream(&b.m, 1, KERNEL);
	put_stop(&b, 10 * MS, 60 * MS, 80 * MS, 0);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 60);
	ALL_MS(&b, 1, CODE, 2);
	COST_MS(&b, 1, STOPPED, 60);
	book_end(&b);
}

static void a_stop_is_cut_out_of_all_that_threads_do(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 95 * MS, SLEEP, 80 * MS);
	PUT(&b.m, 100 * MS, PARK, LOOP_1);
	/* At once: all of the turn, half for each. */
	PUT(&b.m, 100 * MS, UNPARK, 2);
	PUT(&b.m, 101 * MS, PARK, LOOP_1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, LOOP_3);
	PUT(&b.m, 90 * MS, UNPARK, 4);
	PUT(&b.m, 91 * MS, PARK, LOOP_3);
	trace_stream(&b.m, 2, KERNEL);
	put_stop(&b, 30 * MS, 80 * MS, 90 * MS, 1);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 60);
	ALL_MS(&b, 1, CALL, 20);
	ALL_MS(&b, 1, CODE, 11);
	COST_MS(&b, 1, STOPPED, 60);
	ALL_MS(&b, 2, STOPPED, 60);
	COST_MS(&b, 2, STOPPED, 120);
	/* One stop, whatever number of threads it kept. */
	assert_int_equal(costly(&b).count, 1);
	assert_int_equal(costly(&b).ns, 60 * MS);
	assert_int_equal(costly(&b).waiting_ns, 180 * MS);
	book_end(&b);
}

static void a_time_out_that_a_stop_made_late_waited_in_it(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 60 * MS, UNPARK, 0);
	PUT(&b.m, 60 * MS, LATE, 0, 40 * MS);
	PUT(&b.m, 61 * MS, PARK, LOOP_1);
	trace_stream(&b.m, 1, KERNEL);
	put_stop(&b, 10 * MS, 50 * MS, 60 * MS, 0);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 50);
	ALL_MS(&b, 1, LATE, 0);
	COST_MS(&b, 1, STOPPED, 40);
	assert_int_equal(costly(&b).count, 1);
	book_end(&b);
}

static void one_that_ends_while_it_is_stopped_was_stopped_to_its_end(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 1 * MS, PARK, LOOP_3);
	trace_stream(&b.m, 1, KERNEL);
	/* Seen by somebody who came late; the last event is not the process's own. */
	put_stop(&b, 10 * MS, 200 * MS, 200 * MS, 0);
	PUT(&b.m, 100 * MS, SWITCH_OUT, 0);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 10);
	ALL_MS(&b, 1, STOPPED, 90);
	ALL_MS(&b, 2, STOPPED, 90);
	book_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_ready_right_after_a_stop_waited_in_it),
		cmocka_unit_test(what_the_next_wait_returns_at_once_waited_in_the_stop),
		cmocka_unit_test(who_serves_the_queue_then_does_not_matter),
		cmocka_unit_test(a_stop_in_which_nothing_waits_costs_nothing),
		cmocka_unit_test(records_tell_when_it_began_and_ended),
		cmocka_unit_test(a_stop_is_cut_out_of_all_that_threads_do),
		cmocka_unit_test(a_time_out_that_a_stop_made_late_waited_in_it),
		cmocka_unit_test(one_that_ends_while_it_is_stopped_was_stopped_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
