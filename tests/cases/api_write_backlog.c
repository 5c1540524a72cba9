/* A publisher writes into its own buffer for a subscriber that reads slowly. */
#include "tasks.h"

static struct tacho_name publish_kind = TACHO_KIND("publish");
static struct tacho_name backlog = TACHO_GAUGE("write queue", "bytes"); /* FAULT */

static uint32_t publish(struct task *t)
{
	static double bytes;

	case_work(50);
	bytes += 65536 - 8192;
	tacho_gauge(&backlog, bytes);
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	task_spawn(&publish_kind, publish, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
