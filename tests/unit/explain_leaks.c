/* What the rule handle-leak says of traces that are made record by record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

/* Definitions beside those of every trace. */
enum { PLACE_1 = 50, PLACE_2, TIMERS, TIMERS_BEGUN, CONNECTIONS, OWN, THREAD, OPENED };

#define WINDOW (10000 * MS)
#define STEP (100 * MS)
#define STEPS (WINDOW / STEP)

/* How many are alive, begun and connected after so many steps; -1: that is not told. */
typedef int64_t level(int64_t step);

struct told {
	level *alive, *begun, *open;
	uint32_t gauge; /* of `alive` */
	int full;	/* the loop has no time to wait */
	uint64_t until; /* step from which on there is nothing to do; 0: none */
	level *opened;	/* descriptors that were opened at another place; NULL: not told */
};

static int64_t none(int64_t step)
{
	(void)step;
	return -1;
}

static int64_t leaks(int64_t step)
{
	return 20 + 10 * step;
}

static int64_t begun_with_leak(int64_t step)
{
	return 20 + 40 * step;
}

static int64_t few(int64_t step)
{
	return 20 + 9 * step / 10;
}

/* Until the pool is full, at nine tenths of the window. */
static int64_t fills_up(int64_t step)
{
	return step < 88 ? 20 + 10 * step : -1;
}

static int64_t full_at_half(int64_t step)
{
	return step < 60 ? 20 + 10 * step : 620;
}

static int64_t comes_and_goes(int64_t step)
{
	return 1000 + (step % 7 != 5 ? 10 * step : 0);
}

static int64_t all_end(int64_t step)
{
	return step < 99 ? leaks(step) : 0;
}

static int64_t grows_at_last(int64_t step)
{
	return step < 70 ? 20 : 40 * (step - 69);
}

static int64_t begins_late(int64_t step)
{
	return step < 60 ? -1 : leaks(step);
}

static int64_t grows_as_load(int64_t step)
{
	return 5 + 3 * step;
}

static int64_t grows_little(int64_t step)
{
	return 5 + step;
}

static void define(struct trace *m)
{
	uint8_t payload[256];
	struct tb p = {0};

	tb_definition(&p, PLACE_1, TACHO_DEF_PLACE, payload,
		      bb_name(payload, "begin_session", "server.c", 42, 0, 0, ""));
	tb_definition(&p, PLACE_2, TACHO_DEF_PLACE, payload,
		      bb_name(payload, "accept_one", "server.c", 7, 0, 0, ""));
	tb_definition(&p, TIMERS, TACHO_DEF_GAUGE, payload,
		      bb_name(payload, "uv_timer", "", 0, PLACE_1, TACHO_VALUE_I64, "alive"));
	tb_definition(&p, TIMERS_BEGUN, TACHO_DEF_COUNTER, payload,
		      bb_name(payload, "uv_timer", "", 0, PLACE_1, TACHO_VALUE_I64, "begun"));
	tb_definition(&p, CONNECTIONS, TACHO_DEF_GAUGE, payload,
		      bb_name(payload, "connection", "", 0, PLACE_2, TACHO_VALUE_I64, "alive"));
	tb_definition(&p, OPENED, TACHO_DEF_GAUGE, payload,
		      bb_name(payload, "descriptor", "", 0, PLACE_2, TACHO_VALUE_I64, "alive"));
	tb_definition(&p, OWN, TACHO_DEF_GAUGE, payload,
		      bb_name(payload, "sessions", "", 0, 0, TACHO_VALUE_I64, "alive"));
	tb_definition(&p, THREAD, TACHO_DEF_KIND, payload,
		      bb_name(payload, "thread", "", 0, 0x401000, 0, ""));
	tb_plain(&m->t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

static void put_level(struct trace *m, uint64_t at, uint32_t counter, int64_t value)
{
	if (value >= 0)
		PUT(m, at, COUNTER, counter, (uint64_t)value);
}

static struct tacho__explanation *explain(struct trace *m, struct tacho_reader **reader)
{
	struct tacho__explanation *e;
	int error;

	*reader = trace_reader(m);
	e = tacho__explain(*reader, NULL, &error);
	assert_non_null(e);
	assert_int_equal(tacho_read_problem_count(*reader), 0);
	return e;
}

static const struct tacho__finding *found(const struct tacho__explanation *e, const char *rule)
{
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0)
			return &e->findings[i];
	return NULL;
}

static const char *why(const struct tacho__explanation *e)
{
	return e->coverage[TACHO__RULE_HANDLE_LEAK].why;
}

static uint32_t count_of(const struct tacho__explanation *e, const char *rule)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->count; i++)
		n += strcmp(tacho__rules[e->findings[i].rule].id, rule) == 0;
	return n;
}

