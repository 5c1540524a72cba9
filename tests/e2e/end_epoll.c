/* An epoll loop that ends as end_how.h says. */
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "end_how.h"

int main(int argc, char **argv)
{
	const struct timespec tick = {.tv_nsec = TICK_MS * 1000000};
	const struct itimerspec ticks = {tick, tick};
	struct epoll_event event = {.events = EPOLLIN};
	int loop = epoll_create1(EPOLL_CLOEXEC);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	uint64_t count;

	read_arguments(argc, argv);
	timerfd_settime(timer, 0, &ticks, NULL);
	epoll_ctl(loop, EPOLL_CTL_ADD, timer, &event);
	for (;;)
		if (epoll_wait(loop, &event, 1, -1) > 0 && read(timer, &count, sizeof(count)) > 0)
			on_tick();
}
