/*
 * A parent that looks after its children, and children that serve, each with a loop of its own on the
 * same listening socket. All of them have the same fault.
 */
#include "truth.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 100 /* so that the end of the window is noticed */

static int listener, open_now;

/* As in shapes.c: 0 at the end of the connection. */
static int serve(int fd)
{
	uint64_t request;
	ssize_t n = recv(fd, &request, sizeof(request), 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	serve_request();
	must(send(fd, &request, sizeof(request), MSG_NOSIGNAL) > 0 || errno == EPIPE ||
		     errno == ECONNRESET,
	     "send");
	return 1;
}

/* One at a time, and no more than its part: the others have to get some as well. */
static int accepted(void)
{
	int fd = open_now < options.many
			 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
			 : -1;

	open_now += fd >= 0;
	return fd;
}

static void serve_in_epoll(void)
{
	struct epoll_event e[16] = {{.events = EPOLLIN, .data.fd = listener}};
	int set = epoll_create1(EPOLL_CLOEXEC);

	leak_set = set;
	must(!epoll_ctl(set, EPOLL_CTL_ADD, listener, &e[0]), "epoll_ctl");
	while (!over()) {
		int n = epoll_wait(set, e, 16, WAIT_MS);

		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd;

			if (fd == listener) {
				struct epoll_event new = {.events = EPOLLIN, .data.fd = accepted()};

				if (new.data.fd >= 0)
					epoll_ctl(set, EPOLL_CTL_ADD, new.data.fd, &new);
				if (open_now == options.many)
					epoll_ctl(set, EPOLL_CTL_DEL, listener, NULL);
			} else if (!serve(fd)) {
				close(fd);
			}
		}
	}
}

static void serve_in_poll(void)
{
	struct pollfd *p = calloc((size_t)options.many + 1, sizeof(*p));
	nfds_t count = 1;

	must(p != NULL, "calloc");
	p[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	while (!over()) {
		int fd;

		if (poll(p, count, WAIT_MS) <= 0)
			continue;
		for (nfds_t i = 1; i < count; i++)
			if (p[i].revents && !serve(p[i].fd)) {
				close(p[i].fd);
				p[i].fd = -1;
			}
		if (p[0].revents && (fd = accepted()) >= 0)
			p[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
		if (open_now == options.many)
			p[0].fd = -1;
	}
}

static void child(void)
{
	forked();
	start_helpers();
	serving_thread();
	if (!strcmp(options.shape, "prefork-poll"))
		serve_in_poll();
	else
		serve_in_epoll();
	write_truth();
	_exit(0);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	listener = listen_and_tell();
	/* All have the same window. */
	end_ns();
	for (int i = 0; i < options.threads; i++) {
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (!pid)
			child();
	}
	supervise_children(options.threads);
	write_truth();
	return 0;
}
