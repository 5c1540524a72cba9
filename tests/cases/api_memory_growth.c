/* A cache that is never emptied; the program tells what its heap holds. */
#include "tasks.h"

#include <string.h>

static struct tacho_name load_kind = TACHO_KIND("load");
static struct tacho_name heap = TACHO_GAUGE("heap", "bytes"); /* FAULT */

static uint32_t load(struct task *t)
{
	static uint64_t bytes = 1 << 20;
	char *entry = malloc(16384);

	case_check(!entry, "malloc");
	memset(entry, 1, 16384);
	case_sink += (uint64_t)(uintptr_t)entry;
	bytes += 16384;
	tacho_gauge(&heap, (double)bytes);
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	task_spawn(&load_kind, load, TACHO_HERE);
	tasks_run(case_end(2), UINT64_MAX);
	tasks_save();
	return 0;
}
