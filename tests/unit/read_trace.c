/* Trace files: by index, by scanning, damaged in every way. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "events_builder.h"
#include "read/block.h"
#include "read_help.h"

/* A file with two threads, four blocks of 50 records each, names, a trigger. */
struct sample {
	struct tb t;
	uint64_t events[4]; /* offsets */
	uint64_t definitions;
};

static void make_sample(struct sample *s, int with_index)
{
	struct tacho_anchor anchors[2] = {{1000, 1000, 2001000}, {9000, 9000, 2009000}};
	struct tacho_box_thread threads[2] = {
		{.state = TACHO_THREAD_LIVE,
		 .number = 1,
		 .tid = 11,
		 .start_ticks = 1000,
		 .name = "one"},
		{.state = TACHO_THREAD_ENDED, .number = 2, .tid = 12, .name = "two"},
	};
	struct tacho_box_trigger trigger = {
		.number = 1, .ticks = 2000, .size = 4, .reason = "slow"};
	struct tacho_box_source source = {TACHO_SOURCE_ON, 0, 0};
	uint64_t losses[TACHO_LOSS_COUNT] = {[TACHO_LOSS_NESTING] = 5};
	struct tb definitions = {0};
	uint8_t payload[TACHO_DEF_PAYLOAD_MAX];
	uint16_t size = bb_name(payload, "on_read", "a.c", 3, 0, 0, "");
	struct eb e;

	tb_init(&s->t);
	tb_meta(&s->t, 42, 9000);
	tb_array(&s->t, TACHO_BLOCK_CLOCK, anchors, sizeof(anchors[0]), 2);
	tb_array(&s->t, TACHO_BLOCK_THREADS, threads, sizeof(threads[0]), 2);
	tb_definition(&definitions, 7, TACHO_DEF_KIND, payload, size);
	tb_definition(&definitions, 8, TACHO_DEF_STACK, payload, 13);
	s->definitions =
		tb_plain(&s->t, TACHO_BLOCK_DEFINITIONS, definitions.data, definitions.size);
	free(definitions.data);
	tb_array(&s->t, TACHO_BLOCK_TRIGGERS, &trigger, sizeof(trigger), 1);
	tb_array(&s->t, TACHO_BLOCK_SOURCES, &source, sizeof(source), 1);
	tb_array(&s->t, TACHO_BLOCK_LOSSES, losses, 8, TACHO_LOSS_COUNT);
	for (uint32_t i = 0; i < 4; i++) {
		eb_init(&e, 1 + i % 2, i / 2, 50 * (i / 2));
		eb_fill(&e, 2000 + 1000 * (i / 2) + i % 2, 50);
		s->events[i] = eb_done(&e, &s->t);
	}
	/* A block of the future. */
	tb_plain(&s->t, 4000, "whatever", 8);
	tb_end(&s->t, with_index);
}

static void check_sample(struct tacho_reader *r)
{
	struct tacho_loss_info loss = {.size = sizeof(loss)};
	struct tacho_source_info source = {.size = sizeof(source)};
	uint64_t first, last;

	assert_int_equal(tacho_read_process(r, 0)->pid, 42);
	assert_string_equal(tacho_read_process(r, 0)->comm, "traced");
	assert_int_equal(tacho_read_thread_count(r), 2);
	assert_string_equal(tacho_read_thread_by_number(r, 0, 2)->name, "two");
	assert_int_equal(tacho_read_thread_by_number(r, 0, 1)->live, 1);
	assert_string_equal(tacho_read_definition(r, 0, 7)->name, "on_read");
	assert_int_equal(tacho_read_trigger(r, 0)->ns, 2000);
	assert_int_equal(tacho_read_loss(r, 0, TACHO_LOSS_NESTING, &loss), 0);
	assert_int_equal(loss.count, 5);
	assert_int_equal(tacho_read_source(r, 0, 0, &source), 0);
	assert_int_equal(source.state, TACHO_SOURCE_ON);
	assert_int_equal(tacho_read_real_ns(r, 0, 2000), 2002000);
	assert_int_equal(tacho_read_window(r, &first, &last), 0);
	assert_int_equal(first, 2000);
	assert_int_equal(last, 3491);
	assert_int_equal(problems_named(r, "bad-definition"), 1);
	assert_int_equal(tacho_read_problem_count(r), 1);
	assert_int_equal(count_events(r), 200);
	assert_int_equal(tacho_read_problem_count(r), 1);
}

