/* A service that uses 90 % of a CPU, which two others want as well. */
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pid_t others[2];
	uint64_t end;

	case_rounds_per_ms();
	case_pin(0);
	for (int i = 0; i < 2; i++)
		others[i] = case_neighbour(10);
	end = case_end(2.5);
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 1);
		case_work(5000);
	}
	for (int i = 0; i < 2; i++)
		kill(others[i], SIGKILL);
	return 0;
}
