/* A task that drains a queue which is filled as fast; somebody kills the process at last. */
#include "tasks.h"

static struct tacho_name drain_kind = TACHO_KIND("drain");
static struct tacho_name tick_kind = TACHO_KIND("tick");
static volatile int empty;

static __attribute__((noinline)) void drain_queue(void)
{
	uint64_t sum = 0;

	while (!empty)		    /* FAULT */
		sum = sum * 31 + 1; /* FAULT */
	case_sink = sum;
}

static uint32_t drain(struct task *t)
{
	if (t->step++)
		drain_queue();
	task_sleep(t, 600);
	return TACHO_PENDING;
}

static uint32_t tick(struct task *t)
{
	case_work(50);
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	case_killed_after(3);
	tasks_start("server");
	task_spawn(&drain_kind, drain, TACHO_HERE);
	task_spawn(&tick_kind, tick, TACHO_HERE);
	tasks_run(case_end(20), UINT64_MAX);
	return 0;
}
