/* 2,000 messages per second; once per second one of them costs 30 ms of computing. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static int pipes[2];
static unsigned count;

static __attribute__((noinline)) void rebuild_index(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) /* FAULT */
		sum = sum * 31 + i;	      /* FAULT */
	case_sink = sum;
}

static void on_message(uv_poll_t *p, int status, int events)
{
	char c[64];

	(void)status;
	(void)events;
	if (read(pipes[0], c, 8) == 8 && ++count % 2000 == 1000)
		rebuild_index(case_rounds_per_ms() * 30);
	else
		case_work(10);
	if (case_now() > end)
		uv_poll_stop(p);
}

static void *sender(void *arg)
{
	uint64_t next = case_now();

	while (write(pipes[1], "12345678", 8) == 8 && case_now() < end + 1000 * CASE_MS) {
		next += CASE_MS / 2;
		while (case_now() < next)
			usleep(200);
	}
	return arg;
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;
	uv_poll_t poll;

	case_rounds_per_ms();
	end = case_end(4);
	case_check(pipe(pipes), "pipe");
	case_check(pthread_create(&thread, NULL, sender, NULL), "pthread_create");
	uv_poll_init(loop, &poll, pipes[0]);
	uv_poll_start(&poll, UV_READABLE, on_message);
	uv_run(loop, UV_RUN_DEFAULT);
	exit(0);
}
