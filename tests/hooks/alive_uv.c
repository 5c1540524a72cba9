/* Handles of libuv: argv[1] says what is begun and not ended, or that all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#define SECONDS 4
#define PERIOD_MS 5
#define POOL 600

static const char *what;
static uv_loop_t *loop;
static uv_timer_t tick, stop, again[200], *pool[POOL];
static unsigned ticks;

static void nothing(uv_timer_t *timer)
{
	(void)timer;
}

static void gone(uv_handle_t *handle)
{
	free(handle);
}

/* A timer for each session that nobody closes. */
static __attribute__((noinline)) void begin_session(void)
{
	uv_timer_t *timer = malloc(sizeof(*timer));

	uv_timer_init(loop, timer);
	uv_timer_start(timer, nothing, 60000, 0);
}

static __attribute__((noinline)) void begin_and_end(void)
{
	uv_timer_t *timer = malloc(sizeof(*timer));

	uv_timer_init(loop, timer);
	uv_timer_start(timer, nothing, 1, 0);
	uv_close((uv_handle_t *)timer, gone);
}

/* Fills up within the first half, and stays. */
static __attribute__((noinline)) void fill_pool(void)
{
	unsigned at = ticks * 2;

	for (unsigned i = at; i < at + 2 && i < POOL; i++) {
		pool[i] = malloc(sizeof(*pool[i]));
		uv_timer_init(loop, pool[i]);
		uv_timer_start(pool[i], nothing, 60000, 0);
	}
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	if (!strcmp(what, "leak"))
		begin_session();
	if (!strcmp(what, "comes-and-goes"))
		for (int i = 0; i < 20; i++)
			begin_and_end();
	if (!strcmp(what, "pool"))
		fill_pool();
	if (!strcmp(what, "again"))
		for (int i = 0; i < 200; i++)
			uv_timer_again(&again[i]);
	ticks++;
}

static void on_stop(uv_timer_t *timer)
{
	(void)timer;
	uv_stop(loop);
}

int main(int argc, char **argv)
{
	what = argc > 1 ? argv[1] : "";
	loop = uv_default_loop();
	for (int i = 0; i < 200; i++) {
		uv_timer_init(loop, &again[i]);
		uv_timer_start(&again[i], nothing, 60000, 60000);
	}
	uv_timer_init(loop, &tick);
	uv_timer_start(&tick, on_tick, PERIOD_MS, PERIOD_MS);
	uv_timer_init(loop, &stop);
	uv_timer_start(&stop, on_stop, SECONDS * 1000, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}
