#include "explain/blame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/blaming.h"
#include "explain/explain.h"
#include "explain/gather.h"
#include "read/memory.h"

/* ------------------------------------------------------------------------ facts */

static int overlaps(const struct tacho__blaming *b, uint32_t process, uint64_t from, uint64_t to)
{
	return process == b->subject->process && to >= b->subject->from_ns &&
	       from <= b->subject->to_ns;
}

void *tacho__blame_add(struct tacho__blaming *b, struct tacho__fact_list *l, size_t size)
{
	if (l->count == TACHO__BLAME_FACTS ||
	    tacho__grow(&l->at, &l->capacity, l->count + 1, size)) {
		b->error = -ENOMEM;
		return NULL;
	}
	return (char *)l->at + l->count++ * size;
}

static void keep(struct tacho__blaming *b, struct tacho__fact_list *l, const void *fact,
		 size_t size)
{
	void *at = tacho__blame_add(b, l, size);

	if (at)
		memcpy(at, fact, size);
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, p->at.process, p->wake_ns ? p->wake_ns : p->begin_ns, p->end_ns))
		keep(b, &b->polls, p, sizeof(*p));
}

static void on_work(void *arg, const struct tacho__work *w)
{
	struct tacho__blaming *b = arg;
	uint64_t from = w->submit_ns ? w->submit_ns : w->begin_ns;
	uint64_t to = w->end_ns ? w->end_ns : UINT64_MAX;

	if (overlaps(b, w->process, from, to))
		keep(b, &b->works, w, sizeof(*w));
}

static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, w->at.process, w->ns, w->begin_ns ? w->begin_ns : UINT64_MAX))
		keep(b, &b->wakes, w, sizeof(*w));
}

static void on_task_wait(void *arg, const struct tacho__task_wait *w)
{
	struct tacho__blaming *b = arg;

	if (w->what && w->task == b->subject->task &&
	    overlaps(b, w->process, w->begin_ns, w->end_ns))
		keep(b, &b->waits, w, sizeof(*w));
}

