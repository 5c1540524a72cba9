/*
 * many_threads COUNT SECONDS: so many threads, each with a loop of its own that idles, and one
 * of them that is blocked now and then.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static double end;
static pthread_barrier_t all;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) void copy_backup(void)
{
	usleep(120000);
	__asm__ volatile("");
}

static void *run(void *arg)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), blocks = arg != NULL;
	struct epoll_event e;

	if (epoll < 0) {
		perror("epoll_create1");
		exit(1);
	}
	pthread_barrier_wait(&all);
	while (now() < end) {
		epoll_wait(epoll, &e, 1, blocks ? 50 : 400);
		if (blocks)
			copy_backup();
	}
	/* All are there until the end. */
	pthread_barrier_wait(&all);
	return arg;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 2 ? (unsigned)atoi(argv[1]) : 0;
	pthread_attr_t small;

	if (!count) {
		fputs("usage: many_threads COUNT SECONDS\n", stderr);
		return 2;
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536 + PTHREAD_STACK_MIN);
	pthread_barrier_init(&all, NULL, count + 1);
	for (unsigned i = 0; i < count; i++) {
		pthread_t t;
		int error = pthread_create(&t, &small, run, i == count / 2 ? &end : NULL);

		if (error) {
			errno = error;
			perror("pthread_create");
			return 3;
		}
	}
	end = now() + atof(argv[2]);
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	_exit(0);
}
