/* What a program says of itself: tasks, spans, counters. */
#include <string.h>

#include "model/judgement.h"
#include "model/summing.h"

/* -------------------------------------------------------------------- tasks */

/* Not ended, not running: it waits for a wake that has not come, or for a poll. */
static void task_left(struct tacho__task_sum *k, const struct tacho__task *t)
{
	if (t->lost)
		return;
	if (t->woken_ns) {
		if (!k->woken_at_end++ || t->woken_ns < k->woken.woken_ns)
			k->woken = *t;
	} else if (!t->running) {
		if (!k->idle_at_end++ || t->last_ns < k->stuck.last_ns)
			k->stuck = *t;
		k->idle_polls += t->polls;
		k->idle_ns += t->last_ns > t->first_ns ? t->last_ns - t->first_ns : 0;
		if (t->no_waker_ns &&
		    (!k->forsaken_at_end++ || t->no_waker_ns < k->forsaken.no_waker_ns))
			k->forsaken = *t;
	}
}

void tacho__sum_task(void *arg, const struct tacho__task *t)
{
	struct tacho__summing *g = arg;
	struct tacho__task_sum *k =
		tacho__sum_get(g, &g->sum->tasks, tacho__key(t->process, t->kind), t->place);

	if (!k)
		return;
	k->process = t->process;
	k->kind = t->kind;
	k->place = t->place;
	k->seen++;
	k->spawned += t->spawned;
	k->ended += t->end_ns != 0;
	k->forsaken_ended += t->end_ns && t->no_waker_ns;
	k->wakes += t->wakes;
	k->self_wakes += t->self_wakes;
	if (t->self_wakes > k->self.self_wakes)
		k->self = *t;
	if (t->busy_ns > k->busiest.busy_ns) {
		k->next_busy_ns = k->busiest.busy_ns;
		k->busiest = *t;
	} else if (t->busy_ns > k->next_busy_ns) {
		k->next_busy_ns = t->busy_ns;
	}
	tacho__sum_hist(g, &k->busy, t->busy_ns);
	if (t->spawn_ns)
		k->spawned_at.at[tacho__sum_step(g, t->spawn_ns)]++;
	if (t->end_ns) {
		k->ended_at.at[tacho__sum_step(g, t->end_ns)]++;
		if (t->spawn_ns && t->end_ns >= t->spawn_ns)
			tacho__sum_hist(g, &k->life, t->end_ns - t->spawn_ns);
	} else {
		task_left(k, t);
	}
}

static void kept(struct tacho__task_wait_sum *k, const struct tacho__task_wait *w, uint64_t ns)
{
	k->kept++;
	k->kept_ns += ns;
	if (k->by_kind == w->by_kind) {
		k->votes_ns += ns;
	} else if (k->votes_ns > ns) {
		k->votes_ns -= ns;
	} else {
		k->by_kind = w->by_kind;
		k->votes_ns = ns - k->votes_ns;
	}
}

void tacho__sum_task_wait(void *arg, const struct tacho__task_wait *w)
{
	struct tacho__summing *g = arg;
	struct tacho__task_wait_sum *k =
		tacho__sum_get(g, &g->sum->task_waits, tacho__key(w->process, w->kind),
			       w->what ? w->what : (uint64_t)w->stack << 32);
	uint64_t ns = w->end_ns - w->begin_ns;

	if (!k)
		return;
	k->process = w->process;
	k->kind = w->kind;
	k->what = w->what;
	k->sum_ns += ns;
	if (w->open) {
		/* The stack says that it does what others of its kind do, too. */
		if ((w->again || !w->what) &&
		    (!k->oldest.begin_ns || w->begin_ns < k->oldest.begin_ns))
			k->oldest = *w;
		return;
	}
	k->count++;
	k->by_loop += w->by_loop;
	if (ns >= tacho__kept_waiting_ns)
		kept(k, w, ns);
	if (ns > k->longest_ns || !k->stack) {
		k->longest_ns = ns;
		k->longest_at_ns = w->begin_ns;
		k->stack = w->stack;
	}
	if (w->begin_ns > k->last_begin_ns)
		k->last_begin_ns = w->begin_ns;
}

/* -------------------------------------------------------------------- spans */

void tacho__sum_span(void *arg, const struct tacho__span *s)
{
	struct tacho__summing *g = arg;
	struct tacho__span_sum *k =
		tacho__sum_get(g, &g->sum->spans, tacho__key(s->at.process, s->name), s->async);

	if (!k)
		return;
	k->process = s->at.process;
	k->name = s->name;
	k->async = s->async;
	if (s->cut & (TACHO__CUT_BEGIN | TACHO__CUT_END)) {
		k->cut++;
	} else {
		tacho__sum_hist(g, &k->ns, s->end_ns - s->begin_ns);
		TACHO__WORST_ADD(&k->worst, s, x->end_ns - x->begin_ns);
	}
}

/* ----------------------------------------------------------------- counters */

static double number_of(const struct tacho__counter_sum *k, uint64_t value)
{
	double number;

	if (!k->is_float)
		return k->depth ? (double)value : (double)(int64_t)value;
	memcpy(&number, &value, sizeof(number));
	/* What is no number would spoil all that is computed from it. */
	return number > -1e300 && number < 1e300 ? number : 0;
}

static void counter_point(struct tacho__summing *g, struct tacho__counter_sum *k, uint64_t ns,
			  double y)
{
	uint32_t step = tacho__sum_step(g, ns);
	double x;

	if (!k->count++) {
		k->first_ns = ns;
		k->first = k->least = k->most = y;
	}
	x = (double)(ns - k->first_ns) / 1e9;
	if (k->count > 1 && k->last != 0 && y != 0 && ns > k->last_ns) {
		k->above_ns += ns - k->last_ns;
		tacho__sum_range(g, &k->above, k->last_ns, ns);
	}
	k->last_ns = ns;
	k->last = y;
	if (y < k->least)
		k->least = y;
	if (y > k->most)
		k->most = y;
	k->sum_x += x;
	k->sum_y += y;
	k->sum_xx += x * x;
	k->sum_xy += x * y;
	k->series[step] = y;
	k->set[step] = 1;
}

void tacho__sum_counter(void *arg, const struct tacho__counter *c)
{
	struct tacho__summing *g = arg;
	struct tacho__counter_sum *k =
		tacho__sum_get(g, &g->sum->counters, tacho__key(c->at.process, c->name), c->depth);

	if (!k)
		return;
	if (!k->count) {
		const struct tacho_definition *d =
			tacho_read_definition(g->reader, c->at.process, c->name);

		k->process = c->at.process;
		k->name = c->name;
		k->depth = c->depth;
		k->is_float = d && !c->depth && d->value_type == TACHO_VALUE_F64;
	}
	counter_point(g, k, c->ns, number_of(k, c->value));
	if (k->last >= k->most) {
		k->kind = c->at.kind;
		k->thread = c->at.thread;
	}
}