static int by_thread(const void *a, const void *b)
{
	const struct tacho__poll *x = a, *y = b;

	if (x->at.thread != y->at.thread)
		return x->at.thread < y->at.thread ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct tacho__wake *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int by_end(const void *a, const void *b)
{
	const struct tacho__task_wait *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* The diary of the subject's time, and what has to do with it. */
static int gather(struct tacho__blaming *b)
{
	struct tacho__facts facts[2];
	struct tacho__tracker *t;
	int error = -ENOMEM;

	b->ledger = tacho__ledger_new(b->reader);
	if (!b->ledger)
		return -ENOMEM;
	b->diary.process = b->subject->process;
	b->diary.from_ns = b->subject->from_ns;
	tacho__diary_keep(b->ledger, &b->diary);
	facts[0] = tacho__ledger_facts(b->ledger);
	facts[1] = (struct tacho__facts){.arg = b,
					 .error = &b->error,
					 .poll = on_poll,
					 .work = on_work,
					 .wake = on_wake,
					 .task_wait = on_task_wait};
	t = tacho__tracker_new(b->reader, facts, 2);
	if (t)
		error = tacho__tracker_run(t, NULL, NULL);
	tacho__tracker_free(t);
	if (!error)
		error = tacho__ledger_turn_page(b->ledger);
	tacho__diary_close(&b->diary);
	tacho__sort(b->polls.at, b->polls.count, sizeof(struct tacho__poll), by_thread);
	tacho__sort(b->wakes.at, b->wakes.count, sizeof(struct tacho__wake), by_time);
	tacho__sort(b->waits.at, b->waits.count, sizeof(struct tacho__task_wait), by_end);
	return error;
}

static void forget(struct tacho__blaming *b)
{
	tacho__ledger_free(b->ledger);
	tacho__diary_free(&b->diary);
	free(b->polls.at);
	free(b->wakes.at);
	free(b->works.at);
	free(b->waits.at);
}

/* ------------------------------------------------------------------ polls, wakes */

static const struct tacho__poll *poll_of(const struct tacho__blaming *b, uint32_t thread,
					 uint64_t end_ns)
{
	const struct tacho__poll *best = NULL;

	for (uint32_t i = 0; i < b->polls.count; i++) {
		const struct tacho__poll *p = TACHO__FACT_AT(&b->polls, tacho__poll, i);

		if (p->at.thread == thread && p->end_ns == end_ns &&
		    (!best || p->begin_ns < best->begin_ns))
			best = p;
	}
	return best;
}

static void blame_poll(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct tacho__poll *p = poll_of(b, thread, to);
	uint64_t begin = p && p->begin_ns > from ? p->begin_ns : from;

	if (begin > from)
		tacho__blame_delay(b, thread, from, begin, 0);
	tacho__blame_thread(b, thread, begin, to, 0, p != NULL);
}

/* ------------------------------------------------------------------------ tasks */

/* The polls of one task, in their order. */
struct own_polls {
	const struct tacho__poll **at;
	uint32_t count, next;
};

static int by_begin(const void *a, const void *b)
{
	const struct tacho__poll *x = *(const struct tacho__poll *const *)a;
	const struct tacho__poll *y = *(const struct tacho__poll *const *)b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static void own_polls(struct tacho__blaming *b, uint64_t task, struct own_polls *own)
{
	for (uint32_t i = 0; i < b->polls.count; i++)
		own->count += TACHO__FACT_AT(&b->polls, tacho__poll, i)->task == task;
	own->at = malloc((own->count + 1u) * sizeof(const struct tacho__poll *));
	if (!own->at) {
		b->error = -ENOMEM;
		return;
	}
	own->count = 0;
	for (uint32_t i = 0; i < b->polls.count; i++) {
		const struct tacho__poll *p = TACHO__FACT_AT(&b->polls, tacho__poll, i);

		if (p->task == task)
			own->at[own->count++] = p;
	}
	TACHO__SORT(own->at, own->count, by_begin);
}

/* The first that ends after a time, which never goes back. */
static const struct tacho__poll *next_poll(struct own_polls *own, uint64_t after)
{
	while (own->next < own->count && own->at[own->next]->end_ns <= after)
		own->next++;
	return own->next < own->count ? own->at[own->next] : NULL;
}

static const struct tacho__work *work_between(const struct tacho__blaming *b, uint64_t task,
					      uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; task && i < b->works.count; i++) {
		const struct tacho__work *w = TACHO__FACT_AT(&b->works, tacho__work, i);

		if (w->work == task && w->submit_ns && w->submit_ns < to && w->begin_ns > from)
			return w;
	}
	return NULL;
}

static const struct tacho__wake *wake_at(const struct tacho__blaming *b, uint64_t task, uint64_t ns)
{
	uint32_t low = 0, high = b->wakes.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (TACHO__FACT_AT(&b->wakes, tacho__wake, middle)->ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < b->wakes.count; low++) {
		const struct tacho__wake *w = TACHO__FACT_AT(&b->wakes, tacho__wake, low);

		if (w->ns != ns)
			break;
		if (w->task == task)
			return w;
	}
	return NULL;
}

/* What the task said it waits for, from `from` to `to` or most of it; NULL: nothing. */
static const struct tacho__task_wait *wait_between(const struct tacho__blaming *b, uint64_t task,
						   uint64_t from, uint64_t to)
{
	uint32_t low = 0, high = task == b->subject->task ? b->waits.count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (TACHO__FACT_AT(&b->waits, tacho__task_wait, middle)->end_ns <= from)
			low = middle + 1;
		else
			high = middle;
	}
	if (task == b->subject->task && low < b->waits.count) {
		const struct tacho__task_wait *w = TACHO__FACT_AT(&b->waits, tacho__task_wait, low);
		uint64_t begin = w->begin_ns > from ? w->begin_ns : from;
		uint64_t end = w->end_ns < to ? w->end_ns : to;

		if (end > begin && end - begin >= (to - from) / 2)
			return w;
	}
	return NULL;
}

static void name_holder(const struct tacho__blaming *b, struct tacho__piece *p,
			const struct tacho__task_wait *w)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	int blocked = w->by.waited_ns >= (w->end_ns - w->begin_ns) / 2;
	uint32_t n = tacho__places_of_id(b->reader, w->process,
					 blocked ? w->by.waits_stack : w->by.stack, w->end_ns,
					 places, TACHO__PLACES_MAX);
	struct tacho__place place = tacho__places_best(places, n);
	char kind[TACHO__TEXT], where[2 * TACHO__TEXT];
	size_t used = strlen(p->text);

	tacho__name_of(kind, sizeof(kind), b->reader, w->process, w->by.kind, w->end_ns);
	snprintf(p->text + used, sizeof(p->text) - used, ", which task %llu of %s has%s%s",
		 (unsigned long long)w->by.task, kind, n ? " in " : "",
		 n ? tacho__place_text(where, &place) : "");
}

