/* Trace files of several parts: found from the end or forwards, each read alone. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "events_builder.h"
#include "read_help.h"
#include "read/reader.h"

#define PARTS 3u
#define RECORDS 50u

/* The process of part i is FIRST + i, and it has a thread 1 with RECORDS records. */
#define FIRST 42u

struct recording {
	struct tb t;
	uint64_t from[PARTS + 1]; /* where parts begin, and the end */
	uint64_t events[PARTS];	  /* offsets of their EVENTS blocks */
	uint64_t behind[PARTS];	  /* where those end */
};

static void put_part(struct recording *rec, uint32_t part, uint32_t pid, int sized)
{
	struct tacho_trace_file *file;
	struct tb t;
	struct eb e;

	tb_init(&t);
	t.tag = TB_TAG + part;
	t.sized = sized;
	file = (struct tacho_trace_file *)t.data;
	file->tag = t.tag;
	file->crc = tacho__crc32c(0, file, 60);
	tb_meta(&t, pid, 9000 + part);
	eb_init(&e, 1, part, RECORDS * part);
	eb_fill(&e, 2000 + 1000 * part, RECORDS);
	rec->from[part] = rec->t.size;
	rec->events[part] = rec->t.size + eb_done(&e, &t);
	rec->behind[part] = rec->t.size + t.size;
	tb_end(&t, 1);
	tb_put(&rec->t, t.data, t.size);
	rec->from[part + 1] = rec->t.size;
	tb_free(&t);
}

static void make(struct recording *rec, int sized)
{
	memset(rec, 0, sizeof(*rec));
	for (uint32_t i = 0; i < PARTS; i++)
		put_part(rec, i, FIRST + i, sized);
}

/* Exactly the processes of the bits in `wanted` are there, with all their events. */
static void expect_parts(const uint8_t *data, size_t size, unsigned wanted)
{
	struct tacho_reader *r = open_bytes(data, size, NULL);
	uint64_t counts[PARTS] = {0};
	const struct tacho_event *e;

	while (tacho_read_next(r, &e) > 0) {
		uint32_t pid = tacho_read_process(r, e->process)->pid;

		if (e->type != TACHO_EV_RESUME && pid >= FIRST && pid < FIRST + PARTS)
			counts[pid - FIRST]++;
	}
	for (uint32_t i = 0; i < PARTS; i++)
		assert_int_equal(counts[i], wanted >> i & 1 ? RECORDS : 0);
	tacho_read_close(r);
}

static void parts_are_read_as_one_and_none_is_a_problem(void **state)
{
	struct recording rec;
	struct tacho_reader *r;
	uint64_t first, last;

	(void)state;
	for (int sized = 0; sized < 2; sized++) {
		make(&rec, sized);
		expect_parts(rec.t.data, rec.t.size, 7);
		r = open_bytes(rec.t.data, rec.t.size, NULL);
		assert_int_equal(tacho_read_process_count(r), PARTS);
		assert_int_equal(tacho_read_window(r, &first, &last), 0);
		assert_int_equal(first, 2000);
		assert_int_equal(last, 4000 + 10 * (RECORDS - 1));
		assert_int_equal(count_events(r), PARTS * RECORDS);
		assert_int_equal(tacho_read_problem_count(r), 0);
		tacho_read_close(r);
		tb_free(&rec.t);
	}
}

static void several_windows_of_one_process_are_one_process(void **state)
{
	struct recording rec = {0};
	struct tacho_reader *r;

	(void)state;
	for (uint32_t i = 0; i < PARTS; i++)
		put_part(&rec, i, FIRST, 1);
	r = open_bytes(rec.t.data, rec.t.size, NULL);
	assert_int_equal(tacho_read_process_count(r), 1);
	assert_int_equal(count_events(r), PARTS * RECORDS);
	tacho_read_close(r);
	tb_free(&rec.t);
}

