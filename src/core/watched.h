/*
 * Calls of the API while something is watched besides: a sentinel, whether polls are shorter than a
 * threshold, or the thread by hooks. `frame`: that of the function which the program called.
 */
#ifndef TACHO_CORE_WATCHED_H
#define TACHO_CORE_WATCHED_H

#include <stdint.h>

#include "core/recorder.h"

/*
 * What hooks do at calls of the API: a thread that says that it runs a loop or tasks is a loop to
 * them. errno stays.
 */
struct tacho__hooks {
	/* It runs `loop` from now on; 0: none. */
	void (*loop)(uint32_t loop);
	/* It has unparked at `ticks` (`polls` is 0), or is about to begin a poll, and a look at it is
	   due. */
	void (*look)(uint64_t ticks, int polls);
	/* A poll of `kind` ended that took `ticks`, not less than tacho__slow_ticks. */
	void (*slow_poll)(uint64_t ticks, uint32_t kind);
};
extern const struct tacho__hooks *tacho__hooks; /* NULL: there are none in this process */

extern uint64_t tacho__slow_ticks; /* UINT64_MAX: none is slow; 0: not known yet */
/* Ticks after which hooks look at the thread next. */
extern __thread uint64_t tacho__look_due __attribute__((tls_model("initial-exec")));

/* 1: hooks told, or will tell, when the wait of the park that the program told has ended; what it says
   itself of that is double. */
extern __thread uint32_t tacho__unpark_told __attribute__((tls_model("initial-exec")));

/* Whether hooks look at the thread at `ticks`; not at 0, where nothing could be recorded: the process
   may have given up the right to ask the kernel. */
static inline int tacho__look_is_due(uint64_t ticks)
{
	return tacho__unlikely(ticks > tacho__look_due) != 0;
}

/* Whether a poll that began at `since` and runs or ended at `ticks` is slow to hooks. */
static inline int tacho__is_slow(uint64_t since, uint64_t ticks)
{
	return tacho__unlikely(ticks - since >= tacho__slow_ticks) && ticks > since;
}

void tacho__watched_loop(uint32_t loop) __attribute__((cold));
void tacho__watched_look(uint64_t ticks, int polls) __attribute__((cold));
/* A poll has ended that was slow. */
void tacho__watched_slow(uint64_t ticks, uint32_t kind) __attribute__((cold));
void tacho__watched_park(uint32_t loop, uintptr_t frame);
void tacho__watched_poll_begin(uint32_t kind, uint64_t task, uintptr_t frame);
void tacho__watched_poll_switch(uint32_t kind, uint64_t task, uintptr_t frame);
void tacho__watched_poll_end(uint32_t result, uintptr_t frame);
void tacho__watched_poll_end_park(uint32_t result, uint32_t loop, uintptr_t frame);
void tacho__watched_put1(uint32_t type, uint32_t arg, uint64_t a, uintptr_t frame);

#endif
