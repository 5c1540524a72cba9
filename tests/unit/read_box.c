/* Boxes: their chunks and records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "box_builder.h"
#include "read_help.h"

static void records_come_in_the_order_of_time(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *one = bb_chunk(&b, 1, 0, 30000000);
	struct tacho_chunk *two = bb_chunk(&b, 2, 0, 30000300);

	bb_record1(one, 30000600, TACHO_REC_POLL_BEGIN, 5, 0xaa);
	bb_record1(two, 30000900, TACHO_REC_WAKE, 0, 0xbb);
	bb_record(one, 30001200, TACHO_REC_POLL_END, 1, NULL, 0);
	/* Further than a delta reaches. */
	bb_record(two, 30001500 + (1ull << 33), TACHO_REC_PARK, 3, NULL, 0);
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000600));
	assert_int_equal(e->resume->first, 1);
	assert_int_equal(e->resume->missing, 0);
	expect(r, &e, TACHO_EV_POLL_BEGIN, 1, bb_ns(30000600));
	assert_int_equal(e->arg, 5);
	assert_int_equal(e->words, 1);
	assert_int_equal(e->word[0], 0xaa);
	expect(r, &e, TACHO_EV_RESUME, 2, bb_ns(30000900));
	expect(r, &e, TACHO_EV_WAKE, 2, bb_ns(30000900));
	expect(r, &e, TACHO_EV_POLL_END, 1, bb_ns(30001200));
	expect(r, &e, TACHO_EV_PARK, 2, bb_ns(30001500 + (1ull << 33)));
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void a_hole_in_a_stream_is_told(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c0 = bb_chunk(&b, 1, 3, 30000000);

	c0->prior_records = 100;
	bb_record(c0, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	/* Follows without a hole. */
	struct tacho_chunk *c1 = bb_chunk(&b, 1, 4, 30000100);

	c1->prior_records = 101;
	bb_record(c1, 30000103, TACHO_REC_PAUSE, 0, NULL, 0);
	/* Two chunks of 50 records in all are missing. */
	struct tacho_chunk *c2 = bb_chunk(&b, 1, 7, 30000200);

	c2->prior_records = 152;
	c2->open_count = 7;
	c2->open[0] = (struct tacho_open){5, TACHO_REC_POLL_BEGIN, 0xaa, 30000150};
	c2->flags = TACHO_CHUNK_PARKED;
	c2->loop = 9;
	c2->park_ticks = 30000180;
	bb_record(c2, 30000203, TACHO_REC_PAUSE, 1, NULL, 0);
	/* Nothing overwritten, but records that never found room. */
	struct tacho_chunk *c3 = bb_chunk(&b, 1, 8, 30000300);

	c3->prior_records = 153;
	c3->drops = 6;
	bb_record(c3, 30000303, TACHO_REC_PAUSE, 1, NULL, 0);
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000003));
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000003));
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000103));
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000203));
	assert_int_equal(e->resume->first, 0);
	assert_int_equal(e->resume->missing, 50);
	assert_int_equal(e->resume->open_count, 7);
	assert_int_equal(e->resume->open_listed, 5);
	assert_int_equal(e->resume->open[0].since_ns, bb_ns(30000150));
	assert_int_equal(e->resume->open[0].task, 0xaa);
	assert_int_equal(e->resume->parked, 1);
	assert_int_equal(e->resume->parked_ns, bb_ns(30000180));
	assert_int_equal(e->resume->loop, 9);
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000203));
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000303));
	assert_int_equal(e->resume->dropped, 6);
	assert_int_equal(e->resume->missing, 0);
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000303));
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void small_chunks_count_when_they_are_taken(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct tacho_box_slot *slots;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	bb_record(c, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	c->size = TACHO_SMALL_SIZE;
	for (unsigned part = 1; part < 4; part++) {
		struct tacho_chunk *other =
			(struct tacho_chunk *)((uint8_t *)c + part * TACHO_SMALL_SIZE);

		memcpy(other, c, (size_t)c->commit);
		other->thread = 1 + part;
		other->generation = part == 3 ? 0 : c->generation;
	}
	slots = bb_region(&b, TACHO_REGION_SLOTS);
	/* Parts 0 and 3 were given out; 3 is being made, 1 and 2 are what was there before. */
	slots[0].state = TACHO_SLOT_SPLIT | 9ull << 24 | 1ull << 40;
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000003));
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000003));
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void chunks_made_after_reading_began_are_not_wanted(void **state)
{
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	bb_record(bb_chunk(&b, 1, 0, 30000000), 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	/* One without the next would be a hole in the stream. */
	bb_record(bb_chunk(&b, 1, 2, 30000600), 30000603, TACHO_REC_PAUSE, 0, NULL, 0);
	b.super->generation--;
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(count_events(r), 1);
	tacho_read_close(r);
	bb_free(&b);
}

/* The process takes the oldest chunk for newer records while the first one is copied. */
static void take_oldest(void *arg, uint64_t done, uint64_t total)
{
	struct tacho_chunk *oldest = arg;

	assert_true(done <= total);
	oldest->generation += 100;
}

static void a_chunk_taken_anew_while_reading_is_not_wanted(void **state)
{
	struct tacho_read_options o = {.size = sizeof(o), .progress = take_oldest};
	const struct tacho_event *e;
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	bb_init(&b);
	o.progress_arg = bb_chunk(&b, 1, 0, 30000000);
	bb_record(o.progress_arg, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	bb_record(bb_chunk(&b, 1, 1, 30000600), 30000603, TACHO_REC_PAUSE, 0, NULL, 0);
	r = open_bytes(b.data, b.size, &o);
	assert_int_equal(problems_named(r, "overwritten-while-read"), 1);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000603));
	expect(r, &e, TACHO_EV_PAUSE, 1, bb_ns(30000603));
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);
	bb_free(&b);
}

