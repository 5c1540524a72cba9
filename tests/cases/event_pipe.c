/* A callback asks a helper over a pipe and waits for its answer. */
#include <event2/event.h>
#include <pthread.h>
#include <unistd.h>

#include "case.h"

static uint64_t end;
static int questions[2], answers[2];
static struct event_base *base;

static void *answer_slowly(void *arg)
{
	char c;

	while (read(questions[0], &c, 1) == 1) {
		usleep(80000);
		if (write(answers[1], &c, 1) != 1)
			break;
	}
	return arg;
}

static void ask_helper(void)
{
	char c = '?';

	case_check(write(questions[1], &c, 1) != 1, "write");
	case_check(read(answers[0], &c, 1) != 1, "read"); /* FAULT */
	case_sink += (uint64_t)c;
}

static void on_request(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	ask_helper();
	if (case_now() > end)
		event_base_loopbreak(base);
}

int main(void)
{
	struct timeval interval = {0, 250000};
	struct event *requests;
	pthread_t thread;

	end = case_end(2);
	case_check(pipe(questions) || pipe(answers), "pipe");
	case_check(pthread_create(&thread, NULL, answer_slowly, NULL), "pthread_create");
	base = event_base_new();
	requests = event_new(base, -1, EV_PERSIST, on_request, NULL);
	event_add(requests, &interval);
	event_base_dispatch(base);
	event_free(requests);
	event_base_free(base);
	close(questions[1]);
	return pthread_join(thread, NULL);
}
