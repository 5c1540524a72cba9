/*
 * Programs for crashes.py: each handles its crash as redis does, which tests all memory that
 * it finds writable in /proc/self/maps, that of libtacho-preload too, by changing it and
 * changing it back. Nothing of ours may run in the thread meanwhile.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* CPU time for which each region is wrong; timers count it in steps of up to 10 ms. */
#define WRONG_NS 12000000u
#define HOLD_NS 3000000u
#define REGIONS 256u
#define THREADS 8u
#define PATIENCE 5000u /* times HOLD_NS */

static struct region {
	uintptr_t from, to;
} regions[REGIONS];
static unsigned count;
static int sample_signal; /* 0: none */
static int whole;	  /* memory is tested; else, whether a sample could come then */

enum { ENDED_WELL, NOT_BLOCKED, NO_MEMORY, NO_LISTENER, NOT_HANDLED, NOT_SAMPLED };

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is_in(const struct region *r, const void *at)
{
	return (uintptr_t)at >= r->from && (uintptr_t)at < r->to;
}

/*
 * Not what the thread has of its own, like errno: next to it is what the kernel looks at whenever
 * it has preempted the thread (rseq), and if that is wrong it ends the program. Redis dies of it
 * now and then, recorded or not.
 */
static void find_regions(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && count < REGIONS && fgets(line, sizeof(line), f)) {
		struct region *r = &regions[count];

		if (strstr(line, "[stack") || !strstr(line, " rw-p ") || !strstr(line, " 00:00 ") ||
		    sscanf(line, "%lx-%lx", &r->from, &r->to) != 2)
			continue;
		if (!is_in(r, &errno) && !is_in(r, regions))
			count++;
	}
	if (f)
		fclose(f);
}

/* How many timers the process has; it makes none itself. They are all of one signal. */
static unsigned timers(void)
{
	FILE *f = fopen("/proc/self/timers", "r");
	char line[200];
	unsigned n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += sscanf(line, "signal: %d/", &sample_signal) == 1;
	if (f)
		fclose(f);
	return n;
}

static void invert(volatile uint64_t *at, size_t words)
{
	for (size_t i = 0; i < words; i++)
		at[i] = ~at[i];
}

static void test_memory(const struct region *r)
{
	uint64_t end = cpu_ns() + WRONG_NS;

	invert((uint64_t *)r->from, (r->to - r->from) / 8);
	while (cpu_ns() < end)
		;
	invert((uint64_t *)r->from, (r->to - r->from) / 8);
}

static void handler(int sig)
{
	sigset_t mask;

	(void)sig;
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	if (!whole && sample_signal && sigismember(&mask, sample_signal) != 1)
		_exit(NOT_BLOCKED);
	for (unsigned i = 0; whole && i < count; i++)
		test_memory(&regions[i]);
	_exit(count ? ENDED_WELL : NO_MEMORY);
}

static void set_handler(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_NODEFER | (int)SA_RESETHAND};

	sigaction(SIGSEGV, &sa, NULL);
}

static void turn(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0);

	epoll_wait(fd, &event, 1, 0);
	close(fd);
}

/* ------------------------------------------------------------ threads, all at once */

static int listener = -1;
static int done;

static void a_while(void)
{
	struct timespec t = {0, HOLD_NS};

	syscall(SYS_nanosleep, &t, NULL);
}

/* Holds the others in certain calls for a while, or until one of them is done (`until`). */
static int hold_back(void *until)
{
	while (__atomic_load_n(&listener, __ATOMIC_ACQUIRE) < 0)
		thrd_yield();
	for (;;) {
		struct seccomp_notif call;
		struct seccomp_notif_resp answer;

		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
			continue;
		do
			a_while();
		while (until && !__atomic_load_n((int *)until, __ATOMIC_ACQUIRE));
		memset(&answer, 0, sizeof(answer));
		answer.id = call.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	return 0;
}

/* The calling thread, and those that it makes, are held back in the calls that the filter
   names. */
static void listen_to(struct sock_filter *code, unsigned short length, int *until)
{
	struct sock_fprog program = {length, code};
	thrd_t t;
	long fd;

	if (thrd_create(&t, hold_back, until) != thrd_success)
		_exit(NO_MEMORY);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(NO_LISTENER);
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program);
	if (fd < 0)
		_exit(NO_LISTENER);
	__atomic_store_n(&listener, (int)fd, __ATOMIC_RELEASE);
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)

