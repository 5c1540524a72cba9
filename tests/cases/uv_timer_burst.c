/* 60 connections become ready at once, each costs 1 ms: a timer of 10 ms is 60 ms late. */
#include <pthread.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

#define CLIENTS 60

static uint64_t end;
static int pipes[CLIENTS][2];
static uv_poll_t polls[CLIENTS];

static void on_report(uv_poll_t *p, int status, int events)
{
	char c;

	(void)status;
	(void)events;
	if (read(pipes[p - polls][0], &c, 1) == 1)
		case_work(1000);
}

static void refresh_lease(uv_timer_t *t) /* FAULT */
{					 /* FAULT */
	if (case_now() > end)
		uv_stop(t->loop);
}

static void *clients(void *arg)
{
	for (;;) {
		usleep(200000);
		for (int i = 0; i < CLIENTS; i++)
			if (write(pipes[i][1], "x", 1) != 1)
				return arg;
	}
	return arg;
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(3);
	for (int i = 0; i < CLIENTS; i++) {
		case_check(pipe(pipes[i]), "pipe");
		uv_poll_init(loop, &polls[i], pipes[i][0]);
		uv_poll_start(&polls[i], UV_READABLE, on_report);
	}
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, refresh_lease, 10, 10);
	case_check(pthread_create(&thread, NULL, clients, NULL), "pthread_create");
	uv_run(loop, UV_RUN_DEFAULT);
	exit(0);
}