/* For what it waited, and where; of a lock, who had it. */
static void name_wait(const struct tacho__blaming *b, struct tacho__piece *p,
		      const struct tacho__task_wait *w)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(b->reader, w->process, w->stack, w->end_ns, places,
					 TACHO__PLACES_MAX);
	int lock = tacho__is_lock(tacho_read_definition(b->reader, w->process, w->what));
	char what[TACHO__TEXT];

	tacho__name_of(what, sizeof(what), b->reader, w->process, w->what, w->end_ns);
	snprintf(p->text, sizeof(p->text), "%s%s", lock ? "" : "waiting for ", what);
	for (uint32_t i = tacho__places_own(places, n); i < n && p->where_count < 4; i++)
		if (tacho__place_is_own(&places[i]))
			p->where[p->where_count++] = places[i];
	if (lock)
		p->owner = TACHO__OWNS_LOCK;
	if (lock && w->by.task)
		name_holder(b, p, w);
}

/* Suspended until `to`, when it was woken or its poll began: for whom? */
static void blame_wait(struct tacho__blaming *b, uint64_t task, const struct tacho__poll *next,
		       uint64_t from, uint64_t to)
{
	const struct tacho__work *work = work_between(b, task, from, to);
	const struct tacho__wake *wake =
		next && next->wake_ns ? wake_at(b, task, next->wake_ns) : NULL;
	const struct tacho__task_wait *wait = wait_between(b, task, from, to);
	struct tacho__piece *p;

	if (to <= from)
		return;
	if (work) {
		uint64_t begin = work->begin_ns < to ? work->begin_ns : to;
		uint64_t end = work->end_ns && work->end_ns < to ? work->end_ns : to;
		uint64_t submit = work->submit_ns > from ? work->submit_ns : from;

		if (submit > from)
			blame_wait(b, 0, NULL, from, submit);
		if (begin > submit)
			tacho__blame_piece(b, TACHO__OWNER_POOL, 0, work->worker, submit, begin);
		if (end > begin) {
			p = tacho__blame_piece(b, TACHO__OWNER_WORK, 0, work->worker, begin, end);
			if (p)
				p->kind = work->kind;
			if (p && work->worker)
				tacho__blame_thread(b, work->worker, begin, end, 1, 0);
		}
		if (to > end)
			blame_wait(b, 0, NULL, end, to);
		return;
	}
	p = tacho__blame_piece(b, TACHO__OWNER_IO, 0, wake ? wake->at.thread : 0, from, to);
	if (!p)
		return;
	if (wait) {
		name_wait(b, p, wait);
		return;
	}
	if (!wake) {
		snprintf(p->text, sizeof(p->text), "waiting for the outside");
		return;
	}
	p->kind = wake->at.kind;
	p->task = wake->at.task;
	snprintf(p->text, sizeof(p->text), "waiting until it was woken%s",
		 wake->at.task ? " by another task" : "");
	/* What the thread that woke it did meanwhile. */
	if (wake->at.task && wake->at.task != task)
		tacho__blame_thread(b, wake->at.thread, from, to, 1, 0);
}

/* The polls of the subject's task, and what happened between them. */
static void blame_task(struct tacho__blaming *b, uint64_t task, uint64_t from, uint64_t to)
{
	struct own_polls own = {0};
	uint64_t at = from;

	own_polls(b, task, &own);
	while (at < to && !b->error) {
		const struct tacho__poll *p = next_poll(&own, at);
		uint64_t begin, woken;

		if (!p || p->begin_ns >= to) {
			blame_wait(b, task, p, at, to);
			break;
		}
		begin = p->begin_ns > at ? p->begin_ns : at;
		woken = p->wake_ns > at ? p->wake_ns : p->wake_ns ? at : begin;
		if (woken > begin)
			woken = begin;
		blame_wait(b, task, p, at, woken);
		if (begin > woken)
			tacho__blame_delay(b, p->at.thread, woken, begin, 0);
		tacho__blame_thread(b, p->at.thread, begin, p->end_ns < to ? p->end_ns : to, 0, 1);
		at = p->end_ns;
	}
	free(own.at);
}

/* ------------------------------------------------------------------------- making */

static void lay(struct tacho__blaming *b)
{
	const struct tacho__subject *s = b->subject;

	if (s->task &&
	    (s->type == TACHO__SUBJECT_TASK || (s->type == TACHO__SUBJECT_SPAN && s->span)))
		blame_task(b, s->task, s->from_ns, s->to_ns);
	else if (s->type == TACHO__SUBJECT_SPAN || s->type == TACHO__SUBJECT_STRETCH)
		tacho__blame_thread(b, s->thread, s->from_ns, s->to_ns, 0, 0);
	else
		blame_poll(b, s->thread, s->from_ns, s->to_ns);
	if (!b->error)
		tacho__blame_join(b);
}

