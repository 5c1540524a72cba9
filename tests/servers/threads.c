/* A healthy server with a thread for each connection: servers-threads PORT */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 50000u /* of work for a request: some fifty microseconds */

static void quit(int number)
{
	(void)number;
	_exit(0);
}

static uint32_t work(uint32_t seed)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		seed = seed * 1664525u + 1013904223u;
	return seed;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char request[64], answer[16];

	while (recv(fd, request, sizeof(request), 0) > 0) {
		snprintf(answer, sizeof(answer), "%010u\n", work((uint32_t)request[0]));
		if (send(fd, answer, strlen(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "0")),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, client;

	signal(SIGTERM, quit);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 256)) {
		perror("listen");
		return 1;
	}
	while ((client = accept(fd, NULL, NULL)) >= 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client))
			return 1;
		pthread_detach(thread);
	}
	return 1;
}
