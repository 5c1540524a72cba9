/*
 * The recorder as many threads use it at once: all calls, names that are defined at the
 * same moment, threads that come and go, pauses, snapshots and status beside them. What
 * ThreadSanitizer finds in it is the point; that nothing is lost is checked as well.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tacho.h"
#include "tacho_read.h"

#define THREADS 6u
#define ROUNDS 300u
#define GENERATIONS 4u

TACHO_EVENT(of_thread, (u64, writer), (string, text), (opt_i64, maybe))

static pthread_barrier_t together;
static int stop;

static void round_of_calls(uint64_t writer, uint64_t n)
{
	static struct tacho_name loop = TACHO_LOOP("loop"), kind = TACHO_KIND("kind");
	static struct tacho_name place = TACHO_PLACE("place"), what = TACHO_TEXT("what");
	static struct tacho_name counter = TACHO_COUNTER("counter", ""),
				 gauge = TACHO_GAUGE("gauge", "");
	static struct tacho_name async = TACHO_SPAN_NAME("async");
	TACHO_SPAN("round");

	tacho_park(&loop);
	tacho_unpark(&loop, 1);
	tacho_queue_depth(&loop, n);
	tacho_steal(&loop, &loop, 1);
	tacho_task_spawn(n, &kind, tacho_task_new(), &place);
	tacho_poll_begin(&kind, n);
	tacho_poll_switch(&kind, n);
	tacho_task_waits(n, &what, 1, 0);
	tacho_lock_wait(&loop, &place);
	tacho_lock_waited(&loop, 1);
	tacho_lock_release(&loop, 1, TACHO_HERE);
	tacho_async_begin(&async, n, 0);
	tacho_span_trace_id(n, 1, 2);
	tacho_async_end(&async, n);
	tacho_log(1, "text");
	tacho_counter(&counter, (int64_t)n);
	tacho_gauge(&gauge, 1.5);
	tacho_event_of_thread(writer, "text", NULL);
	tacho_wake(writer << 32 | n);
	tacho_poll_end(TACHO_DONE);
	tacho_task_end(n);
}

static void *records(void *arg)
{
	uint64_t writer = (uint64_t)(uintptr_t)arg;

	pthread_barrier_wait(&together);
	for (uint64_t n = 0; n < ROUNDS; n++)
		round_of_calls(writer, n);
	return NULL;
}

/* What another part of the program may do meanwhile. */
static void *looks_on(void *arg)
{
	int fd = open("/dev/null", O_WRONLY);

	(void)arg;
	pthread_barrier_wait(&together);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct tacho_status_info st = {.size = sizeof(st)};

		tacho_status(&st);
		tacho_snapshot(fd);
		tacho_trigger("looked on");
		tacho_modules_changed();
	}
	close(fd);
	return NULL;
}

static void run_threads(int with_onlooker)
{
	pthread_t t[THREADS], onlooker;

	for (uint64_t g = 0; g < GENERATIONS; g++) {
		stop = 0;
		pthread_barrier_init(&together, NULL, THREADS + (unsigned)with_onlooker);
		if (with_onlooker)
			pthread_create(&onlooker, NULL, looks_on, NULL);
		for (uint64_t i = 0; i < THREADS; i++)
			pthread_create(&t[i], NULL, records, (void *)(uintptr_t)(g * THREADS + i));
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
		if (with_onlooker)
			pthread_join(onlooker, NULL);
		pthread_barrier_destroy(&together);
	}
}

/* All marks of all threads, each thread's in order. */
static void check_box(const char *path)
{
	uint64_t next[THREADS * GENERATIONS] = {0}, events = 0;
	struct tacho_reader *reader;
	const struct tacho_event *e;
	char message[256] = "";
	int more;

	if (tacho_read_open(&reader, path, NULL, message, sizeof(message)) < 0)
		fail_msg("%s", message);
	while ((more = tacho_read_next(reader, &e)) > 0) {
		events += e->type == TACHO_EV_EVENT;
		if (e->type != TACHO_EV_WAKE)
			continue;
		assert_in_range(e->word[0] >> 32, 0, THREADS * GENERATIONS - 1);
		assert_int_equal((uint32_t)e->word[0], next[e->word[0] >> 32]++);
	}
	assert_int_equal(more, 0);
	for (unsigned i = 0; i < THREADS * GENERATIONS; i++)
		assert_int_equal(next[i], ROUNDS);
	assert_int_equal(events, THREADS * GENERATIONS * ROUNDS);
	tacho_read_close(reader);
}

static void test_at_once(void **state)
{
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)state;
	assert_int_equal(tacho_start(NULL), 0);
	run_threads(1);
	tacho_status(&st);
	assert_int_equal(st.dropped_records, 0);
	assert_int_equal(st.overwritten_records, 0);
	check_box(st.box);
	tacho_stop();
}

static void test_with_threshold(void **state)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)state;
	o.poll_threshold_ns = 1000000;
	assert_int_equal(tacho_start(&o), 0);
	run_threads(1);
	tacho_status(&st);
	assert_int_equal(st.dropped_records, 0);
	check_box(st.box);
	tacho_stop();
}

/* In a box that is too small, chunks change hands all the time. */
static void test_small_box(void **state)
{
	struct tacho_options o = TACHO_OPTIONS_INIT;
	struct tacho_status_info st = {.size = sizeof(st)};

	(void)state;
	o.max_bytes = 1 << 20;
	assert_int_equal(tacho_start(&o), 0);
	run_threads(0);
	tacho_status(&st);
	assert_int_equal(st.dropped_records, 0);
	assert_true(st.overwritten_records > 0);
	assert_int_equal(st.threads, THREADS * GENERATIONS);
	tacho_stop();
}

static void *pauses(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&together);
	for (int i = 0; i < 200; i++) {
		tacho_pause();
		tacho_resume();
	}
	return NULL;
}

static void test_pause_beside(void **state)
{
	pthread_t t[3];

	(void)state;
	assert_int_equal(tacho_start(NULL), 0);
	pthread_barrier_init(&together, NULL, 3);
	pthread_create(&t[0], NULL, pauses, NULL);
	pthread_create(&t[1], NULL, records, (void *)0);
	pthread_create(&t[2], NULL, records, (void *)1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&together);
	tacho_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_with_threshold),
		cmocka_unit_test(test_small_box),
		cmocka_unit_test(test_pause_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
