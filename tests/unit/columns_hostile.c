/* Bytes that claim to be columns and are not: refused or decoded, never worse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "write/columns_encode.h"
#include "columns_random.h"
#include "read/columns.h"

/* What comes out must hold together whatever went in. */
static void decode(const uint8_t *data, size_t size)
{
	struct tacho__records out = {0};
	uint8_t *exact = malloc(size + 1);
	int err;

	memcpy(exact, data, size);
	exact = realloc(exact, size ? size : 1);
	err = tacho__columns_decode(exact, size, &out);
	assert_true(err == 0 || err == -EBADMSG || err == -ENOMEM);
	if (err)
		assert_int_equal(out.head.count, 0);
	for (uint32_t i = 0; i < out.head.count; i++) {
		unsigned type = out.type_arg[i] & 0xff;
		uint32_t n = out.word_at[i + 1] - out.word_at[i];

		assert_true(i == 0 || out.ns[i] >= out.ns[i - 1]);
		assert_true(out.word_at[i + 1] <= out.words_capacity);
		assert_int_equal(n, tacho_record_words(type, n ? out.words[out.word_at[i]] : 0));
		assert_true(out.ns[i] >= out.head.first_ns && out.ns[i] <= out.head.last_ns);
	}
	assert_true(out.head.open_listed <= TACHO_OPEN_MAX || err);
	free(exact);
	tacho__records_free(&out);
}

static void mutate(struct random *rnd, uint8_t *data, size_t size)
{
	static const uint8_t telling[] = {0, 1, 2, 3, 4, 8, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xff};
	uint32_t changes = 1 + random_below(rnd, 4);

	while (changes--) {
		/* Heads of columns stand near the beginning as well as everywhere. */
		uint32_t at = random_below(
			rnd, random_below(rnd, 2) && size > 300 ? 300 : (uint32_t)size);

		if (random_below(rnd, 2))
			data[at] ^= (uint8_t)(1u << random_below(rnd, 8));
		else
			data[at] = telling[random_below(rnd, sizeof(telling))];
	}
}

static void mutated_payloads_do_no_harm(void **state)
{
	const char *rounds_text = getenv("TACHO_TEST_ROUNDS");
	uint32_t rounds = rounds_text ? (uint32_t)atoi(rounds_text) : 30000;
	struct random rnd = {.state = 0xfeedbeef};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};
	uint8_t *copy = NULL;

	(void)state;
	for (uint32_t i = 0; i < rounds; i++) {
		if (i % 50 == 0) {
			random_records(&rnd, &r, random_below(&rnd, 80), random_below(&rnd, 6));
			assert_int_equal(tacho__columns_encode(&e, &r), 0);
			copy = realloc(copy, e.size);
		}
		memcpy(copy, e.data, e.size);
		mutate(&rnd, copy, e.size);
		decode(copy, e.size);
	}
	free(copy);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void payloads_cut_anywhere_are_refused(void **state)
{
	struct random rnd = {.state = 31337};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};
	struct tacho__records out = {0};

	(void)state;
	random_records(&rnd, &r, 60, 0);
	assert_int_equal(tacho__columns_encode(&e, &r), 0);
	for (size_t size = 0; size < e.size; size++) {
		decode(e.data, size);
		assert_int_equal(tacho__columns_decode(e.data, size, &out), -EBADMSG);
	}
	tacho__records_free(&out);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void random_bytes_are_refused(void **state)
{
	struct random rnd = {.state = 271828};
	uint8_t data[512];

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		struct tacho_trace_events head = {.size = sizeof(head), .count = 5};

		for (size_t k = 0; k < sizeof(data); k++)
			data[k] = (uint8_t)random_next(&rnd);
		head.last_ns = UINT64_MAX;
		head.open_listed = random_below(&rnd, 7);
		memcpy(data, &head, sizeof(head));
		decode(data, sizeof(data));
	}
}

/* A list as long as can be, used from its far end each time: logarithmic, not the
   hours that moving a million values a million times would take. */
static void the_longest_list_is_walked_in_time(void **state)
{
	enum { HALF = 1 << 19 };
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};
	struct tacho__records out = {0};

	(void)state;
	assert_int_equal(tacho__records_reserve(&r, 2 * HALF, 2 * HALF), 0);
	r.head.size = sizeof(r.head);
	r.word_at[0] = 0;
	for (uint32_t i = 0; i < 2 * HALF; i++) {
		uint64_t task = 1000 + 16 * (i % HALF);

		tacho__records_put(&r, i, tacho_record_head(TACHO_REC_WAKE, 0), &task, 1);
	}
	assert_int_equal(tacho__columns_encode(&e, &r), 0);
	assert_int_equal(tacho__columns_decode(e.data, e.size, &out), 0);
	assert_memory_equal(r.words, out.words, 2 * HALF * sizeof(r.words[0]));
	tacho__records_free(&out);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutated_payloads_do_no_harm),
		cmocka_unit_test(payloads_cut_anywhere_are_refused),
		cmocka_unit_test(random_bytes_are_refused),
		cmocka_unit_test(the_longest_list_is_walked_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
