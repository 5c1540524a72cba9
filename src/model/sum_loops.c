/* What loops do: polls, turns, and what was ready for these. */
#include <errno.h>

#include "model/judgement.h"
#include "model/summing.h"

static struct tacho__loop_sum *loop_of(struct tacho__summing *g, uint32_t process, uint32_t loop,
				       uint32_t thread)
{
	struct tacho__loop_sum *l =
		tacho__sum_get(g, &g->sum->loops, tacho__key(process, loop), thread);
	const struct tacho_definition *d;

	if (!l || l->loop)
		return l;
	l->process = process;
	l->loop = loop;
	l->thread = thread;
	d = tacho_read_definition(g->reader, process, loop);
	l->level = d ? d->level : TACHO_LEVEL_UNKNOWN;
	l->serves_one = tacho__serves_one(d);
	return l;
}

/* -------------------------------------------------------------------- polls */

/* A poll that is not cut, or whose ends are known at least, counts with its length. */
static void kind_poll(struct tacho__summing *g, struct tacho__kind_sum *k,
		      const struct tacho__poll *p)
{
	uint64_t ns = p->end_ns - p->begin_ns;

	if (p->cut & (TACHO__CUT_BEGIN | TACHO__CUT_END)) {
		k->cut++;
		return;
	}
	tacho__sum_hist(g, &k->ns, ns);
	TACHO__WORST_ADD(&k->worst, p, x->end_ns - x->begin_ns);
}

void tacho__sum_poll(void *arg, const struct tacho__poll *p)
{
	struct tacho__summing *g = arg;
	struct tacho__kind_sum *k = tacho__sum_get(
		g, &g->sum->kinds, tacho__key(p->at.process, p->kind), p->kind ? 0 : p->at.loop);
	struct tacho__loop_sum *l;

	if (k) {
		k->process = p->at.process;
		k->kind = p->kind;
		k->loop = p->kind ? 0 : p->at.loop;
		kind_poll(g, k, p);
		if (!(p->cut & TACHO__CUT_BEGIN))
			tacho__beat(&k->rhythm, p->begin_ns);
		if (p->wake_ns && p->begin_ns >= p->wake_ns)
			tacho__sum_hist(g, &k->wake, p->begin_ns - p->wake_ns);
		if (p->late_ns && p->kind) {
			tacho__sum_hist(g, &k->late, p->late_ns);
			TACHO__WORST_ADD(&k->worst_late, p, x->late_ns);
		}
	}
	if (!p->depth && p->at.loop) {
		l = loop_of(g, p->at.process, p->at.loop, p->at.thread);
		if (l)
			l->polls += p->kind != 0;
	}
}

/* Polls that were too short to be recorded one by one: how many of each power of two. */
void tacho__sum_short_polls(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__summing *g = arg;
	struct tacho__kind_sum *k;
	uint64_t sum, total;

	(void)at;
	if (e->type != TACHO_EV_POLL_HIST)
		return;
	k = tacho__sum_get(g, &g->sum->kinds, tacho__key(e->process, e->arg), 0);
	if (!k || !e->arg)
		return;
	k->process = e->process;
	k->kind = e->arg;
	total = TACHO_GET(e, POLL_HIST, total_ns);
	sum = k->ns.sum + total;
	for (uint32_t i = 4; i < e->words; i++) {
		uint32_t power = tacho_bucket(e->word[i]) & 63;
		uint64_t count = tacho_bucket_count(e->word[i]), each = (3ull << power) / 2;

		k->counted += count;
		/* Where in its bucket it was is not known, but none took longer than all. */
		if (tacho__hist_add_many(&k->ns, each < total ? each : total, count))
			g->error = -ENOMEM;
	}
	k->ns.sum = sum;
	if (k->ns.count && sum / k->ns.count >= k->ns.most)
		k->ns.most = (sum + k->ns.count - 1) / k->ns.count;
}

/* -------------------------------------------------------------------- ready */

static struct tacho__ready_now *ready_now(struct tacho__summing *g, uint32_t thread)
{
	return &g->ready[thread % (sizeof(g->ready) / sizeof(g->ready[0]))];
}

static void note_ready(struct tacho__summing *g, const struct tacho__ready *r, uint32_t index)
{
	struct tacho__ready_now *now = ready_now(g, r->at.thread);

	if (now->process != r->at.process || now->thread != r->at.thread || now->ns != r->ns) {
		now->process = r->at.process;
		now->thread = r->at.thread;
		now->ns = r->ns;
		now->count = 0;
	}
	if (now->count < TACHO__READY_NOW)
		now->index[now->count] = index;
	now->count++;
}

/* Shares the time of the turn among what was ready for it. */
static void ready_turn(struct tacho__summing *g, const struct tacho__turn *u)
{
	struct tacho__ready_now *now = ready_now(g, u->thread);
	uint32_t known = now->count < TACHO__READY_NOW ? now->count : TACHO__READY_NOW;

	if (now->process != u->process || now->thread != u->thread || now->ns < u->begin_ns ||
	    now->ns > u->end_ns)
		return;
	for (uint32_t i = 0; i < known; i++) {
		struct tacho__ready_sum *k = tacho__table_at(&g->sum->ready, now->index[i]);

		if (k)
			k->ns += (u->end_ns - u->begin_ns) / now->count;
	}
	now->count = 0;
}

void tacho__sum_ready(void *arg, const struct tacho__ready *r)
{
	struct tacho__summing *g = arg;
	struct tacho__ready_sum *k =
		tacho__sum_get(g, &g->sum->ready, tacho__key(r->at.process, r->at.loop), r->what);

	if (!k)
		return;
	k->process = r->at.process;
	k->loop = r->at.loop;
	k->what = r->what;
	k->count++;
	tacho__beat(&k->rhythm, r->ns);
	note_ready(g, r, k->entry.index);
}

/* -------------------------------------------------------------------- turns */

/*
 * A wait after which there was nothing to do. A loop may also look at its descriptors without
 * waiting because it has other work: where callbacks are not seen, the time that followed tells.
 */
static unsigned is_futile(const struct tacho__loop_sum *l, const struct tacho__turn *u)
{
	return !u->ready && !u->polls &&
	       (l->level != TACHO_LEVEL_WAITS || u->end_ns - u->begin_ns < tacho__futile_ns);
}

void tacho__sum_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__summing *g = arg;
	struct tacho__loop_sum *l = loop_of(g, u->process, u->loop, u->thread);
	uint64_t ns = u->end_ns - u->begin_ns;
	/* Of the wait: it only asked, or could run and did not. */
	uint64_t more = u->parked_ns < tacho__short_wait_ns ? u->parked_ns : u->delay_ns;

	if (l) {
		if (!l->first_ns)
			l->first_ns = u->begin_ns - u->parked_ns;
		l->last_ns = u->end_ns;
		l->turns++;
		l->reports += u->ready != 0;
		tacho__beat(&l->rhythm, u->begin_ns);
		l->parked_ns += u->parked_ns;
		if (u->parked_ns < tacho__short_wait_ns)
			l->short_waits_ns += u->parked_ns;
		l->delay_ns += u->delay_ns;
		l->busy_ns += ns;
		if (is_futile(l, u))
			l->no_ready++;
		else
			l->did.at[tacho__sum_step(g, u->end_ns)]++;
		if (!(u->cut & (TACHO__CUT_BEGIN | TACHO__CUT_END)))
			tacho__sum_hist(g, &l->ns, ns);
		tacho__sum_range(g, &l->busy, u->begin_ns - more, u->end_ns);
	}
	ready_turn(g, u);
}
