/* Work that loops give to pools of threads: submitted, begun, ended, or only seen to be done. */
#include "model/judgement.h"
#include "model/tracker.h"

static void leave_pool(struct tacho__tracker *t, const struct tacho__thread *s,
		       struct tacho__tracked_work *k, uint64_t ns)
{
	struct tacho__tracked_process *p = tacho__process_of(t, k->work.process);

	if (k->queued && p->queued)
		p->queued--;
	if (k->queued && k->told)
		TACHO__STEP(t, s, .type = TACHO__STEP_TAKEN, .ns = ns, .kind = k->work.kind,
			    .value = k->work.submit_ns);
	if (k->running && p->running)
		p->running--;
	k->queued = k->running = 0;
}

static void work_ends(struct tacho__tracker *t, const struct tacho__thread *s,
		      struct tacho__tracked_work *k, uint64_t ns)
{
	leave_pool(t, s, k, ns);
	k->work.end_ns = ns;
	TACHO__GIVE(t, work, &k->work);
	tacho__table_remove(&t->works, k);
}

static void submitted(struct tacho__tracker *t, const struct tacho__thread *s,
		      struct tacho__tracked_work *k, const struct tacho_event *e)
{
	struct tacho__tracked_process *p = tacho__process_of(t, s->process);
	struct tacho__at at;

	/* The same number again: that of before is over, whatever became of it. */
	if (k->work.submit_ns || k->work.begin_ns)
		TACHO__GIVE(t, work, &k->work);
	leave_pool(t, s, k, e->ns);
	tacho__at_of(s, &at);
	k->work.begin_ns = k->work.end_ns = k->work.done_ns = 0;
	k->work.worker = 0;
	k->work.kind = e->arg;
	k->work.submit_ns = e->ns;
	k->work.submitter = s->number;
	k->work.submit_kind = at.kind;
	k->work.ahead = p->queued + p->running;
	k->work.waiting = p->queued++;
	k->queued = 1;
	k->told = *tacho__learned(t->begun_kinds, e->arg) == ((uint64_t)s->process << 32 | e->arg);
	TACHO__STEP(t, s, .type = TACHO__STEP_SUBMITTED, .ns = e->ns, .kind = e->arg,
		    .value = k->told);
}

void tacho__work_event(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__tracked_work *k =
		tacho__table_get(&t->works, s->process, e->word[0], &t->error);

	if (!k)
		return;
	k->work.work = e->word[0];
	k->work.process = s->process;
	switch (e->type) {
	case TACHO_EV_WORK_SUBMIT:
		submitted(t, s, k, e);
		break;
	case TACHO_EV_WORK_BEGIN:
		leave_pool(t, s, k, e->ns);
		k->running = 1;
		tacho__process_of(t, s->process)->running++;
		k->work.kind = e->arg;
		k->work.begin_ns = e->ns;
		k->work.worker = s->number;
		s->work = e->word[0];
		*tacho__learned(t->begun_kinds, e->arg) = (uint64_t)s->process << 32 | e->arg;
		TACHO__STEP(t, s, .type = TACHO__STEP_WORKS, .ns = e->ns, .kind = e->arg);
		break;
	default:
		TACHO__STEP(t, s, .type = TACHO__STEP_WORKED, .ns = e->ns, .kind = k->work.kind);
		work_ends(t, s, k, e->ns);
		break;
	}
}

const struct tacho__work *tacho__work_of(const struct tacho__tracker *t,
					 const struct tacho__thread *s)
{
	const struct tacho__tracked_work *k =
		s->work ? tacho__table_find(&t->works, s->process, s->work) : NULL;

	return k && k->running && k->work.worker == s->number ? &k->work : NULL;
}

/*
 * The wait that told the loop of it may have come long after it was done, because the loop was
 * busy: if it returned at once, all that is known is that the wait before did not tell.
 */
static uint64_t done_since(const struct tacho__thread *s)
{
	if (!s->in_turn)
		return 0;
	return s->turn.parked_ns >= tacho__waited_ns ? s->turn.begin_ns : s->turn_before_ns;
}

void tacho__work_polled(struct tacho__tracker *t, const struct tacho__thread *s, uint64_t task,
			uint64_t ns)
{
	struct tacho__tracked_work *k = tacho__table_find(&t->works, s->process, task);

	if (!k || !k->work.submit_ns || k->work.begin_ns)
		return;
	k->work.done_ns = tacho__later(done_since(s), k->work.submit_ns);
	work_ends(t, s, k, tacho__later(ns, k->work.done_ns));
}

/* ------------------------------------------------------------------ the end */

/* When the loop that gave it to the pool last looked whether it is done; 0: not since. */
static uint64_t looked_last(const struct tacho__tracker *t, const struct tacho__work *w)
{
	const struct tacho__thread *s =
		tacho__table_find(&t->threads, (uint64_t)w->process << 32 | w->submitter, 0);

	return s && s->turn.begin_ns > w->submit_ns ? s->turn.begin_ns : 0;
}

void tacho__works_end(struct tacho__tracker *t)
{
	for (struct tacho__tracked_work *k = NULL; (k = tacho__table_next(&t->works, k));) {
		if (!k->work.begin_ns)
			k->work.done_ns = looked_last(t, &k->work);
		TACHO__GIVE(t, work, &k->work);
	}
}
