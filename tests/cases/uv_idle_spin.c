/* An idle handle that is never stopped: the loop asks again and again, and never waits. */
#include <uv.h>

#include "case.h"

static uint64_t end;

static void look_for_work(uv_idle_t *i) /* FAULT */
{					/* FAULT */
	case_work(5);			/* FAULT */
	if (case_now() > end)
		uv_idle_stop(i);
}

int main(void)
{
	uv_idle_t idle;

	case_rounds_per_ms();
	end = case_end(2);
	uv_idle_init(uv_default_loop(), &idle);
	uv_idle_start(&idle, look_for_work);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
