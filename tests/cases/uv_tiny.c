/* It runs for a tenth of a second and does next to nothing: nobody can say anything of it. */
#include <uv.h>

static void on_tick(uv_timer_t *t)
{
	static int count;

	if (++count == 5)
		uv_timer_stop(t);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	uv_timer_t timer;

	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 20, 20);
	return uv_run(loop, UV_RUN_DEFAULT);
}
