/* An epoll loop hands jobs of 3 ms to two threads through a queue with a condition. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static unsigned jobs;
static uint64_t end;

static void *worker(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (!jobs)
			pthread_cond_wait(&more, &lock);
		jobs--;
		pthread_mutex_unlock(&lock);
		case_work(3000);
	}
	return arg;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pthread_t threads[2];

	case_rounds_per_ms();
	end = case_end(2.5);
	for (int i = 0; i < 2; i++)
		case_check(pthread_create(&threads[i], NULL, worker, NULL), "pthread_create");
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 8);
		pthread_mutex_lock(&lock);
		jobs++;
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&lock);
		case_work(100);
	}
	_exit(0);
}