static int turn_often(void *arg)
{
	(void)arg;
	do
		turn();
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE));
	return 0;
}

/* The first to be sampled gets things ready for all, and is held back in the middle of it. */
static void listen_to_getpid(void)
{
	struct sock_filter code[] = {LOAD(nr), IF_EQUAL(SYS_getpid, 0, 1), RETURN(USER_NOTIF),
				     RETURN(ALLOW)};

	listen_to(code, sizeof(code) / sizeof(code[0]), NULL);
}

/* Threads of thrd_create are sampled from when they first wait. */
static void begin_together(void)
{
	thrd_t other;

	set_handler();
	listen_to_getpid();
	if (thrd_create(&other, turn_often, NULL) != thrd_success)
		_exit(NO_MEMORY);
	turn();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	thrd_join(other, NULL);
	/* The first may have come while there was no box yet. */
	turn();
}

static int turn_first(void *arg)
{
	(void)arg;
	turn();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	return 0;
}

/* One sets its handler and is held back before it is there, until another is sampled. */
static void set_meanwhile(void)
{
	struct sock_filter code[] = {LOAD(nr),		 IF_EQUAL(SYS_rt_sigaction, 0, 5),
				     LOAD(args[0]),	 IF_EQUAL(SIGSEGV, 0, 3),
				     LOAD(args[1]),	 IF_EQUAL(0, 1, 0), /* it only asks */
				     RETURN(USER_NOTIF), RETURN(ALLOW)};
	thrd_t other;

	listen_to(code, sizeof(code) / sizeof(code[0]), &done);
	if (thrd_create(&other, turn_first, NULL) != thrd_success)
		_exit(NO_MEMORY);
	set_handler();
	thrd_join(other, NULL);
	turn();
}

static void *stay(void *arg)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		a_while();
	return arg;
}

/* Those that never wait for anything have only their beginning to be sampled from. */
static void stay_together(void)
{
	unsigned wanted = getenv("LD_PRELOAD") ? THREADS + 2 : 0;
	struct timespec soon = {0, HOLD_NS / 4};
	pthread_t threads[THREADS];
	thrd_t other;

	listen_to_getpid();
	if (thrd_create(&other, turn_often, NULL) != thrd_success)
		_exit(NO_MEMORY);
	for (unsigned i = 0; i < THREADS; i++) {
		syscall(SYS_nanosleep, &soon, NULL);
		if (pthread_create(&threads[i], NULL, stay, NULL))
			_exit(NO_MEMORY);
	}
	for (unsigned i = 0; i < PATIENCE && timers() != wanted; i++) {
		turn();
		a_while();
	}
	_exit(timers() == wanted ? ENDED_WELL : NOT_SAMPLED);
}

static void crash(void)
{
	find_regions();
	if (!timers() && getenv("LD_PRELOAD"))
		_exit(NOT_SAMPLED);
	raise(SIGSEGV);
	_exit(NOT_HANDLED);
}

/* How many of `rounds` children did not end as they shall. */
static int children(unsigned rounds, void (*body)(void))
{
	int bad = 0, last = 0;

	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid = fork();
		int status = -1;

		if (!pid) {
			body();
			crash();
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			bad++;
			last = status;
		}
	}
	if (bad)
		printf("%d of %u children, status of the last %d\n", bad, rounds, last);
	return bad != 0;
}

static void wait_once(void)
{
	set_handler();
	turn();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	whole = argc > 3;
	if (!strcmp(what, "wait"))
		return children(rounds, wait_once);
	if (!strcmp(what, "threads"))
		return children(rounds, begin_together);
	if (!strcmp(what, "stay"))
		return children(rounds, stay_together);
	if (!strcmp(what, "meanwhile"))
		return children(rounds, set_meanwhile);
	if (!strcmp(what, "fork")) {
		/* Here there are samples already; in the child not yet when it sets its handler. */
		turn();
		return children(rounds, wait_once);
	}
	fprintf(stderr, "what shall I do?\n");
	return 2;
}
