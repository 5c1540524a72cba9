/* The runtime looks at its queue only every 40 ms, whatever was woken meanwhile. */
#include "tasks.h"

static struct tacho_name request_kind = TACHO_KIND("request"); /* FAULT */
static struct tacho_name source_kind = TACHO_KIND("source");

static uint64_t next_look;

/* Only now and then; the loop idles until then. */
static int look(void)
{
	if (case_now() < next_look)
		return 0;
	next_look = case_now() + 40 * CASE_MS;
	return 1;
}

static uint32_t request(struct task *t)
{
	case_work(50);
	if (t->step++ == 3)
		return TACHO_DONE;
	task_sleep(t, 3);
	return TACHO_PENDING;
}

static uint32_t source(struct task *t)
{
	for (int i = 0; i < 4; i++)
		task_spawn(&request_kind, request, TACHO_HERE);
	task_sleep(t, 30);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	case_rounds_per_ms();
	tasks_turn = look;
	task_spawn(&source_kind, source, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
