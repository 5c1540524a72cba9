/* From records to polls, spans, turns, and where records are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model_help.h"

static void polls_nest(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__poll *p;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, PARK, LOOP_3);
	PUT(&m, 20, UNPARK, 2);
	PUT(&m, 30, POLL_BEGIN, KIND_A, 7);
	PUT(&m, 40, POLL_BEGIN, KIND_B, 8);
	PUT(&m, 45, CALL, NAME, 0, 3, 5, 0);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 70, POLL_END, 2);
	PUT(&m, 80, PARK, LOOP_3);
	f = trace_facts(&m);

	assert_int_equal(f->poll_count, 2);
	p = poll_at(f, 40, 50);
	assert_int_equal(p->kind, KIND_B);
	assert_int_equal(p->task, 8);
	assert_int_equal(p->depth, 1);
	assert_int_equal(p->cut, 0);
	assert_int_equal(p->result, TACHO_PENDING);
	assert_int_equal(p->at.kind, KIND_A);
	assert_int_equal(p->at.task, 7);
	assert_int_equal(p->at.poll_ns, T0 + 30);
	assert_int_equal(p->at.loop, LOOP_3);
	assert_int_equal(p->spent.call_ns, 3);
	p = poll_at(f, 30, 70);
	assert_int_equal(p->depth, 0);
	assert_int_equal(p->inner_ns, 10);
	assert_int_equal(p->turn_ns, T0 + 20);
	assert_int_equal(p->at.poll_ns, 0);
	assert_int_equal(p->spent.call_ns, 3); /* what is inside is its own as well */
	assert_int_equal(p->spent.calls, 1);

	assert_int_equal(f->turn_count, 1);
	assert_int_equal(f->turns[0].begin_ns, T0 + 20);
	assert_int_equal(f->turns[0].end_ns, T0 + 80);
	assert_int_equal(f->turns[0].parked_ns, 10);
	assert_int_equal(f->turns[0].ready, 2);
	assert_int_equal(f->turns[0].polls, 1);
	assert_int_equal(f->turns[0].polls_ns, 40);
	assert_int_equal(f->turns[0].cut, 0);
	free(f);
}

/* Nothing of a poll that the thread had before. */
static void a_turn_without_polls_stands_as_one(void **state)
{
	const struct tacho__poll *p;
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, PARK, LOOP_1);
	PUT(&m, 20, UNPARK, 2);
	PUT(&m, 25, WAKE, 0, 8);
	PUT(&m, 30, POLL_BEGIN, KIND_A, 7);
	PUT(&m, 40, POLL_BEGIN, KIND_B, 8);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 70, POLL_END, 2);
	PUT(&m, 80, PARK, LOOP_1);
	PUT(&m, 90, UNPARK, 1);
	PUT(&m, 100, PARK, LOOP_1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 3);
	p = poll_at(f, 90, 100);
	assert_true(!p->kind && !p->task && !p->result && !p->depth && !p->first && !p->inner_ns);
	assert_true(!p->wake_ns && !p->waker && !p->wakes && !p->at.kind && !p->at.poll_ns);
	assert_int_equal(p->turn_ns, T0 + 90);
	p = poll_at(f, 40, 50);
	assert_true(p->wake_ns == T0 + 25 && p->waker == 1 && p->wakes == 1);
	free(f);
}

static void a_switch_ends_one_poll_and_begins_the_next(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 15, SPAN_BEGIN, SPAN);
	PUT(&m, 20, POLL_SWITCH, KIND_B, 2);
	PUT(&m, 30, POLL_SWITCH, KIND_A, 3);
	PUT(&m, 40, POLL_END, 0);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 3);
	assert_int_equal(poll_at(f, 10, 20)->task, 1);
	assert_int_equal(poll_at(f, 20, 30)->task, 2);
	assert_int_equal(poll_at(f, 30, 40)->task, 3);
	/* The span that was left open in it ended with the poll. */
	assert_int_equal(f->span_count, 1);
	assert_int_equal(f->spans[0].end_ns, T0 + 20);
	assert_int_equal(f->spans[0].cut, TACHO__CUT_END);
	free(f);
}