static void a_bad_record_ends_its_chunk_only(void **state)
{
	struct bb b;
	struct tacho_reader *r;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);

	bb_record(c, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	bb_record(c, 30000006, TACHO_REC_NONE, 0, NULL, 0);
	bb_record(c, 30000009, TACHO_REC_PAUSE, 0, NULL, 0);
	c = bb_chunk(&b, 2, 0, 30000000);
	bb_record(c, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
	/* A type of the future, of which only the length is known. */
	bb_record1(c, 30000006, 0x7e, 1, 2);
	/* What the reader makes itself must not come from outside. */
	bb_record(c, 30000009, TACHO_EV_RESUME, 0, NULL, 0);
	r = open_bytes(b.data, b.size, NULL);
	assert_int_equal(count_events(r), 3);
	assert_int_equal(problems_named(r, "bad-record"), 2);
	tacho_read_close(r);
	bb_free(&b);
}

/* Commits that cut the last record by a word, and by none. */
static void a_record_ends_within_its_chunk(void **state)
{
	static const uint64_t words[4] = {4, 1, 2, 3};
	static const struct {
		unsigned type, words;
	} records[] = {{TACHO_REC_WAKE, 1},
		       {TACHO_REC_LOCK_RELEASE, 2},
		       {TACHO_REC_SPAWN, 4},
		       {TACHO_REC_TIME, 1}};
	struct tacho_reader *r;
	struct bb b;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		unsigned type = records[i / 2].type, cut = i % 2;
		struct tacho_chunk *c;

		bb_init(&b);
		c = bb_chunk(&b, 1, 0, 30000000);
		bb_record(c, 30000003, TACHO_REC_PAUSE, 1, NULL, 0);
		bb_record(c, 30000006, type, 1, words, records[i / 2].words);
		c->commit -= 8 * cut;
		r = open_bytes(b.data, b.size, NULL);
		assert_int_equal(count_events(r), 1 + (!cut && type != TACHO_REC_TIME));
		assert_int_equal(problems_named(r, "bad-record"), cut);
		tacho_read_close(r);
		bb_free(&b);
	}
}

static void expect_word(struct tacho_reader *r, unsigned type, uint64_t ticks, uint32_t arg,
			uint64_t word)
{
	const struct tacho_event *e;

	expect(r, &e, type, 1, bb_ns(ticks));
	assert_int_equal(e->arg, arg);
	assert_int_equal(e->words, type >> 6);
	if (e->words)
		assert_int_equal(e->word[0], word);
}

/* POLL_BEGIN_SMALL has no delta where the others have it. */
static void put_small_poll(struct tacho_chunk *c, uint64_t ticks, uint64_t kind, uint64_t task)
{
	uint64_t *p = (uint64_t *)((uint8_t *)c + c->commit);

	*p = TACHO_REC_POLL_BEGIN_SMALL | kind << 8 | task << 20 | (ticks - c->last_ticks) << 44;
	c->last_ticks = ticks;
	c->commit += 8;
}

