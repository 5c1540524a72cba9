/* A thread wakes the loop for every line instead of for every batch. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static uv_async_t lines;

static void on_lines(uv_async_t *a) /* FAULT */
{				    /* FAULT */
	case_work(200);
	if (case_now() > end)
		uv_close((uv_handle_t *)a, NULL);
}

static void *read_lines(void *arg)
{
	while (case_now() < end) {
		for (int i = 0; i < 100; i++)
			uv_async_send(&lines);
		usleep(1500);
	}
	uv_async_send(&lines);
	return arg;
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2);
	uv_async_init(loop, &lines, on_lines);
	case_check(pthread_create(&thread, NULL, read_lines, NULL), "pthread_create");
	usleep(1000);
	uv_run(loop, UV_RUN_DEFAULT);
	return pthread_join(thread, NULL);
}
