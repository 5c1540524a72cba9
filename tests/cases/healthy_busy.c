/* Two loops with 60 % to do each, in short pieces. */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "case.h"

static uint64_t end;

static void *worker(void *arg)
{
	struct itimerspec every = {{0, 5000000}, {0, 5000000}};
	int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event e = {.events = EPOLLIN};
	uint64_t count;

	case_check(timerfd_settime(timer, 0, &every, NULL) ||
			   epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e),
		   "timerfd");
	while (case_now() < end)
		if (epoll_wait(epoll, &e, 1, 100) > 0 &&
		    read(timer, &count, sizeof(count)) == sizeof(count))
			case_work(3000);
	return arg;
}

int main(void)
{
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2);
	case_check(pthread_create(&thread, NULL, worker, NULL), "pthread_create");
	worker(NULL);
	return pthread_join(thread, NULL);
}
