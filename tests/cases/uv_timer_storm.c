/* A timer of 0 ms that starts itself again: "as soon as possible", for ever. */
#include <uv.h>

#include "case.h"

static uint64_t end;

static void check_again(uv_timer_t *t) /* FAULT */
{				       /* FAULT */
	case_work(10);		       /* FAULT */
	if (case_now() < end)
		uv_timer_start(t, check_again, 0, 0);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(1.5);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, check_again, 0, 0);
	return uv_run(loop, UV_RUN_DEFAULT);
}
