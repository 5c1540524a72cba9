/* The ledger: what waited, in which queue, and who pays for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ledger_help.h"

/* Task 1 runs on the loop of the thread once, so that it is known whose it is. */
static void run_task(struct trace *m, uint64_t at, uint64_t task)
{
	PUT(m, at, POLL_BEGIN, KIND_A, task);
	PUT(m, at + MS, POLL_END, 1);
}

static void a_task_waits_from_its_wake_to_its_poll(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_3);
	PUT(&b.m, 10 * MS, UNPARK, 0);
	run_task(&b.m, 10 * MS, 1);
	run_task(&b.m, 11 * MS, 2);
	PUT(&b.m, 12 * MS, POLL_BEGIN, KIND_B, 3);
	put_call(&b.m, 52 * MS, SLEEP, 38 * MS); /* from 14 */
	PUT(&b.m, 53 * MS, POLL_END, 1);
	run_task(&b.m, 53 * MS, 1);
	run_task(&b.m, 54 * MS, 2);
	PUT(&b.m, 60 * MS, PARK, LOOP_3);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 24 * MS, WAKE, 0, 1);
	PUT(&b.m, 34 * MS, WAKE, 0, 2);
	PUT(&b.m, 34 * MS, WAKE, 0, 2); /* woken already */
	PUT(&b.m, 35 * MS, WAKE, 0, 9); /* nobody knows it */
	book_make(&b);
	/* 29 ms and 20 ms; of these the call has what came before 52, the poll's code 1 ms each, and
	   task 1, while it runs, 1 ms of task 2. */
	assert_int_equal(b.l->waiting_ns, (29 + 20) * MS);
	COST_MS(&b, 1, CALL, 28 + 18);
	COST_MS(&b, 1, CODE, 3);
	assert_int_equal(had(&b, 1, TACHO__OWNS_CALL).estimated, 0);
	assert_int_equal(b.l->owners[0].owns, TACHO__OWNS_CALL);
	assert_int_equal(b.l->owners[0].lost_ns, 38 * MS);
	assert_int_equal(b.l->owners[0].size[2].waiting_ns, (28 + 18) * MS);
	book_end(&b);
}

/* Two threads that run one loop; the second is parked until `until`, and busy from then on. */
static void two_workers(struct booked *b, uint64_t until)
{
	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, PARK, LOOP_3);
	PUT(&b->m, 10 * MS, UNPARK, 0);
	run_task(&b->m, 10 * MS, 1);
	PUT(&b->m, 12 * MS, POLL_BEGIN, KIND_B, 3);
	put_call(&b->m, 92 * MS, SLEEP, 80 * MS);
	PUT(&b->m, 92 * MS, POLL_END, 1);
	run_task(&b->m, 92 * MS, 1);
	PUT(&b->m, 100 * MS, PARK, LOOP_3);
	trace_stream(&b->m, 2, 0);
	PUT(&b->m, 0, PARK, LOOP_3);
	PUT(&b->m, until, UNPARK, 0);
	PUT(&b->m, until, POLL_BEGIN, KIND_A, 4);
	PUT(&b->m, 99 * MS, POLL_END, 1);
	PUT(&b->m, 100 * MS, PARK, LOOP_3);
	/* Somebody is always seen: the process was not stopped. */
	trace_stream(&b->m, 3, 0);
	PUT(&b->m, 32 * MS, WAKE, 0, 1);
	PUT(&b->m, 60 * MS, WAKE, 0, 99);
}

static void threads_that_serve_one_queue_pay_in_equal_parts(void **state)
{
	struct booked b;

	(void)state;
	two_workers(&b, 5 * MS);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 60 * MS);
	COST_MS(&b, 1, CALL, 30);
	COST_MS(&b, 2, CODE, 30);
	book_end(&b);
}

static void while_one_of_them_is_parked_nobody_pays_but_who_comes_late(void **state)
{
	struct booked b;

	(void)state;
	two_workers(&b, 42 * MS);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 60 * MS);
	ALL_MS(&b, 2, LATE, 10);
	COST_MS(&b, 2, LATE, 10);
	COST_MS(&b, 1, CALL, 25);
	COST_MS(&b, 2, CODE, 25);
	book_end(&b);
}

