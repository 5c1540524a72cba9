/* Blame is the ledger over the time of its subject: in the same words, and adding up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/blame.h"
#include "explain/line_times.h"
#include "ledger_help.h"
#include "read/records.h"

static struct tacho__blame *blame(struct booked *b, const struct tacho__subject *s)
{
	struct tacho__blame *made;
	uint64_t sum = 0;
	int error;

	assert_int_equal(tacho_read_seek(b->reader, 0), 0);
	made = tacho__blame_make(b->reader, s, &error);
	assert_non_null(made);
	for (uint32_t i = 0; i < made->count; i++) {
		const struct tacho__piece *p = &made->pieces[i];

		print_message("%*s%d us of thread %u, %s: %s\n", (int)(2 * p->depth), "",
			      (int)(p->ns / 1000), p->thread, tacho__owner_name(p->owner), p->text);
		assert_true(p->from_ns >= s->from_ns && p->to_ns <= s->to_ns);
		sum += p->depth ? 0 : p->ns;
	}
	assert_int_equal(sum, s->to_ns - s->from_ns);
	return made;
}

/* All time of a thread: what each owner has is what the ledger gives it. */
static void thread_is_as_booked(struct booked *b, uint32_t index)
{
	const struct tacho__ledger_thread *t = &b->l->threads[index];
	const struct tacho__subject s = {.type = TACHO__SUBJECT_SPAN,
					 .thread = t->thread,
					 .from_ns = t->first_ns,
					 .to_ns = t->last_ns};
	struct tacho__blame *made = blame(b, &s);

	for (uint32_t owner = 1; owner < TACHO__OWNS_COUNT; owner++) {
		uint64_t ns = 0;

		for (uint32_t i = 0; i < made->count; i++)
			if (!made->pieces[i].depth && made->pieces[i].owner == owner)
				ns += made->pieces[i].ns;
		assert_int_equal(ns, had(b, t->thread, (enum tacho__owns)owner).ns);
	}
	tacho__blame_free(made);
}

/* The times of a line follow one another, and are what it has; of sampled functions, where they were
   seen. */
static void lines_are_as_booked(struct booked *b)
{
	for (uint32_t i = 0; i < b->l->line_count; i++) {
		const struct tacho__ledger_line *line = &b->l->lines[i];
		struct tacho__line_times times, few;
		uint64_t ns = 0, longest = 0;

		assert_int_equal(
			tacho__line_times_make(&times, b->reader, b->l, line, UINT32_MAX / 2), 0);
		for (uint32_t k = 0; k < times.count; k++) {
			const struct tacho__line_time *at = &times.at[k];

			assert_true(at->from_ns < at->to_ns);
			assert_true(!k || at[-1].to_ns <= at->from_ns);
			ns += at->to_ns - at->from_ns;
			if (at->to_ns - at->from_ns > longest)
				longest = at->to_ns - at->from_ns;
		}
		assert_int_equal(ns, times.all_ns);
		assert_int_equal(times.count, times.all);
		if (!line->function)
			assert_int_equal(ns, line->ns);
		/* Of those that do not fit, the longest. */
		assert_int_equal(tacho__line_times_make(&few, b->reader, b->l, line, 1), 0);
		assert_int_equal(few.all, times.all);
		assert_int_equal(few.count, times.count ? 1 : 0);
		if (few.count)
			assert_int_equal(few.at[0].to_ns - few.at[0].from_ns, longest);
		tacho__line_times_free(&times);
		tacho__line_times_free(&few);
	}
	tacho__read_limit(b->reader, 0, 0);
}

static void end(struct booked *b)
{
	lines_are_as_booked(b);
	for (uint32_t i = 0; i < b->l->thread_count; i++)
		if (tacho__is_of_interest(&b->l->threads[i]))
			thread_is_as_booked(b, i);
	book_end(b);
}

static struct tacho__blame *slowest(struct booked *b)
{
	const struct tacho__subject_filter any = {.task = 0};
	struct tacho__subject s;

	assert_int_equal(tacho_read_seek(b->reader, 0), 0);
	assert_int_equal(tacho__blame_find(b->reader, &any, &s, 1), 1);
	return blame(b, &s);
}

static const struct tacho__piece *largest(const struct tacho__blame *made)
{
	const struct tacho__piece *best = &made->pieces[0];

	for (uint32_t i = 1; i < made->count; i++)
		if (!made->pieces[i].depth && made->pieces[i].ns > best->ns)
			best = &made->pieces[i];
	return best;
}

