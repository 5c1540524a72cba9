/* The process is stopped from outside (SIGSTOP), now and then, and goes on. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "case.h"

static uint64_t end;

static void on_tick(uv_timer_t *t)
{
	case_work(3000);
	if (case_now() > end)
		uv_timer_stop(t);
}

static void stop_now_and_then(pid_t parent)
{
	for (int i = 0; i < 3; i++) {
		usleep(400000);
		kill(parent, SIGSTOP);
		usleep(250000);
		kill(parent, SIGCONT);
	}
	_exit(0);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	pid_t self = getpid(), child;
	uv_timer_t timer;

	case_rounds_per_ms();
	child = fork();
	case_check(child < 0, "fork");
	if (!child)
		stop_now_and_then(self);
	end = case_end(2.6);
	uv_timer_init(loop, &timer);
	uv_timer_start(&timer, on_tick, 8, 8);
	uv_run(loop, UV_RUN_DEFAULT);
	waitpid(child, NULL, 0);
	return 0;
}
