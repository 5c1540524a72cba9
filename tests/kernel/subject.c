/*
 * A loop that does known things at known times, and says when (CLOCK_MONOTONIC) and on which
 * thread: "NAME tid TID from NS to NS". Begins when a line comes in on its standard input.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int epoll;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static uint64_t cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static void turn(void)
{
	struct epoll_event event;

	epoll_wait(epoll, &event, 1, 1);
}

static void said(const char *name, uint64_t from, uint64_t cpu_from)
{
	uint64_t to = now();

	printf("%s tid %d from %lu to %lu cpu %lu\n", name, gettid(), from, to, cpu() - cpu_from);
	fflush(stdout);
	turn();
}

static volatile uint64_t sink;

__attribute__((noinline)) static void hot(uint64_t ns)
{
	uint64_t end = cpu() + ns;

	while (cpu() < end)
		for (int i = 0; i < 20000; i++)
			sink += i;
}

__attribute__((noinline)) static void busy(const char *name, uint64_t ns)
{
	uint64_t from = now(), c = cpu();

	hot(ns);
	said(name, from, c);
}

__attribute__((noinline)) static void asleep(uint64_t ns)
{
	struct timespec t = {0, (long)ns};
	uint64_t from = now(), c = cpu();

	nanosleep(&t, NULL);
	said("asleep", from, c);
}

/* The kernel works for us. */
__attribute__((noinline)) static void calls(uint64_t ns)
{
	static char buffer[4 << 20];
	int fd = open("/dev/zero", O_RDONLY);
	uint64_t from = now(), c = cpu(), end = c + ns;

	while (cpu() < end)
		sink += (uint64_t)read(fd, buffer, sizeof(buffer));
	close(fd);
	said("calls", from, c);
}

static void *thread(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "second");
	turn();
	busy("thread", 300000000);
	return NULL;
}

/*
 * When the thread stood still, under a stack as deep as those of servers: "gap NS NS", from and
 * to. Longer ones are those of other threads on its CPU.
 */
__attribute__((noinline)) static uint64_t interrupted(int depth)
{
	static uint64_t gaps[20000][2];
	uint64_t end = cpu() + 2000000000, last = now();
	size_t count = 0;

	if (depth)
		return interrupted(depth - 1) + (uint64_t)depth;
	for (int i = 0; i % 1000 || cpu() < end; i++) {
		uint64_t t = now();

		if (i % 1000 > 1 && t - last > 1000 && t - last < 500000 && count < 20000) {
			gaps[count][0] = last;
			gaps[count++][1] = t;
		}
		last = t;
	}
	for (size_t i = 0; i < count; i++)
		printf("gap %lu %lu\n", gaps[i][0], gaps[i][1]);
	return count;
}

static void *turning(void *arg)
{
	struct epoll_event event;

	for (int i = 0; i < 30; i++)
		epoll_wait(epoll, &event, 1, arg ? 1 : 50);
	return NULL;
}

/* Threads that were there before anybody looked, while others come and go. */
static void many(void)
{
	pthread_t running[32];

	for (int i = 0; i < 432; i++) {
		if (i >= 32)
			pthread_join(running[i % 32], NULL);
		if (i < 400)
			pthread_create(&running[i % 32], NULL, turning, &epoll);
		if (i == 50) {
			printf("ready pid %d\n", getpid());
			fflush(stdout);
		}
		usleep(500);
	}
}

static void child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		hot(100000000);
		printf("child pid %d\n", getpid());
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	char line[16];
	pthread_t t;

	epoll = epoll_create1(EPOLL_CLOEXEC);
	turn();
	turn();
	if (!strcmp(what, "many")) {
		for (int i = 0; i < 100; i++)
			pthread_create(&t, NULL, turning, NULL);
		many();
		printf("done tid %d\n", gettid());
		return 0;
	}
	printf("ready pid %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	turn();
	if (!strcmp(what, "exec")) {
		busy("busy", 200000000);
		/* It waits for each. */
		execl("/bin/sh", "sh", "-c",
		      "i=0; while [ $i -lt 200 ]; do i=$((i+1)); /bin/true; done", (char *)NULL);
		return 1;
	}
	if (!strcmp(what, "switches")) {
		uint64_t from = now(), c = cpu();

		for (int i = 0; i < 20000; i++)
			usleep(10);
		said("switches", from, c);
		return 0;
	}
	if (!strcmp(what, "idle")) {
		for (int i = 0; i < 300; i++)
			turn();
		return 0;
	}
	if (!strcmp(what, "gaps")) {
		sink += interrupted(20);
		return 0;
	}
	busy("busy", 400000000);
	if (!strcmp(what, "busy"))
		return 0;
	asleep(300000000);
	calls(400000000);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	child();
	turn();
	return 0;
}
