/* The ledger: each ns of a thread has one owner, of every kind that there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/ledger_book.h"
#include "ledger_help.h"

static void waits_are_idle_and_turns_are_code(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 13 * MS, PARK, LOOP_1);
	PUT(&b.m, 30 * MS, UNPARK, 1);
	PUT(&b.m, 31 * MS, PARK, LOOP_1);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 27);
	ALL_MS(&b, 1, CODE, 4);
	assert_int_equal(had(&b, 1, TACHO__OWNS_CODE).count, 2);
	assert_int_equal(line_of(&b, TACHO__OWNS_CODE)->longest_ns, 3 * MS);
	assert_int_equal(b.l->threads[0].turns, 2);
	assert_int_equal(b.l->waiting_ns, 0);
	book_end(&b);
}

/* Two that have one place among those that were looked up last (TACHO__BOOK_KNOWN), in turn. */
static void threads_of_a_program_with_many_have_their_own_time(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	for (uint32_t thread = 1; thread <= 65; thread += 64) {
		uint64_t more = thread == 1 ? 0 : 1;

		trace_stream(&b.m, thread, 0);
		PUT(&b.m, 0, PARK, LOOP_1);
		PUT(&b.m, (10 + more) * MS, UNPARK, 1);
		PUT(&b.m, (13 + 2 * more) * MS, PARK, LOOP_1);
		PUT(&b.m, (30 + more) * MS, UNPARK, 1);
		PUT(&b.m, (31 + 3 * more) * MS, PARK, LOOP_1);
	}
	book_make(&b);
	assert_int_equal(b.l->thread_count, 2);
	ALL_MS(&b, 1, CODE, 4);
	ALL_MS(&b, 65, CODE, 7);
	book_end(&b);
}

static void callbacks_calls_and_what_is_between_are_told_apart(void **state)
{
	struct booked b;
	char key[64];

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 11 * MS, POLL_BEGIN, KIND_A, 0);
	put_call(&b.m, 20 * MS, NAME, 6 * MS);
	PUT(&b.m, 21 * MS, POLL_BEGIN, KIND_B, 0);
	PUT(&b.m, 24 * MS, POLL_END, 0);
	PUT(&b.m, 25 * MS, POLL_END, 0);
	PUT(&b.m, 25 * MS, PARK, LOOP_2);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 10);
	ALL_MS(&b, 1, CALL, 6);
	ALL_MS(&b, 1, CODE, 9);
	for (uint32_t i = 0; i < b.l->line_count; i++) {
		const struct tacho__ledger_line *x = &b.l->lines[i];
		const struct tacho__owned *o = tacho__ledger_owned(b.l, x);

		if (o->owns == TACHO__OWNS_CODE)
			assert_int_equal(x->ns, o->kind == KIND_A   ? 5 * MS
						: o->kind == KIND_B ? 3 * MS
								    : 1 * MS);
	}
	tacho__ledger_key(b.l, line_of(&b, TACHO__OWNS_CALL), key, sizeof(key));
	assert_string_equal(key, "read");
	book_end(&b);
}

static void a_call_that_has_not_returned_lasts_until_the_end(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 100 * MS, CALL_OPEN, NAME, 0, T0 + 12 * MS, UINT64_MAX);
	book_make(&b);
	ALL_MS(&b, 1, CODE, 2);
	ALL_MS(&b, 1, CALL, 88);
	assert_int_equal(tacho__ledger_owned(b.l, line_of(&b, TACHO__OWNS_CALL))->is_open, 1);
	book_end(&b);
}

