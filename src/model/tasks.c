#include <string.h>

#include "base/hash.h"
#include "model/tracker.h"

/* An entry that is, or was, in use. */
static struct tacho__tracked_task *task_at(const struct tacho__tracker *t, uint32_t index)
{
	return (struct tacho__tracked_task *)(void *)(t->tasks.entries +
						      (size_t)index *
							      sizeof(struct tacho__tracked_task));
}

/* Where it was the last time it is most often still. */
static struct tacho__tracked_task *task_of(struct tacho__tracker *t, uint32_t process,
					   uint64_t task)
{
	uint32_t *recent = &t->recent_tasks[tacho__mix(task) >> (64 - TACHO__RECENT_TASKS_BITS)];
	struct tacho__tracked_task *k;

	if (*recent) {
		k = task_at(t, *recent - 1);
		if (k->entry.live && k->entry.key[0] == process && k->entry.key[1] == task)
			return k;
	}
	k = tacho__table_get(&t->tasks, process, task, &t->error);
	if (!k)
		return NULL;
	*recent = k->entry.index + 1;
	if (!k->task.task) {
		k->task.process = process;
		k->task.task = task;
	}
	return k;
}

static void give_wake(struct tacho__tracker *t, const struct tacho__thread *s,
		      struct tacho__tracked_task *k, uint64_t ns)
{
	if (!k->task.woken_ns)
		return;
	k->task.woken_ns = 0;
	if (k->wake_loop)
		TACHO__STEP(t, s, .type = TACHO__STEP_SERVED, .ns = ns, .from = k->wake_loop,
			    .value = k->wake.ns);
	TACHO__GIVE(t, wake, &k->wake);
}

/* It waits no longer; for how long it waited is known if it was woken. */
static void give_wait(struct tacho__tracker *t, struct tacho__tracked_task *k)
{
	struct tacho__task_wait *w = &k->wait;
	uint64_t bit = UINT64_C(1) << (w->what ? w->what : w->stack) % 64;

	if (w->begin_ns && w->end_ns >= w->begin_ns) {
		/* Where the stack alone tells, it is told now and then. */
		w->again = (k->waited_for & bit) != 0 || (!w->what && k->task.wakes);
		TACHO__GIVE(t, task_wait, w);
		if (!w->open) {
			k->waited_for |= bit;
			k->past[k->past_count++ % TACHO__PAST_WAITS] = (struct tacho__past_wait){
				w->begin_ns, w->end_ns, w->what, w->stack};
		}
	}
	w->begin_ns = 0;
}

static void give_task(struct tacho__tracker *t, const struct tacho__thread *s,
		      struct tacho__tracked_task *k, uint64_t ns)
{
	give_wait(t, k);
	give_wake(t, s, k, ns);
	TACHO__GIVE(t, task, &k->task);
	tacho__table_remove(&t->tasks, k);
}

/* ------------------------------------------------------------------- polls */

/* The poll that the wake led to may be among records that are missing since. */
static int may_be_lost(const struct tacho__thread *s, const struct tacho__tracked_task *k)
{
	return s->of->hole_ns > k->wake.ns;
}

void tacho__task_begins(struct tacho__tracker *t, struct tacho__thread *s, struct tacho__frame *f)
{
	struct tacho__poll *p = &f->u.poll;
	struct tacho__tracked_task *k = task_of(t, s->process, p->task);

	TACHO__STEP(t, s, .type = TACHO__STEP_BEGINS, .ns = p->begin_ns, .kind = p->kind,
		    .from = k ? k->loop : 0);
	if (!k)
		return;
	k->loop = s->loop;
	f->task = k->entry.index + 1;
	k->task.running = 1;
	k->task.no_waker_ns = 0;
	if (!k->task.kind)
		k->task.kind = p->kind;
	if (!k->task.first_ns) {
		k->task.first_ns = p->begin_ns;
		p->first = k->task.spawned;
	}
	/* A poll that was open already has been woken by what came before. */
	if (!k->task.woken_ns || k->wake.ns > p->begin_ns)
		return;
	if (may_be_lost(s, k)) {
		k->wake.lost = 1;
	} else {
		p->wake_ns = k->wake.ns;
		p->waker = k->wake.at.thread;
		p->wakes = k->wake.again + 1;
		k->task.waited_ns += p->begin_ns - k->wake.ns;
		k->late_from_ns = k->wake.ns;
		k->late_to_ns = p->begin_ns;
		k->wake.begin_ns = p->begin_ns;
		k->wake.thread = s->number;
		k->wake.kind = p->kind;
	}
	give_wake(t, s, k, p->begin_ns);
}

