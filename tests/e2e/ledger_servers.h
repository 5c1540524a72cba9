/*
 * What the servers of ledger.py share: a thread that asks, on several connections, and a fault.
 * Each answers a byte with a byte; one request of each half second is planted: it sleeps.
 */
#ifndef TACHO_TESTS_LEDGER_SERVERS_H
#define TACHO_TESTS_LEDGER_SERVERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 8
#define PLANTED_MS 80
#define ROUND_US 4000
#define PLANT_EVERY (500000u / ROUND_US)

static int server_ends[CONNECTIONS], client_ends[CONNECTIONS];
static atomic_int done, planted_count;

static void sleep_us(long us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* Its own function: the place that a ledger should name. */
__attribute__((noinline)) void planted(void)
{
	atomic_fetch_add(&planted_count, 1);
	sleep_us(PLANTED_MS * 1000L);
}

/* Answers a request: 1, or 0 when there was none. */
__attribute__((noinline)) static int answer(int fd)
{
	char c;

	if (recv(fd, &c, 1, MSG_DONTWAIT) != 1)
		return 0;
	if (c == 'x')
		planted();
	return send(fd, &c, 1, MSG_DONTWAIT) == 1;
}

/* It asks whether or not there was an answer, so that requests wait while the server sleeps. */
static void *ask(void *arg)
{
	double seconds = *(double *)arg;
	unsigned rounds = (unsigned)(seconds * 1e6 / ROUND_US);
	char c;

	for (unsigned i = 1; i <= rounds; i++) {
		for (int k = 0; k < CONNECTIONS; k++) {
			while (recv(client_ends[k], &c, 1, MSG_DONTWAIT) == 1)
				;
			c = k == 0 && i % PLANT_EVERY == 0 ? 'x' : '.';
			if (send(client_ends[k], &c, 1, MSG_DONTWAIT) != 1)
				continue;
		}
		sleep_us(ROUND_US);
	}
	atomic_store(&done, 1);
	return NULL;
}

static pthread_t begin_asking(double *seconds)
{
	pthread_t thread;

	for (int i = 0; i < CONNECTIONS; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
			exit(2);
		server_ends[i] = pair[0];
		client_ends[i] = pair[1];
	}
	if (pthread_create(&thread, NULL, ask, seconds))
		exit(2);
	return thread;
}

static void end_asking(pthread_t thread)
{
	pthread_join(thread, NULL);
	printf("planted %d\n", atomic_load(&planted_count));
}

#endif
