/* An echo server of libevent with its buffers, under moderate load. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

#define CLIENTS 6

static uint64_t end;
static uint16_t port;
static struct event_base *base;

static void on_read(struct bufferevent *b, void *arg)
{
	(void)arg;
	bufferevent_write_buffer(b, bufferevent_get_input(b));
}

static void on_event(struct bufferevent *b, short what, void *arg)
{
	(void)arg;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(b);
}

static void on_client(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *a, int size,
		      void *arg)
{
	struct bufferevent *b = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);

	(void)l;
	(void)a;
	(void)size;
	(void)arg;
	evutil_make_socket_nonblocking(fd);
	bufferevent_setcb(b, on_read, NULL, on_event, NULL);
	bufferevent_enable(b, EV_READ | EV_WRITE);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (case_now() > end)
		event_base_loopbreak(base);
}

static void *client(void *arg)
{
	int fd = case_connect(port);
	char text[512] = "hello";

	while (case_now() < end) {
		if (write(fd, text, sizeof(text)) < 0 || read(fd, text, sizeof(text)) <= 0)
			break;
		usleep(1000);
	}
	close(fd);
	return arg;
}

int main(void)
{
	struct timeval interval = {0, 100000};
	pthread_t threads[CLIENTS];
	struct event *timer;
	int server;

	end = case_end(2);
	base = event_base_new();
	server = case_listen(16, &port);
	evutil_make_socket_nonblocking(server);
	case_check(!evconnlistener_new(base, on_client, NULL, LEV_OPT_CLOSE_ON_FREE, 0, server),
		   "evconnlistener_new");
	timer = event_new(base, -1, EV_PERSIST, on_time, NULL);
	event_add(timer, &interval);
	for (int i = 0; i < CLIENTS; i++)
		case_check(pthread_create(&threads[i], NULL, client, NULL), "pthread_create");
	event_base_dispatch(base);
	exit(0);
}
