/* Programs that use signals as freely as they may. */
#include "habits.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, seen;

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

/* A profiler of its own, with SIGPROF and a timer on CPU time. */
int own_profiler(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 2000}, {0, 2000}};

	(void)argc, (void)argv;
	MUST(sigaction(SIGPROF, &action, NULL) == 0);
	MUST(setitimer(ITIMER_PROF, &every, NULL) == 0);
	wait_in_epoll(1);
	burn(0.1);
	memset(&every, 0, sizeof(every));
	setitimer(ITIMER_PROF, &every, NULL);
	puts(ticks > 5 ? "profiled" : "not profiled");
	return 0;
}

static void on_real_time(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_value.sival_int == sig * 10)
		seen++;
}

/* Handlers for all real-time signals, set after it waited, and each of them sent. */
int real_time_handlers(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = on_real_time, .sa_flags = SA_SIGINFO};
	int count = SIGRTMAX - SIGRTMIN + 1;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	burn(0.03);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		MUST(sigaction(sig, &action, NULL) == 0);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		MUST(sigqueue(getpid(), sig, (union sigval){.sival_int = sig * 10}) == 0);
	burn(0.03);
	wait_in_epoll(2);
	printf("%d of %d\n", (int)seen, count);
	return 0;
}

/* All signals blocked, read from a descriptor in a loop. */
int all_signals_by_signalfd(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct signalfd_siginfo info;
	int set = epoll_create1(EPOLL_CLOEXEC), fd, got = 0, other = 0;
	sigset_t all;

	(void)argc, (void)argv;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
	for (int round = 0; round < 5; round++) {
		MUST(kill(getpid(), SIGHUP) == 0);
		MUST(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 7}) == 0);
		burn(0.03);
		while (epoll_wait(set, &event, 1, 0) == 1)
			while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
				if (info.ssi_signo == SIGHUP || info.ssi_int == 7)
					got++;
				else
					other++;
	}
	printf("%d signals, %d others\n", got, other);
	return 0;
}

static void *sends(void *arg)
{
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
		burn(0.002);
		sigqueue(getpid(), sig, (union sigval){.sival_int = sig});
	}
	return arg;
}

/* A thread takes all real-time signals with sigwaitinfo while others use the CPU. */
int all_signals_by_sigwait(int argc, char **argv)
{
	pthread_t thread;
	sigset_t set;
	int got = 0, other = 0, count = SIGRTMAX - SIGRTMIN + 1;
	struct timespec patience = {5, 0};

	(void)argc, (void)argv;
	wait_in_epoll(2);
	sigemptyset(&set);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		sigaddset(&set, sig);
	MUST(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	MUST(pthread_create(&thread, NULL, sends, NULL) == 0);
	while (got < count) {
		siginfo_t info;
		int sig = sigtimedwait(&set, &info, &patience);

		if (sig < 0 && errno == EAGAIN)
			break;
		if (sig >= 0 && info.si_value.sival_int == sig)
			got++;
		else
			other++;
	}
	pthread_join(thread, NULL);
	printf("%d of %d, %d others\n", got, count, other);
	return 0;
}

/* As many timers as RLIMIT_SIGPENDING lets it make. */
int timers_at_limit(int argc, char **argv)
{
	timer_t timer;
	int made = 0;

	(void)argc, (void)argv;
	wait_in_epoll(2);
	while (made < 1000 && timer_create(CLOCK_MONOTONIC,
					   &(struct sigevent){.sigev_notify = SIGEV_SIGNAL,
							      .sigev_signo = SIGALRM},
					   &timer) == 0)
		made++;
	wait_in_epoll(2);
	printf("%d timers\n", made);
	return 0;
}
