/*
 * What a thread did in a stretch of time. The facts that overlap it are laid over each other;
 * where several do, the one that says most counts: a wait for a lock before a call, a call before
 * being off the CPU, that before the poll that it all happened in.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/blaming.h"
#include "read/memory.h"

/* Code that runs this long is sampled. */
#define UNSAMPLED_NS UINT64_C(40000000)

enum layer { NOTHING, PARKED, POLL, OFF, PREEMPTED, CALL, LOCK, LAYERS };

struct stroke {
	uint64_t from, to;
	enum layer layer;
	uint32_t fact; /* index in its list */
};

struct strokes {
	struct stroke *at;
	uint32_t count, capacity;
};

static void add(struct tacho__blaming *b, struct strokes *s, uint64_t from, uint64_t to,
		enum layer layer, uint32_t fact)
{
	if (TACHO__GROW(s->at, s->capacity, s->count + 1))
		b->error = -ENOMEM;
	else
		s->at[s->count++] = (struct stroke){from, to, layer, fact};
}

/* The part of from..to that lies in the window, if any. */
static void add_clipped(struct tacho__blaming *b, struct strokes *s, uint64_t from, uint64_t to,
			const uint64_t window[2], enum layer layer, uint32_t fact)
{
	from = from > window[0] ? from : window[0];
	to = to < window[1] ? to : window[1];
	if (to > from)
		add(b, s, from, to, layer, fact);
}

/* Those of a list that lie in the window, at least in part. */
static void gather_list(struct tacho__blaming *b, struct strokes *s,
			const struct tacho__fact_list *l, uint32_t thread, const uint64_t window[2],
			enum layer layer)
{
	const struct tacho__extent *x = l->extents;

	for (uint32_t i = tacho__facts_before(l, thread, window[1]);
	     i-- && x[i].thread == thread && x[i].reach > window[0];)
		add_clipped(b, s, x[i].begin, x[i].end, window, layer, x[i].fact);
}

static void gather(struct tacho__blaming *b, struct strokes *s, uint32_t thread,
		   const uint64_t window[2])
{
	gather_list(b, s, &b->polls, thread, window, POLL);
	gather_list(b, s, &b->turns, thread, window, PARKED);
	gather_list(b, s, &b->locks, thread, window, LOCK);
	gather_list(b, s, &b->calls, thread, window, CALL);
	gather_list(b, s, &b->offs, thread, window, OFF);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->at[i].layer == OFF &&
		    TACHO__FACT_AT(&b->offs, tacho__switch, s->at[i].fact)->runnable)
			s->at[i].layer = PREEMPTED;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int by_from(const void *a, const void *b)
{
	const struct stroke *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Strokes that a time lies in, as it goes on. */
#define ACTIVE 64u
struct sweep {
	const struct strokes *strokes; /* by from */
	uint32_t next;
	const struct stroke *active[ACTIVE];
	uint32_t count;
};

/* Of two on the same layer the later begun, the inner one, counts. */
static int is_above(const struct stroke *a, const struct stroke *b)
{
	if (a->layer != b->layer)
		return a->layer > b->layer;
	return a->from != b->from ? a->from > b->from : a->to < b->to;
}

/* The stroke that counts at `ns`, which never goes back. */
static const struct stroke *top_at(struct sweep *w, uint64_t ns)
{
	const struct stroke *top = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->count; i++)
		if (w->active[i]->to > ns)
			w->active[n++] = w->active[i];
	w->count = n;
	for (; w->next < w->strokes->count && w->strokes->at[w->next].from <= ns; w->next++) {
		const struct stroke *k = &w->strokes->at[w->next];

		if (k->to <= ns)
			continue;
		/* No recorded trace has more than ACTIVE at one time; if one does, the last is left out. */
		w->active[w->count < ACTIVE ? w->count++ : ACTIVE - 1] = k;
	}
	for (uint32_t i = 0; i < w->count; i++)
		if (!top || is_above(w->active[i], top))
			top = w->active[i];
	return top;
}

/* ------------------------------------------------------------------- pieces */

struct tacho__piece *tacho__blame_piece(struct tacho__blaming *b, enum tacho__owner owner,
					uint32_t depth, uint32_t thread, uint64_t from, uint64_t to)
{
	struct tacho__piece *p = tacho__blame_add(b, &b->pieces, sizeof(*p));

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->owner = owner;
	p->depth = depth;
	p->process = b->subject->process;
	p->thread = thread;
	p->from_ns = from;
	p->to_ns = to;
	p->ns = to - from;
	p->parts = 1;
	return p;
}

static void put_where(const struct tacho__blaming *b, struct tacho__piece *p, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n =
		tacho__places_of_id(b->reader, p->process, id, p->to_ns, places, TACHO__PLACES_MAX);
	int any = tacho__places_own(places, n) < n;

	for (uint32_t i = 0; i < n && p->where_count < 4; i++)
		if (!any || tacho__place_is_own(&places[i]))
			p->where[p->where_count++] = places[i];
}

