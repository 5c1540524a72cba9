/*
 * What loops hand to other threads.
 *
 * A pool of threads waits for work at a condition variable. A loop that signals it while all of
 * them are busy has put something into a queue, where it waits. That is not seen: the queue is the
 * program's own. But it is known how many such signals there were, and how often a thread came back
 * for more, which is when it locks the mutex of the condition where it locked it before it waited.
 * The difference waits; nothing does when a thread finds that it has to wait itself. Changes of
 * that number are recorded as LOCK_QUEUE, 8 in a millisecond at most for one condition.
 *
 * Some signal only when a thread idles. So what locked the mutex before a signal is known to give
 * something, and does so as well when no signal follows, as long as nobody waits at the condition.
 *
 * A semaphore counts by itself: what a loop posts while nobody waits there is taken by who gets it
 * without a wait.
 *
 * A condition that loops wait for as well is none of these: a lock that is made of one, say. And a
 * thread belongs to the condition that most of its waits are for.
 */
#ifndef TACHO_HOOKS_HANDED_H
#define TACHO_HOOKS_HANDED_H

#include <pthread.h>
#include <stdint.h>

#include "hooks/hooks.h"

extern uint32_t tacho__handed_count; /* conditions that are known */

/* The calling thread is about to wait for a condition, or has waited. `code`: what locked the mutex;
   NULL: not known. */
void tacho__condition_waits(const void *c, const pthread_mutex_t *m);
void tacho__condition_waited(const void *c, const pthread_mutex_t *m, const void *code);
/* It got a semaphore without a wait. */
void tacho__semaphore_taken(const void *s);

/* It signals one at which so many wait. Of a loop's thread. */
void tacho__hands_over(const void *c, uint64_t waiters, const void *caller);

/* It locks the mutex of its condition, tacho__hook.work_mutex. */
void tacho__comes_for_work(const void *code) __attribute__((cold, noinline));

/* 1: what it was taken to wait for work at is no queue after all, so that it is of no pool. */
int tacho__leaves_pool(void);

static inline int tacho__may_hand_over(void)
{
	return tacho__load(&tacho__handed_count) != 0 && tacho__on_loop_thread();
}

#endif
