/* What is waited for: wakes, locks, calls, pools. */
#include "model/summing.h"

/* -------------------------------------------------------------------- wakes */

/* Of the kind that it woke: others of the same kind hand on what somebody else began. */
static void know_waker(struct tacho__summing *g, const struct tacho__wake *w)
{
	struct tacho__kind_sum *k =
		w->kind && w->at.kind != w->kind
			? tacho__sum_get(g, &g->sum->kinds, tacho__key(w->at.process, w->kind), 0)
			: NULL;

	if (!k)
		return;
	k->process = w->at.process;
	k->kind = w->kind;
	k->wakers.count++;
	k->wakers.by_loop += w->at.loop && !w->at.poll_ns;
	k->wakers.for_ready += w->for_ready;
	if (w->ns >= k->wakers.last.ns)
		k->wakers.last = *w;
}

void tacho__sum_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__summing *g = arg;
	struct tacho__process_sum *p = tacho__sum_process(g, w->at.process);

	if (!p)
		return;
	p->wakes.count++;
	p->wakes.again += w->again;
	if (w->begin_ns) {
		know_waker(g, w);
		tacho__sum_hist(g, &p->wakes.latency, w->begin_ns - w->ns);
		TACHO__WORST_ADD(&p->wakes.worst, w, x->begin_ns - x->ns);
	}
}

/* -------------------------------------------------------------------- locks */

static void lock_ended(struct tacho__summing *g, struct tacho__lock_sum *k,
		       const struct tacho__lock *l)
{
	tacho__sum_hist(g, &k->ns, l->end_ns - l->begin_ns);
	TACHO__WORST_ADD(&k->worst_any, l, x->end_ns - x->begin_ns);
	k->gave_up += !l->got;
	if (l->at.poll_ns) {
		tacho__sum_hist(g, &k->inside, l->end_ns - l->begin_ns);
		TACHO__WORST_ADD(&k->worst, l, x->end_ns - x->begin_ns);
	}
}

void tacho__sum_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__summing *g = arg;
	struct tacho__lock_sum *k = tacho__sum_get(g, &g->sum->locks, l->at.process, l->lock);

	if (!k)
		return;
	k->process = l->at.process;
	k->lock = l->lock;
	k->is_signal |= l->is_signal;
	if (!l->cut)
		lock_ended(g, k, l);
}

/* -------------------------------------------------------------------- calls */

void tacho__sum_call(void *arg, const struct tacho__call *c)
{
	struct tacho__summing *g = arg;
	struct tacho__call_sum *k =
		tacho__sum_get(g, &g->sum->calls, tacho__key(c->at.process, c->name), c->stack);

	if (!k)
		return;
	k->process = c->at.process;
	k->name = c->name;
	k->stack = c->stack;
	k->errors += c->error != 0;
	tacho__sum_hist(g, &k->ns, c->end_ns - c->begin_ns);
	TACHO__WORST_ADD(&k->worst, c, x->end_ns - x->begin_ns);
}

/* --------------------------------------------------------------------- pool */

static void know_worker(struct tacho__pool_sum *p, uint32_t worker)
{
	for (uint32_t i = 0; i < p->workers; i++)
		if (p->worker_ids[i] == worker)
			return;
	if (p->workers < 64)
		p->worker_ids[p->workers++] = worker;
}

static void work_unseen(struct tacho__summing *g, struct tacho__work_sum *k,
			const struct tacho__work *w)
{
	if (w->ahead < TACHO__POOL_THREADS) {
		tacho__sum_hist(g, &k->at_once, w->done_ns - w->submit_ns);
		return;
	}
	tacho__sum_hist(g, &k->crowded, w->done_ns - w->submit_ns);
	TACHO__WORST_ADD(&k->worst_crowded, w, x->done_ns - x->submit_ns);
}

static void work_left(struct tacho__work_sum *k, const struct tacho__work *w)
{
	int taken = w->begin_ns || w->ahead < TACHO__POOL_THREADS;
	struct tacho__work *oldest = taken ? &k->kept : &k->left;

	/* Nobody has looked since. */
	if (!taken && !w->done_ns)
		return;
	k->left_count += !taken;
	if (!oldest->submit_ns || w->submit_ns < oldest->submit_ns)
		*oldest = *w;
}

void tacho__sum_work(void *arg, const struct tacho__work *w)
{
	struct tacho__summing *g = arg;
	struct tacho__process_sum *p = tacho__sum_process(g, w->process);
	struct tacho__work_sum *k = tacho__sum_get(g, &g->sum->works, w->process, w->kind);
	int waited = w->submit_ns && w->begin_ns >= w->submit_ns;

	if (k) {
		k->process = w->process;
		k->kind = w->kind;
		if (w->submit_ns && !w->end_ns)
			work_left(k, w);
		if (waited) {
			tacho__sum_hist(g, &k->wait, w->begin_ns - w->submit_ns);
			TACHO__WORST_ADD(&k->worst, w, x->begin_ns - x->submit_ns);
		}
		if (w->begin_ns && w->end_ns >= w->begin_ns)
			tacho__sum_hist(g, &k->run, w->end_ns - w->begin_ns);
		if (!w->begin_ns && w->end_ns && w->done_ns)
			work_unseen(g, k, w);
	}
	if (p) {
		if (w->worker)
			know_worker(&p->pool, w->worker);
		if (w->waiting + 1 > p->pool.most_waiting && w->submit_ns)
			p->pool.most_waiting = w->waiting + 1;
		if (w->ahead > p->pool.most_ahead)
			p->pool.most_ahead = w->ahead;
	}
}
