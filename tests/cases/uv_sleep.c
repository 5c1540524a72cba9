/* Somebody waits "a little" on the loop: usleep in a callback. */
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static uv_timer_t retries, ticks;

static void retry_later(void)
{
	usleep(60000); /* FAULT */
	case_sink++;
}

static void on_retry(uv_timer_t *t)
{
	retry_later();
	if (case_now() > end) {
		uv_timer_stop(t);
		uv_timer_stop(&ticks);
	}
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	case_work(20);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();

	end = case_end(2);
	uv_timer_init(loop, &retries);
	uv_timer_init(loop, &ticks);
	uv_timer_start(&retries, on_retry, 250, 250);
	uv_timer_start(&ticks, on_tick, 5, 5);
	return uv_run(loop, UV_RUN_DEFAULT);
}
