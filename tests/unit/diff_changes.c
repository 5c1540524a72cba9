/* When a kind of callback is told to be slower or faster: each condition on both of its sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/diff.h"
#include "model_help.h"

#define POLLS 40u /* in a block */

struct side {
	struct trace m;
	struct tacho_reader *reader;
};

/* All blocks alike: polls of `quick` and of `slow` ns, `share` of eight are quick. */
struct shape {
	uint64_t quick, slow;
	uint32_t share;
	uint32_t blocks; /* 0: all */
	uint32_t polls;	 /* of a block; 0: all */
	uint64_t wobble; /* ns: every second block takes so much more, the others less */
	uint32_t kind;	 /* 0: KIND_A */
};

static void side_make(struct side *s, const struct shape *shapes, uint32_t count)
{
	trace_begin(&s->m);
	trace_stream(&s->m, 1, 0);
	PUT(&s->m, 0, PARK, LOOP_1);
	PUT(&s->m, 1000, UNPARK, 1);
	for (uint32_t i = 0; i < POLLS * TACHO__DIFF_BLOCKS; i++) {
		for (uint32_t k = 0; k < count; k++) {
			const struct shape *x = &shapes[k];
			uint64_t ns = (i % 8 < x->share ? x->quick : x->slow) +
				      (i / POLLS % 2 ? x->wobble : -x->wobble);
			uint64_t at = (i + 1) * MS + k * MS / 4;

			if ((x->blocks && i / POLLS >= x->blocks) ||
			    (x->polls && i % POLLS >= x->polls))
				continue;
			PUT(&s->m, at, POLL_BEGIN, x->kind ? x->kind : KIND_A, 7 + k);
			PUT(&s->m, at + ns, POLL_END, 1);
		}
		if (i % 200 == 199)
			trace_stream(&s->m, 1, 0);
	}
	PUT(&s->m, (POLLS * TACHO__DIFF_BLOCKS + 1) * MS, PARK, LOOP_1);
	s->reader = trace_reader(&s->m);
}

static void side_free(struct side *s)
{
	tacho_read_close(s->reader);
	tb_free(&s->m.t);
}

/* The change of KIND_A, the others being what they are. */
static enum tacho__change change(const struct shape *a, uint32_t a_count, const struct shape *b,
				 uint32_t b_count, const struct tacho__diff_options *options)
{
	enum tacho__change found = TACHO__CHANGE_GONE + 100;
	struct tacho__diff *d;
	struct side x, y;
	int error;

	side_make(&x, a, a_count);
	side_make(&y, b, b_count);
	d = tacho__diff_make(x.reader, y.reader, options, &error);
	assert_non_null(d);
	for (uint32_t i = 0; i < d->count; i++) {
		print_message("%s: %s, %g, chance %g\n", d->rows[i].name,
			      tacho__change_name(d->rows[i].change), d->rows[i].ratio,
			      d->rows[i].chance);
		if (strstr(d->rows[i].name, "kind a"))
			found = d->rows[i].change;
	}
	tacho__diff_free(d);
	side_free(&x);
	side_free(&y);
	return found;
}

static enum tacho__change from_to(uint64_t from, uint64_t to)
{
	const struct shape a = {.slow = from}, b = {.slow = to};

	return change(&a, 1, &b, 1, NULL);
}

static void a_tenth_is_a_change(void **state)
{
	const struct shape a = {.slow = 100000}, b = {.slow = 125000};

	(void)state;
	assert_int_equal(from_to(100000, 109500), TACHO__CHANGE_NONE);
	assert_int_equal(from_to(100000, 110500), TACHO__CHANGE_SLOWER);
	assert_int_equal(from_to(100000, 91000), TACHO__CHANGE_NONE);
	assert_int_equal(from_to(100000, 89000), TACHO__CHANGE_FASTER);
	assert_int_equal(change(&a, 1, &b, 1, &(struct tacho__diff_options){.least = 0.26}),
			 TACHO__CHANGE_NONE);
	assert_int_equal(change(&a, 1, &b, 1, &(struct tacho__diff_options){.least = 0.24}),
			 TACHO__CHANGE_SLOWER);
}

static void what_cold_caches_do_is_none(void **state)
{
	(void)state;
	assert_int_equal(from_to(1000, 1199), TACHO__CHANGE_NONE);
	assert_int_equal(from_to(1000, 1200), TACHO__CHANGE_SLOWER);
}

/* Half as slow again, but for three of eight. */
static void the_lower_quartile_has_to_change_too(void **state)
{
	const struct shape a = {.slow = 100000};
	const struct shape most = {.quick = 100000, .slow = 150000, .share = 3};
	const struct shape all = {.quick = 140000, .slow = 150000, .share = 3};
	const struct shape faster = {.quick = 50000, .slow = 100000, .share = 3};

	(void)state;
	assert_int_equal(change(&a, 1, &all, 1, NULL), TACHO__CHANGE_SLOWER);
	assert_int_equal(change(&a, 1, &most, 1, NULL), TACHO__CHANGE_NONE);
	assert_int_equal(change(&a, 1, &faster, 1, NULL), TACHO__CHANGE_NONE);
}

static void few_blocks_tell_nothing(void **state)
{
	const struct shape a = {.slow = 100000}, other = {.slow = 50000, .kind = KIND_B};
	const struct shape few[] = {{.slow = 200000, .blocks = 2}, other};
	const struct shape enough[] = {{.slow = 200000, .blocks = 8}, other};
	const struct shape gone[] = {other};

	(void)state;
	assert_int_equal(change(&a, 1, few, 2, NULL), TACHO__CHANGE_TOO_FEW);
	assert_int_equal(change(&a, 1, enough, 2, NULL), TACHO__CHANGE_SLOWER);
	assert_int_equal(change(&a, 1, gone, 1, NULL), TACHO__CHANGE_GONE);
	assert_int_equal(change(gone, 1, &a, 1, NULL), TACHO__CHANGE_NEW);
}

