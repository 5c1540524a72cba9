/* An event with a time-out of nothing is added again by its own callback. */
#include <event2/event.h>

#include "case.h"

static uint64_t end;
static struct event *again;
static const struct timeval at_once;

static void look_again(evutil_socket_t fd, short what, void *arg) /* FAULT */
{								  /* FAULT */
	(void)fd;
	(void)what;
	(void)arg;
	case_work(10); /* FAULT */
	if (case_now() < end)
		event_add(again, &at_once);
}

int main(void)
{
	struct event_base *base = event_base_new();

	case_rounds_per_ms();
	end = case_end(1.5);
	again = event_new(base, -1, 0, look_again, NULL);
	event_add(again, &at_once);
	event_base_dispatch(base);
	event_free(again);
	event_base_free(base);
	return 0;
}
