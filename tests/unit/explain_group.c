/* Findings of one cause are one finding (explain/group.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_drawn.h"

static void the_same_place_in_several_processes_is_one_finding(void **state)
{
	(void)state;
	becomes("0 warning blocking-call at fetch:12 waiting 30\n"
		"1 warning blocking-call at fetch:12 waiting 40\n"
		"2 warning blocking-call at fetch:12 waiting 20\n",
		"warning blocking-call at fetch in 3 of 3\n");
	/* Not another line, function or rule. */
	becomes("0 warning blocking-call at fetch:12 waiting 30\n"
		"1 warning blocking-call at fetch:13 waiting 29\n"
		"2 warning blocking-call at flush:12 waiting 28\n"
		"3 warning lock-contention at fetch:12 waiting 27\n",
		"warning blocking-call at fetch in 1 of 4\n"
		"warning blocking-call at fetch in 1 of 4\n"
		"warning blocking-call at flush in 1 of 4\n"
		"warning lock-contention at fetch in 1 of 4\n");
}

/* Samples are in one line here and in another there. */
static void code_that_runs_is_one_by_its_function(void **state)
{
	(void)state;
	becomes("0 warning long-callback at parse:12 sampled 1 waiting 30\n"
		"1 warning long-callback at parse:19 sampled 1 waiting 30\n",
		"warning long-callback at parse in 2 of 2\n");
}

/* Of node, once interpreted and once compiled. */
static void a_function_that_is_compiled_meanwhile_is_the_same(void **state)
{
	(void)state;
	becomes("0 warning long-callback at JS~hash sampled 1 waiting 30\n"
		"1 warning long-callback at JS*hash sampled 1 waiting 30\n",
		"warning long-callback at JS:~hash in 2 of 2\n");
}

static void without_a_place_the_kind_of_callback_tells_and_then_the_subject(void **state)
{
	(void)state;
	/* Definitions are those of one process here: 1 and 2 are kinds. */
	becomes("0 warning wake-latency kind 1 waiting 30\n"
		"0 warning wake-latency kind 2 waiting 20\n",
		"warning wake-latency in 1 of 1\n"
		"warning wake-latency in 1 of 1\n");
	becomes("0 warning kernel-scheduling-delay subject 6 waiting 30\n"
		"1 warning kernel-scheduling-delay subject 6 waiting 20\n",
		"warning kernel-scheduling-delay in 2 of 2\n");
	becomes("0 critical recorder-loss subject 1\n"
		"0 critical recorder-loss subject 3\n",
		"critical recorder-loss in 1 of 1\n"
		"critical recorder-loss in 1 of 1\n");
}

static void sums_are_of_all_and_the_rest_is_of_the_worst(void **state)
{
	struct drawing *d = draw("0 warning blocking-call at fetch:12 waiting 30 cost 20 longest "
				 "15 count 2 threads 1\n"
				 "1 warning blocking-call at fetch:12 waiting 10 cost 50 longest "
				 "25 count 3 threads 2 "
				 "thread 7\n"
				 "2 warning blocking-call at fetch:12 waiting 40 cost 10 longest "
				 "10 count 1 threads 1\n",
				 5);
	const struct tacho__finding *f = &d->e.findings[0];

	(void)state;
	assert_int_equal(d->e.count, 1);
	assert_true(f->waiting_ns == 80 * 1e6 && f->cost_ns == 80 * 1e6);
	assert_int_equal(f->measure.count, 6);
	assert_int_equal(f->measure.total_ns, 80 * MS);
	assert_int_equal(f->measure.longest_ns, 25 * MS);
	assert_int_equal(f->measure.threads, 4);
	assert_int_equal(f->process, 1);
	assert_int_equal(f->thread, 7);
	assert_int_equal(f->spread.processes, 3);
	assert_int_equal(f->spread.processes_in_all, 5);
	assert_int_equal(f->spread.threads, 4);
	/* Most waiting first. */
	assert_int_equal(f->spread.count, 3);
	assert_int_equal(f->spread.at[0].process, 2);
	assert_int_equal(f->spread.at[1].process, 0);
	assert_int_equal(f->spread.at[2].process, 1);
	assert_true(f->spread.at[2].cost_ns == 50 * 1e6);
	assert_int_equal(f->spread.at[2].count, 3);
	assert_int_equal(f->spread.at[2].longest_ns, 25 * MS);
	assert_int_equal(f->spread.at[2].threads, 2);
	undraw(d);
}

