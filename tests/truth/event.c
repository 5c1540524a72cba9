/* A server of libevent. */
#include "truth.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMERS 8
#define MANY_TIMERS 24 /* that leave the loop no time */

static struct event_base *base;
static struct event *listening;

static void on_leaked(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

/* A timer for a session, which nobody frees. */
FAULT fault_timer_leak(void)
{
	struct timeval hour = {.tv_sec = 3600};
	struct event *e = event_new(base, -1, EV_PERSIST, on_leaked, NULL);
	uint64_t now = now_ns();

	must(e && !event_add(e, &hour), "event_add");
	note("fault_timer_leak", now, now);
}

static void on_read(evutil_socket_t fd, short what, void *arg)
{
	struct event **self = arg;
	uint64_t request;
	ssize_t n = recv(fd, &request, sizeof(request), 0);

	(void)what;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		event_free(*self);
		free(self);
		close(fd);
		return;
	}
	if (request & FLOOD_BIT) {
		flood_job();
		return;
	}
	if (request & FEED_BIT) {
		feed_job();
		return;
	}
	serve_request();
	if (fault_is("timer-leak"))
		fault_timer_leak();
	must(send(fd, &request, sizeof(request), MSG_NOSIGNAL) > 0 || errno == EPIPE ||
		     errno == ECONNRESET,
	     "send");
}

static void on_client(evutil_socket_t listener, short what, void *arg)
{
	struct event **e;
	int fd;

	(void)what, (void)arg;
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		end_ns();
		e = malloc(sizeof(*e));
		must(e != NULL, "malloc");
		*e = event_new(base, fd, EV_READ | EV_PERSIST, on_read, e);
		must(*e && !event_add(*e, NULL), "event_add");
		/* One connection is all there is. */
		if (!strcmp(options.shape, "single-event")) {
			event_free(listening);
			close(listener);
			return;
		}
	}
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (over())
		event_base_loopbreak(base);
}

static void on_storm(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	timer_job();
}

static void every(int ms, event_callback_fn call)
{
	struct timeval t = {.tv_usec = ms * 1000};
	struct event *e = event_new(base, -1, EV_PERSIST, call, NULL);

	must(e && !event_add(e, &t), "event_add");
}

/* Asks for its next turn by itself. */
static void on_rhythm(evutil_socket_t fd, short what, void *arg)
{
	struct timeval t = {.tv_usec = (suseconds_t)(options.period_ns / 1000)};
	struct event **self = arg;

	(void)fd, (void)what;
	if (rhythm_job())
		event_add(*self, &t);
}

static void on_unread(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	unread_job();
}

static int timers(void)
{
	if (fault_is("timers-full"))
		return MANY_TIMERS;
	return fault_is("timers") || fault_is("healthy-timers") ? TIMERS : 0;
}

static void start_others(void)
{
	static struct event *rhythm, *unread;
	struct timeval t = {.tv_usec = (suseconds_t)(options.period_ns / 1000)};

	for (int i = 0; i < timers(); i++)
		every(fault_is("healthy-timers") ? 10 : 1, on_storm);
	if (fault_is("timer-stops") || fault_is("healthy-rhythm")) {
		rhythm = event_new(base, -1, 0, on_rhythm, &rhythm);
		must(rhythm && !event_add(rhythm, &t), "event_add");
	}
	if (fault_is("unread")) {
		unread = event_new(base, unread_fd(), EV_READ | EV_PERSIST, on_unread, NULL);
		must(unread && !event_add(unread, NULL), "event_add");
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	start_helpers();
	serving_thread();
	base = event_base_new();
	listening = event_new(base, listen_and_tell(), EV_READ | EV_PERSIST, on_client, NULL);
	must(listening && !event_add(listening, NULL), "event_add");
	every(50, on_time);
	start_others();
	event_base_dispatch(base);
	write_truth();
	_exit(0);
}
