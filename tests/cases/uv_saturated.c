/* A libuv loop that is full with callbacks of 30 us, most of them of one kind. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define CLIENTS 5

static uint64_t end;
static int pipes[CLIENTS][2];
static uv_poll_t polls[CLIENTS];

static void score_quote(uv_poll_t *p, int status, int events) /* FAULT */
{							      /* FAULT */
	char c[4];

	(void)status;
	(void)events;
	if (read(pipes[p - polls][0], c, 4) > 0)
		case_work(30); /* FAULT */
	if (case_now() > end)
		uv_stop(p->loop);
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	case_work(100);
}

static void *sender(void *arg)
{
	static const char block[1024];

	for (unsigned i = 0;; i++)
		if (write(pipes[i % CLIENTS][1], block, sizeof(block)) < 0)
			return arg;
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(2.5);
	for (int i = 0; i < CLIENTS; i++) {
		case_check(pipe(pipes[i]), "pipe");
		uv_poll_init(loop, &polls[i], pipes[i][0]);
		uv_poll_start(&polls[i], UV_READABLE, score_quote);
	}
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 10, 10);
	case_check(pthread_create(&thread, NULL, sender, NULL), "pthread_create");
	uv_run(loop, UV_RUN_DEFAULT);
	exit(0);
}
