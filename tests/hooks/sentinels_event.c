/*
 * A libevent program that does one thing too slowly, over and over, until it is ended or a
 * minute is over:
 *
 *   slow   a timer's callback takes 30 ms
 *   wake   the same keeps an event waiting that was made active before
 *   gone   an event that was made active is deleted before it ran, and is added again as a
 *          timer, which fires 30 ms later
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct event *slow, *woken;
static const char *mode;

static void pass(long ms)
{
	struct timespec t = {0, ms * 1000000};

	nanosleep(&t, NULL);
}

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void on_slow(evutil_socket_t fd, short what, void *arg)
{
	struct timeval soon = {0, 30000};

	(void)fd;
	(void)what;
	(void)arg;
	if (!strcmp(mode, "gone")) {
		event_active(woken, EV_READ, 0);
		event_del(woken);
		event_add(woken, &soon);
		return;
	}
	if (!strcmp(mode, "wake"))
		event_active(woken, EV_READ, 0);
	pass(30);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct timeval often = {0, 100000};

	mode = argc > 1 ? argv[1] : "";
	alarm(60);
	slow = event_new(base, -1, EV_PERSIST, on_slow, NULL);
	woken = event_new(base, -1, 0, on_woken, NULL);
	event_add(slow, &often);
	return event_base_dispatch(base);
}
