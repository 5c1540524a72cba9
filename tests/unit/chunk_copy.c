/* The rule by which a chunk is copied while its thread stores on (format/copy.h): a box in memory,
   in which something happens just after the bytes were copied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "format/copy.h"

#define COMMIT 1024u

struct box {
	struct tacho_box_slot slot;
	union {
		struct tacho_chunk head;
		uint8_t bytes[TACHO_SLOT_SIZE];
	} chunk;
	/* Once this many bytes were copied in one go. */
	size_t size;
	void (*change)(struct box *b);
};

static int read_box(void *arg, uint64_t offset, void *to, size_t size)
{
	struct box *b = arg;

	assert_int_equal(offset % 8, 0);
	assert_int_equal(size % 8, 0);
	memcpy(to, (uint8_t *)b + offset, size);
	if (b->change && size == b->size)
		b->change(b);
	return 0;
}

static struct box box;
static const struct tacho_box_bytes bytes = {read_box, &box, offsetof(struct box, slot),
					     offsetof(struct box, chunk)};
static uint8_t to[TACHO_SLOT_SIZE];

static struct tacho_copy make(uint32_t flags)
{
	memset(&box, 0, sizeof(box));
	box.slot.state = TACHO_SLOT_WHOLE | 7ull << 40;
	box.chunk.head.generation = 5;
	box.chunk.head.commit = COMMIT;
	box.chunk.head.magic = TACHO_CHUNK_MAGIC;
	box.chunk.head.size = TACHO_SLOT_SIZE;
	box.chunk.head.flags = flags;
	return (struct tacho_copy){.state = box.slot.state};
}

/* What tacho_copy_end says when `change` happens between copying and deciding. */
static int copy(struct tacho_copy *c, uint32_t from, void (*change)(struct box *))
{
	assert_int_equal(tacho_copy_begin(c, &bytes), 1);
	assert_int_equal(c->size, COMMIT);
	c->from = from;
	box.size = COMMIT - from;
	box.change = change;
	return tacho_copy_end(c, &bytes, to);
}

static void another_generation(struct box *b)
{
	b->chunk.head.generation = 6;
}

static void being_made(struct box *b)
{
	b->chunk.head.generation = 0;
}

static void another_shape(struct box *b)
{
	b->slot.state += 1ull << 40;
}

static void spared(struct box *b)
{
	b->slot.state ^= 1ull << 2 | 1ull << 8;
}

static void less(struct box *b)
{
	b->chunk.head.commit = 512;
}

static void more_and_sealed(struct box *b)
{
	b->chunk.head.commit = 2048;
	b->chunk.head.flags |= TACHO_CHUNK_SEALED;
}

static void what_changed_meanwhile_is_thrown_away(void **state)
{
	static void (*const changes[])(struct box *) = {another_generation, being_made,
							another_shape};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tacho_copy c = make(0);

		assert_int_equal(copy(&c, 0, changes[i]), 0);
		c = make(0);
		assert_int_equal(copy(&c, 512, changes[i]), 0);
	}
}

static void what_did_not_change_is_copied(void **state)
{
	static void (*const changes[])(struct box *) = {NULL, spared};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct tacho_copy c = make(TACHO_CHUNK_SEALED);

		assert_int_equal(copy(&c, 0, changes[i]), 1);
		assert_int_equal(c.size, COMMIT);
		assert_int_equal(c.head.flags, TACHO_CHUNK_SEALED);
		assert_memory_equal(to, box.chunk.bytes, COMMIT);
	}
}

static void the_lower_commit_holds(void **state)
{
	struct tacho_copy c = make(0);

	(void)state;
	assert_int_equal(copy(&c, 0, less), 1);
	assert_int_equal(c.size, 512);
	assert_int_equal(((struct tacho_chunk *)to)->commit, 512);
	/* Nothing is left of what was new. */
	c = make(0);
	assert_int_equal(copy(&c, 768, less), 0);
}

/* It was sealed, with records behind those that were copied. */
static void a_part_is_not_sealed(void **state)
{
	struct tacho_copy c = make(TACHO_CHUNK_SEALED);
	struct tacho_chunk *head = (struct tacho_chunk *)to;

	(void)state;
	assert_int_equal(copy(&c, 0, more_and_sealed), 1);
	assert_int_equal(c.size, COMMIT);
	assert_int_equal(c.head.flags, 0);
	assert_int_equal(head->flags, 0);
	assert_int_equal(head->commit, COMMIT);
}

static void what_is_no_chunk_of_this_shape_is_left(void **state)
{
	struct tacho_copy c = make(0);

	(void)state;
	box.chunk.head.generation = 0;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 0);
	c = make(0);
	box.chunk.head.size = TACHO_SMALL_SIZE;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 0);
	/* A part that was given out, and one that was not. */
	c.state = TACHO_SLOT_SPLIT | 1ull << 24;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 1);
	c.state = TACHO_SLOT_SPLIT | 2ull << 24;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 0);
	c.state = TACHO_SLOT_UNUSED;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 0);
}

static void a_damaged_commit_stays_within_the_chunk(void **state)
{
	struct tacho_copy c = make(0);

	(void)state;
	box.chunk.head.commit = UINT64_MAX;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 1);
	assert_int_equal(c.size, TACHO_SLOT_SIZE);
	assert_int_equal(tacho_copy_end(&c, &bytes, to), 1);
	box.chunk.head.commit = 3;
	assert_int_equal(tacho_copy_begin(&c, &bytes), 1);
	assert_int_equal(c.size, TACHO_CHUNK_HEAD);
	/* It is left for a reader to say that this is none. */
	assert_int_equal(tacho_copy_end(&c, &bytes, to), 1);
	assert_int_equal(c.head.commit, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changed_meanwhile_is_thrown_away),
		cmocka_unit_test(what_did_not_change_is_copied),
		cmocka_unit_test(the_lower_commit_holds),
		cmocka_unit_test(a_part_is_not_sealed),
		cmocka_unit_test(what_is_no_chunk_of_this_shape_is_left),
		cmocka_unit_test(a_damaged_commit_stays_within_the_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
