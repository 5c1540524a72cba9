/*
 * What really happened: occurrences of the fault with wall, CPU and run-queue time, as the thread that
 * met it measured them, and the kernel's counts of all threads that serve. Written at the end.
 */
#include "truth.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_NOTES 200000

struct occurrence {
	const char *function;
	uint64_t begin, end;
	uint64_t ran, delayed; /* CPU time, and runnable without a CPU; 0: not asked for */
	int tid;
};

static struct occurrence notes[MAX_NOTES];
static unsigned noted;
static struct {
	int tid, helper, over;
	uint64_t ran, waited;
} serving[MAX_THREADS];
static unsigned servers;
static uint64_t throttled, longest_healthy, requests, delayed_before;
static int is_forked;

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

void forked(void)
{
	is_forked = 1;
	noted = servers = 0;
	delayed_before = 0;
	requests = longest_healthy = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
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

/* What all threads that there are waited for a CPU. */
static uint64_t all_delayed_ns(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t ran, waited, sum = 0;
	struct dirent *e;

	while (tasks && (e = readdir(tasks)))
		if (e->d_name[0] != '.') {
			schedstat(atoi(e->d_name), &ran, &waited);
			sum += waited;
		}
	if (tasks)
		closedir(tasks);
	return sum;
}

void start_notes(void)
{
	throttled = throttled_ns();
	delayed_before = all_delayed_ns();
}

static void count_thread(int helper)
{
	unsigned i = __atomic_fetch_add(&servers, 1, __ATOMIC_RELAXED);

	if (i >= MAX_THREADS)
		return;
	serving[i].tid = gettid();
	serving[i].helper = helper;
	serving[i].over = 0;
	schedstat(serving[i].tid, &serving[i].ran, &serving[i].waited);
}

void serving_thread(void)
{
	count_thread(0);
}

void helper_thread(void)
{
	count_thread(1);
}

static void count(unsigned i)
{
	uint64_t ran, waited;

	schedstat(serving[i].tid, &ran, &waited);
	/* Of a thread that has gone nothing is known. */
	serving[i].ran = ran > serving[i].ran ? ran - serving[i].ran : 0;
	serving[i].waited = waited > serving[i].waited ? waited - serving[i].waited : 0;
	serving[i].over = 1;
}

void served(void)
{
	for (unsigned i = 0; i < servers && i < MAX_THREADS; i++)
		if (serving[i].tid == gettid())
			count(i);
}

/* What the kernel let this thread wait for a CPU so far. Raw calls: hooks must not see them. */
static uint64_t run_delay_ns(void)
{
	static __thread int fd = -1, tid;
	char text[128];
	ssize_t n;

	/* After fork the descriptor would be that of the parent's thread. */
	if (fd < 0 || tid != gettid()) {
		if (fd >= 0)
			syscall(SYS_close, fd);
		tid = gettid();
		fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat",
				  O_RDONLY | O_CLOEXEC);
	}
	n = fd < 0 ? -1 : syscall(SYS_pread64, fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = 0;
	return strtoull(text + strcspn(text, " "), NULL, 10);
}

struct moment begin_moment(void)
{
	struct moment m = {.ran = clock_ns(CLOCK_THREAD_CPUTIME_ID)};

	m.delayed = run_delay_ns();
	m.at = now_ns();
	return m;
}

struct moment end_moment(void)
{
	struct moment m = {.at = now_ns()};

	m.delayed = run_delay_ns();
	m.ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return m;
}

static void keep(struct occurrence o)
{
	unsigned i = __atomic_fetch_add(&noted, 1, __ATOMIC_RELAXED);

	o.tid = gettid();
	if (i < MAX_NOTES)
		notes[i] = o;
}

void note(const char *function, uint64_t begin, uint64_t end)
{
	keep((struct occurrence){.function = function, .begin = begin, .end = end});
}

void note_between(const char *function, struct moment begin, struct moment end)
{
	keep((struct occurrence){.function = function,
				 .begin = begin.at,
				 .end = end.at,
				 .ran = end.ran - begin.ran,
				 .delayed = end.delayed - begin.delayed});
}

void note_healthy(uint64_t ns)
{
	uint64_t old = __atomic_load_n(&longest_healthy, __ATOMIC_RELAXED);

	__atomic_fetch_add(&requests, 1, __ATOMIC_RELAXED);
	while (ns > old && !__atomic_compare_exchange_n(&longest_healthy, &old, ns, 1,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void write_notes(FILE *f)
{
	unsigned many = noted < MAX_NOTES ? noted : MAX_NOTES;

	for (unsigned i = 0; i < servers && i < MAX_THREADS; i++) {
		if (!serving[i].over)
			count(i);
		fprintf(f, "{\"thread\":%d,\"helper\":%d,\"ran\":%llu,\"runnable\":%llu}\n",
			serving[i].tid, serving[i].helper, (unsigned long long)serving[i].ran,
			(unsigned long long)serving[i].waited);
	}
	for (unsigned i = 0; i < many; i++)
		fprintf(f,
			"{\"function\":\"%s\",\"begin\":%llu,\"end\":%llu,\"ran\":%llu,"
			"\"delayed\":%llu,\"tid\":%d}\n",
			notes[i].function, (unsigned long long)notes[i].begin,
			(unsigned long long)notes[i].end, (unsigned long long)notes[i].ran,
			(unsigned long long)notes[i].delayed, notes[i].tid);
}

void write_truth(void)
{
	uint64_t until = now_ns();
	char path[4096], last[4200];
	FILE *f;

	if (is_forked)
		snprintf(last, sizeof(last), "%s.%d", options.truth, getpid());
	else
		snprintf(last, sizeof(last), "%s", options.truth);
	snprintf(path, sizeof(path), "%s.new-%d", options.truth, getpid());
	f = fopen(path, "we");
	must(f != NULL, path);
	fprintf(f,
		"{\"pid\":%d,\"from\":%llu,\"to\":%llu,\"requests\":%llu,\"healthy\":%llu,"
		"\"throttled\":%llu,\"delayed\":%llu}\n",
		getpid(), (unsigned long long)(end_ns() - (uint64_t)(options.seconds * 1e9)),
		(unsigned long long)until, (unsigned long long)requests,
		(unsigned long long)longest_healthy,
		(unsigned long long)(throttled_ns() - throttled),
		(unsigned long long)(all_delayed_ns() - delayed_before));
	write_notes(f);
	must(!fclose(f) && !rename(path, last), last);
}