static void a_lock_has_its_holder_and_what_that_did(void **state)
{
	struct booked b;
	char key[128];

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 12 * MS, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b.m, 52 * MS, LOCK_WAITED, 1, 0x1000);
	PUT(&b.m, 53 * MS, PARK, LOOP_1);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 1 * MS, PARK, LOOP_3);
	PUT(&b.m, 11 * MS, UNPARK, 1);
	put_call(&b.m, 51 * MS, SLEEP, 38 * MS);
	PUT(&b.m, 52 * MS - 1, LOCK_RELEASE, PLACE, 0x1000, 1);
	PUT(&b.m, 53 * MS, PARK, LOOP_3);
	book_make(&b);
	ALL_MS(&b, 1, LOCK, 40);
	ALL_MS(&b, 1, CODE, 3);
	ALL_MS(&b, 2, CALL, 38);
	tacho__ledger_key(b.l, line_of(&b, TACHO__OWNS_LOCK), key, sizeof(key));
	assert_non_null(strstr(key, "0x1000, held by"));
	assert_non_null(strstr(key, "in call nanosleep"));
	book_end(&b);
}

/* One function of a library waits for many things. */
static void the_stack_of_the_longest_wait_for_a_condition_is_its_place(void **state)
{
	static const uint64_t lengths[] = {10, 30, 2};
	struct booked b;
	uint32_t place = 0;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t at = 10 + 100 * i;

		PUT(&b.m, at * MS, UNPARK, 1);
		PUT(&b.m, (at + 1) * MS, LOCK_WAIT, PLACE, 0x10);
		PUT(&b.m, (at + 1 + lengths[i]) * MS, LOCK_WAITED, 3, 0x10);
		PUT(&b.m, (at + 1 + lengths[i]) * MS + 1, STACK, 97 + i, 0x10);
		PUT(&b.m, (at + 50) * MS, PARK, LOOP_1);
	}
	PUT(&b.m, 400 * MS, UNPARK, 1);
	book_make(&b);
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&b.l->owned, o));)
		place = o->owns == TACHO__OWNS_LOCK ? o->place : place;
	assert_int_equal(place, 98);
	book_end(&b);
}

static void a_condition_in_the_middle_of_work_is_no_idling(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 12 * MS, LOCK_WAIT, PLACE, 0x1000);
	PUT(&b.m, 52 * MS, LOCK_WAITED, 3, 0x1000);
	PUT(&b.m, 53 * MS, PARK, LOOP_1);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 10);
	ALL_MS(&b, 1, LOCK, 40);
	assert_int_equal(tacho__ledger_owned(b.l, line_of(&b, TACHO__OWNS_LOCK))->is_signal, 1);
	book_end(&b);
}

static void what_the_kernel_took_comes_first(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 50 * MS, NAME, 30 * MS);
	PUT(&b.m, 60 * MS, PARK, LOOP_1);
	trace_stream(&b.m, 1, TACHO_STREAM_KERNEL);
	PUT(&b.m, 12 * MS, SWITCH_OUT, 1); /* in the code */
	PUT(&b.m, 14 * MS, SWITCH_IN, 0);
	PUT(&b.m, 21 * MS, SWITCH_OUT, 0); /* it sleeps in the call */
	PUT(&b.m, 30 * MS, SWITCH_IN, 0);
	PUT(&b.m, 40 * MS, SWITCH_OUT, 1); /* in the call */
	PUT(&b.m, 45 * MS, SWITCH_IN, 0);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, 7);
	ALL_MS(&b, 1, CALL, 25);
	ALL_MS(&b, 1, CODE, 18);
	assert_int_equal(had(&b, 1, TACHO__OWNS_DESCHEDULED).count, 2);
	/* What is left of one call, before and after, is one. */
	assert_int_equal(line_of(&b, TACHO__OWNS_CALL)->longest_ns, 25 * MS);
	book_end(&b);
}

static void a_delay_that_is_counted_is_taken_from_code_and_call_alike(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	put_call(&b.m, 50 * MS, NAME, 30 * MS);
	PUT(&b.m, 60 * MS, PARK, LOOP_1);
	PUT(&b.m, 60 * MS, SCHED, 9, 25 * MS, 0); /* of the turn */
	PUT(&b.m, 70 * MS, UNPARK, 1);
	PUT(&b.m, 80 * MS, PARK, LOOP_1);
	PUT(&b.m, 80 * MS, SCHED, 9, 4 * MS, 0);
	PUT(&b.m, 90 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, DESCHEDULED, 29);
	ALL_MS(&b, 1, CALL, 15);
	ALL_MS(&b, 1, CODE, 16);
	/* The longest turn is what is left of it. */
	assert_int_equal(line_of(&b, TACHO__OWNS_CODE)->longest_ns, 10 * MS);
	book_end(&b);
}

