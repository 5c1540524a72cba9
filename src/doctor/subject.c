#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "doctor/self.h"

#define TURNS 200u
#define LOCKS 3u
#define CALLS 3u
#define BURNS 7u
#define BURN_NS UINT64_C(100000000)
#define HELD_US 20000u
#define CALL_US 5000u
#define MILLISECOND UINT64_C(1000000)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint held; /* rounds in which the other thread took the mutex */
static atomic_uint done; /* ... and this one had it after that */

static void *hold_mutex(void *arg)
{
	for (unsigned i = 1; i <= LOCKS; i++) {
		pthread_mutex_lock(&mutex);
		atomic_store(&held, i);
		usleep(HELD_US);
		pthread_mutex_unlock(&mutex);
		while (atomic_load(&done) < i)
			sched_yield();
	}
	return arg;
}

/* Whether it had to wait: on a busy machine the other thread may be through already. */
static unsigned wait_for_mutex(unsigned round)
{
	uint64_t before;
	bool waited;

	while (atomic_load(&held) < round)
		sched_yield();
	waited = pthread_mutex_trylock(&mutex) == EBUSY;
	before = tacho__clock_ns(CLOCK_MONOTONIC);
	if (waited)
		pthread_mutex_lock(&mutex);
	waited = waited && tacho__clock_ns(CLOCK_MONOTONIC) - before >= MILLISECOND;
	pthread_mutex_unlock(&mutex);
	atomic_store(&done, round);
	return waited;
}

static void burn(void)
{
	uint64_t end = tacho__clock_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_NS;
	volatile unsigned n = 0;

	while (tacho__clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 10000; i++)
			n++;
}

static bool turn(int epoll, int event, struct tacho__self_counts *did)
{
	struct epoll_event ready;
	uint64_t one = 1;

	if (write(event, &one, sizeof(one)) != (ssize_t)sizeof(one) ||
	    epoll_wait(epoll, &ready, 1, -1) != 1 ||
	    read(event, &one, sizeof(one)) != (ssize_t)sizeof(one))
		return false;
	did->waits++;
	return true;
}

int tacho__doctor_subject(int out)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC);
	struct epoll_event wanted = {.events = EPOLLIN};
	struct tacho__self_counts did = {0};
	uint64_t before = tacho__clock_ns(CLOCK_THREAD_CPUTIME_ID);
	pthread_t other;

	if (epoll < 0 || event < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, event, &wanted) < 0)
		return -errno;
	for (unsigned i = 0; i < TURNS; i++) {
		if (!turn(epoll, event, &did))
			return -errno;
		if (i == 1 && pthread_create(&other, NULL, hold_mutex, NULL) != 0)
			return -errno;
		if (i >= 1 && i <= LOCKS)
			did.locks += wait_for_mutex(i);
		if (i >= 10 && i < 10 + CALLS) {
			usleep(CALL_US);
			did.calls++;
		}
		if (i >= 20 && i < 20 + BURNS)
			burn();
	}
	did.cpu_ns = tacho__clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	dprintf(out, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", did.waits, did.locks,
		did.calls, did.cpu_ns);
	/* The end that leaves a program the least time to save anything. */
	kill(getpid(), SIGKILL);
	return -errno;
}
