/* Polls and spans: those that are open on a thread, one inside the other, and async spans. */
#include <string.h>

#include "model/tracker.h"

static uint32_t frames(const struct tacho__thread *s)
{
	return s->depth < TACHO__DEPTH ? s->depth : TACHO__DEPTH;
}

static struct tacho__poll *innermost(struct tacho__thread *s)
{
	for (uint32_t i = frames(s); i--;)
		if (s->open[i].type == TACHO__FRAME_POLL)
			return &s->open[i].u.poll;
	return NULL;
}

static inline void inside(const struct tacho__thread *s, const struct tacho__poll *p,
			  struct tacho__at *at)
{
	at->process = s->process;
	at->thread = s->number;
	at->loop = s->loop;
	at->kind = p ? p->kind : 0;
	at->task = p ? p->task : 0;
	at->poll_ns = p ? p->begin_ns : 0;
	/* What is seen of the loop is its turns. */
	if (!p && s->in_turn && s->level == TACHO_LEVEL_WAITS)
		at->poll_ns = s->turn.begin_ns;
}

void tacho__at_of(const struct tacho__thread *s, struct tacho__at *at)
{
	/* It is looked for to be read only. */
	inside(s, innermost((struct tacho__thread *)(uintptr_t)s), at);
}

struct tacho__spent *tacho__spent_of(struct tacho__thread *s)
{
	struct tacho__poll *p = innermost(s);

	if (p)
		return &p->spent;
	return s->in_turn ? &s->turn_spent : NULL;
}

static struct tacho__frame *push(struct tacho__tracker *t, struct tacho__thread *s)
{
	/* Copied: compilers clear so much with an instruction that is slow to begin. */
	static const struct tacho__frame none;

	if (s->depth++ >= TACHO__DEPTH) {
		t->depth_missed++;
		return NULL;
	}
	s->open[s->depth - 1] = none;
	return &s->open[s->depth - 1];
}

/* NULL: nothing is known of it but that it was there. */
static struct tacho__frame *pop(struct tacho__thread *s)
{
	if (--s->depth >= TACHO__DEPTH || s->open[s->depth].type == TACHO__FRAME_UNKNOWN)
		return NULL;
	return &s->open[s->depth];
}

/* -------------------------------------------------------------------- polls */

void tacho__give_ended(struct tacho__tracker *t, struct tacho__thread *s)
{
	if (!s->has_ended)
		return;
	s->has_ended = 0;
	TACHO__GIVE(t, poll, &s->ended);
}

void tacho__poll_begins(struct tacho__tracker *t, struct tacho__thread *s, uint32_t kind,
			uint64_t task, uint64_t ns, uint8_t cut)
{
	const struct tacho__poll *outer = innermost(s);
	struct tacho__frame *f = push(t, s);
	uint64_t late = s->late_ns;
	struct tacho__poll *p;

	s->late_ns = 0;
	if (!f)
		return;
	p = &f->u.poll;
	inside(s, outer, &p->at);
	p->kind = kind;
	p->task = task;
	p->begin_ns = ns;
	p->cut = cut;
	p->depth = outer ? (uint8_t)(outer->depth + 1) : 0;
	p->late_ns = late;
	p->turn_ns = s->in_turn ? s->turn.begin_ns : 0;
	if (task && t->works.count)
		tacho__work_polled(t, s, task, ns);
	if (task)
		tacho__task_begins(t, s, f);
	else
		TACHO__STEP(t, s, .type = TACHO__STEP_BEGINS, .ns = ns, .kind = kind);
}

static void end_poll(struct tacho__tracker *t, struct tacho__thread *s, struct tacho__frame *f,
		     uint64_t ns, uint8_t result)
{
	struct tacho__poll *p = &f->u.poll, *outer = innermost(s);

	tacho__give_ended(t, s);
	p->end_ns = tacho__later(ns, p->begin_ns);
	p->result = result;
	/* Now, not when it is given: its number may be another task's by then. */
	if (p->task)
		tacho__task_ended_poll(t, s, f);
	if (outer) {
		outer->inner_ns += p->end_ns - p->begin_ns;
		tacho__spent_add(&outer->spent, &p->spent);
	} else if (s->in_turn) {
		s->turn.polls++;
		s->turn.polls_ns += p->end_ns - tacho__later(p->begin_ns, s->turn.begin_ns);
		tacho__spent_add(&s->turn_spent, &p->spent);
	}
	s->ended = *p;
	s->has_ended = 1;
	TACHO__STEP(t, s, .type = TACHO__STEP_ENDS, .ns = p->end_ns, .kind = p->kind);
}

static void end_span(struct tacho__tracker *t, struct tacho__span *span, uint64_t ns, uint8_t cut)
{
	span->end_ns = tacho__later(ns, span->begin_ns);
	span->cut |= cut;
	TACHO__GIVE(t, span, span);
}

void tacho__poll_ends(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns,
		      uint8_t result)
{
	while (s->depth) {
		struct tacho__frame *f = pop(s);

		if (!f)
			return;
		if (f->type == TACHO__FRAME_POLL) {
			end_poll(t, s, f, ns, result);
			return;
		}
		end_span(t, &f->u.span, ns, TACHO__CUT_END);
	}
}

