/* What each thread was in where its process ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

#define SECOND (1000 * MS)
#define END (3 * SECOND)
#define SIGNAL_WAIT (1u << 23) /* argument of LOCK_OWNER */

struct listed {
	struct tacho_reader *reader;
	struct tacho__at_ends list;
	struct trace m;
};

static void end_process(struct trace *m, uint64_t how, uint64_t status)
{
	struct tb p = {0};

	trace_close(m);
	tb_meta_u64(&p, TACHO_META_STATE, TACHO_STATE_RECORDING);
	if (how)
		tb_meta_u64(&p, TACHO_META_END_HOW, how);
	tb_meta_u64(&p, TACHO_META_END_STATUS, status);
	tb_meta_u64(&p, TACHO_META_END_MONO, T0 + END);
	tb_plain(&m->t, TACHO_BLOCK_META, p.data, p.size);
	free(p.data);
}

/* Threads 1 to `count` are alive; thread n has the id 100 + n and the name "t<n>". */
static void begin(struct trace *m, uint32_t count)
{
	struct tacho_box_thread threads[16] = {0};

	trace_begin(m);
	for (uint32_t i = 0; i < count; i++) {
		threads[i].state = TACHO_THREAD_LIVE;
		threads[i].number = i + 1;
		threads[i].tid = 101 + i;
		threads[i].start_ticks = T0;
		threads[i].name[0] = 't';
		threads[i].name[1] = (char)('1' + i);
	}
	trace_threads(m, threads, count);
}

static void list(struct listed *x, uint64_t how)
{
	char text[TACHO__AT_END_TEXT];

	end_process(&x->m, how, 9);
	x->reader = trace_reader(&x->m);
	assert_int_equal(tacho__at_end_list(x->reader, &x->list), 0);
	for (uint32_t i = 0; i < x->list.count; i++)
		print_message("%s: %s\n", x->list.at[i].name,
			      tacho__at_end_text(text, x->reader, &x->list.at[i]));
}

static void done(struct listed *x)
{
	tacho__at_end_free(&x->list);
	tacho_read_close(x->reader);
	tb_free(&x->m.t);
}

static void is_in(const struct listed *x, uint32_t at, uint32_t thread, const char *text)
{
	char got[TACHO__AT_END_TEXT];

	assert_true(at < x->list.count);
	assert_int_equal(x->list.at[at].thread, thread);
	assert_int_equal(x->list.at[at].tid, 100 + thread);
	tacho__at_end_text(got, x->reader, &x->list.at[at]);
	assert_string_equal(got, text);
}

/* A thread of each kind, the least telling first. */
static void put_threads(struct trace *m)
{
	begin(m, 9);
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_1);
	PUT(m, 1, UNPARK, 1);
	PUT(m, 2 * SECOND, PARK, LOOP_1);
	trace_stream(m, 2, 0);
	PUT(m, SECOND, LOCK_WAIT, 0, 0xabc);
	PUT(m, SECOND, LOCK_OWNER, SIGNAL_WAIT, 0xabc);
	trace_stream(m, 3, 0); /* it runs */
	PUT(m, SECOND, LOCK_WAIT, 0, 0xabc);
	PUT(m, SECOND, LOCK_WAITED, 1, 0xabc);
	trace_stream(m, 4, 0);
	PUT(m, 2 * SECOND, WAKE, 0, 1);
	PUT(m, 2 * SECOND, CALL_OPEN, NAME, 0, 0, 5, 0x4711); /* nobody asked the clock */
	trace_stream(m, 5, 0);
	PUT(m, 0, WAKE, 0, 1);
	PUT(m, SECOND, CALL_OPEN, NAME, 0, T0 + SECOND, UINT64_MAX, 0x4711);
	trace_stream(m, 6, 0);
	PUT(m, 2500 * MS, LOCK_WAIT, PLACE, 0xdef);
	PUT(m, 2500 * MS, LOCK_OWNER, 105, 0xdef);
	trace_stream(m, 7, 0);
	PUT(m, 0, PARK, LOOP_2);
	PUT(m, SECOND, UNPARK, 1);
	PUT(m, 2900 * MS, POLL_BEGIN, KIND_A, 7);
	PUT(m, 2950 * MS, LOCK_WAIT, 0, 0xdef);
	PUT(m, 2950 * MS, LOCK_OWNER, 999, 0xdef);
	trace_stream(m, 8, 0);
	PUT(m, 0, PARK, LOOP_1);
	PUT(m, SECOND, UNPARK, 1); /* a turn that does not end */
}

