/* What a record of the kernel's scheduling is about, and of which time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_help.h"

struct found {
	struct tacho__sched scheds[FACTS];
	struct tacho__step steps[FACTS]; /* that say of a delay */
	struct tacho__poll polls[FACTS];
	struct tacho__turn turns[FACTS];
	uint32_t sched_count, step_count, poll_count, turn_count;
	uint32_t polls_before; /* that were handed out before the first fact of the scheduler */
};

static void take_sched(void *arg, const struct tacho__sched *s)
{
	struct found *f = arg;

	assert_true(f->sched_count < FACTS);
	if (!f->sched_count)
		f->polls_before = f->poll_count;
	f->scheds[f->sched_count++] = *s;
}

static void take_step(void *arg, const struct tacho__step *s)
{
	struct found *f = arg;

	if (s->type < TACHO__STEP_DELAYED || s->type > TACHO__STEP_CALL_DELAYED)
		return;
	assert_true(f->step_count < FACTS);
	f->steps[f->step_count++] = *s;
}

static void take_a_poll(void *arg, const struct tacho__poll *p)
{
	struct found *f = arg;

	f->polls[f->poll_count++] = *p;
}

static void take_a_turn(void *arg, const struct tacho__turn *t)
{
	struct found *f = arg;

	f->turns[f->turn_count++] = *t;
}

static struct found found_in(struct trace *m)
{
	struct found f = {0};
	const struct tacho__facts want = {.arg = &f,
					  .sched = take_sched,
					  .step = take_step,
					  .poll = take_a_poll,
					  .turn = take_a_turn};
	struct tacho_reader *r = trace_reader(m);

	assert_int_equal(tacho__model_run(r, &want, NULL, NULL, NULL), 0);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
	tb_free(&m->t);
	return f;
}

/* Begin and end in ns after the beginning. */
static void expect_sched(const struct found *f, uint32_t i, unsigned subject, uint64_t begin,
			 uint64_t end, uint64_t runnable)
{
	const struct tacho__sched *s = &f->scheds[i];

	assert_true(i < f->sched_count);
	assert_int_equal(s->subject, subject);
	assert_int_equal(s->begin_ns, T0 + begin);
	assert_int_equal(s->end_ns, T0 + end);
	assert_int_equal(s->runnable_ns, runnable);
	assert_int_equal(s->at.thread, 1);
}

static void begin(struct trace *m)
{
	trace_begin(m);
	trace_stream(m, 1, 0);
}

static void a_record_says_what_it_is_about_wherever_it_stands(void **state)
{
	struct trace m;
	struct found f;

	(void)state;
	begin(&m);
	PUT(&m, 10, PARK, LOOP_2);
	PUT(&m, 20, UNPARK, 1);
	PUT(&m, 21, SCHED_INTERVAL, 0, TACHO_SCHED_WAIT, 6, T0 + 5, 0);
	PUT(&m, 30, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 40, CALL, NAME, 0, 5, UINT64_MAX, 0);
	PUT(&m, 41, SCHED_INTERVAL, 0, TACHO_SCHED_CALL, 3, T0 + 35, 0);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 51, SCHED_INTERVAL, 2, TACHO_SCHED_POLL, 7, T0 + 21, 5ull << 32 | 4);
	PUT(&m, 60, POLL_BEGIN, KIND_B, 1);
	PUT(&m, 70, POLL_END, 1);
	PUT(&m, 71, SCHED_INTERVAL, 0, TACHO_SCHED_ITERATION, 8, T0 + 51, 0);
	PUT(&m, 80, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 90, POLL_END, 1);
	f = found_in(&m);
	assert_int_equal(f.sched_count, 4);
	expect_sched(&f, 0, TACHO_SCHED_WAIT, 5, 21, 6);
	expect_sched(&f, 1, TACHO_SCHED_CALL, 35, 41, 3);
	assert_int_equal(f.scheds[1].at.kind, KIND_A);
	expect_sched(&f, 2, TACHO_SCHED_POLL, 21, 51, 7);
	assert_int_equal(f.scheds[2].involuntary, 2);
	assert_int_equal(f.scheds[2].minor_faults, 4);
	assert_int_equal(f.scheds[2].major_faults, 5);
	expect_sched(&f, 3, TACHO_SCHED_ITERATION, 51, 71, 8);
	assert_int_equal(f.polls_before, 0);
	/* What the account of the thread is told. */
	assert_int_equal(f.step_count, 4);
	assert_int_equal(f.steps[0].type, TACHO__STEP_WAIT_DELAYED);
	assert_int_equal(f.steps[1].type, TACHO__STEP_CALL_DELAYED);
	assert_int_equal(f.steps[2].type, TACHO__STEP_DELAYED);
	assert_int_equal(f.steps[2].faults, 5);
	assert_int_equal(f.steps[3].type, TACHO__STEP_TURN_DELAYED);
	/* The poll has what is its own, and not what the loop did before the next one. */
	assert_int_equal(f.poll_count, 3);
	assert_int_equal(f.polls[0].spent.delay_ns, 7);
	assert_int_equal(f.polls[0].spent.sched, 1);
	assert_int_equal(f.polls[1].spent.sched, 0);
	assert_int_equal(f.turns[0].delay_ns, 6);
}

