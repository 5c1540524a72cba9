/* Boxes cut anywhere and with any bit flipped: an error, a problem or events, never worse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "box_builder.h"
#include "read_help.h"

/* Some of everything. */
static void make(struct bb *b)
{
	uint64_t w[5] = {5 | 8ull << 16, 1, 30000100, 300, 2ull << 48 | 7};
	uint64_t frames[4] = {1, 2, 3, 4};
	struct tacho_box_hist *h;
	struct tacho_box_trigger *t;
	struct tacho_box_crash *x;
	struct tacho_chunk *c;

	bb_init(b);
	bb_define_name(b, TACHO_DEF_TEXT, TACHO_ID_FULL_TEXT, "", 0);
	bb_define_name(b, TACHO_DEF_LOOP, "main", "m.c", 1);
	bb_define(b, TACHO_DEF_STACK, 0, frames, 32);
	for (uint32_t i = 1; i < 4; i++) {
		bb_thread(b, i)->pending_kind = i % 2;
		c = bb_chunk(b, i, 0, 30000000 + i);
		c->open_count = 1;
		c->open[0] = (struct tacho_open){1, TACHO_REC_POLL_BEGIN, 2, 3};
		for (uint64_t k = 0; k < 20; k++)
			bb_record1(c, 30000100 + 30 * k, TACHO_REC_WAKE, 0, k);
		bb_record(c, 30003000, TACHO_REC_POLL_HIST, 4, w, 5);
		bb_record(c, 30003300, TACHO_REC_SPAWN, 4, w, 5);
	}
	h = bb_region(b, TACHO_REGION_HISTOGRAMS);
	h[0] = (struct tacho_box_hist){.kind = 4, .thread = 1, .since = 30000060, .count = {1}};
	b->super->hists_used = 1;
	t = bb_region(b, TACHO_REGION_TRIGGERS);
	t[0] = (struct tacho_box_trigger){.number = 1, .size = 4};
	x = bb_region(b, TACHO_REGION_CRASHES);
	x[0] = (struct tacho_box_crash){.state = TACHO_CRASH_STACK_DONE, .frames = 3};
}

static void use_everything(struct tacho_reader *r)
{
	uint32_t limit = tacho_read_definition_limit(r, 0);

	for (uint32_t i = 0; i < limit && i < 1000; i++) {
		const struct tacho_definition *d = tacho_read_definition(r, 0, i);

		if (d)
			assert_true(strlen(d->name) + strlen(d->file) < 3000);
	}
	for (uint32_t i = 0; i < tacho_read_crash_count(r); i++)
		assert_true(tacho_read_crash(r, i)->frame_count <= TACHO_CRASH_FRAMES);
	for (uint32_t i = 0; i < tacho_read_thread_count(r); i++)
		assert_true(strlen(tacho_read_thread(r, i)->name) < 17);
	count_events(r);
	assert_int_equal(tacho_read_seek(r, bb_ns(30001000)), 0);
	count_events(r);
}

static void try(const uint8_t *data, size_t size)
{
	struct tacho_reader *r;
	char message[256];

	if (!try_bytes(&r, data, size, message))
		use_everything(r);
	tacho_read_close(r);
}

static void boxes_cut_anywhere(void **state)
{
	struct bb b;
	uint64_t pool;

	(void)state;
	make(&b);
	pool = b.super->regions[TACHO_REGION_POOL].offset;
	for (size_t size = 0; size < b.size; size += size < 6000 || size % 65536 < 700 ? 8 : 1024) {
		/* The end of the heap block is the end of the file. */
		uint8_t *copy = malloc(size ? size : 1);

		memcpy(copy, b.data, size);
		try(copy, size);
		free(copy);
	}
	assert_true(pool < b.size);
	bb_free(&b);
}

static void flip_all(struct bb *b, size_t from, size_t to)
{
	for (size_t bit = from * 8; bit < to * 8; bit++) {
		b->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		try(b->data, b->size);
		b->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void any_bit_of_the_superblock_flipped(void **state)
{
	struct bb b;

	(void)state;
	make(&b);
	flip_all(&b, 8, offsetof(struct tacho_box_super, sources));
	bb_free(&b);
}

static void any_bit_of_tables_and_chunks_flipped(void **state)
{
	static const struct {
		enum tacho_region region;
		size_t bytes;
	} parts[] = {
		{TACHO_REGION_TRIGGERS, 24}, {TACHO_REGION_CRASHES, 80},
		{TACHO_REGION_THREADS, 64},  {TACHO_REGION_HISTOGRAMS, 48},
		{TACHO_REGION_DEF_DIR, 64},  {TACHO_REGION_DEF_DATA, 64},
		{TACHO_REGION_SLOTS, 16},    {TACHO_REGION_POOL, 640},
	};
	struct bb b;

	(void)state;
	make(&b);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		size_t at = b.super->regions[parts[i].region].offset;

		flip_all(&b, at, at + parts[i].bytes);
	}
	bb_free(&b);
}

static void random_damage_to_all_of_it(void **state)
{
	struct bb b;
	uint8_t *copy;

	(void)state;
	make(&b);
	copy = malloc(b.size);
	srand(7);
	for (int round = 0; round < 300; round++) {
		memcpy(copy, b.data, b.size);
		for (int i = rand() % 4000; i >= 0; i--) {
			size_t at = (unsigned)rand() % 2 ? 8 + (unsigned)rand() % 1200
							 : 8 + (unsigned)rand() % (b.size - 8);

			copy[at] = (uint8_t)rand();
		}
		/* Enough to get past the door. */
		memcpy(copy, b.data, 128);
		try(copy, b.size);
	}
	free(copy);
	bb_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_cut_anywhere),
		cmocka_unit_test(any_bit_of_the_superblock_flipped),
		cmocka_unit_test(any_bit_of_tables_and_chunks_flipped),
		cmocka_unit_test(random_damage_to_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
