/* Numbers of reports and statistics: sums over processes, the order of tables, ids at their limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "answer/answer.h"
#include "answer/event.h"
#include "answer/stats.h"
#include "ledger_help.h"

static void ids_have_24_bits(void **state)
{
	(void)state;
	assert_int_equal(event_id(0xffff), 0xffff);
	assert_int_equal(event_id(0x10000), 0x10000);
	assert_int_equal(event_id(0xfffffe), 0xfffffe);
	assert_int_equal(event_id(0xffffff), 0xffffff);
	assert_int_equal(event_id(0x1000000), 0xffffff);
	assert_int_equal(event_id(UINT64_MAX), 0xffffff);
}

static void buckets_begin_at_powers_of_two(void **state)
{
	(void)state;
	assert_int_equal(event_bucket_ns(0ull << 48 | 5), 0);
	assert_int_equal(event_bucket_ns(1ull << 48 | 5), 2);
	assert_int_equal(event_bucket_ns(63ull << 48 | 5), 1ull << 63);
	assert_int_equal(event_bucket_ns(64ull << 48 | 5), UINT64_MAX);
}

/* ---------------------------------------------------------------- statistics */

/* Of each kind of thing two, the quick one first. */
static void put_pairs(struct trace *m)
{
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_2);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t at = (10 + 50 * i) * MS, ns = (1 + 8 * i) * MS;

		PUT(m, at, UNPARK, 1);
		PUT(m, at, POLL_BEGIN, i ? KIND_B : KIND_A, 0);
		put_call(m, at + ns, i ? SLEEP : NAME, ns);
		PUT(m, at + ns, LOCK_WAIT, PLACE, 0x70 + i);
		PUT(m, at + 2 * ns, LOCK_WAITED, 1, 0x70 + i);
		PUT(m, at + 2 * ns, POLL_END, 0);
		PUT(m, at + 2 * ns, PARK, LOOP_2);
	}
	trace_stream(m, 2, 0);
	PUT(m, 0, PARK, LOOP_1);
	PUT(m, 100 * MS, UNPARK, 1);
	PUT(m, 130 * MS, PARK, LOOP_1);
}

static void tables_have_the_largest_first(void **state)
{
	uint32_t pairs = 0;
	struct stats s;
	struct booked b;

	(void)state;
	book_begin(&b);
	put_pairs(&b.m);
	b.l = NULL;
	b.reader = trace_reader(&b.m);
	assert_int_equal(stats_read(&s, b.reader, NULL, NULL), 0);
	for (uint32_t i = 0; i < STATS_TABLES; i++) {
		const struct stats_table *t = &s.tables[i];

		for (uint32_t k = 0; k < t->count; k++)
			print_message("%s: %s: %llu\n", t->key, t->rows[k].name,
				      (unsigned long long)t->rows[k].rank);
		for (uint32_t k = 1; k < t->count; k++)
			assert_true(t->rows[k - 1].rank >= t->rows[k].rank);
		for (uint32_t k = 1; k < t->count; k++)
			pairs += t->rows[k - 1].rank > t->rows[k].rank &&
				 t->rows[k - 1].order > t->rows[k].order;
	}
	/* Callbacks, calls and locks, at least. */
	assert_true(pairs >= 3);
	stats_free(&s);
	book_end(&b);
}

/* ------------------------------------------------------------------- reports */

static void put_part(struct tb *to, uint32_t part, uint32_t turns)
{
	struct trace m;

	part_begin(&m, part);
	for (uint64_t i = 0; i < turns; i++) {
		PUT(&m, i * MS, PARK, LOOP_1);
		PUT(&m, i * MS + MS / 2, UNPARK, 1);
	}
	trace_close(&m);
	tb_end(&m.t, 1);
	tb_put(to, m.t.data, m.t.size);
	tb_free(&m.t);
}

static void events_of_all_processes_are_added_up(void **state)
{
	struct booked b = {.l = NULL};
	struct tacho__explanation *e;
	struct json j;
	size_t size;
	char *made;
	int error;

	(void)state;
	put_part(&b.m.t, 0, 30);
	put_part(&b.m.t, 1, 50);
	b.reader = open_bytes(b.m.t.data, b.m.t.size, NULL);
	e = tacho__explain(b.reader, NULL, &error);
	assert_non_null(e);
	json_begin(&j, open_memstream(&made, &size), false);
	answer_report(&j, b.reader, e, false);
	fclose(j.out);
	assert_non_null(strstr(made, "\"trace\":{\"events\":160,"));
	assert_non_null(strstr(made, "\"processes\":2,"));
	free(made);
	tacho__explanation_free(e);
	book_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_have_24_bits),
		cmocka_unit_test(buckets_begin_at_powers_of_two),
		cmocka_unit_test(tables_have_the_largest_first),
		cmocka_unit_test(events_of_all_processes_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
