/* What is said of threads that serve one client each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "explain/explain.h"
#include "model_help.h"

enum { CLIENTS = 50, SLEEP };

#define THREADS 4u
#define ROUNDS 20u
#define ROUND (100 * MS)
#define LOCK 0x1000u

struct judged {
	struct trace m;
	struct tacho_reader *reader;
	struct tacho__explanation *e;
};

static void begin(struct judged *j)
{
	uint8_t payload[256];
	struct tb p = {0};

	trace_begin(&j->m);
	tb_definition(&p, CLIENTS, TACHO_DEF_LOOP, payload,
		      bb_name(payload, "connections", "", 0, 0, TACHO_LEVEL_WAITS, ""));
	tb_definition(&p, SLEEP, TACHO_DEF_TEXT, payload,
		      bb_name(payload, "nanosleep", "", 0, 0, 0, ""));
	tb_plain(&j->m.t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

static void judge(struct judged *j)
{
	int error;

	j->reader = trace_reader(&j->m);
	j->e = tacho__explain(j->reader, NULL, &error);
	assert_non_null(j->e);
	for (uint32_t i = 0; i < j->e->count; i++)
		print_message("%s: %s\n", tacho__severity_name(j->e->findings[i].severity),
			      j->e->findings[i].summary);
}

static const struct tacho__finding *found(const struct judged *j, const char *rule)
{
	for (uint32_t i = 0; i < j->e->count; i++)
		if (strcmp(tacho__rules[j->e->findings[i].rule].id, rule) == 0)
			return &j->e->findings[i];
	return NULL;
}

static void end(struct judged *j)
{
	tacho__explanation_free(j->e);
	tacho_read_close(j->reader);
	tb_free(&j->m.t);
}

/* Each has a request of 40 ms in each round, and is kept by a lock or in a call for 30 of these. */
static void serve(struct trace *m, uint32_t thread, int locks)
{
	trace_stream(m, thread, 0);
	PUT(m, 0, PARK, CLIENTS);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = i * ROUND + 5 * MS;

		PUT(m, at, UNPARK, 1);
		if (locks) {
			PUT(m, at + MS, LOCK_WAIT, 0, LOCK);
			PUT(m, at + 31 * MS, LOCK_WAITED, 1, LOCK);
		} else {
			PUT(m, at + 31 * MS, CALL, SLEEP, 0, 30 * MS, UINT64_MAX, 0);
		}
		PUT(m, at + 40 * MS, PARK, CLIENTS);
	}
}

/* And nobody else: requests of another thread are another client's. */
static void what_a_client_waits_for_by_itself_is_no_alarm(void **state)
{
	struct judged j;

	(void)state;
	begin(&j);
	for (uint32_t i = 1; i <= THREADS; i++)
		serve(&j.m, i, 0);
	judge(&j);
	assert_string_equal(j.e->verdict.category, "none");
	assert_int_equal(found(&j, "blocking-call")->severity, TACHO__SEVERITY_INFO);
	end(&j);
}

static void clients_that_wait_for_each_other_are_one(void **state)
{
	struct judged j;

	(void)state;
	begin(&j);
	for (uint32_t i = 1; i <= THREADS; i++)
		serve(&j.m, i, 1);
	trace_stream(&j.m, 9, 0);
	for (uint64_t i = 0; i < ROUNDS; i++)
		PUT(&j.m, i * ROUND + 36 * MS - 1000, LOCK_RELEASE, PLACE, LOCK, THREADS);
	judge(&j);
	assert_string_equal(j.e->verdict.category, "lock");
	assert_int_equal((uint64_t)found(&j, "lock-contention")->cost_ns,
			 THREADS * ROUNDS * 30 * MS);
	assert_string_equal(found(&j, "lock-contention")->where[0].function, "here");
	assert_non_null(strstr(found(&j, "lock-contention")->summary,
			       "4 of 4 workers wait up to 30.0 ms for a lock held in here"));
	end(&j);
}

