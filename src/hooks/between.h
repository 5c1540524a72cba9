/*
 * Where a thread waits for work, and where it waits in between.
 *
 * A wait is known by the code that calls it; all waits in epoll are one, and so are all in poll and select
 * for nothing but time, which are sleeps: languages call both from one place. Where most waits are is where
 * the thread waits for work. A wait elsewhere that has come before, alone between two of these, more
 * than once, is one in the middle of work: a query of a client library, say. Waits elsewhere that
 * follow each other may be a loop of another kind, which the thread runs from now on.
 */
#ifndef TACHO_HOOKS_BETWEEN_H
#define TACHO_HOOKS_BETWEEN_H

#include "hooks/hooks.h"

#define TACHO__BETWEEN_LEAST 8u /* more waits at the place of work than elsewhere */
#define TACHO__BETWEEN_MOST 128u
#define TACHO__BETWEEN_TIMES 2u
#define TACHO__AT_EPOLL ((const void *)1)
#define TACHO__AT_NOTHING ((const void *)2)

/* The thread is about to wait, at `code`. 1: in the middle of work. */
static inline int tacho__waits_between(const void *code)
{
	struct tacho__hook_between *b = &tacho__hook.between;
	int is_alone = !b->aside, is_known = b->code == code && b->times >= TACHO__BETWEEN_TIMES;

	if (tacho__likely(b->work == code || !b->waits)) {
		b->work = code;
		b->waits += b->waits < TACHO__BETWEEN_MOST;
		if (tacho__likely(is_alone))
			return 0;
		b->times = b->aside == b->code ? b->times + 1 : 1;
		b->code = b->aside;
		b->aside = NULL;
		return 0;
	}
	b->waits--;
	b->aside = code;
	if (!is_alone)
		b->times = 0;
	return is_alone && is_known && b->waits >= TACHO__BETWEEN_LEAST;
}

#endif
