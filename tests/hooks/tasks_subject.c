/*
 * A runtime of tasks that says in tacho.h what it does: workers, a queue, 24 tasks of requests that
 * a client wakes every 10 ms, and a task with a fault every 480 ms.
 *
 *	tasks_subject FAULT WAIT WORKERS SECONDS
 *
 * FAULT: none; sleep, poll (in poll(2)), cpu: 80 ms in a poll; fault_holds and those named so: a task
 * holds a mutex for 60 ms that another one wants. WAIT: how a worker waits: cond, epoll and nap (in a sleep) between park and
 * unpark; packed: as cond, in the calls that say two things at once; bare: in epoll, and it says tacho_loop before the first one; late: after it; polls: on a
 * condition, and it says nothing but polls.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tacho.h"
#include "tasks_subject.h"

#define TASKS 24u
#define HOLDS TASKS	  /* the task with the fault */
#define WANTS (TASKS + 1) /* wants the lock that it holds */
#define ALL (TASKS + 2)
#define ROUND_MS 10
#define FAULT_EVERY_MS 480

static struct tacho_name request = TACHO_KIND("request");
static struct tacho_name faulty = TACHO_KIND("faulty");
static struct tacho_name wanting = TACHO_KIND("wanting");

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static unsigned queue[ALL], queued, first;
static int waiting[ALL]; /* suspended: it may be queued */
static uint64_t id[ALL];
static int over, set, signal_fd;
static const char *fault, *way;
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;

static void pause_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static uint64_t now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static __attribute__((noinline)) void fault_sleeps(void)
{
	pause_ms(80);
	__asm__ volatile("");
}

static __attribute__((noinline)) void fault_polls(void)
{
	poll(NULL, 0, 80);
	__asm__ volatile("");
}

static __attribute__((noinline)) void fault_computes(void)
{
	uint64_t end = now_ms(CLOCK_THREAD_CPUTIME_ID) + 80;

	while (now_ms(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 20000; i++)
			;
}

static __attribute__((noinline)) void fault_holds(void)
{
	pthread_mutex_lock(&shared);
	pause_ms(60);
	pthread_mutex_unlock(&shared);
	__asm__ volatile("");
}

/* The same, but it ends with a jump. */
static __attribute__((noinline)) void fault_holds_tail(void)
{
	pthread_mutex_lock(&shared);
	pause_ms(60);
	pthread_mutex_unlock(&shared);
}

/* And is called through a pointer, as tasks often are. Not the same code, which would be one. */
static __attribute__((noinline)) void fault_holds_pointer(void)
{
	pthread_mutex_lock(&shared);
	pause_ms(61);
	pthread_mutex_unlock(&shared);
}
static void (*volatile pointer)(void) = fault_holds_pointer;

static __attribute__((noinline)) void fault_wants(void)
{
	pthread_mutex_lock(&shared);
	pthread_mutex_unlock(&shared);
	__asm__ volatile("");
}

static int is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static void run_task(unsigned task)
{
	if (task == HOLDS) {
		if (is(fault, "sleep"))
			fault_sleeps();
		else if (is(fault, "poll"))
			fault_polls();
		else if (is(fault, "cpu"))
			fault_computes();
		else if (is(fault, "fault_holds"))
			fault_holds();
		else if (is(fault, "fault_holds_tail"))
			fault_holds_tail();
		else if (is(fault, "fault_holds_pointer"))
			pointer();
#ifdef HAVE_CPP
		else if (is(fault, "fault_holds_cpp"))
			fault_holds_cpp();
		else if (is(fault, "fault_holds_plain"))
			fault_holds_plain();
#endif
	} else if (task == WANTS) {
		pause_ms(2); /* the other has it by now */
#ifdef HAVE_CPP
		if (is(fault, "fault_holds_cpp"))
			fault_wants_cpp();
		else if (is(fault, "fault_holds_plain"))
			fault_wants_plain();
		else
#endif
			fault_wants();
	} else {
		for (volatile int i = 0; i < 2000; i++)
			;
	}
}

/* ---------------------------------------------------------------- queue */

static void wake(unsigned task)
{
	pthread_mutex_lock(&queue_lock);
	if (waiting[task]) {
		waiting[task] = 0;
		tacho_wake(id[task]);
		queue[(first + queued++) % ALL] = task;
	}
	pthread_mutex_unlock(&queue_lock);
	pthread_cond_signal(&filled);
}

static int take(unsigned *task)
{
	int found;

	pthread_mutex_lock(&queue_lock);
	found = queued != 0;
	if (found) {
		*task = queue[first];
		first = (first + 1) % ALL;
		queued--;
	}
	pthread_mutex_unlock(&queue_lock);
	return found;
}

static void *client(void *arg)
{
	uint64_t one = 1, next = now_ms(CLOCK_MONOTONIC) + FAULT_EVERY_MS;

	(void)arg;
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		if (now_ms(CLOCK_MONOTONIC) >= next) {
			next += FAULT_EVERY_MS;
			wake(HOLDS);
			if (!strncmp(fault, "fault_holds", 11))
				wake(WANTS);
		}
		for (unsigned i = 0; i < TASKS; i++)
			wake(i);
		if (write(signal_fd, &one, sizeof(one)) < 0)
			abort();
		pause_ms(ROUND_MS);
	}
	pthread_cond_broadcast(&filled);
	return NULL;
}

