/* Hundreds of timers are due at the same moment: none takes long, the last of them is late. */
#include <uv.h>

#include "case.h"

#define SESSIONS 150

static uint64_t end;
static uv_timer_t sessions[SESSIONS];

static void expire_session(uv_timer_t *t) /* FAULT */
{					  /* FAULT */
	case_work(400);
	if (case_now() > end)
		uv_timer_stop(t);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();

	case_rounds_per_ms();
	end = case_end(2);
	for (int i = 0; i < SESSIONS; i++) {
		uv_timer_init(loop, &sessions[i]);
		uv_timer_start(&sessions[i], expire_session, 100, 250);
	}
	return uv_run(loop, UV_RUN_DEFAULT);
}
