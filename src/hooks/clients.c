/*
 * Threads that serve one client each: their work comes where they accept connections, or receive
 * from one that was accepted, and wait for that in the kernel, there or in poll. These waits are park
 * and unpark as those of loops are.
 *
 * Connections to others, as to a database, are not such: who waits for these is in the middle of
 * work. Nor is a thread that has a loop of another kind, or is of a pool behind one. All such
 * threads have one loop, as they may be many and live for one request; each serves a queue of its
 * own nevertheless.
 *
 * What waits for all of them are connections that nobody has accepted yet. How many there are is
 * told as the depth of the loop's queue, after an accept, at most once in a millisecond on each thread; and that
 * there were none, when a thread had to wait for one. The same is told of other loops, of which callbacks
 * are not seen: some accept and serve one after the other without going back to their wait.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>

#include "base/sys.h"
#include "core/control.h"
#include "core/pool.h"
#include "core/watched.h"
#include "hooks/calls.h"
#include "hooks/handed.h"

#define LOOK_NS UINT64_C(1000000)

static uint64_t look_ticks; /* LOOK_NS; 0: not known yet */
static uint32_t must_not_ask;

int tacho__is_for_client(int fd, enum tacho__client_wait how)
{
	const struct tacho__hook_thread *h = &tacho__hook;

	return tacho__recording() && !h->said && (!h->serves || tacho__leaves_pool()) &&
	       !h->callbacks && !h->base_depth && !tacho__is_inside() &&
	       (how == TACHO__ACCEPTS || tacho__is_alive(tacho__alive_connection(fd))) &&
	       (how == TACHO__POLLS || tacho__blocks(fd));
}

uint32_t tacho__client_parks(int fd, enum tacho__client_wait how)
{
	int saved = errno;
	uint32_t loop;

	if (!tacho__is_for_client(fd, how))
		return 0;
	loop = tacho__loop_parks(TACHO__CLIENTS, TACHO_CLIENTS);
	errno = saved;
	return loop;
}

void tacho__clients_ask_nothing(void)
{
	tacho__store(&must_not_ask, 1);
}

/* How many wait to be accepted, where only that some do is known: 1. Negative: not known. */
static long not_accepted(int fd)
{
	struct timespec at_once = {0, 0};
	struct pollfd listener = {.fd = fd, .events = POLLIN};
	struct tcp_info info;
	socklen_t size = offsetof(struct tcp_info, tcpi_unacked) + sizeof(info.tcpi_unacked);

	if (tacho__load(&must_not_ask))
		return -1;
	if (TACHO__SYS(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &size, 0) == 0)
		return info.tcpi_state == TCP_LISTEN ? (long)info.tcpi_unacked : -1;
	return TACHO__SYS(SYS_ppoll, &listener, 1, &at_once, NULL, 0, 0);
}

/* How fast the clock is that records have shows a moment after they begin. */
static uint64_t known_look_ticks(void)
{
	uint64_t ticks = tacho__load(&look_ticks);

	if (tacho__unlikely(!ticks)) {
		ticks = tacho__ticks_of_ns(LOOK_NS);
		if (ticks != UINT64_MAX)
			tacho__store(&look_ticks, ticks);
	}
	return ticks;
}

static void tell_depth(uint32_t loop, long depth, uint64_t now)
{
	tacho__hook.queue_looked = now;
	if (depth >= 0)
		tacho__watched_put1(TACHO_REC_QUEUE_DEPTH, loop, (uint64_t)depth,
				    (uintptr_t)__builtin_frame_address(0));
}

void tacho__client_accepted(int fd, uint32_t loop, uint64_t parked, int result)
{
	const struct tacho__hook_thread *h = &tacho__hook;
	uint64_t ticks = known_look_ticks();

	tacho__loop_unparks(loop, result >= 0);
	if (result < 0)
		return;
	if (h->turn - parked >= ticks)
		tell_depth(loop, 0, h->turn);
	else if (h->turn - h->queue_looked >= ticks)
		tell_depth(loop, not_accepted(fd), h->turn);
}

void tacho__turn_accepted(int fd)
{
	const struct tacho__hook_thread *h = &tacho__hook;
	uint64_t now = tacho__ticks();

	if (now - h->queue_looked >= known_look_ticks())
		tell_depth(h->loop, not_accepted(fd), now);
}
