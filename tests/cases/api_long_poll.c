/* A task computes for 70 ms in one poll; the others wait for it. */
#include "tasks.h"

static struct tacho_name compact_kind = TACHO_KIND("compact");
static struct tacho_name tick_kind = TACHO_KIND("tick");

static __attribute__((noinline)) void compact_table(uint64_t rounds)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++) /* FAULT */
		sum = sum * 31 + i;	      /* FAULT */
	case_sink = sum;
}

static uint32_t compact(struct task *t)
{
	compact_table(case_rounds_per_ms() * 70);
	task_sleep(t, 300);
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
	task_spawn(&compact_kind, compact, TACHO_HERE);
	for (int i = 0; i < 4; i++)
		task_spawn(&tick_kind, tick, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