/* Callbacks are not seen: the iteration stands as a poll. */
static void an_iteration_that_is_a_poll_has_its_delay(void **state)
{
	struct trace m;
	struct found f;

	(void)state;
	begin(&m);
	PUT(&m, 10, PARK, LOOP_1);
	PUT(&m, 20, UNPARK, 1);
	PUT(&m, 40, PARK, LOOP_1);
	PUT(&m, 41, SCHED_INTERVAL, 0, TACHO_SCHED_ITERATION, 9, T0 + 20, 0);
	PUT(&m, 50, UNPARK, 1);
	f = found_in(&m);
	expect_sched(&f, 0, TACHO_SCHED_ITERATION, 20, 41, 9);
	assert_int_equal(f.steps[0].type, TACHO__STEP_DELAYED);
	assert_int_equal(f.polls[0].kind, 0);
	assert_int_equal(f.polls[0].spent.delay_ns, 9);
}

/* A poll below the poll threshold is counted and not recorded; its delay is nobody else's. */
static void a_poll_that_is_not_recorded_gives_its_delay_to_no_other(void **state)
{
	struct trace m;
	struct found f;

	(void)state;
	begin(&m);
	PUT(&m, 10, PARK, LOOP_2);
	PUT(&m, 20, UNPARK, 1);
	PUT(&m, 40, SCHED_INTERVAL, 0, TACHO_SCHED_POLL, 9, T0 + 25, 0);
	PUT(&m, 50, PARK, LOOP_2);
	f = found_in(&m);
	expect_sched(&f, 0, TACHO_SCHED_POLL, 25, 40, 9);
	assert_int_equal(f.steps[0].type, TACHO__STEP_TURN_DELAYED);
	assert_int_equal(f.turns[0].delay_ns, 0);
}

static void an_interval_that_is_not_known_is_empty(void **state)
{
	struct trace m;
	struct found f;

	(void)state;
	begin(&m);
	PUT(&m, 10, WAKE, 0, 1);
	PUT(&m, 20, SCHED_INTERVAL, 0, TACHO_SCHED_WAIT, 6, 0, 0);
	PUT(&m, 30, SCHED_INTERVAL, 0, TACHO_SCHED_WAIT, 6, T0 + 31, 0);
	PUT(&m, 40, SCHED_INTERVAL, 0, 99, 6, T0 + 30, 0);
	f = found_in(&m);
	expect_sched(&f, 0, TACHO_SCHED_WAIT, 20, 20, 6);
	expect_sched(&f, 1, TACHO_SCHED_WAIT, 30, 30, 6);
	expect_sched(&f, 2, TACHO_SCHED_UNKNOWN, 30, 40, 6);
}

/* Old traces: the record before says it. */
static void an_old_record_is_about_what_was_recorded_right_before(void **state)
{
	struct trace m;
	struct found f;

	(void)state;
	begin(&m);
	PUT(&m, 5, SCHED, 0, 1, 0); /* of nothing that is known */
	PUT(&m, 10, PARK, LOOP_2);
	PUT(&m, 20, UNPARK, 1);
	PUT(&m, 21, SCHED, 0, 6, 0);
	PUT(&m, 30, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 40, CALL, NAME, 0, 5, UINT64_MAX, 0);
	PUT(&m, 41, SCHED, 0, 3, 0);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 51, SCHED, 2, 7, 5ull << 32 | 4);
	PUT(&m, 60, PARK, LOOP_2);
	PUT(&m, 61, SCHED, 0, 8, 0);
	PUT(&m, 70, PARK, LOOP_1);
	PUT(&m, 80, UNPARK, 1);
	PUT(&m, 90, PARK, LOOP_1);
	PUT(&m, 91, SCHED, 0, 9, 0);
	f = found_in(&m);
	assert_int_equal(f.sched_count, 6);
	expect_sched(&f, 0, TACHO_SCHED_UNKNOWN, 5, 5, 1);
	expect_sched(&f, 1, TACHO_SCHED_WAIT, 10, 21, 6);
	expect_sched(&f, 2, TACHO_SCHED_CALL, 35, 41, 3);
	expect_sched(&f, 3, TACHO_SCHED_POLL, 30, 51, 7);
	assert_int_equal(f.scheds[3].involuntary, 2);
	assert_int_equal(f.scheds[3].minor_faults, 4);
	assert_int_equal(f.scheds[3].major_faults, 5);
	expect_sched(&f, 4, TACHO_SCHED_ITERATION, 20, 61, 8);
	expect_sched(&f, 5, TACHO_SCHED_ITERATION, 80, 91, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_says_what_it_is_about_wherever_it_stands),
		cmocka_unit_test(an_iteration_that_is_a_poll_has_its_delay),
		cmocka_unit_test(a_poll_that_is_not_recorded_gives_its_delay_to_no_other),
		cmocka_unit_test(an_interval_that_is_not_known_is_empty),
		cmocka_unit_test(an_old_record_is_about_what_was_recorded_right_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
