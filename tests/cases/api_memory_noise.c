/* Sessions that are kept for ever; resident memory is told, with garbage that comes and goes. */
#include "tasks.h"

static struct tacho_name serve_kind = TACHO_KIND("serve");
static struct tacho_name rss = TACHO_GAUGE("rss", "bytes"); /* FAULT */

static uint32_t serve(struct task *t)
{
	static uint64_t kept = 20 << 20, n;

	kept += 120000;
	n++;
	tacho_gauge(&rss, (double)(kept + (n % 17) * 400000));
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
