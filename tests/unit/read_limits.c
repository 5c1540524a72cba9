/* from, to, last and seek: events cut exactly, and what was open at the cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "events_builder.h"
#include "read/records.h"
#include "read_help.h"

/*
 * One thread, times in ns. A poll with a span in it, records in between, the poll's
 * end; then parked until a second stretch. A second thread hangs in a poll.
 */
static void make(struct tb *t, int with_index)
{
	struct tacho_box_thread threads[3] = {
		{.state = TACHO_THREAD_LIVE, .number = 1},
		{.state = TACHO_THREAD_LIVE, .number = 2},
		{.state = TACHO_THREAD_ENDED, .number = 3},
	};
	uint64_t task = 0xaa, w1[3] = {3, 1, 2};
	struct eb e;

	tb_init(t);
	tb_meta(t, 42, 9000);
	tb_array(t, TACHO_BLOCK_THREADS, threads, sizeof(threads[0]), 3);
	eb_init(&e, 1, 0, 0);
	eb_record(&e, 1000, TACHO_REC_UNPARK, 1, NULL, 0);
	eb_record(&e, 1100, TACHO_REC_POLL_BEGIN, 5, &task, 1);
	eb_record(&e, 1200, TACHO_REC_SPAN_BEGIN, 6, NULL, 0);
	eb_record(&e, 1300, TACHO_REC_SPAWN, 7, w1, 3);
	eb_record(&e, 1400, TACHO_REC_SPAN_END, 6, NULL, 0);
	task = 0xbb;
	eb_record(&e, 1500, TACHO_REC_POLL_SWITCH, 8, &task, 1);
	eb_record(&e, 1600, TACHO_REC_POLL_END, 0, NULL, 0);
	eb_record(&e, 1700, TACHO_REC_PARK, 9, NULL, 0);
	eb_done(&e, t);
	eb_init(&e, 1, 1, 8);
	e.r.head.flags |= TACHO_CHUNK_PARKED;
	e.r.head.park_ns = 1700;
	eb_record(&e, 3000, TACHO_REC_UNPARK, 1, NULL, 0);
	eb_record(&e, 3100, TACHO_REC_PARK, 9, NULL, 0);
	eb_done(&e, t);
	eb_init(&e, 2, 0, 0);
	task = 0xcc;
	eb_record(&e, 1050, TACHO_REC_POLL_BEGIN, 5, &task, 1);
	eb_done(&e, t);
	/* A thread that has ended leaves nothing behind. */
	eb_init(&e, 3, 0, 0);
	eb_record(&e, 1050, TACHO_REC_POLL_BEGIN, 5, &task, 1);
	eb_done(&e, t);
	tb_end(t, with_index);
}

static void a_cut_tells_what_was_open_there(void **state)
{
	struct tacho_read_options o = {.size = sizeof(o), .from_ns = 1250, .to_ns = 3000};
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t first, last;
	struct tb t;

	(void)state;
	for (int with_index = 0; with_index < 2; with_index++) {
		make(&t, with_index);
		r = open_bytes(t.data, t.size, &o);
		assert_int_equal(tacho_read_window(r, &first, &last), 0);
		assert_int_equal(first, 1250);
		assert_int_equal(last, 3000);
		expect(r, &e, TACHO_EV_RESUME, 1, 1250);
		assert_int_equal(e->resume->open_count, 2);
		assert_int_equal(e->resume->open_listed, 2);
		assert_int_equal(e->resume->open[0].id, 5);
		assert_int_equal(e->resume->open[0].what, TACHO_EV_POLL_BEGIN);
		assert_int_equal(e->resume->open[0].task, 0xaa);
		assert_int_equal(e->resume->open[0].since_ns, 1100);
		assert_int_equal(e->resume->open[1].what, TACHO_EV_SPAN_BEGIN);
		assert_int_equal(e->resume->open[1].since_ns, 1200);
		assert_int_equal(e->resume->parked, 0);
		assert_int_equal(e->resume->first, 1);
		expect(r, &e, TACHO_EV_RESUME, 2, 1250);
		assert_int_equal(e->resume->open[0].task, 0xcc);
		expect(r, &e, TACHO_EV_SPAWN, 1, 1300);
		assert_int_equal(e->word[1], 1);
		expect(r, &e, TACHO_EV_SPAN_END, 1, 1400);
		expect(r, &e, TACHO_EV_POLL_SWITCH, 1, 1500);
		assert_int_equal(e->word[0], 0xbb);
		expect(r, &e, TACHO_EV_POLL_END, 1, 1600);
		expect(r, &e, TACHO_EV_PARK, 1, 1700);
		expect(r, &e, TACHO_EV_UNPARK, 1, 3000);
		assert_int_equal(tacho_read_next(r, &e), 0);
		tacho_read_close(r);
		tb_free(&t);
	}
}

