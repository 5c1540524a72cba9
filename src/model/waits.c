/* What keeps a thread from going on: locks, calls that block, the kernel that runs others. */
#include <string.h>

#include "model/tracker.h"

static void give_call(struct tacho__tracker *t, struct tacho__thread *s, struct tacho__call *call)
{
	struct tacho__spent *spent = tacho__spent_of(s);

	if (spent) {
		spent->call_ns += call->end_ns - call->begin_ns;
		spent->calls++;
	}
	TACHO__GIVE(t, call, call);
}

/* ------------------------------------------------------------------- locks */

static uint64_t key_of(const struct tacho__thread *s)
{
	return (uint64_t)s->process << 32;
}

void tacho__lock_waits(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	memset(&s->lock, 0, sizeof(s->lock));
	tacho__at_of(s, &s->lock.at);
	s->lock.lock = TACHO_GET(e, LOCK_WAIT, lock);
	s->lock.begin_ns = e->ns;
	s->lock.place = e->arg;
	s->waiting = 1;
	TACHO__STEP(t, s, .type = TACHO__STEP_WAITS, .ns = e->ns, .place = e->arg,
		    .lock = s->lock.lock,
		    .value = *tacho__learned(t->conditions, e->arg) == (e->arg | key_of(s)));
}

void tacho__lock_waited(struct tacho__tracker *t, struct tacho__thread *s,
			const struct tacho_event *e)
{
	const struct tacho__tracked_lock *k;
	struct tacho__spent *spent;

	/* Its begin was overwritten: nothing is known but that there was a wait. */
	if (!s->waiting || s->lock.lock != e->word[0])
		return;
	s->waiting = 0;
	s->lock_done = 1;
	s->lock.end_ns = tacho__later(e->ns, s->lock.begin_ns);
	s->lock.got = TACHO_GET(e, LOCK_WAITED, taken) != 0;
	s->lock.is_signal = TACHO_GET(e, LOCK_WAITED, signal) != 0;
	/* A call that waits for a condition does so each time. */
	if (s->lock.is_signal && s->lock.place)
		*tacho__learned(t->conditions, s->lock.place) = s->lock.place | key_of(s);
	TACHO__STEP(t, s, .type = TACHO__STEP_WAITED, .ns = e->ns, .place = s->lock.place,
		    .lock = s->lock.lock, .value = s->lock.is_signal);
	k = tacho__table_find(&t->locks, s->process, e->word[0]);
	if (k && k->release_ns >= s->lock.begin_ns && s->lock.got) {
		s->lock.release_ns = k->release_ns;
		s->lock.releaser = k->releaser;
		s->lock.release_place = k->place;
	}
	spent = tacho__spent_of(s);
	if (spent) {
		spent->lock_ns += s->lock.end_ns - s->lock.begin_ns;
		spent->locks++;
	}
}

void tacho__lock_released(struct tacho__tracker *t, struct tacho__thread *s,
			  const struct tacho_event *e)
{
	struct tacho__tracked_lock *k =
		tacho__table_get(&t->locks, s->process, e->word[0], &t->error);

	if (!k)
		return;
	k->release_ns = e->ns;
	k->place = e->arg;
	tacho__at_of(s, &k->releaser);
}

void tacho__lock_queued(struct tacho__tracker *t, struct tacho__thread *s,
			const struct tacho_event *e)
{
	TACHO__STEP(t, s, .type = TACHO__STEP_QUEUED, .ns = e->ns, .place = e->arg,
		    .lock = TACHO_GET(e, LOCK_QUEUE, lock), .value = e->word[1]);
}

void tacho__lock_flush(struct tacho__tracker *t, struct tacho__thread *s)
{
	if (!s->lock_done)
		return;
	s->lock_done = 0;
	TACHO__GIVE(t, lock, &s->lock);
}

void tacho__lock_stack(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	if (s->lock_done && s->lock.lock == e->word[0])
		s->lock.stack = e->arg;
	else
		tacho__task_stack(t, s, e);
	tacho__lock_flush(t, s);
}