static void a_quota_has_its_part_of_that(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, COUNTER, QUOTA, 1000);
	PUT(&b.m, 1 * MS, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 50 * MS, PARK, LOOP_1);
	PUT(&b.m, 50 * MS, SCHED, 9, 30 * MS, 0);
	PUT(&b.m, 61 * MS, COUNTER, QUOTA, 21000);
	PUT(&b.m, 70 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, THROTTLED, 20);
	ALL_MS(&b, 1, DESCHEDULED, 10);
	/* Until it parks for the first time it is not known to be a loop's. */
	ALL_MS(&b, 1, CODE, 11);
	book_end(&b);
}

static void samples_divide_code_and_show_what_did_not_run(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	for (uint64_t i = 0; i < 4; i++)
		PUT(&b.m, (12 + i) * MS, SAMPLE_FRAMES, 0, 0, MS,
		    i == 3 ? TACHO_CODE + 0x10 : SERVER_CODE + (i == 2 ? 0x20 : 0x10),
		    SERVER_CODE + 0x90);
	PUT(&b.m, 18 * MS, PARK, LOOP_1);
	PUT(&b.m, 20 * MS, UNPARK, 1);
	PUT(&b.m, 23 * MS, SAMPLE_FRAMES, 0, 0, 2 * MS, SERVER_CODE + 0x10);
	/* Nobody sees anything of the process for long. */
	PUT(&b.m, 223 * MS, PARK, LOOP_1);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, 200);
	assert_int_equal(had(&b, 1, TACHO__OWNS_CODE).ns + had(&b, 1, TACHO__OWNS_RECORDER).ns,
			 11 * MS);
	assert_int_equal(had(&b, 1, TACHO__OWNS_RECORDER).ns, 11 * MS / 6);
	assert_int_equal(line_of(&b, TACHO__OWNS_CODE)->function != 0, 1);
	book_end(&b);
}

/* What a loop that tells of itself does while nothing is seen: where hooks see calls, it is in none. */
static void stopped(int sees_calls, uint64_t ms)
{
	struct tacho_box_source sources[TACHO_SOURCE_CPU_SAMPLES + 1] = {{0}};
	struct booked b;

	book_begin(&b);
	sources[TACHO_SOURCE_CPU_SAMPLES].state = TACHO_SOURCE_ON;
	sources[TACHO_SOURCE_CALLS].state = sees_calls ? TACHO_SOURCE_ON : TACHO_SOURCE_OFF;
	tb_array(&b.m.t, TACHO_BLOCK_SOURCES, sources, sizeof(sources[0]),
		 TACHO_SOURCE_CPU_SAMPLES + 1);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, LOOP, LOOP_3);
	PUT(&b.m, 1 * MS, PARK, LOOP_3);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 11 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(&b.m, 111 * MS, POLL_END, 1);
	PUT(&b.m, 112 * MS, PARK, LOOP_3);
	PUT(&b.m, 120 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, STOPPED, ms);
	book_end(&b);
}

static void a_loop_that_tells_of_itself_is_stopped_if_its_calls_are_seen(void **state)
{
	(void)state;
	stopped(0, 0);
	stopped(1, 100);
}

static void pages_from_a_disk_are_faulting(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 15 * MS, SAMPLE_FRAMES, 0, 0, 5 * MS, SERVER_CODE + 0x10);
	PUT(&b.m, 50 * MS, PARK, LOOP_1);
	PUT(&b.m, 50 * MS, SCHED, 0, 0, 7ull << 32);
	PUT(&b.m, 60 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, FAULTING, 35);
	ALL_MS(&b, 1, CODE, 5);
	book_end(&b);
}

