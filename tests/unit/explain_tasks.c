/* What the rule stuck-task says of waits for wakes that do not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

/* Definitions beside those of every trace. */
enum { ASKS = 50, REQUEST, REPLY };

#define ROUNDS 200u
#define ROUND (15 * MS)
#define US 1000u
#define TASKS 4u
#define LATE 5u /* round */

/*
 * Tasks that serve a request each in turn: a loop wakes them for it, a thread when the reply of a
 * backend is there.
 */
struct server {
	uint32_t lost;	/* round whose reply wakes nobody; that task has no more; 0: none */
	uint32_t quiet; /* round after which its task has no more; 0: none */
	uint32_t until; /* rounds in all */
	uint32_t reply; /* what tasks say they wait for there */
	int by_loop;	/* replies come through the loop, as from a peer */
	int inside;	/* requests come from threads of the program as well */
	int is_late;	/* one of the replies takes 290 ms */
};

static void define(struct trace *m)
{
	uint8_t payload[256];
	struct tb p = {0};

	tb_definition(&p, ASKS, TACHO_DEF_PLACE, payload,
		      bb_name(payload, "ask_backend", "server.c", 42, 0, 0, ""));
	tb_definition(&p, REQUEST, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "a request", "", 0, 0, 0, ""));
	tb_definition(&p, REPLY, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "the backend", "", 0, 0, 0, ""));
	tb_plain(&m->t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

static uint64_t task_in(uint32_t round)
{
	return 1 + round % TASKS;
}

/* Whether there is such a round. */
static int is_served(const struct server *s, uint32_t round)
{
	return !(s->lost && round > s->lost && task_in(round) == task_in(s->lost)) &&
	       !(s->quiet && round > s->quiet && task_in(round) == task_in(s->quiet)) &&
	       !(s->is_late && round > LATE && round < LATE + 20 &&
		 task_in(round) == task_in(LATE));
}

static void polled(struct trace *m, uint64_t at, uint64_t task, uint32_t what, uint64_t place)
{
	PUT(m, at, POLL_BEGIN, KIND_A, task);
	PUT(m, at + 1 * US, TASK_WAITS, what, place, task, 0);
	PUT(m, at + 2 * US, POLL_END, TACHO_PENDING);
}

static void serve(struct trace *m, const struct server *s)
{
	PUT(m, 0, LOOP, LOOP_3);
	for (uint32_t i = 0; i < s->until; i++) {
		uint64_t at = i * ROUND, task = task_in(i);

		if (i < TASKS)
			PUT(m, at, SPAWN, KIND_A, 0, task, 0);
		if (!is_served(s, i))
			continue;
		if (!s->inside)
			PUT(m, at + 10 * US, WAKE, 0, task);
		polled(m, at + 20 * US, task, s->reply, ASKS);
		if (s->lost == i || (s->is_late && i == LATE))
			continue;
		if (s->by_loop)
			PUT(m, at + 2 * MS, WAKE, 0, task);
		polled(m, at + 2 * MS + 10 * US, task, REQUEST, 0);
	}
	PUT(m, ROUNDS * ROUND, PARK, LOOP_3);
}

/* The thread that has the replies. */
static void reply(struct trace *m, const struct server *s)
{
	for (uint32_t i = 0; i < s->until; i++) {
		if (!is_served(s, i))
			continue;
		if (s->inside)
			PUT(m, i * ROUND + 10 * US, WAKE, 0, task_in(i));
		if (i != s->lost && !(s->is_late && i == LATE))
			PUT(m, i * ROUND + 2 * MS, WAKE, 0, task_in(i));
	}
}

static int is_stuck(const struct server *s)
{
	struct tacho__explanation *e;
	const struct tacho__finding *f = NULL;
	struct tacho_reader *reader;
	struct trace m;
	int error, stuck;

	trace_begin(&m);
	define(&m);
	trace_stream(&m, 1, 0);
	serve(&m, s);
	if (!s->by_loop) {
		trace_stream(&m, 2, 0);
		reply(&m, s);
		trace_stream(&m, 3, 0);
		if (s->is_late)
			PUT(&m, LATE * ROUND + 290 * MS, WAKE, 0, task_in(LATE));
	}
	reader = trace_reader(&m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].rule == TACHO__RULE_STUCK_TASK)
			f = &e->findings[i];
	print_message("%s\n", f ? f->summary : "none");
	stuck = f != NULL;
	if (f) {
		assert_string_equal(f->where[0].function, "ask_backend");
		assert_int_equal(f->task, task_in(s->lost));
		assert_non_null(
			strstr(f->summary, s->reply ? "kind a has waited for the backend for "
						      "2.70 s and nobody wakes it: 155 such "
						      "waits took 1.98 ms at most"
						    : "kind a has waited for 2.70 s and nobody "
						      "wakes it: 155 such waits"));
	}
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
	return stuck;
}