static void the_verdict_says_in_how_many_workers_it_is(void **state)
{
	struct drawing *d = draw("0 critical blocking-call at fetch:12 waiting 30 many fetch\n"
				 "1 critical blocking-call at fetch:12 waiting 30 many fetch\n",
				 3);

	(void)state;
	assert_string_equal(d->e.verdict.summary, "fetch blocks 2 of 3 workers");
	assert_string_equal(d->e.verdict.category, "blocked-loop");
	undraw(d);
	/* Threads of one process are workers, too. */
	d = draw("0 critical blocking-call at fetch:12 waiting 30 threads 4 many fetch\n", 0);
	assert_string_equal(d->e.verdict.summary, "fetch blocks 4 of 4 workers");
	undraw(d);
}

/* ------------------------------------------------------------------------ severity */

static void what_is_small_in_each_worker_may_not_be_small(void **state)
{
	(void)state;
	/* A stall of 50 ms in each of three. */
	becomes("0 - blocking-call at fetch:12 waiting 15 served 15 stalls 1\n"
		"1 - blocking-call at fetch:12 waiting 15 served 15 stalls 1\n"
		"2 - blocking-call at fetch:12 waiting 15 served 15 stalls 1\n",
		"critical blocking-call at fetch in 3 of 3\n");
	becomes("0 - blocking-call at fetch:12 waiting 15 served 15 stalls 1\n"
		"1 - blocking-call at fetch:12 waiting 15 served 15 stalls 1\n"
		"2 - blocking-call at fetch:12 waiting 15 served 15\n",
		"");
	/* 2 and 10 % of the window. */
	becomes("0 - blocking-call at fetch:12 waiting 12\n"
		"1 - blocking-call at fetch:12 waiting 8\n",
		"warning blocking-call at fetch in 2 of 2\n");
	becomes("0 warning blocking-call at fetch:12 waiting 60\n"
		"1 warning blocking-call at fetch:12 waiting 40\n",
		"critical blocking-call at fetch in 2 of 2\n");
	becomes("0 warning blocking-call at fetch:12 waiting 60\n"
		"1 warning blocking-call at fetch:12 waiting 39\n",
		"warning blocking-call at fetch in 2 of 2\n");
}

/* A worker that is blocked for 1 % of its time is that, in however many. */
static void what_blocked_workers_serve_does_not_add_up(void **state)
{
	(void)state;
	becomes("0 - blocking-call at fetch:12 waiting 10 served 10\n"
		"1 - blocking-call at fetch:12 waiting 10 served 10\n"
		"2 - blocking-call at fetch:12 waiting 10 served 10\n",
		"");
	becomes("0 warning blocking-call at fetch:12 waiting 80 served 50\n"
		"1 warning blocking-call at fetch:12 waiting 80 served 50\n",
		"warning blocking-call at fetch in 2 of 2\n");
}

static void what_is_too_small_in_one_worker_counts_with_the_others(void **state)
{
	(void)state;
	becomes("0 warning blocking-call at fetch:12 waiting 60\n"
		"1 - blocking-call at fetch:12 waiting 5\n"
		"2 - blocking-call at flush:12 waiting 5\n",
		"warning blocking-call at fetch in 2 of 3\n");
}

static void what_stays_too_small_is_considered(void **state)
{
	struct drawing *d = draw("0 - blocking-call at fetch:12 waiting 5\n"
				 "1 - blocking-call at fetch:12 waiting 7\n",
				 0);

	(void)state;
	assert_int_equal(d->e.count, 0);
	assert_int_equal(d->e.considered_count, 1);
	assert_true(d->e.considered[0].waiting_ns == 12 * 1e6);
	assert_non_null(strstr(d->e.considered[0].reason, "in 2 processes is 1.2 % of the window"));
	undraw(d);
}

static void a_note_stays_a_note_in_however_many(void **state)
{
	(void)state;
	becomes("0 info blocking-call at fetch:12 waiting 90 stalls 9\n"
		"1 info blocking-call at fetch:12 waiting 90 stalls 9\n",
		"info blocking-call at fetch in 2 of 2\n");
}

/* --------------------------------------------------------------------- explanations */

static void a_symptom_is_explained_by_what_explains_it_in_most_processes(void **state)
{
	(void)state;
	becomes("0 warning blocking-call at fetch:12 waiting 20\n"
		"0 warning timer-late at tick:3 waiting 10\n"
		"1 warning blocking-call at fetch:12 waiting 20\n"
		"1 warning timer-late at tick:3 waiting 10\n"
		"2 warning lock-contention at flush:9 waiting 15\n"
		"2 warning timer-late at tick:3 waiting 10\n",
		"warning blocking-call at fetch in 2 of 3\n"
		"warning lock-contention at flush in 1 of 3\n"
		"warning timer-late at tick in 3 of 3, explained by 0\n");
	/* In half of them nothing does. */
	becomes("0 warning blocking-call at fetch:12 waiting 20\n"
		"0 warning timer-late at tick:3 waiting 10\n"
		"1 warning timer-late at tick:3 waiting 10\n",
		"warning blocking-call at fetch in 1 of 2\n"
		"warning timer-late at tick in 2 of 2\n");
}

