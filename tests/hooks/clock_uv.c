/*
 * clock_uv TURNS MS: a libuv loop, one turn at a time, each with one callback; MS of work of the
 * program itself between two turns. 0: the loop runs through all of them by itself.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

static int ends[2];
static int left;

static void on_readable(uv_poll_t *handle, int status, int events)
{
	char byte;

	(void)events;
	if (status || read(ends[0], &byte, 1) != 1)
		abort();
	if (--left && write(ends[1], "x", 1) != 1)
		abort();
	if (!left)
		uv_close((uv_handle_t *)handle, NULL);
}

/* Computes: a call that sleeps would be recorded. */
static void work(long ms)
{
	clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;

	while (clock() < end)
		;
}

int main(int argc, char **argv)
{
	long ms = argc > 2 ? atol(argv[2]) : 0;
	uv_poll_t handle;

	alarm(60);
	left = argc > 1 ? atoi(argv[1]) : 1;
	if (pipe(ends) || write(ends[1], "x", 1) != 1)
		return 1;
	uv_poll_init(uv_default_loop(), &handle, ends[0]);
	uv_poll_start(&handle, UV_READABLE, on_readable);
	while (uv_run(uv_default_loop(), ms ? UV_RUN_ONCE : UV_RUN_DEFAULT))
		work(ms);
	return uv_loop_close(uv_default_loop());
}
