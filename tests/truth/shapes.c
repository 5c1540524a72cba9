/* Servers of epoll, poll and threads: how loops and threads share what there is to do. */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 64
#define WAIT_MS 100 /* so that the end of the window is noticed */

static int listener, epoll;

/* ------------------------------------------------------------------ one request */

/* One request of 8 bytes; 0: the connection is at its end, or has none now. */
static int serve(int fd)
{
	uint64_t request;
	ssize_t n = recv(fd, &request, sizeof(request), 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 1 : 0;
	if (request & FLOOD_BIT) {
		flood_job();
		return 1;
	}
	if (request & FEED_BIT) {
		feed_job();
		return 1;
	}
	serve_request();
	must(send(fd, &request, sizeof(request), MSG_NOSIGNAL) > 0 || errno == EPIPE ||
		     errno == ECONNRESET,
	     "send");
	return 1;
}

static int accepted(int blocking)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK));

	end_ns();
	return fd;
}

static void watch(int set, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	must(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) || errno == EEXIST, "epoll_ctl");
}

static void join_all(void *(*start)(void *), int count)
{
	pthread_t threads[MAX_THREADS];

	for (intptr_t i = 0; i < count; i++)
		must(!pthread_create(&threads[i], NULL, start, (void *)i), "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* ------------------------------------------------------- loops of one thread each */

static int sets[MAX_THREADS], loops = 1;

static void on_ready(int fd)
{
	static int turn;
	int next;

	if (fd != listener) {
		if (!serve(fd))
			close(fd);
		return;
	}
	while ((next = accepted(0)) >= 0)
		watch(sets[turn++ % loops], next, EPOLLIN);
}

static void *epoll_loop(void *arg)
{
	struct epoll_event e[16];
	int set = sets[(intptr_t)arg];

	serving_thread();
	while (!over()) {
		int n = epoll_wait(set, e, 16, WAIT_MS);

		for (int i = 0; i < n; i++)
			on_ready(e[i].data.fd);
	}
	served();
	return NULL;
}

static void epoll_shape(int count)
{
	loops = count;
	for (int i = 0; i < count; i++)
		sets[i] = epoll_create1(EPOLL_CLOEXEC);
	leak_set = sets[0];
	watch(sets[0], listener, EPOLLIN);
	if (count == 1)
		epoll_loop(NULL);
	else
		join_all(epoll_loop, count);
}

static void poll_shape(void)
{
	struct pollfd p[MAX_CONNECTIONS + 1] = {{.fd = listener, .events = POLLIN}};
	nfds_t count = 1;
	int unread = fault_is("unread") ? unread_fd() : -1;

	if (unread >= 0)
		p[count++] = (struct pollfd){.fd = unread, .events = POLLIN};
	serving_thread();
	while (!over()) {
		int fd;

		if (poll(p, count, WAIT_MS) <= 0)
			continue;
		for (nfds_t i = 1; i < count; i++)
			if (p[i].revents && p[i].fd == unread) {
				unread_job();
			} else if (p[i].revents && !serve(p[i].fd)) {
				close(p[i].fd);
				p[i--] = p[--count];
			}
		while (p[0].revents && count <= MAX_CONNECTIONS && (fd = accepted(0)) >= 0)
			p[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
}

/* ------------------------------------------- a loop that knows nothing of its handlers */

struct source {
	int fd;
	void (*handle)(struct source *s);
};

static void add_source(int fd, void (*handle)(struct source *s))
{
	struct source *s = malloc(sizeof(*s));
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};

	must(s != NULL, "malloc");
	*s = (struct source){fd, handle};
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
}

static void remove_source(struct source *s)
{
	close(s->fd);
	free(s);
}

static void on_flood(struct source *s)
{
	if (!flood_read_job(s->fd))
		remove_source(s);
}

static void on_connection(struct source *s)
{
	uint64_t first;

	/* The first message says what comes. */
	if (recv(s->fd, &first, sizeof(first), MSG_PEEK) == sizeof(first) && first & FLOOD_BIT &&
	    !(fault_is("flood")))
		s->handle = on_flood;
	else if (!serve(s->fd))
		remove_source(s);
}

static void on_unread(struct source *s)
{
	(void)s;
	unread_job();
}

static void on_listener(struct source *s)
{
	int fd;

	(void)s;
	while ((fd = accepted(0)) >= 0)
		add_source(fd, on_connection);
}

static void generic_shape(void)
{
	struct epoll_event e[16];

	leak_set = epoll = epoll_create1(EPOLL_CLOEXEC);
	add_source(listener, on_listener);
	if (fault_is("unread"))
		add_source(unread_fd(), on_unread);
	serving_thread();
	while (!over()) {
		int n = epoll_wait(epoll, e, 16, WAIT_MS);

		for (int i = 0; i < n; i++) {
			struct source *s = e[i].data.ptr;

			s->handle(s);
		}
	}
}

/* ----------------------------------------------------- several threads, one epoll */

static void again(int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};

	epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e);
}

/* What a thread does that got a descriptor for itself. */
static void own_ready(int fd)
{
	int next;

	if (fd == listener) {
		while ((next = accepted(0)) >= 0)
			watch(epoll, next, EPOLLIN | EPOLLONESHOT);
	} else if (!serve(fd)) {
		close(fd);
		return;
	}
	again(fd);
}

static void *sharer(void *arg)
{
	struct epoll_event e;

	serving_thread();
	while (!over())
		if (epoll_wait(epoll, &e, 1, WAIT_MS) > 0)
			own_ready(e.data.fd);
	served();
	return arg;
}

/* ------------------------------------------------------------ leader and followers */

static pthread_mutex_t leader_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t leader_gone = PTHREAD_COND_INITIALIZER;
static int led;

static void lead(void)
{
	pthread_mutex_lock(&leader_lock);
	while (led)
		pthread_cond_wait(&leader_gone, &leader_lock);
	led = 1;
	pthread_mutex_unlock(&leader_lock);
}

static void follow(void)
{
	pthread_mutex_lock(&leader_lock);
	led = 0;
	pthread_cond_signal(&leader_gone);
	pthread_mutex_unlock(&leader_lock);
}

static void *leader(void *arg)
{
	struct epoll_event e;

	serving_thread();
	while (!over()) {
		int n;

		lead();
		n = epoll_wait(epoll, &e, 1, WAIT_MS);
		follow();
		if (n > 0)
			own_ready(e.data.fd);
	}
	served();
	return arg;
}

static void shared_shape(void *(*start)(void *))
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(epoll, listener, EPOLLIN | EPOLLONESHOT);
	join_all(start, options.threads);
}

