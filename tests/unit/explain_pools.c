/* Pools of threads of the program's own, at a condition: what waits for them, and what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "ledger_help.h"

#define CONDITION 0x50ull
#define OTHER 0x60ull
#define QUEUE(m, at, place, given, waiting) \
	PUT(m, at, LOCK_QUEUE, place, CONDITION, (uint64_t)(given) << 32 | (waiting))

static void waits(struct trace *m, uint64_t from, uint64_t to, uint64_t condition)
{
	PUT(m, from, LOCK_WAIT, PLACE, condition);
	PUT(m, to, LOCK_WAITED, 3, condition);
}

/* The loop of thread 1 gives a piece of work each 10 ms from 20 on; the last is the `last`. */
static void put_loop(struct trace *m, uint32_t last)
{
	trace_stream(m, 1, 0);
	PUT(m, 0, PARK, LOOP_1);
	for (uint32_t i = 1; i <= last; i++) {
		PUT(m, (10 + 10 * i) * MS, UNPARK, 1);
		QUEUE(m, (10 + 10 * i) * MS, PLACE, i, i);
		PUT(m, (10 + 10 * i) * MS, PARK, LOOP_1);
	}
	PUT(m, 690 * MS, UNPARK, 1);
}

static void work_waits_while_the_pool_is_blocked(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 2); /* at 20 and 30 */
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	put_call(&b.m, 60 * MS, SLEEP, 50 * MS);
	QUEUE(&b.m, 60 * MS, 0, 2, 1);
	put_call(&b.m, 100 * MS, SLEEP, 40 * MS);
	QUEUE(&b.m, 100 * MS, 0, 2, 0);
	waits(&b.m, 101 * MS, 600 * MS, CONDITION);
	book_make(&b);
	/* One from 20 to 60, the other from 30 to 100. */
	COST_MS(&b, 2, CALL, 40 + 70);
	ALL_MS(&b, 2, CALL, 90);
	ALL_MS(&b, 2, IDLE, 9 + 499);
	assert_int_equal(b.l->pool_count, 1);
	assert_int_equal(b.l->pools[0].threads, 1);
	assert_int_equal(b.l->pools[0].count, 2);
	assert_int_equal(b.l->pools[0].longest_ns, 70 * MS);
	/* Waiting for work is no wait for a lock, not even a short one. */
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&b.l->owned, o));)
		assert_int_not_equal(o->owns, TACHO__OWNS_LOCK);
	book_end(&b);
}

/* A thread that waits for work at another condition mostly, and once for this one; and one that comes
   when there is a queue already. */
static void threads_belong_to_the_condition_that_most_of_their_waits_are_for(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 1);
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	put_call(&b.m, 60 * MS, SLEEP, 50 * MS);
	QUEUE(&b.m, 60 * MS, 0, 1, 0);
	waits(&b.m, 61 * MS, 400 * MS, CONDITION);
	trace_stream(&b.m, 3, 0);
	waits(&b.m, 1 * MS, 2 * MS, OTHER);
	waits(&b.m, 3 * MS, 4 * MS, OTHER);
	waits(&b.m, 5 * MS, 6 * MS, CONDITION);
	put_call(&b.m, 100 * MS, SLEEP, 90 * MS);
	trace_stream(&b.m, 4, 0);
	waits(&b.m, 70 * MS, 80 * MS, CONDITION);
	put_call(&b.m, 100 * MS, SLEEP, 20 * MS);
	book_make(&b);
	COST_MS(&b, 2, CALL, 40);
	COST_MS(&b, 3, CALL, 0);
	assert_int_equal(b.l->pools[0].threads, 2);
	book_end(&b);
}

static void a_pool_with_a_thread_that_waits_for_work_is_not_full(void **state)
{
	struct booked b;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 1);
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	put_call(&b.m, 60 * MS, SLEEP, 50 * MS);
	QUEUE(&b.m, 60 * MS, 0, 1, 0);
	trace_stream(&b.m, 3, 0);
	waits(&b.m, 1 * MS, 2 * MS, CONDITION);
	waits(&b.m, 3 * MS, 200 * MS, CONDITION);
	book_make(&b);
	COST_MS(&b, 2, CALL, 0);
	book_end(&b);
}

