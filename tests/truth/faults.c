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
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static uint64_t next_due;
static int ask[2], answer[2], journal;
int leak_set = -1;
static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t result_ready = PTHREAD_COND_INITIALIZER;
static int result, ended;

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
	struct moment begin;

	for (uint64_t i = 0; i < options.size_ns / MS; i++)
		must(pwrite(journal, block, sizeof(block), (off_t)(i * sizeof(block))) > 0,
		     "pwrite");
	begin = begin_moment();
	fdatasync(journal);
	note_between("fault_fsync", begin, end_moment());
}

FAULT fault_cpu(void)
{
	COMPUTE(fault_is("mixed") ? options.size_ns / 3 : options.size_ns);
	STAY;
}

/* Two faults in one program: both must be named. */
FAULT sleep_or_compute(void)
{
	static int turn;
	struct moment begin = begin_moment();

	if (turn++ % 2) {
		fault_cpu();
		note_between("fault_cpu", begin, end_moment());
	} else {
		fault_sleep();
		note_between("fault_sleep", begin, end_moment());
	}
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
	struct moment begin;
	int status;
	pid_t pid;

	snprintf(text, sizeof(text), "%.3f", (double)options.size_ns / 1e9);
	must(!posix_spawnp(&pid, name, NULL, NULL, argv, environ), "posix_spawn");
	begin = begin_moment();
	waitpid(pid, &status, 0);
	note_between("fault_child", begin, end_moment());
}

/* -------------------------------------------------------------- in each request */

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

/* A message of the flood is read here, not by who dispatches. */
static __attribute__((noinline)) ssize_t fault_flood_read(int fd)
{
	uint64_t message;
	ssize_t n = recv(fd, &message, sizeof(message), 0);

	COMPUTE(options.size_ns);
	return n;
}

/* It is called because there is something to read, and does not read it. */
FAULT fault_unread(void)
{
	COMPUTE(options.size_ns);
	STAY;
}

FAULT fault_takes_feed(void)
{
	COMPUTE(options.work_us * 1000);
	STAY;
}

FAULT fault_forgets_timer(void)
{
	COMPUTE(options.work_us * 1000);
	STAY;
}

void pool_job(void)
{
	struct moment begin = begin_moment();

	fault_pool_sleep();
	note_between("fault_pool_sleep", begin, end_moment());
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

ssize_t flood_read_job(int fd)
{
	uint64_t begin = now_ns();
	ssize_t n = fault_flood_read(fd);

	note("fault_flood_read", begin, now_ns());
	return n;
}

int unread_fd(void)
{
	int p[2];

	must(!pipe2(p, O_CLOEXEC | O_NONBLOCK) && write(p[1], "x", 1) == 1, "pipe");
	return p[0];
}

void unread_job(void)
{
	uint64_t begin = now_ns();

	fault_unread();
	note("fault_unread", begin, now_ns());
	STAY;
}

/* Of what has a rhythm, each beat is noted: the last one is the truth about when it stopped. */
void feed_job(void)
{
	uint64_t begin = now_ns();

	fault_takes_feed();
	note("fault_takes_feed", begin, now_ns());
}

int rhythm_job(void)
{
	uint64_t begin = now_ns();

	fault_forgets_timer();
	note("fault_forgets_timer", begin, now_ns());
	return !(fault_is("timer-stops") && rhythm_stopped());
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

static void end_fault(void)
{
	uint64_t now = now_ns();

	note(fault_is("hang")	    ? "fault_hang"
	     : fault_is("spin")	    ? "fault_spin"
	     : fault_is("deadlock") ? "fault_deadlock"
				    : "fault_reads_holding",
	     now, now);
	write_truth();
	if (fault_is("hang"))
		fault_hang();
	else if (fault_is("spin"))
		fault_spin();
	else if (fault_is("deadlock"))
		end_in_deadlock();
	else
		end_behind_reader();
}

/* --------------------------------------------------------------------- helpers */

/* The pipe is full but for one byte, until its reader has slept. */
static void *reads_log(void *arg)
{
	static char text[65536];
	char c = 0;

	helper_thread();
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

	helper_thread();
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
	journal = mkostemp(path, O_CLOEXEC);
	must(journal >= 0 && !unlink(path), path);
	/* The table of descriptors grows now: with threads, that takes long enough to be a fault. */
	if (fault_is("fd-leak"))
		close(fcntl(journal, F_DUPFD_CLOEXEC, 4096));
	if (fault_is("write"))
		must(!pthread_create(&thread, NULL, reads_log, NULL), "pthread_create");
	if (fault_is("pipe") || fault_is("condition"))
		must(!pthread_create(&thread, NULL, answers, NULL), "pthread_create");
	start_lock_helpers();
}

/* --------------------------------------------------------------------- a request */

TAIL(fault_sleep)
TAIL(fault_pipe)
TAIL(fault_write)
TAIL(fault_poll)
TAIL(fault_fsync)
TAIL(fault_cpu)
TAIL(sleep_or_compute)
TAIL(fault_condition)
TAIL(fault_child)
TAIL(fault_saturate)
TAIL(fault_fd_leak)

static const struct fault faults[] = {
	{"sleep", "fault_sleep", call_fault_sleep, tail_to_fault_sleep, 0},
	{"pipe", "fault_pipe", call_fault_pipe, tail_to_fault_pipe, 0},
	{"write", "fault_write", call_fault_write, tail_to_fault_write, 0},
	{"poll", "fault_poll", call_fault_poll, tail_to_fault_poll, 0},
	{"fsync", NULL, call_fault_fsync, tail_to_fault_fsync, 0},
	{"cpu", "fault_cpu", call_fault_cpu, tail_to_fault_cpu, 0},
	{"mixed", NULL, call_sleep_or_compute, tail_to_sleep_or_compute, 0},
	{"condition", "fault_condition", call_fault_condition, tail_to_fault_condition, 0},
	{"child", NULL, call_fault_child, tail_to_fault_child, 0},
	{"saturate", NULL, call_fault_saturate, tail_to_fault_saturate, 1},
	{"fd-leak", NULL, call_fault_fd_leak, tail_to_fault_fd_leak, 1},
	{NULL, NULL, NULL, NULL, 0},
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
	struct moment begin = begin_moment();
	uint64_t pause;

	(options.tail ? f->tail : f->call)();
	if (f->function)
		note_between(f->function, begin, end_moment());
	pause = options.period_ns > options.size_ns ? options.period_ns - options.size_ns : MS;
	pause = pause * (700 + (begin.at / 1000 + options.seed) % 600) / 1000;
	__atomic_store_n(&next_due, now_ns() + pause, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void healthy_work(void)
{
	COMPUTE(options.work_us * 1000);
	STAY;
}

static void meet(const struct fault *all, uint64_t now)
{
	for (const struct fault *f = all; f->option; f++) {
		if (!fault_is(f->option))
			continue;
		if (f->each)
			(options.tail ? f->tail : f->call)();
		else if (due(now))
			run_due(f);
	}
}

void serve_request(void)
{
	uint64_t begin = now_ns();

	healthy_work();
	note_healthy(now_ns() - begin);
	if (ends_badly() && now_ns() >= end_ns() &&
	    !__atomic_exchange_n(&ended, 1, __ATOMIC_RELAXED))
		end_fault();
	meet(faults, begin);
	meet(lock_faults, begin);
}
