/* A server of libevent. */
#include "truth.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMERS 8

static struct event_base *base;

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
	if (request >> 63) {
		flood_job();
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

int main(int argc, char **argv)
{
	struct event *e;

	parse(argc, argv);
	start_helpers();
	serving_thread();
	base = event_base_new();
	e = event_new(base, listen_and_tell(), EV_READ | EV_PERSIST, on_client, NULL);
	must(e && !event_add(e, NULL), "event_add");
	every(50, on_time);
	for (int i = 0; i < TIMERS && fault_is("timers"); i++)
		every(1, on_storm);
	event_base_dispatch(base);
	write_truth();
	_exit(0);
}
