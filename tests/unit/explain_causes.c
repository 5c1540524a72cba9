/* Which causes matter, how large they are told to be, and which comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_help.h"

/* So that samples are known to be taken. */
static void begin_sampled(struct trace *m)
{
	struct tacho_box_source sources[TACHO_SOURCE_CPU_SAMPLES + 1] = {{0}};

	begin(m, 2);
	sources[TACHO_SOURCE_CPU_SAMPLES].state = TACHO_SOURCE_ON;
	tb_array(&m->t, TACHO_BLOCK_SOURCES, sources, sizeof(sources[0]),
		 TACHO_SOURCE_CPU_SAMPLES + 1);
}

/* Callbacks of 4 ms, one each 10 ms, of which each `nth` has a sample; the others of a turn wait. */
static const struct tacho__finding *short_ones(struct explained *x, uint32_t nth)
{
	begin_sampled(&x->m);
	trace_stream(&x->m, 1, 0);
	PUT(&x->m, 0, PARK, LOOP_2);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t at = (10 + 10 * i) * MS;

		PUT(&x->m, at, UNPARK, 2);
		PUT(&x->m, at, POLL_BEGIN, KIND_A, 1);
		if (i % nth == 0)
			PUT(&x->m, at + 2 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, CODE + 0x1000,
			    CODE + 0x5000);
		PUT(&x->m, at + 4 * MS, POLL_END, 0);
		for (uint64_t k = 0; k < 3; k++) {
			PUT(&x->m, at + 4 * MS + k * 10000, POLL_BEGIN, KIND_A, 2);
			PUT(&x->m, at + 4 * MS + (k + 1) * 10000, POLL_END, 0);
		}
		PUT(&x->m, at + 5 * MS, PARK, LOOP_2);
	}
	explain(x);
	return found(x->e, "long-callback", 0);
}

static void callbacks_shorter_than_the_time_between_samples_count_all(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	f = short_ones(&x, 2);
	assert_non_null(f);
	assert_int_equal((uint64_t)f->cost_ns, 400 * MS);
	assert_true(shows(f, "100 times, 400 ms in all"));
	end(&x);
	/* Their samples are a quarter of what they took: most of them did not run. */
	f = short_ones(&x, 10);
	assert_true(!f || f->cost_ns < (double)(100 * MS));
	end(&x);
}

/* A lock that is waited for 11 times, while one other thing waits in the same turn; of a second. With
   `peer`, another thread serves meanwhile. `waited`: how the waits end, 1 of a lock. */
static void put_blocked(struct explained *x, uint64_t ns, int peer, uint32_t waited)
{
	begin(&x->m, 2);
	trace_stream(&x->m, 1, 0);
	PUT(&x->m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 11; i++) {
		uint64_t at = (50 + 80 * i) * MS;

		PUT(&x->m, at, UNPARK, 2);
		PUT(&x->m, at + 1000, LOCK_WAIT, PLACE, 0x77);
		PUT(&x->m, at + 1000 + ns, LOCK_WAITED, waited, 0x77);
		PUT(&x->m, at + 2000 + ns, PARK, LOOP_1);
		turn(&x->m, at + 40 * MS, at + 40 * MS + 50000);
	}
	PUT(&x->m, 1000 * MS, UNPARK, 0);
	if (peer) {
		trace_stream(&x->m, 2, 0);
		PUT(&x->m, 0, PARK, LOOP_1);
		PUT(&x->m, 1000 * MS, UNPARK, 0);
	}
	explain(x);
}

static const struct tacho__finding *blocked(struct explained *x, uint64_t ns, int peer)
{
	put_blocked(x, ns, peer, 1);
	return found(x->e, "lock-contention", 0);
}

/* As threads of Java sleep. */
static void a_wait_that_nobody_ends_before_its_time_out_is_a_sleep(void **state)
{
	struct explained x;

	(void)state;
	put_blocked(&x, 3 * MS, 0, TACHO_WAITED_SIGNAL);
	assert_true(says(found(x.e, "blocking-call", 0), "3.00 ms, sleeping until a time-out"));
	end(&x);
	put_blocked(&x, 3 * MS, 0, TACHO_WAITED_SIGNAL | TACHO_WAITED_GOT);
	assert_true(
		says(found(x.e, "blocking-call", 0), "waiting for another thread to signal it"));
	end(&x);
}

