/*
 * Asks a server at a rate, or as fast as it answers, and tells what each request took.
 *
 *	servers-client PORT REQUEST ANSWER-BYTES SECONDS RATE CONNECTIONS
 *	servers-client PORT REQUEST ANSWER-BYTES - - CONNECTIONS
 *
 * REQUEST is a file. ANSWER-BYTES 0: each request has a connection of its own, and its answer ends
 * with that. RATE 0: each connection asks again when it is answered.
 * A request is counted from when it is sent; where all connections are busy, from when it was due.
 * With "-" it reads lines of SECONDS and RATE, and asks so each time, on the same connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_REQUESTS 4000000u
#define MAX_CONNECTIONS 256
#define SETTLE_NS 200000000u /* for answers that are under way at the end */
#define MS 1000000u

static struct connection {
	int fd;
	uint64_t since; /* 0: free */
	size_t left;	/* of the answer */
} connections[MAX_CONNECTIONS];
static struct sockaddr_in address = {.sin_family = AF_INET};
static char request[65536];
static size_t request_size, answer_size;
static uint64_t *took, answered, asked, failed, seed = 1;
static uint64_t next_due, end;
static double rate;
static int set, waits_for_free;

static void must(int good, const char *text)
{
	if (good)
		return;
	perror(text);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t pause_ns(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint64_t)(-log(((double)(seed >> 11) + 0.5) / 9007199254740992.0) * 1e9 / rate);
}

static void open_connection(struct connection *c)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(c->fd >= 0, "socket");
	must(!connect(c->fd, (struct sockaddr *)&address, sizeof(address)), "connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	must(!fcntl(c->fd, F_SETFL, O_NONBLOCK), "fcntl");
	must(!epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &e), "epoll_ctl");
}

static void ask(struct connection *c, uint64_t since)
{
	c->since = since ? since : now_ns();
	c->left = answer_size;
	asked++;
	if (!answer_size)
		open_connection(c);
	must(send(c->fd, request, request_size, MSG_NOSIGNAL) == (ssize_t)request_size, "send");
}

static void is_answered(struct connection *c)
{
	if (answered < MAX_REQUESTS)
		took[answered++] = now_ns() - c->since;
	c->since = 0;
	if (!answer_size)
		close(c->fd);
	if (!rate && now_ns() < end)
		ask(c, 0);
}

static void receive(struct connection *c)
{
	static char buffer[262144];
	ssize_t n = recv(c->fd, buffer, sizeof(buffer), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (answer_size ? n <= 0 || (size_t)n > c->left : n < 0) {
		failed++;
		must(answer_size == 0, "recv");
	}
	c->left -= answer_size ? (size_t)n : 0;
	if (answer_size ? !c->left : n <= 0)
		is_answered(c);
}

static void ask_due(int count, uint64_t now)
{
	for (int i = 0; next_due <= now; i++) {
		if (i == count) {
			waits_for_free = 1;
			return;
		}
		if (connections[i].since)
			continue;
		ask(&connections[i], waits_for_free ? next_due : 0);
		waits_for_free = 0;
		next_due += pause_ns();
	}
}

static void run(int count)
{
	struct epoll_event ready[MAX_CONNECTIONS];
	uint64_t now;

	while ((now = now_ns()) < end + SETTLE_NS && (now < end || answered + failed < asked)) {
		struct timespec t = {.tv_nsec = 20 * MS};
		int n;

		if (rate && now < end)
			ask_due(count, now);
		if (rate && next_due > now && next_due < now + (uint64_t)t.tv_nsec)
			t.tv_nsec = (long)(next_due - now);
		n = epoll_pwait2(set, ready, MAX_CONNECTIONS, &t, NULL);
		for (int i = 0; i < n; i++)
			receive(ready[i].data.ptr);
	}
	for (int i = 0; i < count; i++)
		if (connections[i].since && answered < MAX_REQUESTS)
			took[answered++] = now_ns() - connections[i].since;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void tell(double seconds)
{
	uint64_t least, waited = 0;

	qsort(took, answered, sizeof(*took), by_value);
	least = took[answered / 20];
	for (uint64_t i = 0; i < answered; i++)
		waited += took[i] > least + MS ? took[i] - least : 0;
	printf("{\"answered\": %llu, \"failed\": %llu, \"rate\": %.1f, \"p50_ns\": %llu, "
	       "\"p99_ns\": %llu, \"max_ns\": %llu, \"waited_ns\": %llu}\n",
	       (unsigned long long)answered, (unsigned long long)failed, (double)answered / seconds,
	       (unsigned long long)took[answered / 2],
	       (unsigned long long)took[answered - 1 - answered / 100],
	       (unsigned long long)took[answered - 1], (unsigned long long)waited);
}

static void load(double seconds, int count)
{
	answered = asked = failed = 0;
	waits_for_free = 0;
	next_due = now_ns();
	end = next_due + (uint64_t)(seconds * 1e9);
	for (int i = 0; i < count && !rate; i++)
		ask(&connections[i], 0);
	run(count);
	must(answered > 0, "answers");
	tell(seconds);
}

/* What is not answered at the end of one load would be counted in the next. */
static void load_by_lines(int count)
{
	double seconds;

	while (scanf("%lf %lf", &seconds, &rate) == 2) {
		load(seconds, count);
		fflush(stdout);
		for (int i = 0; i < count; i++)
			must(!connections[i].since, "answers are missing");
	}
}

int main(int argc, char **argv)
{
	FILE *f = argc == 7 ? fopen(argv[2], "re") : NULL;
	int count = argc == 7 ? atoi(argv[6]) : 0;

	must(f && count > 0 && count <= MAX_CONNECTIONS, "arguments");
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	request_size = fread(request, 1, sizeof(request), f);
	fclose(f);
	answer_size = (size_t)atol(argv[3]);
	took = calloc(MAX_REQUESTS, sizeof(*took));
	set = epoll_create1(EPOLL_CLOEXEC);
	must(took && set >= 0 && request_size, "begin");
	for (int i = 0; i < count && answer_size; i++)
		open_connection(&connections[i]);
	if (argv[4][0] == '-') {
		load_by_lines(count);
		return 0;
	}
	rate = atof(argv[5]);
	load(atof(argv[4]), count);
	return 0;
}
