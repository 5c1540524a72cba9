#include <string.h>

#include "model/tracker.h"

/* A wait of this length had nothing to return when it began. */
#define WAITED_NS 50000u

/* ------------------------------------------------------------------- locks */

static void lock_waits(struct tacho__thread *s, const struct tacho_event *e)
{
	memset(&s->lock, 0, sizeof(s->lock));
	tacho__at_of(s, &s->lock.at);
	s->lock.lock = e->word[0];
	s->lock.begin_ns = e->ns;
	s->lock.place = e->arg;
	s->waiting = 1;
}

static void lock_waited(struct tacho__tracker *t, struct tacho__thread *s,
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
	s->lock.got = (e->arg & TACHO_WAITED_GOT) != 0;
	s->lock.is_signal = (e->arg & TACHO_WAITED_SIGNAL) != 0;
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

static int lock_released(struct tacho__tracker *t, struct tacho__thread *s,
			 const struct tacho_event *e)
{
	int err = 0;
	struct tacho__tracked_lock *k = tacho__table_get(&t->locks, s->process, e->word[0], &err);

	if (!k)
		return err;
	k->release_ns = e->ns;
	k->place = e->arg;
	tacho__at_of(s, &k->releaser);
	return 0;
}

void tacho__lock_flush(struct tacho__tracker *t, struct tacho__thread *s)
{
	if (!s->lock_done)
		return;
	s->lock_done = 0;
	TACHO__GIVE(t, lock, &s->lock);
}

static void stack_of(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	if (s->lock_done && s->lock.lock == e->word[0])
		s->lock.stack = e->arg;
	tacho__lock_flush(t, s);
}

/* ------------------------------------------------------------------- calls */

static void called(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__spent *spent = tacho__spent_of(s);
	struct tacho__call call = {
		.end_ns = e->ns,
		.begin_ns = e->word[1] < e->ns ? e->ns - e->word[1] : 0,
		.name = e->arg,
		.stack = (uint32_t)(e->word[0] >> 16),
		.path = (uint32_t)e->word[3],
		.error = (int)(e->word[3] >> 32 & 0xffff),
		.fd_kind = (uint32_t)(e->word[3] >> 48),
		.fd = (int64_t)e->word[2],
	};

	tacho__at_of(s, &call.at);
	if (spent) {
		spent->call_ns += call.end_ns - call.begin_ns;
		spent->calls++;
	}
	TACHO__GIVE(t, call, &call);
}

/* ------------------------------------------------------------ work of pools */

static void leave_pool(struct tacho__tracker *t, struct tacho__tracked_work *k)
{
	struct tacho__tracked_process *p = tacho__process_of(t, k->work.process);

	if (k->queued && p->queued)
		p->queued--;
	if (k->running && p->running)
		p->running--;
	k->queued = k->running = 0;
}

static void work_ends(struct tacho__tracker *t, struct tacho__tracked_work *k, uint64_t ns)
{
	leave_pool(t, k);
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
	leave_pool(t, k);
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
}

static int work_event(struct tacho__tracker *t, struct tacho__thread *s,
		      const struct tacho_event *e)
{
	int err = 0;
	struct tacho__tracked_work *k = tacho__table_get(&t->works, s->process, e->word[0], &err);

	if (!k)
		return err;
	k->work.work = e->word[0];
	k->work.process = s->process;
	switch (e->type) {
	case TACHO_EV_WORK_SUBMIT:
		submitted(t, s, k, e);
		return 0;
	case TACHO_EV_WORK_BEGIN:
		leave_pool(t, k);
		k->running = 1;
		tacho__process_of(t, s->process)->running++;
		k->work.kind = e->arg;
		k->work.begin_ns = e->ns;
		k->work.worker = s->number;
		return 0;
	default:
		work_ends(t, k, e->ns);
		return 0;
	}
}

/*
 * The wait that told the loop of it may have come long after it was done, because the loop was
 * busy: if it returned at once, all that is known is that the wait before did not tell.
 */
static uint64_t done_since(const struct tacho__thread *s)
{
	if (!s->in_turn)
		return 0;
	return s->turn.parked_ns >= WAITED_NS ? s->turn.begin_ns : s->turn_before_ns;
}

void tacho__work_polled(struct tacho__tracker *t, const struct tacho__thread *s, uint64_t task,
			uint64_t ns)
{
	struct tacho__tracked_work *k = tacho__table_find(&t->works, s->process, task);

	if (!k || !k->work.submit_ns || k->work.begin_ns)
		return;
	k->work.done_ns = tacho__later(done_since(s), k->work.submit_ns);
	work_ends(t, k, tacho__later(ns, k->work.done_ns));
}

/* ------------------------------------------------------------- async spans */

static int async_begins(struct tacho__tracker *t, struct tacho__thread *s,
			const struct tacho_event *e)
{
	int err = 0;
	struct tacho__tracked_span *k = tacho__table_get(&t->spans, s->process, e->word[0], &err);

	if (!k)
		return err;
	if (k->span.async) {
		k->span.cut |= TACHO__CUT_END;
		k->span.end_ns = e->ns;
		TACHO__GIVE(t, span, &k->span);
	}
	memset(&k->span, 0, sizeof(k->span));
	tacho__at_of(s, &k->span.at);
	k->span.name = e->arg;
	k->span.async = 1;
	k->span.begin_ns = e->ns;
	k->span.id = e->word[0];
	k->span.parent = e->word[1];
	return 0;
}

static void async_ends(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__tracked_span *k = tacho__table_find(&t->spans, s->process, e->word[0]);

	if (!k)
		return;
	k->span.end_ns = e->ns;
	TACHO__GIVE(t, span, &k->span);
	tacho__table_remove(&t->spans, k);
}

static void trace_id(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__tracked_span *k = NULL;
	struct tacho__span *span = NULL;

	if (e->word[1]) {
		k = tacho__table_find(&t->spans, s->process, e->word[1]);
		span = k ? &k->span : NULL;
	} else {
		for (uint32_t i = 0; i < s->depth && i < TACHO__DEPTH; i++)
			if (s->open[i].type == TACHO__FRAME_SPAN)
				span = &s->open[i].u.span;
	}
	if (span) {
		span->trace_high = e->word[2];
		span->trace_low = e->word[3];
	}
}

/* ----------------------------------------------------- samples and switches */

/* word[0] of SAMPLE is ns; the variable ones have them in word[1], and frames from word[2]. */
static void sampled(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__sample sample = {.ns = e->ns, .perf = e->type == TACHO_EV_KERNEL_SAMPLE};
	struct tacho__spent *spent = tacho__spent_of(s);

	tacho__at_of(s, &sample.at);
	if (e->type == TACHO_EV_SAMPLE) {
		sample.stack = e->arg;
		sample.cpu_ns = e->word[0];
	} else {
		sample.cpu_ns = e->word[1];
		sample.frames = e->word + 2;
		sample.count = e->words - 2;
		if (sample.perf)
			sample.kernel = e->arg < sample.count ? e->arg : sample.count;
	}
	if (sample.perf)
		s->perf = 1;
	/* Two samplers of one thread tell the same time. */
	if (spent && sample.perf == s->perf) {
		spent->sample_ns += sample.cpu_ns;
		spent->samples++;
	}
	TACHO__GIVE(t, sample, &sample);
}

static void switched(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
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

/* ------------------------------------------------------------------ events */

static void counted(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
{
	struct tacho__counter c = {
		.ns = e->ns,
		.name = e->arg,
		.value = e->word[0],
		.depth = e->type == TACHO_EV_QUEUE_DEPTH,
	};

	tacho__at_of(s, &c.at);
	TACHO__GIVE(t, counter, &c);
}

static void got_ready(struct tacho__tracker *t, struct tacho__thread *s,
		      const struct tacho_event *e)
{
	struct tacho__ready r = {.ns = e->ns, .events = e->arg, .what = e->word[0]};

	tacho__at_of(s, &r.at);
	TACHO__GIVE(t, ready, &r);
}

/* Payload words that the type must have. */
static uint32_t words_of(uint8_t type)
{
	switch (type) {
	case TACHO_EV_CALL:
	case TACHO_EV_TRACE_ID:
		return 4;
	case TACHO_EV_SAMPLE_FRAMES:
	case TACHO_EV_KERNEL_SAMPLE:
		return 2;
	default:
		return type >> 6 == 3 ? 1 : type >> 6;
	}
}

int tacho__waits_event(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__at at;

	if (e->words < words_of(e->type))
		return 0;
	switch (e->type) {
	case TACHO_EV_LOCK_WAIT:
		lock_waits(s, e);
		return 0;
	case TACHO_EV_LOCK_WAITED:
		lock_waited(t, s, e);
		return 0;
	case TACHO_EV_LOCK_RELEASE:
		return lock_released(t, s, e);
	case TACHO_EV_STACK:
		stack_of(t, s, e);
		return 0;
	case TACHO_EV_CALL:
		called(t, s, e);
		return 0;
	case TACHO_EV_WORK_SUBMIT:
	case TACHO_EV_WORK_BEGIN:
	case TACHO_EV_WORK_END:
		return work_event(t, s, e);
	case TACHO_EV_ASYNC_BEGIN:
		return async_begins(t, s, e);
	case TACHO_EV_ASYNC_END:
		async_ends(t, s, e);
		return 0;
	case TACHO_EV_TRACE_ID:
		trace_id(t, s, e);
		return 0;
	case TACHO_EV_SAMPLE:
	case TACHO_EV_SAMPLE_FRAMES:
	case TACHO_EV_KERNEL_SAMPLE:
		sampled(t, s, e);
		return 0;
	case TACHO_EV_SWITCH_OUT:
	case TACHO_EV_SWITCH_IN:
		switched(t, s, e);
		return 0;
	case TACHO_EV_COUNTER:
	case TACHO_EV_QUEUE_DEPTH:
		counted(t, s, e);
		return 0;
	case TACHO_EV_READY:
		got_ready(t, s, e);
		return 0;
	default:
		tacho__at_of(s, &at);
		TACHO__GIVE(t, other, &at, e);
		return 0;
	}
}

void tacho__waits_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	tacho__lock_flush(t, s);
	if (s->waiting) {
		s->waiting = 0;
		s->lock.cut = TACHO__CUT_END;
		s->lock.end_ns = tacho__later(ns, s->lock.begin_ns);
		TACHO__GIVE(t, lock, &s->lock);
	}
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

/* When the loop that gave it to the pool last looked whether it is done; 0: not since. */
static uint64_t looked_last(const struct tacho__tracker *t, const struct tacho__work *w)
{
	const struct tacho__thread *s =
		tacho__table_find(&t->threads, (uint64_t)w->process << 32 | w->submitter, 0);

	return s && s->turn.begin_ns > w->submit_ns ? s->turn.begin_ns : 0;
}

void tacho__waits_end(struct tacho__tracker *t, uint64_t last_ns)
{
	for (uint32_t i = 0; i < t->threads.used; i++) {
		struct tacho__thread *s = tacho__table_at(&t->threads, i);

		if (s)
			tacho__off_cpu_cut(t, s, last_ns);
	}
	for (uint32_t i = 0; i < t->works.used; i++) {
		struct tacho__tracked_work *k = tacho__table_at(&t->works, i);

		if (!k)
			continue;
		if (!k->work.begin_ns)
			k->work.done_ns = looked_last(t, &k->work);
		TACHO__GIVE(t, work, &k->work);
	}
	for (uint32_t i = 0; i < t->spans.used; i++) {
		struct tacho__tracked_span *k = tacho__table_at(&t->spans, i);

		if (!k)
			continue;
		k->span.cut |= TACHO__CUT_END;
		k->span.end_ns = last_ns;
		TACHO__GIVE(t, span, &k->span);
	}
}
