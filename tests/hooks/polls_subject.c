/*
 * Loops that call poll or select: polls_subject HOW.
 *
 *	epoll   a loop of epoll; every twentieth event is followed by 30 ms in poll, from ask()
 *	even    epoll and poll by turns
 *	often   a loop of epoll; every third event is followed by 30 ms in poll, from ask()
 *	between a loop of poll, in rest(); every fifth event is followed by 30 ms in poll, from ask()
 *	sleeps  a loop of select, in pick(); every fifth event is followed by 30 ms in pick(), for nothing
 *	timer   waits in pick() for nothing alone
 *	nested  the same; every tenth event is followed by three waits in ask(), each of which may idle
 *	phases  a loop of poll, in rest(), and then one in ask()
 *	poll    a loop of poll; before it, epoll was used a few times
 *	later   a loop of epoll that becomes one of poll
 *	child   a loop of epoll, whose child has one of poll
 *	looks   a loop of epoll that asks by poll after each event, without waiting
 *	sets    a loop of epoll; every twentieth event is followed by 30 ms in another set, from run_other()
 *	switch  a loop of epoll, and then one of another set, in run_other()
 *	killed  as epoll, and it is in poll for good in the end
 *	uv      a timer of libuv whose callback is 30 ms in select, from choose()
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_UV
#include <uv.h>
#endif

#define EVENTS 60
#define MS 30

static int epoll, silent[2];

__attribute__((noinline)) static int ask(int ms)
{
	struct pollfd p = {.fd = silent[0], .events = POLLIN};
	volatile int n = poll(&p, 1, ms);

	return n;
}

__attribute__((noinline)) static int rest(void)
{
	struct pollfd p = {.fd = silent[0], .events = POLLIN};
	volatile int n = poll(&p, 1, 1);

	return n;
}

/* As languages do it: all that a script selects is selected here. */
__attribute__((noinline)) static int pick(int fd, int ms)
{
	struct timeval time = {0, ms * 1000};
	fd_set set;
	volatile int n;

	FD_ZERO(&set);
	if (fd >= 0)
		FD_SET(fd, &set);
	n = select(fd + 1, fd >= 0 ? &set : NULL, NULL, NULL, &time);
	return n;
}

static void turn(int times)
{
	struct epoll_event event;

	while (times-- > 0)
		if (epoll_wait(epoll, &event, 1, 1))
			abort();
}

__attribute__((noinline)) static int run_other(int ms)
{
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);
	volatile int n = epoll_wait(set, &event, 1, ms);

	close(set);
	return n;
}

static void wait_in_poll(int times)
{
	while (times-- > 0)
		ask(1);
}

#ifdef HAVE_UV
__attribute__((noinline)) static int choose(void)
{
	struct timeval time = {0, MS * 1000};
	fd_set set;
	volatile int n;

	FD_ZERO(&set);
	FD_SET(silent[0], &set);
	n = select(silent[0] + 1, &set, NULL, NULL, &time);
	return n;
}

static void on_timer(uv_timer_t *timer)
{
	static int left = 3;

	choose();
	if (!--left)
		uv_close((uv_handle_t *)timer, NULL);
}

static void run_uv(void)
{
	uv_timer_t timer;

	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_timer, 1, 1);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
#endif

static void run_epoll(const char *how)
{
	int even = !strcmp(how, "even"), looks = !strcmp(how, "looks");
	int sets = !strcmp(how, "sets");

	for (int i = 0; i < EVENTS; i++) {
		turn(1);
		if (even)
			ask(1);
		else if (looks)
			ask(0);
		if (i % 20 == 19 && sets)
			run_other(MS);
		else if (i % 20 == 19 && !even)
			ask(MS);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	alarm(60);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0 || pipe(silent))
		return 1;
	if (!strcmp(how, "poll")) {
		turn(4);
		wait_in_poll(EVENTS);
	} else if (!strcmp(how, "phases")) {
		for (int i = 0; i < EVENTS; i++)
			rest();
		wait_in_poll(EVENTS);
	} else if (!strcmp(how, "between") || !strcmp(how, "nested")) {
		int nested = !strcmp(how, "nested");

		for (int i = 0; i < EVENTS; i++) {
			rest();
			if (nested && i % 10 == 9)
				wait_in_poll(3);
			else if (!nested && i % 5 == 4)
				ask(MS);
		}
	} else if (!strcmp(how, "sleeps") || !strcmp(how, "timer")) {
		for (int i = 0; i < EVENTS; i++) {
			pick(how[0] == 's' ? silent[0] : -1, 1);
			if (how[0] == 's' && i % 5 == 4)
				pick(-1, MS);
		}
	} else if (!strcmp(how, "often")) {
		for (int i = 0; i < EVENTS; i++) {
			turn(1);
			if (i % 3 == 2)
				ask(MS);
		}
	} else if (!strcmp(how, "later")) {
		turn(EVENTS);
		wait_in_poll(4 * EVENTS);
	} else if (!strcmp(how, "switch")) {
		turn(EVENTS);
		for (int i = 0; i < 4 * EVENTS; i++)
			run_other(1);
	} else if (!strcmp(how, "child")) {
		turn(EVENTS);
		if (!fork()) {
			wait_in_poll(EVENTS);
			return 0;
		}
		wait(NULL);
#ifdef HAVE_UV
	} else if (!strcmp(how, "uv")) {
		run_uv();
#endif
	} else {
		run_epoll(how);
	}
	if (!strcmp(how, "killed")) {
		puts("here");
		fflush(stdout);
		ask(-1);
	}
	return 0;
}