static void a_wake_that_others_get_and_one_does_not_is_lost(void **state)
{
	(void)state;
	assert_true(is_stuck(&(struct server){.lost = 20, .until = ROUNDS, .reply = REPLY}));
}

/* As tacho-tokio tells it. */
static void where_it_went_idle_is_enough(void **state)
{
	(void)state;
	assert_true(is_stuck(&(struct server){.lost = 20, .until = ROUNDS}));
	assert_false(is_stuck(&(struct server){.quiet = 20, .until = ROUNDS}));
	assert_false(is_stuck(&(struct server){.lost = 20, .until = ROUNDS, .by_loop = 1}));
}

/* For its next request, a message of others, what a peer says. */
static void a_task_may_wait_for_work_for_as_long_as_it_likes(void **state)
{
	(void)state;
	assert_false(is_stuck(&(struct server){.until = ROUNDS, .reply = REPLY}));
	assert_false(is_stuck(&(struct server){.quiet = 20, .until = ROUNDS, .reply = REPLY}));
	assert_false(is_stuck(&(struct server){.lost = 20, .until = ROUNDS, .reply = REQUEST}));
	assert_false(is_stuck(
		&(struct server){.lost = 20, .until = ROUNDS, .reply = REPLY, .by_loop = 1}));
	assert_false(is_stuck(
		&(struct server){.lost = 20, .until = ROUNDS, .reply = REPLY, .inside = 1}));
}

static void without_others_to_compare_with_no_wake_is_lost(void **state)
{
	(void)state;
	/* It was never woken from there; others wait as long, or have nothing to do either. */
	assert_false(is_stuck(&(struct server){.lost = 2, .until = ROUNDS, .reply = REPLY}));
	assert_false(is_stuck(
		&(struct server){.lost = 20, .until = ROUNDS, .reply = REPLY, .is_late = 1}));
	assert_false(is_stuck(&(struct server){.lost = 20, .until = 60, .reply = REPLY}));
}

/* What is said of stuck tasks where a thread of that name runs a loop of that level; "": that they
   were looked for. */
static void tells_of_tasks(const char *thread, uint32_t loop, const char *text)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct tacho_box_thread row = {
		.state = TACHO_THREAD_LIVE, .number = 1, .tid = 1001, .start_ticks = T0};
	struct trace m;
	const struct tacho__coverage *c;
	int error;

	trace_begin(&m);
	strcpy(row.name, thread);
	trace_threads(&m, &row, 1);
	trace_stream(&m, 1, 0);
	for (uint64_t i = 0; i < 100; i++) {
		PUT(&m, i * 10 * MS, PARK, loop);
		PUT(&m, i * 10 * MS + 9 * MS, UNPARK, 1);
	}
	reader = trace_reader(&m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	c = &e->coverage[TACHO__RULE_STUCK_TASK];
	assert_true(c->is_known);
	assert_int_equal(c->checked, !text[0]);
	assert_non_null(strstr(c->why, text));
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
}

static void who_runs_tokio_and_tells_no_tasks_is_told_how(void **state)
{
	(void)state;
	tells_of_tasks("tokio-rt-worker", LOOP_1, "with the crate tacho-tokio");
	tells_of_tasks("tokio-runtime-w", LOOP_1, "where they were spawned");
	tells_of_tasks("tokio-rt-worker", LOOP_3, "");
	tells_of_tasks("tokio", LOOP_1, "");
	tells_of_tasks("worker", LOOP_1, "");
}

/* ---------------------------------------------------------------- no waker */

#define SECONDS 3u

enum { LEFT_ALONE, WOKEN_SINCE, POLLED_SINCE, CANCELLED_PEER };

