/* Two tasks are taken from the queue in each turn, and five come in: it grows and grows. */
#include "tasks.h"

#include <pthread.h>
#include <unistd.h>

static struct tacho_name job_kind = TACHO_KIND("job");
static uint64_t end;

static uint32_t job(struct task *t)
{
	(void)t;
	case_work(30);
	return TACHO_DONE;
}

/* A turn for each 5 ms. */
static int look(void)
{
	static uint64_t next;

	for (int i = 0; case_now() >= next && i < 5; i++)
		task_spawn(&job_kind, job, TACHO_HERE);
	if (case_now() < next)
		return 0;
	next = case_now() + 5 * CASE_MS;
	return 1;
}

static uint32_t keep_alive(struct task *t)
{
	task_sleep(t, 2);
	return TACHO_PENDING;
}

int main(void)
{
	static struct tacho_name alive_kind = TACHO_KIND("keep_alive");

	tasks_start("jobs"); /* FAULT */
	case_rounds_per_ms();
	end = case_end(2);
	tasks_turn = look;
	task_spawn(&alive_kind, keep_alive, TACHO_HERE);
	tasks_run(end, 2);
	tasks_save();
	return 0;
}