static void spans_know_their_poll_and_their_trace(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 11, SPAN_BEGIN, SPAN);
	PUT(&m, 12, TRACE_ID, 0, 0, 0, 0xaa, 0xbb);
	PUT(&m, 13, ASYNC_BEGIN, SPAN, 77, 5);
	PUT(&m, 14, TRACE_ID, 0, 0, 77, 0xcc, 0xdd);
	PUT(&m, 15, SPAN_END, SPAN);
	PUT(&m, 16, SPAN_END, SPAN); /* of one that nobody saw begin */
	PUT(&m, 20, POLL_END, 1);
	PUT(&m, 30, ASYNC_BEGIN, SPAN, 78, 0);
	trace_stream(&m, 2, 0);
	PUT(&m, 40, ASYNC_END, SPAN, 77);
	PUT(&m, 41, ASYNC_END, SPAN, 79);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 1);
	assert_int_equal(poll_at(f, 10, 20)->cut, 0);
	assert_int_equal(f->span_count, 3);
	assert_int_equal(f->spans[0].begin_ns, T0 + 11);
	assert_int_equal(f->spans[0].end_ns, T0 + 15);
	assert_int_equal(f->spans[0].at.kind, KIND_A);
	assert_int_equal(f->spans[0].trace_high, 0xaa);
	assert_int_equal(f->spans[0].trace_low, 0xbb);
	assert_int_equal(f->spans[0].async, 0);
	assert_int_equal(f->spans[1].id, 77);
	assert_int_equal(f->spans[1].parent, 5);
	assert_int_equal(f->spans[1].end_ns, T0 + 40);
	assert_int_equal(f->spans[1].at.thread, 1);
	assert_int_equal(f->spans[1].trace_low, 0xdd);
	assert_int_equal(f->spans[1].cut, 0);
	assert_int_equal(f->spans[2].id, 78);
	assert_int_equal(f->spans[2].cut, TACHO__CUT_END);
	free(f);
}

/* ------------------------------------------------------------------- edges */

static void what_is_cut_at_the_edges_says_so(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, 1, 0);
	PUT(&m, 100 * MS, POLL_END, 1); /* nobody knows since when it ran */
	PUT(&m, 200 * MS, POLL_BEGIN, KIND_B, 2);
	trace_stream(&m, 2, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 900 * MS, LOOP, LOOP_3); /* the last of the trace */
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 2);
	assert_int_equal(poll_at(f, 100 * MS, 100 * MS)->cut, TACHO__CUT_BEGIN);
	assert_int_equal(poll_at(f, 200 * MS, 900 * MS)->cut, TACHO__CUT_END);
	free(f);
}

static void what_a_thread_left_open_when_it_ended_does_not_go_on(void **state)
{
	const struct tacho_box_thread threads[] = {{.state = TACHO_THREAD_ENDED, .number = 1},
						   {.state = TACHO_THREAD_LIVE, .number = 2}};
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_threads(&m, threads, 2);
	trace_stream(&m, 1, 0);
	PUT(&m, 100 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 150 * MS, WAKE, 0, 9); /* the last of this thread */
	trace_stream(&m, 2, 0);
	PUT(&m, 200 * MS, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 900 * MS, WAKE, 0, 9);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 2);
	assert_int_equal(poll_at(f, 100 * MS, 150 * MS)->cut, TACHO__CUT_END);
	assert_int_equal(poll_at(f, 200 * MS, 900 * MS)->cut, TACHO__CUT_END);
	free(f);
}

static void what_was_open_before_keeps_its_begin(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__poll *p;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, 1, T0 - 50);
	trace_open(&m, TACHO_REC_SPAN_BEGIN, SPAN, 0, T0 - 40);
	PUT(&m, 10, SPAN_END, SPAN);
	PUT(&m, 20, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 1);
	p = &f->polls[0];
	assert_int_equal(p->begin_ns, T0 - 50);
	assert_int_equal(p->end_ns, T0 + 20);
	assert_int_equal(p->cut, TACHO__CUT_HOLE);
	assert_int_equal(f->span_count, 1);
	assert_int_equal(f->spans[0].begin_ns, T0 - 40);
	assert_int_equal(f->spans[0].cut, TACHO__CUT_HOLE);
	free(f);
}

