/* It waits, and looks at the clock now and then. */
#include <sys/epoll.h>

#include "case.h"

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t end = case_end(2);
	struct epoll_event e;

	while (case_now() < end)
		epoll_wait(epoll, &e, 1, 20);
	return 0;
}