static const struct tacho__finding *find(const struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		print_message("%s: %s\n", tacho__rules[e->findings[i].rule].id,
			      e->findings[i].summary);
		if (e->findings[i].rule == TACHO__RULE_POOL_EXHAUSTED)
			return &e->findings[i];
	}
	return NULL;
}

/* 20 pieces of work at a pool of one thread, which sleeps or computes for 30 ms for each; three samples see
   so much of that run each. */
static struct tacho__explanation *explain_full(struct booked *b, int sleeps, uint64_t sample_ns)
{
	uint32_t given = 0;
	int error;

	book_begin(b);
	put_loop(&b->m, 20);
	trace_stream(&b->m, 2, 0);
	waits(&b->m, 1 * MS, 10 * MS, CONDITION);
	for (uint64_t at = 20; at < 600; at += 30) {
		given = at < 220 ? (uint32_t)(at - 10) / 10 : 20;
		if (sleeps)
			put_call(&b->m, (at + 30) * MS, SLEEP, 30 * MS);
		for (uint64_t i = 5; sample_ns && i < 30; i += 10)
			PUT(&b->m, (at + i) * MS, SAMPLE_FRAMES, 0, 0, sample_ns,
			    SERVER_CODE + 0x10);
		QUEUE(&b->m, (at + 30) * MS, 0, given, 5);
	}
	b->reader = trace_reader(&b->m);
	b->l = NULL;
	return tacho__explain(b->reader, NULL, &error);
}

static void what_keeps_a_pool_is_named(void **state)
{
	struct booked b;
	struct tacho__explanation *e = explain_full(&b, 1, 0);
	const struct tacho__finding *f = find(e);

	(void)state;
	assert_non_null(f);
	assert_non_null(strstr(f->summary, "for a thread of a pool of 1, kept busy by nanosleep"));
	assert_int_equal(f->severity, TACHO__SEVERITY_CRITICAL);
	tacho__explanation_free(e);
	book_end(&b);
}

/* For each piece of work 6 ms of code that was not seen, 11 ms in which others have the CPU, and 13 ms of
   sleep: the first two are not one. */
static void what_keeps_a_pool_is_of_one_kind(void **state)
{
	const struct tacho__finding *f;
	struct tacho__explanation *e;
	struct booked b;
	int error;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 20);
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	for (uint64_t at = 20; at < 600; at += 30) {
		uint32_t given = at < 220 ? (uint32_t)(at - 10) / 10 : 20;

		put_call(&b.m, (at + 24) * MS, SLEEP, 24 * MS);
		PUT(&b.m, (at + 24) * MS, SCHED, 0, 11 * MS, 0);
		QUEUE(&b.m, (at + 30) * MS, 0, given, at < 590 ? 5 : 0);
	}
	waits(&b.m, 620 * MS, 680 * MS, CONDITION);
	book_make(&b);
	e = tacho__explain(b.reader, NULL, &error);
	f = find(e);
	assert_non_null(f);
	assert_non_null(strstr(f->summary, "kept busy by nanosleep"));
	tacho__explanation_free(e);
	book_end(&b);
}

