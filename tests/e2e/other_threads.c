/*
 * other_threads THREADS SECONDS: an event loop that idles, and so many threads beside it that compute without
 * waiting for anything.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static volatile int ends;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) void *compute(void *arg)
{
	while (!ends)
		__asm__ volatile("");
	return arg;
}

int main(int argc, char **argv)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), count = argc > 2 ? atoi(argv[1]) : -1;
	struct epoll_event e;
	pthread_t thread;
	double end;

	if (epoll < 0 || count < 0) {
		fputs("usage: other_threads THREADS SECONDS\n", stderr);
		return 2;
	}
	end = now() + atof(argv[2]);
	/* The loop is known before the threads begin. */
	epoll_wait(epoll, &e, 1, 1);
	for (int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, compute, NULL))
			return 3;
	while (now() < end)
		epoll_wait(epoll, &e, 1, 20);
	ends = 1;
	return 0;
}
