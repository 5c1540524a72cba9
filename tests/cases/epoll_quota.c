/* A service that needs 80 % of a CPU, and whose cgroup has a quota of a quarter of one. */
#include <sys/epoll.h>

#include "case.h"

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	uint64_t end;

	case_rounds_per_ms();
	end = case_end(2.5);
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 1);
		case_work(4000);
	}
	return 0;
}