/* More threads would wait for it as well. */
static void a_lock_that_a_pool_waits_for_is_the_cause(void **state)
{
	const struct tacho__finding *f = NULL;
	struct tacho__explanation *e;
	struct booked b;
	int error;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 20);
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	for (uint64_t at = 20; at < 600; at += 30) {
		uint32_t given = at < 220 ? (uint32_t)(at - 10) / 10 : 20;

		PUT(&b.m, at * MS, LOCK_WAIT, PLACE, OTHER);
		PUT(&b.m, (at + 29) * MS, LOCK_WAITED, 1, OTHER);
		QUEUE(&b.m, (at + 30) * MS, 0, given, 5);
	}
	trace_stream(&b.m, 3, 0);
	for (uint64_t at = 20; at < 600; at += 30)
		PUT(&b.m, (at + 28) * MS, LOCK_RELEASE, PLACE, OTHER, 1);
	b.reader = trace_reader(&b.m);
	b.l = NULL;
	e = tacho__explain(b.reader, NULL, &error);
	assert_null(find(e));
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].rule == TACHO__RULE_LOCK_CONTENTION)
			f = &e->findings[i];
	assert_non_null(f);
	assert_non_null(strstr(f->summary, "work of a pool waits up to 29.0 ms for a lock"));
	tacho__explanation_free(e);
	book_end(&b);
}

/*
 * A loop that gives, while the queue is full, work to a pool of one thread, which signals OTHER when it has
 * taken a piece (`room`), or when it is done with one. Each takes 30 ms.
 */
static struct tacho__explanation *explain_producer(struct booked *b, int room)
{
	int error;

	book_begin(b);
	trace_stream(&b->m, 1, 0);
	PUT(&b->m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = 20 + 30 * i;

		PUT(&b->m, at * MS, UNPARK, 2);
		PUT(&b->m, at * MS + 1000, LOCK_WAIT, PLACE, OTHER);
		PUT(&b->m, (at + 28) * MS, LOCK_WAITED, 3, OTHER);
		QUEUE(&b->m, (at + 28) * MS + 1000, PLACE, i + 5, 5);
		PUT(&b->m, (at + 29) * MS, PARK, LOOP_1);
	}
	PUT(&b->m, 690 * MS, UNPARK, 1);
	trace_stream(&b->m, 2, 0);
	waits(&b->m, 1 * MS, 10 * MS, CONDITION);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = 20 + 30 * i;

		if (i)
			put_call(&b->m, (at + 27) * MS, SLEEP, 28 * MS);
		if (room)
			QUEUE(&b->m, (at + 27) * MS + 1000, 0, i + 4, 4);
		PUT(&b->m, (at + 28) * MS - 1000, LOCK_RELEASE, PLACE, OTHER, 1);
		if (!room)
			QUEUE(&b->m, (at + 28) * MS - 500, 0, i + 4, 4);
	}
	b->reader = trace_reader(&b->m);
	b->l = NULL;
	return tacho__explain(b->reader, NULL, &error);
}

static void who_waits_for_room_in_its_queue_waits_for_the_pool(void **state)
{
	struct booked b;

	(void)state;
	for (int room = 0; room < 2; room++) {
		struct tacho__explanation *e = explain_producer(&b, room);
		uint32_t pool = e->count, call = e->count;

		for (uint32_t i = 0; i < e->count; i++) {
			const struct tacho__finding *f = &e->findings[i];

			print_message("%s: %s\n", tacho__rules[f->rule].id, f->summary);
			pool = f->rule == TACHO__RULE_POOL_EXHAUSTED ? i : pool;
			if (f->rule == TACHO__RULE_BLOCKING_CALL && strstr(f->summary, "its loop"))
				call = i;
		}
		assert_true(pool < e->count && call < e->count);
		assert_int_equal(e->findings[call].folded_into, room ? (int)pool : -1);
		if (room)
			assert_int_equal(pool, 0);
		tacho__explanation_free(e);
		book_end(&b);
	}
}

/* One of 200 waits for 40 ms. */
static void a_burst_is_no_full_pool(void **state)
{
	struct tacho__explanation *e;
	struct booked b;
	int error;

	(void)state;
	book_begin(&b);
	put_loop(&b.m, 1);
	trace_stream(&b.m, 2, 0);
	waits(&b.m, 1 * MS, 10 * MS, CONDITION);
	put_call(&b.m, 60 * MS, SLEEP, 50 * MS);
	QUEUE(&b.m, 60 * MS, 0, 1, 0);
	for (uint64_t i = 0; i < 200; i++)
		waits(&b.m, (61 + 2 * i) * MS, (62 + 2 * i) * MS, CONDITION);
	b.reader = trace_reader(&b.m);
	b.l = NULL;
	e = tacho__explain(b.reader, NULL, &error);
	assert_null(find(e));
	tacho__explanation_free(e);
	book_end(&b);
}

