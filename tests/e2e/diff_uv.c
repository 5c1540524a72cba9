/*
 * For diff_runs.py: a libuv program whose callbacks compute, walk through memory, format text,
 * allocate and write to a pipe, each so many rounds, whatever the machine is busy with.
 *
 *   diff_uv SECONDS [CALLBACK PERCENT]    makes one callback do so many percent more rounds
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diff_uv.h"

#define CELLS (1u << 10) /* 4 KiB: hardly at the mercy of what else fills the caches */

static const char *slow = "";
static unsigned percent;
static volatile uint64_t sink;
static uint32_t *cells;
static int pipe_fds[2];
static uint64_t end_ns;
static uv_async_t async;

unsigned slowed(const char *callback, unsigned rounds)
{
	return strcmp(callback, slow) == 0 ? rounds + rounds * percent / 100 : rounds;
}

__attribute__((noinline)) void compute(unsigned rounds)
{
	uint64_t sum = sink;

	for (unsigned i = 0; i < rounds; i++)
		sum = sum * 31 + i;
	sink = sum;
}

static void on_parse(uv_timer_t *t)
{
	(void)t;
	compute(slowed("on_parse", 90000));
}

static void on_route(uv_timer_t *t)
{
	(void)t;
	compute(slowed("on_route", 15000));
	uv_async_send(&async);
}

static void on_lookup(uv_timer_t *t)
{
	unsigned rounds = slowed("on_lookup", 9000);
	uint32_t at = 0;

	(void)t;
	for (unsigned i = 0; i < rounds; i++)
		at = cells[(at + i * 2654435761u) % CELLS];
	sink += at;
}

static void on_format(uv_timer_t *t)
{
	unsigned rounds = slowed("on_format", 400);
	char text[96];

	(void)t;
	for (unsigned i = 0; i < rounds; i++)
		sink += (unsigned)snprintf(text, sizeof(text), "%u: %s = %.3f", i, "value",
					   i / 7.0);
	if (write(pipe_fds[1], "x", 1) < 0)
		exit(1);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	unsigned rounds = slowed("on_readable", 1500);
	char byte[8];

	(void)p;
	(void)status;
	(void)events;
	if (read(pipe_fds[0], byte, sizeof(byte)) < 0)
		exit(1);
	for (unsigned i = 0; i < rounds; i++) {
		char *volatile room = malloc(64 + i % 512);

		room[0] = byte[0];
		free(room);
	}
}

static void on_async(uv_async_t *a)
{
	(void)a;
	compute(slowed("on_async", 6000));
}

/* As short as callbacks are that only look at a flag. */
static void on_check(uv_check_t *c)
{
	if (uv_hrtime() > end_ns)
		uv_stop(c->loop);
}

static void on_tick(uv_timer_t *t)
{
	(void)t;
	compute(slowed("on_tick", 30000));
}

static void start_timer(uv_loop_t *loop, uv_timer_t *t, uv_timer_cb cb, unsigned ms)
{
	uv_timer_init(loop, t);
	uv_timer_start(t, cb, 1, ms);
}

int main(int argc, char **argv)
{
	static uv_timer_t timers[5];
	static uv_poll_t readable;
	static uv_check_t check;
	uv_loop_t *loop = uv_default_loop();

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: diff_uv SECONDS [CALLBACK PERCENT]\n");
		return 2;
	}
	if (argc == 4) {
		slow = argv[2];
		percent = (unsigned)atoi(argv[3]);
	}
	cells = malloc(CELLS * sizeof(*cells));
	if (!cells || pipe(pipe_fds))
		return 1;
	for (unsigned i = 0; i < CELLS; i++)
		cells[i] = i * 40503u % CELLS;
	end_ns = uv_hrtime() + (uint64_t)(atof(argv[1]) * 1e9);
	start_timer(loop, &timers[0], on_parse, 5);
	start_timer(loop, &timers[1], on_route, 3);
	start_timer(loop, &timers[2], on_lookup, 4);
	start_timer(loop, &timers[3], on_format, 7);
	start_timer(loop, &timers[4], on_tick, 6);
	other_start(loop);
	uv_async_init(loop, &async, on_async);
	uv_poll_init(loop, &readable, pipe_fds[0]);
	uv_poll_start(&readable, UV_READABLE, on_readable);
	uv_check_init(loop, &check);
	uv_check_start(&check, on_check);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}