/* Tasks go from loop 3 to loop 2 and, if `back`, from there to loop 3. */
static void migrate(struct booked *b, int back)
{
	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, LOOP, LOOP_3);
	run_task(&b->m, 0, 1);
	run_task(&b->m, 2 * MS, 5);
	if (back)
		run_task(&b->m, 20 * MS, 2);
	PUT(&b->m, 22 * MS, POLL_BEGIN, KIND_A, 3);
	PUT(&b->m, 60 * MS, POLL_END, 1);
	run_task(&b->m, 60 * MS, 5);
	trace_stream(&b->m, 2, 0);
	PUT(&b->m, 5 * MS, LOOP, LOOP_2);
	run_task(&b->m, 10 * MS, 1);
	run_task(&b->m, 11 * MS, 2);
	PUT(&b->m, 23 * MS, POLL_BEGIN, KIND_B, 4);
	PUT(&b->m, 61 * MS, POLL_END, 1);
	trace_stream(&b->m, 3, 0);
	PUT(&b->m, 40 * MS, WAKE, 0, 5);
}

static void loops_whose_tasks_go_to_and_fro_are_one_queue(void **state)
{
	struct booked b;

	(void)state;
	migrate(&b, 0);
	book_make(&b);
	COST_MS(&b, 1, CODE, 20);
	COST_MS(&b, 2, CODE, 0);
	book_end(&b);
	migrate(&b, 1);
	book_make(&b);
	COST_MS(&b, 1, CODE, 10);
	COST_MS(&b, 2, CODE, 10);
	book_end(&b);
}

static void callbacks_wait_for_those_before_them(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	PUT(&b.m, 10 * MS, UNPARK, 4); /* one has no callback */
	PUT(&b.m, 10 * MS, POLL_BEGIN, KIND_A, 0);
	put_call(&b.m, 30 * MS, NAME, 20 * MS);
	PUT(&b.m, 30 * MS, POLL_SWITCH, KIND_B, 0);
	PUT(&b.m, 35 * MS, POLL_SWITCH, KIND_B, 0);
	PUT(&b.m, 36 * MS, POLL_END, 0);
	PUT(&b.m, 36 * MS, PARK, LOOP_2);
	book_make(&b);
	COST_MS(&b, 1, CALL, 2 * 20);
	COST_MS(&b, 1, CODE, 5);
	assert_int_equal(had(&b, 1, TACHO__OWNS_CALL).estimated, 0);
	book_end(&b);
}

static void what_is_ready_at_once_became_ready_in_the_turn_before(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 50 * MS, SLEEP, 40 * MS);
	PUT(&b.m, 50 * MS, PARK, SET_A);
	PUT(&b.m, 50 * MS + 2000, UNPARK, 3);
	PUT(&b.m, 51 * MS + 2000, PARK, SET_A);
	PUT(&b.m, 60 * MS, UNPARK, 1);
	book_make(&b);
	COST_MS(&b, 1, CALL, 3 * 40 / 2);
	assert_int_equal(had(&b, 1, TACHO__OWNS_CALL).estimated, 60 * MS);
	/* Three that are served in 1 ms, in an order that is not seen. */
	COST_MS(&b, 1, CODE, 1);
	book_end(&b);
}

/* A turn of one function, then one of another, after which three are ready at once. */
static void what_became_ready_in_a_turn_waited_for_the_code_of_that_turn(void **state)
{
	struct booked b;
	const struct tacho__ledger_line *costly;
	uint64_t estimated = 0;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	for (uint64_t at = 12; at < 40; at += 2)
		PUT(&b.m, at * MS, SAMPLE_FRAMES, 0, 0, 2 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 40 * MS, PARK, SET_A);
	PUT(&b.m, 50 * MS, UNPARK, 1);
	for (uint64_t at = 52; at < 60; at += 2)
		PUT(&b.m, at * MS, SAMPLE_FRAMES, 0, 0, 2 * MS, SERVER_CODE + 0x20);
	PUT(&b.m, 60 * MS, PARK, SET_A);
	PUT(&b.m, 60 * MS + 2000, UNPARK, 3);
	PUT(&b.m, 60 * MS + 3000, PARK, SET_A);
	PUT(&b.m, 70 * MS, UNPARK, 1);
	book_make(&b);
	costly = line_of(&b, TACHO__OWNS_CODE);
	assert_true(costly->ns < 15 * MS);
	for (uint32_t i = 0; i < b.l->line_count; i++)
		estimated += &b.l->lines[i] == costly ? 0 : b.l->lines[i].estimated_ns;
	assert_int_equal(estimated, 0);
	book_end(&b);
}

