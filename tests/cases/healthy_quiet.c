/*
 * The load ends: a client sends every 5 ms for a second, and then nothing, on connections that it keeps. Who
 * keeps the journal is woken for each request, so it has nothing to do any more, either; only a timer goes on.
 */
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"
#include "tacho.h"

#define CLIENTS 8

static struct tacho_name loop = TACHO_LOOP("server");
static struct tacho_name session_kind = TACHO_KIND("session");
static struct tacho_name journal_kind = TACHO_KIND("journal");
static uint64_t sessions[CLIENTS], journal;
static int ours[CLIENTS], theirs[CLIENTS];

static void *client(void *arg)
{
	uint64_t end = case_now() + 1000 * CASE_MS;

	for (unsigned i = 0; case_now() < end; i++) {
		case_check(write(theirs[i % CLIENTS], "x", 1) != 1, "write");
		usleep(5000);
	}
	return arg;
}

static void serve(int i)
{
	char c;

	tacho_wake(sessions[i]);
	tacho_poll_begin(&session_kind, sessions[i]);
	case_check(read(ours[i], &c, 1) != 1, "read");
	case_work(50);
	tacho_wake(journal);
	tacho_poll_end(TACHO_PENDING);
	tacho_poll_begin(&journal_kind, journal);
	case_work(20);
	tacho_poll_end(TACHO_PENDING);
}

static void run(int epoll, uint64_t end)
{
	struct epoll_event e;

	while (case_now() < end) {
		int n;

		tacho_park(&loop);
		n = epoll_wait(epoll, &e, 1, 50);
		tacho_unpark(&loop, n > 0 ? 1 : 0);
		if (n > 0)
			serve((int)e.data.u32);
	}
}

static uint64_t spawn(struct tacho_name *kind)
{
	uint64_t task = tacho_task_new();

	tacho_task_spawn(task, kind, 0, TACHO_HERE);
	return task;
}

int main(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	pthread_t thread;

	tacho_start(NULL);
	case_rounds_per_ms();
	journal = spawn(&journal_kind);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
		int pair[2];

		case_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
		ours[i] = pair[0];
		theirs[i] = pair[1];
		sessions[i] = spawn(&session_kind);
		case_check(epoll_ctl(epoll, EPOLL_CTL_ADD, ours[i], &e), "epoll_ctl");
	}
	case_check(pthread_create(&thread, NULL, client, NULL), "pthread_create");
	run(epoll, case_end(4));
	pthread_join(thread, NULL);
	return 0;
}
