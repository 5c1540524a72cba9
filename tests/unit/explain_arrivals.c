/* Whether what a thread serves waits for its answers, or comes by itself: one descriptor is ready either way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

#define US 1000ull
#define CLIENTS 50u
#define KEPT (30 * MS)	     /* a turn that is blocked */
#define BRIEF (100 * US)     /* one that is not */
#define THERE 1000u	     /* a wait that finds something */
#define AFTER_KEPT (30 * US) /* the same, after the recorder has asked the kernel */
#define THINKS (5 * MS)

struct drawn {
	struct trace m;
	uint64_t at;
	uint32_t loop;
};

static struct drawn begin(uint32_t loop)
{
	struct drawn d = {.at = MS, .loop = loop};
	uint8_t payload[256];
	struct tb p = {0};

	trace_begin(&d.m);
	tb_definition(&p, CLIENTS, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "connections", "", 0, 0, TACHO_LEVEL_WAITS, ""));
	tb_plain(&d.m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
	trace_stream(&d.m, 1, 0);
	PUT(&d.m, 0, PARK, loop);
	return d;
}

/* So many callbacks in a turn of that length, the first of which is blocked if the turn takes long; then a
   wait. */
static void turn_of(struct drawn *d, uint32_t callbacks, uint64_t ns, uint64_t wait_ns)
{
	uint64_t short_ns = callbacks ? BRIEF / callbacks : 0, at = d->at;

	PUT(&d->m, at, UNPARK, 1);
	PUT(&d->m, at, READY, 1, 5);
	for (uint32_t i = 0; i < callbacks; i++) {
		PUT(&d->m, at, POLL_BEGIN, KIND_A, 1);
		at += i || ns < MS ? short_ns : ns;
		if (!i && ns >= MS)
			PUT(&d->m, at, CALL, NAME, 0, ns - US, UINT64_MAX, 0);
		PUT(&d->m, at, POLL_END, 0);
	}
	if (!callbacks) {
		at += ns;
		if (ns >= MS)
			PUT(&d->m, at, CALL, NAME, 0, ns - US, UINT64_MAX, 0);
	}
	PUT(&d->m, at, PARK, d->loop);
	d->at = at + wait_ns;
}

static void turn(struct drawn *d, uint64_t ns, uint64_t wait_ns)
{
	turn_of(d, d->loop == LOOP_2, ns, wait_ns);
}

static void turns(struct drawn *d, uint32_t count, uint64_t ns, uint64_t wait_ns)
{
	for (uint32_t i = 0; i < count; i++)
		turn(d, ns, wait_ns);
}

struct said {
	uint32_t severity;
	double cost_ns, waiting_ns;
};

/* What is said of the blocked turns. */
static struct said explain(struct drawn *d)
{
	struct tacho_reader *reader;
	struct tacho__explanation *e;
	struct said said = {0};
	int error;

	PUT(&d->m, d->at, UNPARK, 1);
	PUT(&d->m, d->at + BRIEF, PARK, d->loop);
	reader = trace_reader(&d->m);
	e = tacho__explain(reader, NULL, &error);
	assert_non_null(e);
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		if (strcmp(tacho__rules[f->rule].id, "blocking-call") == 0)
			said = (struct said){f->severity, f->cost_ns, f->waiting_ns};
	}
	assert_int_not_equal(said.severity, 0);
	tacho__explanation_free(e);
	tacho_read_close(reader);
	tb_free(&d->m.t);
	return said;
}

/* Somebody else than an only client waits. */
static int is_alarm(struct drawn *d)
{
	return explain(d).severity > TACHO__SEVERITY_INFO;
}

/* After each of 6 turns that are blocked, so many are there; others come as long after each other. */
static struct drawn consumer(uint32_t loop, uint32_t there, uint64_t thinks)
{
	struct drawn d = begin(loop);

	for (uint32_t i = 0; i < 6; i++) {
		turns(&d, 8, BRIEF, thinks);
		turn(&d, KEPT, there ? AFTER_KEPT : thinks);
		for (uint32_t k = 1; k <= there; k++)
			turn(&d, BRIEF, k < there ? THERE : thinks);
	}
	return d;
}

static int consumer_is_alarm(uint32_t loop, uint32_t there, uint64_t thinks)
{
	struct drawn d = consumer(loop, there, thinks);

	return is_alarm(&d);
}

static void what_comes_by_itself_waits_for_a_consumer(void **state)
{
	static const uint32_t loops[] = {LOOP_1, LOOP_2, CLIENTS};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(consumer_is_alarm(loops[i], 1, THINKS));
		assert_true(consumer_is_alarm(loops[i], 4, THINKS));
		/* It had nothing to ask before it had its answer. */
		assert_false(consumer_is_alarm(loops[i], 0, THINKS));
	}
}