static void a_thread_that_is_parked_at_the_same_set_would_have_served_it(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 50 * MS, SLEEP, 40 * MS);
	PUT(&b.m, 50 * MS, PARK, SET_A);
	PUT(&b.m, 50 * MS + 2000, UNPARK, 2);
	/* Another name for the same set: parked for 30 ms of these 40. */
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_B);
	PUT(&b.m, 40 * MS, UNPARK, 1);
	PUT(&b.m, 50 * MS + 2000, PARK, SET_B);
	book_make(&b);
	COST_MS(&b, 1, CALL, 2 * 10 / 2);
	book_end(&b);
}

static void who_waits_for_the_one_that_waits_is_idle(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	/* The first one is the leader; the second one waits until it is told to be. */
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	for (uint64_t i = 1; i < 5; i++) {
		PUT(&b.m, (100 * i) * MS, UNPARK, 1);
		PUT(&b.m, (100 * i + 1) * MS, PARK, SET_A);
	}
	PUT(&b.m, 500 * MS, UNPARK, 1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_B);
	PUT(&b.m, 1 * MS, UNPARK, 1);
	for (uint64_t i = 0; i < 4; i++) {
		PUT(&b.m, (100 * i + 3) * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(&b.m, (100 * i + 99) * MS, LOCK_WAITED, 3, 0x1000);
	}
	PUT(&b.m, 400 * MS, PARK, SET_B);
	book_make(&b);
	ALL_MS(&b, 2, LOCK, 0);
	ALL_MS(&b, 2, CODE, 399 - 4 * 96);
	ALL_MS(&b, 1, CODE, 4);
	assert_int_equal(b.l->waiting_ns, 0);
	book_end(&b);
}

/* A thread of a pool that waits `waits` times for work, and three times in a loop of its own. `how`: 3 it is
   signalled, 2 it gives up. */
static void worker(uint64_t waits, uint64_t how, uint64_t lock_ms)
{
	struct booked b;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 2; i++) {
		PUT(&b.m, 10 * i * MS, PARK, SET_A);
		PUT(&b.m, (10 * i + 5) * MS, UNPARK, 1);
	}
	for (uint64_t i = 0; i < waits; i++) {
		PUT(&b.m, (100 * i + 20) * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(&b.m, (100 * i + 80) * MS, LOCK_WAITED, how, 0x1000);
	}
	PUT(&b.m, (100 * waits + 20) * MS, PARK, SET_A);
	PUT(&b.m, (100 * waits + 30) * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, LOCK, lock_ms);
	book_end(&b);
}

static void who_asked_once_what_was_ready_is_no_loop(void **state)
{
	(void)state;
	worker(12, 3, 0);
	worker(11, 3, 11 * 60);
	worker(12, 2, 12 * 60);
}

static void a_condition_that_is_seldom_waited_for_is_work(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 500 * MS, UNPARK, 1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_B);
	for (uint64_t i = 0; i < 9; i++) {
		uint64_t at = (50 * i + 1) * MS;

		PUT(&b.m, at, UNPARK, 1);
		PUT(&b.m, at + 1 * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(&b.m, at + 21 * MS, LOCK_WAITED, 3, 0x1000);
		/* One in three requests asks another thread for something. */
		if (i % 3 == 0) {
			PUT(&b.m, at + 22 * MS, LOCK_WAIT, KIND_A, 0x2000);
			PUT(&b.m, at + 32 * MS, LOCK_WAITED, 3, 0x2000);
		}
		PUT(&b.m, at + 40 * MS, PARK, SET_B);
	}
	book_make(&b);
	ALL_MS(&b, 2, LOCK, 3 * 10);
	book_end(&b);
}

/* As a worker of Tokio that asks a thread of another kind for something more often than it rests. */
static void a_condition_is_work_where_it_is_known_that_peers_signal_another(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 9; i++) {
		PUT(&b.m, 50 * i * MS, PARK, SET_A);
		PUT(&b.m, (50 * i + 20) * MS, UNPARK, 1);
		if (i % 3 == 0)
			PUT(&b.m, (50 * i + 21) * MS, LOCK_RELEASE, PLACE, 0x1000, 1);
	}
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_B);
	for (uint64_t i = 0; i < 9; i++) {
		uint64_t at = (50 * i + 1) * MS;

		PUT(&b.m, at, UNPARK, 1);
		if (i % 3 == 0) {
			PUT(&b.m, at + 1 * MS, LOCK_WAIT, PLACE, 0x1000);
			PUT(&b.m, at + 21 * MS, LOCK_WAITED, 3, 0x1000);
		}
		PUT(&b.m, at + 22 * MS, LOCK_WAIT, KIND_A, 0x2000);
		PUT(&b.m, at + 32 * MS, LOCK_WAITED, 3, 0x2000);
		PUT(&b.m, at + 40 * MS, PARK, SET_B);
	}
	book_make(&b);
	ALL_MS(&b, 2, LOCK, 9 * 10);
	book_end(&b);
}

