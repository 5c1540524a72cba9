/*
 * A client for servers that are measured: some connections to each, on each one request at a
 * time.
 *
 *   bench-daemons_client PROTOCOL CONNECTIONS PORT
 *   bench-daemons_client PROTOCOL CONNECTIONS BLOCKS SEED PORT PID FILE [PORT PID FILE]
 *
 * PROTOCOL is redis, memcached or http. Of ten requests to redis and memcached one stores a
 * value of 64 bytes and nine read it; to an HTTP server all are GET /.
 *
 * With a PORT alone it goes on until the server is gone or SIGTERM comes, and prints "answered
 * N": requests whose whole answer was read.
 *
 * With BLOCKS it measures that many blocks of intervals (daemons_switch.c): in some a server records,
 * in others it is paused; one server has the load at a time. SEED gives the order and the
 * lengths. PID is the process that answers, FILE what its probe shares with us (daemons_probe.h).
 * Prints
 *
 *   interval BLOCK SERVER KIND ANSWERED CPU_NS WALL_NS STATE
 *                           each, in their order; SERVER 0 or 1, KIND recording or paused,
 *                           STATE what tacho_status() said, 0 without hooks
 *   p99_ns SERVER KIND N    from just before the write of a request to its whole answer
 *   overwritten SERVER N    records that made room for newer ones
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemons_switch.h"

#define CONNECTIONS_MAX 256 /* to all servers */
#define ANSWER_MAX 4096
#define VALUE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct connection {
	int fd;
	int server;
	int waiting;	 /* for an answer */
	uint64_t number; /* of its requests */
	uint64_t sent_ns;
	size_t got;
	char answer[ANSWER_MAX];
};

struct protocol {
	const char *name;
	const char *store, *fetch; /* requests */
	int (*whole)(const char *answer, size_t size);
};

static struct connection connections[CONNECTIONS_MAX];
static int connected;
static const struct protocol *protocol;
static volatile sig_atomic_t stopped;

static void fail(const char *what)
{
	fprintf(stderr, "bench-daemons_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ------------------------------------------------------------- protocols */

static int ends_with(const char *answer, size_t size, const char *end)
{
	size_t n = strlen(end);

	return size >= n && memcmp(answer + size - n, end, n) == 0;
}

static int redis_whole(const char *answer, size_t size)
{
	if (!ends_with(answer, size, "\r\n"))
		return 0;
	return answer[0] != '$' || size > sizeof(VALUE);
}

static int memcached_whole(const char *answer, size_t size)
{
	return ends_with(answer, size, "STORED\r\n") || ends_with(answer, size, "END\r\n");
}

static int http_whole(const char *answer, size_t size)
{
	const char *body = memmem(answer, size, "\r\n\r\n", 4);
	const char *length = memmem(answer, size, "Content-Length: ", 16);

	return body && length &&
	       size >= (size_t)(body + 4 - answer) + strtoul(length + 16, NULL, 10);
}

static const struct protocol protocols[] = {
	{"redis", "*3\r\n$3\r\nSET\r\n$5\r\nbench\r\n$64\r\n" VALUE "\r\n",
	 "*2\r\n$3\r\nGET\r\n$5\r\nbench\r\n", redis_whole},
	{"memcached", "set bench 0 0 64\r\n" VALUE "\r\n", "get bench\r\n", memcached_whole},
	{"http", "GET / HTTP/1.1\r\nHost: bench\r\n\r\n", "GET / HTTP/1.1\r\nHost: bench\r\n\r\n",
	 http_whole},
};

/* ----------------------------------------------------------- connections */

static void connect_to(int port, int server, int epoll)
{
	struct connection *c = &connections[connected];
	struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = c};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1;

	errno = E2BIG;
	if (++connected > CONNECTIONS_MAX)
		fail("connect");
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		fail("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &wanted))
		fail("epoll_ctl");
	c->server = server;
}

/* 0, or -1: the server is gone. */
static int send_request(struct connection *c)
{
	const char *text = c->number++ % 10 ? protocol->fetch : protocol->store;
	size_t size = strlen(text);

	c->got = 0;
	c->waiting = 1;
	c->sent_ns = now_ns();
	return send(c->fd, text, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

/* 1: the answer is whole; 0: not yet; -1: the server is gone. */
static int read_answer(struct connection *c)
{
	ssize_t n = recv(c->fd, c->answer + c->got, sizeof(c->answer) - c->got, 0);

	if (n <= 0)
		return -1;
	c->got += (size_t)n;
	return protocol->whole(c->answer, c->got);
}

/* ------------------------------------------------------------------ load */

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* All connections to a server, when it has its turn. */
static void send_all(int server)
{
	for (int i = 0; i < connected; i++)
		if (connections[i].server == server && !connections[i].waiting &&
		    send_request(&connections[i]))
			fail("send");
}

/* Until all is measured or the server is gone; how many requests were answered. */
static uint64_t load(struct switchback *s, int epoll)
{
	int asked = s ? switchback_begin(s, now_ns()) : 0;
	struct epoll_event events[CONNECTIONS_MAX];
	uint64_t answered = 0;

	send_all(asked);
	while (!stopped) {
		int n = epoll_wait(epoll, events, CONNECTIONS_MAX, -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			int whole = read_answer(c), before = asked;

			if (whole < 0)
				return answered;
			if (!whole)
				continue;
			answered++;
			c->waiting = 0;
			if (s)
				asked = switchback_answer(s, c->server, now_ns(), c->sent_ns);
			if (asked < 0)
				return answered;
			if (asked != before)
				send_all(asked);
			else if (c->server == asked && send_request(c))
				return answered;
		}
	}
	return answered;
}

static int usage(const char *name)
{
	fprintf(stderr,
		"usage: %s redis|memcached|http CONNECTIONS PORT\n"
		"       %s redis|memcached|http CONNECTIONS BLOCKS SEED PORT PID FILE "
		"[PORT PID FILE]\n",
		name, name);
	return 2;
}

int main(int argc, char **argv)
{
	int measures = argc > 4, first = measures ? 5 : 3, step = measures ? 3 : 1;
	int count = argc > 2 ? atoi(argv[2]) : 0;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct switchback *s = NULL;
	uint64_t answered;

	for (size_t i = 0; argc > 1 && i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (strcmp(argv[1], protocols[i].name) == 0)
			protocol = &protocols[i];
	if (argc <= first || (argc - first) % step || !protocol || count < 1)
		return usage(argv[0]);
	if (epoll < 0)
		fail("epoll_create1");
	if (measures)
		s = switchback_new((unsigned)atoi(argv[3]), strtoul(argv[4], NULL, 10));
	for (int i = 0, at = first; at < argc; i++, at += step) {
		if (s)
			switchback_add(s, atoi(argv[at + 1]), argv[at + 2]);
		for (int n = 0; n < count; n++)
			connect_to(atoi(argv[at]), i, epoll);
	}
	signal(SIGTERM, stop);
	answered = load(s, epoll);
	if (s)
		switchback_report(s);
	else
		printf("answered %lu\n", answered);
	return 0;
}
