#include "task.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/memory.h"

#define VISITS (1u << 18) /* kept of a task */
#define HOLES 4096u

/* --------------------------------------------------------------------- read */

static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct life *l = arg;

	if (w->task == l->task && w->at.process == l->process)
		l->wake = *w;
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct life *l = arg;
	struct visit *v;

	if (p->task != l->task || p->at.process != l->process || l->cut_ns)
		return;
	if (l->visit_count == VISITS) {
		l->cut_ns = p->begin_ns;
		return;
	}
	if (TACHO__GROW(l->visits, l->visit_capacity, l->visit_count + 1)) {
		l->error = -ENOMEM;
		return;
	}
	v = &l->visits[l->visit_count++];
	*v = (struct visit){.begin_ns = p->begin_ns,
			    .end_ns = p->end_ns,
			    .wake_ns = p->wake_ns,
			    .ready_ns = p->wake_ns ? p->begin_ns - p->wake_ns : 0,
			    .thread = p->at.thread,
			    .kind = p->kind};
	if (p->wake_ns && l->wake.begin_ns == p->begin_ns) {
		v->waker = l->wake.at.thread;
		v->waker_kind = l->wake.at.kind;
		v->waker_task = l->wake.at.task;
		v->waker_poll_ns = l->wake.at.poll_ns;
	}
}

static void on_task_wait(void *arg, const struct tacho__task_wait *w)
{
	struct life *l = arg;

	if (w->task != l->task || w->process != l->process || l->cut_ns)
		return;
	if (TACHO__GROW(l->waits, l->wait_capacity, l->wait_count + 1))
		l->error = -ENOMEM;
	else
		l->waits[l->wait_count++] = *w;
}

static void on_task(void *arg, const struct tacho__task *t)
{
	struct life *l = arg;

	if (t->task != l->task || t->process != l->process || l->cut_ns)
		return;
	if (TACHO__GROW(l->lives, l->life_capacity, l->life_count + 1)) {
		l->error = -ENOMEM;
		return;
	}
	l->lives[l->life_count++] = (struct lived){.spawn_ns = t->spawn_ns,
						   .end_ns = t->end_ns,
						   .parent = t->parent,
						   .woken_ns = t->woken_ns,
						   .kind = t->kind,
						   .place = t->place,
						   .running = t->running,
						   .lost = t->lost};
}

static void on_hole(void *arg, const struct tacho__hole *h)
{
	struct life *l = arg;

	if (h->process != l->process || l->hole_count == HOLES)
		return;
	if (TACHO__GROW(l->holes, l->hole_capacity, l->hole_count + 1))
		l->error = -ENOMEM;
	else
		l->holes[l->hole_count++] = *h;
}

