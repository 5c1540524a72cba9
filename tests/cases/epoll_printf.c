/* Lines of a log go through stdio into a pipe whose reader is slow: fprintf blocks. */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "case.h"

static FILE *out;

static __attribute__((noinline)) void log_request(int i)
{
	fprintf(out, "request %01500d\n", i); /* FAULT */
	case_sink++;
}

static void *collector(void *fd)
{
	static char block[32768];

	while (read(*(int *)fd, block, sizeof(block)) > 0)
		usleep(60000);
	return NULL;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd[2];
	uint64_t end = case_end(2.5);
	struct epoll_event e;
	pthread_t thread;

	case_check(pipe(fd) || !(out = fdopen(fd[1], "w")), "pipe");
	setvbuf(out, NULL, _IOLBF, 4096);
	case_check(pthread_create(&thread, NULL, collector, fd), "pthread_create");
	for (int i = 0; case_now() < end; i++) {
		epoll_wait(epoll, &e, 1, 5);
		case_work(50);
		for (int n = 0; n < 4; n++)
			log_request(i);
	}
	_exit(0);
}