static void code_keeps_a_pool_if_it_runs(void **state)
{
	struct booked b;
	struct tacho__explanation *e = explain_full(&b, 0, 10 * MS);
	const struct tacho__finding *f = find(e);

	(void)state;
	assert_non_null(f);
	assert_int_equal(f->where[0].address, SERVER_CODE + 0x10);
	tacho__explanation_free(e);
	book_end(&b);
	/* What others have the CPU for is not the pool's doing. */
	e = explain_full(&b, 0, 0);
	assert_null(find(e));
	tacho__explanation_free(e);
	book_end(&b);
}

static int is_kept_by_code(uint64_t sample_ns)
{
	struct booked b;
	struct tacho__explanation *e = explain_full(&b, 0, sample_ns);
	int is = find(e) != NULL;

	tacho__explanation_free(e);
	book_end(&b);
	return is;
}

static void code_that_keeps_a_pool_runs_for_most_of_the_time(void **state)
{
	(void)state;
	/* Of 680 ms, 60 times 8.1 and 7.7 ms. */
	assert_true(is_kept_by_code(81 * MS / 10));
	assert_false(is_kept_by_code(77 * MS / 10));
}

/* Work of libuv, six pieces at once in each of ten rounds, for four threads. It takes `ns`; the last two
   pieces begin after `wait_ns`, or are done after that where begins are not seen. */
struct libuv {
	uint64_t ns, wait_ns;
	int is_seen; /* when work begins */
};

static int waits_for_libuv(const struct libuv *w)
{
	struct tacho__explanation *e;
	struct booked b;
	int error, is;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t at = (100 * i + 10) * MS;

		PUT(&b.m, at, UNPARK, 1);
		for (uint64_t k = 0; k < 6; k++)
			PUT(&b.m, at + k, WORK_SUBMIT, KIND_B, 0x100 * (i + 1) + k);
		PUT(&b.m, at + 10, PARK, LOOP_1);
		for (uint64_t k = 0; !w->is_seen && k < 6; k++) {
			uint64_t done = at + (k < 4 ? w->ns : w->wait_ns) + k * 1000;

			PUT(&b.m, done, UNPARK, 1);
			PUT(&b.m, done, POLL_BEGIN, KIND_A, 0x100 * (i + 1) + k);
			PUT(&b.m, done + 100, POLL_END, 1);
			PUT(&b.m, done + 200, PARK, LOOP_1);
		}
	}
	PUT(&b.m, 1000 * MS, UNPARK, 0);
	for (uint32_t t = 0; w->is_seen && t < 4; t++) {
		trace_stream(&b.m, 2 + t, 0);
		for (uint64_t i = 0; i < 10; i++)
			for (uint64_t k = t; k < 6; k += 4) {
				uint64_t from = (100 * i + 10) * MS + (k < 4 ? 100 : w->wait_ns);

				PUT(&b.m, from, WORK_BEGIN, KIND_B, 0x100 * (i + 1) + k);
				PUT(&b.m, from + w->ns, WORK_END, 0, 0x100 * (i + 1) + k);
			}
	}
	b.reader = trace_reader(&b.m);
	b.l = NULL;
	e = tacho__explain(b.reader, NULL, &error);
	is = find(e) != NULL;
	tacho__explanation_free(e);
	book_end(&b);
	return is;
}

static void a_pool_keeps_work_waiting_that_has_enough_to_do(void **state)
{
	(void)state;
	/* All of it together takes four threads 10 x 6 x 1 ms / 4 = 15 ms. */
	assert_true(waits_for_libuv(&(struct libuv){MS, 29 * MS, 1}));
	assert_false(waits_for_libuv(&(struct libuv){MS, 31 * MS, 1}));
}

