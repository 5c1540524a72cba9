/* What rules say of healthy servers, and of those that have too much to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_help.h"

static void a_loop_that_is_full_for_most_of_the_time_is_saturated(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	/* It idles until there is load, and afterwards, in a wait that does not end. */
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 400; i++)
		turn(&x.m, (100 + 4 * i) * MS, (104 + 4 * i) * MS - 1000);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, 1850 * MS, WAKE, 0, 7);
	explain(&x);
	assert_true(shows(found(x.e, "loop-saturated", 0), "busy 100 % of the time in the median"));
	end(&x);
}

/* As asyncio: what it was told of in one turn it does in the next, before which it only asks. */
static void a_turn_does_what_was_left_by_the_one_before(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t at = MS; at < 2000 * MS; at += 13 * MS) {
		PUT(&x.m, at, UNPARK, 100);
		PUT(&x.m, at + MS, PARK, LOOP_1);
		PUT(&x.m, at + MS + 1000, UNPARK, 1);
		sampled(&x.m, at + MS, at + 13 * MS, 0x1000, 0x5000);
		PUT(&x.m, at + 13 * MS - 2000, PARK, LOOP_1);
	}
	explain(&x);
	assert_null(found(x.e, "long-callback", 0));
	assert_non_null(found(x.e, "loop-saturated", 0));
	end(&x);
}

/* A lock is waited for now and then; others have the CPU each time. */
static void what_lacks_a_cpu_comes_before_what_hardly_costs(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 40; i++) {
		PUT(&x.m, (50 * i + 10) * MS, UNPARK, 8);
		for (uint64_t fd = 4; fd < 8; fd++)
			PUT(&x.m, (50 * i + 10) * MS, READY, 1, fd);
		if (i % 5 == 1) {
			PUT(&x.m, (50 * i + 11) * MS, LOCK_WAIT, PLACE, 0x1000);
			PUT(&x.m, (50 * i + 13) * MS, LOCK_WAITED, 1, 0x1000);
		}
		PUT(&x.m, (50 * i + 40) * MS, PARK, LOOP_1);
		PUT(&x.m, (50 * i + 40) * MS, SCHED, 1, 26 * MS, 0);
	}
	explain(&x);
	assert_int_equal(x.e->findings[0].rule, TACHO__RULE_KERNEL_SCHEDULING_DELAY);
	assert_non_null(found(x.e, "lock-contention", 0));
	end(&x);
}

/* As threads of Asio: one waits, and all do what it was told. */
static void a_turn_in_which_others_reported_much_had_much_to_do(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	for (uint32_t thread = 1; thread <= 2; thread++) {
		uint64_t at = 10 * thread * MS;

		trace_stream(&x.m, thread, 0);
		PUT(&x.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 100; i++, at += 20 * MS) {
			PUT(&x.m, at + 1000, UNPARK, thread == 1 ? 200 : 1);
			sampled(&x.m, at, at + 20 * MS, 0x1000, 0x5000);
			PUT(&x.m, at + 20 * MS, PARK, LOOP_1);
		}
	}
	explain(&x);
	assert_null(found(x.e, "long-callback", 0));
	/* One finding about both. */
	assert_true(says(found(x.e, "loop-saturated", 0), "2 of 2 workers are busy up to 99 %"));
	assert_null(found(x.e, "loop-saturated", 1));
	end(&x);
}

/* As a backend of PostgreSQL: it waits for other backends in the middle of a query. */
static void a_process_with_one_client_has_its_time_told(void **state)
{
	struct explained x;
	const struct tacho__finding *f;

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 50; i++) {
		PUT(&x.m, 20 * i * MS + 1000, UNPARK, 1);
		PUT(&x.m, 20 * i * MS + 1000, READY, 1, 4);
		if (i > 20 && i % 5 == 0) {
			PUT(&x.m, (20 * i + 1) * MS, PARK, OTHER);
			PUT(&x.m, (20 * i + 11) * MS, UNPARK, 1);
			PUT(&x.m, (20 * i + 11) * MS, READY, 1, 5);
		}
		PUT(&x.m, (20 * i + 20) * MS, PARK, LOOP_1);
	}
	explain(&x);
	f = found(x.e, "blocking-call", 0);
	assert_true(says(f, "for up to 10.0 ms in a wait of another loop (other loop)"));
	assert_int_equal(f->severity, TACHO__SEVERITY_INFO);
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_that_is_full_for_most_of_the_time_is_saturated),
		cmocka_unit_test(a_turn_does_what_was_left_by_the_one_before),
		cmocka_unit_test(what_lacks_a_cpu_comes_before_what_hardly_costs),
		cmocka_unit_test(a_turn_in_which_others_reported_much_had_much_to_do),
		cmocka_unit_test(a_process_with_one_client_has_its_time_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