/* Seven polls were open and five are listed: the two inner ones are nobody's. */
static void open_polls_that_are_not_listed_end_in_silence(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	/* Depth that the hole leaves behind must not be taken for what is open later. */
	for (uint64_t i = 0; i < 7; i++)
		PUT(&m, 1 + i, POLL_BEGIN, KIND_B, 100 + i);
	trace_hole(&m, 1, 0, 3);
	for (uint64_t i = 0; i < 7; i++)
		trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, i + 1, T0 + 20 + i);
	for (uint64_t i = 0; i < 7; i++)
		PUT(&m, 100 + i, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 7 + 5);
	for (uint32_t i = 7; i < f->poll_count; i++) {
		assert_int_equal(f->polls[i].kind, KIND_A);
		assert_int_equal(f->polls[i].task, 12 - i);
		assert_int_equal(f->polls[i].end_ns, T0 + 102 + i - 7);
		assert_int_equal(f->polls[i].cut, TACHO__CUT_HOLE);
	}
	free(f);
}

static void a_poll_on_both_sides_of_a_hole_is_one(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 12, LOCK_WAIT, 0, 0x10);
	trace_hole(&m, 1, 0, 20);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, 1, T0 + 10);
	PUT(&m, 50, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 1);
	assert_int_equal(poll_at(f, 10, 50)->cut, TACHO__CUT_HOLE);
	assert_int_equal(f->hole_count, 1);
	assert_int_equal(f->holes[0].from_ns, T0 + 12);
	assert_int_equal(f->holes[0].to_ns, T0 + 50);
	assert_int_equal(f->holes[0].missing, 20);
	/* The wait for the lock may have ended anywhere in it. */
	assert_int_equal(f->lock_count, 1);
	assert_int_equal(f->locks[0].cut, TACHO__CUT_END);
	assert_int_equal(f->locks[0].end_ns, T0 + 12);
	free(f);
}

static void the_same_kind_begun_again_is_another_poll(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	trace_hole(&m, 1, 0, 20);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, 1, T0 + 40);
	PUT(&m, 50, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 2);
	assert_int_equal(poll_at(f, 10, 10)->cut, TACHO__CUT_END);
	assert_int_equal(poll_at(f, 40, 50)->cut, TACHO__CUT_HOLE);
	free(f);
}

static void a_hole_ends_what_was_open(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 5, PARK, LOOP_3);
	PUT(&m, 8, UNPARK, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, WAKE, 0, 9);
	trace_hole(&m, 1, 0, 20);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_B, 2, T0 + 30);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 60, PARK, LOOP_3);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 2);
	assert_int_equal(poll_at(f, 10, 20)->cut, TACHO__CUT_END);
	assert_int_equal(poll_at(f, 30, 50)->cut, TACHO__CUT_HOLE);
	assert_int_equal(f->turn_count, 1);
	assert_int_equal(f->turns[0].cut, TACHO__CUT_END);
	assert_int_equal(f->turns[0].end_ns, T0 + 20);
	free(f);
}

static void nothing_is_long_because_the_recorder_was_paused(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, PAUSE, 1);
	PUT(&m, 900 * MS, PAUSE, 0);
	PUT(&m, 901 * MS, POLL_END, 1); /* of a poll that began meanwhile */
	trace_stream(&m, 2, 0);
	PUT(&m, 11, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 902 * MS, POLL_END, 1);
	PUT(&m, 903 * MS, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 904 * MS, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 3);
	assert_int_equal(poll_at(f, 10, 10)->cut, TACHO__CUT_END);
	assert_int_equal(poll_at(f, 11, 11)->cut, TACHO__CUT_END);
	assert_int_equal(poll_at(f, 903 * MS, 904 * MS)->cut, 0);
	free(f);
}

