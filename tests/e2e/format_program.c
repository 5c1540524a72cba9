/*
 * A program for format_independent.py: records events of every type, on several
 * threads and in a signal handler, and leaves its window in every kind of file.
 *
 *	format_program ROUNDS THREADS SNAPSHOT
 *
 * writes a snapshot, prints "ready", waits for a line and aborts. THREADS more threads
 * live until then.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tacho.h"

TACHO_EVENT(everything, (u64, a), (i64, b), (f64, c), (bool, d), (string, e), (opt_u64, f),
	    (opt_i64, g), (opt_f64, h), (opt_bool, i), (opt_string, j))
TACHO_EVENT(one, (opt_string, text))

static struct tacho_name loop_a = TACHO_LOOP("a"), loop_b = TACHO_LOOP("b");
static struct tacho_name kinds[] = {TACHO_KIND("read"), TACHO_KIND("w\xc3\xb6rk"),
				    TACHO_KIND("bad \xff\" name"), TACHO_KIND_OF("of", abort)};
static struct tacho_name outer = TACHO_SPAN_NAME("outer"), inner = TACHO_SPAN_NAME("inner");
static struct tacho_name async = TACHO_SPAN_NAME("async");
static struct tacho_name total = TACHO_COUNTER("total", "requests");
static struct tacho_name load = TACHO_GAUGE("load", "%");
static struct tacho_name database = TACHO_TEXT("the database");
static struct tacho_name in_handler = TACHO_KIND("in_handler");
static int lock;

static void on_signal(int number)
{
	tacho_poll_begin(&in_handler, (uint64_t)number);
	tacho_log(1, "in a handler");
	tacho_poll_end(TACHO_DONE);
}

static void events(unsigned i)
{
	uint64_t u = ~0ull - i;
	int64_t s = -(int64_t)i;
	double f = i / 7.0;
	bool t = i % 2;
	char text[64];

	snprintf(text, sizeof(text), "/path/%u?%.*s", i, (int)(i % 11), "abcdefghijk");
	tacho_event_everything(i, s, f, t, text, i % 3 ? &u : NULL, i % 4 ? &s : NULL,
			       i % 5 ? &f : NULL, i % 6 ? &t : NULL, i % 7 ? text : NULL);
	tacho_event_one(i % 2 ? text : NULL);
	tacho_log_n(i % 5, text, i % (strlen(text) + 1));
}

static void locks(void)
{
	tacho_lock_wait(&lock, TACHO_HERE);
	tacho_lock_waited(&lock, 1);
	tacho_lock_wait(&lock, NULL);
	tacho_lock_waited(&lock, 0);
	tacho_lock_release(&lock, 3, TACHO_HERE);
}

static void spans(unsigned i)
{
	tacho_span_begin(&outer);
	tacho_span_trace_id(0, 0x0123456789abcdefull, i);
	{
		TACHO_SPAN("scoped");
		tacho_span_begin(&inner);
		tacho_counter(&total, (int64_t)i - 5);
		tacho_span_end(&inner);
	}
	tacho_gauge(&load, i * 0.25);
	tacho_span_end(&outer);
	tacho_async_begin(&async, i, i / 2);
	tacho_span_trace_id(i, i, ~0ull);
	tacho_async_end(&async, i);
}

/* Most records are of few types, as in real programs; all occur. */
static void round_of(struct tacho_name *loop, unsigned i)
{
	uint64_t task = 1000 + i % 23;

	tacho_park(loop);
	tacho_unpark(loop, i % 4);
	for (unsigned k = 0; k < 8; k++) {
		tacho_poll_begin(&kinds[(i + k) % 4], task + k);
		if (k % 3 == 0)
			tacho_wake(task + k + 1);
		if (k % 4 == 1)
			tacho_poll_switch(&kinds[k % 4], task + 100);
		tacho_poll_end(k % 3);
	}
	if (i % 16 == 0) {
		tacho_loop(loop == &loop_a ? &loop_b : &loop_a);
		tacho_loop(loop);
		tacho_queue_depth(loop, i);
		tacho_steal(loop, &loop_b, i % 5);
		tacho_task_spawn(task, &kinds[i % 4], i % 32 ? 0 : task + 1,
				 i % 48 ? NULL : TACHO_HERE);
		tacho_task_waits(task, &database, i, i == 0 ? TACHO_WITH_STACK : 0);
		tacho_task_waits(task, NULL, 0, 0);
		tacho_task_end(task);
		locks();
		spans(i);
		events(i);
	}
	if (i % 64 == 0)
		raise(SIGUSR1);
}

static unsigned rounds;

static void *worker(void *arg)
{
	struct tacho_name *loop = arg;

	pthread_setname_np(pthread_self(), "worker");
	for (unsigned i = 0; i < rounds; i++)
		round_of(loop, i);
	/* What is open when the window is taken. */
	for (unsigned i = 0; i < 4; i++)
		tacho_poll_begin(&kinds[i], i + 1);
	for (unsigned i = 0; i < 3; i++)
		tacho_span_begin(&inner);
	return NULL;
}

static void *brief(void *arg)
{
	pthread_setname_np(pthread_self(), "brief");
	tacho_poll_begin(&kinds[0], (uint64_t)(uintptr_t)arg);
	tacho_poll_end(TACHO_DONE);
	return NULL;
}

static pthread_barrier_t begun;

static void *sleeper(void *arg)
{
	brief(arg);
	tacho_park(&loop_b);
	pthread_barrier_wait(&begun);
	for (;;)
		pause();
	return NULL;
}

static void run_threads(unsigned sleepers)
{
	pthread_attr_t attr;
	pthread_t t[2];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	pthread_barrier_init(&begun, NULL, sleepers + 1);
	for (unsigned i = 0; i < sleepers; i++)
		if (pthread_create(t, &attr, sleeper, (void *)(uintptr_t)(i + 1)))
			exit(3);
	pthread_barrier_wait(&begun);
	pthread_create(&t[0], NULL, worker, &loop_a);
	pthread_create(&t[1], NULL, worker, &loop_b);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	/* One after the other, in one entry of the thread table. */
	for (unsigned i = 0; i < 30; i++) {
		pthread_create(t, NULL, brief, (void *)(uintptr_t)i);
		pthread_join(t[0], NULL);
	}
}

int main(int argc, char **argv)
{
	char line[8];
	int fd;

	if (argc != 4)
		return 2;
	rounds = (unsigned)atoi(argv[1]);
	signal(SIGUSR1, on_signal);
	if (tacho_start(NULL))
		return 3;
	run_threads((unsigned)atoi(argv[2]));
	tacho_trigger("a reason");
	tacho_pause();
	tacho_resume();
	tacho_park(&loop_a);
	tacho_trigger("another \xff reason");
	tacho_poll_begin(&kinds[1], 77);
	tacho_span_begin(&outer);
	/* Pending, where there is a threshold. */
	tacho_poll_begin(&kinds[2], 78);
	fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || tacho_snapshot(fd) || close(fd))
		return 4;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 5;
	abort();
}
