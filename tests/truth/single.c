/*
 * Consumers of one descriptor: a loop, or a thread without one, takes items from a connection, a pipe or
 * a queue that an eventfd tells of, one after the other. Several items wait while it is kept.
 */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 100 /* so that the end of the window is noticed */
#define ITEMS 4096

static int connection, source, feed[2];
static pthread_mutex_t items_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t items[ITEMS];
static unsigned first_item, last_item;

static int queue_is(const char *name)
{
	return !strcmp(options.queue, name);
}

/* ------------------------------------------------------------- who fills the queue */

static void put(uint64_t item)
{
	uint64_t one = 1;

	if (queue_is("pipe")) {
		must(write(feed[1], &item, sizeof(item)) == sizeof(item), "pipe");
		return;
	}
	pthread_mutex_lock(&items_lock);
	items[last_item++ % ITEMS] = item;
	pthread_mutex_unlock(&items_lock);
	must(write(source, &one, sizeof(one)) == sizeof(one), "eventfd");
}

static void *feeder(void *arg)
{
	uint64_t item;

	helper_thread();
	while (recv(connection, &item, sizeof(item), MSG_WAITALL) == sizeof(item))
		put(item);
	served();
	return arg;
}

/* The descriptor that the items come from. A thread without a loop waits in the read itself. */
static void open_source(int blocking)
{
	pthread_t thread;

	if (queue_is("tcp")) {
		source = connection;
		if (!blocking)
			must(!fcntl(source, F_SETFL, O_NONBLOCK), "fcntl");
		return;
	}
	if (queue_is("pipe")) {
		must(!pipe2(feed, O_CLOEXEC), "pipe");
		source = feed[0];
		if (!blocking)
			must(!fcntl(source, F_SETFL, O_NONBLOCK), "fcntl");
	} else {
		source = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | (blocking ? 0 : EFD_NONBLOCK));
	}
	must(!pthread_create(&thread, NULL, feeder, NULL), "pthread_create");
}

/* ------------------------------------------------------------------- who takes */

/* 1: an item; 0: there is none now; -1: there will be none any more. */
static int take(uint64_t *item)
{
	ssize_t n = read(source, item, sizeof(*item));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n != sizeof(*item))
		return -1;
	if (queue_is("event")) {
		pthread_mutex_lock(&items_lock);
		*item = items[first_item++ % ITEMS];
		pthread_mutex_unlock(&items_lock);
	}
	return 1;
}

/* 0: the client has gone. */
static int consume(void)
{
	uint64_t item;
	int there = take(&item);

	if (there <= 0)
		return !there;
	serve_request();
	must(send(connection, &item, sizeof(item), MSG_NOSIGNAL) > 0 || errno == EPIPE ||
		     errno == ECONNRESET,
	     "send");
	return 1;
}

static void consume_in_epoll(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	leak_set = set;
	must(!epoll_ctl(set, EPOLL_CTL_ADD, source, &e), "epoll_ctl");
	while (!over())
		if (epoll_wait(set, &e, 1, WAIT_MS) > 0 && !consume())
			epoll_ctl(set, EPOLL_CTL_DEL, source, NULL);
}

static void consume_in_poll(void)
{
	struct pollfd p = {.fd = source, .events = POLLIN};

	while (!over())
		if (poll(&p, 1, WAIT_MS) > 0 && !consume())
			p.fd = -1;
}

static void *consume_in_read(void *arg)
{
	serving_thread();
	while (consume())
		;
	served();
	return arg;
}

int main(int argc, char **argv)
{
	int without_loop, listener;
	struct pollfd p;
	pthread_t thread;

	parse(argc, argv);
	without_loop = !strcmp(options.shape, "single-read");
	start_helpers();
	start_supervisors();
	listener = listen_and_tell();
	p = (struct pollfd){.fd = listener, .events = POLLIN};
	must(poll(&p, 1, 30000) == 1, "poll");
	connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	must(connection >= 0, "accept");
	close(listener);
	open_source(without_loop);
	if (without_loop) {
		must(!pthread_create(&thread, NULL, consume_in_read, NULL), "pthread_create");
		while (!over())
			SLEEP(20 * MS);
	} else {
		serving_thread();
		if (!strcmp(options.shape, "single-poll"))
			consume_in_poll();
		else
			consume_in_epoll();
	}
	write_truth();
	_exit(0);
}