static void the_last_part_only(void **state)
{
	struct tacho_read_options o = {.size = sizeof(o), .last_ns = 1500};
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tb t;

	(void)state;
	make(&t, 1);
	r = open_bytes(t.data, t.size, &o);
	expect(r, &e, TACHO_EV_RESUME, 1, 1600);
	/* The poll that hangs is not forgotten because it began long ago. */
	assert_int_equal(e->resume->open[0].task, 0xbb);
	expect(r, &e, TACHO_EV_POLL_END, 1, 1600);
	expect(r, &e, TACHO_EV_RESUME, 2, 1600);
	assert_int_equal(e->resume->open[0].task, 0xcc);
	expect(r, &e, TACHO_EV_PARK, 1, 1700);
	expect(r, &e, TACHO_EV_UNPARK, 1, 3000);
	expect(r, &e, TACHO_EV_PARK, 1, 3100);
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);
	tb_free(&t);
}

static void a_window_between_records_tells_the_state(void **state)
{
	struct tacho_read_options o = {.size = sizeof(o), .from_ns = 2000, .to_ns = 2500};
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tb t;

	(void)state;
	make(&t, 1);
	r = open_bytes(t.data, t.size, &o);
	expect(r, &e, TACHO_EV_RESUME, 1, 2000);
	assert_int_equal(e->resume->parked, 1);
	assert_int_equal(e->resume->parked_ns, 1700);
	assert_int_equal(e->resume->loop, 9);
	assert_int_equal(e->resume->open_count, 0);
	expect(r, &e, TACHO_EV_RESUME, 2, 2000);
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);
	o = (struct tacho_read_options){.size = sizeof(o), .from_ns = 10, .to_ns = 20};
	r = open_bytes(t.data, t.size, &o);
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_window(r, &(uint64_t){0}, &(uint64_t){0}), -ENODATA);
	tacho_read_close(r);
	tb_free(&t);
}

static void seeking_goes_anywhere(void **state)
{
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tb t;

	(void)state;
	make(&t, 1);
	r = open_bytes(t.data, t.size, NULL);
	assert_int_equal(count_events(r), 12);
	assert_int_equal(tacho_read_seek(r, 3050), 0);
	expect(r, &e, TACHO_EV_RESUME, 1, 3050);
	assert_int_equal(e->resume->parked, 0);
	expect(r, &e, TACHO_EV_RESUME, 2, 3050);
	expect(r, &e, TACHO_EV_PARK, 1, 3100);
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_seek(r, 1200), 0);
	expect(r, &e, TACHO_EV_RESUME, 1, 1200);
	assert_int_equal(e->resume->open_count, 1);
	expect(r, &e, TACHO_EV_SPAN_BEGIN, 1, 1200);
	assert_int_equal(tacho_read_seek(r, 0), 0);
	assert_int_equal(count_events(r), 12);
	assert_int_equal(tacho_read_seek(r, UINT64_MAX), 0);
	assert_int_equal(count_events(r), 0);
	tacho_read_close(r);
	tb_free(&t);
}

