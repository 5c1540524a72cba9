/* Queues of work: how much waits in each, who serves it, and what that costs those who are busy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/ledger_book.h"

#define POOL (UINT64_C(1) << 40) /* in keys: beside all definitions and descriptors */
#define SET (UINT64_C(1) << 41)
#define CONDITION (UINT64_C(1) << 63)
#define WAITING_MAX (1u << 24)

/* ---------------------------------------------------------------- which one */

/*
 * The hooks name a loop after the thread that defines it and the epoll set that it waits on:
 * "server epoll 5". Threads of different names that wait on one set serve one queue.
 */
static uint64_t key_of(const struct tacho__ledger_book *b, uint32_t process, uint32_t loop)
{
	const struct tacho_definition *d = tacho_read_definition(b->l->reader, process, loop);
	static const char *const sets[] = {"epoll", "io_uring"};
	char end[48];

	if (!d || d->level != TACHO_LEVEL_WAITS)
		return loop;
	for (uint32_t i = 0; i < 2; i++) {
		size_t size = strlen(d->name), n;

		n = (size_t)snprintf(end, sizeof(end), " %s %" PRIu64, sets[i], d->value);
		if (size >= n && strcmp(d->name + size - n, end) == 0)
			return SET | (uint32_t)d->value;
	}
	return loop;
}

static struct tacho__queue *get(struct tacho__ledger_book *b, uint32_t process, uint64_t key)
{
	struct tacho__queue *q = tacho__table_get(&b->queues, process, key, &b->error);

	if (q && !q->at) {
		q->last_worker = q->first_worker = TACHO__NONE;
		q->at = 1;
	}
	return q ? tacho__queue_root(b, q->entry.index) : NULL;
}

struct tacho__queue *tacho__queue_of(struct tacho__ledger_book *b, uint32_t process, uint32_t loop)
{
	struct tacho__known_id *k = &b->loops[loop % TACHO__BOOK_KNOWN];
	struct tacho__queue *q;

	if (!loop)
		return NULL;
	if (k->value && k->id == loop && k->process == process)
		return tacho__queue_root(b, k->value - 1);
	q = get(b, process, key_of(b, process, loop));
	*k = (struct tacho__known_id){process, loop, q ? q->entry.index + 1 : 0};
	return q;
}

struct tacho__queue *tacho__queue_served(struct tacho__ledger_book *b, struct tacho__worker *w,
					 uint32_t loop)
{
	w->own = loop && tacho__serves_one(tacho_read_definition(b->l->reader, w->process, loop));
	return w->own ? NULL : tacho__queue_of(b, w->process, loop);
}

struct tacho__queue *tacho__queue_of_pool(struct tacho__ledger_book *b, uint32_t process)
{
	return get(b, process, POOL);
}

struct tacho__queue *tacho__queue_at_condition(struct tacho__ledger_book *b, uint32_t process,
					       uint64_t lock, int make)
{
	return make || tacho__table_find(&b->queues, process, lock | CONDITION)
		       ? get(b, process, lock | CONDITION)
		       : NULL;
}

/* --------------------------------------------------------------------- sums */

static uint32_t busy(const struct tacho__queue *q)
{
	return q->serving - q->parked - q->idle;
}

/* What waits has waited for so long. */
void tacho__queue_pay(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t took)
{
	uint64_t all = tacho__times(q->waiting, took);
	uint32_t by = busy(q);

	b->waited = tacho__sum(b->waited, all);
	if (q->parked || !by) {
		q->late_ns += took;
		q->late = tacho__add(q->late, all);
		return;
	}
	/* Most queues have one thread. */
	if (by > 1) {
		all += q->carried;
		q->carried = all % by;
		all /= by;
	}
	q->cost = tacho__sum(q->cost, all);
}

/* Before a change: until here the slope was what it was. */
static void mark(struct tacho__queue *q)
{
	struct tacho__point *last = &q->points[(q->point_count - 1) % TACHO__BOOK_POINTS];

	if (!q->point_count || last->at != q->at)
		last = &q->points[q->point_count++ % TACHO__BOOK_POINTS];
	*last = (struct tacho__point){q->at, q->cost, q->parked_ns};
}

/* After a change of what waits. */
static void tell(const struct tacho__ledger_book *b, const struct tacho__queue *q, uint64_t ns)
{
	const struct tacho__worker *w;

	if (!b->waits || q->first_worker == TACHO__NONE)
		return;
	w = tacho__worker_at(b, q->first_worker);
	b->waits->queue(b->waits->arg, w->process, w->number, ns, q->waiting);
}

