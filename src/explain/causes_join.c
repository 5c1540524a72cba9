/* Causes that are one to a person: of a lock, of the kernel, of code. */
#include <stdlib.h>
#include <string.h>

#include "explain/causes.h"

#define WAITERS 64u /* of one lock that are looked at */
/* Of the samples in callbacks that one function had most of: what another has that is part of it. */
#define BESIDE 10

/* Whether one of these is the holder of another, and waits for half as long at least. */
static int holder_waits(const struct tacho__ledger *l, const struct tacho__owned *const *waiters,
			uint32_t count, const struct tacho__owned *o)
{
	int waits = 0;

	for (uint32_t i = 0; i < count; i++)
		waits |= l->threads[waiters[i]->thread].thread == o->holder &&
			 waiters[i]->longest_ns >= o->longest_ns / 2;
	return waits;
}

const struct tacho__owned *tacho__keeper(const struct tacho__explaining *x,
					 const struct tacho__cause *g)
{
	const struct tacho__ledger *l = x->out->ledger;
	const struct tacho__owned *waiters[WAITERS], *best = NULL;
	uint32_t n = 0;
	int best_waits = 1;

	for (const struct tacho__owned *o = NULL;
	     n < WAITERS && (o = tacho__table_next(&l->owned, o));)
		if (o->process == x->process && o->owns == TACHO__OWNS_LOCK &&
		    o->lock == g->worst->lock && !o->is_signal)
			waiters[n++] = o;
	for (uint32_t i = 0; i < n; i++) {
		const struct tacho__owned *o = waiters[i];
		int waits = holder_waits(l, waiters, n, o);

		if (o->holder &&
		    (!best || waits < best_waits || (waits == best_waits && o->ns > best->ns))) {
			best = o;
			best_waits = waits;
		}
	}
	return best;
}

/* What is held in one place is one cause, however many locks it is: a lock for each bucket, say. */
static void join_locks(const struct tacho__explaining *x, struct tacho__cause *groups,
		       uint32_t count)
{
	uint64_t held[TACHO__CAUSES] = {0};

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__owned *k = NULL;
		uint32_t to = 0;

		if (groups[i].owns == TACHO__OWNS_LOCK && !groups[i].worst->is_signal)
			k = tacho__keeper(x, &groups[i]);
		if (!k || !k->held_place)
			continue;
		held[i] = tacho__cause_place(x, k, k->held_place) | 1;
		while (held[to] != held[i])
			to++;
		if (to < i)
			tacho__cause_add(&groups[to], &groups[i]);
	}
}

/* A lock is waited for because its holder does not run: the cause is that. */
static void join_unscheduled(struct tacho__cause *groups, uint32_t count)
{
	struct tacho__cause *off = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (groups[i].owns == TACHO__OWNS_DESCHEDULED)
			off = &groups[i];
	for (uint32_t i = 0; i < count && off; i++) {
		struct tacho__cause *g = &groups[i];
		uint64_t ns = 0;

		for (uint32_t k = 0; k < TACHO__SIZES; k++)
			ns += g->size[k].ns;
		if (g->owns != TACHO__OWNS_LOCK || g->holder_off_ns <= ns / 2)
			continue;
		for (uint32_t k = 1; k < TACHO__SIZES; k++)
			off->kept_waiting_ns += g->size[k].waiting_ns;
		off->several |= g->several;
		memset(g->size, 0, sizeof(g->size));
	}
}

/* ---------------------------------------------------------------------- code */

static uint32_t find_group(const struct tacho__cause *groups, uint32_t count, uint64_t key)
{
	uint32_t i = 0;

	while (i < count && !(groups[i].owns == TACHO__OWNS_CODE && groups[i].key == key))
		i++;
	return i;
}

static uint32_t root_of(const uint32_t *joined, uint32_t i)
{
	while (joined[i] != i)
		i = joined[i];
	return i;
}

/*
 * What takes long is seldom one function: it calls others, and each time another of them has most of
 * the samples. Functions that run in the same callbacks, and have most of one or another, are one
 * cause. Two faults are not: where one has most, the other does not run.
 */
static void join_code(const struct tacho__explaining *x, struct tacho__cause *groups,
		      uint32_t count)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint32_t joined[TACHO__CAUSES];

	for (uint32_t i = 0; i < count; i++)
		joined[i] = i;
	for (const struct tacho__beside *s = NULL; (s = tacho__table_next(&l->beside, s));) {
		const struct tacho__function *f = tacho__table_at(&l->functions, s->most);
		const struct tacho__function *g = tacho__table_at(&l->functions, s->other);
		const struct tacho__beside *all = tacho__table_find(&l->beside, s->most, s->most);
		const struct tacho__owned *o = f ? tacho__table_at(&l->owned, f->owned) : NULL;
		uint32_t a, b;

		if (!g || f == g || !o || o->process != x->process || !all ||
		    s->ns < all->ns / BESIDE)
			continue;
		a = find_group(groups, count, f->entry.key[1] | TACHO__BY_FUNCTION);
		b = find_group(groups, count, g->entry.key[1] | TACHO__BY_FUNCTION);
		if (a < count && b < count)
			joined[root_of(joined, a)] = root_of(joined, b);
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t to = root_of(joined, i);

		if (to == i)
			continue;
		groups[i].into = to + 1;
		groups[to].is_joined = 1;
		tacho__cause_add(&groups[to], &groups[i]);
	}
}

int tacho__where_joined(const struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__cause *causes, uint32_t count, uint32_t cause)
{
	const struct tacho__ledger *l = x->out->ledger;
	struct tacho__samples *samples = calloc(1, sizeof(*samples));
	int any;

	if (!samples)
		return 0;
	for (const struct tacho__function *g = NULL; (g = tacho__table_next(&l->functions, g));) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, g->owned);
		uint32_t at =
			o && o->process == x->process
				? find_group(causes, count, g->entry.key[1] | TACHO__BY_FUNCTION)
				: count;

		if (at < count && (at == cause || causes[at].into == cause + 1))
			tacho__samples_add(samples, g);
	}
	any = tacho__where_common(x, f, samples, causes[cause].last_ns);
	free(samples);
	return any;
}

void tacho__causes_join(const struct tacho__explaining *x, struct tacho__cause *groups,
			uint32_t count)
{
	join_code(x, groups, count);
	join_unscheduled(groups, count);
	join_locks(x, groups, count);
}

/*
 * Those of libuv's pool are there for what takes long, but not to wait for what others hold. Those of a pool of the
 * program's own are its workers, and lost to it while they are blocked; unless who asked them waits for that.
 */
int tacho__may_be_cause(const struct tacho__ledger *l, const struct tacho__owned *o)
{
	const struct tacho__ledger_thread *t = &l->threads[o->thread];

	if (t->is_loop || !t->is_pool)
		return t->is_loop;
	if (t->pool && !tacho__is_asked(t))
		return o->owns == TACHO__OWNS_LOCK || o->owns == TACHO__OWNS_CALL ||
		       o->owns == TACHO__OWNS_CODE;
	return o->owns == TACHO__OWNS_LOCK && !o->is_signal;
}
