/* A callback follows a pointer that is none. */
#include <uv.h>

#include "case.h"

static unsigned count;
static int *volatile session;

static void end_session(void)
{
	*session = 1; /* FAULT */
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	case_work(50);
	if (count++ == 100)
		end_session();
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;

	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 10, 10);
	return uv_run(loop, UV_RUN_DEFAULT);
}
