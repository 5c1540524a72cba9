/*
 * Sessions show prices that a task pushes to them every 10 ms. After an error it takes the feed for closed:
 * it goes on, and wakes nobody any more.
 */
#include "tasks.h"

#define SESSIONS 24
#define PUSHES 100

static struct tacho_name session_kind = TACHO_KIND("session");
static struct tacho_name pusher_kind = TACHO_KIND("pusher"); /* FAULT */
static struct tacho_name prices = TACHO_TEXT("prices");
static struct task *sessions[SESSIONS];

static uint32_t show_prices(struct task *t)
{
	case_work(20);
	tacho_task_waits(t->id, &prices, 0, 0);
	return TACHO_PENDING;
}

static uint32_t push_prices(struct task *t)
{
	int is_closed = t->step++ >= PUSHES;

	for (int i = 0; !is_closed && i < SESSIONS; i++)
		task_wake(sessions[i]);
	task_sleep(t, 10);
	return TACHO_PENDING;
}

int main(void)
{
	tasks_start("server");
	case_rounds_per_ms();
	for (int i = 0; i < SESSIONS; i++)
		sessions[i] = task_spawn(&session_kind, show_prices, TACHO_HERE);
	task_spawn(&pusher_kind, push_prices, TACHO_HERE);
	tasks_run(case_end(4), UINT64_MAX);
	tasks_save();
	return 0;
}
