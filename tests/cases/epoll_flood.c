/* One client of twelve sends without end, the others a message now and then. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"

#define CLIENTS 12

static uint64_t end;
static int pairs[CLIENTS][2];

static void *clients(void *arg)
{
	char message[64] = "hello";

	for (unsigned i = 0; case_now() < end; i++) {
		if (write(pairs[3][1], message, sizeof(message)) < 0)
			break;
		if (i % 4 == 0)
			usleep(500);
		if (i % 200 == 0)
			for (int k = 0; k < CLIENTS; k++)
				if (write(pairs[k][1], message, sizeof(message)) < 0)
					return arg;
	}
	return arg;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[16];
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2);
	for (int i = 0; i < CLIENTS; i++) {
		struct epoll_event e = {.events = EPOLLIN};

		case_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]),
			   "socketpair");
		e.data.fd = pairs[i][0];
		case_check(epoll_ctl(epoll, EPOLL_CTL_ADD, pairs[i][0], &e), "epoll_ctl");
	}
	case_check(pthread_create(&thread, NULL, clients, NULL), "pthread_create");
	while (case_now() < end) {
		int n = epoll_wait(epoll, events, 16, 50);

		for (int i = 0; i < n; i++) {
			char message[64];

			if (read(events[i].data.fd, message, sizeof(message)) > 0)
				case_work(120);
		}
	}
	_exit(0);
}
