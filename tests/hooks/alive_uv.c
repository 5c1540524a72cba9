/* Handles of libuv: argv[1] says what is begun and not ended, or that all is well. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <uv.h>

#include "alive.h"

#define RESTARTED 200u

static const char *what;
static uv_loop_t *loop;
static uv_timer_t restarted[RESTARTED];

static void nothing(uv_timer_t *timer)
{
	(void)timer;
}

static void gone(uv_handle_t *handle)
{
	free(handle);
}

/* A timer for each session that nobody closes. */
static __attribute__((noinline)) uv_timer_t *begin_session(void)
{
	uv_timer_t *timer = malloc(sizeof(*timer));

	uv_timer_init(loop, timer);
	uv_timer_start(timer, nothing, 60000, 0);
	return timer;
}

/* No address comes twice. */
static __attribute__((noinline)) void begin_and_end(void)
{
	uv_async_t *async = malloc(sizeof(*async));
	void *kept = malloc(sizeof(*async));

	__asm__ volatile("" : : "r"(kept) : "memory");
	uv_async_init(loop, async, NULL);
	uv_close((uv_handle_t *)async, gone);
}

/* One that grows to its bound in the first half. */
static __attribute__((noinline)) void fill_pool(void)
{
	uv_idle_t *idle = ticks < TICKS / 2 ? malloc(sizeof(*idle)) : NULL;

	if (idle)
		uv_idle_init(loop, idle);
}

/* One of those that are crowded: all begin at one place, also again. */
static __attribute__((noinline)) void begin_crowded(uv_handle_t *handle)
{
	uv_timer_init(loop, (uv_timer_t *)handle);
	__asm__ volatile("");
}

/*
 * The address of a timer, all of which have one hash: it is a multiplication by 2^64 divided by the
 * golden section, which takes multiples of a Fibonacci number to nearly one number.
 */
static uv_handle_t *crowded(unsigned i)
{
	uintptr_t at = (uintptr_t)((UINT64_C(1) << 44) + i * UINT64_C(4807526976));
	void *page = (void *)(at & ~(uintptr_t)4095);

	if (mmap(page, 8192, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
		abort();
	return (uv_handle_t *)at;
}

static void tick(void)
{
	if (!strcmp(what, "leak"))
		begin_session();
	if (!strcmp(what, "comes-and-goes"))
		for (int i = 0; i < 3; i++)
			begin_and_end();
	if (!strcmp(what, "pool"))
		fill_pool();
	if (!strcmp(what, "restarted"))
		for (unsigned i = 0; i < RESTARTED; i++) {
			uv_timer_again(&restarted[i]);
			uv_timer_stop(&restarted[i]);
			uv_timer_start(&restarted[i], nothing, 60000, 60000);
		}
	/* More than fit into the first part of the table; 10,050 stay. */
	if (!strcmp(what, "many")) {
		static uv_timer_t *sessions[50 * 1000];

		for (unsigned i = 0; ticks == 1 && i < 50 * 1000; i++)
			sessions[i] = begin_session();
		for (unsigned i = 0; ticks > 1 && i < 50; i++)
			uv_close((uv_handle_t *)sessions[50 * (ticks - 2) + i], gone);
	}
	/* More than there is room for; then one of them ends and begins, so that they are told. */
	if (!strcmp(what, "crowded")) {
		static uv_handle_t *one;

		for (unsigned i = 0; ticks == 1 && i < 80; i++) {
			uv_handle_t *handle = crowded(i);

			begin_crowded(handle);
			one = one ? one : handle;
		}
		if (ticks > 1 && !uv_is_closing(one))
			uv_close(one, begin_crowded);
	}
	/* All are ended in one moment, up to which they grew. */
	if (!strcmp(what, "ended")) {
		static uv_timer_t *sessions[TICKS];

		sessions[ticks - 1] = begin_session();
		for (unsigned i = 0; ticks == TICKS && i < TICKS; i++)
			uv_close((uv_handle_t *)sessions[i], gone);
	}
}

static void on_timer(uv_timer_t *timer)
{
	(void)timer;
	while (tick_due())
		tick();
	if (ticks == TICKS)
		uv_stop(loop);
}

int main(int argc, char **argv)
{
	static uv_timer_t timer;

	what = argc > 1 ? argv[1] : "";
	loop = uv_default_loop();
	for (unsigned i = 0; i < RESTARTED; i++) {
		uv_timer_init(loop, &restarted[i]);
		uv_timer_start(&restarted[i], nothing, 60000, 60000);
	}
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_timer, 5, 5);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}
