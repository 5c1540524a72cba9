/* Options, clocks, and the listening socket that the client connects to. */
#include "truth.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct options options = {.shape = "epoll",
			  .fault = "healthy",
			  .truth = "truth.json",
			  .ready = "ready",
			  .queue = "tcp",
			  .front = "loop",
			  .supervisor = "none",
			  .seconds = 2,
			  .size_ns = 20 * MS,
			  .period_ns = 200 * MS,
			  .stop_ns = 1000 * MS,
			  .work_us = 50,
			  .threads = 2,
			  .many = 8,
			  .cpu = -1};

static uint64_t end;
volatile uint64_t sink;
uint64_t rounds_per_ms = 1000000; /* until it is measured */

uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

void must(int good, const char *text)
{
	if (good)
		return;
	perror(text);
	exit(1);
}

/* The fastest of some tries, in CPU time: what others do on this machine does not count. */
static void calibrate(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), ns;

		COMPUTE(MS);
		ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		if (ns && ns < best)
			best = ns;
	}
	rounds_per_ms = 1000000 * MS / best;
}

static void pin(void)
{
	cpu_set_t set;

	if (options.cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(options.cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static const struct {
	const char *name;
	const char **text; /* one of these */
	uint64_t *ms, *number;
	int *count;
	double *real;
} known[] = {
	{.name = "--shape", .text = &options.shape},
	{.name = "--fault", .text = &options.fault},
	{.name = "--truth", .text = &options.truth},
	{.name = "--ready", .text = &options.ready},
	{.name = "--queue", .text = &options.queue},
	{.name = "--front", .text = &options.front},
	{.name = "--supervisor", .text = &options.supervisor},
	{.name = "--cpu-stat", .text = &options.cpu_stat},
	{.name = "--seconds", .real = &options.seconds},
	{.name = "--size-ms", .ms = &options.size_ns},
	{.name = "--period-ms", .ms = &options.period_ns},
	{.name = "--stop-ms", .ms = &options.stop_ns},
	{.name = "--work-us", .number = &options.work_us},
	{.name = "--seed", .number = &options.seed},
	{.name = "--threads", .count = &options.threads},
	{.name = "--many", .count = &options.many},
	{.name = "--cpu", .count = &options.cpu},
	{.name = "--tail", .count = &options.tail},
};

static int set_option(const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(name, known[i].name))
			continue;
		if (known[i].text)
			*known[i].text = value;
		else if (known[i].ms)
			*known[i].ms = (uint64_t)(atof(value) * 1e6);
		else if (known[i].number)
			*known[i].number = strtoull(value, NULL, 10);
		else if (known[i].count)
			*known[i].count = atoi(value);
		else
			*known[i].real = atof(value);
		return 1;
	}
	return 0;
}

void parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2)
		if (!set_option(argv[i], argv[i + 1])) {
			fprintf(stderr, "there is no option %s\n", argv[i]);
			exit(2);
		}
	pin();
	must(options.threads > 0 && options.threads <= MAX_THREADS, "--threads");
	calibrate();
	start_notes();
}

int listen_and_tell(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char path[4096];
	FILE *f;

	must(fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 128) &&
		     !getsockname(fd, (struct sockaddr *)&a, &size),
	     "listen");
	snprintf(path, sizeof(path), "%s.new", options.ready);
	f = fopen(path, "we");
	must(f && fprintf(f, "%d %d\n", ntohs(a.sin_port), getpid()) > 0 && !fclose(f) &&
		     !rename(path, options.ready),
	     options.ready);
	return fd;
}

uint64_t end_ns(void)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(&end, &none, now_ns() + (uint64_t)(options.seconds * 1e9), 0,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return __atomic_load_n(&end, __ATOMIC_RELAXED);
}

int ends_badly(void)
{
	return fault_is("hang") || fault_is("spin") || fault_is("deadlock") ||
	       fault_is("hang-lock");
}

int over(void)
{
	return !ends_badly() && now_ns() >= end_ns();
}

int rhythm_stopped(void)
{
	return now_ns() + (uint64_t)(options.seconds * 1e9) >= end_ns() + options.stop_ns;
}