/* As one that a server forks for each client. */
static void a_process_of_a_moment_has_not_waited_for_much(void **state)
{
	static const uint64_t lengths[] = {3 * MS, 30 * MS};

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct explained x;

		begin(&x.m, 4);
		trace_stream(&x.m, 1, 0);
		PUT(&x.m, 0, PARK, LOOP_1);
		PUT(&x.m, 1 * MS, UNPARK, 3);
		PUT(&x.m, 1 * MS + 1000, LOCK_WAIT, PLACE, 0x77);
		PUT(&x.m, 1 * MS + 1000 + lengths[i], LOCK_WAITED, 1, 0x77);
		PUT(&x.m, 1 * MS + 2000 + lengths[i], PARK, LOOP_1);
		PUT(&x.m, 2 * MS + 2000 + lengths[i], UNPARK, 0);
		explain(&x);
		assert_int_equal(found(x.e, "lock-contention", 0) != NULL, i);
		end(&x);
	}
}

static void who_is_blocked_waits_as_well(void **state)
{
	struct explained x;

	(void)state;
	assert_non_null(blocked(&x, 3 * MS / 2, 0));
	end(&x);
}

static void where_others_serve_meanwhile_it_is_a_note(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	/* 1.65 % of the window, 3.3 %, and 5.5 %, which is 2.75 % of the capacity of two. */
	assert_null(blocked(&x, 3 * MS / 2, 1));
	end(&x);
	f = blocked(&x, 3 * MS, 1);
	assert_non_null(f);
	assert_int_equal(f->severity, TACHO__SEVERITY_INFO);
	end(&x);
	f = blocked(&x, 5 * MS, 1);
	assert_non_null(f);
	assert_int_equal(f->severity, TACHO__SEVERITY_WARNING);
	end(&x);
}

/* A loop that is full from 40 ms on, until its clients have gone. */
static void put_full(struct trace *m, uint64_t until, uint64_t once)
{
	uint64_t at = 40 * MS;

	begin_sampled(m);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_1);
	while (at < until) {
		uint64_t turn_ns = at == 40 * MS && once ? once : 4 * MS;

		PUT(m, at, UNPARK, 4);
		for (uint64_t s = at; s < at + turn_ns; s += 4 * MS)
			PUT(m, s + MS, SAMPLE_FRAMES, 0, 0, 4 * MS, CODE + 0x1000, CODE + 0x5000);
		PUT(m, at + turn_ns, PARK, LOOP_1);
		at += turn_ns + 1000;
	}
	PUT(m, 1000 * MS, UNPARK, 0);
}

static void a_loop_is_full_though_its_clients_come_late_and_go_early(void **state)
{
	struct explained x;

	(void)state;
	put_full(&x.m, 900 * MS, 0);
	explain(&x);
	assert_true(says(found(x.e, "loop-saturated", 0), "is busy 86 % of the time"));
	end(&x);
	put_full(&x.m, 700 * MS, 0);
	explain(&x);
	assert_null(found(x.e, "loop-saturated", 0));
	end(&x);
}

static void a_loop_that_is_full_comes_before_what_was_long_once(void **state)
{
	struct explained x;

	(void)state;
	put_full(&x.m, 990 * MS, 100 * MS);
	explain(&x);
	assert_non_null(found(x.e, "long-callback", 0));
	assert_int_equal(x.e->findings[0].rule, TACHO__RULE_LOOP_SATURATED);
	end(&x);
}

#define REQUESTS 5u /* that come in while a long one is served */

/* A worker of tasks that serves requests of 100 us, and `long_ones` of 8 ms. What comes meanwhile is in the kernel
   until the worker asks there: its wait wakes the tasks, and returns at once. */
