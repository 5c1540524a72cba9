/* Which finding explains which, and which comes first (explain/fold.c): each condition on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain_drawn.h"

/* Whether the first explains the second. */
static int explains(const char *cause, const char *symptom)
{
	char lines[512];
	struct drawing *d;
	int is;

	snprintf(lines, sizeof(lines), "%s cost 100 waiting 100\n%s cost 50 waiting 50", cause,
		 symptom);
	d = draw(lines, 0);
	is = d->e.count == 2 && d->e.findings[1].folded_into == 0;
	/* What is folded stands behind what it is folded into. */
	if (is)
		assert_non_null(strstr(symptom, tacho__rules[d->e.findings[1].rule].id));
	undraw(d);
	return is;
}

static void what_happens_in_another_process_explains_nothing(void **state)
{
	(void)state;
	assert_true(explains("1 warning blocking-call", "1 warning wake-latency"));
	assert_false(explains("0 warning blocking-call", "1 warning wake-latency"));
}

static void what_happens_on_another_loop_explains_nothing(void **state)
{
	(void)state;
	assert_true(explains("0 warning blocking-call loop 3", "0 warning timer-late loop 3"));
	assert_false(explains("0 warning blocking-call loop 4", "0 warning timer-late loop 3"));
	/* Where one of the two is not known it does. */
	assert_true(explains("0 warning blocking-call", "0 warning timer-late loop 3"));
	assert_true(explains("0 warning blocking-call loop 4", "0 warning timer-late"));
	/* A pool is every loop's. */
	assert_true(explains("0 warning pool-exhausted loop 4", "0 warning timer-late loop 3"));
}

static void a_loop_that_lacks_a_cpu_does_not_ask_for_nothing(void **state)
{
	(void)state;
	assert_true(explains("0 warning timer-storm", "0 warning futile-wakeups"));
	assert_false(explains("0 warning kernel-scheduling-delay", "0 warning futile-wakeups"));
	assert_false(explains("0 warning cpu-throttled", "0 warning futile-wakeups"));
}

static void a_full_loop_is_not_explained_by_the_want_of_a_cpu(void **state)
{
	(void)state;
	assert_true(explains("0 warning long-callback loop 3", "0 warning loop-saturated loop 3"));
	assert_false(explains("0 warning kernel-scheduling-delay loop 3",
			      "0 warning loop-saturated loop 3"));
	/* A quota is all that it may have. */
	assert_true(explains("0 warning cpu-throttled", "0 warning loop-saturated loop 3"));
}

static void a_wait_for_room_is_explained_by_its_pool_alone(void **state)
{
	const char *waits = "0 warning blocking-call pool 1";

	(void)state;
	assert_true(explains("0 warning pool-exhausted pool 1", waits));
	assert_false(explains("0 warning pool-exhausted pool 2", waits));
	assert_false(explains("0 warning pool-exhausted", waits));
	assert_false(explains("0 warning lock-contention", waits));
}

static void a_full_loop_is_explained_by_a_quarter_of_what_fills_it(void **state)
{
	(void)state;
	becomes("0 warning long-callback loop 3 cost 100 waiting 9\n"
		"0 warning loop-saturated loop 3 cost 400 waiting 10",
		"warning long-callback in 1 of 1\n"
		"warning loop-saturated in 1 of 1, explained by 0\n");
	becomes("0 warning long-callback loop 3 cost 100 waiting 9\n"
		"0 warning loop-saturated loop 3 cost 404 waiting 10",
		"warning loop-saturated in 1 of 1\n"
		"warning long-callback in 1 of 1\n");
	becomes("0 warning long-callback loop 4 cost 100 waiting 9\n"
		"0 warning loop-saturated loop 3 cost 400 waiting 10",
		"warning loop-saturated in 1 of 1\n"
		"warning long-callback in 1 of 1\n");
	/* A kind of task fills whichever loop runs it. */
	becomes("0 warning self-wake kind 5 cost 100 waiting 9\n"
		"0 warning loop-saturated loop 3 cost 400 waiting 10",
		"warning self-wake in 1 of 1\n"
		"warning loop-saturated in 1 of 1, explained by 0\n");
}