/* Task 1 is woken while task 3 is in its poll for 90 ms; `calls`: and is seen to sleep in it. */
static void keep_worker(struct booked *b, int calls)
{
	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, PARK, LOOP_3);
	PUT(&b->m, 10 * MS, UNPARK, 0);
	PUT(&b->m, 10 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(&b->m, 11 * MS, POLL_END, 1);
	PUT(&b->m, 12 * MS, POLL_BEGIN, KIND_B, 3);
	if (calls)
		put_call(&b->m, 101 * MS, SLEEP, 88 * MS);
	PUT(&b->m, 102 * MS, POLL_END, 1);
	PUT(&b->m, 102 * MS, POLL_BEGIN, KIND_A, 1);
	PUT(&b->m, 103 * MS, POLL_END, 1);
	PUT(&b->m, 104 * MS, PARK, LOOP_3);
	trace_stream(&b->m, 2, 0);
	PUT(&b->m, 11 * MS + MS / 2, WAKE, 0, 1);
	book_make(b);
}

static void who_keeps_a_worker_is_named_with_the_call(void **state)
{
	struct booked b;
	struct tacho__blame *made;
	const struct tacho__piece *p;

	(void)state;
	keep_worker(&b, 1);
	made = slowest(&b);
	assert_int_equal(made->subject.type, TACHO__SUBJECT_WAKE);
	assert_int_equal(made->subject.task, 1);
	p = largest(made);
	assert_int_equal(p->owner, TACHO__OWNS_CALL);
	assert_int_equal(p->ns, 88 * MS);
	assert_int_equal(p->task, 3);
	assert_false(p->own);
	assert_non_null(strstr(p->text, "nanosleep, in "));
	assert_non_null(strstr(p->text, " of task 3"));
	p = &made->pieces[made->count - 1];
	assert_true(p->own && p->owner == TACHO__OWNS_CODE && p->ns == MS);
	tacho__blame_free(made);
	end(&b);
}

static void without_calls_it_is_the_poll_that_kept_it(void **state)
{
	struct booked b;
	struct tacho__blame *made;
	const struct tacho__piece *p;

	(void)state;
	keep_worker(&b, 0);
	made = slowest(&b);
	p = largest(made);
	assert_int_equal(p->owner, TACHO__OWNS_CODE);
	assert_int_equal(p->ns, 90 * MS);
	assert_int_equal(p->task, 3);
	assert_false(p->own);
	assert_int_equal(made->not_observed_ns, 0);
	tacho__blame_free(made);
	end(&b);
}

static void a_lock_consists_of_what_its_holder_did(void **state)
{
	struct booked b;
	struct tacho__blame *made;
	const struct tacho__piece *p;

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
	put_call(&b.m, 51 * MS, SLEEP, 38 * MS); /* from 13 */
	PUT(&b.m, 52 * MS - 1, LOCK_RELEASE, PLACE, 0x1000, 1);
	PUT(&b.m, 53 * MS, PARK, LOOP_3);
	book_make(&b);
	made = slowest(&b);
	p = largest(made);
	assert_int_equal(p->owner, TACHO__OWNS_LOCK);
	assert_int_equal(p->lock, 0x1000);
	assert_int_equal(p->ns, 40 * MS);
	/* Code, the call, code. */
	assert_true(p[1].depth == 1 && p[1].thread == 2 && p[1].owner == TACHO__OWNS_CODE);
	assert_true(p[2].depth == 1 && p[2].owner == TACHO__OWNS_CALL && p[2].ns == 38 * MS);
	assert_int_equal(p[1].ns + p[2].ns + p[3].ns, 40 * MS - 1);
	assert_int_equal(p[4].depth, 0);
	tacho__blame_free(made);
	end(&b);
}

static void what_the_kernel_counted_is_not_its_own(void **state)
{
	struct booked b;
	struct tacho__blame *made;
	uint64_t off = 0;

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
	made = slowest(&b);
	assert_int_equal(made->subject.to_ns - made->subject.from_ns, 50 * MS);
	for (uint32_t i = 0; i < made->count; i++)
		off += made->pieces[i].owner == TACHO__OWNS_DESCHEDULED ? made->pieces[i].ns : 0;
	assert_int_equal(off, 25 * MS);
	tacho__blame_free(made);
	end(&b);
}

/* A wait for a condition with which most turns begin is where its thread waits for work, known at
   the end alone. */
static void idle_is_idle(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	for (uint32_t thread = 1; thread <= 2; thread++) {
		trace_stream(&b.m, thread, 0);
		PUT(&b.m, thread, PARK, SET_A);
		for (uint64_t i = 0; i < 5; i++) {
			uint64_t at = (20 * i + 10 * thread) * MS;

			PUT(&b.m, at, UNPARK, 1);
			PUT(&b.m, at + MS, LOCK_WAIT, PLACE, 0x77);
			PUT(&b.m, at + 9 * MS, LOCK_WAITED, 3, 0x77);
			PUT(&b.m, at + 9 * MS + MS / 2, PARK, SET_A);
		}
	}
	book_make(&b);
	ALL_MS(&b, 1, LOCK, 0);
	end(&b);
}

