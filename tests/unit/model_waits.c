/* From records to tasks, wakes, locks, calls, work, samples, switches and counters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model_help.h"

/* -------------------------------------------------------------- wakes, tasks */

static void a_wake_leads_to_the_next_poll_of_its_task(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__poll *p;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, WAKE, 0, 2);
	PUT(&m, 21, WAKE, 0, 2);
	PUT(&m, 22, WAKE, 0, 1); /* itself */
	PUT(&m, 30, POLL_END, 1);
	PUT(&m, 40, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 41, POLL_END, 1);
	PUT(&m, 80, WAKE, 0, 3);
	trace_stream(&m, 2, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 50, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 60, POLL_END, 1);
	PUT(&m, 70, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 75, POLL_END, 1);
	f = trace_facts(&m);

	assert_int_equal(f->wake_count, 3);
	assert_int_equal(f->wakes[0].task, 1);
	assert_int_equal(f->wakes[0].self, 1);
	assert_int_equal(f->wakes[0].begin_ns, T0 + 40);
	assert_int_equal(f->wakes[1].task, 2);
	assert_int_equal(f->wakes[1].ns, T0 + 20);
	assert_int_equal(f->wakes[1].begin_ns, T0 + 50);
	assert_int_equal(f->wakes[1].again, 1);
	assert_int_equal(f->wakes[1].self, 0);
	assert_int_equal(f->wakes[1].thread, 2);
	assert_int_equal(f->wakes[1].kind, KIND_B);
	assert_int_equal(f->wakes[1].at.thread, 1);
	assert_int_equal(f->wakes[1].at.kind, KIND_A);
	assert_int_equal(f->wakes[2].task, 3);
	assert_int_equal(f->wakes[2].begin_ns, 0);
	assert_int_equal(f->wakes[2].lost, 0);
	p = poll_at(f, 50, 60);
	assert_int_equal(p->wake_ns, T0 + 20);
	assert_int_equal(p->waker, 1);
	assert_int_equal(p->wakes, 2);
	assert_int_equal(poll_at(f, 70, 75)->wake_ns, 0);
	assert_int_equal(task_of(f, 2)->polls, 2);
	assert_int_equal(task_of(f, 2)->busy_ns, 15);
	assert_int_equal(task_of(f, 2)->wakes, 2);
	assert_int_equal(task_of(f, 2)->waited_ns, 30);
	assert_int_equal(task_of(f, 1)->self_wakes, 1);
	assert_int_equal(task_of(f, 3)->woken_ns, T0 + 80);
	free(f);
}

/* The poll was among the missing records: the one after them is another's. */
static void a_wake_before_a_hole_tells_nothing_of_the_poll_after_it(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 10, WAKE, 0, 2);
	PUT(&m, 11, WAKE, 0, 3);
	PUT(&m, 12, WAKE, 0, 4);
	PUT(&m, 900 * MS, WAKE, 0, 3);
	trace_stream(&m, 2, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	trace_hole(&m, 2, 0, 5);
	PUT(&m, 800 * MS, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 801 * MS, POLL_END, 1);
	PUT(&m, 901 * MS, POLL_BEGIN, KIND_B, 3);
	PUT(&m, 902 * MS, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(poll_at(f, 800 * MS, 801 * MS)->wake_ns, 0);
	assert_int_equal(poll_at(f, 901 * MS, 902 * MS)->wake_ns, T0 + 900 * MS);
	assert_int_equal(f->wake_count, 4);
	for (uint32_t i = 0; i < f->wake_count; i++) {
		int after = f->wakes[i].ns == T0 + 900 * MS;

		assert_int_equal(f->wakes[i].lost, !after);
		assert_int_equal(f->wakes[i].begin_ns, after ? T0 + 901 * MS : 0);
		assert_int_equal(f->wakes[i].again, 0);
	}
	assert_int_equal(task_of(f, 4)->lost, 1); /* it may have run, and waits for nothing */
	assert_int_equal(task_of(f, 3)->lost, 0);
	free(f);
}

/* Streams begin at different times where old records were overwritten. */
static void a_thread_of_which_no_begin_is_known_hides_no_polls(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, WAKE, 0, 2);
	trace_stream(&m, 2, 0);
	PUT(&m, 800 * MS, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 801 * MS, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_not_equal(f->polls[0].wake_ns, 0);
	assert_int_equal(f->wakes[0].lost, 0);
	free(f);
}

/* The wake of task 2 is followed by a poll of another thread, which began at `start`. */
static struct facts *first_records_of(uint64_t start, uint64_t first)
{
	const struct tacho_box_thread threads[] = {
		{.state = TACHO_THREAD_LIVE, .number = 1, .start_ticks = T0},
		{.state = TACHO_THREAD_LIVE, .number = 2, .start_ticks = T0 + start}};
	struct trace m;

	trace_begin(&m);
	trace_threads(&m, threads, 2);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, WAKE, 0, 2);
	trace_stream(&m, 2, 0);
	PUT(&m, first, POLL_BEGIN, KIND_B, 2);
	PUT(&m, first + MS, POLL_END, 1);
	return trace_facts(&m);
}