static void holes_pauses_and_edges_are_not_observed(void **state)
{
	struct tacho_box_thread threads[2] = {
		{.state = TACHO_THREAD_LIVE, .number = 1, .start_ticks = 1000},
		{.state = TACHO_THREAD_LIVE, .number = 2, .start_ticks = 1000}};
	const struct tacho_anchor anchor = {1000, 1000, 1700000000000000000ull};
	struct booked b;

	(void)state;
	book_begin(&b);
	tb_array(&b.m.t, TACHO_BLOCK_CLOCK, &anchor, sizeof(anchor), 1);
	trace_threads(&b.m, threads, 2);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 20 * MS, PARK, LOOP_1);
	PUT(&b.m, 30 * MS, UNPARK, 1);
	trace_hole(&b.m, 1, 0, 50);
	PUT(&b.m, 80 * MS, PARK, LOOP_1);
	PUT(&b.m, 90 * MS, UNPARK, 1);
	PUT(&b.m, 91 * MS, PAUSE, 1);
	PUT(&b.m, 95 * MS, PAUSE, 0);
	PUT(&b.m, 100 * MS, PARK, LOOP_1);
	/* It has been there before, and has its first record here. */
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 40 * MS, PARK, LOOP_3);
	book_make(&b);
	/* From the last record before a pause to the first after it. */
	ALL_MS(&b, 1, NOT_OBSERVED, 50 + 10);
	ALL_MS(&b, 1, IDLE, 30);
	ALL_MS(&b, 1, CODE, 10);
	ALL_MS(&b, 2, NOT_OBSERVED, 40 + 60);
	assert_int_equal(b.l->lines[b.l->line_count - 1].ns, 40 * MS);
	assert_int_equal(tacho__ledger_owned(b.l, &b.l->lines[b.l->line_count - 1])->reason,
			 TACHO__UNSEEN_EDGE);
	book_end(&b);
}

static uint64_t unseen_ns(const struct booked *b, enum tacho__owns_reason reason)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < b->l->line_count; i++) {
		const struct tacho__owned *o = tacho__ledger_owned(b->l, &b->l->lines[i]);

		if (o->owns == TACHO__OWNS_NOT_OBSERVED && o->reason == reason)
			ns += b->l->lines[i].ns;
	}
	return ns;
}

static void not_observed_for(enum tacho__owns_reason reason)
{
	struct booked b;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	PUT(&b.m, 20 * MS, PARK, LOOP_1);
	PUT(&b.m, 30 * MS, UNPARK, 1);
	if (reason == TACHO__UNSEEN_GAP) {
		PUT(&b.m, 30 * MS, PAUSE, 1);
		PUT(&b.m, 60 * MS, PAUSE, 0);
	} else {
		trace_hole(&b.m, 1, 0, 50);
	}
	PUT(&b.m, 80 * MS, PARK, LOOP_1);
	PUT(&b.m, 90 * MS, UNPARK, 1);
	book_make(&b);
	ALL_MS(&b, 1, NOT_OBSERVED, 50);
	assert_int_equal(unseen_ns(&b, reason), 50 * MS);
	book_end(&b);
}

static void why_a_thread_is_not_observed_is_told(void **state)
{
	(void)state;
	not_observed_for(TACHO__UNSEEN_GAP);
	not_observed_for(TACHO__UNSEEN_LOSS);
}

static void a_wait_that_ends_late_is_not_idle_to_its_end(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 100 * MS, UNPARK, 3);
	PUT(&b.m, 100 * MS, SCHED, 2, 30 * MS, 0); /* others ran */
	PUT(&b.m, 101 * MS, PARK, LOOP_1);
	PUT(&b.m, 200 * MS, UNPARK, 0);
	PUT(&b.m, 200 * MS, LATE, 0, 40 * MS); /* it overslept */
	PUT(&b.m, 201 * MS, PARK, LOOP_1);
	book_make(&b);
	ALL_MS(&b, 1, LATE, 70);
	ALL_MS(&b, 1, IDLE, 129);
	/* The first of three waited for all of the delay, the others for half of it; and three are
	   served evenly in 1 ms. */
	COST_MS(&b, 1, LATE, 30 * 2 + 40);
	COST_MS(&b, 1, CODE, 1);
	book_end(&b);
}

