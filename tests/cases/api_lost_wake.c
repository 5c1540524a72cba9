/* A task looks whether there is data, and waits: the wake came in between and was lost. */
#include "tasks.h"

#define MANY 400

static struct tacho_name fetch_kind = TACHO_KIND("fetch");
static struct tacho_name start_kind = TACHO_KIND("start");
static struct tacho_name data = TACHO_TEXT("data of the backend");

static __attribute__((noinline)) uint32_t wait_for_data(struct task *t)
{
	tacho_task_waits(t->id, &data, t->number, TACHO_WITH_STACK); /* FAULT */
	/* The backend answers all but one. */
	if (t->number != MANY / 4)
		task_sleep(t, 5);
	t->step = 1;
	return TACHO_PENDING;
}

static uint32_t fetch(struct task *t)
{
	case_work(30);
	return t->step ? TACHO_DONE : wait_for_data(t);
}

static uint32_t start(struct task *t)
{
	struct task *f = task_spawn(&fetch_kind, fetch, TACHO_HERE);

	f->number = t->number++;
	if (t->number == MANY)
		return TACHO_DONE;
	task_sleep(t, 5);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	task_spawn(&start_kind, start, TACHO_HERE);
	tasks_run(case_end(3), UINT64_MAX);
	tasks_save();
	return 0;
}
