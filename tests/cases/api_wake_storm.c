/* A producer wakes its consumer for each item, hundreds of times before it runs once. */
#include "tasks.h"

static struct tacho_name consumer_kind = TACHO_KIND("consumer");
static struct tacho_name producer_kind = TACHO_KIND("producer"); /* FAULT */
static struct task *woken;

static uint32_t consumer(struct task *t)
{
	(void)t;
	case_work(100);
	return TACHO_PENDING;
}

static uint32_t producer(struct task *t)
{
	for (int i = 0; i < 500; i++)
		task_wake(woken);
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	case_rounds_per_ms();
	woken = task_spawn(&consumer_kind, consumer, TACHO_HERE);
	task_spawn(&producer_kind, producer, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