/* How many leaks there are; one alone is checked. */
static int judge(const struct told *t, const char *summary, const char *evidence)
{
	struct tacho__explanation *e;
	const struct tacho__finding *f;
	struct tacho_reader *reader;
	struct trace m;
	int is_leak, leak_count;

	trace_begin(&m);
	define(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < (t->until ? t->until : STEPS); i++) {
		uint64_t at = i * STEP + 10 * MS;

		PUT(&m, at, UNPARK, 1);
		put_level(&m, at + 1, t->gauge, t->alive((int64_t)i));
		put_level(&m, at + 2, TIMERS_BEGUN, t->begun((int64_t)i));
		put_level(&m, at + 3, CONNECTIONS, t->open((int64_t)i));
		put_level(&m, at + 4, OPENED, t->opened ? t->opened((int64_t)i) : -1);
		PUT(&m, at + (t->full ? STEP - 1 : MS), PARK, LOOP_1);
	}
	PUT(&m, WINDOW + 11 * MS, UNPARK, 0);
	e = explain(&m, &reader);
	f = found(e, "handle-leak");
	is_leak = f != NULL;
	leak_count = (int)count_of(e, "handle-leak");
	print_message("%s; %s\n", f ? f->summary : "no leak", why(e));
	if (leak_count == 1) {
		assert_int_equal(f->severity, TACHO__SEVERITY_WARNING);
		assert_string_equal(e->verdict.category, "leak");
		assert_true(f->where_count == 1);
		assert_string_equal(f->where[0].function, "begin_session");
		assert_int_equal(f->where[0].line, 42);
		assert_non_null(strstr(f->summary, summary));
		assert_true(f->evidence_count == 2);
		assert_non_null(strstr(f->evidence[1].text, evidence));
	} else if (!is_leak) {
		assert_true(summary[0] ? strstr(why(e), summary) != NULL : !strstr(why(e), "grow"));
	}
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
	return leak_count;
}

static void what_grows_to_the_end_is_a_leak_with_its_place(void **state)
{
	(void)state;
	assert_true(judge(&(struct told){leaks, leaks, none, TIMERS, 0, 0, NULL},
			  "uv_timer handles pile up: 990 were begun here, 0 of them have ended",
			  "100.0 begun and 0.0 ended per second"));
	assert_true(judge(&(struct told){leaks, begun_with_leak, none, TIMERS, 0, 0, NULL},
			  "3960 were begun here, 2970 of them have ended",
			  "400.0 begun and 300.0 ended per second"));
}

static void what_does_not_grow_to_the_end_is_none(void **state)
{
	level *const cases[] = {few, fills_up, comes_and_goes, all_end, grows_at_last, begins_late};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_false(
			judge(&(struct told){cases[i], none, none, TIMERS, 0, 0, NULL}, "", ""));
}

/* But one that begins things at its start alone has no leak. */
static void while_there_is_nothing_to_do_nothing_needs_to_grow(void **state)
{
	(void)state;
	assert_true(judge(&(struct told){leaks, leaks, none, TIMERS, 0, 70, NULL},
			  "690 were begun here, 0 of them have ended", "100.0 begun"));
	assert_false(judge(&(struct told){leaks, leaks, none, TIMERS, 0, 48, NULL}, "", ""));
	/* Full long before there was nothing more to do. */
	assert_false(judge(&(struct told){full_at_half, none, none, TIMERS, 0, 90, NULL}, "", ""));
}

static void what_grows_as_connections_do_is_load(void **state)
{
	(void)state;
	assert_false(judge(&(struct told){leaks, leaks, grows_as_load, TIMERS, 0, 0, NULL},
			   "as the open connections do", ""));
	assert_true(judge(&(struct told){leaks, leaks, grows_little, TIMERS, 0, 0, NULL}, "pile up",
			  ""));
}

static int64_t leaks_twice(int64_t step)
{
	return 2 * leaks(step);
}

/* A handle that stays has its descriptor with it: that is one leak. Those that are left are another. */
static void descriptors_are_told_where_nothing_else_has_them(void **state)
{
	(void)state;
	assert_int_equal(judge(&(struct told){leaks, leaks, none, TIMERS, 0, 0, leaks},
			       "uv_timer handles pile up", ""),
			 1);
	assert_int_equal(
		judge(&(struct told){leaks, leaks, none, TIMERS, 0, 0, leaks_twice}, "", ""), 2);
}