/* What the writer of traces sees of a reader with limits. */
static void stretches_are_cut_as_well(void **state)
{
	struct tacho_read_options o = {.size = sizeof(o), .from_ns = 1250, .to_ns = 1500};
	struct tacho__records records = {0};
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	make(&t, 1);
	r = open_bytes(t.data, t.size, &o);
	assert_int_equal(tacho__stretch_count(r), 2);
	assert_int_equal(tacho__stretch_load(r, 0, &records), 0);
	assert_int_equal(records.head.count, 3);
	assert_int_equal(records.head.first_ns, 1300);
	assert_int_equal(records.head.last_ns, 1500);
	assert_int_equal(records.head.prior_records, 3);
	assert_int_equal(records.head.flags & TACHO_EVENTS_CUT, TACHO_EVENTS_CUT);
	assert_int_equal(records.head.open_listed, 2);
	assert_int_equal(records.words[records.word_at[0] + 1], 1);
	assert_int_equal(records.word_at[3], 4);
	assert_int_equal(tacho__stretch_at(r, 1)->thread, 2);
	assert_int_equal(tacho__stretch_load(r, 1, &records), 0);
	assert_int_equal(records.head.count, 0);
	assert_int_equal(records.head.open_count, 1);
	assert_int_equal(records.head.first_ns, 1250);
	assert_null(tacho__stretch_at(r, 2));
	assert_int_equal(tacho__stretch_load(r, 2, &records), -EINVAL);
	tacho__records_free(&records);
	tacho_read_close(r);
	tb_free(&t);
}

static void same_events(struct tacho_reader *a, struct tacho_reader *b)
{
	const struct tacho_event *x, *y;
	int more;

	while ((more = tacho_read_next(a, &x)) > 0) {
		assert_int_equal(tacho_read_next(b, &y), 1);
		assert_int_equal(x->ns, y->ns);
		assert_int_equal(x->type, y->type);
		assert_int_equal(x->thread, y->thread);
		if (x->type == TACHO_EV_RESUME)
			assert_memory_equal(x->resume, y->resume, sizeof(*x->resume));
	}
	assert_int_equal(more, 0);
	assert_int_equal(tacho_read_next(b, &y), 0);
}

static void limits_can_be_changed_as_often_as_wanted(void **state)
{
	static const uint64_t limits[][2] = {{1250, 3000}, {0, 0},    {2000, 2500}, {1, 1050},
					     {3050, 0},	   {0, 1099}, {1700, 1700}, {9000, 9999}};
	struct tacho_read_options o = {.size = sizeof(o), .last_ns = 1};
	uint64_t bounds[4];
	struct tacho_reader *once, *anew;
	struct tb t;

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(limits) / sizeof(limits[0]); i++) {
		make(&t, i % 2);
		once = open_bytes(t.data, t.size, &o);
		for (unsigned k = 0; k <= i / 2; k++) {
			const struct tacho_event *e;

			tacho_read_next(once, &e);
			assert_int_equal(tacho__read_limit(once, limits[k][0], limits[k][1]), 0);
		}
		anew = open_bytes(t.data, t.size,
				  &(struct tacho_read_options){.size = sizeof(o),
							       .from_ns = limits[i / 2][0],
							       .to_ns = limits[i / 2][1]});
		assert_int_equal(tacho_read_window(once, &bounds[0], &bounds[1]),
				 tacho_read_window(anew, &bounds[2], &bounds[3]));
		assert_memory_equal(bounds, bounds + 2, sizeof(bounds) / 2);
		assert_int_equal(tacho__stretch_count(once), tacho__stretch_count(anew));
		same_events(once, anew);
		tacho_read_close(once);
		tacho_read_close(anew);
		tb_free(&t);
	}
}

static void progress(void *arg, uint64_t done, uint64_t total)
{
	assert_true(done <= total);
	++*(int *)arg;
}

static void progress_is_told(void **state)
{
	int calls = 0;
	struct tacho_read_options o = {
		.size = sizeof(o), .progress = progress, .progress_arg = &calls};
	struct tb t;

	(void)state;
	make(&t, 1);
	tacho_read_close(open_bytes(t.data, t.size, &o));
	assert_true(calls > 0);
	/* A caller that knows only the first members. */
	o.size = offsetof(struct tacho_read_options, progress);
	calls = 0;
	tacho_read_close(open_bytes(t.data, t.size, &o));
	assert_int_equal(calls, 0);
	tb_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_tells_what_was_open_there),
		cmocka_unit_test(the_last_part_only),
		cmocka_unit_test(a_window_between_records_tells_the_state),
		cmocka_unit_test(seeking_goes_anywhere),
		cmocka_unit_test(stretches_are_cut_as_well),
		cmocka_unit_test(limits_can_be_changed_as_often_as_wanted),
		cmocka_unit_test(progress_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
