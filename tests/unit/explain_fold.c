/* Which finding explains which (explain/fold.c): each condition on both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "explain/rules.h"

#define CAUSE(name) \
	.rule = name, .severity = TACHO__SEVERITY_WARNING, .cost_ns = 100, .rank_ns = 100
#define SYMPTOM(name) \
	.rule = name, .severity = TACHO__SEVERITY_WARNING, .cost_ns = 50, .rank_ns = 50

/* Whether the first explains the second. */
static int explains(struct tacho__finding cause, struct tacho__finding symptom)
{
	struct tacho__finding findings[2] = {cause, symptom};
	struct tacho__explained processes[2] = {{.events = 1}, {.events = 1}};
	struct tacho__explanation out = {
		.findings = findings, .count = 2, .processes = processes, .process_count = 2};
	struct tacho__explaining x = {.out = &out};

	findings[0].folded_into = findings[1].folded_into = -1;
	tacho__fold(&x);
	/* What is folded stands behind what it is folded into. */
	if (findings[1].folded_into == 0)
		assert_string_equal(findings[1].rule, symptom.rule);
	return findings[1].folded_into == 0;
}

static void what_happens_in_another_process_explains_nothing(void **state)
{
	(void)state;
	assert_true(explains((struct tacho__finding){CAUSE("blocking-call"), .process = 1},
			     (struct tacho__finding){SYMPTOM("wake-latency"), .process = 1}));
	assert_false(explains((struct tacho__finding){CAUSE("blocking-call"), .process = 0},
			      (struct tacho__finding){SYMPTOM("wake-latency"), .process = 1}));
}

static void what_happens_on_another_loop_explains_nothing(void **state)
{
	(void)state;
	assert_true(explains((struct tacho__finding){CAUSE("blocking-call"), .loop = 3},
			     (struct tacho__finding){SYMPTOM("timer-late"), .loop = 3}));
	assert_false(explains((struct tacho__finding){CAUSE("blocking-call"), .loop = 4},
			      (struct tacho__finding){SYMPTOM("timer-late"), .loop = 3}));
	/* Where one of the two is not known it does. */
	assert_true(explains((struct tacho__finding){CAUSE("blocking-call")},
			     (struct tacho__finding){SYMPTOM("timer-late"), .loop = 3}));
	assert_true(explains((struct tacho__finding){CAUSE("blocking-call"), .loop = 4},
			     (struct tacho__finding){SYMPTOM("timer-late")}));
	/* A pool is every loop's. */
	assert_true(explains((struct tacho__finding){CAUSE("pool-exhausted"), .loop = 4},
			     (struct tacho__finding){SYMPTOM("timer-late"), .loop = 3}));
}

static void a_loop_that_lacks_a_cpu_does_not_ask_for_nothing(void **state)
{
	(void)state;
	assert_true(explains((struct tacho__finding){CAUSE("timer-storm")},
			     (struct tacho__finding){SYMPTOM("futile-wakeups")}));
	assert_false(explains((struct tacho__finding){CAUSE("kernel-scheduling-delay")},
			      (struct tacho__finding){SYMPTOM("futile-wakeups")}));
	assert_false(explains((struct tacho__finding){CAUSE("cpu-throttled")},
			      (struct tacho__finding){SYMPTOM("futile-wakeups")}));
}

static void a_wait_for_room_is_explained_by_its_pool_alone(void **state)
{
	struct tacho__finding waits = {SYMPTOM("blocking-call"), .pool = 1};

	(void)state;
	assert_true(explains((struct tacho__finding){CAUSE("pool-exhausted"), .pool = 1}, waits));
	assert_false(explains((struct tacho__finding){CAUSE("pool-exhausted"), .pool = 2}, waits));
	assert_false(explains((struct tacho__finding){CAUSE("pool-exhausted")}, waits));
	assert_false(explains((struct tacho__finding){CAUSE("lock-contention")}, waits));
}

static void a_full_loop_is_explained_by_half_of_what_fills_it(void **state)
{
	struct tacho__finding cause = {CAUSE("long-callback"), .loop = 3};
	struct tacho__finding full = {SYMPTOM("loop-saturated"), .loop = 3};

	(void)state;
	full.cost_ns = 200;
	assert_true(explains(cause, full));
	full.cost_ns = 202;
	assert_false(explains(cause, full));
	full.cost_ns = 200;
	cause.loop = 4;
	assert_false(explains(cause, full));
}

static void a_note_or_a_symptom_explains_nothing(void **state)
{
	struct tacho__finding note = {CAUSE("blocking-call")};

	(void)state;
	note.severity = TACHO__SEVERITY_INFO;
	assert_false(explains(note, (struct tacho__finding){SYMPTOM("wake-latency")}));
	assert_false(explains((struct tacho__finding){CAUSE("timer-late")},
			      (struct tacho__finding){SYMPTOM("wake-latency")}));
	/* Nor does a cause explain a cause, but a quota the want of a CPU. */
	assert_false(explains((struct tacho__finding){CAUSE("blocking-call")},
			      (struct tacho__finding){SYMPTOM("lock-contention")}));
	assert_false(explains((struct tacho__finding){CAUSE("blocking-call")},
			      (struct tacho__finding){SYMPTOM("kernel-scheduling-delay")}));
	assert_true(explains((struct tacho__finding){CAUSE("cpu-throttled")},
			     (struct tacho__finding){SYMPTOM("kernel-scheduling-delay")}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happens_in_another_process_explains_nothing),
		cmocka_unit_test(what_happens_on_another_loop_explains_nothing),
		cmocka_unit_test(a_loop_that_lacks_a_cpu_does_not_ask_for_nothing),
		cmocka_unit_test(a_wait_for_room_is_explained_by_its_pool_alone),
		cmocka_unit_test(a_full_loop_is_explained_by_half_of_what_fills_it),
		cmocka_unit_test(a_note_or_a_symptom_explains_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