static void code_is_that_of_the_functions_that_were_sampled(void **state)
{
	struct booked b;
	struct tacho__blame *made;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	PUT(&b.m, 10 * MS, UNPARK, 1);
	for (uint64_t ms = 15; ms < 50; ms += 10)
		PUT(&b.m, ms * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x100,
		    SERVER_CODE + (ms < 40 ? 0x5000 : 0x6000));
	PUT(&b.m, 55 * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, TACHO_CODE + 0x100, SERVER_CODE + 0x6000);
	PUT(&b.m, 60 * MS, PARK, LOOP_1);
	book_make(&b);
	made = slowest(&b);
	assert_int_equal(made->count, 3);
	assert_int_equal(made->pieces[2].owner, TACHO__OWNS_RECORDER);
	assert_int_equal(made->pieces[0].ns, 30 * MS);
	assert_int_equal(made->pieces[1].ns, 10 * MS);
	assert_int_equal(made->pieces[0].owner, TACHO__OWNS_CODE);
	assert_string_not_equal(made->pieces[0].text, made->pieces[1].text);
	tacho__blame_free(made);
	end(&b);
}

/* A sample tells of the time before it: one where a callback begins is of the callback before, or of none
   that is asked for. */
static void a_sample_belongs_to_what_is_before_it(void **state)
{
	struct tacho__subject s = {.type = TACHO__SUBJECT_SPAN,
				   .thread = 1,
				   .from_ns = T0 + 10 * MS,
				   .to_ns = T0 + 60 * MS};
	struct booked b;
	struct tacho__blame *made;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_2);
	PUT(&b.m, 10 * MS, UNPARK, 2);
	PUT(&b.m, 10 * MS, POLL_BEGIN, KIND_A, 0);
	for (uint64_t ms = 20; ms <= 60; ms += 10) {
		PUT(&b.m, ms * MS, SAMPLE_FRAMES, 0, 0, 10 * MS, SERVER_CODE + 0x100,
		    SERVER_CODE + (ms <= 30 ? 0x5000 : 0x6000));
		if (ms == 30) {
			PUT(&b.m, ms * MS, POLL_END, 0);
			PUT(&b.m, ms * MS, POLL_BEGIN, KIND_A, 0);
		}
	}
	PUT(&b.m, 60 * MS, POLL_END, 0);
	PUT(&b.m, 60 * MS, PARK, LOOP_2);
	book_make(&b);
	made = blame(&b, &s);
	assert_int_equal(made->count, 2);
	assert_int_equal(made->pieces[0].ns, 20 * MS);
	assert_string_equal(made->pieces[0].text, "server+0x5000, in kind a");
	assert_int_equal(made->pieces[1].ns, 30 * MS);
	assert_string_equal(made->pieces[1].text, "server+0x6000, in kind a");
	tacho__blame_free(made);
	s.from_ns = T0 + 30 * MS;
	made = blame(&b, &s);
	assert_int_equal(made->count, 1);
	assert_string_equal(made->pieces[0].text, "server+0x6000, in kind a");
	tacho__blame_free(made);
	end(&b);
}

/* More stretches than are looked at at once: half a million turns, of 2 us each 4 us. What lies across
   the edge of two pieces may be told as two. */
static void times_of_a_long_window_are_found_piece_by_piece(void **state)
{
	const uint32_t turns = 1100000 / 2, turns_each = 50000;
	struct tacho__line_times times;
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	for (uint32_t i = 1; i <= turns; i++) {
		if (i % turns_each == 1) {
			trace_stream(&b.m, 1, 0);
			assert_int_equal(tacho__records_reserve(&b.m.e.r, 2 * turns_each + 1,
								2 * turns_each + 1),
					 0);
		}
		PUT(&b.m, 4000 * i, UNPARK, 1);
		PUT(&b.m, 4000 * i + 2000, PARK, LOOP_1);
	}
	PUT(&b.m, 4000 * (turns + 1), UNPARK, 1);
	book_make_silently(&b);
	assert_int_equal(line_of(&b, TACHO__OWNS_CODE)->ns, 2000ull * turns);
	assert_int_equal(
		tacho__line_times_make(&times, b.reader, b.l, line_of(&b, TACHO__OWNS_CODE), 10),
		0);
	assert_in_range(times.all, turns, turns + 8);
	assert_int_equal(times.all_ns, 2000ull * turns);
	assert_int_equal(times.count, 10);
	for (uint32_t i = 0; i < times.count; i++)
		assert_int_equal(times.at[i].to_ns - times.at[i].from_ns, 2000);
	tacho__line_times_free(&times);
	tacho__read_limit(b.reader, 0, 0);
	book_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_keeps_a_worker_is_named_with_the_call),
		cmocka_unit_test(without_calls_it_is_the_poll_that_kept_it),
		cmocka_unit_test(a_lock_consists_of_what_its_holder_did),
		cmocka_unit_test(what_the_kernel_counted_is_not_its_own),
		cmocka_unit_test(idle_is_idle),
		cmocka_unit_test(code_is_that_of_the_functions_that_were_sampled),
		cmocka_unit_test(a_sample_belongs_to_what_is_before_it),
		cmocka_unit_test(times_of_a_long_window_are_found_piece_by_piece),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
