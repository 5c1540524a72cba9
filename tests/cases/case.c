#include "case.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

volatile uint64_t case_sink;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t case_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t case_end(double seconds)
{
	return case_now() + (uint64_t)(seconds * 1e9);
}

static void compute(uint64_t rounds)
{
	uint64_t sum = case_sink;

	for (uint64_t i = 0; i < rounds; i++)
		sum = sum * 31 + i;
	case_sink = sum;
}

/* The fastest of some tries, in CPU time: what others do on this machine does not count. */
uint64_t case_rounds_per_ms(void)
{
	static uint64_t known;
	const uint64_t rounds = 1000000;
	uint64_t best = UINT64_MAX;

	if (known)
		return known;
	for (int i = 0; i < 8; i++) {
		uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), ns;

		compute(rounds);
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		if (ns && ns < best)
			best = ns;
	}
	known = rounds * CASE_MS / best;
	return known;
}

void case_work(uint64_t us)
{
	compute(case_rounds_per_ms() * us / 1000);
}

void case_check(int what, const char *text)
{
	if (!what)
		return;
	perror(text);
	exit(1);
}

void case_pin(unsigned cpu)
{
	cpu_set_t all, one;
	int found = -1;

	CPU_ZERO(&one);
	case_check(sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			found = i;
			if (!cpu--)
				break;
		}
	CPU_SET(found, &one);
	case_check(sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

pid_t case_neighbour(double seconds)
{
	pid_t child = fork();
	uint64_t end = case_end(seconds);

	case_check(child < 0, "fork");
	while (!child) {
		case_work(1000);
		if (case_now() > end)
			_exit(0);
	}
	return child;
}

int case_listen(int backlog, uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	case_check(fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, backlog) ||
			   getsockname(fd, (struct sockaddr *)&a, &size),
		   "listen");
	*port = ntohs(a.sin_port);
	return fd;
}

int case_connect(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	case_check(fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)), "connect");
	return fd;
}

void case_killed_after(double seconds)
{
	pid_t parent = getpid(), child = fork();

	case_check(child < 0, "fork");
	if (child)
		return;
	usleep((unsigned)(seconds * 1e6));
	kill(parent, SIGKILL);
	_exit(0);
}
