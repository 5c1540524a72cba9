/* Threads that ran a loop for a while, and ended. */
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static uint64_t end;

static void loop_until(uint64_t ns)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;

	while (case_now() < ns) {
		epoll_wait(epoll, &e, 1, 3);
		case_work(50);
	}
	close(epoll);
}

static void *ends(void *arg)
{
	loop_until(case_now() + 600 * CASE_MS);
	return arg;
}

int main(void)
{
	pthread_t threads[2];

	case_rounds_per_ms();
	end = case_end(2.5);
	for (int i = 0; i < 2; i++)
		case_check(pthread_create(&threads[i], NULL, ends, NULL), "pthread_create");
	loop_until(end);
	_exit(0);
}