static void a_thread_whose_records_begin_long_after_it_hides_polls(void **state)
{
	struct facts *f = first_records_of(5, 1050 * MS);

	(void)state;
	/* Polls of a second may be missing. */
	assert_int_equal(f->polls[0].wake_ns, 0);
	assert_int_equal(f->wakes[0].lost, 1);
	free(f);
	/* A thread may well do something else first. */
	f = first_records_of(5, 980 * MS);
	assert_int_equal(f->polls[0].wake_ns, T0 + 10);
	assert_int_equal(f->wakes[0].lost, 0);
	free(f);
	f = first_records_of(2020 * MS, 3000 * MS);
	assert_int_equal(f->polls[0].wake_ns, T0 + 10);
	assert_int_equal(f->wakes[0].lost, 0);
	free(f);
}

static void a_number_that_is_used_again_is_another_task(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, SPAWN, KIND_A, PLACE, 5, 4);
	PUT(&m, 20, POLL_BEGIN, KIND_A, 5);
	PUT(&m, 30, POLL_END, 2); /* done; nothing more of this thread until much later */
	PUT(&m, 900, LOOP, LOOP_3);
	trace_stream(&m, 2, 0);
	PUT(&m, 40, SPAWN, KIND_B, PLACE, 5, 0);
	PUT(&m, 50, POLL_BEGIN, KIND_B, 5);
	PUT(&m, 60, POLL_END, 1);
	PUT(&m, 70, SPAWN, KIND_B, PLACE, 5, 0); /* its end was not recorded */
	PUT(&m, 80, TASK_END, 0, 5);
	f = trace_facts(&m);
	assert_int_equal(f->task_count, 3);
	assert_int_equal(f->tasks[0].kind, KIND_A);
	assert_int_equal(f->tasks[0].parent, 4);
	assert_int_equal(f->tasks[0].place, PLACE);
	assert_int_equal(f->tasks[0].spawn_ns, T0 + 10);
	assert_int_equal(f->tasks[0].first_ns, T0 + 20);
	assert_int_equal(f->tasks[0].end_ns, T0 + 30);
	assert_int_equal(f->tasks[0].polls, 1);
	assert_int_equal(f->tasks[1].kind, KIND_B);
	assert_int_equal(f->tasks[1].polls, 1);
	assert_int_equal(f->tasks[1].end_ns, 0);
	assert_int_equal(f->tasks[1].last_ns, T0 + 60);
	assert_int_equal(f->tasks[2].spawn_ns, T0 + 70);
	assert_int_equal(f->tasks[2].end_ns, T0 + 80);
	assert_int_equal(f->tasks[2].polls, 0);
	assert_int_equal(poll_at(f, 20, 30)->first, 1);
	assert_int_equal(poll_at(f, 50, 60)->first, 1);
	free(f);
}

static void a_handle_is_of_the_kind_that_takes_longest(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_B, 5);
	PUT(&m, 11, POLL_END, 0);
	PUT(&m, 20, POLL_BEGIN, KIND_A, 5);
	PUT(&m, 30, POLL_END, 0);
	PUT(&m, 40, POLL_BEGIN, KIND_B, 5);
	PUT(&m, 41, POLL_END, 0);
	f = trace_facts(&m);
	assert_int_equal(f->task_count, 1);
	assert_int_equal(f->tasks[0].kind, KIND_A);
	free(f);
}

static void a_task_that_moves_between_threads_is_one(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 5);
	PUT(&m, 20, POLL_END, 1);
	PUT(&m, 40, LOOP, LOOP_3); /* only now the poll of before is given */
	trace_stream(&m, 2, 0);
	PUT(&m, 30, POLL_BEGIN, KIND_A, 5);
	f = trace_facts(&m);
	assert_int_equal(f->task_count, 1);
	assert_int_equal(f->tasks[0].running, 1);
	assert_int_equal(f->tasks[0].polls, 2);
	assert_int_equal(f->tasks[0].first_ns, T0 + 10);
	assert_int_equal(f->tasks[0].busy_ns, 20);
	free(f);
}

