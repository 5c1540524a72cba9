/* A libuv loop that ends as end_how.h says. */
#include <uv.h>

#include "end_how.h"

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
	on_tick();
}

int main(int argc, char **argv)
{
	uv_timer_t timer;

	read_arguments(argc, argv);
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_timer, TICK_MS, TICK_MS);
	return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
