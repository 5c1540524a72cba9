/*
 * A program that makes many records and uses memory of its own.
 *
 *     busy waits N [M]        N waits of an event loop; M more after a line on standard input
 *     busy shared FILE BYTES  a mapped file of that size, of which every page is stored to
 *     busy forks COUNT BYTES N
 *                             memory of that size, then children that wait N times at the same time
 *     busy seconds S COUNT    children that wait for so long, and the sum of their answers
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FDS 8

static int epoll, fds[FDS];

static void prepare(void)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < FDS; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		fds[i] = eventfd(0, EFD_CLOEXEC);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &e))
			exit(1);
	}
}

/* Returns how many descriptors were ready in all. */
static uint64_t waits(long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n; i++) {
		struct epoll_event ready[FDS];
		eventfd_t value;
		int got;

		for (int k = 0; k <= i % FDS; k++)
			eventfd_write(fds[k], 1);
		got = epoll_wait(epoll, ready, FDS, 1000);
		for (int k = 0; k < got; k++)
			eventfd_read(fds[ready[k].data.u32], &value);
		sum += (uint64_t)got;
	}
	return sum;
}

static void touch(char *at, size_t size)
{
	for (size_t i = 0; i < size; i += 4096)
		at[i] = 1;
}

static int shared(const char *path, size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	char *at = NULL;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return 1;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return 1;
	touch(at, size);
	unlink(path);
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In a child: whether every round of waits gave the right answer. */
static int works(long n, double seconds)
{
	double end = now() + seconds;

	prepare();
	if (!seconds)
		return waits(n) == (uint64_t)n / FDS * (FDS * (FDS + 1) / 2);
	while (now() < end)
		if (waits(FDS) != FDS * (FDS + 1) / 2)
			return 0;
	return 1;
}

/* Prints how many of the children ended as they should. */
static int children(int count, long n, double seconds)
{
	int good = 0, status;

	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) /* in order, as a worker ends */
			exit(works(n, seconds) ? 0 : 1);
		if (pid < 0)
			return 1;
	}
	while (wait(&status) > 0)
		good += status == 0;
	printf("%d children\n", good);
	return good != count;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";

	if (strcmp(how, "waits") == 0) {
		prepare();
		printf("%llu\n", (unsigned long long)waits(atol(argv[2])));
		fflush(stdout);
		if (argc > 3 && getchar() != EOF)
			printf("%llu\n", (unsigned long long)waits(atol(argv[3])));
		return 0;
	}
	if (strcmp(how, "shared") == 0 && argc > 3)
		return shared(argv[2], (size_t)atol(argv[3]));
	if (strcmp(how, "forks") == 0 && argc > 4) {
		char *own = mmap(NULL, (size_t)atol(argv[3]), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (own == MAP_FAILED)
			return 1;
		touch(own, (size_t)atol(argv[3]));
		return children(atoi(argv[2]), atol(argv[4]), 0);
	}
	if (strcmp(how, "seconds") == 0 && argc > 3)
		return children(atoi(argv[3]), 0, atof(argv[2]));
	return 2;
}