/* Its place is another's by the time its poll ends. */
static void a_poll_that_outlives_its_task_counts_for_nobody(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 5);
	PUT(&m, 20, TASK_END, 0, 5);
	PUT(&m, 30, WAKE, 0, 6);
	PUT(&m, 40, POLL_END, 2);
	f = trace_facts(&m);
	assert_int_equal(f->task_count, 2);
	assert_int_equal(task_of(f, 5)->end_ns, T0 + 20);
	assert_int_equal(task_of(f, 5)->polls, 0);
	assert_int_equal(task_of(f, 6)->polls, 0);
	assert_int_equal(task_of(f, 6)->end_ns, 0);
	free(f);
}

/* -------------------------------------------------------------------- locks */

static void a_lock_is_known_by_who_released_it(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__lock *l;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, LOCK_WAIT, PLACE, 0x10);
	PUT(&m, 50, LOCK_WAITED, 1, 0x10);
	PUT(&m, 51, STACK, 99, 0x10);
	PUT(&m, 60, LOCK_WAIT, PLACE, 0x20);
	PUT(&m, 70, LOCK_WAITED, 0, 0x20); /* gave up */
	PUT(&m, 71, STACK, 98, 0x21);	   /* of another one */
	PUT(&m, 75, LOCK_WAITED, 1, 0x30); /* its begin was not seen */
	PUT(&m, 80, POLL_END, 1);
	PUT(&m, 85, LOCK_WAIT, PLACE, 0x10);
	PUT(&m, 86, LOCK_WAITED, 3, 0x10); /* a semaphore; released before it waited */
	PUT(&m, 90, LOCK_WAIT, 0, 0x40);
	trace_stream(&m, 2, 0);
	PUT(&m, 15, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 45, LOCK_RELEASE, PLACE, 0x10, 1);
	PUT(&m, 65, LOCK_RELEASE, PLACE, 0x20, 1);
	PUT(&m, 95, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->lock_count, 4);
	l = &f->locks[0];
	assert_int_equal(l->lock, 0x10);
	assert_int_equal(l->begin_ns, T0 + 20);
	assert_int_equal(l->end_ns, T0 + 50);
	assert_int_equal(l->got, 1);
	assert_int_equal(l->is_signal, 0);
	assert_int_equal(l->stack, 99);
	assert_int_equal(l->place, PLACE);
	assert_int_equal(l->at.task, 1);
	assert_int_equal(l->release_ns, T0 + 45);
	assert_int_equal(l->release_place, PLACE);
	assert_int_equal(l->releaser.thread, 2);
	assert_int_equal(l->releaser.kind, KIND_B);
	l = &f->locks[1];
	assert_int_equal(l->lock, 0x20);
	assert_int_equal(l->got, 0);
	assert_int_equal(l->release_ns, 0);
	assert_int_equal(l->stack, 0);
	l = &f->locks[2];
	assert_int_equal(l->is_signal, 1);
	assert_int_equal(l->release_ns, 0);
	assert_int_equal(l->at.poll_ns, 0);
	l = &f->locks[3];
	assert_int_equal(l->lock, 0x40);
	assert_int_equal(l->cut, TACHO__CUT_END);
	assert_int_equal(l->end_ns, T0 + 95);
	assert_int_equal(poll_at(f, 10, 80)->spent.lock_ns, 40);
	assert_int_equal(poll_at(f, 10, 80)->spent.locks, 2);
	free(f);
}

/* -------------------------------------------------------------- calls, pools */

static void calls_end_where_they_are_recorded(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__call *c;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 100, CALL, NAME, 44, 30, 7, 9ull | 11ull << 32 | 5ull << 48);
	PUT(&m, 110, CALL, NAME, 0, UINT64_MAX, UINT64_MAX, 0); /* longer than time itself */
	PUT(&m, 120, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->call_count, 2);
	c = &f->calls[0];
	assert_int_equal(c->begin_ns, T0 + 70);
	assert_int_equal(c->end_ns, T0 + 100);
	assert_int_equal(c->name, NAME);
	assert_int_equal(c->stack, 44);
	assert_int_equal(c->fd, 7);
	assert_int_equal(c->path, 9);
	assert_int_equal(c->error, 11);
	assert_int_equal(c->fd_kind, TACHO_DESCRIPTOR_TCP);
	assert_int_equal(c->at.kind, KIND_A);
	assert_int_equal(f->calls[1].fd, -1);
	assert_true(f->calls[1].begin_ns <= f->calls[1].end_ns);
	assert_int_equal(f->polls[0].spent.calls, 2);
	assert_int_equal(f->polls[0].spent.call_ns, 30 + T0 + 110);
	free(f);
}