static void the_path_of_a_module_ends_with_its_definition(void **state)
{
	static const char path[] = "/lib/x.so";
	const uint16_t room = sizeof(path) - 1;

	(void)state;
	for (uint16_t length = room - 1; length <= room + 1; length++) {
		uint8_t module[TACHO_MODULE_HEAD + sizeof(path) - 1] = {0};
		const uint64_t range[4] = {0x1000, 0x2000, 0, 1};
		const struct tacho_definition *d;
		struct tb definitions = {0}, t;
		struct tacho_reader *r;

		memcpy(module, range, sizeof(range));
		memcpy(module + 34, &length, sizeof(length));
		memcpy(module + TACHO_MODULE_HEAD, path, room);
		tb_definition(&definitions, 9, TACHO_DEF_MODULE, module, sizeof(module));
		tb_init(&t);
		tb_meta(&t, 42, 9000);
		tb_plain(&t, TACHO_BLOCK_DEFINITIONS, definitions.data, definitions.size);
		free(definitions.data);
		tb_end(&t, 1);
		r = open_bytes(t.data, t.size, NULL);
		d = tacho_read_definition(r, 0, 9);
		assert_int_equal(problems_named(r, "bad-definition"), length > room);
		assert_int_equal(d && strlen(d->name) == length, length <= room);
		tacho_read_close(r);
		tb_free(&t);
	}
}

static void a_file_is_read_by_its_index_and_without(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	for (int with_index = 0; with_index < 2; with_index++) {
		make_sample(&s, with_index);
		r = open_bytes(s.t.data, s.t.size, NULL);
		check_sample(r);
		tacho_read_close(r);
		tb_free(&s.t);
	}
}

static void a_damaged_payload_costs_its_block(void **state)
{
	struct sample s;
	struct tacho_reader *r;
	const struct tacho_event *e;
	uint64_t missing = 0;

	(void)state;
	for (int with_index = 0; with_index < 2; with_index++) {
		make_sample(&s, with_index);
		s.t.data[s.events[1] + 40] ^= 1;
		s.t.data[s.definitions + 40] ^= 1;
		r = open_bytes(s.t.data, s.t.size, NULL);
		assert_int_equal(count_events(r), 150);
		assert_int_equal(problems_named(r, "damaged-block"), 2);
		assert_null(tacho_read_definition(r, 0, 7));
		/* Reading once more does not report it once more. */
		assert_int_equal(tacho_read_seek(r, 0), 0);
		while (tacho_read_next(r, &e) > 0)
			missing += e->type == TACHO_EV_RESUME ? e->resume->missing : 0;
		assert_int_equal(problems_named(r, "damaged-block"), 2);
		tacho_read_close(r);
		tb_free(&s.t);
	}
	/* First blocks of a stream are not known to be missing, later ones are. */
	assert_int_equal(missing, 0);
}

static void a_damaged_header_of_a_block_costs_that_block(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	for (int with_index = 0; with_index < 2; with_index++) {
		make_sample(&s, with_index);
		s.t.data[s.events[2] + 9] ^= 0x40;
		r = open_bytes(s.t.data, s.t.size, NULL);
		assert_int_equal(count_events(r), 150);
		assert_int_equal(problems_named(r, "damaged-block"), 1);
		tacho_read_close(r);
		tb_free(&s.t);
	}
}

