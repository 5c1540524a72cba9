/* Sockets on 127.0.0.1, for the programs of the examples. */
#ifndef EXAMPLES_NET_H
#define EXAMPLES_NET_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void must(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static inline struct sockaddr_in local_address(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Listens on a port that the kernel chooses, and says which. */
static inline int listen_somewhere(const char *program)
{
	struct sockaddr_in a = local_address(0);
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 64) &&
		     !getsockname(fd, (struct sockaddr *)&a, &size),
	     "listen");
	printf("%s listens on 127.0.0.1:%u\n", program, ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

/* A connection, or below 0. */
static inline int connect_to(uint16_t port)
{
	struct sockaddr_in a = local_address(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0, "socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

#endif