/* Thread 1 oversleeps by 150 ms; thread 2 is seen meanwhile, or not. */
static void oversleep(int others, enum tacho__owns_reason wanted)
{
	const struct tacho__owned *late = NULL;
	struct booked b;

	book_begin(&b);
	trace_stream(&b.m, 2, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	for (int i = 1; others && i < 20; i++) {
		PUT(&b.m, 10 * i * MS, UNPARK, 1);
		PUT(&b.m, (10 * i + 1) * MS, PARK, LOOP_2);
	}
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 1, PARK, LOOP_1);
	PUT(&b.m, 200 * MS, UNPARK, 0);
	PUT(&b.m, 200 * MS, LATE, 0, 150 * MS);
	PUT(&b.m, 201 * MS, PARK, LOOP_1);
	book_make(&b);
	ALL_MS(&b, 1, LATE, 150);
	while ((late = tacho__table_next(&b.l->owned, late)) && late->owns != TACHO__OWNS_LATE)
		;
	assert_non_null(late);
	assert_int_equal(late->reason, wanted);
	book_end(&b);
}

static void one_that_is_late_among_others_is_no_stop(void **state)
{
	(void)state;
	oversleep(0, TACHO__LATE_STOPPED);
	oversleep(1, TACHO__LATE_RUNNABLE);
}

static void a_wait_in_the_middle_of_a_turn_is_a_call(void **state)
{
	struct booked b;
	char key[64];

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 20; i++) {
		PUT(&b.m, (100 * i) * MS, PARK, SET_A);
		PUT(&b.m, (100 * i + 90) * MS, UNPARK, 1);
		if (i == 10) {
			PUT(&b.m, (100 * i + 92) * MS, PARK, LOOP_1);
			PUT(&b.m, (100 * i + 98) * MS, UNPARK, 1);
		}
	}
	PUT(&b.m, 2000 * MS, PARK, SET_A);
	book_make(&b);
	ALL_MS(&b, 1, IDLE, 20 * 90);
	ALL_MS(&b, 1, CALL, 6);
	ALL_MS(&b, 1, CODE, 200 - 6);
	tacho__ledger_key(b.l, line_of(&b, TACHO__OWNS_CALL), key, sizeof(key));
	assert_string_equal(key, "loop 1");
	book_end(&b);
}

