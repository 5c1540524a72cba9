/* A loop that asks again and again, with a time-out of 0, instead of waiting. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "case.h"

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
	struct epoll_event e = {.events = EPOLLIN};
	uint64_t end = case_end(1.5);

	case_check(epoll_ctl(epoll, EPOLL_CTL_ADD, event, &e), "epoll_ctl");
	while (case_now() < end)		     /* FAULT */
		if (epoll_wait(epoll, &e, 1, 0) > 0) /* FAULT */
			case_work(100);
	return 0;
}