/* Ends come late there; without any they would come never. */
static void what_waits_for_a_full_loop_is_no_leak(void **state)
{
	(void)state;
	assert_false(judge(&(struct told){leaks, begun_with_leak, none, TIMERS, 1, 0, NULL},
			   "while their loop is full", ""));
}

static void connections_and_gauges_of_the_program_are_no_leaks(void **state)
{
	(void)state;
	assert_false(judge(&(struct told){none, none, leaks, TIMERS, 0, 0, NULL}, "", ""));
	assert_false(judge(&(struct told){leaks, none, none, OWN, 0, 0, NULL}, "", ""));
}

/* They have no end that is recorded. */
static void threads_are_no_tasks_that_never_end(void **state)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;

	(void)state;
	for (uint32_t kind = KIND_A;; kind = THREAD) {
		struct trace m;

		trace_begin(&m);
		define(&m);
		trace_stream(&m, 1, 0);
		for (uint64_t i = 0; i < 2 * STEPS; i++)
			PUT(&m, i * STEP / 2, SPAWN, kind, PLACE_1, 100 + i, 0);
		e = explain(&m, &reader);
		assert_int_equal(found(e, "task-leak") != NULL, kind == KIND_A);
		tacho__explanation_free(e);
		tacho_read_close(reader);
		tb_free(&m.t);
		if (kind == THREAD)
			break;
	}
}

/* How many handles there are when so many turns of all were done. */
static int64_t after(uint64_t turns, uint64_t all)
{
	return (int64_t)(20 + 1000 * turns / all);
}

/* Handles that pile up evenly by work, in turns of which half are in the last tenth of the time; from
   begin to end it takes `ns`, in a window that is half as long again. */
static int leaks_in(uint64_t turns, uint64_t ns, int even)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct trace m;
	int is;

	trace_begin(&m);
	define(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < turns; i++) {
		uint64_t half = turns / 2, at = i * ns / (turns - 1);

		if (!even)
			at = i < half ? i * ns * 9 / 10 / half
				      : ns * 9 / 10 + (i - half) * ns / 10 / (turns - half - 1);
		PUT(&m, at + 1000, UNPARK, 1);
		put_level(&m, at + 1000, TIMERS, after(i, turns));
		PUT(&m, at + 2000, PARK, LOOP_1);
	}
	PUT(&m, ns * 3 / 2, UNPARK, 0);
	e = explain(&m, &reader);
	is = found(e, "handle-leak") != NULL;
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
	return is;
}

static void what_grows_for_a_moment_is_no_leak(void **state)
{
	(void)state;
	assert_true(leaks_in(100, 1050 * MS, 1));
	assert_false(leaks_in(100, 970 * MS, 1));
}

/* In the last wait of the window nothing is done either. */
static void with_few_turns_work_is_told_by_time(void **state)
{
	(void)state;
	assert_true(leaks_in(64, 3000 * MS, 0));
	assert_false(leaks_in(63, 3000 * MS, 0));
}

static int64_t connects(int64_t step)
{
	return 5 + 26 * step / 10;
}

static int64_t connects_less(int64_t step)
{
	return 5 + 24 * step / 10;
}

/* 10 for each step. */
static void a_connection_has_a_few_handles(void **state)
{
	(void)state;
	assert_false(judge(&(struct told){leaks, leaks, connects, TIMERS, 0, 0, NULL},
			   "as the open connections do", ""));
	assert_true(judge(&(struct told){leaks, leaks, connects_less, TIMERS, 0, 0, NULL},
			  "pile up", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_grows_to_the_end_is_a_leak_with_its_place),
		cmocka_unit_test(what_does_not_grow_to_the_end_is_none),
		cmocka_unit_test(while_there_is_nothing_to_do_nothing_needs_to_grow),
		cmocka_unit_test(what_grows_as_connections_do_is_load),
		cmocka_unit_test(descriptors_are_told_where_nothing_else_has_them),
		cmocka_unit_test(what_waits_for_a_full_loop_is_no_leak),
		cmocka_unit_test(connections_and_gauges_of_the_program_are_no_leaks),
		cmocka_unit_test(threads_are_no_tasks_that_never_end),
		cmocka_unit_test(what_grows_for_a_moment_is_no_leak),
		cmocka_unit_test(with_few_turns_work_is_told_by_time),
		cmocka_unit_test(a_connection_has_a_few_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
