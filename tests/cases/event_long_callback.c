/* A report of all sessions is made in a callback, 30 ms each time. */
#include <event2/event.h>

#include "case.h"

static uint64_t end;
static struct event_base *base;

static __attribute__((noinline)) void count_sessions(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) /* FAULT */
		sum = sum * 31 + i;	      /* FAULT */
	case_sink = sum;
}

static void on_report(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	count_sessions(case_rounds_per_ms() * 30);
	if (case_now() > end)
		event_base_loopbreak(base);
}

int main(void)
{
	struct timeval interval = {0, 200000};
	struct event *report;

	case_rounds_per_ms();
	end = case_end(2);
	base = event_base_new();
	report = event_new(base, -1, EV_PERSIST, on_report, NULL);
	event_add(report, &interval);
	event_base_dispatch(base);
	event_free(report);
	event_base_free(base);
	return 0;
}
