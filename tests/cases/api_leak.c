/* Every request starts a task that waits for a reply that it does not get, and stays. */
#include "tasks.h"

static struct tacho_name session_kind = TACHO_KIND("session");
static struct tacho_name accept_kind = TACHO_KIND("accept");
static struct tacho_name reply = TACHO_TEXT("a reply");

static uint32_t session(struct task *t)
{
	case_work(20);
	/* Nine of ten are served in two steps. */
	if (t->step++)
		return TACHO_DONE;
	if (t->number % 10)
		task_sleep(t, 10);
	else
		tacho_task_waits(t->id, &reply, 0, 0);
	return TACHO_PENDING;
}

static uint32_t accept_more(struct task *t)
{
	static uint64_t count;

	for (int i = 0; i < 4; i++) {
		struct task *s = task_spawn(&session_kind, session, TACHO_HERE); /* FAULT */

		s->number = count++;
	}
	task_sleep(t, 2);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	task_spawn(&accept_kind, accept_more, TACHO_HERE);
	tasks_run(case_end(2.2), UINT64_MAX);
	tasks_save();
	return 0;
}