static void where_its_begin_is_not_seen_work_waits_that_takes_far_longer(void **state)
{
	(void)state;
	assert_true(waits_for_libuv(&(struct libuv){3 * MS, 19 * MS, 0}));
	assert_false(waits_for_libuv(&(struct libuv){3 * MS, 17 * MS, 0}));
}

/*
 * A loop, or a thread that has none, hands something to a worker each 100 ms, which sleeps for 30 ms each time.
 * `shared`: the loop waits for that condition as well.
 */
struct handing {
	uint32_t times;
	int by_loop, shared;
	int answers; /* the loop waits for the worker's answer, which signals OTHER */
	int wakes;   /* a task of the loop waits for it */
	int submits; /* it is libuv's pool, of whose work no more is seen than that it was given */
};

static uint32_t blocks_worker(const struct handing *h)
{
	struct tacho__explanation *e;
	struct booked b;
	uint32_t n = 0;
	int error;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	if (h->by_loop)
		PUT(&b.m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i <= h->times; i++) {
		if (h->by_loop)
			PUT(&b.m, 100 * i * MS, UNPARK, 1);
		if (h->wakes) {
			PUT(&b.m, 100 * i * MS, POLL_BEGIN, KIND_A, 1);
			PUT(&b.m, 100 * i * MS + 1000, POLL_END, 0);
		}
		if (h->shared)
			waits(&b.m, 100 * i * MS, (100 * i + 1) * MS, CONDITION);
		if (h->submits)
			PUT(&b.m, (100 * i + 2) * MS - 1000, WORK_SUBMIT, KIND_B, 0x100 + i);
		PUT(&b.m, (100 * i + 2) * MS, LOCK_RELEASE, PLACE, CONDITION, 1);
		if (h->answers)
			waits(&b.m, (100 * i + 3) * MS, (100 * i + 35) * MS, OTHER);
		if (h->by_loop)
			PUT(&b.m, (100 * i + 36) * MS, PARK, LOOP_1);
	}
	PUT(&b.m, 990 * MS, UNPARK, 1);
	trace_stream(&b.m, 2, 0);
	for (uint64_t i = 1; i <= h->times; i++) {
		PUT(&b.m, (100 * i - 65) * MS, LOCK_WAIT, PLACE, CONDITION);
		PUT(&b.m, (100 * i + 3) * MS, LOCK_WAITED, 3, CONDITION);
		put_call(&b.m, (100 * i + 34) * MS, SLEEP, 30 * MS);
		if (h->answers)
			PUT(&b.m, (100 * i + 34) * MS + 1000, LOCK_RELEASE, PLACE, OTHER, 1);
		if (h->wakes)
			PUT(&b.m, (100 * i + 34) * MS + 1000, WAKE, 0, 1);
	}
	b.reader = trace_reader(&b.m);
	b.l = NULL;
	e = tacho__explain(b.reader, NULL, &error);
	for (uint32_t i = 0; i < e->count; i++) {
		print_message("%s: %s\n", tacho__rules[e->findings[i].rule].id,
			      e->findings[i].summary);
		n += e->findings[i].rule == TACHO__RULE_BLOCKING_CALL &&
		     strstr(e->findings[i].summary,
			    "work of a pool blocks its thread for up to 30.0 ms") &&
		     strstr(e->findings[i].advice, "pool of its own");
	}
	tacho__explanation_free(e);
	book_end(&b);
	return n;
}

static void who_is_handed_work_is_a_pool(void **state)
{
	(void)state;
	assert_int_equal(blocks_worker(&(struct handing){4, 1, 0, 0, 0, 0}), 1);
	/* How the last wait ended is known when the next begins. */
	assert_int_equal(blocks_worker(&(struct handing){3, 1, 0, 0, 0, 0}), 0);
}

