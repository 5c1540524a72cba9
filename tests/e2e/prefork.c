/*
 * A server that forks its workers first. Each listens on a socket of its own in a folder, so that a client
 * can reach all of them, and serves its connections on one epoll loop. A request is a byte; one of 's' is
 * slow. The parent does nothing but wait for signals, with a time-out. At SIGTERM it ends its workers and
 * writes what each did in slow requests: pid, how many, ns in all, the longest.
 *
 *   prefork FOLDER WORKERS
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 64
#define SLOW_MS 60

struct done {
	pid_t pid;
	uint64_t count, ns, longest_ns;
};

static struct done *done; /* by worker, shared */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void fetch_from_upstream(struct done *d)
{
	const struct timespec t = {.tv_nsec = SLOW_MS * 1000000};
	uint64_t begin = now(), ns;

	nanosleep(&t, NULL);
	ns = now() - begin;
	d->count++;
	d->ns += ns;
	d->longest_ns = ns > d->longest_ns ? ns : d->longest_ns;
}

static int listen_at(const char *folder, int worker)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s/%d", folder, worker);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 16))
		exit(3);
	return s;
}

static void serve(int connection, struct done *d)
{
	char byte;

	if (read(connection, &byte, 1) != 1) {
		close(connection);
		return;
	}
	if (byte == 's')
		fetch_from_upstream(d);
	if (write(connection, &byte, 1) != 1)
		exit(3);
}

static void work(int listener, struct done *d)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, ready[16];
	int loop = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(loop, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		int n = epoll_wait(loop, ready, 16, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd != listener) {
				serve(ready[i].data.fd, d);
				continue;
			}
			event.data.fd = accept(listener, NULL, NULL);
			epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event);
		}
	}
}

__attribute__((noinline)) static void wait_for_signals(const sigset_t *set)
{
	const struct timespec t = {.tv_nsec = 300000000};

	while (sigtimedwait(set, NULL, &t) != SIGTERM)
		;
}

int main(int argc, char **argv)
{
	int workers = argc > 2 ? atoi(argv[2]) : 0;
	char path[200];
	sigset_t set;
	FILE *out;

	if (workers < 1 || workers > WORKERS)
		return 2;
	done = mmap(NULL, WORKERS * sizeof(*done), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < workers; i++) {
		int listener = listen_at(argv[1], i);

		pid_t pid = fork();

		if (!pid)
			work(listener, &done[i]);
		done[i].pid = pid;
		close(listener);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	snprintf(path, sizeof(path), "%s/ready", argv[1]);
	fclose(fopen(path, "w"));
	wait_for_signals(&set);
	for (int i = 0; i < workers; i++)
		kill(done[i].pid, SIGTERM);
	while (wait(NULL) > 0)
		;
	snprintf(path, sizeof(path), "%s/done", argv[1]);
	out = fopen(path, "w");
	for (int i = 0; i < workers; i++)
		fprintf(out, "%d %llu %llu %llu\n", (int)done[i].pid,
			(unsigned long long)done[i].count, (unsigned long long)done[i].ns,
			(unsigned long long)done[i].longest_ns);
	fclose(out);
	return 0;
}
