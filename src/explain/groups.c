#include "explain/groups.h"

#include <stdlib.h>
#include <string.h>

#define CASES_LOOKED_AT 2048u

/*
 * The last turn of a loop in a process that has ended in order: the thread had left its loop, to
 * clean up or to wait for others until they end.
 */
static int has_left(const struct tacho__explaining *x, const struct tacho__poll *p)
{
	const struct tacho_process *process = tacho_read_process(x->reader, p->at.process);
	const struct tacho__loop_sum *l = tacho__table_find(
		&x->sum->loops, (uint64_t)p->at.process << 32 | p->at.loop, p->at.thread);

	return !p->kind && process && process->state == TACHO_STATE_STOPPED && l &&
	       p->end_ns >= l->last_ns;
}

static void show_longest(struct tacho__group *g, const struct tacho__poll *p)
{
	for (uint32_t k = 0; p && k < TACHO__SHOWN; k++)
		if (!g->top[k] || tacho__length(p) > tacho__length(g->top[k])) {
			const struct tacho__poll *next = g->top[k];

			g->top[k] = p;
			p = next;
		}
}

static uint64_t longest(const struct tacho__case *c)
{
	return c->worst.count ? c->worst.at[0].end_ns - c->worst.at[0].begin_ns : 0;
}

static struct tacho__place place_of(const struct tacho__explaining *x, const struct tacho__case *c)
{
	struct tacho__hottest h;

	switch (c->cause) {
	case TACHO__CAUSE_CALL:
		return tacho__own_place(x, c->process, c->call.stack, c->last_ns);
	case TACHO__CAUSE_SIGNAL:
		return tacho__own_place(x, c->process,
					c->lock.stack ? c->lock.stack : c->lock.place, c->last_ns);
	case TACHO__CAUSE_LOCK:
		return tacho__own_place(x, c->process,
					c->lock.release_ns ? c->lock.release_place : c->lock.place,
					c->last_ns);
	case TACHO__CAUSE_CODE:
	case TACHO__CAUSE_UNKNOWN:
		if (tacho__find_hottest(x, c->process, &c->samples, c->last_ns, tacho__has_code(c),
					&h))
			return h.place;
		return tacho__own_place(x, c->process, c->worst.at[0].kind, c->last_ns);
	default:
		return tacho__own_place(x, c->process, 0, 0);
	}
}

/* Code that ran unseen is a long callback as well. */
static uint32_t cause_of(const struct tacho__case *c)
{
	return c->cause == TACHO__CAUSE_UNKNOWN ? TACHO__CAUSE_CODE : c->cause;
}

static int same(const struct tacho__group *g, const struct tacho__case *c,
		const struct tacho__place *p)
{
	if (g->process != c->process || g->cause != cause_of(c) ||
	    strcmp(g->place.function, p->function) != 0)
		return 0;
	if (g->cause == TACHO__CAUSE_CALL && g->worst->call.name != c->call.name)
		return 0;
	return p->function[0] || g->place.address == p->address;
}

/*
 * Whether one goes through the place of the other: what a few samples have in common is now a
 * function, now one that calls it.
 */
static int related(const struct tacho__explaining *x, const struct tacho__group *g,
		   const struct tacho__case *c, const struct tacho__place *p)
{
	return g->process == c->process && g->cause == TACHO__CAUSE_CODE &&
	       cause_of(c) == TACHO__CAUSE_CODE &&
	       (tacho__goes_through(x, c->process, &c->samples, &g->place, c->last_ns) ||
		tacho__goes_through(x, c->process, &g->dearest->samples, p, g->dearest->last_ns));
}

static uint32_t group_of(const struct tacho__explaining *x, struct tacho__group *groups, uint32_t n,
			 const struct tacho__case *c, const struct tacho__place *place)
{
	uint32_t at = 0;

	while (at < n && !same(&groups[at], c, place))
		at++;
	if (at < n)
		return at;
	for (at = 0; at < n && !related(x, &groups[at], c, place); at++)
		;
	return at;
}

/* Without the one in which its thread had left its loop. */
static void leave_out(struct tacho__group *g, const struct tacho__case *c,
		      const struct tacho__poll *p)
{
	uint64_t own = tacho__own_ns(p);

	g->count--;
	g->sum_ns -= tacho__length(p);
	g->own_ns -= own;
	g->sample_ns -= p->spent.sample_ns < g->sample_ns ? p->spent.sample_ns : g->sample_ns;
	g->unsure -= g->unsure > g->count;
	if (c->cause == TACHO__CAUSE_CODE || c->cause == TACHO__CAUSE_UNKNOWN)
		g->cause_ns -= tacho__length(p);
}

static void add_to_group(const struct tacho__explaining *x, struct tacho__group *g,
			 const struct tacho__case *c)
{
	uint64_t own = c->longest_own_ns, most = 0;

	if (longest(c) > longest(g->worst))
		g->worst = c;
	g->count += c->count;
	g->sum_ns += c->sum_ns;
	g->cause_ns += c->cause_ns;
	g->own_ns += c->own_ns;
	g->sample_ns += c->sample_ns;
	g->unsure += c->unsure;
	for (uint32_t i = 0; i < c->worst.count; i++) {
		const struct tacho__poll *p = &c->worst.at[i];

		if (has_left(x, p)) {
			leave_out(g, c, p);
			own = 0;
			continue;
		}
		show_longest(g, p);
		if (tacho__own_ns(p) > most)
			most = tacho__own_ns(p);
	}
	own = own ? own : most;
	if (own > g->longest_own_ns)
		g->longest_own_ns = own;
	if (g->top[0])
		g->longest_ns = tacho__length(g->top[0]);
}

static int by_cost(const void *a, const void *b)
{
	const struct tacho__case *c = *(const struct tacho__case *const *)a;
	const struct tacho__case *d = *(const struct tacho__case *const *)b;

	if (c->own_ns != d->own_ns)
		return c->own_ns < d->own_ns ? 1 : -1;
	return (c->entry.index > d->entry.index) - (c->entry.index < d->entry.index);
}

/* The most costly cases come first; groups beyond TACHO__GROUPS are left out. */
uint32_t tacho__group_cases(const struct tacho__explaining *x, struct tacho__group *groups)
{
	const struct tacho__case *cases[CASES_LOOKED_AT];
	uint32_t n = 0, count = 0, at;

	for (const struct tacho__case *c = NULL;
	     count < CASES_LOOKED_AT && (c = tacho__table_next(&x->gathered.cases, c));) {
		if (c->cause != TACHO__CAUSE_OPEN)
			cases[count++] = c;
	}
	qsort(cases, count, sizeof(cases[0]), by_cost);
	for (uint32_t i = 0; i < count; i++) {
		struct tacho__place place = place_of(x, cases[i]);

		at = group_of(x, groups, n, cases[i], &place);
		if (at == TACHO__GROUPS)
			continue;
		if (at == n)
			groups[n++] = (struct tacho__group){.process = cases[i]->process,
							    .cause = cause_of(cases[i]),
							    .worst = cases[i],
							    .dearest = cases[i],
							    .place = place};
		add_to_group(x, &groups[at], cases[i]);
	}
	return n;
}
