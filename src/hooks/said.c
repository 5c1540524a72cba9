/*
 * Threads that say themselves what they do, by calls of tacho.h: they are loops to all hooks, also
 * where they wait in nothing that a hook sees.
 *
 * A program that is linked with libtacho finds its functions in libtacho-preload, which the dynamic
 * linker looks at first: both are one recorder, with one box. A Rust program asks for them itself
 * (crates/tacho/c/calls.c). One that has libtacho.a in itself records into a box of its own, of which
 * the hooks know nothing.
 */
#include "hooks/hooks.h"

#include "core/control.h"

/* The thread is a loop in the box that there is. Its CPU samples begin, and calls count. */
static __attribute__((cold, noinline)) void become_loop(uint32_t epoch)
{
	struct tacho__hook_thread *h = &tacho__hook;
	int saved = errno;

	if (!tacho__recorder_ready())
		return;
	if (h->loop_epoch != epoch) {
		h->loop = 0;
		h->loop_fd = TACHO__NO_LOOP_FD;
		h->loop_epoch = epoch;
	}
	h->said = 1;
	tacho__samples_thread();
	tacho__calls_loop();
	errno = saved;
}

static void know_thread(void)
{
	const struct tacho__hook_thread *h = &tacho__hook;
	uint32_t epoch = tacho__load(&tacho__rec->epoch);
	uint32_t process = tacho__load(&tacho__rec->process);

	if (tacho__unlikely(!h->said || h->loop_epoch != epoch || h->sampled != process ||
			    !process))
		become_loop(epoch);
}

static void says_loop(uint32_t loop)
{
	if (tacho__likely(loop))
		know_thread();
	else
		tacho__hook.said = 0;
}

static void look(uint64_t ticks, int polls)
{
	int saved = errno;

	know_thread();
	tacho__sched_turn(ticks, !polls);
	errno = saved;
}

void tacho__said_begin(void)
{
	static const struct tacho__hooks hooks = {says_loop, look, tacho__sched_polled};

	tacho__hooks = &hooks;
}