/* What is ahead of a work in its pool: what waits, and what a thread has begun. */
static void work_knows_what_is_ahead_of_it(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, WORK_SUBMIT, KIND_B, 0x100);
	PUT(&m, 11, WORK_SUBMIT, KIND_B, 0x200);
	PUT(&m, 30, WORK_SUBMIT, KIND_B, 0x300); /* one runs, one waits */
	PUT(&m, 50, WORK_SUBMIT, KIND_B, 0x400); /* only that one waits */
	PUT(&m, 60, POLL_BEGIN, KIND_A, 0x300);
	PUT(&m, 61, POLL_END, 1);
	PUT(&m, 70, POLL_BEGIN, KIND_A, 0x400);
	PUT(&m, 71, POLL_END, 1);
	PUT(&m, 80, WORK_SUBMIT, KIND_B, 0x500);
	PUT(&m, 90, POLL_BEGIN, KIND_A, 0x500);
	trace_stream(&m, 2, 0);
	PUT(&m, 20, WORK_BEGIN, KIND_B, 0x100);
	PUT(&m, 40, WORK_END, 0, 0x100);
	PUT(&m, 55, WORK_BEGIN, KIND_B, 0x200);
	PUT(&m, 75, WORK_END, 0, 0x200);
	f = trace_facts(&m);
	assert_int_equal(f->work_count, 5);
	assert_int_equal(f->works[0].work, 0x100);
	assert_int_equal(f->works[0].ahead, 0);
	assert_int_equal(f->works[1].work, 0x300);
	assert_int_equal(f->works[1].ahead, 2);
	assert_int_equal(f->works[1].waiting, 1);
	assert_int_equal(f->works[2].work, 0x400);
	assert_int_equal(f->works[2].ahead, 2);
	assert_int_equal(f->works[3].work, 0x200);
	assert_int_equal(f->works[3].ahead, 1);
	assert_int_equal(f->works[4].work, 0x500);
	assert_int_equal(f->works[4].ahead, 0);
	free(f);
}

/* A callback that runs late says when its loop looked, not when the work was done. */
static void a_busy_loop_is_not_the_works_time(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_2);
	PUT(&m, 10 * MS, UNPARK, 1);
	PUT(&m, 11 * MS, WORK_SUBMIT, KIND_B, 0x100);
	PUT(&m, 12 * MS, WORK_SUBMIT, KIND_B, 0x200);
	PUT(&m, 80 * MS, PARK, LOOP_2); /* it was busy until now, and does not wait */
	PUT(&m, 80 * MS + 1000, UNPARK, 1);
	PUT(&m, 90 * MS, POLL_BEGIN, KIND_A, 0x100);
	PUT(&m, 91 * MS, POLL_END, 1);
	PUT(&m, 92 * MS, PARK, LOOP_2);
	PUT(&m, 95 * MS, UNPARK, 1); /* it has waited: the work was not done before */
	PUT(&m, 99 * MS, POLL_BEGIN, KIND_A, 0x200);
	f = trace_facts(&m);
	assert_int_equal(f->work_count, 2);
	assert_int_equal(f->works[0].done_ns, T0 + 11 * MS);
	assert_int_equal(f->works[0].end_ns, T0 + 90 * MS);
	assert_int_equal(f->works[1].done_ns, T0 + 95 * MS);
	assert_int_equal(f->works[1].end_ns, T0 + 99 * MS);
	free(f);
}

