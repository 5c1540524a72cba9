/*
 * The faults, each in a function of its own, whose name is what a report has to say. Built twice:
 * with functions that stay functions, and with all of them inlined into their callers.
 */
#include "truth.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static uint64_t next_due;
static int ask[2], answer[2], journal[2];
int leak_set = -1;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t result_ready = PTHREAD_COND_INITIALIZER;
static int result, ended;
static pthread_mutex_t rooms[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

int fault_is(const char *name)
{
	return !strcmp(options.fault, name);
}

/* ------------------------------------------------- when they are due, in a callback */

FAULT fault_sleep(void)
{
	SLEEP(options.size_ns);
	STAY;
}

FAULT fault_pipe(void)
{
	char c = 'q';

	must(write(ask[1], &c, 1) == 1 && read(answer[0], &c, 1) == 1, "pipe");
	STAY;
}

/* A log whose reader is slow. */
FAULT fault_write(void)
{
	static char line[65536];

	must(write(ask[1], line, sizeof(line)) == sizeof(line), "pipe");
	STAY;
}

FAULT fault_poll(void)
{
	struct pollfd p = {.fd = answer[0], .events = POLLIN};

	poll(&p, 1, (int)((options.size_ns + MS - 1) / MS));
	STAY;
}

FAULT fault_fsync(void)
{
	static char block[65536];
	uint64_t begin;

	for (uint64_t i = 0; i < options.size_ns / MS; i++)
		must(pwrite(journal[0], block, sizeof(block), (off_t)(i * sizeof(block))) > 0,
		     "pwrite");
	begin = now_ns();
	fdatasync(journal[0]);
	note("fault_fsync", begin, now_ns());
}

FAULT fault_cpu(void)
{
	COMPUTE(options.size_ns);
	STAY;
}

FAULT fault_condition(void)
{
	char c = 'q';

	pthread_mutex_lock(&result_lock);
	result = 0;
	must(write(ask[1], &c, 1) == 1, "pipe");
	while (!result)
		pthread_cond_wait(&result_ready, &result_lock);
	pthread_mutex_unlock(&result_lock);
	STAY;
}

FAULT fault_child(void)
{
	char text[32], name[] = "sleep";
	char *argv[] = {name, text, NULL};
	uint64_t begin;
	int status;
	pid_t pid;

	snprintf(text, sizeof(text), "%.3f", (double)options.size_ns / 1e9);
	must(!posix_spawnp(&pid, name, NULL, NULL, argv, environ), "posix_spawn");
	begin = now_ns();
	waitpid(pid, &status, 0);
	note("fault_child", begin, now_ns());
}

/* -------------------------------------------------------------- in each request */

FAULT fault_wants_lock(void)
{
	uint64_t begin = now_ns(), got;

	pthread_mutex_lock(&table_lock);
	got = now_ns();
	pthread_mutex_unlock(&table_lock);
	if (got - begin > MS / 10)
		note("fault_wants_lock", begin, got);
}

FAULT fault_flock(void)
{
	uint64_t begin = now_ns(), got;

	flock(journal[0], LOCK_EX);
	got = now_ns();
	flock(journal[0], LOCK_UN);
	if (got - begin > MS / 10)
		note("fault_flock", begin, got);
}

FAULT fault_saturate(void)
{
	uint64_t begin = now_ns();

	COMPUTE(options.size_ns);
	note("fault_saturate", begin, now_ns());
}

FAULT fault_fd_leak(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t now = now_ns();

	/* The limit of descriptors is not what is tested. */
	if (fd >= 0 && leak_set >= 0 && !epoll_ctl(leak_set, EPOLL_CTL_ADD, fd, &e))
		note("fault_fd_leak", now, now);
	STAY;
}

/* ------------------------------------------------------------ in other places */

FAULT fault_pool_sleep(void)
{
	SLEEP(options.size_ns);
	STAY;
}

FAULT fault_timer(void)
{
	COMPUTE(options.size_ns);
	STAY;
}

FAULT fault_flood(void)
{
	COMPUTE(options.size_ns);
	STAY;
}

void pool_job(void)
{
	uint64_t begin = now_ns();

	fault_pool_sleep();
	note("fault_pool_sleep", begin, now_ns());
}

void timer_job(void)
{
	uint64_t begin = now_ns();

	fault_timer();
	note("fault_timer", begin, now_ns());
}

void flood_job(void)
{
	uint64_t begin = now_ns();

	fault_flood();
	note("fault_flood", begin, now_ns());
}

/* ---------------------------------------------------------- from which none comes back */

FAULT fault_hang(void)
{
	int p[2];
	char c;

	must(!pipe2(p, O_CLOEXEC) && read(p[0], &c, 1) < 0, "hang");
	STAY;
}

FAULT fault_spin(void)
{
	for (;;)
		COMPUTE(MS);
}

FAULT fault_deadlock(void)
{
	pthread_mutex_lock(&rooms[0]);
	SLEEP(30 * MS);
	pthread_mutex_lock(&rooms[1]);
	STAY;
}

FAULT other_side(void)
{
	pthread_mutex_lock(&rooms[1]);
	SLEEP(30 * MS);
	pthread_mutex_lock(&rooms[0]);
	STAY;
}

static void *other_room(void *arg)
{
	other_side();
	return arg;
}

static void end_fault(void)
{
	uint64_t now = now_ns();
	pthread_t thread;

	note(fault_is("hang")	? "fault_hang"
	     : fault_is("spin") ? "fault_spin"
				: "fault_deadlock",
	     now, now);
	write_truth();
	if (fault_is("hang"))
		fault_hang();
	else if (fault_is("spin"))
		fault_spin();
	else {
		must(!pthread_create(&thread, NULL, other_room, NULL), "pthread_create");
		fault_deadlock();
	}
}

/* --------------------------------------------------------------------- helpers */

FAULT keeps_lock_asleep(void)
{
	pthread_mutex_lock(&table_lock);
	SLEEP(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

FAULT keeps_lock_computing(void)
{
	pthread_mutex_lock(&table_lock);
	COMPUTE(options.size_ns);
	pthread_mutex_unlock(&table_lock);
	STAY;
}

FAULT keeps_journal(void)
{
	flock(journal[1], LOCK_EX);
	SLEEP(options.size_ns);
	flock(journal[1], LOCK_UN);
	STAY;
}

static void *keeper(void *arg)
{
	SLEEP(options.period_ns / 2);
	while (!over()) {
		if (fault_is("lock-sleep"))
			keeps_lock_asleep();
		else if (fault_is("lock-cpu"))
			keeps_lock_computing();
		else
			keeps_journal();
		SLEEP(options.period_ns > options.size_ns ? options.period_ns - options.size_ns
							  : MS);
	}
	return arg;
}

/* The pipe is full but for one byte, until its reader has slept. */
static void *reads_log(void *arg)
{
	static char text[65536];
	char c = 0;

	must(write(ask[1], &c, 1) == 1, "pipe");
	for (;;) {
		struct pollfd p = {.fd = ask[0], .events = POLLIN};
		int there = 0;

		/* More than that byte means that somebody is writing. */
		poll(&p, 1, -1);
		while (!ioctl(ask[0], FIONREAD, &there) && there < 2)
			SLEEP(MS / 5);
		SLEEP(options.size_ns);
		for (ssize_t left = sizeof(text); left > 0;)
			left -= read(ask[0], text, (size_t)left);
	}
	return arg;
}

static void *answers(void *arg)
{
	char c;

	while (read(ask[0], &c, 1) == 1) {
		SLEEP(options.size_ns);
		if (fault_is("pipe")) {
			must(write(answer[1], &c, 1) == 1, "pipe");
			continue;
		}
		pthread_mutex_lock(&result_lock);
		result = 1;
		pthread_cond_signal(&result_ready);
		pthread_mutex_unlock(&result_lock);
	}
	return arg;
}

void start_helpers(void)
{
	char path[] = "journal-XXXXXX";
	pthread_t thread;

	must(!pipe2(ask, O_CLOEXEC) && !pipe2(answer, O_CLOEXEC), "pipe");
	journal[0] = mkostemp(path, O_CLOEXEC);
	journal[1] = open(path, O_RDWR | O_CLOEXEC);
	must(journal[0] >= 0 && journal[1] >= 0 && !unlink(path), path);
	/* The table of descriptors grows now: with threads, that takes long enough to be a fault. */
	if (fault_is("fd-leak"))
		close(fcntl(journal[0], F_DUPFD_CLOEXEC, 4096));
	if (fault_is("lock-sleep") || fault_is("lock-cpu") || fault_is("flock"))
		must(!pthread_create(&thread, NULL, keeper, NULL), "pthread_create");
	if (fault_is("write"))
		must(!pthread_create(&thread, NULL, reads_log, NULL), "pthread_create");
	if (fault_is("pipe") || fault_is("condition"))
		must(!pthread_create(&thread, NULL, answers, NULL), "pthread_create");
}

/* --------------------------------------------------------------------- a request */

/* A jump, where the compiler makes one of it. */
#define TAIL(name)                                                  \
	static __attribute__((noinline)) void tail_to_##name(void)  \
	{                                                           \
		__atomic_fetch_add(&next_due, 0, __ATOMIC_RELAXED); \
		name();                                             \
	}                                                           \
	static __attribute__((noinline)) void call_##name(void)     \
	{                                                           \
		name();                                             \
		STAY;                                               \
	}

TAIL(fault_sleep)
TAIL(fault_pipe)
TAIL(fault_write)
TAIL(fault_poll)
TAIL(fault_fsync)
TAIL(fault_cpu)
TAIL(fault_condition)
TAIL(fault_child)
TAIL(fault_wants_lock)
TAIL(fault_flock)
TAIL(fault_saturate)
TAIL(fault_fd_leak)

struct fault {
	const char *option;
	const char *function; /* NULL: it notes by itself what it meets */
	void (*call)(void), (*tail)(void);
	int each; /* request */
};

static const struct fault faults[] = {
	{"sleep", "fault_sleep", call_fault_sleep, tail_to_fault_sleep, 0},
	{"pipe", "fault_pipe", call_fault_pipe, tail_to_fault_pipe, 0},
	{"write", "fault_write", call_fault_write, tail_to_fault_write, 0},
	{"poll", "fault_poll", call_fault_poll, tail_to_fault_poll, 0},
	{"fsync", NULL, call_fault_fsync, tail_to_fault_fsync, 0},
	{"cpu", "fault_cpu", call_fault_cpu, tail_to_fault_cpu, 0},
	{"condition", "fault_condition", call_fault_condition, tail_to_fault_condition, 0},
	{"child", NULL, call_fault_child, tail_to_fault_child, 0},
	{"lock-sleep", NULL, call_fault_wants_lock, tail_to_fault_wants_lock, 1},
	{"lock-cpu", NULL, call_fault_wants_lock, tail_to_fault_wants_lock, 1},
	{"flock", NULL, call_fault_flock, tail_to_fault_flock, 1},
	{"saturate", NULL, call_fault_saturate, tail_to_fault_saturate, 1},
	{"fd-leak", NULL, call_fault_fd_leak, tail_to_fault_fd_leak, 1},
};

/* Whether this thread is the one that meets it now. */
static int due(uint64_t now)
{
	uint64_t at = __atomic_load_n(&next_due, __ATOMIC_RELAXED);

	if (!at)
		return __atomic_compare_exchange_n(&next_due, &at, now + options.period_ns / 2, 0,
						   __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		       0;
	/* The next is counted from the end of this one, some earlier and some later. */
	return now >= at && __atomic_compare_exchange_n(&next_due, &at, UINT64_MAX, 0,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void run_due(const struct fault *f)
{
	uint64_t begin = now_ns(), end, pause, ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	(options.tail ? f->tail : f->call)();
	ran = clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran;
	end = now_ns();
	if (f->function)
		note_ran(f->function, begin, end, ran);
	pause = options.period_ns > options.size_ns ? options.period_ns - options.size_ns : MS;
	pause = pause * (700 + (begin / 1000 + options.seed) % 600) / 1000;
	__atomic_store_n(&next_due, end + pause, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void healthy_work(void)
{
	COMPUTE(options.work_us * 1000);
	STAY;
}

void serve_request(void)
{
	uint64_t begin = now_ns();

	healthy_work();
	note_healthy(now_ns() - begin);
	if (ends_badly() && now_ns() >= end_ns() &&
	    !__atomic_exchange_n(&ended, 1, __ATOMIC_RELAXED))
		end_fault();
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		const struct fault *f = &faults[i];

		if (!fault_is(f->option))
			continue;
		if (f->each)
			(options.tail ? f->tail : f->call)();
		else if (due(begin))
			run_due(f);
	}
}
