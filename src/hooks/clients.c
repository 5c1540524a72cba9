/*
 * Threads that serve one client each: their work comes where they accept connections, or receive
 * from one that was accepted, and wait for that in the kernel, there or in poll. These waits are park
 * and unpark as those of loops are.
 *
 * Connections to others, as to a database, are not such: who waits for these is in the middle of
 * work. Nor is a thread that has a loop of another kind, or is of a pool behind one. All such
 * threads have one loop, as they may be many and live for one request; each serves a queue of its
 * own nevertheless.
 */
#include "core/control.h"
#include "hooks/calls.h"
#include "hooks/handed.h"

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
