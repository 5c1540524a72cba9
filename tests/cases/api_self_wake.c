/* A task that has nothing to do yet wakes itself to look again, instead of waiting. */
#include "tasks.h"

static struct tacho_name flush_kind = TACHO_KIND("poll_flush"); /* FAULT */
static struct tacho_name tick_kind = TACHO_KIND("tick");

static uint32_t poll_flush(struct task *t)
{
	case_work(5);
	task_wake(t);
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
	tasks_start("server");
	case_rounds_per_ms();
	task_spawn(&flush_kind, poll_flush, TACHO_HERE);
	task_spawn(&tick_kind, tick, TACHO_HERE);
	tasks_run(case_end(1.5), 16);
	tasks_save();
	return 0;
}
