/* What a verdict covers, and findings that losses could make by themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_help.h"

/* A loop of two seconds with little to do in each turn. */
static void put_loop(struct trace *m, uint32_t thread, uint32_t loop)
{
	trace_stream(m, thread, 0);
	for (uint64_t i = 0; i < 200; i++) {
		PUT(m, i * 10 * MS, PARK, loop);
		PUT(m, i * 10 * MS + 8 * MS, UNPARK, 1);
	}
	PUT(m, 2000 * MS, PARK, loop);
}

static void put_samples(struct trace *m, uint32_t thread, uint64_t from, uint64_t to)
{
	trace_stream(m, thread, 0);
	sampled(m, from, to, 0x5000, 0x6000);
}

static void a_verdict_says_what_it_covers(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	put_loop(&x.m, 1, LOOP_1);
	explain(&x);
	assert_string_equal(x.e->verdict.category, "none");
	assert_string_equal(x.e->verdict.summary, "no problem found in the event loop");
	assert_int_equal(x.e->verdict.loops, 1);
	assert_int_equal(x.e->verdict.others, 0);
	end(&x);
	begin(&x.m, 2);
	put_loop(&x.m, 1, LOOP_1);
	put_loop(&x.m, 2, OTHER);
	put_samples(&x.m, 3, 0, 1000 * MS);
	put_samples(&x.m, 4, 0, 840 * MS);
	explain(&x);
	assert_string_equal(x.e->verdict.summary,
			    "no problem found in the 2 event loops. 2 other threads used 92 % of a "
			    "CPU and were not judged");
	assert_int_equal(x.e->verdict.loops, 2);
	assert_int_equal(x.e->verdict.others, 2);
	assert_true(x.e->verdict.others_cpus > 0.91 && x.e->verdict.others_cpus < 0.93);
	end(&x);
}

/* As much as all of several CPUs, and next to nothing. */
static void cpu_time_of_others_is_told_in_cpus(void **state)
{
	struct explained x;

	(void)state;
	begin(&x.m, 2);
	put_loop(&x.m, 1, LOOP_1);
	put_samples(&x.m, 3, 0, 2000 * MS);
	put_samples(&x.m, 4, 0, 1000 * MS);
	explain(&x);
	assert_non_null(strstr(x.e->verdict.summary, ". 2 other threads used 1.5 CPUs and were"));
	end(&x);
	begin(&x.m, 2);
	put_loop(&x.m, 1, LOOP_1);
	put_samples(&x.m, 3, 0, 10 * MS);
	explain(&x);
	assert_null(strstr(x.e->verdict.summary, "other thread"));
	end(&x);
}

/* A callback that has not come back for 1.5 s, of a thread that lost its last records, or did not. */
static const struct tacho__finding *hangs(struct explained *x, uint32_t drops)
{
	const struct tacho_box_thread thread = {.state = TACHO_THREAD_LIVE,
						.number = 1,
						.tid = 1001,
						.start_ticks = T0,
						.drops = drops};

	begin(&x->m, 2);
	trace_threads(&x->m, &thread, 1);
	put_loop(&x->m, 2, OTHER);
	trace_stream(&x->m, 1, 0);
	PUT(&x->m, 0, PARK, LOOP_1);
	PUT(&x->m, 400 * MS, UNPARK, 1);
	PUT(&x->m, 500 * MS, POLL_BEGIN, KIND_A, 7);
	explain(x);
	return found(x->e, "hang", 0);
}

static void a_thread_that_lost_its_last_records_does_not_hang(void **state)
{
	struct explained x;

	(void)state;
	assert_non_null(hangs(&x, 0));
	end(&x);
	assert_null(hangs(&x, 1));
	assert_int_equal(x.e->processes[0].readable.lost, 1);
	end(&x);
}

/* Tasks that pile up, or whose ends are among so many records that are missing. */
static const struct tacho__finding *leaks(struct explained *x, uint64_t missing)
{
	begin(&x->m, 2);
	put_loop(&x->m, 1, LOOP_1);
	trace_stream(&x->m, 2, 0);
	for (uint64_t i = 0; i < 300; i++) {
		if (i == 150 && missing)
			trace_hole(&x->m, 2, 0, missing);
		PUT(&x->m, i * 6 * MS, SPAWN, KIND_A, PLACE, 1000 + i, 0);
	}
	explain(x);
	return found(x->e, "task-leak", 0);
}

static void fewer_losses_than_tasks_do_not_make_a_leak(void **state)
{
	struct explained x;

	(void)state;
	assert_non_null(leaks(&x, 0));
	end(&x);
	assert_non_null(leaks(&x, 50));
	end(&x);
	assert_null(leaks(&x, 250));
	end(&x);
}

/* A file that is damaged: the process is judged by facts alone. */
static void a_file_that_is_damaged_says_how_much_is_left(void **state)
{
	const struct tacho__readable *r;
	struct explained x;
	int error;

	(void)state;
	begin(&x.m, 2);
	put_loop(&x.m, 1, LOOP_1);
	put_loop(&x.m, 2, OTHER);
	trace_close(&x.m);
	/* A byte of the last block of records; the index says how many it holds. */
	x.m.t.data[x.m.t.size - 9] ^= 1;
	x.reader = trace_reader(&x.m);
	x.e = tacho__explain(x.reader, NULL, &error);
	assert_non_null(x.e);
	r = &x.e->readable;
	print_message("%s\n", r->text);
	assert_true(r->is_damaged);
	assert_false(r->is_uncounted);
	assert_int_equal(r->lost, 401);
	assert_true(r->share > 0.4 && r->share < 0.6);
	assert_non_null(strstr(r->text, "the file is damaged: 50 % of it can be read"));
	assert_non_null(found(x.e, "recorder-loss", 0));
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_says_what_it_covers),
		cmocka_unit_test(cpu_time_of_others_is_told_in_cpus),
		cmocka_unit_test(a_thread_that_lost_its_last_records_does_not_hang),
		cmocka_unit_test(fewer_losses_than_tasks_do_not_make_a_leak),
		cmocka_unit_test(a_file_that_is_damaged_says_how_much_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