/* As a worker of Tokio, which another tells now and then that it is to wait in the set. */
static void who_is_handed_something_by_another_that_serves_had_nothing_to_do(void **state)
{
	struct booked b;

	(void)state;
	for (uint32_t peer = 0; peer < 2; peer++) {
		book_begin(&b);
		trace_stream(&b.m, 1, 0);
		PUT(&b.m, 0, PARK, SET_A);
		PUT(&b.m, 10 * MS, UNPARK, 1);
		PUT(&b.m, 99 * MS, PARK, SET_A);
		PUT(&b.m, 110 * MS, UNPARK, 1);
		if (peer)
			PUT(&b.m, 120 * MS - 1, LOCK_RELEASE, PLACE, 0x1000, 1);
		PUT(&b.m, 200 * MS, PARK, SET_A);
		trace_stream(&b.m, 2, 0);
		PUT(&b.m, 0, PARK, SET_B);
		for (uint64_t i = 0; i < 18; i++) {
			PUT(&b.m, i * MS + 1000, UNPARK, 1);
			PUT(&b.m, i * MS + 2000, PARK, SET_B);
		}
		PUT(&b.m, 20 * MS, UNPARK, 3);
		PUT(&b.m, 20 * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(&b.m, 120 * MS, LOCK_WAITED, 3, 0x1000);
		PUT(&b.m, 121 * MS, PARK, SET_B);
		PUT(&b.m, 200 * MS, UNPARK, 1);
		if (!peer) {
			trace_stream(&b.m, 3, 0);
			PUT(&b.m, 120 * MS - 1, LOCK_RELEASE, PLACE, 0x1000, 1);
		}
		book_make(&b);
		/* What is in the middle of work keeps two of three. */
		ALL_MS(&b, 2, LOCK, peer ? 0 : 100);
		COST_MS(&b, 2, LOCK, peer ? 0 : 100);
		book_end(&b);
	}
}

/* A futex from 20 to 180 that nobody hooks; a sample at its end says how long the thread ran. */
static uint64_t code_beside_a_futex(uint64_t ran_ms)
{
	struct booked b;
	uint64_t ns;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 20; i++) {
		PUT(&b.m, (10 * i) * MS, PARK, SET_A);
		PUT(&b.m, (10 * i + 9) * MS, UNPARK, 1);
	}
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, SET_A);
	PUT(&b.m, 20 * MS, UNPARK, 1);
	if (ran_ms)
		PUT(&b.m, 180 * MS, SAMPLE_FRAMES, 0, 0, ran_ms * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 180 * MS, PARK, SET_A);
	book_make(&b);
	ns = had(&b, 2, TACHO__OWNS_CODE).ns;
	assert_int_equal(b.l->waiting_ns, 0);
	book_end(&b);
	return ns;
}

static void one_that_is_not_seen_to_wait_and_does_not_run_is_idle_as_well(void **state)
{
	(void)state;
	assert_int_equal(code_beside_a_futex(0), (160 - 16 * 9) * MS);
	/* Up to a quarter of the time. */
	assert_int_equal(code_beside_a_futex(39), 39 * MS);
	assert_int_equal(code_beside_a_futex(40), 160 * MS);
}

