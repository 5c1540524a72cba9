/*
 * A small runtime of tasks that records itself through tacho.h: one loop, a queue of woken tasks,
 * tasks that sleep. What a real one does, as far as the cases need it.
 */
#ifndef TASKS_H
#define TASKS_H

#include <stdint.h>

#include "case.h"
#include "tacho.h"

struct task;
/* One poll; TACHO_DONE: the task is finished and freed. */
typedef uint32_t (*task_poll)(struct task *t);

struct task {
	uint64_t id;
	struct tacho_name *kind;
	task_poll poll;
	uint64_t due; /* it sleeps until then; 0: not */
	int queued, step;
	uint64_t number; /* the case's own */
	struct task *next, *next_sleeper;
};

void tasks_start(const char *loop);
struct task *task_spawn(struct tacho_name *kind, task_poll poll, struct tacho_name *place);
/* From any thread. */
void task_wake(struct task *t);
void task_sleep(struct task *t, uint64_t ms);
/* Tasks in the queue. */
uint64_t tasks_queued(void);
/* Runs until then, or until nobody is left. At most `most` tasks are run in one turn. */
void tasks_run(uint64_t end, uint64_t most);
/* What is done after each wait, before tasks run; NULL: nothing. Gives whether tasks run. */
extern int (*tasks_turn)(void);
/* At the end: the window into the file that TACHO_CASE_FILE names, when recorded without
   `tacho run`. */
void tasks_save(void);

#endif
