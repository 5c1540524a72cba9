/* A service that has little to do for each request, and gets its CPU late: others want it. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "case.h"

#define NEIGHBOURS 4

/* They never wait. */
static pid_t neighbour(void)
{
	pid_t child = fork();
	uint64_t end = case_end(10); /* in case nobody ends it */

	case_check(child < 0, "fork");
	while (!child) {
		case_work(1000);
		if (case_now() > end)
			_exit(0);
	}
	return child;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pid_t others[NEIGHBOURS];
	uint64_t end;

	case_rounds_per_ms();
	case_pin(0);
	for (int i = 0; i < NEIGHBOURS; i++)
		others[i] = neighbour();
	/* It is last in line. */
	case_check(setpriority(PRIO_PROCESS, 0, 19), "setpriority");
	end = case_end(3);
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 5);
		case_work(100);
	}
	for (int i = 0; i < NEIGHBOURS; i++)
		kill(others[i], SIGKILL);
	return 0;
}