/* One is the larger here, and the other there. */
static void two_that_explain_each_other_do_not_both_vanish(void **state)
{
	(void)state;
	becomes("0 warning loop-saturated loop 3 waiting 30 cost 10\n"
		"0 warning queue-growth loop 3 waiting 20 cost 10\n"
		"1 warning loop-saturated loop 3 waiting 10 cost 10\n"
		"1 warning queue-growth loop 3 waiting 25 cost 10\n"
		"2 warning loop-saturated loop 3 waiting 10 cost 10\n"
		"2 warning queue-growth loop 3 waiting 25 cost 10\n"
		"3 warning loop-saturated loop 3 waiting 30 cost 10\n"
		"3 warning queue-growth loop 3 waiting 20 cost 10\n",
		"warning queue-growth in 4 of 4\n"
		"warning loop-saturated in 4 of 4\n");
}

/* ----------------------------------------------------------------------- properties */

/* Findings of n processes: each with a fault in common, and every second with one more. */
static char *pool_of(uint32_t n, uint32_t shift)
{
	char *lines = calloc(n + 1, 400);
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t p = (i + shift) % n;

		used += (size_t)sprintf(lines + used,
					"%u critical blocking-call at fetch:12 waiting 30\n"
					"%u warning timer-late at tick:3 waiting 1\n",
					i, i);
		if (p % 2)
			used += (size_t)sprintf(
				lines + used, "%u critical lock-contention at flush:9 waiting 25\n",
				i);
	}
	return lines;
}

/* Lines without how many there are. */
static void without_counts(char *text)
{
	for (char *at; (at = strstr(text, " in ")) != NULL;) {
		char *end = at + strcspn(at, ",\n");

		memmove(at, end, strlen(end) + 1);
	}
}

static void duplicating_processes_changes_nothing_but_their_number(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 16; n *= 2) {
		char *few = pool_of(2, 0), *many = pool_of(n, 1);
		struct drawing *a = draw(few, 0), *b = draw(many, 0);

		assert_int_equal(b->e.findings[0].spread.processes, n);
		assert_true(b->e.findings[0].waiting_ns == 30e6 * n);
		without_counts(a->text);
		without_counts(b->text);
		assert_string_equal(a->text, b->text);
		undraw(a);
		undraw(b);
		free(few);
		free(many);
	}
}

static void instances_are_listed_up_to_a_bound_and_the_rest_is_counted(void **state)
{
	struct drawing *d;
	char lines[DRAWN * 64];
	size_t used = 0;

	(void)state;
	for (uint32_t i = 0; i < TACHO__INSTANCES + 8; i++)
		used += (size_t)sprintf(lines + used,
					"%u critical blocking-call at f:1 waiting %u\n", i, i + 1);
	d = draw(lines, 0);
	assert_int_equal(d->e.findings[0].spread.count, TACHO__INSTANCES);
	assert_int_equal(d->e.findings[0].spread.left_out, 8);
	assert_int_equal(d->e.findings[0].spread.processes, TACHO__INSTANCES + 8);
	assert_int_equal(d->e.findings[0].spread.at[0].process, TACHO__INSTANCES + 7);
	undraw(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_place_in_several_processes_is_one_finding),
		cmocka_unit_test(code_that_runs_is_one_by_its_function),
		cmocka_unit_test(a_function_that_is_compiled_meanwhile_is_the_same),
		cmocka_unit_test(without_a_place_the_kind_of_callback_tells_and_then_the_subject),
		cmocka_unit_test(sums_are_of_all_and_the_rest_is_of_the_worst),
		cmocka_unit_test(the_verdict_says_in_how_many_workers_it_is),
		cmocka_unit_test(what_is_small_in_each_worker_may_not_be_small),
		cmocka_unit_test(what_blocked_workers_serve_does_not_add_up),
		cmocka_unit_test(what_is_too_small_in_one_worker_counts_with_the_others),
		cmocka_unit_test(what_stays_too_small_is_considered),
		cmocka_unit_test(a_note_stays_a_note_in_however_many),
		cmocka_unit_test(a_symptom_is_explained_by_what_explains_it_in_most_processes),
		cmocka_unit_test(two_that_explain_each_other_do_not_both_vanish),
		cmocka_unit_test(duplicating_processes_changes_nothing_but_their_number),
		cmocka_unit_test(instances_are_listed_up_to_a_bound_and_the_rest_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
