/* A loop of epoll whose turns are slow: until it is ended, or a minute is over. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	alarm(60);
	for (;;) {
		struct timespec slow = {0, 30000000};

		epoll_wait(fd, &event, 1, 5);
		nanosleep(&slow, NULL);
	}
}
