/* A server that has little to do is stopped from outside (SIGSTOP), now and then, while it waits. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

static void stop_now_and_then(pid_t parent)
{
	for (int i = 0; i < 3; i++) {
		usleep(400000);
		kill(parent, SIGSTOP);
		usleep(300000);
		kill(parent, SIGCONT);
	}
	_exit(0);
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	pid_t self = getpid(), child;
	struct epoll_event e;
	uint64_t end;

	case_rounds_per_ms();
	child = fork();
	case_check(child < 0, "fork");
	if (!child)
		stop_now_and_then(self);
	end = case_end(2.8);
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 20);
		case_work(200);
	}
	waitpid(child, NULL, 0);
	return 0;
}