/* -------------------------------------------------------------------- spans */

void tacho__span_begins(struct tacho__tracker *t, struct tacho__thread *s, uint32_t name,
			uint64_t ns, uint8_t cut)
{
	const struct tacho__poll *outer = innermost(s);
	struct tacho__frame *f = push(t, s);

	if (!f)
		return;
	f->type = TACHO__FRAME_SPAN;
	inside(s, outer, &f->u.span.at);
	f->u.span.name = name;
	f->u.span.begin_ns = ns;
	f->u.span.cut = cut;
}

void tacho__span_ends(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	struct tacho__frame *f;

	/* That of a poll is not a span's to end. */
	if (!s->depth ||
	    (s->depth <= TACHO__DEPTH && s->open[s->depth - 1].type == TACHO__FRAME_POLL))
		return;
	f = pop(s);
	if (f)
		end_span(t, &f->u.span, ns, 0);
}

/* -------------------------------------------------------------- async spans */

void tacho__async_begins(struct tacho__tracker *t, struct tacho__thread *s,
			 const struct tacho_event *e)
{
	struct tacho__tracked_span *k =
		tacho__table_get(&t->spans, s->process, e->word[0], &t->error);

	if (!k)
		return;
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
}

void tacho__async_ends(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_event *e)
{
	struct tacho__tracked_span *k = tacho__table_find(&t->spans, s->process, e->word[0]);

	if (!k)
		return;
	k->span.end_ns = e->ns;
	TACHO__GIVE(t, span, &k->span);
	tacho__table_remove(&t->spans, k);
}

void tacho__trace_id(struct tacho__tracker *t, struct tacho__thread *s, const struct tacho_event *e)
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

void tacho__async_cut(struct tacho__tracker *t)
{
	for (struct tacho__tracked_span *k = NULL; (k = tacho__table_next(&t->spans, k));) {
		k->span.cut |= TACHO__CUT_END;
		k->span.end_ns = tacho__process_of(t, k->span.at.process)->last_ns;
		TACHO__GIVE(t, span, &k->span);
	}
}

/* -------------------------------------------------------------------- holes */

void tacho__open_cut(struct tacho__tracker *t, struct tacho__thread *s, uint64_t ns)
{
	while (s->depth) {
		struct tacho__frame *f = pop(s);

		if (!f)
			continue;
		if (f->type == TACHO__FRAME_SPAN) {
			end_span(t, &f->u.span, ns, TACHO__CUT_END);
		} else {
			f->u.poll.cut |= TACHO__CUT_END;
			end_poll(t, s, f, ns, 0);
		}
	}
	tacho__give_ended(t, s);
	s->late_ns = 0;
}

void tacho__open_again(struct tacho__tracker *t, struct tacho__thread *s,
		       const struct tacho_resume_info *r, uint64_t ns)
{
	uint32_t listed = r->open_listed < 5 ? r->open_listed : 5;

	for (uint32_t i = 0; i < listed; i++) {
		const struct tacho_open_item *o = &r->open[i];
		int known = o->since_ns && o->since_ns <= ns;
		uint64_t since = known ? o->since_ns : ns;
		uint8_t cut = known ? TACHO__CUT_HOLE : TACHO__CUT_BEGIN;

		if (o->what == TACHO_EV_SPAN_BEGIN)
			tacho__span_begins(t, s, o->id, since, cut);
		else
			tacho__poll_begins(t, s, o->id, o->task, since, cut);
	}
	for (uint32_t i = listed; i < r->open_count; i++) {
		struct tacho__frame *f = push(t, s);

		if (f)
			f->type = TACHO__FRAME_UNKNOWN;
	}
}

/* Whether the frame is what the reader says was open. */
static int is_same(const struct tacho__frame *f, const struct tacho_open_item *o)
{
	if (f->type == TACHO__FRAME_SPAN)
		return o->what == TACHO_EV_SPAN_BEGIN && o->id == f->u.span.name &&
		       o->since_ns == f->u.span.begin_ns;
	return f->type == TACHO__FRAME_POLL && o->what == TACHO_EV_POLL_BEGIN &&
	       o->id == f->u.poll.kind && o->task == f->u.poll.task &&
	       o->since_ns == f->u.poll.begin_ns;
}

int tacho__open_still(struct tacho__thread *s, const struct tacho_resume_info *r)
{
	if (!s->depth || r->open_count != s->depth || r->open_listed != r->open_count ||
	    s->depth > 5)
		return 0;
	for (uint32_t i = 0; i < s->depth; i++)
		if (!is_same(&s->open[i], &r->open[i]))
			return 0;
	for (uint32_t i = 0; i < s->depth; i++)
		if (s->open[i].type == TACHO__FRAME_SPAN)
			s->open[i].u.span.cut |= TACHO__CUT_HOLE;
		else
			s->open[i].u.poll.cut |= TACHO__CUT_HOLE;
	return 1;
}
