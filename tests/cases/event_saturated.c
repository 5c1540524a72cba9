/* More comes in than one loop can do: every message is short, and there is always another. */
#include <event2/event.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

#define CLIENTS 8

static uint64_t end;
static struct event_base *base;
static int pipes[CLIENTS][2];

static void handle_message(evutil_socket_t fd, short what, void *arg) /* FAULT */
{								      /* FAULT */
	char c[8];

	(void)what;
	(void)arg;
	if (read(fd, c, sizeof(c)) > 0)
		case_work(400); /* FAULT */
	if (case_now() > end)
		event_base_loopbreak(base);
}

static void *send_messages(void *arg)
{
	for (int i = 0; case_now() < end; i++) {
		if (write(pipes[i % CLIENTS][1], "12345678", 8) != 8)
			break;
		if (i % 32 == 0)
			usleep(1000);
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	case_rounds_per_ms();
	end = case_end(2);
	base = event_base_new();
	for (int i = 0; i < CLIENTS; i++) {
		struct event *e;

		case_check(pipe2(pipes[i], O_NONBLOCK), "pipe");
		fcntl(pipes[i][1], F_SETFL, 0);
		e = event_new(base, pipes[i][0], EV_READ | EV_PERSIST, handle_message, NULL);
		event_add(e, NULL);
	}
	case_check(pthread_create(&thread, NULL, send_messages, NULL), "pthread_create");
	event_base_dispatch(base);
	for (int i = 0; i < CLIENTS; i++)
		close(pipes[i][0]);
	_exit(0);
}
