/* A request that is parsed on the loop: 80 ms of computing in one callback. */
#include <uv.h>

#include "case.h"

static uint64_t end;
static uv_timer_t requests, ticks;
static unsigned count;

static __attribute__((noinline)) void parse_document(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) /* FAULT */
		sum = sum * 31 + i;	      /* FAULT */
	case_sink = sum;
}

static void on_request(uv_timer_t *t)
{
	parse_document(case_rounds_per_ms() * (count++ % 8 == 7 ? 80 : 0));
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

	case_rounds_per_ms();
	end = case_end(2);
	uv_timer_init(loop, &requests);
	uv_timer_init(loop, &ticks);
	uv_timer_start(&requests, on_request, 20, 20);
	uv_timer_start(&ticks, on_tick, 5, 5);
	return uv_run(loop, UV_RUN_DEFAULT);
}
