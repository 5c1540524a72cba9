/* The facts around a subject, in an order in which they are found by thread and time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain/blaming.h"
#include "read/memory.h"

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

static void on_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, u->process, u->begin_ns - u->parked_ns, u->end_ns))
		keep(b, &b->turns, u, sizeof(*u));
}

static void on_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, l->at.process, l->begin_ns, l->end_ns))
		keep(b, &b->locks, l, sizeof(*l));
}

static void on_call(void *arg, const struct tacho__call *c)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, c->at.process, c->begin_ns, c->end_ns))
		keep(b, &b->calls, c, sizeof(*c));
}

static void on_work(void *arg, const struct tacho__work *w)
{
	struct tacho__blaming *b = arg;
	uint64_t from = w->submit_ns ? w->submit_ns : w->begin_ns;
	uint64_t to = w->end_ns ? w->end_ns : UINT64_MAX;

	if (overlaps(b, w->process, from, to))
		keep(b, &b->works, w, sizeof(*w));
}

static void on_off(void *arg, const struct tacho__switch *o)
{
	struct tacho__blaming *b = arg;

	b->switches = 1;
	if (overlaps(b, o->at.process, o->begin_ns, o->end_ns))
		keep(b, &b->offs, o, sizeof(*o));
}

static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__blaming *b = arg;

	if (overlaps(b, w->at.process, w->ns, w->begin_ns ? w->begin_ns : UINT64_MAX))
		keep(b, &b->wakes, w, sizeof(*w));
}

/* ------------------------------------------------------------------- their order */

static int by_place(const void *a, const void *b)
{
	const struct tacho__extent *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	/* Outer ones first. */
	return (x->end < y->end) - (x->end > y->end);
}

static struct tacho__extent *extents_of(struct tacho__blaming *b, struct tacho__fact_list *l)
{
	l->extents = calloc(l->count + 1u, sizeof(*l->extents));
	if (!l->extents)
		b->error = -ENOMEM;
	return l->extents;
}

static void order(struct tacho__fact_list *l)
{
	struct tacho__extent *x = l->extents;

	if (!x || !l->count)
		return;
	qsort(x, l->count, sizeof(*x), by_place);
	for (uint32_t i = 0; i < l->count; i++) {
		x[i].reach = x[i].end;
		if (i && x[i - 1].thread == x[i].thread && x[i - 1].reach > x[i].reach)
			x[i].reach = x[i - 1].reach;
	}
}

#define ORDER(list, type, thread_, begin_, end_)                                                   \
	do {                                                                                       \
		struct tacho__extent *extent = extents_of(b, &b->list);                            \
                                                                                                   \
		for (uint32_t i = 0; extent && i < b->list.count; i++) {                           \
			const struct type *x = TACHO__FACT_AT(&b->list, type, i);                  \
                                                                                                   \
			extent[i] = (struct tacho__extent){                                        \
				.thread = (thread_), .fact = i, .begin = (begin_), .end = (end_)}; \
		}                                                                                  \
		order(&b->list);                                                                   \
	} while (0)

static void order_all(struct tacho__blaming *b)
{
	ORDER(polls, tacho__poll, x->at.thread, x->begin_ns, x->end_ns);
	ORDER(turns, tacho__turn, x->thread, x->begin_ns - x->parked_ns, x->begin_ns);
	ORDER(locks, tacho__lock, x->at.thread, x->begin_ns, x->end_ns);
	ORDER(calls, tacho__call, x->at.thread, x->begin_ns, x->end_ns);
	ORDER(offs, tacho__switch, x->at.thread, x->begin_ns, x->end_ns);
	/* By time alone. */
	ORDER(wakes, tacho__wake, 0, x->ns, x->ns);
}

uint32_t tacho__facts_before(const struct tacho__fact_list *l, uint32_t thread, uint64_t ns)
{
	uint32_t low = 0, high = l->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tacho__extent *x = &l->extents[middle];

		if (x->thread < thread || (x->thread == thread && x->begin < ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void list_free(struct tacho__fact_list *l)
{
	free(l->at);
	free(l->extents);
}

void tacho__blame_forget(struct tacho__blaming *b)
{
	list_free(&b->polls);
	list_free(&b->turns);
	list_free(&b->locks);
	list_free(&b->calls);
	list_free(&b->works);
	list_free(&b->offs);
	list_free(&b->wakes);
}

int tacho__blame_gather(struct tacho__blaming *b)
{
	const struct tacho__facts facts = {
		.arg = b,
		.error = &b->error,
		.poll = on_poll,
		.turn = on_turn,
		.lock = on_lock,
		.call = on_call,
		.work = on_work,
		.off_cpu = on_off,
		.wake = on_wake,
	};
	struct tacho_source_info info = {.size = sizeof(info)};

	b->error = tacho__model_run(b->reader, &facts, NULL, NULL, NULL);
	for (uint32_t i = 0; i < tacho_read_source_count(b->reader); i++)
		if (tacho_read_source(b->reader, b->subject->process, i, &info) >= 0 &&
		    strcmp(info.name, "cpu_samples") == 0)
			b->samples = info.state == TACHO_SOURCE_ON;
	if (!b->error)
		order_all(b);
	return b->error;
}