static void put_requests(struct trace *m, uint32_t long_ones)
{
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t at = (10 + 20 * i) * MS, ns = i < long_ones ? 8 * MS : MS / 10;

		PUT(m, at, WAKE, 0, 1);
		PUT(m, at + 1000, UNPARK, 1);
		PUT(m, at + 2000, POLL_BEGIN, KIND_A, 1);
		PUT(m, at += ns, POLL_END, TACHO_PENDING);
		PUT(m, at + 1000, PARK, LOOP_3);
		for (uint32_t k = 0; k < REQUESTS; k++)
			PUT(m, at + 2000 + k, WAKE, 0, 2 + k);
		PUT(m, at += 3000, UNPARK, REQUESTS);
		for (uint32_t k = 0; k < REQUESTS; k++) {
			PUT(m, at += 1000, POLL_BEGIN, KIND_A, 2 + k);
			PUT(m, at += MS / 10, POLL_END, TACHO_PENDING);
		}
		PUT(m, at + 1000, PARK, LOOP_3);
	}
}

/* Callbacks of 40 ms, each in one of two functions for three quarters of its time, and for the rest in that
   function (`apart`) or in the other. Both are called by one. */
static void put_two_functions(struct trace *m, int apart)
{
	begin_sampled(m);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_2);
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t at = (10 + 100 * i) * MS;

		PUT(m, at, UNPARK, 2);
		PUT(m, at, POLL_BEGIN, KIND_A, 1);
		for (uint64_t k = 0; k < 4; k++)
			PUT(m, at + (5 + 10 * k) * MS, SAMPLE_FRAMES, 0, 0, 10 * MS,
			    CODE + 0x1000 + k,
			    CODE + ((i + (k == 3 && !apart)) % 2 ? 0x5000 : 0x6000), CODE + 0x7000,
			    CODE + 0x9000);
		PUT(m, at + 40 * MS, POLL_END, 0);
		PUT(m, at + 40 * MS, POLL_BEGIN, KIND_A, 2);
		PUT(m, at + 40 * MS + 10000, POLL_END, 0);
		PUT(m, at + 41 * MS, PARK, LOOP_2);
	}
}

static void functions_that_take_turns_in_the_same_callbacks_are_one_cause(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	put_two_functions(&x.m, 0);
	explain(&x);
	f = found(x.e, "long-callback", 0);
	assert_non_null(f);
	assert_null(found(x.e, "long-callback", 1));
	assert_true(shows(f, "10 times, 400 ms in all"));
	assert_int_equal(f->where[0].address, CODE + 0x7000);
	end(&x);
	put_two_functions(&x.m, 1);
	explain(&x);
	assert_non_null(found(x.e, "long-callback", 1));
	assert_true(shows(found(x.e, "long-callback", 0), "5 times, 200 ms in all"));
	end(&x);
}

/* Without samples, nobody knows which function it is in. */
static void
polls_that_are_far_longer_than_their_like_count_by_what_waits_in_the_kernel(void **state)
{
	const struct tacho__finding *f;
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	put_requests(&x.m, 20);
	explain(&x);
	f = found(x.e, "long-callback", 0);
	assert_true(
		says(f, "kind a keeps its loop busy for up to 8.00 ms; what it did was not seen"));
	assert_true(shows(f, "20 times, 160 ms in all"));
	/* Half of the time for each of those that came meanwhile. */
	assert_true(shows(f, "what was ready meanwhile waited 40"));
	end(&x);
	/* Where samples are taken, and none is in it, it did not run. */
	begin_sampled(&x.m);
	put_requests(&x.m, 20);
	explain(&x);
	assert_null(found(x.e, "long-callback", 0));
	end(&x);
	/* What takes as long each time is load. */
	begin(&x.m, 2);
	put_requests(&x.m, 0);
	explain(&x);
	assert_null(found(x.e, "long-callback", 0));
	end(&x);
}

/* Two locks that are waited for in turns, by a thread that is blocked by a second one; that one holds
   both in one place, or each in its own. */
