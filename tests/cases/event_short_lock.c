/* A background thread holds a lock for 5 ms, 20 times per second; requests come every 2 ms. */
#include <event2/event.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t end;
static struct event_base *base;

static void *rotate_keys(void *arg)
{
	while (case_now() < end) {
		usleep(45000);
		pthread_mutex_lock(&lock);
		usleep(5000);		     /* FAULT */
		pthread_mutex_unlock(&lock); /* FAULT */
	}
	return arg;
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	pthread_mutex_lock(&lock);
	case_work(50);
	pthread_mutex_unlock(&lock);
	if (case_now() > end)
		event_base_loopbreak(base);
}

int main(void)
{
	struct timeval interval = {0, 2000};
	struct event *e;
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(3);
	base = event_base_new();
	e = event_new(base, -1, EV_PERSIST, on_request, NULL);
	event_add(e, &interval);
	case_check(pthread_create(&thread, NULL, rotate_keys, NULL), "pthread_create");
	event_base_dispatch(base);
	return pthread_join(thread, NULL);
}