static void who_is_handed_nothing_by_loops_is_none(void **state)
{
	(void)state;
	assert_int_equal(blocks_worker(&(struct handing){9, 1, 0, 0, 0, 0}), 1);
	assert_int_equal(blocks_worker(&(struct handing){9, 0, 0, 0, 0, 0}), 0);
}

static void a_condition_that_loops_wait_for_is_no_place_of_work(void **state)
{
	(void)state;
	assert_int_equal(blocks_worker(&(struct handing){9, 1, 1, 0, 0, 0}), 0);
}

static void who_is_waited_for_is_a_part_of_that_wait(void **state)
{
	(void)state;
	assert_int_equal(blocks_worker(&(struct handing){9, 1, 0, 1, 0, 0}), 0);
	assert_int_equal(blocks_worker(&(struct handing){9, 1, 0, 0, 1, 0}), 0);
}

static void threads_of_libuv_are_no_pool_of_the_program(void **state)
{
	(void)state;
	assert_int_equal(blocks_worker(&(struct handing){9, 1, 0, 0, 0, 1}), 0);
}

/* The longest wait for work is under way when it becomes known for what it is; another condition in the middle
   of work is none. */
static void where_a_worker_waits_for_work_it_is_idle(void **state)
{
	const struct tacho__ledger_line *line;
	uint64_t idle = 0, blocked = 0;
	struct booked b;

	(void)state;
	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i <= 6; i++) {
		PUT(&b.m, 100 * i * MS, UNPARK, 1);
		PUT(&b.m, 100 * i * MS, LOCK_RELEASE, PLACE, CONDITION, 1);
		PUT(&b.m, 100 * i * MS, PARK, LOOP_1);
	}
	trace_stream(&b.m, 2, 0);
	for (uint64_t i = 1; i <= 6; i++) {
		waits(&b.m, (100 * i - 50) * MS, 100 * i * MS, CONDITION);
		if (i == 5)
			waits(&b.m, (100 * i + 5) * MS, (100 * i + 25) * MS, OTHER);
	}
	trace_stream(&b.m, 3, 0);
	waits(&b.m, 10 * MS, 100 * MS, CONDITION);
	waits(&b.m, 101 * MS, 650 * MS, CONDITION);
	book_make(&b);
	for (uint32_t i = 0; i < b.l->line_count; i++) {
		line = &b.l->lines[i];
		idle += line->owns == TACHO__OWNS_IDLE && b.l->threads[line->thread].thread == 3
				? line->ns
				: 0;
		blocked += line->owns == TACHO__OWNS_LOCK ? line->ns : 0;
	}
	assert_int_equal(blocked, 20 * MS);
	assert_int_equal(idle, 90 * MS + 549 * MS);
	book_end(&b);
}

/*
 * A loop hands a piece of work to each of two workers each 100 ms, which compute for `ns`, or sleep for that in one of ten
 * cases. `queued`: one more waits meanwhile.
 */
static enum tacho__severity severity_of_worker(enum tacho__rule_id rule, uint64_t ns, int queued)
{
	enum tacho__severity severity = (enum tacho__severity)0;
	struct tacho__explanation *e;
	struct booked b;
	int error;