/* Every byte of one part in turn: the others do not mind. */
static void damage_to_one_part_leaves_the_others_whole(void **state)
{
	struct recording rec;

	(void)state;
	for (int sized = 0; sized < 2; sized++) {
		make(&rec, sized);
		for (uint32_t part = 0; part < PARTS; part++)
			for (uint64_t at = rec.from[part]; at < rec.from[part + 1]; at += 3) {
				struct tacho_reader *r;
				uint64_t others = 0;
				const struct tacho_event *e;

				rec.t.data[at] ^= 0x55;
				r = open_bytes(rec.t.data, rec.t.size, NULL);
				while (tacho_read_next(r, &e) > 0) {
					uint32_t pid = tacho_read_process(r, e->process)->pid;

					others += e->type != TACHO_EV_RESUME && pid &&
						  pid != FIRST + part;
				}
				if (others != (PARTS - 1) * RECORDS)
					fail_msg("byte %d of part %u: %d of the others",
						 (int)(at - rec.from[part]), part, (int)others);
				assert_true(tacho_read_problem_count(r) > 0);
				tacho_read_close(r);
				rec.t.data[at] ^= 0x55;
			}
		tb_free(&rec.t);
	}
}

/* The recording was cut anywhere: what was whole before the cut is read. */
static void a_cut_costs_what_comes_after_it(void **state)
{
	struct recording rec;

	(void)state;
	make(&rec, 1);
	for (uint64_t size = rec.from[1]; size < rec.t.size; size += 5)
		expect_parts(rec.t.data, size,
			     size < rec.behind[1]   ? 1
			     : size < rec.behind[2] ? 3
						    : 7);
	tb_free(&rec.t);
}

/* Bytes are missing in the middle, also so many that what follows is no longer aligned. */
static void a_hole_costs_the_part_that_it_is_in(void **state)
{
	struct recording rec;

	(void)state;
	make(&rec, 1);
	for (uint64_t missing = 1; missing < 64; missing++) {
		uint8_t *copy = malloc(rec.t.size);
		uint64_t at = rec.events[1] + 40;

		memcpy(copy, rec.t.data, at);
		memcpy(copy + at, rec.t.data + at + missing, rec.t.size - at - missing);
		expect_parts(copy, rec.t.size - missing, 5);
		free(copy);
	}
	tb_free(&rec.t);
}

/* The end of a part is missing: its last block seems to reach into the next part. */
static void a_cut_part_does_not_swallow_the_next(void **state)
{
	struct recording rec;

	(void)state;
	for (int sized = 0; sized < 2; sized++) {
		struct tb t = {0};

		make(&rec, sized);
		tb_put(&t, rec.t.data, rec.events[1] + 40);
		tb_put(&t, rec.t.data + rec.from[2], rec.t.size - rec.from[2]);
		expect_parts(t.data, t.size, 5);
		tb_free(&t);
		tb_free(&rec.t);
	}
}

static void garbage_between_parts_is_told_and_skipped(void **state)
{
	struct recording rec;

	(void)state;
	for (int sized = 0; sized < 2; sized++) {
		struct tacho_reader *r;
		struct tb t = {0};

		make(&rec, sized);
		tb_put(&t, rec.t.data, rec.from[1]);
		for (int i = 0; i < 100; i++)
			tb_put(&t, "garbage!", 8);
		tb_put(&t, rec.t.data + rec.from[1], rec.t.size - rec.from[1]);
		expect_parts(t.data, t.size, 7);
		r = open_bytes(t.data, t.size, NULL);
		assert_int_equal(tacho_read_problem_count(r), 1);
		assert_int_equal(problems_named(r, "trailing-garbage"), 1);
		assert_int_equal(tacho_read_problem(r, 0)->offset, rec.from[1]);
		assert_int_equal(tacho_read_problem(r, 0)->size, 800);
		tacho_read_close(r);
		tb_free(&t);
		tb_free(&rec.t);
	}
}