static void what_tells_most_comes_first(void **state)
{
	struct listed x;

	(void)state;
	put_threads(&x.m);
	list(&x, TACHO_END_KILLED);
	assert_int_equal(x.list.count, 9);
	is_in(&x, 0, 8, "in a turn of its loop for 2.00 s");
	is_in(&x, 1, 7,
	      "in kind a for 100 ms, waits for lock 0xdef for 50.0 ms, held by thread 999");
	is_in(&x, 2, 6, "waits for lock 0xdef for 500 ms, in here, held by thread t5 (105)");
	is_in(&x, 3, 5, "blocked in read for 2.00 s, called in 0x4711");
	is_in(&x, 4, 4, "blocked in read on descriptor 5 for at most 1.00 s, called in 0x4711");
	is_in(&x, 5, 3, "runs (no wait is known)");
	is_in(&x, 6, 9, "runs (no wait is known)"); /* it recorded nothing */
	is_in(&x, 7, 2, "waits for condition or semaphore 0xabc for 2.00 s");
	is_in(&x, 8, 1, "waits for events of loop loop 1 for 1.00 s");
	for (uint32_t i = 0; i < x.list.count; i++)
		assert_int_equal(tacho__at_end_idles(&x.list.at[i]), i >= 7);
	done(&x);
}

static void a_thread_of_a_pool_is_in_its_work_until_that_ends(void **state)
{
	struct listed x;

	(void)state;
	begin(&x.m, 3);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, WORK_SUBMIT, KIND_B, 77);
	PUT(&x.m, 1, WORK_SUBMIT, KIND_B, 78);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, SECOND, WORK_BEGIN, KIND_B, 77);
	PUT(&x.m, SECOND, CALL_OPEN, NAME, 0, 0, 3, 0x4711);
	trace_stream(&x.m, 3, 0);
	PUT(&x.m, SECOND, WORK_BEGIN, KIND_B, 78);
	PUT(&x.m, 2 * SECOND, WORK_END, KIND_B, 78);
	PUT(&x.m, 2 * SECOND, LOCK_WAIT, 0, 0xabc);
	PUT(&x.m, 2 * SECOND, LOCK_OWNER, SIGNAL_WAIT, 0xabc);
	list(&x, TACHO_END_RUNNING);
	assert_int_equal(x.list.count, 3);
	is_in(&x, 0, 2,
	      "in work kind b for 2.00 s, blocked in read on descriptor 3 for at most 2.00 s, "
	      "called in 0x4711");
	is_in(&x, 1, 1, "runs (no wait is known)");
	is_in(&x, 2, 3, "waits for condition or semaphore 0xabc for 1.00 s");
	assert_string_equal(tacho__at_end_inside(&x.list.at[0]), "work");
	done(&x);
}

/* Threads that have ended are in nothing, and files of before do not tell. */
static void only_what_is_known_of_the_end_is_told(void **state)
{
	const struct tacho_box_thread threads[] = {
		{.state = TACHO_THREAD_LIVE, .number = 1, .tid = 101, .start_ticks = T0},
		{.state = TACHO_THREAD_ENDED, .number = 2, .tid = 102, .start_ticks = T0}};
	struct listed x;

	(void)state;
	trace_begin(&x.m);
	trace_threads(&x.m, threads, 2);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, 0, LOCK_WAIT, 0, 0xabc);
	list(&x, TACHO_END_EXITED);
	assert_int_equal(x.list.count, 1);
	is_in(&x, 0, 1, "runs (no wait is known)");
	done(&x);
	put_threads(&x.m);
	list(&x, TACHO_END_UNTOLD);
	assert_int_equal(x.list.count, 0);
	done(&x);
}

/* Of what a thread without a loop is in, findings and sums know nothing. */
static void a_call_of_a_thread_without_a_loop_is_no_fact(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	put_threads(&m);
	trace_stream(&m, 8, 0);
	PUT(&m, 2 * SECOND, CALL_OPEN, NAME, 0, T0 + 2 * SECOND, 4, 0x4712);
	end_process(&m, TACHO_END_KILLED, 9);
	f = trace_facts(&m);
	assert_int_equal(f->call_count, 1);
	assert_int_equal(f->calls[0].at.thread, 8);
	assert_int_equal(f->calls[0].end_ns - f->calls[0].begin_ns, SECOND);
	free(f);
}

