/* Requests as tasks: each parses, asks a backend that answers in time, and ends. */
#include "tasks.h"

static struct tacho_name request_kind = TACHO_KIND("request");
static struct tacho_name source_kind = TACHO_KIND("source");
static struct tacho_name served = TACHO_SPAN_NAME("serve");
static struct tacho_name memory = TACHO_GAUGE("heap", "bytes");

static uint32_t request(struct task *t)
{
	TACHO_SPAN("step");

	case_work(100);
	if (t->step == 0)
		tacho_async_begin(&served, t->id, 0);
	if (t->step++ == 2) {
		tacho_async_end(&served, t->id);
		return TACHO_DONE;
	}
	task_sleep(t, 4 + t->id % 5);
	return TACHO_PENDING;
}

static uint32_t source(struct task *t)
{
	for (int i = 0; i < 3; i++)
		task_spawn(&request_kind, request, TACHO_HERE);
	tacho_gauge(&memory, 1e6 + (double)(t->step++ % 7) * 1e5);
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	case_rounds_per_ms();
	task_spawn(&source_kind, source, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
