/* A callback that looks for an end that never comes; somebody kills the process at last. */
#include <uv.h>

#include "case.h"

static unsigned count;
static volatile int found;

static __attribute__((noinline)) void search(void)
{
	uint64_t sum = 0;

	while (!found)		    /* FAULT */
		sum = sum * 31 + 1; /* FAULT */
	case_sink = sum;
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	case_work(50);
	if (count++ == 60)
		search();
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;

	case_killed_after(3);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 10, 10);
	return uv_run(loop, UV_RUN_DEFAULT);
}