static void where_a_thread_waits_for_work_it_is_idle(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	/* It looks each 100 ms whether there is something to do. */
	trace_stream(&b.m, 1, 0);
	for (uint64_t i = 0; i < 5; i++) {
		PUT(&b.m, (100 * i) * MS, PARK, LOOP_1);
		PUT(&b.m, (100 * i) * MS + 1000, UNPARK, 0);
		put_call(&b.m, (100 * i + 98) * MS, SLEEP, 97 * MS);
	}
	/* It takes connections, and each is ready when it looks. */
	trace_stream(&b.m, 2, 0);
	for (uint64_t i = 0; i < 5; i++) {
		PUT(&b.m, (100 * i) * MS, PARK, SET_A);
		PUT(&b.m, (100 * i) * MS + 1000, UNPARK, 1);
		put_call(&b.m, (100 * i + 98) * MS, ACCEPT, 97 * MS);
	}
	/* The same under load: most come soon, and no call is recorded. */
	trace_stream(&b.m, 4, 0);
	for (uint64_t i = 0; i < 50; i++) {
		PUT(&b.m, (10 * i) * MS, PARK, LOOP_1);
		PUT(&b.m, (10 * i) * MS + 1000, UNPARK, 1);
		if (i % 5 == 0)
			put_call(&b.m, (10 * i + 9) * MS, ACCEPT, 8 * MS);
	}
	/* It sleeps now and then in the middle of work. */
	trace_stream(&b.m, 3, 0);
	for (uint64_t i = 0; i < 50; i++) {
		PUT(&b.m, (10 * i) * MS, PARK, LOOP_3);
		PUT(&b.m, (10 * i + 1) * MS, UNPARK, 1);
		if (i % 10 == 0)
			put_call(&b.m, (10 * i + 9) * MS, SLEEP, 8 * MS);
	}
	book_make(&b);
	ALL_MS(&b, 1, CALL, 0);
	ALL_MS(&b, 2, CALL, 0);
	assert_true(had(&b, 2, TACHO__OWNS_IDLE).ns >= 5 * 97 * MS);
	assert_int_equal(had(&b, 2, TACHO__OWNS_IDLE).waiting, 0);
	ALL_MS(&b, 4, CALL, 0);
	ALL_MS(&b, 3, CALL, 40);
	/* What a wait reports, and has no callback that is seen, waits for none. */
	assert_int_equal(had(&b, 3, TACHO__OWNS_CALL).waiting, 0);
	book_end(&b);
}

static void sums_and_products_do_not_run_over(void **state)
{
	const uint64_t half = TACHO__MUCH / 2;

	(void)state;
	assert_int_equal(tacho__times(2, half), TACHO__MUCH);
	assert_int_equal(tacho__times(2, half - 1), TACHO__MUCH - 2);
	assert_int_equal(tacho__times(3, half), TACHO__MUCH);
	assert_int_equal(tacho__times(UINT64_MAX, UINT64_MAX), TACHO__MUCH);
	assert_int_equal(tacho__times(0, UINT64_MAX), 0);
	assert_int_equal(tacho__add(half, half - 1), TACHO__MUCH - 1);
	assert_int_equal(tacho__add(half, half + 1), TACHO__MUCH);
	assert_int_equal(tacho__add(UINT64_MAX, 1), TACHO__MUCH);
	assert_int_equal(tacho__sum(half, half - 1), TACHO__MUCH - 1);
	assert_int_equal(tacho__sum(TACHO__MUCH, TACHO__MUCH), TACHO__MUCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_idle_and_turns_are_code),
		cmocka_unit_test(threads_of_a_program_with_many_have_their_own_time),
		cmocka_unit_test(callbacks_calls_and_what_is_between_are_told_apart),
		cmocka_unit_test(a_call_that_has_not_returned_lasts_until_the_end),
		cmocka_unit_test(a_lock_has_its_holder_and_what_that_did),
		cmocka_unit_test(the_stack_of_the_longest_wait_for_a_condition_is_its_place),
		cmocka_unit_test(a_condition_in_the_middle_of_work_is_no_idling),
		cmocka_unit_test(what_the_kernel_took_comes_first),
		cmocka_unit_test(a_delay_that_is_counted_is_taken_from_code_and_call_alike),
		cmocka_unit_test(a_quota_has_its_part_of_that),
		cmocka_unit_test(samples_divide_code_and_show_what_did_not_run),
		cmocka_unit_test(a_loop_that_tells_of_itself_is_stopped_if_its_calls_are_seen),
		cmocka_unit_test(pages_from_a_disk_are_faulting),
		cmocka_unit_test(holes_pauses_and_edges_are_not_observed),
		cmocka_unit_test(why_a_thread_is_not_observed_is_told),
		cmocka_unit_test(a_wait_that_ends_late_is_not_idle_to_its_end),
		cmocka_unit_test(one_that_is_late_among_others_is_no_stop),
		cmocka_unit_test(a_wait_in_the_middle_of_a_turn_is_a_call),
		cmocka_unit_test(where_a_thread_waits_for_work_it_is_idle),
		cmocka_unit_test(sums_and_products_do_not_run_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
