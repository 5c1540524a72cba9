/*
 * Clients of any server that answers a request with something: each asks, waits for the answer,
 * and asks again a few milliseconds later. On SIGTERM they end and say how long they waited.
 *
 *	client PORT REQUEST [CLIENTS]
 *
 * In REQUEST, a "#" is replaced by a number below 100, and "\n" by the end of a line.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

#define MOST (1 << 20) /* answers whose times are kept */
#define PAUSE_US 20000

static uint32_t times[MOST]; /* us */
static unsigned answers;
static volatile sig_atomic_t ended;
static uint16_t port;
static const char *request;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static size_t expand(char *to, size_t room, unsigned number)
{
	size_t size = 0;

	for (const char *c = request; *c && size + 4 < room; c++) {
		if (*c == '#') {
			size += (size_t)snprintf(to + size, room - size, "%u", number % 100);
		} else if (c[0] == '\\' && c[1] == 'n') {
			to[size++] = '\r';
			to[size++] = '\n';
			c++;
		} else {
			to[size++] = *c;
		}
	}
	return size;
}

static void *ask(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg * 31;
	char text[4096];
	int fd = connect_to(port);

	must(fd >= 0, "connect");
	while (!ended) {
		uint64_t since = now_us();
		size_t size = expand(text, sizeof(text), number++);
		unsigned i;

		if (send(fd, text, size, MSG_NOSIGNAL) < 0 || read(fd, text, sizeof(text)) <= 0)
			break; /* the server has gone */
		i = __atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);
		if (i < MOST)
			times[i] = (uint32_t)(now_us() - since);
		usleep(PAUSE_US);
	}
	close(fd);
	return NULL;
}

static int by_time(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	int clients = argc > 3 ? atoi(argv[3]) : 8;
	pthread_t threads[64];

	if (argc < 3 || clients < 1 || clients > 64) {
		fprintf(stderr, "Usage: client PORT REQUEST [CLIENTS]\n");
		return 2;
	}
	port = (uint16_t)atoi(argv[1]);
	request = argv[2];
	sigaction(SIGTERM, &action, NULL);
	for (int i = 0; i < clients; i++)
		must(!pthread_create(&threads[i], NULL, ask, (void *)(uintptr_t)i),
		     "pthread_create");
	for (int i = 0; i < clients; i++)
		pthread_join(threads[i], NULL);
	if (answers > MOST)
		answers = MOST;
	qsort(times, answers, sizeof(times[0]), by_time);
	if (answers)
		printf("%u answers: half of them within %.2f ms, the slowest after %.0f ms\n",
		       answers, times[answers / 2] / 1000.0, times[answers - 1] / 1000.0);
	return answers ? 0 : 1;
}
