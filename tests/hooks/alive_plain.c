/* Descriptors, those of an epoll set, and threads: argv[1] says what is begun and not ended, or that all is
   well. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alive.h"

static const char *what;
static int set, listener;
static struct sockaddr_in address;

static int is(const char *name)
{
	return !strcmp(what, name);
}

static __attribute__((noinline)) void watch_connection(int fd)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.fd = fd};

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
}

/* --------------------------------------------------------------- a server */

/* A client that comes and goes, or stays. */
static void client(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || write(fd, "x", 1) != 1)
		abort();
	if (!is("load"))
		close(fd);
}

/* "gone": the end is seen, and the descriptor is not closed. */
static void serve(int fd)
{
	char buf[16];
	ssize_t n;

	if (fd == listener) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd >= 0)
			watch_connection(fd);
		return;
	}
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		;
	if (n == 0 && !is("gone"))
		close(fd);
}

static void listen_here(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	socklen_t size = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	e.data.fd = listener;
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 128) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, listener, &e))
		abort();
}

/* ---------------------------------------------------------------- the rest */

static __attribute__((noinline)) void watch_event(int keep)
{
	struct epoll_event e = {.events = EPOLLIN};
	/* Where it is kept, hooks see it; else only what becomes of it in the set. */
	int fd = keep ? eventfd(0, 0) : (int)syscall(SYS_eventfd2, 0, 0);

	epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
	if (keep)
		return;
	/* No number comes twice. */
	if (ticks & 1)
		epoll_ctl(set, EPOLL_CTL_DEL, fd, &e);
	else if (close(fd) || syscall(SYS_dup, set) != fd)
		abort();
}

/* Files, sockets and folders; those that are closed are so by each of the ways there are. */
static __attribute__((noinline)) void open_one(int keep)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd < 0)
		abort();
	if (!keep)
		close(fd);
}

static __attribute__((noinline)) void make_pair(void)
{
	int two[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, two) || close(two[1]))
		abort();
}

static __attribute__((noinline)) void watch_and_forget(void)
{
	struct epoll_event e = {.events = EPOLLIN};
	int fd = eventfd(0, 0);

	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) || epoll_ctl(set, EPOLL_CTL_DEL, fd, &e))
		abort();
}

/* No number comes twice: others that no hook sees have them. */
static void open_and_close(void)
{
	FILE *file = fopen("/dev/null", "r");
	DIR *folder = opendir("/");
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (!file || !folder || fd < 0 || fclose(file) || closedir(folder) || close(fd))
		abort();
	for (int i = 0; i < 3; i++)
		if (syscall(SYS_dup, set) < 0)
			abort();
}

enum session { WAITS, RETURNS, EXITS };

static void *run_session(void *arg)
{
	while ((uintptr_t)arg == WAITS)
		pause();
	if ((uintptr_t)arg == EXITS)
		pthread_exit(NULL);
	return NULL;
}

static __attribute__((noinline)) void begin_thread(enum session what_then)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, run_session, (void *)(uintptr_t)what_then))
		abort();
	pthread_attr_destroy(&attr);
}

static void tick(void)
{
	if (is("load") || is("gone") || is("connections"))
		for (int i = is("connections") ? 3 : 1; i; i--)
			client();
	if (is("descriptors"))
		watch_event(1);
	if (is("descriptors-come-and-go"))
		watch_event(0);
	if (is("descriptors-pool") && ticks < TICKS / 2)
		watch_event(1);
	if (is("opened"))
		open_one(1);
	if (is("opened-pool"))
		open_one(ticks < TICKS / 2);
	if (is("opened-come-and-go"))
		open_and_close();
	if (is("pairs"))
		make_pair();
	if (is("forgotten"))
		watch_and_forget();
	if (is("threads") && ticks % 4 == 0)
		begin_thread(WAITS);
	if (is("threads-come-and-go"))
		begin_thread(ticks & 1 ? RETURNS : EXITS);
	if (is("threads-pool") && ticks < TICKS / 2 && ticks % 4 == 0)
		begin_thread(WAITS);
}

int main(int argc, char **argv)
{
	struct rlimit limit = {4096, 4096};
	struct epoll_event e[16];

	what = argc > 1 ? argv[1] : "";
	setrlimit(RLIMIT_NOFILE, &limit);
	set = epoll_create1(0);
	listen_here();
	while (ticks < TICKS) {
		int due = tick_due(), n;

		if (due)
			tick();
		/* After each: the listener has room for so many. */
		while ((n = epoll_wait(set, e, 16, due ? 0 : 5)) > 0)
			for (int i = 0; i < n; i++)
				serve(e[i].data.fd);
	}
	return 0;
}