/* The same in pieces of 10 ms, each too short to miss a sample. */
static void short_waits_that_nobody_sees_are_idle_all_together(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 60; i++) {
		PUT(&b.m, (10 * i) * MS, PARK, SET_A);
		PUT(&b.m, (10 * i + 9) * MS, UNPARK, 1);
	}
	trace_stream(&b.m, 2, 0);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&b.m, (11 * i) * MS, PARK, SET_A);
		PUT(&b.m, (11 * i + 1) * MS, UNPARK, 1);
	}
	PUT(&b.m, 440 * MS, PARK, SET_A);
	book_make(&b);
	/* Of 400 ms of turns the other was parked for nine tenths. */
	assert_int_equal(had(&b, 2, TACHO__OWNS_CODE).ns, 40 * MS);
	book_end(&b);
}

static void a_timer_waits_from_when_it_is_due(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 10 * MS, POLL_BEGIN, KIND_A, 0);
	put_call(&b.m, 50 * MS, SLEEP, 40 * MS);
	PUT(&b.m, 50 * MS, POLL_END, 0);
	PUT(&b.m, 50 * MS, LATE, 0, 30 * MS);
	PUT(&b.m, 50 * MS, POLL_BEGIN, TIMER, 0);
	PUT(&b.m, 51 * MS, POLL_END, 0);
	PUT(&b.m, 51 * MS, PARK, LOOP_2);
	PUT(&b.m, 91 * MS, UNPARK, 0);
	PUT(&b.m, 92 * MS, LATE, 0, 11 * MS); /* due at 81, while it waited */
	PUT(&b.m, 92 * MS, POLL_BEGIN, TIMER, 0);
	PUT(&b.m, 93 * MS, POLL_END, 0);
	PUT(&b.m, 93 * MS, PARK, LOOP_2);
	book_make(&b);
	COST_MS(&b, 1, CALL, 30);
	ALL_MS(&b, 1, LATE, 10);
	COST_MS(&b, 1, LATE, 10);
	COST_MS(&b, 1, CODE, 1);
	assert_int_equal(b.l->waiting_ns, 41 * MS);
	book_end(&b);
}

static void work_waits_for_a_thread_of_the_pool(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	PUT(&b.m, 1 * MS, UNPARK, 1);
	PUT(&b.m, 2 * MS, WORK_SUBMIT, KIND_B, 7);
	PUT(&b.m, 5 * MS, WORK_SUBMIT, KIND_B, 8);
	PUT(&b.m, 9 * MS, WORK_SUBMIT, KIND_B, 9);
	PUT(&b.m, 9 * MS, WORK_SUBMIT, KIND_B, 10);
	PUT(&b.m, 10 * MS, PARK, LOOP_2);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 3 * MS, WORK_BEGIN, KIND_B, 7);
	put_call(&b.m, 23 * MS, NAME, 20 * MS);
	PUT(&b.m, 23 * MS, WORK_END, 0, 7);
	PUT(&b.m, 24 * MS, WORK_BEGIN, KIND_B, 8);
	PUT(&b.m, 34 * MS, WORK_END, 0, 8);
	PUT(&b.m, 34 * MS, WORK_BEGIN, KIND_B, 9);
	PUT(&b.m, 36 * MS, WORK_END, 0, 9);
	PUT(&b.m, 36 * MS, WORK_BEGIN, KIND_B, 10);
	PUT(&b.m, 37 * MS, WORK_END, 0, 10);
	trace_stream(&b.m, 3, 0);
	PUT(&b.m, 40 * MS, LOOP, LOOP_1);
	book_make(&b);
	assert_int_equal(b.l->threads[1].is_pool, 1);
	ALL_MS(&b, 2, IDLE, 3);
	ALL_MS(&b, 2, LATE, 1); /* from 23 to 24: work was there */
	ALL_MS(&b, 2, CALL, 20);
	ALL_MS(&b, 2, CODE, 13);
	/* 8 waits from 5 to 24, 9 from 9 to 34, 10 from 9 to 36. */
	assert_int_equal(b.l->waiting_ns, (19 + 25 + 27) * MS);
	COST_MS(&b, 2, CALL, 18 + 14 + 14);
	COST_MS(&b, 2, LATE, 3);
	COST_MS(&b, 2, CODE, 10 + 10 + 2);
	book_end(&b);
}