static void packed_records_are_the_events_that_they_stand_for(void **state)
{
	const uint64_t data = 0x7ffffffffff8ull, fd = 0x7fffffff;
	uint64_t list[] = {4, tacho_item_pack(fd, 0xabcdef), tacho_item_pack(data, 0x2019),
			   tacho_item_pack(0, 1)};
	struct tacho_reader *r;
	const struct tacho_event *e;
	struct bb b;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 30000000);
	uint64_t t = 30000000;

	bb_record(c, t += 3, TACHO_REC_WAKE_SMALL, 0xffffff, NULL, 0);
	bb_record(c, t += 3, TACHO_REC_TASK_END_SMALL, 1, NULL, 0);
	put_small_poll(c, t += 0xffffc, 0xfff, 0xfffffe);
	bb_record(c, t += 3, TACHO_REC_END_PARK, 2u << 22 | 0x3ffffe, NULL, 0);
	bb_record1(c, t += 3, TACHO_REC_UNPARK_READY, 1, tacho_item_pack(7, 0x11));
	bb_record(c, t += 3, TACHO_REC_UNPARK_LIST, 99, list, 4);
	/* One without items, and one whose items would lie beyond the chunk. */
	list[0] = 1;
	bb_record(c, t += 3, TACHO_REC_UNPARK_LIST, 0, list, 1);
	list[0] = 3;
	bb_record(c, t + 3, TACHO_REC_UNPARK_LIST, 5, list, 2);
	r = open_bytes(b.data, b.size, NULL);
	t = 30000000;
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(t + 3));
	expect_word(r, TACHO_EV_WAKE, t += 3, 0, 0xffffff);
	expect_word(r, TACHO_EV_TASK_END, t += 3, 0, 1);
	expect_word(r, TACHO_EV_POLL_BEGIN, t += 0xffffc, 0xfff, 0xfffffe);
	expect_word(r, TACHO_EV_POLL_END, t += 3, 2, 0);
	expect_word(r, TACHO_EV_PARK, t, 0x3ffffe, 0);
	expect_word(r, TACHO_EV_UNPARK, t += 3, 1, 0);
	expect_word(r, TACHO_EV_READY, t, 0x11, 7);
	expect_word(r, TACHO_EV_UNPARK, t += 3, 99, 0);
	expect_word(r, TACHO_EV_READY, t, 0xabcdef, fd);
	expect_word(r, TACHO_EV_READY, t, 0x2019, 1ull << 63 | data);
	expect_word(r, TACHO_EV_READY, t, 1, 0);
	expect_word(r, TACHO_EV_UNPARK, t + 3, 0, 0);
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_problem_count(r), 1);
	tacho_read_close(r);
	bb_free(&b);
	/* What does not fit a word has none. */
	assert_int_equal(tacho_item_pack(1ull << 47, 1), 0);
	assert_int_equal(tacho_item_pack(data, 0x10000), 0);
}

static void a_chunk_without_records_tells_what_was_open(void **state)
{
	struct bb b;
	struct tacho_reader *r;
	const struct tacho_event *e;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 9, 30000000);

	c->open_count = 1;
	c->open[0] = (struct tacho_open){5, TACHO_REC_POLL_BEGIN, 0xaa, 3000};
	r = open_bytes(b.data, b.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(30000000));
	assert_int_equal(e->resume->open_listed, 1);
	assert_int_equal(e->resume->open[0].since_ns, bb_ns(3000));
	assert_int_equal(tacho_read_next(r, &e), 0);
	tacho_read_close(r);
	bb_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_the_order_of_time),
		cmocka_unit_test(a_hole_in_a_stream_is_told),
		cmocka_unit_test(small_chunks_count_when_they_are_taken),
		cmocka_unit_test(chunks_made_after_reading_began_are_not_wanted),
		cmocka_unit_test(a_chunk_taken_anew_while_reading_is_not_wanted),
		cmocka_unit_test(a_bad_record_ends_its_chunk_only),
		cmocka_unit_test(a_record_ends_within_its_chunk),
		cmocka_unit_test(packed_records_are_the_events_that_they_stand_for),
		cmocka_unit_test(a_chunk_without_records_tells_what_was_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
