/* An assertion fails in a callback. */
#include <assert.h>
#include <event2/event.h>

#include "case.h"

static unsigned count;
static volatile unsigned references = 1;

static void release_session(void)
{
	references -= 2;
	assert(references < 1000); /* FAULT */
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	case_work(50);
	if (count++ == 100)
		release_session();
}

int main(void)
{
	struct timeval interval = {0, 10000};
	struct event_base *base = event_base_new();
	struct event *tick = event_new(base, -1, EV_PERSIST, on_tick, NULL);

	event_add(tick, &interval);
	return event_base_dispatch(base);
}
