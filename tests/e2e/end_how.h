/*
 * How the programs end that tests of ends record: each is a loop that calls on_tick each 5 ms, and
 * the 60th call ends the process, or gets stuck, as its argument says.
 *
 *   segv, abort          faults
 *   overflow             calls itself until the stack has no room left
 *   blocked              faults with all signals blocked
 *   exit:N, _exit:N      in order; without handlers
 *   kill, term           signals that it sends to itself
 *   deadlock             waits for a lock that it has
 *   block                reads from a pipe into which nobody writes
 *   memory               takes memory until it is killed
 *   go:SECONDS           goes on for so long, then exits
 *
 * Where it gets stuck it makes the file that its second argument names, if there is one.
 */
#ifndef END_HOW_H
#define END_HOW_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS 5
#define TICKS 60

static const char *how, *stuck_file;

static int is(const char *name)
{
	return strncmp(how, name, strlen(name)) == 0;
}

static void say_stuck(void)
{
	if (stuck_file)
		close(open(stuck_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void get_stuck(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int ends[2];
	char c;

	say_stuck();
	if (is("deadlock")) {
		pthread_mutex_lock(&lock);
		pthread_mutex_lock(&lock);
	} else if (pipe(ends) == 0) {
		while (read(ends[0], &c, 1) < 0)
			;
	}
}

__attribute__((noinline)) static int overflow(const volatile char *above)
{
	volatile char here[4096];

	here[0] = *above;
	return here[0] ? overflow(here) + here[0] : 0;
}

__attribute__((noinline)) static void on_tick(void)
{
	static int volatile *nowhere;
	static int ticks;
	int end = ++ticks == TICKS;

	if (is("go:")) {
		if (ticks == TICKS)
			say_stuck();
		if (ticks >= TICKS + atoi(how + 3) * 1000 / TICK_MS)
			exit(0);
	} else if (end && is("segv")) {
		*nowhere = 1;
	} else if (end && is("overflow")) {
		overflow(how);
	} else if (end && is("blocked")) {
		sigset_t all;

		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, NULL);
		*nowhere = 1;
	} else if (end && is("abort")) {
		abort();
	} else if (end && is("exit:")) {
		exit(atoi(how + 5));
	} else if (end && is("_exit:")) {
		_exit(atoi(how + 6));
	} else if (end && is("kill")) {
		raise(SIGKILL);
	} else if (end && is("term")) {
		raise(SIGTERM);
	} else if (end && is("memory")) {
		/* Several times, for the samples of what it does. */
		for (char *p; (p = malloc(1 << 20)) != NULL;)
			for (int i = 0; i < 16; i++)
				memset(p, i, 1 << 20);
	} else if (end) {
		get_stuck();
	}
}

static void read_arguments(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "exit:0";
	stuck_file = argc > 2 ? argv[2] : NULL;
}

#endif