static const char *name_of(const struct tacho__blaming *b, uint32_t id)
{
	const struct tacho_definition *d =
		id ? tacho_read_definition(b->reader, b->subject->process, id) : NULL;

	return d && d->name[0] ? d->name : "(not known)";
}

static void lock_piece(struct tacho__blaming *b, const struct stroke *s, uint32_t depth,
		       uint32_t thread, uint64_t from, uint64_t to)
{
	const struct tacho__lock *l = TACHO__FACT_AT(&b->locks, tacho__lock, s->fact);
	struct tacho__piece *p = tacho__blame_piece(b, TACHO__OWNER_LOCK, depth, thread, from, to);

	if (!p)
		return;
	p->lock = l->lock;
	p->kind = l->releaser.kind;
	if (l->release_ns) {
		const struct tacho_thread *t = tacho_read_thread_by_number(
			b->reader, l->releaser.process, l->releaser.thread);

		put_where(b, p, l->release_place);
		snprintf(p->text, sizeof(p->text), "lock 0x%llx, held by %s (%u) until then",
			 (unsigned long long)l->lock, t && t->name[0] ? t->name : "thread",
			 t ? t->tid : l->releaser.thread);
	} else {
		put_where(b, p, l->stack ? l->stack : l->place);
		snprintf(p->text, sizeof(p->text), "lock 0x%llx; who held it was not seen",
			 (unsigned long long)l->lock);
	}
	if (l->release_ns > from && depth + 1 < TACHO__BLAME_DEPTH)
		tacho__blame_thread(b, l->releaser.thread, from,
				    l->release_ns < to ? l->release_ns : to, depth + 1, NULL);
}

static void call_piece(struct tacho__blaming *b, const struct stroke *s, uint32_t depth,
		       uint32_t thread, uint64_t from, uint64_t to)
{
	const struct tacho__call *c = TACHO__FACT_AT(&b->calls, tacho__call, s->fact);
	struct tacho__piece *p = tacho__blame_piece(b, TACHO__OWNER_CALL, depth, thread, from, to);

	if (!p)
		return;
	p->name = c->name;
	put_where(b, p, c->stack);
	snprintf(p->text, sizeof(p->text), "%s%s%s", name_of(b, c->name), c->path ? " " : "",
		 c->path ? name_of(b, c->path) : "");
}

static void poll_piece(struct tacho__blaming *b, const struct stroke *s, uint32_t depth,
		       uint32_t thread, uint64_t from, uint64_t to, const struct tacho__poll *self)
{
	const struct tacho__poll *o = TACHO__FACT_AT(&b->polls, tacho__poll, s->fact);
	/* Polls inside of the subject are its own doing. */
	int own = self && o->begin_ns >= self->begin_ns && o->end_ns <= self->end_ns;
	struct tacho__piece *p = tacho__blame_piece(
		b, own ? TACHO__OWNER_OWN_CODE : TACHO__OWNER_OTHER_POLL, depth, thread, from, to);

	if (!p)
		return;
	p->kind = o->kind;
	p->task = o->task;
	put_where(b, p, o->kind);
	snprintf(p->text, sizeof(p->text), "%s",
		 o->kind ? name_of(b, o->kind) : "a turn of the loop");
}

/* What nothing was recorded of: the loop between polls, or a thread that has no loop. */
static void rest_piece(struct tacho__blaming *b, uint32_t depth, uint32_t thread, uint64_t from,
		       uint64_t to, int on_loop)
{
	struct tacho__piece *p =
		tacho__blame_piece(b, on_loop ? TACHO__OWNER_LOOP : TACHO__OWNER_NOT_OBSERVED,
				   depth, thread, from, to);

	if (p)
		snprintf(p->text, sizeof(p->text), "%s",
			 on_loop ? "the loop itself" : "what the thread did was not recorded");
}

static void simple_piece(struct tacho__blaming *b, enum tacho__owner owner, const char *text,
			 uint32_t depth, uint32_t thread, uint64_t from, uint64_t to)
{
	struct tacho__piece *p = tacho__blame_piece(b, owner, depth, thread, from, to);

	if (p)
		snprintf(p->text, sizeof(p->text), "%s", text);
}

static void piece_of(struct tacho__blaming *b, const struct stroke *s, uint32_t depth,
		     uint32_t thread, uint64_t from, uint64_t to, const struct tacho__poll *self,
		     int on_loop)
{
	switch (s ? s->layer : NOTHING) {
	case LOCK:
		lock_piece(b, s, depth, thread, from, to);
		break;
	case CALL:
		call_piece(b, s, depth, thread, from, to);
		break;
	case PREEMPTED:
		simple_piece(b, TACHO__OWNER_DESCHEDULED, "the kernel ran others", depth, thread,
			     from, to);
		break;
	case OFF:
		simple_piece(b, TACHO__OWNER_NOT_OBSERVED,
			     "waited in the kernel, not seen for what", depth, thread, from, to);
		break;
	case POLL:
		poll_piece(b, s, depth, thread, from, to, self);
		break;
	case PARKED:
		simple_piece(b, TACHO__OWNER_IO, "the loop had nothing to do", depth, thread, from,
			     to);
		break;
	default:
		rest_piece(b, depth, thread, from, to, on_loop);
		break;
	}
}