/* Of three kinds two are a quarter slower: that is the machine, and the third is faster. */
static void what_kinds_have_in_common_is_taken_out(void **state)
{
	const struct shape before[] = {
		{.slow = 100000}, {.slow = 50000, .kind = KIND_B}, {.slow = 60000, .kind = NAME}};
	const struct shape after[] = {
		{.slow = 100000}, {.slow = 62500, .kind = KIND_B}, {.slow = 75000, .kind = NAME}};
	const struct tacho__diff_options absolute = {.absolute = true};

	(void)state;
	assert_int_equal(change(before, 3, after, 3, NULL), TACHO__CHANGE_FASTER);
	assert_int_equal(change(before, 3, after, 3, &absolute), TACHO__CHANGE_NONE);
	assert_int_equal(change(before, 2, after, 2, NULL), TACHO__CHANGE_NONE);
}

/* Four blocks that are slower than so many before, beside two kinds that are as before. */
static enum tacho__change after(uint32_t blocks)
{
	const struct shape before[] = {{.slow = 100000, .blocks = blocks},
				       {.slow = 50000, .kind = KIND_B},
				       {.slow = 60000, .kind = NAME}};
	const struct shape now[] = {{.slow = 200000, .blocks = 4},
				    {.slow = 50000, .kind = KIND_B},
				    {.slow = 60000, .kind = NAME}};

	return change(before, 3, now, 3, NULL);
}

/* One of three kinds does so once in 105 times, and once in 95 times. */
static void what_chance_makes_is_no_change(void **state)
{
	(void)state;
	assert_int_equal(after(15), TACHO__CHANGE_SLOWER);
	assert_int_equal(after(14), TACHO__CHANGE_TOO_FEW);
}

static void a_block_has_several_values(void **state)
{
	const struct shape a = {.slow = 100000};

	(void)state;
	assert_int_equal(change(&a, 1, &(struct shape){.slow = 200000, .polls = 3}, 1, NULL),
			 TACHO__CHANGE_SLOWER);
	assert_int_equal(change(&a, 1, &(struct shape){.slow = 200000, .polls = 2}, 1, NULL),
			 TACHO__CHANGE_TOO_FEW);
}

/* Its quartiles are 10 % apart: the logarithms of the ratios are 0.152 and 0.148. */
static void a_change_is_larger_than_what_comes_and_goes_in_one_run(void **state)
{
	const struct shape a = {.slow = 100000, .wobble = 5000};

	(void)state;
	assert_int_equal(change(&a, 1, &(struct shape){.slow = 116420}, 1, NULL),
			 TACHO__CHANGE_SLOWER);
	assert_int_equal(change(&a, 1, &(struct shape){.slow = 115950}, 1, NULL),
			 TACHO__CHANGE_NONE);
}

/* Of KIND_A, which takes as long as before, while two others go from `from` to these times. */
static enum tacho__change beside(uint64_t from, uint64_t b, uint64_t name)
{
	const struct shape before[] = {
		{.slow = 100000}, {.slow = from, .kind = KIND_B}, {.slow = from, .kind = NAME}};
	const struct shape after[] = {
		{.slow = 100000}, {.slow = b, .kind = KIND_B}, {.slow = name, .kind = NAME}};

	return change(before, 3, after, 3, NULL);
}

static void kinds_that_change_nearly_alike_change_together(void **state)
{
	(void)state;
	assert_int_equal(beside(100000, 125000, 131000), TACHO__CHANGE_FASTER);
	assert_int_equal(beside(100000, 125000, 131500), TACHO__CHANGE_NONE);
}

static void what_is_short_has_nothing_in_common_with_others(void **state)
{
	(void)state;
	assert_int_equal(beside(2050, 2560, 2560), TACHO__CHANGE_FASTER);
	assert_int_equal(beside(1950, 2440, 2440), TACHO__CHANGE_NONE);
}

/* All are a quarter slower. */
static void two_kinds_have_nothing_in_common(void **state)
{
	const struct shape before[] = {
		{.slow = 100000}, {.slow = 50000, .kind = KIND_B}, {.slow = 60000, .kind = NAME}};
	const struct shape after[] = {
		{.slow = 125000}, {.slow = 62500, .kind = KIND_B}, {.slow = 75000, .kind = NAME}};

	(void)state;
	assert_int_equal(change(before, 3, after, 3, NULL), TACHO__CHANGE_NONE);
	assert_int_equal(change(before, 2, after, 2, NULL), TACHO__CHANGE_SLOWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenth_is_a_change),
		cmocka_unit_test(what_cold_caches_do_is_none),
		cmocka_unit_test(the_lower_quartile_has_to_change_too),
		cmocka_unit_test(few_blocks_tell_nothing),
		cmocka_unit_test(what_kinds_have_in_common_is_taken_out),
		cmocka_unit_test(what_chance_makes_is_no_change),
		cmocka_unit_test(a_block_has_several_values),
		cmocka_unit_test(a_change_is_larger_than_what_comes_and_goes_in_one_run),
		cmocka_unit_test(kinds_that_change_nearly_alike_change_together),
		cmocka_unit_test(what_is_short_has_nothing_in_common_with_others),
		cmocka_unit_test(two_kinds_have_nothing_in_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