struct tacho__blame *tacho__blame_make(struct tacho_reader *reader,
				       const struct tacho__subject *subject, int *error)
{
	struct tacho__blaming b = {.reader = reader, .subject = subject};
	struct tacho__blame *out = calloc(1, sizeof(*out));

	*error = out ? gather(&b) : -ENOMEM;
	if (!*error) {
		lay(&b);
		*error = b.error;
	}
	forget(&b);
	if (*error) {
		free(b.pieces.at);
		free(out);
		return NULL;
	}
	out->subject = *subject;
	out->pieces = b.pieces.at;
	out->count = b.pieces.count;
	for (uint32_t i = 0; i < out->count; i++)
		if (!out->pieces[i].depth && out->pieces[i].owner == TACHO__OWNS_NOT_OBSERVED)
			out->not_observed_ns += out->pieces[i].ns;
	return out;
}

void tacho__blame_free(struct tacho__blame *b)
{
	if (!b)
		return;
	free(b->pieces);
	free(b);
}

/* ------------------------------------------------------------------------ finding */

struct finding {
	const struct tacho_reader *reader;
	const struct tacho__subject_filter *filter;
	struct tacho__subject *out;
	uint32_t most, count;
};

static void offer(struct finding *f, const struct tacho__subject *s)
{
	uint64_t ns = s->to_ns - s->from_ns;
	uint32_t at = f->count;

	if (f->filter->type && f->filter->type != s->type)
		return;
	if (at == f->most) {
		if (!at || ns <= f->out[at - 1].to_ns - f->out[at - 1].from_ns)
			return;
		at--;
	} else {
		f->count++;
	}
	for (; at && ns > f->out[at - 1].to_ns - f->out[at - 1].from_ns; at--)
		f->out[at] = f->out[at - 1];
	f->out[at] = *s;
}

static int wants_all(const struct tacho__subject_filter *f)
{
	return !f->span && !f->trace_high && !f->trace_low;
}

static void find_poll(void *arg, const struct tacho__poll *p)
{
	struct finding *f = arg;
	struct tacho__subject s = {
		.type = p->wake_ns ? TACHO__SUBJECT_WAKE : TACHO__SUBJECT_POLL,
		.process = p->at.process,
		.thread = p->at.thread,
		.from_ns = p->wake_ns ? p->wake_ns : p->begin_ns,
		.to_ns = p->end_ns,
		.kind = p->kind,
		.task = p->task,
		.cut = p->cut,
	};

	if (p->depth || p->cut & TACHO__CUT_BEGIN || !wants_all(f->filter) ||
	    (f->filter->task && f->filter->task != p->task))
		return;
	offer(f, &s);
}

static void find_span(void *arg, const struct tacho__span *p)
{
	struct finding *f = arg;
	const struct tacho__subject_filter *want = f->filter;
	const struct tacho_definition *d =
		want->span ? tacho_read_definition(f->reader, p->at.process, p->name) : NULL;
	struct tacho__subject s = {
		.type = TACHO__SUBJECT_SPAN,
		.process = p->at.process,
		.thread = p->at.thread,
		.from_ns = p->begin_ns,
		.to_ns = p->end_ns,
		.kind = p->at.kind,
		.name = p->name,
		.task = p->at.task,
		.span = p->id,
		.trace_high = p->trace_high,
		.trace_low = p->trace_low,
		.cut = p->cut,
	};

	if (want->span && (!d || strcmp(d->name, want->span) != 0))
		return;
	if ((want->trace_high || want->trace_low) &&
	    (want->trace_high != p->trace_high || want->trace_low != p->trace_low))
		return;
	if (want->task && want->task != p->at.task)
		return;
	/* Without a wish for spans only those that reach over polls are of interest. */
	if (wants_all(want) && !p->async && !want->type)
		return;
	offer(f, &s);
}

static void find_task(void *arg, const struct tacho__task *t)
{
	struct finding *f = arg;
	struct tacho__subject s = {
		.type = TACHO__SUBJECT_TASK,
		.process = t->process,
		.from_ns = t->spawn_ns ? t->spawn_ns : t->first_ns,
		.to_ns = t->end_ns ? t->end_ns : t->last_ns,
		.kind = t->kind,
		.task = t->task,
	};

	if (!f->filter->task || f->filter->task != t->task || s.to_ns <= s.from_ns)
		return;
	offer(f, &s);
}

int tacho__blame_find(struct tacho_reader *reader, const struct tacho__subject_filter *filter,
		      struct tacho__subject *out, uint32_t most)
{
	struct finding f = {.reader = reader, .filter = filter, .out = out, .most = most};
	const struct tacho__facts facts = {
		.arg = &f,
		.poll = find_poll,
		.span = find_span,
		.task = find_task,
	};
	int error = tacho__model_run(reader, &facts, NULL, NULL, NULL);

	return error ? error : (int)f.count;
}
