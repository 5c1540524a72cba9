/* One request of hundreds takes 25 ms, a hundred times as long as its like. */
#include <uv.h>

#include "case.h"

static uint64_t end;
static unsigned count;

static void on_request(uv_timer_t *t) /* FAULT */
{				      /* FAULT */
	case_work(count++ == 150 ? 25000 : 200);
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(2);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_request, 5, 5);
	return uv_run(loop, UV_RUN_DEFAULT);
}