/* The only task of its kind, or one of two, that goes idle and leaves no waker behind. */
static void forsake(struct trace *m, int what)
{
	PUT(m, 0, LOOP, LOOP_3);
	PUT(m, 1 * MS, SPAWN, KIND_A, 0, 7, 0);
	PUT(m, 2 * MS, POLL_BEGIN, KIND_A, 7);
	PUT(m, 3 * MS, POLL_END, TACHO_PENDING);
	PUT(m, 3 * MS + 1, NO_WAKER, 0, 7);
	if (what == WOKEN_SINCE)
		PUT(m, 4 * MS, WAKE, 0, 7);
	if (what == WOKEN_SINCE || what == POLLED_SINCE) {
		PUT(m, 5 * MS, POLL_BEGIN, KIND_A, 7);
		PUT(m, 6 * MS, POLL_END, TACHO_PENDING);
	}
	if (what == CANCELLED_PEER) {
		PUT(m, 7 * MS, SPAWN, KIND_A, 0, 8, 0);
		PUT(m, 8 * MS, POLL_BEGIN, KIND_A, 8);
		PUT(m, 9 * MS, POLL_END, TACHO_PENDING);
		PUT(m, 9 * MS + 1, NO_WAKER, 0, 8);
		PUT(m, 19 * MS, TASK_END, 0, 8);
	}
	for (uint32_t i = 1; i <= SECONDS * 50; i++) {
		PUT(m, i * 20 * MS, POLL_BEGIN, KIND_B, 9);
		PUT(m, i * 20 * MS + MS, POLL_END, TACHO_PENDING);
	}
}

static int is_forsaken(int what)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct trace m;
	int error, found = 0;

	trace_begin(&m);
	trace_stream(&m, 1, 0);
	forsake(&m, what);
	reader = trace_reader(&m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].rule == TACHO__RULE_STUCK_TASK) {
			assert_non_null(strstr(e->findings[i].summary, "nobody can wake it"));
			assert_string_equal(e->findings[i].where[0].function, "kind a");
			assert_int_equal(e->findings[i].task, 7);
			found = 1;
		}
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
	return found;
}

static void whom_nobody_can_wake_needs_no_peers_to_be_stuck(void **state)
{
	(void)state;
	assert_true(is_forsaken(LEFT_ALONE));
	/* What was told before a wake or a poll does not hold after it. */
	assert_false(is_forsaken(WOKEN_SINCE));
	assert_false(is_forsaken(POLLED_SINCE));
	/* It may be meant to stay until it is cancelled. */
	assert_false(is_forsaken(CANCELLED_PEER));
}

/* Its loop does not come to it: where it waited before it was woken has nothing to do with that. */
static void of_a_woken_task_it_is_not_told_where_it_waited(void **state)
{
	struct tacho__explanation *e;
	struct tacho_reader *reader;
	struct trace m;
	int error, found = 0;

	(void)state;
	trace_begin(&m);
	define(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 1 * MS, SPAWN, KIND_A, 0, 7, 0);
	polled(&m, 2 * MS, 7, REPLY, ASKS);
	PUT(&m, 4 * MS, WAKE, 0, 7);
	for (uint32_t i = 1; i <= SECONDS * 50; i++) {
		PUT(&m, i * 20 * MS, POLL_BEGIN, KIND_B, 9);
		PUT(&m, i * 20 * MS + MS, POLL_END, TACHO_PENDING);
	}
	reader = trace_reader(&m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		if (f->rule != TACHO__RULE_STUCK_TASK)
			continue;
		found = 1;
		assert_non_null(strstr(f->summary, "kind a was woken 3.00 s ago and has not run"));
		assert_int_equal(f->task, 7);
		assert_string_equal(f->where[0].function, "kind a");
		for (uint32_t k = 0; k < f->where_count; k++)
			assert_string_not_equal(f->where[k].function, "ask_backend");
	}
	assert_true(found);
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&m.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_that_others_get_and_one_does_not_is_lost),
		cmocka_unit_test(where_it_went_idle_is_enough),
		cmocka_unit_test(a_task_may_wait_for_work_for_as_long_as_it_likes),
		cmocka_unit_test(without_others_to_compare_with_no_wake_is_lost),
		cmocka_unit_test(whom_nobody_can_wake_needs_no_peers_to_be_stuck),
		cmocka_unit_test(of_a_woken_task_it_is_not_told_where_it_waited),
		cmocka_unit_test(who_runs_tokio_and_tells_no_tasks_is_told_how),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
