/* A thread computes all the time, as it should; the loop serves its clients. */
#include <pthread.h>
#include <uv.h>

#include "case.h"

static uint64_t end;

static void *render(void *arg)
{
	while (case_now() < end)
		case_work(200000);
	return arg;
}

static void on_request(uv_timer_t *t)
{
	case_work(100);
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	pthread_t thread;
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(2.5);
	case_check(pthread_create(&thread, NULL, render, NULL), "pthread_create");
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_request, 5, 5);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	return pthread_join(thread, NULL);
}
