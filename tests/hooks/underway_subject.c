/*
 * A loop for underway.py that is in something, or in nothing any more: underway_subject WHAT. It
 * says "here" when it is about to be there; what it reads from standard input lets it go on.
 *
 *	read    in read(2), which began from pull()
 *	back    read(2) has returned, and the loop waits
 *	jumped  read(2) was left with siglongjmp, and the loop waits
 *	child   read(2) in a child made by fork, while its parent's loop waits
 *	lock    waiting for a mutex that another thread has, from take()
 *	busy    reading all the time
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf out;
static int epoll, pipes[2], ready;

static void turn(int times)
{
	struct epoll_event event;

	while (times-- > 0)
		epoll_wait(epoll, &event, 1, 1);
}

__attribute__((noinline)) static long pull(int fd)
{
	char c;
	volatile long n = read(fd, &c, 1);

	return n;
}

__attribute__((noinline)) static int take(void)
{
	volatile int error = pthread_mutex_lock(&lock);

	return error;
}

static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	__atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return arg;
}

static void jump(int sig)
{
	siglongjmp(out, sig);
}

static void here(void)
{
	if (write(1, "here\n", 5) != 5)
		_exit(3);
}

static void jumped(void)
{
	struct sigaction action = {.sa_handler = jump};

	sigaction(SIGALRM, &action, NULL);
	if (!sigsetjmp(out, 1)) {
		ualarm(20000, 20000);
		pull(pipes[0]);
	}
	ualarm(0, 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pthread_t thread;

	epoll = epoll_create1(0);
	if (epoll < 0 || pipe(pipes))
		return 2;
	turn(5);
	if (!strcmp(what, "busy")) {
		here();
		for (;;) {
			turn(1);
			for (int i = 0; i < 1000; i++)
				if (write(pipes[1], "x", 1) == 1)
					pull(pipes[0]);
		}
	}
	if (!strcmp(what, "lock")) {
		pthread_create(&thread, NULL, hold, NULL);
		while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
			sched_yield();
		here();
		return take();
	}
	if (!strcmp(what, "read")) {
		here();
		return (int)pull(0);
	}
	if (!strcmp(what, "child") && !fork()) {
		pull(pipes[0]);
		_exit(0);
	}
	if (!strcmp(what, "back") && write(pipes[1], "x", 1) == 1)
		pull(pipes[0]);
	if (!strcmp(what, "jumped"))
		jumped();
	here();
	turn(1000000);
	return 0;
}
