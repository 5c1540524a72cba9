/* SYMBOLS blocks: what they say is what is read, also after the trace was written again; and
   blocks that lie do no harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "trace_build.h"

#define TEXTS "\0outer\0a.cc\0inner<int>\0b.h"
#define OUTER 1u
#define A_CC 7u
#define INNER 12u
#define B_H 23u

static const struct tacho_trace_symbols good_head = {
	.size = sizeof(struct tacho_trace_symbols),
	.entry_size = sizeof(struct tacho_trace_symbol),
	.entries = 3,
	.frame_size = sizeof(struct tacho_trace_frame),
	.frames = 3,
	.text_bytes = sizeof(TEXTS),
};
static const struct tacho_trace_symbol entries[3] = {
	{.address = 0x401010, .module = 20, .first = 0, .frames = 2},
	{.address = 0x7000, .module = 0, .first = 2, .frames = 1},
	{.address = 0x401010, .module = 21, .first = 1, .frames = 1},
};
static const struct tacho_trace_frame frames[3] = {
	{INNER, B_H, 12},
	{OUTER, A_CC, 30},
	{OUTER, 0, 0},
};

static void add_module(struct build *b, uint32_t id, uint64_t since)
{
	uint8_t p[TACHO_MODULE_HEAD + 4] = {0};
	const uint64_t module[4] = {0x400000, 0x500000, 0, since};

	memcpy(p, module, sizeof(module));
	p[34] = 4;
	memcpy(p + TACHO_MODULE_HEAD, "/lib", 4);
	build_definition(b, id, TACHO_DEF_MODULE, 0, p, sizeof(p));
}

static void begin(struct build *b)
{
	/* What is looked up when a trace is written: an address of a kind, and one of a stack. */
	uint8_t name[TACHO_NAME_HEAD] = {0};
	const uint64_t address = 0x401010, stack[2] = {0x7000, 0x401011};

	build_begin(b);
	build_process(b);
	memcpy(name, &address, sizeof(address));
	build_definition(b, 2, TACHO_DEF_KIND, 0, name, sizeof(name));
	build_definition(b, 3, TACHO_DEF_STACK, TACHO_DEF_EXACT, stack, sizeof(stack));
	add_module(b, 20, 100);
	add_module(b, 21, 200);
	build_block(b, TACHO_BLOCK_DEFINITIONS);
}

static void add_symbols(struct build *b, const struct tacho_trace_symbols *head)
{
	build_bytes(b, head, sizeof(*head));
	build_bytes(b, entries, sizeof(entries));
	build_bytes(b, frames, sizeof(frames));
	build_bytes(b, TEXTS, sizeof(TEXTS));
	build_block(b, TACHO_BLOCK_SYMBOLS);
}

static void check_symbol(struct tacho_reader *r, uint64_t address, uint64_t ns, uint32_t index,
			 const char *function, const char *file, uint32_t line)
{
	const struct tacho_symbol *s = tacho_read_symbol(r, 0, address, ns, index);

	assert_non_null(s);
	assert_string_equal(s->function, function);
	assert_string_equal(s->file, file);
	assert_int_equal(s->line, line);
}

static void check_all(struct tacho_reader *r)
{
	check_symbol(r, 0x401010, 150, 0, "inner<int>", "b.h", 12);
	check_symbol(r, 0x401010, 150, 1, "outer", "a.cc", 30);
	assert_null(tacho_read_symbol(r, 0, 0x401010, 150, 2));
	/* Another module lies there later. */
	check_symbol(r, 0x401010, 250, 0, "outer", "a.cc", 30);
	assert_null(tacho_read_symbol(r, 0, 0x401010, 250, 1));
	/* Nothing lay there before. */
	assert_null(tacho_read_symbol(r, 0, 0x401010, 50, 0));
	check_symbol(r, 0x7000, 150, 0, "outer", "", 0);
	assert_null(tacho_read_symbol(r, 0, 0x7001, 150, 0));
	assert_null(tacho_read_symbol(r, 1, 0x7000, 150, 0));
	assert_null(tacho_read_symbol(r, 0, 0x7000, 150, UINT32_MAX));
	assert_int_equal(tacho_read_definition(r, 0, 3)->exact, 1);
	assert_int_equal(tacho_read_problem_count(r), 0);
}

static void names_are_read_and_written_again(void **state)
{
	struct tacho__trace_options options = {.process = 0};
	struct tacho__trace_result result;
	struct tacho_reader *r, *again;
	uint8_t *data, *copy;
	size_t size;
	struct build b;
	int fd = memfd_create("again", MFD_CLOEXEC);

	(void)state;
	begin(&b);
	add_symbols(&b, &good_head);
	data = build_end(&b, &size);
	r = open_bytes(data, size);
	check_all(r);
	assert_int_equal(tacho__trace_write(r, fd, &options, &result, NULL, 0), 0);
	tacho_read_close(r);
	copy = malloc(result.bytes);
	assert_int_equal(pread(fd, copy, result.bytes, 0), (ssize_t)result.bytes);
	again = open_bytes(copy, result.bytes);
	check_all(again);
	tacho_read_close(again);
	free(data);
	free(copy);
	close(fd);
}

/* A head that does not fit the block: the block is lost, and reported; the rest is read. */
static void refuse(struct tacho_trace_symbols head)
{
	struct tacho_reader *r;
	uint8_t *data;
	size_t size;
	struct build b;

	begin(&b);
	add_symbols(&b, &head);
	data = build_end(&b, &size);
	r = open_bytes(data, size);
	assert_non_null(tacho_read_definition(r, 0, 21));
	for (uint32_t i = 0; i < 4; i++)
		tacho_read_symbol(r, 0, 0x401010, 150, i);
	assert_int_equal(tacho_read_problem_count(r), 1);
	assert_string_equal(tacho_read_problem(r, 0)->name, "damaged-block");
	tacho_read_close(r);
	free(data);
}

static void blocks_that_lie_are_refused(void **state)
{
	static const uint32_t numbers[] = {0, 1, 11, 23, 0x7fffffff, 0x80000000, UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct tacho_trace_symbols head = good_head;

		head.size = numbers[i];
		refuse(head);
		head = good_head;
		head.entry_size = numbers[i];
		refuse(head);
		if (numbers[i] < sizeof(struct tacho_trace_frame) || numbers[i] > 1000) {
			head = good_head;
			head.frame_size = numbers[i];
			refuse(head);
		}
		if (numbers[i] > 3) {
			head = good_head;
			head.entries = numbers[i];
			refuse(head);
		}
		if (numbers[i] < 2 || numbers[i] > 1000) {
			/* Fewer frames than the entries name, or more than there are. */
			head = good_head;
			head.frames = numbers[i];
			refuse(head);
		}
		if (!numbers[i] || numbers[i] > 1000) {
			head = good_head;
			head.text_bytes = numbers[i];
			refuse(head);
		}
	}
}

/* Texts that begin beyond the end are empty, and the last need not be ended. */
static void texts_stay_within_their_block(void **state)
{
	struct tacho_trace_symbols head = good_head;
	struct tacho_reader *r;
	uint8_t *data;
	size_t size;
	struct build b;

	(void)state;
	head.text_bytes = B_H - 3;
	begin(&b);
	add_symbols(&b, &head);
	data = build_end(&b, &size);
	r = open_bytes(data, size);
	check_symbol(r, 0x401010, 150, 0, "inner<in", "", 12);
	tacho_read_close(r);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_and_written_again),
		cmocka_unit_test(blocks_that_lie_are_refused),
		cmocka_unit_test(texts_stay_within_their_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
