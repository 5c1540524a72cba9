/* A loop starts a helper program and waits until it has ended. */
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

static void run_helper(void)
{
	pid_t child = vfork();

	case_check(child < 0, "vfork");
	if (!child) {
		execl("/bin/sleep", "sleep", "0.08", (char *)NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0); /* FAULT */
	case_sink++;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t end = case_end(2);
	struct epoll_event e;

	for (int i = 0; case_now() < end; i++) {
		epoll_wait(epoll, &e, 1, 10);
		case_work(50);
		if (i % 20 == 19)
			run_helper();
	}
	return 0;
}