/* Places of problems are those in the file. */
static void a_problem_is_where_it_is_in_the_file(void **state)
{
	struct recording rec;
	struct tacho_reader *r;

	(void)state;
	make(&rec, 1);
	rec.t.data[rec.events[1] + 40] ^= 1;
	r = open_bytes(rec.t.data, rec.t.size, NULL);
	assert_int_equal(count_events(r), 2 * RECORDS);
	assert_int_equal(problems_named(r, "damaged-block"), 1);
	assert_int_equal(tacho_read_problem(r, 0)->offset, rec.events[1]);
	tacho_read_close(r);
	tb_free(&rec.t);
}

/* A part that holds the bytes of another in a block is still one part. */
static void what_a_block_holds_is_not_a_part(void **state)
{
	struct recording rec;
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	make(&rec, 0);
	for (int sized = 0; sized < 2; sized++) {
		tb_init(&t);
		t.sized = sized;
		tb_meta(&t, 7, 9000);
		tb_plain(&t, 4000, rec.t.data, rec.t.size);
		tb_end(&t, 1);
		r = open_bytes(t.data, t.size, NULL);
		assert_int_equal(tacho_read_process_count(r), 1);
		assert_int_equal(tacho_read_process(r, 0)->pid, 7);
		assert_int_equal(tacho_read_problem_count(r), 0);
		tacho_read_close(r);
		tb_free(&t);
	}
	tb_free(&rec.t);
}

static void one_process_can_be_asked_for(void **state)
{
	struct tacho_read_options options = {.size = sizeof(options), .pid = FIRST + 1};
	char message[256];
	struct recording rec;
	struct tacho_reader *r;

	(void)state;
	make(&rec, 1);
	/* What is wrong with the others is not a matter of this one. */
	rec.t.data[rec.from[3] - 100] ^= 1;
	r = open_bytes(rec.t.data, rec.t.size, &options);
	assert_int_equal(tacho_read_process_count(r), 1);
	assert_int_equal(tacho_read_process(r, 0)->pid, FIRST + 1);
	assert_int_equal(count_events(r), RECORDS);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);

	options.process = "traced";
	r = open_bytes(rec.t.data, rec.t.size, &options);
	assert_int_equal(tacho_read_process_count(r), 1);
	tacho_read_close(r);

	options.process = "other";
	assert_int_equal(tacho_read_open_memory(&r, rec.t.data, rec.t.size, &options, message, 256),
			 -ESRCH);
	assert_non_null(strstr(message, "no process 43 named other"));
	assert_non_null(strstr(message, "traced (42), traced (43)"));
	tb_free(&rec.t);
}

static void events_of_one_process_are_read_alone(void **state)
{
	struct recording rec;
	struct tacho_reader *r;
	uint64_t first, last;

	(void)state;
	make(&rec, 1);
	r = open_bytes(rec.t.data, rec.t.size, NULL);
	tacho__read_only(r, 1);
	assert_int_equal(tacho_read_window(r, &first, &last), 0);
	assert_int_equal(first, 3000);
	assert_int_equal(last, 3000 + 10 * (RECORDS - 1));
	assert_int_equal(count_events(r), RECORDS);
	tacho__read_only(r, UINT32_MAX);
	assert_int_equal(count_events(r), PARTS * RECORDS);
	tacho_read_close(r);
	tb_free(&rec.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_read_as_one_and_none_is_a_problem),
		cmocka_unit_test(several_windows_of_one_process_are_one_process),
		cmocka_unit_test(damage_to_one_part_leaves_the_others_whole),
		cmocka_unit_test(a_cut_costs_what_comes_after_it),
		cmocka_unit_test(a_hole_costs_the_part_that_it_is_in),
		cmocka_unit_test(a_cut_part_does_not_swallow_the_next),
		cmocka_unit_test(garbage_between_parts_is_told_and_skipped),
		cmocka_unit_test(a_problem_is_where_it_is_in_the_file),
		cmocka_unit_test(what_a_block_holds_is_not_a_part),
		cmocka_unit_test(one_process_can_be_asked_for),
		cmocka_unit_test(events_of_one_process_are_read_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