static void a_damaged_file_header_costs_nothing(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		make_sample(&s, 1);
		s.t.data[i] ^= 4;
		r = open_bytes(s.t.data, s.t.size, NULL);
		assert_int_equal(count_events(r), 200);
		assert_int_equal(problems_named(r, "damaged-header"), 1);
		tacho_read_close(r);
		tb_free(&s.t);
	}
}

static void missing_and_repeated_blocks_are_reported(void **state)
{
	struct sample s;
	struct tacho_reader *r;
	uint64_t size;

	(void)state;
	make_sample(&s, 1);
	size = s.events[2] - s.events[1];
	memmove(s.t.data + s.events[1], s.t.data + s.events[2], s.t.size - s.events[2]);
	r = open_bytes(s.t.data, s.t.size - size, NULL);
	assert_int_equal(count_events(r), 150);
	assert_int_equal(problems_named(r, "missing-block"), 1);
	tacho_read_close(r);
	tb_free(&s.t);

	make_sample(&s, 0);
	size = s.events[1] - s.events[0];
	s.t.data = realloc(s.t.data, s.t.size + size);
	memmove(s.t.data + s.events[1], s.t.data + s.events[0], s.t.size - s.events[0]);
	r = open_bytes(s.t.data, s.t.size + size, NULL);
	assert_int_equal(count_events(r), 200);
	assert_int_equal(problems_named(r, "duplicate-block"), 1);
	tacho_read_close(r);
	tb_free(&s.t);
}

static void bytes_after_the_end_are_reported(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	make_sample(&s, 1);
	tb_put(&s.t, "some bytes more", 15);
	r = open_bytes(s.t.data, s.t.size, NULL);
	assert_int_equal(count_events(r), 200);
	assert_int_equal(problems_named(r, "trailing-garbage"), 1);
	tacho_read_close(r);
	tb_free(&s.t);
}

static void an_index_that_lies_is_not_used(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	for (int lie = 0; lie < 4; lie++) {
		make_sample(&s, 0);
		s.t.size -= sizeof(struct tacho_trace_end);
		if (lie == 0)
			s.t.index[3].size += 8;
		else if (lie == 1)
			s.t.index[8].first_ns = UINT64_MAX;
		else if (lie == 2)
			s.t.index_count--;
		else
			s.t.index[0].offset = UINT64_MAX;
		tb_end(&s.t, 1);
		r = open_bytes(s.t.data, s.t.size, NULL);
		assert_int_equal(problems_named(r, "bad-index"), 1);
		assert_int_equal(count_events(r), 200);
		tacho_read_close(r);
		tb_free(&s.t);
	}
	/* Bounds that are possible but false: found when the block is loaded. */
	make_sample(&s, 0);
	s.t.size -= sizeof(struct tacho_trace_end);
	s.t.index[8].first_ns += 5;
	tb_end(&s.t, 1);
	r = open_bytes(s.t.data, s.t.size, NULL);
	assert_int_equal(count_events(r), 150);
	assert_int_equal(problems_named(r, "damaged-block"), 1);
	tacho_read_close(r);
	tb_free(&s.t);
}

static void newer_files_are_refused(void **state)
{
	struct sample s;
	struct tacho_reader *r;
	struct tacho_trace_file *file;
	char message[256];

	(void)state;
	make_sample(&s, 1);
	file = (struct tacho_trace_file *)s.t.data;
	file->major = TACHO_TRACE_MAJOR + 1;
	file->crc = tacho__crc32c(0, file, 60);
	assert_int_equal(try_bytes(&r, s.t.data, s.t.size, message), -ENOTSUP);
	file->major = TACHO_TRACE_MAJOR;
	file->minor = 99;
	file->crc = tacho__crc32c(0, file, 60);
	r = open_bytes(s.t.data, s.t.size, NULL);
	check_sample(r);
	tacho_read_close(r);
	tb_free(&s.t);
}

