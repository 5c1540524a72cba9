/* A loop connects to a server that does not accept, and waits for it. */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "case.h"

static void reconnect(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {0, 100000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	case_check(fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)),
		   "socket");
	case_sink += (uint64_t)connect(fd, (struct sockaddr *)&a, sizeof(a)); /* FAULT */
	close(fd);
}

/* Its queue is full: connections that nobody accepts. */
static uint16_t busy_server(void)
{
	uint16_t port;

	case_listen(0, &port);
	for (int i = 0; i < 4; i++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		case_sink += (uint64_t)connect(fd, (struct sockaddr *)&a, sizeof(a));
	}
	return port;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	uint64_t end = case_end(2);
	uint16_t port = busy_server();
	struct epoll_event e;

	for (int i = 0; case_now() < end; i++) {
		epoll_wait(epoll, &e, 1, 10);
		case_work(50);
		if (i % 20 == 19)
			reconnect(port);
	}
	return 0;
}
