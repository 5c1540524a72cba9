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
 *	wait    waiting for a condition variable, from await()
 *
 * "thread:WHAT" does it on a thread without a loop, which is called "plain", while the loop waits;
 * "join:WHAT" also, and the first thread has no loop either and waits for it. Two more for those:
 *
 *	sleep   in nanosleep(2), from doze()
 *	quick   in nothing any more after calls that took 20 ms: it spins
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
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

__attribute__((noinline)) static int await(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	volatile int error;

	pthread_mutex_lock(&mutex);
	error = pthread_cond_wait(&condition, &mutex);
	return error;
}

__attribute__((noinline)) static int doze(long ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	volatile int error = nanosleep(&time, NULL);

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

/* Past the hooks: a call that returns would hide what one before left behind. */
static void here(void)
{
	if (syscall(SYS_write, 1, "here\n", 5) != 5)
		_exit(3);
}

static void jumped(void)
{
	struct sigaction action = {.sa_handler = jump};
	sigset_t alarm;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	if (!sigsetjmp(out, 1)) {
		ualarm(20000, 20000);
		pull(pipes[0]);
	}
	ualarm(0, 0);
}

static void spin(void)
{
	static volatile int forever = 1;

	while (forever)
		;
}

/* `rest`: what it does where it is in nothing. */
static int get_into(const char *what, void (*rest)(void))
{
	pthread_t thread;

	if (!strcmp(what, "busy")) {
		here();
		for (;;) {
			if (rest != spin)
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
	if (!strcmp(what, "wait")) {
		here();
		return await();
	}
	if (!strcmp(what, "sleep")) {
		here();
		return doze(1000000);
	}
	if (!strcmp(what, "quick"))
		doze(20);
	if (!strcmp(what, "child") && !fork()) {
		pull(pipes[0]);
		_exit(0);
	}
	if (!strcmp(what, "back") && write(pipes[1], "x", 1) == 1)
		pull(pipes[0]);
	if (!strcmp(what, "jumped"))
		jumped();
	here();
	rest();
	return 0;
}

static void keep_turning(void)
{
	turn(1000000);
}

static void *plain(void *what)
{
	pthread_setname_np(pthread_self(), "plain");
	exit(get_into(what, spin));
}

static void *loop(void *arg)
{
	keep_turning();
	return arg;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int joins = !strncmp(what, "join:", 5);
	sigset_t alarm;
	pthread_t thread;

	/* It is for the thread that is to jump. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	epoll = epoll_create1(0);
	if (epoll < 0 || pipe(pipes))
		return 2;
	if (joins) {
		pthread_create(&thread, NULL, loop, NULL);
	} else {
		turn(5);
		if (strncmp(what, "thread:", 7))
			return get_into(what, keep_turning);
	}
	pthread_create(&thread, NULL, plain, strchr(argv[1], ':') + 1);
	if (joins)
		return pthread_join(thread, NULL);
	keep_turning();
	return 0;
}