static void a_block_that_lies_about_its_size_takes_no_memory(void **state)
{
	uint8_t bomb[256];
	struct tacho_reader *r;
	uint8_t *zeros = calloc(1, TACHO_BLOCK_MAX);
	size_t size = ZSTD_compressBound(TACHO_BLOCK_MAX);
	uint8_t *stored = malloc(size);
	struct sample s;

	(void)state;
	size = ZSTD_compress(stored, size, zeros, TACHO_BLOCK_MAX, 1);
	make_sample(&s, 0);
	s.t.size -= sizeof(struct tacho_trace_end);
	tb_block(&s.t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_ZSTD, stored, (uint32_t)size, 4096);
	tb_block(&s.t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_ZSTD, bomb, 0, TACHO_BLOCK_MAX);
	tb_block(&s.t, TACHO_BLOCK_EVENTS, 77, "abc", 3, 3);
	tb_block(&s.t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_PLAIN, "abc", 3, 4);
	tb_block(&s.t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_PLAIN, "", 0, 0);
	/* The right size, but nothing of what an EVENTS block holds. */
	tb_block(&s.t, TACHO_BLOCK_EVENTS, TACHO_ENCODING_ZSTD, stored, (uint32_t)size,
		 TACHO_BLOCK_MAX);
	tb_block(&s.t, TACHO_BLOCK_DEFINITIONS, TACHO_ENCODING_ZSTD, stored, (uint32_t)size,
		 TACHO_BLOCK_MAX);
	tb_block(&s.t, TACHO_BLOCK_TRIGGERS, TACHO_ENCODING_ZSTD, stored, (uint32_t)size,
		 TACHO_BLOCK_MAX);
	tb_end(&s.t, 0);
	r = open_bytes(s.t.data, s.t.size, NULL);
	assert_int_equal(count_events(r), 200);
	assert_in_range(problems_named(r, "damaged-block"), 7, 8);
	tacho_read_close(r);
	free(zeros);
	free(stored);
	tb_free(&s.t);
}

static int is_block(uint32_t stored, uint32_t raw)
{
	struct tacho_trace_block head = {
		.magic = TACHO_BLOCK_MAGIC, .stored_size = stored, .raw_size = raw, .tag = 5};

	head.crc = tacho__crc32c(0, &head, offsetof(struct tacho_trace_block, crc));
	return tacho__block_check(&head, &(uint32_t){5});
}

static void blocks_have_a_largest_size(void **state)
{
	(void)state;
	assert_true(is_block(TACHO_BLOCK_MAX, TACHO_BLOCK_MAX));
	assert_false(is_block(TACHO_BLOCK_MAX + 1, TACHO_BLOCK_MAX));
	assert_false(is_block(TACHO_BLOCK_MAX, TACHO_BLOCK_MAX + 1));
}