static void work_waits_for_a_thread_of_the_pool(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 11, WORK_SUBMIT, KIND_B, 0x100);
	PUT(&m, 12, WORK_SUBMIT, KIND_B, 0x200);
	PUT(&m, 13, POLL_END, 1);
	PUT(&m, 50, WORK_SUBMIT, KIND_B, 0x300);
	PUT(&m, 60, POLL_BEGIN, KIND_A, 0x300); /* its callback: that is all that is seen */
	PUT(&m, 61, POLL_END, 1);
	PUT(&m, 70, WORK_SUBMIT, KIND_B, 0x400); /* the same number twice */
	PUT(&m, 71, WORK_SUBMIT, KIND_A, 0x400);
	PUT(&m, 72, WORK_SUBMIT, KIND_A, 0x500);
	trace_stream(&m, 2, 0);
	PUT(&m, 20, WORK_BEGIN, KIND_B, 0x100);
	PUT(&m, 30, WORK_END, 0, 0x100);
	PUT(&m, 31, WORK_BEGIN, KIND_B, 0x200);
	PUT(&m, 40, WORK_END, 0, 0x200);
	PUT(&m, 41, WORK_END, 0, 0x999); /* of which nothing is known */
	f = trace_facts(&m);
	assert_int_equal(f->work_count, 7);
	assert_int_equal(f->works[0].work, 0x100);
	assert_int_equal(f->works[0].submit_ns, T0 + 11);
	assert_int_equal(f->works[0].begin_ns, T0 + 20);
	assert_int_equal(f->works[0].end_ns, T0 + 30);
	assert_int_equal(f->works[0].submitter, 1);
	assert_int_equal(f->works[0].worker, 2);
	assert_int_equal(f->works[0].submit_kind, KIND_A);
	assert_int_equal(f->works[0].kind, KIND_B);
	assert_int_equal(f->works[0].waiting, 0);
	assert_int_equal(f->works[1].work, 0x200);
	assert_int_equal(f->works[1].waiting, 1);
	assert_int_equal(f->works[2].work, 0x999);
	assert_int_equal(f->works[2].submit_ns, 0);
	assert_int_equal(f->works[3].work, 0x300);
	assert_int_equal(f->works[3].begin_ns, 0);
	assert_int_equal(f->works[3].end_ns, T0 + 60);
	assert_int_equal(f->works[3].waiting, 0);
	assert_int_equal(f->works[4].work, 0x400);
	assert_int_equal(f->works[4].kind, KIND_B);
	assert_int_equal(f->works[4].begin_ns, 0);
	/* What is left comes in no order. The first of that number does not count any more. */
	for (uint32_t i = 5; i < 7; i++) {
		assert_int_equal(f->works[i].kind, KIND_A);
		assert_int_equal(f->works[i].waiting, f->works[i].work == 0x500);
		assert_int_equal(f->works[i].begin_ns, 0);
	}
	assert_int_not_equal(f->works[5].work, f->works[6].work);
	free(f);
}

/* ------------------------------------------------------------ what runs, what not */

static void samples_and_switches_belong_to_what_runs(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 15, SAMPLE, 55, 1000); /* of its own timer: from then on perf says the same */
	PUT(&m, 60, POLL_END, 1);
	PUT(&m, 70, PARK, LOOP_3);
	PUT(&m, 90, UNPARK, 0);
	PUT(&m, 95, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 99, POLL_END, 1);
	trace_stream(&m, 1, TACHO_STREAM_KERNEL);
	PUT(&m, 20, KERNEL_SAMPLE, 1, 0, 500, 0xffff, 0x10, 0x20);
	PUT(&m, 30, SWITCH_OUT, 1);
	PUT(&m, 40, SWITCH_IN, 3);
	PUT(&m, 45, SWITCH_OUT, 0);
	PUT(&m, 50, SWITCH_IN, 2);
	PUT(&m, 75, SWITCH_OUT, 0);
	PUT(&m, 85, SWITCH_IN, 2);
	PUT(&m, 96, SWITCH_OUT, 1);
	trace_hole(&m, 1, TACHO_STREAM_KERNEL, 4);
	PUT(&m, 900, SWITCH_IN, 1); /* of another time off the CPU */
	PUT(&m, 910, SWITCH_OUT, 0);
	f = trace_facts(&m);
	assert_int_equal(f->sample_count, 2);
	assert_int_equal(f->samples[0].stack, 55);
	assert_int_equal(f->samples[0].perf, 0);
	assert_int_equal(f->samples[1].perf, 1);
	assert_int_equal(f->samples[1].kernel, 1);
	assert_int_equal(f->samples[1].count, 3);
	assert_int_equal(f->samples[1].cpu_ns, 500);
	assert_int_equal(f->samples[1].at.kind, KIND_A);
	assert_int_equal(f->off_count, 5);
	assert_int_equal(f->offs[0].runnable, 1);
	assert_int_equal(f->offs[0].begin_ns, T0 + 30);
	assert_int_equal(f->offs[0].end_ns, T0 + 40);
	assert_int_equal(f->offs[0].cpu, 3);
	assert_int_equal(f->offs[0].parked, 0);
	assert_int_equal(f->offs[1].runnable, 0);
	assert_int_equal(f->offs[2].parked, 1);
	assert_int_equal(f->offs[3].begin_ns, T0 + 96);
	assert_int_equal(f->offs[3].end_ns, T0 + 96); /* nobody knows until when */
	assert_int_equal(f->offs[3].cut, TACHO__CUT_END);
	assert_int_equal(f->offs[4].begin_ns, T0 + 910);
	assert_int_equal(f->offs[4].cut, TACHO__CUT_END);
	assert_int_equal(f->hole_count, 1);
	assert_int_equal(f->holes[0].from_ns, T0 + 96);
	assert_int_equal(f->holes[0].missing, 4);
	/* A hole in what the kernel says cuts nothing of the thread's own. */
	assert_int_equal(poll_at(f, 95, 99)->cut, 0);
	assert_int_equal(poll_at(f, 10, 60)->spent.off_cpu_ns, 15);
	assert_int_equal(poll_at(f, 10, 60)->spent.preempted_ns, 10);
	assert_int_equal(poll_at(f, 10, 60)->spent.sample_ns, 1500);
	free(f);
}

