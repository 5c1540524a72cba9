/*
 * A thread that hands work to a pool: handed_subject HOW.
 *
 *	full     a loop gives 60 pieces of 20 ms, one each 4 ms, to two threads
 *	relocks  the same; the threads lock the mutex before the first piece where they never do again
 *	polls    the same; each piece is in poll
 *	semaphore  the same; the threads wait at a semaphore, and take another one that is free
 *	frugal   the same; it signals only when a thread waits
 *	free     the same with pieces that take no time
 *	batch    as full, of a thread that has no loop
 *	mutual   as full; the loop waits for the condition as well, once
 *
 * Prints how many pieces were waiting when the last had been given.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define PIECES 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t there = PTHREAD_COND_INITIALIZER;
static sem_t items, desks;
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

static void give(void)
{
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
	for (int i = 0; i < 2; i++)
		pthread_create(&thread, NULL,
			       !strcmp(how, "semaphore") ? waits_at_semaphore
			       : !strcmp(how, "relocks") ? relocks
							 : works,
			       NULL);
	await_threads();
	for (int i = 0; i < PIECES; i++) {
		if (!strcmp(how, "batch"))
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
