/* What was encoded into columns comes out again, whatever the records are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "write/columns_encode.h"
#include "columns_random.h"
#include "read/columns.h"

static void assert_same(const struct tacho__records *a, const struct tacho__records *b)
{
	uint32_t n = a->head.count;

	assert_memory_equal(&a->head, &b->head, sizeof(a->head));
	assert_memory_equal(a->open, b->open, sizeof(a->open));
	if (!n)
		return;
	assert_memory_equal(a->ns, b->ns, n * sizeof(a->ns[0]));
	assert_memory_equal(a->type_arg, b->type_arg, n * sizeof(a->type_arg[0]));
	assert_memory_equal(a->word_at, b->word_at, (n + 1) * sizeof(a->word_at[0]));
	if (a->word_at[n])
		assert_memory_equal(a->words, b->words, a->word_at[n] * sizeof(a->words[0]));
}

static void round_trip(struct tacho__encoder *e, const struct tacho__records *r)
{
	struct tacho__records out = {0};
	uint8_t *exact;

	assert_int_equal(tacho__columns_encode(e, r), 0);
	/* A copy of the exact size, so that reading beyond it is noticed. */
	exact = malloc(e->size);
	memcpy(exact, e->data, e->size);
	assert_int_equal(tacho__columns_decode(exact, e->size, &out), 0);
	assert_same(r, &out);
	for (uint32_t i = 0; i < e->cut_count; i++)
		assert_true(e->cuts[i] <= e->size && (!i || e->cuts[i] > e->cuts[i - 1]));
	free(exact);
	tacho__records_free(&out);
}

static void records_of_all_types_come_back(void **state)
{
	struct random rnd = {.state = 0x1234567};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};

	(void)state;
	for (uint32_t i = 0; i < 400; i++) {
		random_records(&rnd, &r,
			       random_below(&rnd, 3) ? random_below(&rnd, 60)
						     : random_below(&rnd, 1500),
			       random_below(&rnd, 8));
		round_trip(&e, &r);
	}
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void no_records_come_back_with_their_head(void **state)
{
	struct random rnd = {.state = 77};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};

	(void)state;
	random_records(&rnd, &r, 0, 0);
	r.head.first_ns = r.head.last_ns = 123456789;
	r.head.drops = 7;
	round_trip(&e, &r);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void one_record_of_each_type_comes_back(void **state)
{
	struct random rnd = {.state = 99};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};

	(void)state;
	for (unsigned type = 1; type < 256; type++) {
		if (type == TACHO_REC_TIME)
			continue;
		random_records(&rnd, &r, 0, 0);
		assert_int_equal(tacho__records_reserve(&r, 1, TACHO_RECORD_MAX_WORDS), 0);
		random_put(&rnd, &r, UINT64_MAX - type, (uint8_t)type);
		r.head.first_ns = r.head.last_ns = r.ns[0];
		round_trip(&e, &r);
	}
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void largest_values_come_back(void **state)
{
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};
	uint64_t words[TACHO_RECORD_MAX_WORDS];

	(void)state;
	memset(words, 0xff, sizeof(words));
	assert_int_equal(tacho__records_reserve(&r, 300, 300 * TACHO_RECORD_MAX_WORDS), 0);
	r.head.size = sizeof(r.head);
	r.word_at[0] = 0;
	for (uint32_t i = 0; i < 300; i++) {
		static const uint8_t types[] = {0x3f, 0x7f, 0xbf, 0xff};
		uint8_t type = types[i % 4];
		uint32_t n =
			TACHO_REC_CLASS(type) == 3 ? TACHO_RECORD_MAX_WORDS : TACHO_REC_CLASS(type);

		words[0] = n == TACHO_RECORD_MAX_WORDS ? ~0xffffull | n : UINT64_MAX;
		tacho__records_put(&r, i ? UINT64_MAX : 0, tacho_record_head(type, TACHO_ARG_MAX),
				   words, n);
	}
	r.head.last_ns = UINT64_MAX;
	round_trip(&e, &r);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

/* Two loops' worth of tasks, each with one kind: what lists and mates are for. */
static void polls_and_wakes_of_many_tasks_come_back_small(void **state)
{
	struct random rnd = {.state = 4711};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};
	uint64_t ns = 1000;

	(void)state;
	assert_int_equal(tacho__records_reserve(&r, 6000, 12000), 0);
	r.head.size = sizeof(r.head);
	r.word_at[0] = 0;
	while (r.head.count < 6000) {
		uint32_t k = random_below(&rnd, 200), other = random_below(&rnd, 200);
		uint64_t task = 0x7f1200001000u + 832 * k, woken = 0x7f1200001000u + 832 * other;

		tacho__records_put(&r, ns += 50, tacho_record_head(TACHO_REC_POLL_BEGIN, 9 + k % 5),
				   &task, 1);
		tacho__records_put(&r, ns += 900, tacho_record_head(TACHO_REC_WAKE, 0), &woken, 1);
		tacho__records_put(&r, ns += 700, tacho_record_head(TACHO_REC_POLL_END, 1), NULL,
				   0);
	}
	r.head.first_ns = r.ns[0];
	r.head.last_ns = ns;
	round_trip(&e, &r);
	/* Three records: times of 1, 2 and 2 bytes, two places in a list of 1 byte each, and
	   next to nothing else. The tasks themselves would be 6 bytes each. */
	assert_true(e.size < 6000 / 3 * 8);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

static void records_that_no_reader_gives_are_refused(void **state)
{
	struct random rnd = {.state = 5};
	struct tacho__encoder e = {0};
	struct tacho__records r = {0};

	(void)state;
	random_records(&rnd, &r, 20, 0);
	r.type_arg[3] = TACHO_REC_TIME;
	assert_int_equal(tacho__columns_encode(&e, &r), -EINVAL);
	random_records(&rnd, &r, 20, 0);
	r.ns[9] = 0;
	assert_int_equal(tacho__columns_encode(&e, &r), -EINVAL);
	random_records(&rnd, &r, 20, 0);
	r.head.open_listed = TACHO_OPEN_MAX + 1;
	assert_int_equal(tacho__columns_encode(&e, &r), -EINVAL);
	tacho__records_free(&r);
	tacho__encoder_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_all_types_come_back),
		cmocka_unit_test(no_records_come_back_with_their_head),
		cmocka_unit_test(one_record_of_each_type_comes_back),
		cmocka_unit_test(largest_values_come_back),
		cmocka_unit_test(polls_and_wakes_of_many_tasks_come_back_small),
		cmocka_unit_test(records_that_no_reader_gives_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