/* A thread that receives from one connection: half of each turn after the first, by which it is known. */
static void what_waits_for_a_thread_without_a_loop_is_counted(void **state)
{
	struct drawn d = consumer(CLIENTS, 4, THINKS);
	struct said said = explain(&d);

	(void)state;
	assert_true(said.waiting_ns >= said.cost_ns + 5 * KEPT / 2 - MS);
	assert_true(said.waiting_ns <= said.cost_ns + 6 * KEPT / 2 + MS);
}

static void who_asks_again_soon_waits_for_answers(void **state)
{
	(void)state;
	assert_true(consumer_is_alarm(LOOP_1, 1, 260 * US));
	assert_false(consumer_is_alarm(LOOP_1, 1, 240 * US));
	/* But not for several answers. */
	assert_false(consumer_is_alarm(LOOP_1, 2, 240 * US));
}

/* A client that asks a few things one after the other, waiting for each answer, and thinks then. */
static void questions_that_follow_each_other_are_of_one_client(void **state)
{
	struct drawn d = begin(LOOP_1);

	(void)state;
	for (uint32_t i = 0; i < 10; i++) {
		turn(&d, KEPT, AFTER_KEPT);
		turns(&d, 3, BRIEF, 20 * US);
		turn(&d, BRIEF, THINKS);
	}
	assert_false(is_alarm(&d));
}

/* So many turns are blocked, and after so many of them one is there. */
static int some_are_alarm(uint32_t kept, uint32_t found)
{
	struct drawn d = begin(LOOP_1);

	for (uint32_t i = 0; i < kept; i++) {
		turns(&d, 8, BRIEF, THINKS);
		turn(&d, KEPT, i < found ? AFTER_KEPT : THINKS);
		turn(&d, BRIEF, THINKS);
	}
	return is_alarm(&d);
}

static void a_few_that_are_there_at_once_may_be_chance(void **state)
{
	(void)state;
	assert_true(some_are_alarm(4, 3));
	assert_false(some_are_alarm(4, 2));
}

static void some_that_are_there_at_once_may_be_chance(void **state)
{
	(void)state;
	assert_true(some_are_alarm(40, 10));
	assert_false(some_are_alarm(40, 9));
}

/* Of the turns that are not blocked, so many of 32 are followed soon. */
static int follows_is_alarm(uint32_t soon)
{
	struct drawn d = begin(LOOP_1);

	for (uint32_t i = 0; i < 8; i++)
		turn(&d, KEPT, AFTER_KEPT);
	turns(&d, 32 - soon, BRIEF, THINKS);
	turns(&d, soon, BRIEF, 40 * US);
	return is_alarm(&d);
}

static void what_follows_any_turn_says_nothing(void **state)
{
	(void)state;
	assert_true(follows_is_alarm(10));
	assert_false(follows_is_alarm(11));
}

/* Where nothing but long turns was seen, one that is there says nothing. */
static void one_is_there_after_each_turn_of_a_busy_client(void **state)
{
	struct drawn d = begin(LOOP_1);

	(void)state;
	turns(&d, 20, KEPT, AFTER_KEPT);
	assert_false(is_alarm(&d));
}

/* libuv reads until there is nothing more: what came meanwhile is served in the same turn. */
static int drains_is_alarm(uint32_t callbacks)
{
	struct drawn d = begin(LOOP_2);

	for (uint32_t i = 0; i < 6; i++) {
		for (uint32_t k = 0; k < 8; k++)
			turn_of(&d, 4, BRIEF, THINKS);
		turn_of(&d, callbacks, KEPT, THINKS);
	}
	return is_alarm(&d);
}

static void what_is_served_in_the_same_turn_has_waited(void **state)
{
	(void)state;
	assert_true(drains_is_alarm(12));
	assert_false(drains_is_alarm(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_by_itself_waits_for_a_consumer),
		cmocka_unit_test(what_waits_for_a_thread_without_a_loop_is_counted),
		cmocka_unit_test(who_asks_again_soon_waits_for_answers),
		cmocka_unit_test(questions_that_follow_each_other_are_of_one_client),
		cmocka_unit_test(a_few_that_are_there_at_once_may_be_chance),
		cmocka_unit_test(some_that_are_there_at_once_may_be_chance),
		cmocka_unit_test(what_follows_any_turn_says_nothing),
		cmocka_unit_test(one_is_there_after_each_turn_of_a_busy_client),
		cmocka_unit_test(what_is_served_in_the_same_turn_has_waited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