static void counters_depths_and_readiness_come_as_they_are(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 5, PARK, LOOP_2);
	PUT(&m, 6, UNPARK, 1);
	PUT(&m, 7, READY, 5, 9);
	PUT(&m, 10, COUNTER, COUNTER, 42);
	PUT(&m, 11, QUEUE_DEPTH, LOOP_2, 3);
	PUT(&m, 12, LOG, 3, 2, 0x6968);
	f = trace_facts(&m);
	assert_int_equal(f->counter_count, 2);
	assert_int_equal(f->counters[0].name, COUNTER);
	assert_int_equal(f->counters[0].value, 42);
	assert_int_equal(f->counters[0].depth, 0);
	assert_int_equal(f->counters[1].name, LOOP_2);
	assert_int_equal(f->counters[1].depth, 1);
	assert_int_equal(f->ready_count, 1);
	assert_int_equal(f->readies[0].what, 9);
	assert_int_equal(f->readies[0].at.loop, LOOP_2);
	assert_int_equal(f->other_count, 1);
	free(f);
}

/* Whether work was done before a wait that took so long. */
static int was_done_before(uint64_t wait_ns)
{
	struct trace m;
	struct facts *f;
	int before;

	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_2);
	PUT(&m, 10 * MS, UNPARK, 1);
	PUT(&m, 11 * MS, WORK_SUBMIT, KIND_B, 0x100);
	PUT(&m, 80 * MS, PARK, LOOP_2);
	PUT(&m, 80 * MS + wait_ns, UNPARK, 1);
	PUT(&m, 90 * MS, POLL_BEGIN, KIND_A, 0x100);
	f = trace_facts(&m);
	before = f->works[0].done_ns == T0 + 11 * MS;
	free(f);
	return before;
}

static void a_wait_that_returns_soon_had_something_to_return(void **state)
{
	(void)state;
	assert_true(was_done_before(48000));
	assert_false(was_done_before(52000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_leads_to_the_next_poll_of_its_task),
		cmocka_unit_test(a_wake_before_a_hole_tells_nothing_of_the_poll_after_it),
		cmocka_unit_test(a_thread_of_which_no_begin_is_known_hides_no_polls),
		cmocka_unit_test(a_thread_whose_records_begin_long_after_it_hides_polls),
		cmocka_unit_test(a_number_that_is_used_again_is_another_task),
		cmocka_unit_test(a_handle_is_of_the_kind_that_takes_longest),
		cmocka_unit_test(a_task_that_moves_between_threads_is_one),
		cmocka_unit_test(a_poll_that_outlives_its_task_counts_for_nobody),
		cmocka_unit_test(a_lock_is_known_by_who_released_it),
		cmocka_unit_test(calls_end_where_they_are_recorded),
		cmocka_unit_test(work_waits_for_a_thread_of_the_pool),
		cmocka_unit_test(work_knows_what_is_ahead_of_it),
		cmocka_unit_test(a_busy_loop_is_not_the_works_time),
		cmocka_unit_test(samples_and_switches_belong_to_what_runs),
		cmocka_unit_test(counters_depths_and_readiness_come_as_they_are),
		cmocka_unit_test(a_wait_that_returns_soon_had_something_to_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
