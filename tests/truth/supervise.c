/* Who looks after others and has nothing to do: whatever it waits in, it is idle. */
#include "truth.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

static int supervisor_is(const char *name)
{
	return !strcmp(options.supervisor, name);
}

static struct timespec later(clockid_t clock, uint64_t ns)
{
	uint64_t at = clock_ns(clock) + ns;

	return (struct timespec){.tv_sec = (time_t)(at / 1000000000u),
				 .tv_nsec = (long)(at % 1000000000u)};
}

static void wait_at_condition(uint64_t ns)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until = later(CLOCK_REALTIME, ns);

	pthread_mutex_lock(&lock);
	pthread_cond_timedwait(&never, &lock, &until);
	pthread_mutex_unlock(&lock);
}

static void wait_for_signals(uint64_t ns)
{
	struct timespec t = {.tv_nsec = (long)ns};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigtimedwait(&set, NULL, &t);
}

static void wait_in_select(uint64_t ns)
{
	struct timeval t = {.tv_usec = (suseconds_t)(ns / 1000)};

	select(0, NULL, NULL, NULL, &t);
}

static void wait_in_epoll(uint64_t ns)
{
	static int set = -1;
	struct epoll_event e;

	if (set < 0)
		set = epoll_create1(EPOLL_CLOEXEC);
	epoll_wait(set, &e, 1, (int)(ns / MS));
}

/* Looks around once, and waits until it is time for the next. */
static void look_after(void)
{
	uint64_t ns = 250 * MS;

	if (supervisor_is("condition"))
		wait_at_condition(ns);
	else if (supervisor_is("signals"))
		wait_for_signals(ns);
	else if (supervisor_is("select"))
		wait_in_select(ns);
	else if (supervisor_is("epoll"))
		wait_in_epoll(ns);
	else
		SLEEP(ns);
}

static void *supervisor(void *arg)
{
	for (;;)
		look_after();
	return arg;
}

void start_supervisors(void)
{
	pthread_t thread;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (!supervisor_is("none") && !supervisor_is("wait"))
		must(!pthread_create(&thread, NULL, supervisor, NULL), "pthread_create");
}

void supervise_children(int count)
{
	while (count > 0) {
		int blocks = supervisor_is("none") || supervisor_is("wait");
		pid_t pid = waitpid(-1, NULL, blocks ? 0 : WNOHANG);

		if (pid > 0)
			count--;
		else if (pid < 0 && errno != EINTR)
			return;
		else
			look_after();
	}
}
