/*
 * Pools of threads that are the program's own: they wait at a condition for what others give them.
 *
 * Where most of a thread's waits are, it waits for work, if loops or threads of a pool end these waits. A
 * condition that loops wait at as well is no such place: a lock may be made of it. Records of what waits
 * meanwhile tell of a pool, too, and how much it has to do.
 */
#include <errno.h>
#include <string.h>

#include "explain/ledger_book.h"
#include "model/judgement.h"
#include "read/memory.h"

/* From when work is given to libuv until a thread of its pool is signalled. */
#define SUBMIT_NS UINT64_C(1000000)

/* ------------------------------------------------------------- what waits, how long */

static void keep_point(struct tacho__ledger_pool *p, uint32_t given, uint64_t ns)
{
	if (p->point_count == TACHO__POOL_POINTS) {
		p->point_count /= 2;
		for (uint32_t i = 0; i < p->point_count; i++)
			p->points[i] = p->points[2 * i + 1];
	}
	p->points[p->point_count].given = given;
	p->points[p->point_count++].ns = ns;
}

/* How long the one of that number has waited, if they are taken in the order in which they came. */
static uint64_t age(struct tacho__ledger_pool *p, uint32_t number, uint64_t ns)
{
	uint32_t i = 0;
	uint64_t since;

	while (i < p->point_count && p->points[i].given < number)
		i++;
	since = i < p->point_count && p->points[i].ns < ns ? p->points[i].ns : ns;
	if (ns - since > p->longest_ns) {
		p->longest_at_ns = since;
		p->longest_ns = ns - since;
	}
	return ns - since;
}

static void add(struct tacho__ledger_book *b, struct tacho__ledger_pool *p, uint64_t ns,
		uint64_t times)
{
	if (times && tacho__hist_add_many(&p->wait, ns, times))
		b->error = -ENOMEM;
}

/* Those that wait at the end came evenly since the oldest did. */
void tacho__book_end_pool(struct tacho__ledger_book *b, const struct tacho__queue *q)
{
	struct tacho__ledger_pool *p = &b->l->pools[q->pool - 1];

	if (p->waiting)
		add(b, p, age(p, p->given - p->waiting + 1, q->at) / 2, p->waiting);
}

static struct tacho__ledger_pool *pool_of(struct tacho__ledger_book *b, struct tacho__queue *q,
					  uint32_t process, uint64_t lock)
{
	struct tacho__ledger *l = b->l;

	if (!q->pool) {
		if (TACHO__GROW(l->pools, l->pool_capacity, l->pool_count + 1)) {
			b->error = -ENOMEM;
			return NULL;
		}
		memset(&l->pools[l->pool_count], 0, sizeof(l->pools[0]));
		l->pools[l->pool_count].process = process;
		l->pools[l->pool_count].lock = lock;
		q->pool = ++l->pool_count;
	}
	return &l->pools[q->pool - 1];
}

/* ------------------------------------------------------------------- its threads */

static void idle(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t since)
{
	if (!w->depth)
		tacho__book_turn_ends(b, w, since);
	w->doing = TACHO__WAITING;
	w->wait_from = since;
	w->in_lock = 0;
	w->block_count = 0;
}

/* From here on it is known to serve the queue. */
static void enrol(struct tacho__ledger_book *b, struct tacho__worker *w, struct tacho__queue *q,
		  uint64_t ns)
{
	struct tacho__ledger_thread *t = &b->l->threads[w->thread];

	if (t->is_loop || t->works || w->doing == TACHO__UNBORN || !q->pool || q->is_no_pool)
		return;
	if (t->pool != q->pool) {
		b->l->pools[q->pool - 1].threads++;
		add(b, &b->l->pools[q->pool - 1], 0, w->home_waits);
	}
	t->is_pool = 1;
	t->pool = q->pool;
	/* What it waits for already is work. */
	if (w->waits_for == w->home && w->doing == TACHO__RUNNING)
		idle(b, w, w->at);
	tacho__queue_stand(b, w, q, w->waits_for == w->home ? TACHO__PARKED : TACHO__BUSY, ns);
}

/* Whose home it is belongs to its pool, which is new. */
static void enrol_all(struct tacho__ledger_book *b, struct tacho__queue *q, uint32_t process,
		      uint64_t lock, uint64_t ns)
{
	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));)
		if (w->process == process && w->home == lock)
			enrol(b, w, q, ns);
}