/* What a crash handler writes: chunks as they stand in the box. */
static void chunks_are_read_from_files_too(void **state)
{
	struct tacho_anchor anchor = {3000, 1000000000, 5};
	struct tacho_anchor far_anchor = {3000000000ull, bb_ns(3000000000ull), 0};
	struct tacho_anchor both[2] = {anchor, far_anchor};
	struct tacho_box_thread thread = {.state = TACHO_THREAD_LIVE,
					  .number = 1,
					  .pending_kind = 9,
					  .pending_ticks = 60000900,
					  .pending_task = 3};
	struct tacho_box_hist hists[2] = {
		{0}, {.kind = 4, .thread = 1, .since = 60000000, .total = 30, .count = {3}}};
	struct tacho_box_thread other = {.state = TACHO_THREAD_LIVE, .number = 9};
	const struct tacho_event *e;
	struct tacho_reader *r;
	struct tb t;
	struct bb b;

	(void)state;
	bb_init(&b);
	struct tacho_chunk *c = bb_chunk(&b, 1, 0, 60000000);

	bb_record1(c, 60000300, TACHO_REC_WAKE, 0, 1);
	tb_init(&t);
	tb_meta(&t, 1, 2);
	tb_array(&t, TACHO_BLOCK_CLOCK, both, sizeof(both[0]), 2);
	tb_array(&t, TACHO_BLOCK_THREADS, &thread, sizeof(thread), 1);
	/* A table may take several blocks. */
	tb_array(&t, TACHO_BLOCK_THREADS, &other, sizeof(other), 1);
	tb_array(&t, TACHO_BLOCK_HISTOGRAMS, &hists[0], sizeof(hists[0]), 1);
	tb_array(&t, TACHO_BLOCK_HISTOGRAMS, &hists[1], sizeof(hists[0]), 1);
	tb_plain(&t, TACHO_BLOCK_CHUNK, c, (size_t)c->commit);
	tb_plain(&t, TACHO_BLOCK_CHUNK, "no chunk", 8);
	tb_end(&t, 0);
	r = open_bytes(t.data, t.size, NULL);
	expect(r, &e, TACHO_EV_RESUME, 1, bb_ns(60000300));
	expect(r, &e, TACHO_EV_WAKE, 1, bb_ns(60000300));
	expect(r, &e, TACHO_EV_POLL_HIST, 1, bb_ns(60000900));
	assert_int_equal(e->word[1], 1);
	expect(r, &e, TACHO_EV_POLL_BEGIN, 1, bb_ns(60000900));
	assert_int_equal(tacho_read_next(r, &e), 0);
	assert_int_equal(tacho_read_thread_count(r), 2);
	assert_int_equal(problems_named(r, "bad-chunk"), 1);
	tacho_read_close(r);
	tb_free(&t);
	bb_free(&b);
}

static void a_chunk_may_fill_its_slot_and_no_more(void **state)
{
	struct tacho_anchor both[2] = {{30000000, bb_ns(30000000), 1},
				       {60000000, bb_ns(60000000), 2}};
	uint8_t *more = calloc(1, TACHO_SLOT_SIZE + 8);
	struct tacho_chunk *c;
	struct tacho_reader *r;
	uint64_t records = 0;
	struct tb t;
	struct bb b;

	(void)state;
	bb_init(&b);
	c = bb_chunk(&b, 1, 0, 30000000);
	for (; c->commit < TACHO_SLOT_SIZE; records++)
		bb_record(c, 30000300 + records, TACHO_REC_PAUSE, 0, NULL, 0);
	memcpy(more, c, TACHO_SLOT_SIZE);
	for (unsigned beyond = 0; beyond <= 8; beyond += 8) {
		tb_init(&t);
		tb_meta(&t, 1, 2);
		tb_array(&t, TACHO_BLOCK_CLOCK, both, sizeof(both[0]), 2);
		tb_plain(&t, TACHO_BLOCK_CHUNK, more, TACHO_SLOT_SIZE + beyond);
		tb_end(&t, 0);
		r = open_bytes(t.data, t.size, NULL);
		assert_int_equal(count_events(r), beyond ? 0 : records);
		assert_int_equal(problems_named(r, "bad-chunk"), beyond ? 1 : 0);
		tacho_read_close(r);
		tb_free(&t);
	}
	free(more);
	bb_free(&b);
}

/* Blocks that end at or before `size` in the sample. */
static uint64_t whole_before(const struct sample *s, uint64_t size)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < 4; i++) {
		uint64_t end = i < 3 ? s->events[i + 1] : s->events[3];
		const struct tacho_trace_block *b =
			(const struct tacho_trace_block *)(s->t.data + s->events[i]);

		end = s->events[i] + 32 + ((b->stored_size + 7u) & ~7u);
		n += end <= size ? 50 : 0;
	}
	return n;
}