/* -------------------------------------------------------------- workers */

static void wait_cond(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&queue_lock);
	while (!queued && !__atomic_load_n(&over, __ATOMIC_RELAXED) &&
	       !pthread_cond_timedwait(&filled, &queue_lock, &until))
		;
	pthread_mutex_unlock(&queue_lock);
}

static void wait_epoll(void)
{
	struct epoll_event e;
	uint64_t n;

	if (epoll_wait(set, &e, 1, 100) == 1 && read(signal_fd, &n, sizeof(n)) < 0 &&
	    errno != EAGAIN)
		abort();
}

static void wait_for_work(struct tacho_name *loop)
{
	if (is(way, "polls")) {
		wait_cond();
	} else if (is(way, "bare") || is(way, "late")) {
		wait_epoll();
	} else {
		tacho_park(loop);
		if (is(way, "cond"))
			wait_cond();
		else if (is(way, "nap"))
			pause_ms(20);
		else
			wait_epoll();
		tacho_unpark(loop, 1);
	}
}

static struct tacho_name *kind_of(unsigned task)
{
	return task == HOLDS ? &faulty : task == WANTS ? &wanting : &request;
}

static void suspend(unsigned task)
{
	pthread_mutex_lock(&queue_lock);
	waiting[task] = 1;
	pthread_mutex_unlock(&queue_lock);
}

static void work_packed(struct tacho_name *loop)
{
	unsigned task;

	tacho_park(loop);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		wait_cond();
		if (!take(&task))
			continue;
		tacho_unpark_poll(loop, 1, kind_of(task), id[task]);
		run_task(task);
		suspend(task);
		while (take(&task)) {
			tacho_poll_switch(kind_of(task), id[task]);
			run_task(task);
			suspend(task);
		}
		tacho_poll_end_park(TACHO_PENDING, loop);
	}
}

static void *work(void *arg)
{
	struct tacho_name loop = TACHO_LOOP("worker");
	unsigned task;

	(void)arg;
	if (is(way, "packed"))
		work_packed(&loop);
	if (is(way, "late"))
		wait_epoll();
	if (is(way, "bare") || is(way, "late"))
		tacho_loop(&loop);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		wait_for_work(&loop);
		while (take(&task)) {
			tacho_poll_begin(kind_of(task), id[task]);
			run_task(task);
			tacho_poll_end(TACHO_PENDING);
			suspend(task);
		}
	}
	return NULL;
}

static void *ends(void *seconds)
{
	pause_ms(atol(seconds) * 1000);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	struct epoll_event e = {.events = EPOLLIN};
	pthread_t thread[8], more, ender;
	int workers;

	if (argc != 5)
		return 2;
	alarm(60);
	fault = argv[1];
	way = argv[2];
	workers = atoi(argv[3]);
	set = epoll_create1(EPOLL_CLOEXEC);
	signal_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (workers < 1 || workers > 8 || epoll_ctl(set, EPOLL_CTL_ADD, signal_fd, &e))
		return 2;
	tacho_start(NULL); /* it may run already */
	for (unsigned i = 0; i < ALL; i++) {
		id[i] = tacho_task_new();
		waiting[i] = 1;
		tacho_task_spawn(id[i],
				 i == HOLDS   ? &faulty
				 : i == WANTS ? &wanting
					      : &request,
				 0, TACHO_HERE);
	}
	pthread_create(&more, NULL, client, NULL);
	for (int i = 1; i < workers; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	pthread_create(&ender, NULL, ends, argv[4]);
	work(NULL); /* one of the workers is the first thread */
	for (int i = 1; i < workers; i++)
		pthread_join(thread[i], NULL);
	pthread_join(more, NULL);
	pthread_join(ender, NULL);
	return 0;
}