/* ------------------------------------------------- what has no place in time */

/*
 * Of a poll's own code some time was not its own: what the kernel counted as runnable but not
 * running, and what no sample was seen of. When that was inside the poll is not known.
 */
static void correct_own(struct tacho__blaming *b, uint32_t first, uint32_t depth,
			const struct tacho__poll *self)
{
	struct tacho__piece *pieces = b->pieces.at;
	uint64_t own = 0, delay = 0, unseen = 0;
	uint32_t thread = self->at.thread;

	for (uint32_t i = first; i < b->pieces.count; i++)
		if (pieces[i].depth == depth && pieces[i].owner == TACHO__OWNER_OWN_CODE)
			own += pieces[i].ns;
	if (!b->switches && self->spent.sched)
		delay = self->spent.delay_ns < own ? self->spent.delay_ns : own;
	if (own - delay >= UNSAMPLED_NS && b->samples && self->spent.sample_ns < (own - delay) / 4)
		unseen = own - delay - self->spent.sample_ns;
	for (uint32_t i = first, count = b->pieces.count; i < count && own; i++) {
		double share;

		pieces = b->pieces.at;
		if (pieces[i].depth != depth || pieces[i].owner != TACHO__OWNER_OWN_CODE)
			continue;
		share = (double)(own - delay - unseen) / (double)own;
		pieces[i].ns = (uint64_t)((double)pieces[i].ns * share + 0.5);
	}
	if (delay) {
		struct tacho__piece *p = tacho__blame_piece(b, TACHO__OWNER_DESCHEDULED, depth,
							    thread, self->begin_ns, self->end_ns);

		if (p) {
			p->ns = delay;
			snprintf(p->text, sizeof(p->text), "the kernel ran others");
			if (self->spent.involuntary)
				snprintf(p->text, sizeof(p->text),
					 "the kernel ran others; it was put off the CPU %u times",
					 self->spent.involuntary);
		}
	}
	if (unseen) {
		struct tacho__piece *p = tacho__blame_piece(b, TACHO__OWNER_NOT_OBSERVED, depth,
							    thread, self->begin_ns, self->end_ns);

		if (p) {
			p->ns = unseen;
			snprintf(p->text, sizeof(p->text), "it did not run, and why was not seen");
		}
	}
}

static int has_turns(const struct tacho__blaming *b, uint32_t thread)
{
	uint32_t i = tacho__facts_before(&b->turns, thread, 0);

	return i < b->turns.count && b->turns.extents[i].thread == thread;
}

/* All times at which something begins or ends, in order; NULL without memory. */
static uint64_t *edges_of(const struct strokes *s, const uint64_t window[2], uint32_t *count)
{
	uint64_t *edge = malloc((2 * (size_t)s->count + 2) * sizeof(*edge));
	uint32_t n = 0;

	if (!edge)
		return NULL;
	for (uint32_t i = 0; i < s->count; i++) {
		edge[n++] = s->at[i].from;
		edge[n++] = s->at[i].to;
	}
	edge[n++] = window[0];
	edge[n++] = window[1];
	qsort(edge, n, sizeof(*edge), by_time);
	*count = n;
	return edge;
}

void tacho__blame_thread(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			 uint32_t depth, const struct tacho__poll *self)
{
	const uint64_t window[2] = {from, to};
	uint32_t first = b->pieces.count, edges = 0, begin = 0;
	int on_loop = has_turns(b, thread) && !self;
	struct strokes s = {0};
	struct sweep sweep = {.strokes = &s};
	const struct stroke *top;
	uint64_t *edge;

	gather(b, &s, thread, window);
	TACHO__SORT(s.at, s.count, by_from);
	edge = edges_of(&s, window, &edges);
	if (!edge)
		b->error = -12; /* ENOMEM */
	top = edge ? top_at(&sweep, edge[0]) : NULL;
	for (uint32_t i = 1; i < edges && !b->error; i++) {
		const struct stroke *now = i + 1 < edges ? top_at(&sweep, edge[i]) : NULL;

		/* As long as the same fact counts it is one piece. */
		if (i + 1 < edges && now == top)
			continue;
		if (edge[i] > edge[begin])
			piece_of(b, top, depth, thread, edge[begin], edge[i], self, on_loop);
		begin = i;
		top = now;
	}
	if (self && !b->error)
		correct_own(b, first, depth, self);
	free(edge);
	free(s.at);
}