static void put_buckets(struct explained *x, uint32_t other_place)
{
	begin(&x->m, 2);
	trace_stream(&x->m, 1, 0);
	PUT(&x->m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t at = (50 + 80 * i) * MS, lock = 0x77 + i % 2;

		PUT(&x->m, at, UNPARK, 2);
		PUT(&x->m, at + 1000, LOCK_WAIT, PLACE, lock);
		PUT(&x->m, at + 5 * MS, LOCK_WAITED, 1, lock);
		PUT(&x->m, at + 5 * MS + 1000, PARK, LOOP_1);
	}
	PUT(&x->m, 1050 * MS, UNPARK, 0);
	trace_stream(&x->m, 2, 0);
	for (uint64_t i = 0; i < 12; i++)
		PUT(&x->m, (55 + 80 * i) * MS - 1000, LOCK_RELEASE, i % 2 ? other_place : PLACE,
		    0x77 + i % 2, 1);
	explain(x);
}

static void locks_that_are_held_in_one_place_are_one_cause(void **state)
{
	struct explained x;

	(void)state;
	put_buckets(&x, PLACE);
	assert_true(shows(found(x.e, "lock-contention", 0), "12 times, 60.0 ms in all"));
	assert_null(found(x.e, "lock-contention", 1));
	end(&x);
	put_buckets(&x, NAME);
	assert_true(shows(found(x.e, "lock-contention", 0), "6 times, 30.0 ms in all"));
	assert_true(shows(found(x.e, "lock-contention", 1), "6 times, 30.0 ms in all"));
	end(&x);
}

/* Waits with a time-out, three of which end 200 ms late, and nothing of the process ran. */
static void who_oversleeps_was_stopped(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t at = (10 + 10 * i) * MS + (i > 20) * 200 * MS + (i > 50) * 200 * MS +
			      (i > 80) * 200 * MS;

		PUT(&x.m, at, UNPARK, 1);
		if (i == 21 || i == 51 || i == 81)
			PUT(&x.m, at, LATE, 0, 200 * MS);
		PUT(&x.m, at + 100000, PARK, LOOP_1);
	}
	explain(&x);
	assert_true(says(found(x.e, "process-pause", 0), "200 ms"));
	end(&x);
}

/* Turns of 30 ms, so many of which have a sample that says that all of it ran. */
static int is_seen(uint32_t samples)
{
	struct explained x;
	int is;

	begin_sampled(&x.m);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 4; i++) {
		PUT(&x.m, (200 * i + 100) * MS, UNPARK, 2);
		if (i < samples)
			PUT(&x.m, (200 * i + 105) * MS, SAMPLE_FRAMES, 0, 0, 30 * MS, CODE + 0x1000,
			    CODE + 0x5000);
		PUT(&x.m, (200 * i + 130) * MS, PARK, LOOP_1);
	}
	PUT(&x.m, 1000 * MS, UNPARK, 0);
	explain(&x);
	is = found(x.e, "long-callback", 0) != NULL;
	end(&x);
	return is;
}

static void few_samples_do_not_show_that_code_ran(void **state)
{
	(void)state;
	assert_true(is_seen(3));
	assert_false(is_seen(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callbacks_shorter_than_the_time_between_samples_count_all),
		cmocka_unit_test(a_process_of_a_moment_has_not_waited_for_much),
		cmocka_unit_test(who_is_blocked_waits_as_well),
		cmocka_unit_test(a_wait_that_nobody_ends_before_its_time_out_is_a_sleep),
		cmocka_unit_test(where_others_serve_meanwhile_it_is_a_note),
		cmocka_unit_test(a_loop_is_full_though_its_clients_come_late_and_go_early),
		cmocka_unit_test(a_loop_that_is_full_comes_before_what_was_long_once),
		cmocka_unit_test(functions_that_take_turns_in_the_same_callbacks_are_one_cause),
		cmocka_unit_test(locks_that_are_held_in_one_place_are_one_cause),
		cmocka_unit_test(who_oversleeps_was_stopped),
		cmocka_unit_test(few_samples_do_not_show_that_code_ran),
		cmocka_unit_test(
			polls_that_are_far_longer_than_their_like_count_by_what_waits_in_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
