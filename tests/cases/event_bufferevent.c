/* A read callback of a bufferevent sleeps 25 ms for one message in ten. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "case.h"

static uint64_t end;
static unsigned count;
static int pair[2];
static struct event_base *base;

static __attribute__((noinline)) void rate_limit(void)
{
	struct timespec t = {0, 25000000};

	nanosleep(&t, NULL); /* FAULT */
	case_sink++;	     /* FAULT */
}

static void on_read(struct bufferevent *b, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(b);

	(void)arg;
	while (evbuffer_get_length(in) >= 8) {
		evbuffer_drain(in, 8);
		if (++count % 10 == 0)
			rate_limit();
	}
	if (case_now() > end)
		event_base_loopbreak(base);
}

static void *sender(void *arg)
{
	while (write(pair[1], "12345678", 8) == 8)
		usleep(10000);
	return arg;
}

int main(void)
{
	struct bufferevent *b;
	pthread_t thread;

	end = case_end(2.5);
	base = event_base_new();
	case_check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	evutil_make_socket_nonblocking(pair[0]);
	b = bufferevent_socket_new(base, pair[0], 0);
	bufferevent_setcb(b, on_read, NULL, NULL, NULL);
	bufferevent_enable(b, EV_READ);
	case_check(pthread_create(&thread, NULL, sender, NULL), "pthread_create");
	event_base_dispatch(base);
	exit(0);
}