static void what_is_too_deep_is_counted(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	for (uint64_t i = 0; i < 20; i++)
		PUT(&m, 1 + i, POLL_BEGIN, KIND_A, i + 1);
	for (uint64_t i = 0; i < 20; i++)
		PUT(&m, 100 + i, POLL_END, 1);
	PUT(&m, 200, POLL_BEGIN, KIND_B, 1);
	PUT(&m, 210, POLL_END, 1);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 17);
	assert_int_equal(poll_at(f, 16, 104)->depth, 15);
	assert_int_equal(poll_at(f, 1, 119)->depth, 0);
	assert_int_equal(poll_at(f, 200, 210)->depth, 0);
	assert_int_equal(f->missed.depth, 4);
	free(f);
}

/* ----------------------------------------------------- turns, loops, streams */

static void a_turn_of_a_loop_without_callbacks_is_a_poll(void **state)
{
	struct trace m;
	struct facts *f;
	const struct tacho__poll *p;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, PARK, LOOP_1);
	PUT(&m, 20, UNPARK, 1);
	PUT(&m, 30, LOCK_WAIT, PLACE, 0x10);
	PUT(&m, 35, LOCK_WAITED, 1, 0x10);
	PUT(&m, 40, PARK, LOOP_1);
	PUT(&m, 41, SCHED, 3, 5, 6);
	PUT(&m, 50, UNPARK, 1);
	PUT(&m, 60, POLL_BEGIN, KIND_A, 1); /* this one is seen */
	PUT(&m, 70, POLL_END, 1);
	PUT(&m, 80, PARK, LOOP_1);
	PUT(&m, 90, UNPARK, 1);
	PUT(&m, 99, WAKE, 0, 4);
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 3);
	p = poll_at(f, 20, 40);
	assert_int_equal(p->kind, 0);
	assert_int_equal(p->at.loop, LOOP_1);
	assert_int_equal(p->spent.lock_ns, 5);
	assert_int_equal(p->spent.sched, 1);
	assert_int_equal(p->spent.delay_ns, 5);
	assert_int_equal(p->cut, 0);
	assert_int_equal(f->locks[0].at.poll_ns, T0 + 20);
	assert_int_equal(poll_at(f, 60, 70)->kind, KIND_A);
	assert_int_equal(poll_at(f, 90, 99)->cut, TACHO__CUT_END);
	assert_int_equal(f->turn_count, 3);
	free(f);
}

static void a_thread_that_changes_its_loop_ends_the_turn(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, PARK, LOOP_2);
	PUT(&m, 20, UNPARK, 0);
	PUT(&m, 30, LOOP, LOOP_3);
	PUT(&m, 40, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 60, PARK, LOOP_3);
	PUT(&m, 70, UNPARK, 0);
	PUT(&m, 80, PARK, LOOP_2); /* without a word before */
	f = trace_facts(&m);
	assert_int_equal(f->turn_count, 2);
	assert_int_equal(f->turns[0].loop, LOOP_2);
	assert_int_equal(f->turns[0].end_ns, T0 + 30);
	assert_int_equal(f->turns[0].cut, TACHO__CUT_END);
	assert_int_equal(f->turns[1].loop, LOOP_3);
	assert_int_equal(f->turns[1].end_ns, T0 + 80);
	assert_int_equal(f->turns[1].cut, 0);
	assert_int_equal(poll_at(f, 40, 50)->at.loop, LOOP_3);
	free(f);
}

/* A runtime's park, and the wait of the kernel that it makes in it. */
static void a_wait_inside_of_a_park_is_part_of_it(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 5, LOOP, LOOP_3);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, POLL_END, 1);
	PUT(&m, 21, PARK, LOOP_3);
	PUT(&m, 22, SCHED, 1, 4, 0); /* of the whole turn, of which the poll is most */
	PUT(&m, 23, PARK, LOOP_1);
	PUT(&m, 30, UNPARK, 3);
	PUT(&m, 31, UNPARK, 2);
	PUT(&m, 40, PARK, LOOP_3);
	f = trace_facts(&m);
	assert_int_equal(f->turn_count, 1);
	assert_int_equal(f->turns[0].loop, LOOP_3);
	assert_int_equal(f->turns[0].parked_ns, 9);
	assert_int_equal(f->turns[0].ready, 2);
	assert_int_equal(f->poll_count, 1);
	assert_int_equal(f->polls[0].spent.delay_ns, 4);
	free(f);
}