/* The report tells of threads where the end was not what somebody asked for. */
static void bad_ends_are_told_from_ordinary_ones(void **state)
{
	static const struct {
		uint64_t how, status;
		int bad;
	} ends[] = {
		{TACHO_END_KILLED, 11, 1}, {TACHO_END_KILLED, 9, 1}, {TACHO_END_KILLED, 31, 1},
		{TACHO_END_KILLED, 15, 0}, {TACHO_END_EXITED, 3, 0}, {TACHO_END_EXITED, 0, 0},
		{TACHO_END_RUNNING, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct tacho__explanation *e;
		struct tacho_reader *r;
		struct trace m;
		int error;

		begin(&m, 1);
		trace_stream(&m, 1, 0);
		PUT(&m, 0, PARK, LOOP_1);
		end_process(&m, ends[i].how, ends[i].status);
		r = trace_reader(&m);
		e = tacho__explain(r, NULL, &error);
		assert_non_null(e);
		assert_int_equal(e->processes[0].ended_badly, ends[i].bad);
		assert_int_equal(e->at_ends.count, 1);
		tacho__explanation_free(e);
		tacho_read_close(r);
		tb_free(&m.t);
	}
}

/* Its number is that of work which another thread does by now: the end of the first was lost. */
static void work_is_that_of_the_thread_that_began_it_last(void **state)
{
	struct listed x = {0};

	(void)state;
	begin(&x.m, 2);
	trace_stream(&x.m, 1, 0);
	PUT(&x.m, 0, WORK_SUBMIT, KIND_B, 77);
	PUT(&x.m, 1, WORK_BEGIN, KIND_B, 77);
	trace_stream(&x.m, 2, 0);
	PUT(&x.m, SECOND, WORK_BEGIN, KIND_B, 77);
	list(&x, TACHO_END_KILLED);
	for (uint32_t i = 0; i < x.list.count; i++) {
		char text[TACHO__AT_END_TEXT];

		tacho__at_end_text(text, x.reader, &x.list.at[i]);
		assert_int_equal(strstr(text, "kind b") != NULL, x.list.at[i].thread == 2);
	}
	done(&x);
}

/* As after SIGKILL where nothing watched: the box ends with what began last. */
static void what_was_open_when_nobody_saw_the_end_is_named_and_not_timed(void **state)
{
	for (int open = 0; open < 2; open++) {
		struct tacho__explanation *e;
		struct listed x = {0};
		struct tb p = {0};
		const struct tacho__coverage *c;
		int error;

		(void)state;
		begin(&x.m, 1);
		trace_stream(&x.m, 1, 0);
		PUT(&x.m, 0, PARK, LOOP_3);
		PUT(&x.m, 10 * MS, UNPARK, 1);
		PUT(&x.m, 10 * MS, POLL_BEGIN, KIND_A, 7);
		if (!open)
			PUT(&x.m, 11 * MS, POLL_END, TACHO_PENDING);
		trace_close(&x.m);
		tb_meta_u64(&p, TACHO_META_STATE, TACHO_STATE_RECORDING);
		tb_meta_u64(&p, TACHO_META_END_HOW, TACHO_END_GONE);
		tb_plain(&x.m.t, TACHO_BLOCK_META, p.data, p.size);
		free(p.data);
		x.reader = trace_reader(&x.m);
		assert_int_equal(tacho__at_end_list(x.reader, &x.list), 0);
		if (open)
			is_in(&x, 0, 1, "in kind a for at least 0 ns");
		e = tacho__explain(x.reader, NULL, &error);
		assert_non_null(e);
		c = &e->coverage[TACHO__RULE_NEVER_YIELDS];
		assert_true(c->is_known);
		assert_int_equal(!c->checked && strstr(c->why, "kind a had not come back"), open);
		assert_int_equal(e->processes[0].ended_badly, open);
		tacho__explanation_free(e);
		done(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_tells_most_comes_first),
		cmocka_unit_test(a_thread_of_a_pool_is_in_its_work_until_that_ends),
		cmocka_unit_test(only_what_is_known_of_the_end_is_told),
		cmocka_unit_test(a_call_of_a_thread_without_a_loop_is_no_fact),
		cmocka_unit_test(bad_ends_are_told_from_ordinary_ones),
		cmocka_unit_test(what_was_open_when_nobody_saw_the_end_is_named_and_not_timed),
		cmocka_unit_test(work_is_that_of_the_thread_that_began_it_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
