/*
 * The descriptors by which threads of a program wake its loops: eventfds. What is ready on them is no
 * client's, however much of a loop it takes. A definition says which these are, by what records of what
 * is ready have for them.
 */
#include "core/control.h"
#include "core/define.h"
#include "hooks/alive.h"
#include "hooks/calls.h"

#define EVENTFDS 32u /* that are remembered: the last ones */

static uint32_t eventfds[EVENTFDS];	 /* descriptor + 1; 0 */
static uint64_t waited_for[EVENTFDS][2]; /* what epoll gives back for one, and 1 */
static uint32_t made, added;
static uint32_t defined; /* epoch of the box that has definitions of all of them, and 1 */

TACHO__HOOKED(int, eventfd, (unsigned count, int flags))
{
	int fd = TACHO__NEXT(eventfd)(count, flags);

	tacho__descriptor_made(fd, __builtin_return_address(0));
	if (fd >= 0)
		tacho__store(&eventfds[__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % EVENTFDS],
			     (uint32_t)fd + 1);
	return fd;
}

/* One that was closed where no hook saw it may be a connection now. */
static int is_eventfd(int fd)
{
	uint32_t i = 0;

	while (i < EVENTFDS && tacho__load(&eventfds[i]) != (uint32_t)fd + 1)
		i++;
	return i < EVENTFDS && !tacho__is_alive(tacho__alive_connection(fd));
}

static void define(uint64_t data)
{
	tacho__define_name(TACHO_DEF_DESCRIPTOR, "eventfd", NULL, 0, tacho_ready_word(data), 0,
			   NULL);
}

void tacho__eventfd_waited_for(int fd, uint64_t data)
{
	uint32_t at;

	if (!tacho__load(&made) || !is_eventfd(fd))
		return;
	at = __atomic_fetch_add(&added, 1, __ATOMIC_RELAXED) % EVENTFDS;
	tacho__store(&waited_for[at][0], data);
	tacho__store(&waited_for[at][1], 1);
	if (tacho__recording() && !tacho__is_inside())
		define(data);
	else
		tacho__store(&defined, 0);
}

void tacho__eventfds_define(void)
{
	uint32_t epoch = tacho__load(&tacho__rec->epoch) + 1;

	/* A thread that goes from loop to loop comes here often. */
	if (tacho__likely(tacho__load(&defined) == epoch))
		return;
	tacho__store(&defined, epoch);
	for (uint32_t i = 0; i < EVENTFDS; i++)
		if (tacho__load(&waited_for[i][1]))
			define(tacho__load(&waited_for[i][0]));
}
