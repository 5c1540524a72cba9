/* A callback hands its work to a thread and waits until that has ended: nothing is gained. */
#include <event2/event.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

static struct event_base *base;
static uint64_t end;

static void *fetch(void *arg)
{
	usleep(60000); /* somebody answers late */
	return arg;
}

static __attribute__((noinline)) void fetch_beside(void)
{
	pthread_t thread;

	case_check(pthread_create(&thread, NULL, fetch, NULL), "pthread_create");
	pthread_join(thread, NULL); /* FAULT */
	case_sink++;
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	static int count;

	(void)fd, (void)what, (void)arg;
	case_work(100);
	if (++count % 10 == 0)
		fetch_beside();
	if (case_now() > end)
		event_base_loopbreak(base);
}

int main(void)
{
	struct timeval often = {0, 10000};
	struct event *timer;

	end = case_end(2.5);
	base = event_base_new();
	timer = event_new(base, -1, EV_PERSIST, on_request, NULL);
	case_check(!base || !timer || event_add(timer, &often), "event_new");
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return 0;
}