static int is_full(void *arg, uint64_t ns)
{
	const struct life *l = arg;

	(void)ns;
	return l->cut_ns != 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int by_from(const void *a, const void *b)
{
	const struct tacho__hole *x = a, *y = b;

	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* What it said in a poll is about the time after it. */
static void give_waits(struct life *l)
{
	uint32_t w = 0;

	for (uint32_t i = 0; i < l->visit_count; i++) {
		struct visit *v = &l->visits[i];
		uint64_t next = i + 1 < l->visit_count ? v[1].begin_ns : UINT64_MAX;

		for (; w < l->wait_count && l->waits[w].begin_ns < next; w++) {
			if (l->waits[w].begin_ns < v->begin_ns)
				continue;
			v->waits_for = l->waits[w].what;
			v->waits_stack = l->waits[w].stack;
		}
	}
}

static void add_up(void *arg, enum phase phase, uint64_t from_ns, uint64_t to_ns, uint32_t visit)
{
	struct life *l = arg;

	l->sums[phase] += to_ns - from_ns;
	if (phase == PHASE_READY && visit < l->visit_count && !l->visits[visit].wake_ns)
		l->visits[visit].ready_ns += to_ns - from_ns;
	if (phase == PHASE_IDLE && visit)
		l->visits[visit - 1].idle_ns += to_ns - from_ns;
}

static void set_ends(struct life *l)
{
	const struct lived *last = l->life_count ? &l->lives[l->life_count - 1] : NULL;
	const struct visit *v = l->visit_count ? &l->visits[0] : NULL;
	uint64_t end =
		page.explanation ? page.explanation->processes[l->process].last_ns : page.last_ns;

	l->from_ns = last && l->lives[0].spawn_ns ? l->lives[0].spawn_ns
		     : v			  ? (v->wake_ns ? v->wake_ns : v->begin_ns)
		     : last && last->woken_ns	  ? last->woken_ns
						  : page.first_ns;
	if (v && v->begin_ns < l->from_ns)
		l->from_ns = v->begin_ns;
	l->to_ns = l->cut_ns ? l->cut_ns : last && last->end_ns ? last->end_ns : end;
	for (uint32_t i = 0; i < l->visit_count; i++)
		l->to_ns = l->visits[i].end_ns > l->to_ns ? l->visits[i].end_ns : l->to_ns;
	if (l->to_ns < l->from_ns)
		l->to_ns = l->from_ns;
}

bool life_read(struct life *l, uint32_t process, uint64_t task)
{
	struct tacho__facts facts = {.arg = l,
				     .error = &l->error,
				     .poll = on_poll,
				     .wake = on_wake,
				     .task = on_task,
				     .task_wait = on_task_wait,
				     .hole = on_hole};

	memset(l, 0, sizeof(*l));
	l->process = process;
	l->task = task;
	if (tacho_read_seek(page.reader, 0) < 0 ||
	    tacho__model_run(page.reader, &facts, is_full, l, NULL) < 0)
		return false;
	/* One is inside of another, or begins on a second thread while the first still runs. */
	if (l->visit_count)
		qsort(l->visits, l->visit_count, sizeof(*l->visits), by_begin);
	if (l->hole_count)
		qsort(l->holes, l->hole_count, sizeof(*l->holes), by_from);
	set_ends(l);
	give_waits(l);
	life_walk(l, add_up, l);
	return l->visit_count || l->life_count;
}

void life_free(struct life *l)
{
	free(l->visits);
	free(l->waits);
	free(l->lives);
	free(l->holes);
	memset(l, 0, sizeof(*l));
}

/* --------------------------------------------------------------------- walk */

struct walk {
	const struct life *life;
	on_stretch take;
	void *arg;
	uint32_t hole, lived;
	uint32_t visit;
};

static void give(struct walk *w, enum phase phase, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns > from_ns)
		w->take(w->arg, phase, from_ns, to_ns, w->visit);
}

static bool has_hole(struct walk *w, uint64_t from_ns, uint64_t to_ns)
{
	const struct life *l = w->life;

	while (w->hole < l->hole_count && l->holes[w->hole].to_ns <= from_ns)
		w->hole++;
	return w->hole < l->hole_count && l->holes[w->hole].from_ns < to_ns;
}

/* Not running; `wake_ns` 0: nobody woke it. `fresh`: it was spawned at from_ns and is ready. */
static void rest(struct walk *w, uint64_t from_ns, uint64_t to_ns, uint64_t wake_ns, bool fresh)
{
	uint64_t ready = fresh && !wake_ns ? from_ns : wake_ns ? wake_ns : to_ns;

	if (from_ns >= to_ns)
		return;
	if (has_hole(w, from_ns, to_ns)) {
		give(w, PHASE_UNSEEN, from_ns, to_ns);
		return;
	}
	ready = ready < from_ns ? from_ns : ready > to_ns ? to_ns : ready;
	give(w, PHASE_IDLE, from_ns, ready);
	give(w, PHASE_READY, ready, to_ns);
}

/* Between two polls tasks of that number may have ended, and others begun. */
static void gap(struct walk *w, uint64_t from_ns, uint64_t to_ns, uint64_t wake_ns)
{
	const struct life *l = w->life;
	const struct lived *one = l->lives + w->lived;

	for (; w->lived + 1 < l->life_count && one->end_ns && one->end_ns <= to_ns; one++) {
		uint64_t end = one->end_ns > from_ns ? one->end_ns : from_ns;
		uint64_t spawn = one[1].spawn_ns > end ? one[1].spawn_ns : end;

		spawn = spawn > to_ns ? to_ns : spawn;
		rest(w, from_ns, end, 0, one->spawn_ns == from_ns);
		give(w, PHASE_GONE, end, spawn);
		from_ns = spawn;
		w->lived++;
	}
	rest(w, from_ns, to_ns, wake_ns, w->lived < l->life_count && one->spawn_ns == from_ns);
}

void life_walk(const struct life *l, on_stretch take, void *arg)
{
	struct walk w = {.life = l, .take = take, .arg = arg};
	const struct lived *last =
		l->life_count && !l->cut_ns ? &l->lives[l->life_count - 1] : NULL;
	uint64_t at = l->from_ns;

	for (; w.visit < l->visit_count; w.visit++) {
		const struct visit *v = &l->visits[w.visit];
		uint64_t begin = v->begin_ns > at ? v->begin_ns : at;

		gap(&w, at, begin, v->wake_ns);
		give(&w, PHASE_RUNNING, begin, v->end_ns);
		at = v->end_ns > begin ? v->end_ns : begin;
	}
	if (last && last->lost)
		give(&w, PHASE_UNSEEN, at, l->to_ns);
	else
		gap(&w, at, l->to_ns, last ? last->woken_ns : 0);
}
