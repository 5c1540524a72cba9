/*
 * A thread that hands work to a pool: handed_subject HOW.
 *
 *	full     a loop gives 60 pieces of 20 ms, one each 4 ms, to two threads
 *	relocks  the same; the threads lock the mutex before the first piece where they never do again
 *	polls    the same; each piece is in poll
 *	semaphore  the same; the threads wait at a semaphore, and take another one that is free
 *	pipe, socket, eventfd  the same; the threads read from these
 *	counter  the same with an eventfd that gives all that was written to who reads first
 *	futex    the same; the threads wait at a futex
 *	frugal   the same; it signals only when a thread waits
 *	free     the same with pieces that take no time
 *	batch    as full, of a thread that has no loop
 *	batch-pipe  as pipe, of such a thread
 *	mutual   as full; the loop waits for the condition as well, once
 *
 * Prints how many pieces were waiting when the last had been given.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PIECES 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static sem_t items, desks;
static int channel[2];
static unsigned given, taken, done, idle;
static const char *how;

__attribute__((noinline)) static void piece(void)
{
	struct timespec t = {.tv_nsec = 20000000};

	if (!strcmp(how, "polls"))
		poll(NULL, 0, 20);
	else if (strcmp(how, "free"))
		nanosleep(&t, NULL);
	__asm__ volatile("" ::: "memory");
}

static void finished(void)
{
	pthread_mutex_lock(&lock);
	done++;
	pthread_mutex_unlock(&lock);
}

static void wait_for_work(void)
{
	while (given == taken) {
		idle++;
		pthread_cond_wait(&there, &lock);
		idle--;
	}
}

static void *works(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		wait_for_work();
		taken++;
		pthread_mutex_unlock(&lock);
		piece();
		finished();
	}
	return arg;
}

static void *relocks(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		wait_for_work();
		taken++;
		pthread_mutex_unlock(&lock);
		piece();
		finished();
		pthread_mutex_lock(&lock);
	}
	return arg;
}

static void *waits_at_semaphore(void *arg)
{
	__atomic_fetch_add(&idle, 1, __ATOMIC_RELAXED);
	for (;;) {
		sem_wait(&items);
		__atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
		sem_wait(&desks);
		piece();
		sem_post(&desks);
		finished();
	}
	return arg;
}

/* From a channel: pieces, each of them a number. */
static void *reads(void *arg)
{
	uint64_t number;

	__atomic_fetch_add(&idle, 1, __ATOMIC_RELAXED);
	while (read(channel[0], &number, sizeof(number)) == sizeof(number)) {
		unsigned n = !strcmp(how, "counter") ? (unsigned)number : 1;

		__atomic_fetch_add(&taken, n, __ATOMIC_RELAXED);
		for (; n; n--) {
			piece();
			finished();
		}
	}
	return arg;
}

static void *waits_at_futex(void *arg)
{
	__atomic_fetch_add(&idle, 1, __ATOMIC_RELAXED);
	for (;;) {
		unsigned seen = __atomic_load_n(&given, __ATOMIC_SEQ_CST);
		unsigned next = __atomic_load_n(&taken, __ATOMIC_SEQ_CST);

		if (next == seen)
			syscall(SYS_futex, &given, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		else if (__atomic_compare_exchange_n(&taken, &next, next + 1, 0, __ATOMIC_SEQ_CST,
						     __ATOMIC_SEQ_CST)) {
			piece();
			finished();
		}
	}
	return arg;
}

static void open_channel(void)
{
	if (!strcmp(how, "socket"))
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel);
	else if (!strcmp(how, "eventfd") || !strcmp(how, "counter"))
		channel[0] = channel[1] =
			eventfd(0, EFD_CLOEXEC | (how[0] == 'e' ? EFD_SEMAPHORE : 0));
	else if (strstr(how, "pipe"))
		pipe2(channel, O_CLOEXEC);
}

static int give_to_channel(void)
{
	uint64_t one = 1;

	if (!channel[1])
		return 0;
	__atomic_fetch_add(&given, 1, __ATOMIC_SEQ_CST);
	return write(channel[1], &one, sizeof(one)) == sizeof(one);
}

static void give(void)
{
	if (give_to_channel())
		return;
	if (!strcmp(how, "futex")) {
		__atomic_fetch_add(&given, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &given, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		return;
	}
	if (!strcmp(how, "semaphore")) {
		given++;
		sem_post(&items);
		return;
	}
	pthread_mutex_lock(&lock);
	given++;
	if (strcmp(how, "frugal") || idle)
		pthread_cond_signal(&there);
	pthread_mutex_unlock(&lock);
}

static void wait_once(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&there, &lock, &until);
	pthread_mutex_unlock(&lock);
}

/* They must be waiting before there is something to do; whether they do at a semaphore nobody can see. */
static void await_threads(void)
{
	unsigned waiting;

	do {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		pthread_mutex_lock(&lock);
		waiting = __atomic_load_n(&idle, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&lock);
	} while (waiting < 2);
}

int main(int argc, char **argv)
{
	struct timespec pause = {.tv_nsec = 4000000};
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e;
	pthread_t thread;

	if (argc < 2 || epoll < 0)
		return 1;
	how = argv[1];
	sem_init(&items, 0, 0);
	sem_init(&desks, 0, 2);
	open_channel();
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL,
			       channel[0]		   ? reads
			       : !strcmp(how, "futex")	   ? waits_at_futex
			       : !strcmp(how, "semaphore") ? waits_at_semaphore
			       : !strcmp(how, "relocks")   ? relocks
							   : works,
			       NULL);
	await_threads();
	for (int i = 0; i < PIECES; i++) {
		if (!strncmp(how, "batch", 5))
			nanosleep(&pause, NULL);
		else
			epoll_wait(epoll, &e, 1, 4);
		if (!strcmp(how, "mutual") && !i)
			wait_once();
		give();
	}
	pthread_mutex_lock(&lock);
	printf("waiting %u\n", given - taken);
	pthread_mutex_unlock(&lock);
	fflush(stdout);
	while (__atomic_load_n(&done, __ATOMIC_RELAXED) < PIECES)
		nanosleep(&pause, NULL);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return 0;
}