static void a_file_cut_anywhere_opens_up_to_the_cut(void **state)
{
	struct sample s;
	struct tacho_reader *r;
	char message[256];

	(void)state;
	make_sample(&s, 1);
	for (size_t size = 0; size < s.t.size; size++) {
		/* The end of the heap block is the end of the file. */
		uint8_t *copy = malloc(size ? size : 1);
		int err;

		memcpy(copy, s.t.data, size);
		err = try_bytes(&r, copy, size, message);
		if (!err) {
			assert_int_equal(count_events(r), whole_before(&s, size));
			assert_int_equal(problems_named(r, "cut"), 1);
			tacho_read_close(r);
		} else {
			assert_int_equal(err, -EBADMSG);
			assert_int_equal(whole_before(&s, size), 0);
		}
		free(copy);
	}
	tb_free(&s.t);
}

static void every_flipped_bit_is_reported_and_costs_one_block(void **state)
{
	struct sample s;
	struct tacho_reader *r;

	(void)state;
	make_sample(&s, 1);
	for (size_t bit = 0; bit < s.t.size * 8; bit++) {
		uint64_t at = bit / 8, lost = 0;

		s.t.data[at] ^= (uint8_t)(1u << bit % 8);
		r = open_bytes(s.t.data, s.t.size, NULL);
		s.t.data[at] ^= (uint8_t)(1u << bit % 8);
		for (unsigned i = 0; i < 4; i++) {
			const struct tacho_trace_block *b =
				(const struct tacho_trace_block *)(s.t.data + s.events[i]);

			if (at >= s.events[i] &&
			    at < s.events[i] + 32 + ((b->stored_size + 7u) & ~7u))
				lost = 50;
		}
		s.t.data[at] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(count_events(r), 200 - lost);
		/* The definition that is bad in all of them, and this. */
		assert_true(tacho_read_problem_count(r) >=
			    2u - (at >= s.definitions && at < s.events[0]));
		assert_true(tacho_read_problem_count(r) >= 1);
		s.t.data[at] ^= (uint8_t)(1u << bit % 8);
		tacho_read_close(r);
	}
	tb_free(&s.t);
}

static void problems_are_bounded(void **state)
{
	struct tacho_reader *r;
	struct tb t;

	(void)state;
	tb_init(&t);
	tb_meta(&t, 1, 2);
	for (int i = 0; i < 3000; i++) {
		t.index_count = 0;
		tb_block(&t, TACHO_BLOCK_LOSSES, 99, "abc", 3, 3);
	}
	t.index_count = 0;
	tb_end(&t, 0);
	r = open_bytes(t.data, t.size, NULL);
	assert_int_equal(tacho_read_problem_count(r), 1001);
	assert_string_equal(tacho_read_problem(r, 1000)->name, "more-problems");
	assert_null(tacho_read_problem(r, 1001));
	tacho_read_close(r);
	tb_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_of_a_module_ends_with_its_definition),
		cmocka_unit_test(a_file_is_read_by_its_index_and_without),
		cmocka_unit_test(a_damaged_payload_costs_its_block),
		cmocka_unit_test(a_damaged_header_of_a_block_costs_that_block),
		cmocka_unit_test(a_damaged_file_header_costs_nothing),
		cmocka_unit_test(missing_and_repeated_blocks_are_reported),
		cmocka_unit_test(bytes_after_the_end_are_reported),
		cmocka_unit_test(an_index_that_lies_is_not_used),
		cmocka_unit_test(newer_files_are_refused),
		cmocka_unit_test(a_block_that_lies_about_its_size_takes_no_memory),
		cmocka_unit_test(blocks_have_a_largest_size),
		cmocka_unit_test(chunks_are_read_from_files_too),
		cmocka_unit_test(a_chunk_may_fill_its_slot_and_no_more),
		cmocka_unit_test(a_file_cut_anywhere_opens_up_to_the_cut),
		cmocka_unit_test(every_flipped_bit_is_reported_and_costs_one_block),
		cmocka_unit_test(problems_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