/* -------------------------------------------------------- a pool behind a loop */

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_there = PTHREAD_COND_INITIALIZER;
static struct job {
	int fd;
	uint64_t request;
} jobs[4096], done[4096];
static unsigned first_job, last_job, first_done, last_done;
static int done_event;

static void *pool_thread(void *arg)
{
	uint64_t one = 1;

	for (;;) {
		struct job j;

		pthread_mutex_lock(&jobs_lock);
		while (first_job == last_job)
			pthread_cond_wait(&jobs_there, &jobs_lock);
		j = jobs[first_job++ % 4096];
		pthread_mutex_unlock(&jobs_lock);
		if (fault_is("pool"))
			pool_job();
		COMPUTE(options.work_us * 1000 / 2);
		pthread_mutex_lock(&jobs_lock);
		done[last_done++ % 4096] = j;
		pthread_mutex_unlock(&jobs_lock);
		must(write(done_event, &one, sizeof(one)) == sizeof(one), "eventfd");
	}
	return arg;
}

static void answer_done(void)
{
	uint64_t count;

	if (read(done_event, &count, sizeof(count)) < 0)
		return;
	for (;;) {
		struct job j = {.fd = -1};

		pthread_mutex_lock(&jobs_lock);
		if (first_done != last_done)
			j = done[first_done++ % 4096];
		pthread_mutex_unlock(&jobs_lock);
		if (j.fd < 0 || send(j.fd, &j.request, sizeof(j.request), MSG_NOSIGNAL) < 0)
			return;
	}
}

static void queue_job(int fd)
{
	struct job j = {.fd = fd};
	ssize_t n = recv(fd, &j.request, sizeof(j.request), 0);

	if (n <= 0) {
		if (!n)
			close(fd);
		return;
	}
	serve_request();
	pthread_mutex_lock(&jobs_lock);
	jobs[last_job++ % 4096] = j;
	pthread_cond_signal(&jobs_there);
	pthread_mutex_unlock(&jobs_lock);
}

static void pool_shape(void)
{
	struct epoll_event e[16];
	pthread_t thread;
	int fd;

	serving_thread();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	done_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch(epoll, listener, EPOLLIN);
	watch(epoll, done_event, EPOLLIN);
	for (int i = 0; i < options.threads; i++)
		must(!pthread_create(&thread, NULL, pool_thread, NULL), "pthread_create");
	while (!over()) {
		int n = epoll_wait(epoll, e, 16, WAIT_MS);

		for (int i = 0; i < n; i++)
			if (e[i].data.fd == done_event)
				answer_done();
			else if (e[i].data.fd != listener)
				queue_job(e[i].data.fd);
			else
				while ((fd = accepted(0)) >= 0)
					watch(epoll, fd, EPOLLIN);
	}
}

/* ------------------------------------------------------------ thread per connection */

static void *connection(void *arg)
{
	int fd = (int)(intptr_t)arg;

	serving_thread();
	while (serve(fd))
		;
	served();
	close(fd);
	return NULL;
}

static void *acceptor(void *arg)
{
	pthread_t thread;
	int fd;

	while ((fd = accepted(1)) >= 0)
		must(!pthread_create(&thread, NULL, connection, (void *)(intptr_t)fd),
		     "pthread_create");
	return arg;
}

static void connections_shape(void)
{
	pthread_t thread;

	must(!fcntl(listener, F_SETFL, 0) && !pthread_create(&thread, NULL, acceptor, NULL),
	     "acceptor");
	while (!over())
		SLEEP(20 * MS);
}

int main(int argc, char **argv)
{
	const char *shape;

	parse(argc, argv);
	shape = options.shape;
	start_helpers();
	start_supervisors();
	listener = listen_and_tell();
	if (!strcmp(shape, "epoll"))
		epoll_shape(1);
	else if (!strcmp(shape, "two-loops") || !strcmp(shape, "many-loops"))
		epoll_shape(options.threads);
	else if (!strcmp(shape, "generic"))
		generic_shape();
	else if (!strcmp(shape, "poll"))
		poll_shape();
	else if (!strcmp(shape, "shared"))
		shared_shape(sharer);
	else if (!strcmp(shape, "leader"))
		shared_shape(leader);
	else if (!strcmp(shape, "pool"))
		pool_shape();
	else
		connections_shape();
	write_truth();
	/* Threads are in the middle of something. */
	_exit(0);
}
