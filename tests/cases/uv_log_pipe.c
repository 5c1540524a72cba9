/* Lines of a log go into a pipe whose reader is slow: write blocks. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;
static int out[2];

static __attribute__((noinline)) void log_line(void)
{
	static char line[2048];

	memset(line, 'x', sizeof(line));
	case_check(write(out[1], line, sizeof(line)) < 0, "write"); /* FAULT */
}

static void on_request(uv_timer_t *t)
{
	for (int i = 0; i < 3; i++)
		log_line();
	if (case_now() > end)
		uv_timer_stop(t);
}

static void *collector(void *arg)
{
	static char block[32768];

	while (read(out[0], block, sizeof(block)) > 0)
		usleep(60000);
	return arg;
}

int main(void)
{
	pthread_t thread;
	uv_timer_t timer;

	end = case_end(2.5);
	case_check(pipe(out), "pipe");
	case_check(pthread_create(&thread, NULL, collector, NULL), "pthread_create");
	uv_timer_init(uv_default_loop(), &timer);
	uv_timer_start(&timer, on_request, 5, 5);
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	exit(0);
}
