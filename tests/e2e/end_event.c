/* A libevent loop that ends as end_how.h says. */
#include <event2/event.h>

#include "end_how.h"

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	on_tick();
}

int main(int argc, char **argv)
{
	const struct timeval tick = {.tv_usec = TICK_MS * 1000};
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, NULL);

	read_arguments(argc, argv);
	event_add(timer, &tick);
	return event_base_dispatch(base);
}
