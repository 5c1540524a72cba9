/* A loop reads an answer that never comes, without a time-out. The window is taken while it hangs. */
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), answer[2];
	struct epoll_event e;
	char c;

	case_killed_after(6);
	case_check(pipe(answer), "pipe");
	for (int i = 0; i < 100; i++) {
		epoll_wait(epoll, &e, 1, 5);
		case_work(50);
	}
	return (int)read(answer[0], &c, 1); /* FAULT */
}