void tacho__task_ended_poll(struct tacho__tracker *t, const struct tacho__thread *s,
			    const struct tacho__frame *f)
{
	const struct tacho__poll *p = &f->u.poll;
	struct tacho__tracked_task *k = f->task ? task_at(t, f->task - 1) : NULL;

	/* It may have ended meanwhile, and the entry be another's. */
	if (!k || !k->entry.live || k->entry.key[0] != p->at.process || k->entry.key[1] != p->task)
		return;
	/* Nobody saw one end that is cut. */
	k->task.running = (p->cut & TACHO__CUT_END) != 0;
	k->task.polls++;
	k->task.busy_ns += p->end_ns - p->begin_ns;
	k->task.last_ns = p->end_ns;
	/* A handle has callbacks of several kinds: it is of that which takes longest. */
	if (!k->task.spawned && p->end_ns - p->begin_ns > k->longest_ns) {
		k->longest_ns = p->end_ns - p->begin_ns;
		k->task.kind = p->kind;
	}
	if (p->result == TACHO_DONE) {
		k->task.end_ns = p->end_ns;
		give_task(t, s, k, p->end_ns);
	}
}

/* ------------------------------------------------------------------ events */

/*
 * Who has what tasks wait for in line gives it to the first, which gives it to the next at once, and so
 * on: what wakes them are their peers, but what they waited for is whoever woke the first of these.
 */
static uint32_t kind_of_waker(const struct tacho__tracker *t, const struct tacho__at *at,
			      const struct tacho__tracked_task *k, uint64_t ns)
{
	uint64_t idle = tacho__later(ns, k->task.last_ns) - k->task.last_ns;
	const struct tacho__tracked_task *peer =
		at->task && at->kind == k->task.kind
			? tacho__table_find(&t->tasks, at->process, at->task)
			: NULL;

	return peer && peer != k && peer->by_kind && peer->wake.ns > ns - idle / 2 ? peer->by_kind
										   : at->kind;
}

/* How long a wait that began and ended then lies within another one that goes on. */
static uint64_t within(uint64_t begin_ns, uint64_t end_ns, const struct tacho__task_wait *w)
{
	uint64_t from = tacho__later(begin_ns, w->begin_ns);

	return begin_ns && end_ns > from ? end_ns - from : 0;
}

static void keep_longest(struct tacho__holder *h, const struct tacho__past_wait *p,
			 const struct tacho__task_wait *w)
{
	uint64_t ns = within(p->begin_ns, p->end_ns, w);

	if (ns <= h->waited_ns)
		return;
	h->waited_ns = ns;
	h->waits_for = p->what;
	h->waits_stack = p->stack;
}

/* Who kept the task waiting, which is woken now by a task that runs. */
static void find_holder(struct tacho__tracker *t, struct tacho__tracked_task *k,
			const struct tacho__at *at, uint64_t ns)
{
	struct tacho__task_wait *w = &k->wait;
	const struct tacho__tracked_task *by =
		at->task ? tacho__table_find(&t->tasks, at->process, at->task) : NULL;
	const struct tacho__task_wait *own = by ? &by->wait : NULL;

	w->handed = 0;
	w->by = (struct tacho__holder){.task = at->task, .kind = at->kind};
	if (!w->begin_ns || !by || by == k)
		return;
	if (own->what == w->what && own->by.task && !own->open &&
	    within(own->begin_ns, own->end_ns, w) >= (ns - w->begin_ns) / 2) {
		w->by = own->by;
		w->handed = 1;
		return;
	}
	w->by.late_ns = within(by->late_from_ns, by->late_to_ns, w);
	for (uint32_t i = 0; i < TACHO__PAST_WAITS; i++)
		keep_longest(&w->by, &by->past[i], w);
	keep_longest(&w->by,
		     &(struct tacho__past_wait){own->begin_ns, own->end_ns, own->what, own->stack},
		     w);
}

/* It comes right after the wake. */
void tacho__task_stack(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__tracked_task *k = tacho__table_find(&t->tasks, s->process, e->word[0]);

	if (k && k->wait.begin_ns && k->wait.end_ns == e->ns && !k->wait.handed)
		k->wait.by.stack = e->arg;
	if (k && k->task.woken_ns && k->wake.ns == e->ns)
		k->wake.stack = e->arg;
}

static void woken(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e,
		  struct tacho__tracked_task *k)
{
	struct tacho__at at;