static void wakes_before_a_hole_are_forgotten(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	run_task(&b.m, 0, 1);
	PUT(&b.m, 10 * MS, POLL_BEGIN, KIND_B, 2);
	trace_hole(&b.m, 1, 0, 50);
	PUT(&b.m, 50 * MS, LOOP, LOOP_3);
	PUT(&b.m, 100 * MS, PARK, LOOP_3);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 20 * MS, WAKE, 0, 1);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 30 * MS);
	COST_MS(&b, 1, NOT_OBSERVED, 30);
	book_end(&b);
}

/* Who serves it went to rest twice since: its poll was too short to be recorded. */
/* Two ran the loop, and one of them ended long ago: it is known that it did, but not when. */
static void a_thread_that_is_gone_does_not_pay(void **state)
{
	struct tacho_box_thread threads[2] = {
		{.state = TACHO_THREAD_LIVE, .number = 1},
		{.state = TACHO_THREAD_ENDED, .number = 2},
	};
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_threads(&b.m, threads, 2);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	run_task(&b.m, 0, 1);
	run_task(&b.m, 1500 * MS, 1);
	run_task(&b.m, 3000 * MS, 1);
	PUT(&b.m, 3010 * MS, WAKE, 0, 1);
	PUT(&b.m, 3011 * MS, POLL_BEGIN, KIND_B, 2);
	PUT(&b.m, 3040 * MS, POLL_END, 1);
	run_task(&b.m, 3040 * MS, 1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	run_task(&b.m, 2 * MS, 3);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 30 * MS);
	COST_MS(&b, 1, CODE, 30);
	assert_int_equal(had(&b, 2, TACHO__OWNS_CODE).ns, 3 * MS);
	book_end(&b);
}

/* More calls at more places than are told apart. */
static void owners_beyond_the_bound_are_summed_up(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	for (uint64_t i = 1; i <= 70000; i++) {
		/* A stretch of records has so much room. */
		if (i % 1000 == 0)
			trace_stream(&b.m, 1, 0);
		PUT(&b.m, 1000 * i, CALL, NAME, i, 500, UINT64_MAX, 0);
	}
	book_make_silently(&b);
	assert_true(b.l->missed > 0);
	assert_true(b.l->threads[0].rest.ns > 0);
	assert_int_equal(b.l->threads[0].last_ns - b.l->threads[0].first_ns, 70 * MS);
	book_end(&b);
}

static void what_nobody_runs_before_it_rests_does_not_wait(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_3);
	PUT(&b.m, 1 * MS, UNPARK, 0);
	run_task(&b.m, 1 * MS, 1);
	PUT(&b.m, 3 * MS, WAKE, 0, 1);
	PUT(&b.m, 5 * MS, PARK, LOOP_3);
	PUT(&b.m, 6 * MS, UNPARK, 0);
	PUT(&b.m, 8 * MS, PARK, LOOP_3);
	PUT(&b.m, 500 * MS, UNPARK, 0);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 5 * MS);
	book_end(&b);
}

/* A part of a recording: a loop that is blocked for `ms` while a task waits. */
static void put_part(struct tb *to, uint32_t part, uint64_t ms)
{
	struct trace m;

	part_begin(&m, part);
	PUT(&m, 0, LOOP, LOOP_3);
	run_task(&m, 0, 1);
	PUT(&m, 2 * MS, POLL_BEGIN, KIND_A, 2);
	PUT(&m, 2 * MS, WAKE, 0, 1);
	put_call(&m, (2 + ms) * MS, NAME, ms * MS);
	PUT(&m, (2 + ms) * MS, POLL_END, 1);
	run_task(&m, (2 + ms) * MS, 1);
	trace_close(&m);
	tb_end(&m.t, 1);
	tb_put(to, m.t.data, m.t.size);
	tb_free(&m.t);
}

