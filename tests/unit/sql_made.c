/* Tables of `tacho sql` over traces that are made record by record: what recordings seldom have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "ledger_help.h"
#include "query/module.h"

struct asked {
	struct booked b;
	struct tacho__sql_source source;
	sqlite3 *db;
};

static void ask_begin(struct asked *a)
{
	a->b.l = NULL;
	a->b.reader = trace_reader(&a->b.m);
	a->source = (struct tacho__sql_source){.reader = a->b.reader};
	assert_int_equal(tacho__sql_open(&a->db, &a->source), SQLITE_OK);
}

static void ask_end(struct asked *a)
{
	assert_int_equal(sqlite3_close(a->db), SQLITE_OK);
	tacho__sql_source_free(&a->source);
	book_end(&a->b);
}

/* The rows of a query, "1,2;3,4". */
static const char *rows(const struct asked *a, const char *query)
{
	static char out[2000];
	sqlite3_stmt *s;
	size_t used = 0;

	out[0] = 0;
	assert_int_equal(sqlite3_prepare_v2(a->db, query, -1, &s, NULL), SQLITE_OK);
	while (sqlite3_step(s) == SQLITE_ROW) {
		used += (size_t)snprintf(out + used, sizeof(out) - used, "%s", used ? ";" : "");
		for (int i = 0; i < sqlite3_column_count(s); i++) {
			const char *text = (const char *)sqlite3_column_text(s, i);

			used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%s",
						 i ? "," : "", text ? text : "NULL");
			assert_true(used < sizeof(out));
		}
	}
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	return out;
}

/* Three stacks that no definition has, the first and the last of which are the same. */
static void samples_without_a_definition_have_their_frames(void **state)
{
	struct asked a;

	(void)state;
	book_begin(&a.b);
	trace_stream(&a.b.m, 1, 0);
	PUT(&a.b.m, 0, PARK, LOOP_1);
	PUT(&a.b.m, 1 * MS, UNPARK, 1);
	PUT(&a.b.m, 2 * MS, SAMPLE_FRAMES, 0, 0, MS, 0x1000, 0x2000);
	PUT(&a.b.m, 3 * MS, SAMPLE_FRAMES, 0, 0, MS, 0x3000);
	PUT(&a.b.m, 4 * MS, SAMPLE_FRAMES, 0, 0, MS, 0x1000, 0x2000);
	PUT(&a.b.m, 5 * MS, PARK, LOOP_1);
	ask_begin(&a);
	assert_string_equal(rows(&a, "SELECT s.ns - 1000000000, f.address FROM samples s "
				     "JOIN frames f USING (process, stack) ORDER BY 1, f.depth"),
			    "2000000,4096;2000000,8192;3000000,12288;4000000,4096;4000000,8192");
	assert_string_equal(rows(&a, "SELECT count(DISTINCT stack) FROM samples"), "2");
	ask_end(&a);
}

/* Four records are overwritten, and three found no room. */
static void what_is_missing_and_what_was_dropped_is_added_up(void **state)
{
	struct asked a;

	(void)state;
	book_begin(&a.b);
	trace_stream(&a.b.m, 1, 0);
	PUT(&a.b.m, 0, PARK, LOOP_1);
	PUT(&a.b.m, 1 * MS, UNPARK, 1);
	trace_hole(&a.b.m, 1, 0, 4);
	a.b.m.e.r.head.drops = 3;
	PUT(&a.b.m, 5 * MS, PARK, LOOP_1);
	PUT(&a.b.m, 6 * MS, UNPARK, 1);
	ask_begin(&a);
	assert_string_equal(rows(&a, "SELECT records, reason FROM gaps"), "7,hole");
	ask_end(&a);
}

/* The number of a plan, which says by which field rows are looked for. */
static int plan(const struct asked *a, const char *where)
{
	const char *text, *number;
	char query[300];

	snprintf(query, sizeof(query), "EXPLAIN QUERY PLAN SELECT kind FROM polls WHERE %s", where);
	text = rows(a, query);
	number = strstr(text, "INDEX ");
	assert_non_null(number);
	return atoi(number + strlen("INDEX "));
}

/* One of two comparisons is done by the table itself: that which leaves fewer rows. */
static void rows_are_looked_for_where_they_are_fewest(void **state)
{
	struct asked a;

	(void)state;
	book_begin(&a.b);
	trace_stream(&a.b.m, 1, 0);
	for (uint64_t i = 0; i < 20; i++) {
		PUT(&a.b.m, i * MS, POLL_BEGIN, KIND_A, 1 + i % 2);
		PUT(&a.b.m, i * MS + 1000, POLL_END, 1);
	}
	ask_begin(&a);
	assert_int_equal(plan(&a, "begin_ns = 5 AND task = 1"), plan(&a, "begin_ns = 5"));
	assert_int_equal(plan(&a, "task = 1 AND begin_ns = 5"), plan(&a, "begin_ns = 5"));
	assert_int_equal(plan(&a, "task = 1 AND begin_ns > 5"), plan(&a, "task = 1"));
	assert_int_equal(plan(&a, "begin_ns = 5 AND end_ns > 5"), plan(&a, "begin_ns = 5"));
	assert_int_equal(plan(&a, "begin_ns BETWEEN 5 AND 9 AND end_ns > 5"),
			 plan(&a, "begin_ns BETWEEN 5 AND 9"));
	assert_int_equal(plan(&a, "begin_ns > 5 AND end_ns BETWEEN 5 AND 9"),
			 plan(&a, "end_ns BETWEEN 5 AND 9"));
	assert_string_equal(rows(&a, "SELECT count(*) FROM polls WHERE begin_ns = 1002000000 "
				     "AND task = 1"),
			    "1");
	ask_end(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_without_a_definition_have_their_frames),
		cmocka_unit_test(what_is_missing_and_what_was_dropped_is_added_up),
		cmocka_unit_test(rows_are_looked_for_where_they_are_fewest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
