/* Requests wait for a database that takes its time; the loop itself has nothing to do. */
#include "tasks.h"

#include <unistd.h>

static struct tacho_name request_kind = TACHO_KIND("request");
static struct tacho_name source_kind = TACHO_KIND("source");
static struct tacho_name query = TACHO_SPAN_NAME("query_database"); /* FAULT */

static uint32_t request(struct task *t)
{
	case_work(100);
	if (t->step++) {
		tacho_async_end(&query, t->id);
		return TACHO_DONE;
	}
	tacho_async_begin(&query, t->id, 0);
	tacho_span_trace_id(t->id, UINT64_C(0x4bf92f3577b34da6), t->id);
	/* The answer of the database. */
	task_sleep(t, 180 + t->id % 60);
	return TACHO_PENDING;
}

static uint32_t source(struct task *t)
{
	task_spawn(&request_kind, request, TACHO_HERE);
	task_sleep(t, 10);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	case_rounds_per_ms();
	task_spawn(&source_kind, source, TACHO_HERE);
	tasks_run(case_end(2.5), UINT64_MAX);
	tasks_save();
	return 0;
}