static void a_note_or_a_symptom_explains_nothing(void **state)
{
	(void)state;
	assert_false(explains("0 info blocking-call", "0 warning wake-latency"));
	assert_false(explains("0 warning timer-late", "0 warning wake-latency"));
	/* Nor does a cause explain a cause, but a quota the want of a CPU. */
	assert_false(explains("0 warning blocking-call", "0 warning lock-contention"));
	assert_false(explains("0 warning blocking-call", "0 warning kernel-scheduling-delay"));
	assert_true(explains("0 warning cpu-throttled", "0 warning kernel-scheduling-delay"));
}

/* ----------------------------------------------------------------------- the order */

static void a_critical_finding_stands_above_a_warning_and_that_above_a_note(void **state)
{
	(void)state;
	becomes("0 info end at a waiting 900\n"
		"0 warning blocking-call at b waiting 800\n"
		"0 critical kernel-scheduling-delay waiting 20\n"
		"0 critical write-backlog\n",
		"critical kernel-scheduling-delay in 1 of 1\n"
		"critical write-backlog in 1 of 1, a condition\n"
		"warning blocking-call at b in 1 of 1\n"
		"info end at a in 1 of 1\n");
}

static void waiting_ranks_and_time_does_not(void **state)
{
	(void)state;
	becomes("0 warning blocking-call at a waiting 30 cost 500\n"
		"0 warning kernel-scheduling-delay waiting 31 cost 1\n"
		"0 warning long-callback at b waiting 32\n",
		"warning long-callback at b in 1 of 1\n"
		"warning kernel-scheduling-delay in 1 of 1\n"
		"warning blocking-call at a in 1 of 1\n");
}

static void what_nobody_waits_for_is_a_condition_behind_those_of_its_severity(void **state)
{
	(void)state;
	becomes("0 warning handle-leak at a cost 900\n"
		"0 warning blocking-call at b waiting 1\n",
		"warning blocking-call at b in 1 of 1\n"
		"warning handle-leak at a in 1 of 1, a condition\n");
	/* Conditions have no rank: causes first, in the order of the table. */
	becomes("0 warning downstream-wait at a cost 900\n"
		"0 warning handle-leak at b\n"
		"0 warning task-leak at c\n",
		"warning task-leak at c in 1 of 1, a condition\n"
		"warning handle-leak at b in 1 of 1, a condition\n"
		"warning downstream-wait at a in 1 of 1, a condition\n");
}

static void ends_and_hangs_come_first_whatever_waited(void **state)
{
	(void)state;
	becomes("0 critical blocking-call at a waiting 900\n"
		"0 critical hang at b\n"
		"0 critical crash at c\n",
		"critical crash at c in 1 of 1\n"
		"critical hang at b in 1 of 1\n"
		"critical blocking-call at a in 1 of 1\n");
	/* A crash that the program survived is a note. */
	becomes("0 warning blocking-call at a waiting 900\n"
		"0 info crash at c\n",
		"warning blocking-call at a in 1 of 1\n"
		"info crash at c in 1 of 1, a condition\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happens_in_another_process_explains_nothing),
		cmocka_unit_test(what_happens_on_another_loop_explains_nothing),
		cmocka_unit_test(a_loop_that_lacks_a_cpu_does_not_ask_for_nothing),
		cmocka_unit_test(a_full_loop_is_not_explained_by_the_want_of_a_cpu),
		cmocka_unit_test(a_wait_for_room_is_explained_by_its_pool_alone),
		cmocka_unit_test(a_full_loop_is_explained_by_a_quarter_of_what_fills_it),
		cmocka_unit_test(a_note_or_a_symptom_explains_nothing),
		cmocka_unit_test(a_critical_finding_stands_above_a_warning_and_that_above_a_note),
		cmocka_unit_test(waiting_ranks_and_time_does_not),
		cmocka_unit_test(what_nobody_waits_for_is_a_condition_behind_those_of_its_severity),
		cmocka_unit_test(ends_and_hangs_come_first_whatever_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