static void sched_belongs_to_the_poll_that_just_ended(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 5, LATE, 0, 33);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 20, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 30, POLL_END, 1);
	PUT(&m, 31, SCHED, 2, 7, 5ull << 32 | 4);
	PUT(&m, 40, POLL_END, 1);
	PUT(&m, 41, WAKE, 0, 3);
	PUT(&m, 42, SCHED, 9, 9, 9); /* of none */
	f = trace_facts(&m);
	assert_int_equal(poll_at(f, 20, 30)->spent.sched, 1);
	assert_int_equal(poll_at(f, 20, 30)->spent.delay_ns, 7);
	assert_int_equal(poll_at(f, 20, 30)->spent.involuntary, 2);
	assert_int_equal(poll_at(f, 20, 30)->spent.minor_faults, 4);
	assert_int_equal(poll_at(f, 20, 30)->spent.major_faults, 5);
	assert_int_equal(poll_at(f, 20, 30)->late_ns, 0);
	assert_int_equal(poll_at(f, 10, 40)->spent.sched, 0);
	assert_int_equal(poll_at(f, 10, 40)->spent.delay_ns, 0);
	assert_int_equal(poll_at(f, 10, 40)->late_ns, 33);
	free(f);
}

/* What interrupts the thread has polls of its own, and does not disturb the thread's. */
static void signal_handlers_have_their_own_polls(void **state)
{
	struct trace m;
	struct facts *f;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 50, POLL_END, 1);
	PUT(&m, 60, SCHED, 1, 2, 0);
	trace_stream(&m, 1, 1);
	PUT(&m, 20, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 30, POLL_END, 1);
	PUT(&m, 35, SAMPLE, 0, 10);
	PUT(&m, 51, SAMPLE, 0, 10);
	PUT(&m, 52, WAKE, 0, 9);
	PUT(&m, 55, POLL_BEGIN, KIND_B, 2);
	PUT(&m, 56, POLL_END, 1);
	PUT(&m, 57, SCHED, 4, 4, 4); /* of the handler's, not of the thread's */
	f = trace_facts(&m);
	assert_int_equal(f->poll_count, 3);
	assert_int_equal(poll_at(f, 10, 50)->inner_ns, 0);
	assert_int_equal(poll_at(f, 10, 50)->spent.samples, 1);
	assert_int_equal(poll_at(f, 10, 50)->spent.delay_ns, 2);
	assert_int_equal(poll_at(f, 20, 30)->depth, 0);
	assert_int_equal(poll_at(f, 55, 56)->spent.delay_ns, 4);
	assert_int_equal(f->samples[0].at.kind, KIND_A);
	assert_int_equal(f->samples[1].at.kind, 0);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_nest),
		cmocka_unit_test(a_turn_without_polls_stands_as_one),
		cmocka_unit_test(a_switch_ends_one_poll_and_begins_the_next),
		cmocka_unit_test(spans_know_their_poll_and_their_trace),
		cmocka_unit_test(what_is_cut_at_the_edges_says_so),
		cmocka_unit_test(what_a_thread_left_open_when_it_ended_does_not_go_on),
		cmocka_unit_test(what_was_open_before_keeps_its_begin),
		cmocka_unit_test(open_polls_that_are_not_listed_end_in_silence),
		cmocka_unit_test(a_poll_on_both_sides_of_a_hole_is_one),
		cmocka_unit_test(the_same_kind_begun_again_is_another_poll),
		cmocka_unit_test(a_hole_ends_what_was_open),
		cmocka_unit_test(nothing_is_long_because_the_recorder_was_paused),
		cmocka_unit_test(what_is_too_deep_is_counted),
		cmocka_unit_test(a_turn_of_a_loop_without_callbacks_is_a_poll),
		cmocka_unit_test(a_thread_that_changes_its_loop_ends_the_turn),
		cmocka_unit_test(a_wait_inside_of_a_park_is_part_of_it),
		cmocka_unit_test(sched_belongs_to_the_poll_that_just_ended),
		cmocka_unit_test(signal_handlers_have_their_own_polls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
