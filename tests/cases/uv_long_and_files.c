/* A long callback runs while a dozen file requests are under way: the pool is not to blame. */
#include <uv.h>

#include "case.h"

static uint64_t end;

static __attribute__((noinline)) void compile_rules(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) /* FAULT */
		sum = sum * 31 + i;	      /* FAULT */
	case_sink = sum;
}

static void on_stat(uv_fs_t *r)
{
	uv_fs_req_cleanup(r);
	free(r);
}

static void on_reload(uv_timer_t *t)
{
	for (int i = 0; i < 12; i++) {
		uv_fs_t *r = malloc(sizeof(*r));

		case_check(!r || uv_fs_stat(t->loop, r, "/etc/passwd", on_stat), "uv_fs_stat");
	}
	compile_rules(case_rounds_per_ms() * 60);
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	uv_timer_t timer;

	case_rounds_per_ms();
	end = case_end(2.5);
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_reload, 200, 200);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