/* Of 400 requests, in each of which is a call of 3 ms, so many are of a second client. */
static uint32_t severity_with(uint64_t others)
{
	struct judged j;
	uint32_t severity;

	begin(&j);
	trace_stream(&j.m, 1, 0);
	PUT(&j.m, 0, PARK, CLIENTS);
	for (uint64_t i = 0; i < 400; i++) {
		PUT(&j.m, (5 * i + 1) * MS, UNPARK, 1);
		PUT(&j.m, (5 * i + 1) * MS, READY, 1, i < others ? 6 : 5);
		PUT(&j.m, (5 * i + 4) * MS, CALL, SLEEP, 0, 3 * MS, UINT64_MAX, 0);
		PUT(&j.m, (5 * i + 5) * MS, PARK, CLIENTS);
	}
	judge(&j);
	assert_non_null(found(&j, "blocking-call"));
	severity = found(&j, "blocking-call")->severity;
	end(&j);
	return severity;
}

static void what_is_ready_once_in_hundred_times_is_a_client(void **state)
{
	(void)state;
	assert_int_equal(severity_with(0), TACHO__SEVERITY_INFO);
	assert_int_equal(severity_with(3), TACHO__SEVERITY_INFO);
	assert_true(severity_with(4) >= TACHO__SEVERITY_WARNING);
}

/* Requests come one after the other, and the last one takes long. */
static void keep_busy(struct judged *j, uint32_t loop)
{
	begin(j);
	trace_stream(&j->m, 1, 0);
	PUT(&j->m, 0, PARK, loop);
	for (uint64_t i = 0; i < 400; i++) {
		PUT(&j->m, (5 * i + 1) * MS, UNPARK, 1);
		PUT(&j->m, (5 * i + 6) * MS - 1000, PARK, loop);
	}
	PUT(&j->m, 2002 * MS, UNPARK, 1);
	/* So long that a loop would hang. */
	trace_stream(&j->m, 2, 0);
	PUT(&j->m, 9000 * MS, WAKE, 0, 7);
	judge(j);
}

static void a_client_may_keep_its_thread_busy(void **state)
{
	struct judged j;

	(void)state;
	keep_busy(&j, LOOP_1);
	assert_non_null(found(&j, "hang"));
	assert_non_null(found(&j, "loop-saturated"));
	end(&j);
	keep_busy(&j, CLIENTS);
	assert_null(found(&j, "hang"));
	assert_null(found(&j, "loop-saturated"));
	assert_string_equal(j.e->verdict.category, "none");
	end(&j);
}

/* Threads share a loop, and have 20 turns each before one of them does not come back. */
static void one_of_many_threads_hangs_though_it_has_few_turns(void **state)
{
	struct judged j;

	(void)state;
	begin(&j);
	for (uint32_t t = 1; t <= THREADS; t++) {
		trace_stream(&j.m, t, 0);
		PUT(&j.m, 0, PARK, LOOP_1);
		for (uint64_t i = 0; i < 20; i++) {
			PUT(&j.m, (50 * i + 10 * t) * MS, UNPARK, 1);
			PUT(&j.m, (50 * i + 10 * t + 1) * MS, PARK, LOOP_1);
		}
		PUT(&j.m, (2000 + t) * MS, UNPARK, 1);
		if (t > 1)
			PUT(&j.m, (2001 + t) * MS, PARK, LOOP_1);
	}
	trace_stream(&j.m, 9, 0);
	PUT(&j.m, 9000 * MS, WAKE, 0, 7);
	judge(&j);
	assert_non_null(found(&j, "hang"));
	end(&j);
}

/*
 * One that accepts 100 times a second and waits for its clients for most of that; `more`: how many others
 * wait to be accepted meanwhile, and in every `empty`th round nobody. From `from` on.
 */
