/* Another process holds a file lock for 40 ms at a time; the loop waits for it in flock. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "case.h"

static char path[] = "journal-XXXXXX";

static __attribute__((noinline)) void append_journal(int fd)
{
	case_check(flock(fd, LOCK_EX), "flock"); /* FAULT */
	case_work(50);
	case_check(flock(fd, LOCK_UN), "flock");
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = mkstemp(path);
	uint64_t end = case_end(2.5);
	struct epoll_event e;
	pid_t child;

	case_rounds_per_ms();
	case_check(fd < 0, "mkstemp");
	child = fork();
	if (!child) {
		int own = open(path, O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (case_now() < end) {
			flock(own, LOCK_EX);
			usleep(40000);
			flock(own, LOCK_UN);
			usleep(160000);
		}
		_exit(0);
	}
	while (case_now() < end) {
		epoll_wait(epoll, &e, 1, 10);
		append_journal(fd);
	}
	kill(child, SIGKILL);
	unlink(path);
	return 0;
}
