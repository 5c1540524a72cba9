/*
 * A server whose threads serve one client each, and its clients: clients_subject HOW.
 *
 *	threads   a thread for each connection, which receives, asks a backend for 20 ms, and answers
 *	one       one thread, that accepts, and receives until that client is done
 *	unix      the same at a socket of AF_UNIX
 *	turns     one thread that polls for connections, and then accepts and serves all of them
 *	peeks     as threads, but looks whether there is something with MSG_DONTWAIT
 *	spins     as threads, of descriptors that do not block
 *	polls     as spins, but waits for the client with poll, and at its end until the others are done
 *	proxies   as polls, but polls two at a time
 *	epoll     one thread with a loop of epoll, that receives from one that blocks
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 3
#define REQUESTS 20

static const char *how;
static int listener, backend[2], done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static struct sockaddr_storage address = {.ss_family = AF_INET};
static socklen_t address_size = sizeof(struct sockaddr_in);

static int is(const char *name)
{
	return !strcmp(how, name);
}

static void must(int good)
{
	if (!good)
		abort();
}

__attribute__((noinline)) static void ask(void)
{
	struct timeval time = {.tv_usec = 20000};
	char c;

	must(!setsockopt(backend[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) &&
	     recv(backend[0], &c, 1, 0) < 0);
}

static int is_one(void)
{
	return is("one") || is("unix") || is("turns");
}

static int polls(void)
{
	return is("polls") || is("proxies");
}

/* 0: the client is done. */
static int receive(int fd)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = backend[1], .events = POLLIN}};
	char c;
	ssize_t n;

	must(!polls() || poll(p, is("polls") ? 1 : 2, -1) == 1);
	while ((n = recv(fd, &c, 1, is("peeks") ? MSG_DONTWAIT : 0)) < 0) {
		must(errno == EAGAIN);
		usleep(100);
	}
	if (n && c == 'a')
		ask();
	return n && send(fd, &c, 1, MSG_NOSIGNAL) == 1;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;

	while (receive(fd))
		;
	close(fd);
	pthread_mutex_lock(&lock);
	if (++done == CLIENTS)
		pthread_cond_broadcast(&all_done);
	while (polls() && done < CLIENTS)
		pthread_cond_wait(&all_done, &lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *watch(void *arg)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = (int)(intptr_t)arg};
	int set = epoll_create1(EPOLL_CLOEXEC);

	must(!epoll_ctl(set, EPOLL_CTL_ADD, e.data.fd, &e));
	while (epoll_wait(set, &e, 1, -1) == 1 && receive(e.data.fd))
		;
	return arg;
}

static void *accept_all(void *arg)
{
	struct pollfd p[2] = {{.fd = listener, .events = POLLIN}, {.fd = backend[1]}};
	pthread_t threads[CLIENTS];

	must(!is("turns") || poll(p, 2, -1) == 1);
	for (int i = 0; i < CLIENTS; i++) {
		int fd = accept(listener, NULL, NULL);

		must(fd >= 0 && (!(is("spins") || polls()) || !fcntl(fd, F_SETFL, O_NONBLOCK)));
		if (is_one())
			serve((void *)(intptr_t)fd);
		else
			must(!pthread_create(&threads[i], NULL, is("epoll") ? watch : serve,
					     (void *)(intptr_t)fd));
	}
	for (int i = 0; i < CLIENTS && !is_one(); i++)
		pthread_join(threads[i], NULL);
	return arg;
}

static void *use(void *arg)
{
	int fd = socket(address.ss_family, SOCK_STREAM, 0);
	char c;

	must(fd >= 0 && !connect(fd, (struct sockaddr *)&address, address_size));
	for (int i = 0; i < REQUESTS; i++) {
		usleep(30000);
		must(send(fd, i % 10 == 5 ? "a" : "b", 1, 0) == 1 && recv(fd, &c, 1, 0) == 1);
	}
	close(fd);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t server, clients[CLIENTS];

	how = argc > 1 ? argv[1] : "";
	alarm(60);
	/* Of AF_UNIX: without a name, the kernel gives it one. */
	if (is("unix")) {
		address.ss_family = AF_UNIX;
		address_size = sizeof(address.ss_family);
	} else {
		((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	listener = socket(address.ss_family, SOCK_STREAM, 0);
	must(listener >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, backend) &&
	     !bind(listener, (struct sockaddr *)&address, address_size) && !listen(listener, 8));
	address_size = sizeof(address);
	must(!getsockname(listener, (struct sockaddr *)&address, &address_size));
	must(!pthread_create(&server, NULL, accept_all, NULL));
	for (int i = 0; i < CLIENTS; i++)
		must(!pthread_create(&clients[i], NULL, use, NULL));
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	pthread_join(server, NULL);
	return 0;
}
