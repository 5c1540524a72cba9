/* Four workers, and all connections are given to the first. */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#define WORKERS 4
#define CLIENTS 16

static uint64_t end;
static int epolls[WORKERS], pairs[CLIENTS][2];

static void *worker(void *arg)
{
	int epoll = *(int *)arg;
	struct epoll_event events[16];

	pthread_setname_np(pthread_self(), "worker");
	while (case_now() < end) {
		int n = epoll_wait(epoll, events, 16, 20);

		for (int i = 0; i < n; i++) {
			char message[16];

			if (read(events[i].data.fd, message, sizeof(message)) > 0)
				case_work(250);
		}
	}
	return arg;
}

int main(void)
{
	pthread_t threads[WORKERS];

	case_rounds_per_ms();
	end = case_end(2);
	for (int i = 0; i < WORKERS; i++)
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < CLIENTS; i++) {
		struct epoll_event e = {.events = EPOLLIN};

		case_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]),
			   "socketpair");
		e.data.fd = pairs[i][0];
		/* It should be epolls[i % WORKERS]. */
		case_check(epoll_ctl(epolls[0], EPOLL_CTL_ADD, pairs[i][0], &e), "epoll_ctl");
	}
	for (int i = 0; i < WORKERS; i++)
		case_check(pthread_create(&threads[i], NULL, worker, &epolls[i]), "pthread_create");
	/* Some 90 % of what one worker can do. */
	while (case_now() < end) {
		for (int i = 0; i < CLIENTS; i++)
			if (write(pairs[i][1], "ping", 4) < 0)
				return 1;
		usleep(4300);
	}
	_exit(0);
}
