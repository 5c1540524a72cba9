/* Eight threads share one lock for all they do: most of their time they wait for it. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

#define THREADS 8

static uint64_t end;
static pthread_mutex_t all = PTHREAD_MUTEX_INITIALIZER;

static void update_totals(void)
{
	pthread_mutex_lock(&all);
	usleep(1000);		    /* FAULT */
	pthread_mutex_unlock(&all); /* FAULT */
}

static void *worker(void *arg)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;

	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 1);
		update_totals();
	}
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];

	end = case_end(2);
	for (int i = 0; i < THREADS; i++)
		case_check(pthread_create(&threads[i], NULL, worker, NULL), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
