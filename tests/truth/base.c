#include "truth.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_NOTES 200000

struct occurrence {
	const char *function;
	uint64_t begin, end;
	uint64_t ran; /* CPU time; 0: not asked for */
	int tid;
};

struct options options = {.shape = "epoll",
			  .fault = "healthy",
			  .truth = "truth.json",
			  .ready = "ready",
			  .seconds = 2,
			  .size_ns = 20 * MS,
			  .period_ns = 200 * MS,
			  .work_us = 50,
			  .threads = 2,
			  .cpu = -1};

static struct occurrence notes[MAX_NOTES];
static unsigned noted;
static struct {
	int tid, over;
	uint64_t ran, waited;
} serving[MAX_THREADS];
static unsigned servers;
static uint64_t throttled, end, longest_healthy, requests;
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

/* Of the cgroup, which counts each CPU by itself. 0 where it is not known. */
static uint64_t throttled_ns(void)
{
	unsigned long long value;
	char name[64];
	uint64_t ns = 0;
	FILE *f = options.cpu_stat ? fopen(options.cpu_stat, "re") : NULL;

	while (f && fscanf(f, "%63s %llu", name, &value) == 2)
		if (!strcmp(name, "throttled_time"))
			ns = value;
		else if (!strcmp(name, "throttled_usec"))
			ns = value * 1000;
	if (f)
		fclose(f);
	return ns;
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

void parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (!strcmp(name, "--shape"))
			options.shape = value;
		else if (!strcmp(name, "--fault"))
			options.fault = value;
		else if (!strcmp(name, "--truth"))
			options.truth = value;
		else if (!strcmp(name, "--ready"))
			options.ready = value;
		else if (!strcmp(name, "--seconds"))
			options.seconds = atof(value);
		else if (!strcmp(name, "--size-ms"))
			options.size_ns = (uint64_t)(atof(value) * 1e6);
		else if (!strcmp(name, "--period-ms"))
			options.period_ns = (uint64_t)(atof(value) * 1e6);
		else if (!strcmp(name, "--work-us"))
			options.work_us = (uint64_t)atoi(value);
		else if (!strcmp(name, "--threads"))
			options.threads = atoi(value);
		else if (!strcmp(name, "--cpu"))
			options.cpu = atoi(value);
		else if (!strcmp(name, "--cpu-stat"))
			options.cpu_stat = value;
		else if (!strcmp(name, "--tail"))
			options.tail = atoi(value);
		else if (!strcmp(name, "--seed"))
			options.seed = strtoull(value, NULL, 10);
		else {
			fprintf(stderr, "there is no option %s\n", name);
			exit(2);
		}
	}
	pin();
	must(options.threads > 0 && options.threads <= MAX_THREADS, "--threads");
	calibrate();
	throttled = throttled_ns();
}

static void schedstat(int tid, uint64_t *ran, uint64_t *waited)
{
	unsigned long long a = 0, b = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%llu %llu", &a, &b) != 2)
			a = b = 0;
		fclose(f);
	}
	*ran = a;
	*waited = b;
}

void serving_thread(void)
{
	unsigned i = __atomic_fetch_add(&servers, 1, __ATOMIC_RELAXED);

	if (i >= MAX_THREADS)
		return;
	serving[i].tid = gettid();
	schedstat(serving[i].tid, &serving[i].ran, &serving[i].waited);
}

static void count(unsigned i)
{
	uint64_t ran, waited;

	schedstat(serving[i].tid, &ran, &waited);
	serving[i].ran = ran - serving[i].ran;
	serving[i].waited = waited - serving[i].waited;
	serving[i].over = 1;
}

void served(void)
{
	for (unsigned i = 0; i < servers && i < MAX_THREADS; i++)
		if (serving[i].tid == gettid())
			count(i);
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

void note_ran(const char *function, uint64_t begin, uint64_t stop, uint64_t ran)
{
	unsigned i = __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED);

	if (i < MAX_NOTES)
		notes[i] = (struct occurrence){function, begin, stop, ran, gettid()};
}

void note(const char *function, uint64_t begin, uint64_t stop)
{
	note_ran(function, begin, stop, 0);
}

void note_healthy(uint64_t ns)
{
	uint64_t old = __atomic_load_n(&longest_healthy, __ATOMIC_RELAXED);

	__atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
	while (ns > old && !__atomic_compare_exchange_n(&longest_healthy, &old, ns, 1,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
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
	return fault_is("hang") || fault_is("spin") || fault_is("deadlock");
}

int over(void)
{
	return !ends_badly() && now_ns() >= end_ns();
}

void write_truth(void)
{
	unsigned many = noted < MAX_NOTES ? noted : MAX_NOTES;
	uint64_t until = now_ns();
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s.new", options.truth);
	f = fopen(path, "we");
	must(f != NULL, path);
	fprintf(f,
		"{\"pid\":%d,\"from\":%llu,\"to\":%llu,\"requests\":%llu,\"healthy\":%llu,"
		"\"throttled\":%llu}\n",
		getpid(), (unsigned long long)(end_ns() - (uint64_t)(options.seconds * 1e9)),
		(unsigned long long)until, (unsigned long long)requests,
		(unsigned long long)longest_healthy,
		(unsigned long long)(throttled_ns() - throttled));
	for (unsigned i = 0; i < servers && i < MAX_THREADS; i++) {
		if (!serving[i].over)
			count(i);
		fprintf(f, "{\"thread\":%d,\"ran\":%llu,\"runnable\":%llu}\n", serving[i].tid,
			(unsigned long long)serving[i].ran, (unsigned long long)serving[i].waited);
	}
	for (unsigned i = 0; i < many; i++)
		fprintf(f,
			"{\"function\":\"%s\",\"begin\":%llu,\"end\":%llu,\"ran\":%llu,"
			"\"tid\":%d}\n",
			notes[i].function, (unsigned long long)notes[i].begin,
			(unsigned long long)notes[i].end, (unsigned long long)notes[i].ran,
			notes[i].tid);
	must(!fclose(f) && !rename(path, options.truth), options.truth);
}