	book_begin(&b);
	trace_stream(&b.m, 1, 0);
	PUT(&b.m, 0, PARK, LOOP_1);
	for (uint64_t i = 1; i <= 40; i++) {
		PUT(&b.m, 100 * i * MS, UNPARK, 1);
		PUT(&b.m, 100 * i * MS + 1000, LOCK_RELEASE, PLACE, CONDITION, 2);
		if (queued)
			QUEUE(&b.m, (100 * i + 1) * MS, PLACE, i, 1);
		PUT(&b.m, (100 * i + 2) * MS, PARK, LOOP_1);
	}
	for (uint32_t thread = 2; thread <= 3; thread++) {
		trace_stream(&b.m, thread, 0);
		for (uint64_t i = 1; i <= 40; i++) {
			uint64_t at = 100 * i * MS + 2000;

			waits(&b.m, 100 * i * MS - 10 * MS, at, CONDITION);
			for (uint64_t k = 5 * MS; rule == TACHO__RULE_LONG_CALLBACK && k < ns;
			     k += 5 * MS)
				PUT(&b.m, at + k, SAMPLE_FRAMES, 0, 0, 5 * MS, SERVER_CODE + 0x10);
			if (rule == TACHO__RULE_BLOCKING_CALL && i % 10 == 0)
				put_call(&b.m, at + ns, SLEEP, ns);
			if (queued && thread == 2)
				QUEUE(&b.m, at + ns + 500, 0, i, 0);
			waits(&b.m, at + ns + 1000, at + ns + 2000, CONDITION);
		}
	}
	b.reader = trace_reader(&b.m);
	b.l = NULL;
	e = tacho__explain(b.reader, NULL, &error);
	for (uint32_t i = 0; i < e->count; i++) {
		print_message("%s: %s\n", tacho__rules[e->findings[i].rule].id,
			      e->findings[i].summary);
		if (e->findings[i].rule == rule)
			severity = e->findings[i].severity;
	}
	tacho__explanation_free(e);
	book_end(&b);
	return severity;
}

static void what_workers_compute_matters_if_others_wait_for_it(void **state)
{
	(void)state;
	assert_int_equal(severity_of_worker(TACHO__RULE_LONG_CALLBACK, 70 * MS, 0), 0);
	assert_true(severity_of_worker(TACHO__RULE_LONG_CALLBACK, 70 * MS, 1) >=
		    TACHO__SEVERITY_WARNING);
}

/* Eight times, on two threads in 4 s: 2 % of their time are 160 ms. */
static void what_blocks_workers_matters_by_their_capacity(void **state)
{
	(void)state;
	assert_int_equal(severity_of_worker(TACHO__RULE_BLOCKING_CALL, 60 * MS, 0),
			 TACHO__SEVERITY_CRITICAL);
	assert_int_equal(severity_of_worker(TACHO__RULE_BLOCKING_CALL, 25 * MS, 0),
			 TACHO__SEVERITY_WARNING);
	assert_int_equal(severity_of_worker(TACHO__RULE_BLOCKING_CALL, 15 * MS, 0),
			 TACHO__SEVERITY_INFO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_waits_while_the_pool_is_blocked),
		cmocka_unit_test(threads_belong_to_the_condition_that_most_of_their_waits_are_for),
		cmocka_unit_test(a_pool_with_a_thread_that_waits_for_work_is_not_full),
		cmocka_unit_test(what_keeps_a_pool_is_named),
		cmocka_unit_test(what_keeps_a_pool_is_of_one_kind),
		cmocka_unit_test(a_lock_that_a_pool_waits_for_is_the_cause),
		cmocka_unit_test(who_waits_for_room_in_its_queue_waits_for_the_pool),
		cmocka_unit_test(a_burst_is_no_full_pool),
		cmocka_unit_test(who_is_handed_work_is_a_pool),
		cmocka_unit_test(who_is_handed_nothing_by_loops_is_none),
		cmocka_unit_test(a_condition_that_loops_wait_for_is_no_place_of_work),
		cmocka_unit_test(who_is_waited_for_is_a_part_of_that_wait),
		cmocka_unit_test(threads_of_libuv_are_no_pool_of_the_program),
		cmocka_unit_test(where_a_worker_waits_for_work_it_is_idle),
		cmocka_unit_test(what_workers_compute_matters_if_others_wait_for_it),
		cmocka_unit_test(what_blocks_workers_matters_by_their_capacity),
		cmocka_unit_test(code_keeps_a_pool_if_it_runs),
		cmocka_unit_test(code_that_keeps_a_pool_runs_for_most_of_the_time),
		cmocka_unit_test(a_pool_keeps_work_waiting_that_has_enough_to_do),
		cmocka_unit_test(where_its_begin_is_not_seen_work_waits_that_takes_far_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
