/*
 * clock_event TURNS MS: a libevent loop, one turn at a time, each with one callback; MS of work of
 * the program itself between two turns. 0: the loop runs through all of them by itself.
 */
#include <event2/event.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static int left;
static struct event_base *base;

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	(void)what;
	(void)arg;
	if (read(fd, &byte, 1) != 1)
		abort();
	if (--left && write(ends[1], "x", 1) != 1)
		abort();
	if (!left)
		event_base_loopbreak(base);
}

/* Computes: a call that sleeps would be recorded. */
static void work(long ms)
{
	clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;

	while (clock() < end)
		;
}

int main(int argc, char **argv)
{
	long ms = argc > 2 ? atol(argv[2]) : 0;
	struct event *e;

	alarm(60);
	left = argc > 1 ? atoi(argv[1]) : 1;
	if (pipe(ends) || write(ends[1], "x", 1) != 1)
		return 1;
	base = event_base_new();
	e = event_new(base, ends[0], EV_READ | EV_PERSIST, on_readable, NULL);
	event_add(e, NULL);
	while (left) {
		event_base_loop(base, ms ? EVLOOP_ONCE : 0);
		work(ms);
	}
	event_free(e);
	event_base_free(base);
	return 0;
}