void tacho__lock_owned(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	(void)t;
	if (!s->waiting || s->lock.lock != TACHO_GET(e, LOCK_OWNER, lock))
		return;
	s->lock.owner = (uint32_t)TACHO_GET(e, LOCK_OWNER, owner);
	s->lock.for_signal = TACHO_GET(e, LOCK_OWNER, signal) != 0;
}

void tacho__waits_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	tacho__lock_flush(t, s);
	if (s->calling) {
		s->calling = 0;
		s->call.end_ns = tacho__later(ns, s->call.begin_ns);
		/* Of other threads calls that return are not recorded, and one that does not is
		   only what they were left in. */
		if (s->loop)
			give_call(t, s, &s->call);
	}
	if (s->waiting) {
		s->waiting = 0;
		s->lock.cut = TACHO__CUT_END;
		s->lock.end_ns = tacho__later(ns, s->lock.begin_ns);
		TACHO__GIVE(t, lock, &s->lock);
	}
}

/* ------------------------------------------------------------------- calls */

void tacho__calls(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	(void)t;
	s->calling = 1;
	s->call = (struct tacho__call){
		.begin_ns = TACHO_GET(e, CALL_OPEN, since_ns),
		.name = e->arg,
		.fd = (int64_t)TACHO_GET(e, CALL_OPEN, on),
		.cut = TACHO__CUT_END,
		.untimed = !TACHO_GET(e, CALL_OPEN, since_ns),
		.code = e->words > 3 ? e->word[3] : 0,
	};
	/* It began after all that the thread recorded. */
	if (s->call.untimed || s->call.begin_ns > e->ns)
		s->call.begin_ns = e->ns;
	tacho__at_of(s, &s->call.at);
}

void tacho__called(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	static const struct tacho__call none;
	uint64_t took = TACHO_GET(e, CALL, duration_ns);
	struct tacho__call call = none; /* as in push() of polls.c */

	call.end_ns = e->ns;
	call.begin_ns = took < e->ns ? e->ns - took : 0;
	s->called_ns = call.begin_ns;
	call.name = e->arg;
	call.stack = (uint32_t)TACHO_GET(e, CALL, at);
	call.path = (uint32_t)TACHO_GET(e, CALL, path);
	call.error = (int)TACHO_GET(e, CALL, errno);
	call.fd_kind = (uint32_t)TACHO_GET(e, CALL, fd_kind);
	call.fd = (int64_t)TACHO_GET(e, CALL, on);
	tacho__at_of(s, &call.at);
	give_call(t, s, &call);
}

/* ---------------------------------------------------------------- switches */

void tacho__switched(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__switch off = {.end_ns = e->ns, .cpu = e->arg};
	struct tacho__spent *spent = tacho__spent_of(s);

	if (e->type == TACHO_EV_SWITCH_OUT) {
		s->off_cpu = 1;
		s->off_runnable = e->arg & 1;
		s->off_ns = e->ns;
		return;
	}
	if (!s->off_cpu)
		return;
	s->off_cpu = 0;
	tacho__at_of(s, &off.at);
	off.begin_ns = s->off_ns;
	off.runnable = s->off_runnable;
	off.parked = s->parked;
	if (spent && !s->parked) {
		spent->off_cpu_ns += e->ns - s->off_ns;
		spent->preempted_ns += s->off_runnable ? e->ns - s->off_ns : 0;
	}
	TACHO__GIVE(t, off_cpu, &off);
}

void tacho__off_cpu_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	struct tacho__switch off = {.begin_ns = s->off_ns,
				    .end_ns = tacho__later(ns, s->off_ns),
				    .cut = TACHO__CUT_END,
				    .runnable = s->off_runnable};

	if (!s->off_cpu)
		return;
	s->off_cpu = 0;
	tacho__at_of(s, &off.at);
	TACHO__GIVE(t, off_cpu, &off);
}
