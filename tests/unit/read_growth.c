/*
 * Programs that were built with an older or newer tacho_read.h than the library: their structs
 * are shorter or longer than it thinks.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "box_builder.h"
#include "read_help.h"

#define CANARY 0xa5
#define BEHIND 64u /* bytes behind the struct that are looked at */

/* What is asked of: a box with one custom event, which has one field. */
struct asked {
	struct bb box;
	struct tacho_reader *reader;
	const struct tacho_event *event;
};

static int setup(void **state)
{
	static const uint8_t schema[] = {1, 0, 1, 0, 'e', TACHO_FIELD_STRING, 1, 'f'};
	uint64_t words[] = {3 | 1ull << 16, 4, 0};
	struct asked *a = calloc(1, sizeof(*a));
	uint32_t id;

	if (!a)
		return -1;
	bb_init(&a->box);
	id = bb_define(&a->box, TACHO_DEF_SCHEMA, 0, schema, sizeof(schema));
	memcpy(&words[2], "text", 4);
	bb_record(bb_chunk(&a->box, 1, 0, 30000000), 30000003, TACHO_EV_EVENT, id, words, 3);
	a->reader = open_bytes(a->box.data, a->box.size, NULL);
	expect(a->reader, &a->event, TACHO_EV_RESUME, 1, bb_ns(30000003));
	expect(a->reader, &a->event, TACHO_EV_EVENT, 1, bb_ns(30000003));
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	struct asked *a = *state;

	tacho_read_close(a->reader);
	bb_free(&a->box);
	free(a);
	return 0;
}

static int ask_source(const struct asked *a, void *out)
{
	return tacho_read_source(a->reader, 0, 0, out);
}

static int ask_sentinel(const struct asked *a, void *out)
{
	return tacho_read_sentinel(a->reader, 0, 0, out);
}

static int ask_loss(const struct asked *a, void *out)
{
	return tacho_read_loss(a->reader, 0, 0, out);
}

static int ask_field(const struct asked *a, void *out)
{
	return tacho_read_field(a->reader, a->event, 0, out);
}

static int ask_frames(const struct asked *a, void *out)
{
	static const uint64_t words[] = {3, 1000, 0x401000};
	const struct tacho_event sample = {
		.type = TACHO_EV_SAMPLE_FRAMES, .words = 3, .word = words};

	(void)a;
	return tacho_read_frames(&sample, out);
}

/* Every call that fills a struct of the caller's. `least`: up to its first member. */
static const struct {
	int (*ask)(const struct asked *a, void *out);
	size_t known, least;
} calls[] = {
	{ask_source, sizeof(struct tacho_source_info), offsetof(struct tacho_source_info, state)},
	{ask_sentinel, sizeof(struct tacho_sentinel_info),
	 offsetof(struct tacho_sentinel_info, limit)},
	{ask_loss, sizeof(struct tacho_loss_info), offsetof(struct tacho_loss_info, text)},
	{ask_field, sizeof(struct tacho_field_value), offsetof(struct tacho_field_value, number)},
	{ask_frames, sizeof(struct tacho_frames), offsetof(struct tacho_frames, count)},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Asks as a program does whose struct has `size` bytes. */
static int ask(const struct asked *a, size_t call, size_t size, uint8_t *out)
{
	memset(out, CANARY, calls[call].known + BEHIND);
	memcpy(out, &size, sizeof(size));
	return calls[call].ask(a, out);
}

static void nothing_is_written_behind_the_callers_struct(void **state)
{
	_Alignas(16) uint8_t all[256], part[256];

	for (size_t i = 0; i < CALLS; i++) {
		size_t known = calls[i].known;

		assert_true(known + BEHIND <= sizeof(all));
		assert_true(ask(*state, i, known, all) >= 0);
		for (size_t size = calls[i].least; size <= known + BEHIND; size++) {
			size_t filled, want = size < known ? size : known;

			assert_true(ask(*state, i, size, part) >= 0);
			memcpy(&filled, part, sizeof(filled));
			assert_int_equal(filled, want);
			assert_memory_equal(part + sizeof(size), all + sizeof(size),
					    want - sizeof(size));
			for (size_t k = want; k < known + BEHIND; k++)
				assert_int_equal(part[k], CANARY);
		}
	}
}

static void a_size_that_was_not_set_is_refused(void **state)
{
	_Alignas(16) uint8_t out[256];

	for (size_t i = 0; i < CALLS; i++) {
		for (size_t size = 0; size < calls[i].least; size++) {
			assert_int_equal(ask(*state, i, size, out), -EINVAL);
			for (size_t k = sizeof(size); k < calls[i].known + BEHIND; k++)
				assert_int_equal(out[k], CANARY);
		}
	}
}

static int open_with(const struct asked *a, const void *options, char *message)
{
	struct tacho_reader *r;
	int err = tacho_read_open_memory(&r, a->box.data, a->box.size, options, message, 256);

	assert_int_equal(err == 0, r != NULL);
	tacho_read_close(r);
	return err;
}

/* What a library cannot do is not to be taken for done. */
static void options_that_are_not_known_are_refused(void **state)
{
	struct {
		struct tacho_read_options known;
		uint64_t newer;
	} o = {.known = {.size = sizeof(o)}};
	char message[256];

	assert_int_equal(open_with(*state, &o, message), 0);
	o.newer = 1ull << 63;
	assert_int_equal(open_with(*state, &o, message), -EINVAL);
	assert_non_null(strstr(message, "newer tacho"));
	for (o.known.size = offsetof(struct tacho_read_options, to_ns); o.known.size--;) {
		assert_int_equal(open_with(*state, &o, message), -EINVAL);
		assert_non_null(strstr(message, "tacho_read_options.size"));
	}
}

static void no_event_is_left_after_the_last(void **state)
{
	struct asked *a = *state;

	assert_int_equal(tacho_read_next(a->reader, &a->event), 0);
	assert_null(a->event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_written_behind_the_callers_struct),
		cmocka_unit_test(a_size_that_was_not_set_is_refused),
		cmocka_unit_test(options_that_are_not_known_are_refused),
		cmocka_unit_test(no_event_is_left_after_the_last),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