void tacho__own_waits(const struct tacho__ledger_book *b, const struct tacho__worker *w,
		      uint64_t ns)
{
	/* What is served evenly is told at the end of the turn. */
	if (b->waits && !w->halves_estimated)
		b->waits->own(b->waits->arg, w->process, w->number, ns, w->halves / 2);
}

void tacho__own_waits_end(const struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	double left = w->halves_estimated ? w->halves : w->halves / 2;

	w->halves = 0;
	if (!b->waits || left <= 0)
		return;
	tacho__own_waits(b, w, ns);
	if (!w->turn_from)
		return;
	/* What never had a callback was not waiting for one. */
	b->waits->more(b->waits->arg, w->process, w->number, w->turn_from, ns,
		       w->halves_estimated ? left : -left, w->halves_estimated ? 0 : -left);
}

/* A part of `whole` as large as part / length. */
static uint64_t share(uint64_t whole, uint64_t part, uint64_t length)
{
	return length ? (uint64_t)((double)whole * ((double)part / (double)length)) : 0;
}

struct tacho__point tacho__queue_then(struct tacho__ledger_book *b, struct tacho__queue *q,
				      const struct tacho__worker *w, uint64_t ns)
{
	const struct tacho__point paid = {w->at, w->cost, w->parked_ns};
	struct tacho__point after, before = paid;
	uint32_t kept = q->point_count < TACHO__BOOK_POINTS ? q->point_count : TACHO__BOOK_POINTS;

	tacho__queue_move(b, q, ns);
	after = (struct tacho__point){q->at, q->cost, q->parked_ns};
	if (ns == q->at)
		return after;
	for (uint32_t i = 1; i <= kept; i++) {
		before = q->points[(q->point_count - i) % TACHO__BOOK_POINTS];
		if (before.at <= ns)
			break;
		after = before;
	}
	/* Not kept that long, or another queue's: evenly since it paid. */
	if (before.at > ns || before.cost < paid.cost || before.parked_ns < paid.parked_ns)
		before = paid;
	if (before.at > ns || after.cost < before.cost || after.parked_ns < before.parked_ns)
		return (struct tacho__point){ns, paid.cost, paid.parked_ns};
	return (struct tacho__point){
		ns,
		before.cost + share(after.cost - before.cost, ns - before.at, after.at - before.at),
		before.parked_ns + share(after.parked_ns - before.parked_ns, ns - before.at,
					 after.at - before.at)};
}

void tacho__queue_adds(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t ns)
{
	tacho__queue_move(b, q, ns);
	mark(q);
	q->waiting += q->waiting < WAITING_MAX;
	tell(b, q, ns);
}

void tacho__queue_takes(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t ns,
			uint64_t since)
{
	if (since < q->forgotten_ns || !q->waiting)
		return;
	tacho__queue_move(b, q, ns);
	mark(q);
	q->waiting--;
	if (since < q->rest_ns && q->old)
		q->old--;
	else if (q->old > q->waiting)
		q->old = q->waiting;
	tell(b, q, ns);
}

void tacho__queue_set(struct tacho__ledger_book *b, struct tacho__queue *q, uint32_t waiting,
		      uint64_t ns)
{
	tacho__queue_move(b, q, ns);
	mark(q);
	q->waiting = waiting < WAITING_MAX ? waiting : WAITING_MAX;
	tell(b, q, ns);
}

/*
 * Nobody is busy any more: who serves the queue found nothing in it. What has been woken since
 * before the last such moment, and was not served in between, does not wait: its poll was too
 * short to be recorded, or it waits for something else.
 */
static void rest(const struct tacho__ledger_book *b, struct tacho__queue *q)
{
	q->waiting -= q->old;
	if (q->old)
		tell(b, q, q->at);
	q->forgotten_ns = q->rest_ns;
	q->old = q->waiting;
	q->rest_ns = q->at;
}

void tacho__queues_forget(struct tacho__ledger_book *b, uint32_t process, uint64_t ns)
{
	for (struct tacho__queue *q = NULL; (q = tacho__table_next(&b->queues, q));) {
		if (q->entry.key[0] != process || q->joined)
			continue;
		tacho__queue_move(b, q, ns);
		mark(q);
		q->waiting = q->old = 0;
		q->rest_ns = q->forgotten_ns = ns;
		tell(b, q, ns);
	}
}

/* -------------------------------------------------------------- who serves it */

