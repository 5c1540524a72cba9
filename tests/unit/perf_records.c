/* Records of perf are taken apart as the kernel documents them, and nothing beyond them is read. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/perf_record.h"

#define WORDS_MAX 256u

struct built {
	uint64_t words[WORDS_MAX];
	size_t count;
};

static void put(struct built *b, uint64_t word)
{
	assert_true(b->count < WORDS_MAX);
	b->words[b->count++] = word;
}

static void begin(struct built *b)
{
	b->count = 1;
}

static size_t end(struct built *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header head = {type, misc, (uint16_t)(b->count * 8)};

	memcpy(b->words, &head, sizeof(head));
	return b->count * 8;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

/* With two frames of the kernel, three of the program, registers, and a stack of 32 bytes. */
static size_t build_sample(struct built *b)
{
	const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_KERNEL,
				  0xffffffff81000010,
				  0xffffffff81000020,
				  (uint64_t)PERF_CONTEXT_USER,
				  0x401000,
				  0x402000,
				  0x403000};

	begin(b);
	put(b, pair(100, 101));
	put(b, 123456789);
	put(b, 7);
	for (unsigned i = 0; i < 7; i++)
		put(b, chain[i]);
	put(b, PERF_SAMPLE_REGS_ABI_64);
	for (unsigned i = 0; i < TACHO__PERF_REG_COUNT; i++)
		put(b, 1000 + i);
	put(b, 32);
	for (unsigned i = 0; i < 4; i++)
		put(b, 0x1111 * i);
	put(b, 24);
	return end(b, PERF_RECORD_SAMPLE, 0);
}

static void a_sample_is_what_it_says(void **state)
{
	struct tacho__perf_record r;
	struct built b;
	size_t size = build_sample(&b);

	(void)state;
	assert_int_equal(tacho__perf_parse(b.words, size, &r), 0);
	assert_int_equal(r.type, TACHO__PERF_SAMPLE);
	assert_int_equal(r.pid, 100);
	assert_int_equal(r.tid, 101);
	assert_int_equal(r.ns, 123456789);
	assert_int_equal(r.kernel_count, 2);
	assert_true(r.kernel[0] == 0xffffffff81000010 && r.kernel[1] == 0xffffffff81000020);
	assert_int_equal(r.user_count, 3);
	assert_true(r.user[0] == 0x401000 && r.user[2] == 0x403000);
	assert_non_null(r.regs);
	assert_int_equal(r.regs[0], 1000);
	assert_int_equal(r.regs[TACHO__PERF_REG_COUNT - 1], 1000 + TACHO__PERF_REG_COUNT - 1);
	assert_int_equal(r.stack_size, 24);
	assert_int_equal(((const uint64_t *)r.stack)[2], 0x2222);
}

/* Of a thread of the kernel, or one that had no registers: no stack either. */
static void a_sample_may_lack_registers_and_stack(void **state)
{
	struct tacho__perf_record r;
	struct built b;

	(void)state;
	begin(&b);
	put(&b, pair(100, 101));
	put(&b, 5);
	put(&b, 1);
	put(&b, (uint64_t)PERF_CONTEXT_USER);
	put(&b, PERF_SAMPLE_REGS_ABI_NONE);
	put(&b, 0);
	assert_int_equal(tacho__perf_parse(b.words, end(&b, PERF_RECORD_SAMPLE, 0), &r), 0);
	assert_null(r.regs);
	assert_null(r.stack);
	assert_int_equal(r.kernel_count, 0);
	assert_int_equal(r.user_count, 0);
}

static void switches_say_which_way_and_why(void **state)
{
	static const struct {
		uint16_t misc;
		enum tacho__perf_type type;
		int preempted;
	} ways[] = {
		{0, TACHO__PERF_SWITCH_IN, 0},
		{PERF_RECORD_MISC_SWITCH_OUT, TACHO__PERF_SWITCH_OUT, 0},
		{PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
		 TACHO__PERF_SWITCH_OUT, 1},
	};
	struct tacho__perf_record r;
	struct built b;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		begin(&b);
		put(&b, pair(7, 8));
		put(&b, 99);
		assert_int_equal(
			tacho__perf_parse(b.words, end(&b, PERF_RECORD_SWITCH, ways[i].misc), &r),
			0);
		assert_int_equal(r.type, ways[i].type);
		assert_int_equal(r.preempted, ways[i].preempted);
		assert_int_equal(r.tid, 8);
		assert_int_equal(r.ns, 99);
	}
}