static void accept_all(struct judged *j, uint64_t more, uint64_t empty, uint64_t from)
{
	begin(j);
	trace_stream(&j->m, 1, 0);
	PUT(&j->m, 0, PARK, CLIENTS);
	for (uint64_t i = 0; i < 200; i++) {
		uint64_t at = (10 * i + 1) * MS;

		PUT(&j->m, at, UNPARK, 1);
		if (i >= from)
			PUT(&j->m, at, QUEUE_DEPTH, CLIENTS, (i + 1) % empty ? more : 0);
		PUT(&j->m, at + MS, PARK, CLIENTS);
		PUT(&j->m, at + 6 * MS, UNPARK, 1);
		PUT(&j->m, at + 7 * MS, PARK, CLIENTS);
	}
	judge(j);
}

static void who_accepts_is_full_while_others_wait_for_that(void **state)
{
	struct judged j;

	(void)state;
	accept_all(&j, 3, 1000, 0);
	assert_string_equal(j.e->verdict.category, "overload");
	assert_non_null(strstr(found(&j, "loop-saturated")->summary,
			       "s without a pause and up to 3 at once"));
	/* Three times what is between the first look and the last. */
	assert_int_equal((uint64_t)found(&j, "loop-saturated")->waiting_ns, 3 * 1990 * MS);
	end(&j);
	accept_all(&j, 0, 1000, 0);
	assert_string_equal(j.e->verdict.category, "none");
	end(&j);
}

static void connections_that_wait_now_and_then_are_load(void **state)
{
	struct judged j;

	(void)state;
	/* All are accepted once in 1.05 s, and in 0.97 s. */
	accept_all(&j, 3, 105, 0);
	assert_non_null(found(&j, "loop-saturated"));
	end(&j);
	accept_all(&j, 3, 97, 0);
	assert_null(found(&j, "loop-saturated"));
	end(&j);
	/* They come for the last 1.2 s of two, and for the last 0.8 s. */
	accept_all(&j, 3, 1000, 80);
	assert_non_null(found(&j, "loop-saturated"));
	end(&j);
	accept_all(&j, 3, 1000, 120);
	assert_null(found(&j, "loop-saturated"));
	end(&j);
}

/* Each of 4 ms, without going back to the wait; told of, or as one that nobody knows anything of. */
static void serve_in_one_turn(struct judged *j, int told)
{
	begin(j);
	trace_stream(&j->m, 1, 0);
	for (uint64_t i = 0; i < 4; i++) {
		PUT(&j->m, i * 500 * MS, PARK, LOOP_1);
		PUT(&j->m, (i * 500 + 100) * MS, UNPARK, 1);
		for (uint64_t k = 0; k < 99 && told; k++)
			PUT(&j->m, (i * 500 + 100 + 4 * k) * MS + 1000, QUEUE_DEPTH, LOOP_1, 0);
	}
	PUT(&j->m, 2000 * MS, PARK, LOOP_1);
	judge(j);
}

static void a_turn_with_many_connections_is_no_long_callback(void **state)
{
	struct judged j;

	(void)state;
	serve_in_one_turn(&j, 0);
	assert_non_null(found(&j, "long-callback"));
	end(&j);
	serve_in_one_turn(&j, 1);
	assert_null(found(&j, "long-callback"));
	end(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_client_waits_for_by_itself_is_no_alarm),
		cmocka_unit_test(clients_that_wait_for_each_other_are_one),
		cmocka_unit_test(what_is_ready_once_in_hundred_times_is_a_client),
		cmocka_unit_test(a_client_may_keep_its_thread_busy),
		cmocka_unit_test(who_accepts_is_full_while_others_wait_for_that),
		cmocka_unit_test(connections_that_wait_now_and_then_are_load),
		cmocka_unit_test(a_turn_with_many_connections_is_no_long_callback),
		cmocka_unit_test(one_of_many_threads_hangs_though_it_has_few_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
