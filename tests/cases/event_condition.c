/* A callback hands work to a thread and waits for the result on a condition variable. */
#include <event2/event.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static int state;
static uint64_t end;
static struct event_base *base;

static void *worker(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		while (state != 1)
			pthread_cond_wait(&asked, &lock);
		pthread_mutex_unlock(&lock);
		usleep(35000);
		pthread_mutex_lock(&lock);
		state = 2;
		pthread_cond_signal(&done);
	}
	return arg;
}

static __attribute__((noinline)) void ask_and_wait(void)
{
	pthread_mutex_lock(&lock);
	state = 1;
	pthread_cond_signal(&asked);
	while (state != 2)
		pthread_cond_wait(&done, &lock); /* FAULT */
	pthread_mutex_unlock(&lock);
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	ask_and_wait();
	if (case_now() > end)
		event_base_loopbreak(base);
}

int main(void)
{
	struct timeval interval = {0, 100000};
	struct event *e;
	pthread_t thread;

	end = case_end(2.5);
	base = event_base_new();
	e = event_new(base, -1, EV_PERSIST, on_request, NULL);
	event_add(e, &interval);
	case_check(pthread_create(&thread, NULL, worker, NULL), "pthread_create");
	event_base_dispatch(base);
	exit(0);
}
