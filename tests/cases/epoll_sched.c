/* A service that uses 90 % of a CPU, which two others want as well. */
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

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
	pid_t others[2];
	uint64_t end;

	case_rounds_per_ms();
	case_pin(0);
	for (int i = 0; i < 2; i++)
		others[i] = neighbour();
	end = case_end(2.5);
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 1);
		case_work(5000);
	}
	for (int i = 0; i < 2; i++)
		kill(others[i], SIGKILL);
	return 0;
}
