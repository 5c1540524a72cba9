/*
 * A client for servers that are measured: some connections, on each one request at a time.
 *
 *   bench-daemons_client PROTOCOL PORT CONNECTIONS REQUESTS [PIDS]
 *
 * PROTOCOL is redis, memcached or http. Of ten requests to redis and memcached one stores a
 * value of 64 bytes and nine read it; to an HTTP server all are GET /. A tenth of REQUESTS
 * goes first and is not measured. PIDS (separated by commas) are the processes of the
 * server: the CPU time of all their threads is read before and after what is measured.
 * Prints
 *
 *   answered N        requests that were measured
 *   wall_ns N         from the first to the last of them
 *   p50_ns N          latency, from just before the write of the request to its whole answer
 *   p99_ns N
 *   cpu_ns N          of PIDS
 *
 * With REQUESTS 0 it goes on until the server is gone or SIGTERM comes, and prints
 * "answered N" of all: requests whose whole answer was read.
 */
#include <arpa/inet.h>
#include <dirent.h>
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

#define CONNECTIONS_MAX 256
#define ANSWER_MAX 4096
#define VALUE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct connection {
	int fd;
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

static void connect_to(struct connection *c, int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int one = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		fail("connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* 0, or -1: the server is gone. */
static int send_request(struct connection *c)
{
	const char *text = c->number++ % 10 ? protocol->fetch : protocol->store;
	size_t size = strlen(text);

	c->got = 0;
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

/* -------------------------------------------------------------- CPU time */

static uint64_t threads_cpu_ns(long pid)
{
	char path[320];
	struct dirent *entry;
	uint64_t all = 0, ns;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	folder = opendir(path);
	if (!folder)
		fail(path);
	while ((entry = readdir(folder))) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/task/%s/schedstat", pid, entry->d_name);
		file = fopen(path, "re");
		if (!file || fscanf(file, "%lu", &ns) != 1)
			fail(path);
		all += ns;
		fclose(file);
	}
	closedir(folder);
	return all;
}

/* Of all processes in a list such as "12,13". */
static uint64_t cpu_ns(const char *pids)
{
	uint64_t all = 0;
	char *end;

	while (*pids) {
		all += threads_cpu_ns(strtol(pids, &end, 10));
		pids = *end == ',' ? end + 1 : "";
	}
	return all;
}

/* ------------------------------------------------------------ measuring */

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

struct run {
	uint64_t warm, wanted; /* wanted 0: no end */
	uint64_t answered;     /* with those that are not measured */
	uint64_t *latency;
	const char *pids;
	uint64_t cpu, began, ended;
};

/* One more answer. 1: that was the last. */
static int count_answer(struct run *r, const struct connection *c)
{
	uint64_t now = now_ns();

	r->answered++;
	if (!r->wanted)
		return 0;
	if (r->answered == r->warm) {
		r->cpu = cpu_ns(r->pids);
		r->began = now_ns();
	} else if (r->answered > r->warm) {
		r->latency[r->answered - r->warm - 1] = now - c->sent_ns;
	}
	if (r->answered < r->warm + r->wanted)
		return 0;
	r->ended = now;
	r->cpu = cpu_ns(r->pids) - r->cpu;
	return 1;
}

static void turn(struct run *r, int epoll)
{
	struct epoll_event events[CONNECTIONS_MAX];

	while (!stopped) {
		int n = epoll_wait(epoll, events, CONNECTIONS_MAX, -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			int whole = read_answer(c);

			if (whole > 0 && count_answer(r, c))
				return;
			if (whole < 0 || (whole && send_request(c) < 0))
				return;
		}
	}
}

static void report(struct run *r)
{
	if (!r->wanted) {
		printf("answered %lu\n", r->answered);
		return;
	}
	if (r->answered != r->warm + r->wanted) {
		fprintf(stderr, "bench-daemons_client: the server is gone\n");
		exit(1);
	}
	qsort(r->latency, r->wanted, sizeof(*r->latency), by_size);
	printf("answered %lu\nwall_ns %lu\np50_ns %lu\np99_ns %lu\ncpu_ns %lu\n", r->wanted,
	       r->ended - r->began, r->latency[r->wanted / 2], r->latency[r->wanted * 99 / 100],
	       r->cpu);
}

int main(int argc, char **argv)
{
	struct run r = {.pids = argc > 5 ? argv[5] : ""};
	int count = argc > 3 ? atoi(argv[3]) : 0;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (size_t i = 0; argc > 1 && i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (strcmp(argv[1], protocols[i].name) == 0)
			protocol = &protocols[i];
	if (argc < 5 || !protocol || count < 1 || count > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: %s redis|memcached|http PORT CONNECTIONS REQUESTS [PIDS]\n",
			argv[0]);
		return 2;
	}
	r.wanted = strtoul(argv[4], NULL, 10);
	r.warm = r.wanted / 10 + 1;
	r.latency = calloc(r.wanted + 1, sizeof(*r.latency));
	if (!r.latency || epoll < 0)
		fail("cannot begin");
	signal(SIGTERM, stop);
	for (int i = 0; i < count; i++) {
		struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = &connections[i]};

		connect_to(&connections[i], atoi(argv[2]));
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &wanted))
			fail("epoll_ctl");
	}
	for (int i = 0; i < count; i++)
		if (send_request(&connections[i]))
			fail("send");
	turn(&r, epoll);
	report(&r);
	return 0;
}
