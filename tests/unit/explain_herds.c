/* What the rule wake-storm says of tasks that are woken all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

#define US 1000u
#define TIMES 20u
#define ROUND (50 * MS)
#define WAKER 1000u
#define OTHER 1001u

static void poll(struct trace *m, uint64_t at, uint32_t kind, uint64_t task, uint64_t ns)
{
	PUT(m, at, POLL_BEGIN, kind, task);
	PUT(m, at + ns, POLL_END, TACHO_PENDING);
}

/* A poll wakes that many tasks, each of which runs for 50 us; another, if there is one, is woken
   after the first. */
static void round_of(struct trace *m, uint64_t at, uint32_t tasks, uint32_t other)
{
	PUT(m, at, UNPARK, 1);
	PUT(m, at + 1 * US, WAKE, 0, WAKER);
	PUT(m, at + 2 * US, POLL_BEGIN, KIND_B, WAKER);
	for (uint32_t i = 0; i < tasks; i++)
		PUT(m, at + 3 * US, WAKE, 0, 1 + i);
	PUT(m, at + 4 * US, POLL_END, TACHO_PENDING);
	at += 10 * US;
	for (uint32_t i = 0; i < tasks; i++, at += 50 * US) {
		poll(m, at, KIND_A, 1 + i, 49 * US);
		if (!i && other)
			PUT(m, at + 49 * US, WAKE, 0, OTHER);
	}
	if (other)
		poll(m, at, other, OTHER, 10 * US);
	PUT(m, at + 20 * US, PARK, LOOP_3);
}

static int has(const struct tacho__explanation *e, const char *rule)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0)
			return 1;
	return 0;
}

/* Whether others are said to wait for them; that the last of them waits for the rest is no news. */
static int storms(uint32_t tasks, uint32_t other)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct trace m;
	int error, found = 0;

	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_3);
	for (uint32_t i = 0; i < TIMES; i++) {
		trace_stream(&m, 1, 0); /* a stretch holds some thousand events */
		round_of(&m, (i + 1) * ROUND, tasks, other);
	}
	reader = trace_reader(&m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		if (f->rule != TACHO__RULE_WAKE_STORM)
			continue;
		found = 1;
		assert_non_null(
			strstr(f->summary, "kind b wakes up to 200 tasks at once (kind a)"));
		assert_string_equal(f->where[0].function, "kind a");
		/* From the wake of the other to its poll, but for the last of the tasks' polls. */
		assert_in_range((uint64_t)f->waiting_ns, TIMES * 9 * MS, TIMES * 10 * MS);
	}
	assert_int_equal(has(e, "wake-latency"), other && tasks == 200);
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
	return found;
}

static void others_wait_until_all_that_were_woken_at_once_have_run(void **state)
{
	(void)state;
	assert_true(storms(200, KIND_B));
}

static void what_nobody_else_waits_for_or_few_are_woken_by_is_no_storm(void **state)
{
	(void)state;
	assert_false(storms(200, KIND_A));
	assert_false(storms(200, 0));
	assert_false(storms(50, KIND_B));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_wait_until_all_that_were_woken_at_once_have_run),
		cmocka_unit_test(what_nobody_else_waits_for_or_few_are_woken_by_is_no_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
