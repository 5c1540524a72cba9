/* A service that has little to do for each request, and gets its CPU late: others want it. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "case.h"

#define NEIGHBOURS 4

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pid_t others[NEIGHBOURS];
	uint64_t end, last;

	case_rounds_per_ms();
	case_pin(0);
	for (int i = 0; i < NEIGHBOURS; i++)
		others[i] = case_neighbour(40);
	/* It is last in line. */
	case_check(setpriority(PRIO_PROCESS, 0, 19), "setpriority");
	/* Also where more than these want the CPU. */
	end = case_end(3);
	last = case_end(25);
	for (int i = 0; case_now() < (i < 30 ? last : end); i++) {
		epoll_wait(epoll, &e, 1, 5);
		case_work(100);
	}
	for (int i = 0; i < NEIGHBOURS; i++)
		kill(others[i], SIGKILL);
	return 0;
}