static void births_and_losses(void **state)
{
	struct tacho__perf_record r;
	struct built b;

	(void)state;
	begin(&b);
	put(&b, pair(10, 20));
	put(&b, pair(11, 21));
	put(&b, 77);
	put(&b, pair(20, 21));
	put(&b, 77);
	assert_int_equal(tacho__perf_parse(b.words, end(&b, PERF_RECORD_FORK, 0), &r), 0);
	assert_int_equal(r.type, TACHO__PERF_FORK);
	assert_int_equal(r.pid, 10);
	assert_int_equal(r.tid, 11);
	begin(&b);
	put(&b, 1);
	put(&b, 4711);
	assert_int_equal(tacho__perf_parse(b.words, end(&b, PERF_RECORD_LOST, 0), &r), 0);
	assert_int_equal(r.type, TACHO__PERF_LOST);
	assert_int_equal(r.lost, 4711);
	begin(&b);
	assert_int_equal(tacho__perf_parse(b.words, end(&b, PERF_RECORD_THROTTLE, 0), &r), 0);
	assert_int_equal(r.type, TACHO__PERF_OTHER);
}

static void assert_inside(const void *data, size_t size, const void *at, size_t bytes)
{
	const uint8_t *begin_at = data, *part = at;

	if (!bytes)
		return;
	assert_true(part >= begin_at && bytes <= size && (size_t)(part - begin_at) <= size - bytes);
}

static void assert_bounded(const void *data, size_t size, const struct tacho__perf_record *r)
{
	assert_inside(data, size, r->kernel, r->kernel_count * 8ul);
	assert_inside(data, size, r->user, r->user_count * 8ul);
	if (r->regs)
		assert_inside(data, size, r->regs, TACHO__PERF_REG_COUNT * 8ul);
	assert_inside(data, size, r->stack, r->stack_size);
}

static void cut_samples_are_refused(void **state)
{
	struct tacho__perf_record r;
	struct built b;
	size_t size = build_sample(&b);

	(void)state;
	for (size_t n = 0; n < size; n++) {
		uint64_t *part = malloc(n + 1);
		uint16_t said = (uint16_t)n;

		memcpy(part, b.words, n);
		if (n >= 8)
			memcpy((uint8_t *)part + 6, &said, 2);
		assert_int_equal(tacho__perf_parse(part, n, &r), -EBADMSG);
		free(part);
	}
}

static void damaged_records_are_not_read_beyond(void **state)
{
	uint64_t random = 88172645463325252ull;
	struct built whole;
	size_t size = build_sample(&whole);
	uint64_t *copy = malloc(size); /* of just that size, for those who watch */

	(void)state;
	for (int i = 0; i < 200000; i++) {
		static const uint64_t large[] = {UINT64_MAX, 1ull << 61, 1ull << 32, 0xffff, 8, 0};
		struct tacho__perf_record r;

		memcpy(copy, whole.words, size);
		for (int k = 0; k < 3; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[1 + random % (size / 8 - 1)] =
				random >> 62 ? large[random >> 32 & 3] : random;
		}
		((uint8_t *)copy)[0] = (uint8_t)(i % 16);
		if (!tacho__perf_parse(copy, size, &r))
			assert_bounded(copy, size, &r);
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_is_what_it_says),
		cmocka_unit_test(a_sample_may_lack_registers_and_stack),
		cmocka_unit_test(switches_say_which_way_and_why),
		cmocka_unit_test(births_and_losses),
		cmocka_unit_test(cut_samples_are_refused),
		cmocka_unit_test(damaged_records_are_not_read_beyond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
