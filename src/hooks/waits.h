/* What waits of loops share, whatever call they wait in. */
#ifndef TACHO_HOOKS_WAITS_H
#define TACHO_HOOKS_WAITS_H

#include <time.h>

#include "hooks/hooks.h"

#define TACHO__NO_DESCRIPTOR (-1)
#define TACHO__EPOLLS_LEAST 8u	  /* waits that show that the loop of a thread is one of epoll */
#define TACHO__WAITS_COUNTED 128u /* of one kind: then the older ones count half */

/* One wait while it lasts. */
struct tacho__loop_wait {
	uint32_t loop;	/* 0: it is not recorded, or as a call */
	uint64_t since; /* ticks; 0, TACHO__NOTED: not known */
};

/* Whether this wait is recorded, and the loop: not inside hooks, and not the waits that a
   callback of a known loop makes for itself with poll or select. */
struct tacho__loop_wait tacho__loop_wait_parks(int fd, const char *what);
/* Its ticks, or 0. Keeps errno. */
uint64_t tacho__loop_wait_unparks(const struct tacho__loop_wait *w, int ready);

/* After a wait that failed: whether it goes on, because the signal of a sample ended it; with the time
   that is left. */
int tacho__loop_wait_goes_on(void);
int tacho__loop_wait_goes_on_ms(const struct tacho__loop_wait *w, int whole, int *left);
int tacho__loop_wait_goes_on_ns(const struct tacho__loop_wait *w, const struct timespec *whole,
				const struct timespec **left, struct timespec *room);

static inline void tacho__count_wait(uint32_t *kind)
{
	struct tacho__hook_thread *h = &tacho__hook;

	if (tacho__likely(++*kind < TACHO__WAITS_COUNTED))
		return;
	h->epolls /= 2;
	h->polls /= 2;
	h->asides /= 2;
}

static inline int tacho__may_wait(const struct timespec *timeout)
{
	return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

#endif
