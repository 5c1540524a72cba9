/* A cache fills and stays as it is. */
#include "tasks.h"

static struct tacho_name serve_kind = TACHO_KIND("serve");
static struct tacho_name heap = TACHO_GAUGE("heap", "bytes");

static uint32_t serve(struct task *t)
{
	static double kept = 10 << 20;

	kept += (60e6 - kept) / 40;
	tacho_gauge(&heap, kept);
	task_sleep(t, 10);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	task_spawn(&serve_kind, serve, TACHO_HERE);
	tasks_run(case_end(3), UINT64_MAX);
	tasks_save();
	return 0;
}
