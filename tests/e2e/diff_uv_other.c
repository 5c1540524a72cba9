/* A second file of diff_uv, with a function that is called as one of the first. */
#include "diff_uv.h"

static void on_tick(uv_timer_t *t)
{
	(void)t;
	compute(slowed("other/on_tick", 20000));
}

void other_start(uv_loop_t *loop)
{
	static uv_timer_t timer;

	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 1, 8);
}