static void processes_have_their_own_queues(void **state)
{
	struct booked b = {.l = NULL};
	int error;

	(void)state;
	put_part(&b.m.t, 0, 20);
	put_part(&b.m.t, 1, 50);
	b.reader = open_bytes(b.m.t.data, b.m.t.size, NULL);
	b.l = tacho__ledger_make(b.reader, &error);
	assert_non_null(b.l);
	book_check(b.l);
	assert_int_equal(b.l->thread_count, 2);
	assert_int_equal(b.l->waiting_ns, 70 * MS);
	assert_int_equal(b.l->owners[0].process, 1);
	assert_int_equal(b.l->owners[0].waiting_ns, 50 * MS);
	assert_int_equal(b.l->owners[1].process, 0);
	assert_int_equal(b.l->owners[1].waiting_ns, 20 * MS);
	book_end(&b);
}

/* A request that waits for a lock, computes and sleeps; the next one is there already. */
static void serve_one(struct booked *b, uint32_t loop)
{
	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, PARK, loop);
	PUT(&b->m, 10 * MS, UNPARK, 1);
	PUT(&b->m, 12 * MS, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b->m, 32 * MS, LOCK_WAITED, 1, 0x1000);
	put_call(&b->m, 50 * MS, SLEEP, 8 * MS);
	PUT(&b->m, 60 * MS, PARK, loop);
	PUT(&b->m, 60 * MS + 1000, UNPARK, 1);
	PUT(&b->m, 61 * MS + 1000, PARK, loop);
	/* Others of the loop are no help. */
	trace_stream(&b->m, 2, 0);
	PUT(&b->m, 0, PARK, loop);
	PUT(&b->m, 90 * MS, UNPARK, 1);
	PUT(&b->m, 91 * MS, PARK, loop);
}

static void the_only_client_of_a_thread_waits_for_what_others_hold(void **state)
{
	struct booked b;

	(void)state;
	serve_one(&b, CLIENTS);
	book_make(&b);
	ALL_MS(&b, 1, LOCK, 20);
	COST_MS(&b, 1, LOCK, 20);
	COST_MS(&b, 1, CODE, 0);
	COST_MS(&b, 1, CALL, 0);
	book_end(&b);
	/* Of a set that both serve, the other one would have done it. */
	serve_one(&b, SET_A);
	book_make(&b);
	assert_int_equal(b.l->waiting_ns, 0);
	book_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_waits_from_its_wake_to_its_poll),
		cmocka_unit_test(threads_that_serve_one_queue_pay_in_equal_parts),
		cmocka_unit_test(while_one_of_them_is_parked_nobody_pays_but_who_comes_late),
		cmocka_unit_test(loops_whose_tasks_go_to_and_fro_are_one_queue),
		cmocka_unit_test(callbacks_wait_for_those_before_them),
		cmocka_unit_test(what_is_ready_at_once_became_ready_in_the_turn_before),
		cmocka_unit_test(what_became_ready_in_a_turn_waited_for_the_code_of_that_turn),
		cmocka_unit_test(a_thread_that_is_parked_at_the_same_set_would_have_served_it),
		cmocka_unit_test(who_waits_for_the_one_that_waits_is_idle),
		cmocka_unit_test(who_asked_once_what_was_ready_is_no_loop),
		cmocka_unit_test(a_condition_that_is_seldom_waited_for_is_work),
		cmocka_unit_test(a_condition_is_work_where_it_is_known_that_peers_signal_another),
		cmocka_unit_test(who_is_handed_something_by_another_that_serves_had_nothing_to_do),
		cmocka_unit_test(one_that_is_not_seen_to_wait_and_does_not_run_is_idle_as_well),
		cmocka_unit_test(short_waits_that_nobody_sees_are_idle_all_together),
		cmocka_unit_test(the_only_client_of_a_thread_waits_for_what_others_hold),
		cmocka_unit_test(a_timer_waits_from_when_it_is_due),
		cmocka_unit_test(work_waits_for_a_thread_of_the_pool),
		cmocka_unit_test(wakes_before_a_hole_are_forgotten),
		cmocka_unit_test(a_thread_that_is_gone_does_not_pay),
		cmocka_unit_test(owners_beyond_the_bound_are_summed_up),
		cmocka_unit_test(what_nobody_runs_before_it_rests_does_not_wait),
		cmocka_unit_test(processes_have_their_own_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