static void count(struct tacho__queue *q, enum tacho__standing standing, uint32_t by)
{
	if (standing == TACHO__OUT)
		return;
	q->serving += by;
	if (q->serving > q->most_serving)
		q->most_serving = q->serving;
	if (standing == TACHO__PARKED)
		q->parked += by;
	if (standing == TACHO__IDLING)
		q->idle += by;
}

/* What waited in the queue while nobody came is for the first who does. */
static void take_late(struct tacho__ledger_book *b, struct tacho__worker *w, struct tacho__queue *q)
{
	uint64_t took = q->late_ns, late = q->late;

	q->late = q->late_ns = 0;
	if (!late)
		return;
	w->woken_late = late;
	tacho__book_late(b, w, took, TACHO__LATE_WOKEN, late);
}

void tacho__queue_stand(struct tacho__ledger_book *b, struct tacho__worker *w,
			struct tacho__queue *q, enum tacho__standing standing, uint64_t ns)
{
	struct tacho__queue *before = tacho__queue_at(b, w);
	enum tacho__standing was = w->standing;

	if (before == q && was == standing)
		return;
	if (before) {
		tacho__queue_move(b, before, ns);
		mark(before);
		count(before, was, UINT32_MAX); /* one less */
	}
	if (before != q) {
		/* What is not paid yet goes with it. */
		if (before && was == TACHO__BUSY)
			w->owed = tacho__add(w->owed, before->cost - w->cost);
		w->queue = q ? q->entry.index : TACHO__NONE;
	}
	w->standing = q ? standing : TACHO__OUT;
	if (!q)
		return;
	tacho__queue_move(b, q, ns);
	mark(q);
	count(q, standing, 1);
	if (before != q || was != TACHO__BUSY)
		w->cost = q->cost;
	w->parked_ns = q->parked_ns;
	q->last_worker = w->entry.index;
	if (q->first_worker == TACHO__NONE)
		q->first_worker = w->entry.index;
	if (standing == TACHO__BUSY)
		take_late(b, w, q);
	/* Between two pieces of work a thread of a pool has looked at nothing; or it is told. */
	else if (was == TACHO__BUSY && !busy(q) && q->entry.key[1] != POOL && !q->pool)
		rest(b, q);
}

/* -------------------------------------------------------- two that become one */

void tacho__queue_join(struct tacho__ledger_book *b, struct tacho__queue *a, struct tacho__queue *c,
		       uint64_t ns)
{
	if (!a || !c || a == c)
		return;
	tacho__queue_move(b, a, ns);
	tacho__queue_move(b, c, ns);
	mark(a);
	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));) {
		if (tacho__queue_at(b, w) != c)
			continue;
		if (w->standing == TACHO__BUSY)
			w->owed = tacho__add(w->owed, c->cost - w->cost);
		w->cost = a->cost;
		w->parked_ns = a->parked_ns;
	}
	a->serving += c->serving;
	if (a->serving > a->most_serving)
		a->most_serving = a->serving;
	a->parked += c->parked;
	a->idle += c->idle;
	a->waiting += c->waiting;
	c->waiting = 0;
	tell(b, a, ns);
	tell(b, c, ns);
	a->old = 0;
	a->carried = tacho__add(a->carried, c->carried);
	a->late = tacho__add(a->late, c->late);
	a->late_ns += c->late_ns;
	if (c->forgotten_ns > a->forgotten_ns)
		a->forgotten_ns = c->forgotten_ns;
	c->joined = a->entry.index + 1;
}

/*
 * Loops whose tasks go to and fro are one scheduler. One that hands all of its tasks on, as one
 * that accepts connections for others, is not.
 */
void tacho__queue_migrates(struct tacho__ledger_book *b, uint32_t process, uint32_t from,
			   uint32_t to, uint64_t ns)
{
	struct tacho__queue *a, *c;
	uint64_t key = (uint64_t)process << 32;

	/* Looked up after both are there. */
	tacho__queue_of(b, process, from);
	c = tacho__queue_of(b, process, to);
	a = tacho__queue_of(b, process, from);
	if (!a || !c || a == c)
		return;
	if (tacho__table_find(&b->moves, key | to, from))
		tacho__queue_join(b, a, c, ns);
	else
		tacho__table_get(&b->moves, key | from, to, &b->error);
}

void tacho__queue_steals(struct tacho__ledger_book *b, uint32_t process, uint32_t thief,
			 uint32_t victim, uint64_t ns)
{
	tacho__queue_migrates(b, process, thief, victim, ns);
	tacho__queue_migrates(b, process, victim, thief, ns);
}
