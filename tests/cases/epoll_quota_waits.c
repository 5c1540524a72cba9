/*
 * A service with little to do in each turn, and a thread that needs more than the quota of the cgroup: the loop
 * is stopped in its waits. A thread of a client writes to it each 2 ms.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static uint64_t end;

static void *client(void *pipe)
{
	while (case_now() < end) {
		usleep(2000);
		if (write(*(int *)pipe, "x", 1) < 0)
			break;
	}
	return NULL;
}

static void *computes(void *arg)
{
	while (case_now() < end)
		case_work(500);
	return arg;
}

int main(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), two[2][2];
	pthread_t thread;
	char byte;

	case_rounds_per_ms();
	end = case_end(2.5);
	for (int i = 0; i < 2; i++) {
		if (pipe(two[i]))
			return 1;
		e.data.fd = two[i][0];
		epoll_ctl(epoll, EPOLL_CTL_ADD, two[i][0], &e);
		pthread_create(&thread, NULL, client, &two[i][1]);
	}
	pthread_create(&thread, NULL, computes, NULL);
	while (case_now() < end)
		if (epoll_wait(epoll, &e, 1, 100) == 1 && read(e.data.fd, &byte, 1) != 1)
			return 1;
	return 0;
}