void tacho__book_queued(struct tacho__ledger_book *b, const struct tacho__step *s)
{
	struct tacho__queue *q = tacho__queue_at_condition(b, s->process, s->lock, 1);
	uint32_t waiting = (uint32_t)s->value, given = (uint32_t)(s->value >> 32);
	int is_made = q && !q->pool, is_new;
	struct tacho__ledger_pool *p =
		q && s->lock != tacho__book_process(b, s->process)->interpreter_lock
			? pool_of(b, q, s->process, s->lock)
			: NULL;

	if (!p)
		return;
	if (is_made)
		enrol_all(b, q, s->process, s->lock, s->ns);
	is_new = !p->is_told;
	p->is_told = 1;
	/* Nobody takes several at once: that a thread finds nothing says that what it was told is wrong. */
	if (p->waiting && (waiting || p->waiting == 1)) {
		uint32_t begun = given - waiting - (p->given - p->waiting);
		uint64_t waited = age(p, p->given - p->waiting + 1, s->ns);

		add(b, p, waited, begun < p->waiting ? begun : p->waiting);
	}
	p->count += is_new ? waiting : given - p->given;
	if (!waiting)
		p->point_count = 0;
	else if (given != p->given || is_new)
		keep_point(p, given, s->ns);
	if (s->place)
		p->place = s->place;
	p->given = given;
	p->waiting = waiting;
	tacho__queue_set(b, q, waiting, s->ns);
}

static int is_home(const struct tacho__ledger_book *b, const struct tacho__worker *w, uint64_t lock)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);

	return w->home == lock && q && q->pool && b->l->pools[q->pool - 1].lock == lock;
}

int tacho__book_idles(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns)
{
	if (w->doing != TACHO__RUNNING || !is_home(b, w, lock))
		return 0;
	idle(b, w, ns);
	tacho__queue_stand(b, w, tacho__queue_at(b, w), TACHO__PARKED, ns);
	return 1;
}

int tacho__book_idled(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns)
{
	if (w->doing != TACHO__WAITING || !is_home(b, w, lock))
		return 0;
	tacho__book_settle(b, w, ns);
	w->wait_to = ns;
	w->wait_late = 0;
	w->doing = TACHO__RUNNING;
	tacho__queue_stand(b, w, tacho__queue_at(b, w), TACHO__BUSY, ns);
	w->home_waits++;
	b->l->threads[w->thread].handed++;
	add(b, &b->l->pools[tacho__queue_at(b, w)->pool - 1], 0, 1);
	return 1;
}

/* Threads that were taken to wait for work there did not. */
static void dissolve(struct tacho__ledger_book *b, struct tacho__queue *q, uint64_t ns)
{
	q->is_no_pool = 1;
	for (struct tacho__worker *w = NULL; q->pool && (w = tacho__table_next(&b->workers, w));) {
		struct tacho__ledger_thread *t = &b->l->threads[w->thread];

		if (t->pool != q->pool)
			continue;
		t->is_pool = 0;
		t->pool = 0;
		b->l->pools[q->pool - 1].threads--;
		tacho__queue_stand(b, w, NULL, TACHO__OUT, ns);
	}
}

void tacho__book_no_pool(struct tacho__ledger_book *b, uint32_t process, uint64_t lock, uint64_t ns)
{
	struct tacho__queue *q = tacho__queue_at_condition(b, process, lock, 1);

	if (q && !q->is_no_pool)
		dissolve(b, q, ns);
}

/* A thread belongs to the condition that most of its waits are for. */
void tacho__book_home(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t lock,
		      uint64_t ns)
{
	struct tacho__queue *q;

	if (b->l->threads[w->thread].is_loop) {
		tacho__book_no_pool(b, w->process, lock, ns);
		return;
	}
	if (w->home == lock || !w->home_waits) {
		w->home_fed = w->home == lock ? w->home_fed : 0;
		w->home = lock;
		w->home_waits++;
		b->l->threads[w->thread].handed++;
	} else {
		w->home_waits--;
	}
	if (w->home != lock)
		return;
	q = tacho__queue_at_condition(b, w->process, lock, 0);
	if (q)
		enrol(b, w, q, ns);
}

/* What is given to libuv is handed to its own pool. */
static int is_for_libuv(const struct tacho__ledger_thread *t, const struct tacho__worker *by,
			const struct tacho__lock *l)
{
	return t->works || (by->submitted_ns && by->submitted_ns + SUBMIT_NS > l->release_ns);
}

void tacho__book_fed(struct tacho__ledger_book *b, struct tacho__worker *w,
		     const struct tacho__lock *l)
{
	const struct tacho__worker *by =
		l->release_ns
			? tacho__table_find(&b->workers, l->releaser.process, l->releaser.thread)
			: NULL;
	const struct tacho__ledger_thread *t = by && by != w ? &b->l->threads[by->thread] : NULL;
	struct tacho__queue *q;

	if (!t || (!t->is_loop && !t->is_pool) || l->lock != w->home || is_for_libuv(t, by, l) ||
	    b->l->threads[w->thread].is_loop || ++w->home_fed < (uint32_t)tacho__fed_waits)
		return;
	q = tacho__queue_at_condition(b, w->process, l->lock, 1);
	if (!q || q->pool || q->is_no_pool || !pool_of(b, q, w->process, l->lock))
		return;
	enrol_all(b, q, w->process, l->lock, l->end_ns);
}