	tacho__at_of(s, &at);
	k->task.wakes++;
	/* Where it waits is told now and then alone, if it is told without a name: the next wake is out
	   of something else. */
	if (!k->wait.end_ns || k->wait.what) {
		k->wait.end_ns = e->ns;
		k->wait.by_loop = at.loop && !at.poll_ns;
		k->wait.by_kind = kind_of_waker(t, &at, k, e->ns);
		find_holder(t, k, &at, e->ns);
	}
	if (!k->task.waits_for)
		k->task.waits_stack = 0;
	if (at.task == e->word[0])
		k->task.self_wakes++;
	if (k->task.woken_ns && may_be_lost(s, k)) {
		k->wake.lost = 1;
		give_wake(t, s, k, e->ns);
	}
	if (k->task.woken_ns) {
		k->wake.again++;
		return;
	}
	k->by_kind = kind_of_waker(t, &at, k, e->ns);
	memset(&k->wake, 0, sizeof(k->wake));
	k->wake.at = at;
	k->wake.task = e->word[0];
	k->wake.ns = e->ns;
	k->wake.self = at.task == e->word[0];
	k->wake.for_ready = at.loop && !at.poll_ns && s->in_turn && s->turn.ready;
	k->task.woken_ns = e->ns;
	k->task.no_waker_ns = 0;
	/* One that has not run yet is taken to run where it was woken. One that is not known has
	   ended: who still holds a handle of it may wake it. */
	k->wake_loop = k->loop ? k->loop : k->task.spawned ? s->loop : 0;
	TACHO__STEP(t, s, .type = TACHO__STEP_WOKEN, .ns = e->ns, .from = k->wake_loop);
}

static void spawned(const struct tacho_event *e, struct tacho__tracked_task *k)
{
	k->task.kind = e->arg;
	k->task.place = (uint32_t)TACHO_GET(e, SPAWN, at);
	k->task.parent = TACHO_GET(e, SPAWN, parent);
	k->task.spawn_ns = e->ns;
	k->task.spawned = 1;
}

void tacho__task_event(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__tracked_task *k =
		task_of(t, s->process, e->word[TACHO_EV_IS_VARIABLE(e->type) ? 1 : 0]);

	if (!k)
		return;
	switch (e->type) {
	case TACHO_EV_WAKE:
		woken(t, s, e, k);
		break;
	case TACHO_EV_SPAWN:
		/* A number that is used again is another task. */
		if (k->task.polls || k->task.spawned) {
			give_task(t, s, k, e->ns);
			k = task_of(t, s->process, e->word[1]);
		}
		if (k)
			spawned(e, k);
		break;
	case TACHO_EV_TASK_WAITS:
		k->task.waits_for = e->arg;
		k->task.waits_stack = (uint32_t)TACHO_GET(e, TASK_WAITS, at);
		give_wait(t, k);
		k->wait = (struct tacho__task_wait){.process = s->process,
						    .kind = k->task.kind,
						    .task = k->task.task,
						    .what = e->arg,
						    .stack = k->task.waits_stack,
						    .begin_ns = e->ns};
		break;
	case TACHO_EV_NO_WAKER:
		/* Who was woken meanwhile runs again, whatever is dropped. */
		if (k->task.woken_ns)
			break;
		k->task.no_waker_ns = e->ns;
		k->task.no_waker_stack = e->arg;
		break;
	default:
		k->task.end_ns = e->ns;
		give_task(t, s, k, e->ns);
		break;
	}
}

void tacho__tasks_end(struct tacho__tracker *t)
{
	for (struct tacho__tracked_task *k = NULL; (k = tacho__table_next(&t->tasks, k));) {
		uint64_t seen;

		seen = tacho__later(k->task.last_ns, k->task.spawn_ns);
		seen = tacho__later(seen, k->task.woken_ns);
		k->task.lost = tacho__process_of(t, k->task.process)->hole_ns > seen;
		if (!k->wait.end_ns && !k->task.lost && !k->task.running) {
			k->wait.open = 1;
			k->wait.end_ns = tacho__process_of(t, k->task.process)->last_ns;
		}
		give_wait(t, k);
		/* woken_ns stays: the task is woken and does not run. */
		if (k->task.woken_ns) {
			k->wake.lost = k->task.lost;
			TACHO__GIVE(t, wake, &k->wake);
		}
		TACHO__GIVE(t, task, &k->task);
		tacho__table_remove(&t->tasks, k);
	}
}
