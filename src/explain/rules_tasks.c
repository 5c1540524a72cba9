/* Tasks: what wakes itself, does not end, or is not woken. */
#include <string.h>

#include "explain/rules.h"

/* What waited while polls of the kind ran. */
static double waiting_for(const struct tacho__explaining *x, uint32_t process, uint32_t kind)
{
	double sum = 0;

	for (const struct tacho__owned *o = NULL;
	     (o = tacho__table_next(&x->out->ledger->owned, o));)
		if (o->process == process && o->owns == TACHO__OWNS_CODE && o->kind == kind)
			sum += (double)o->waiting_ns;
	return sum;
}

static void find_self_wake(struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	double rate = (double)k->self_wakes / tacho__seconds(x), share, waiting;
	struct tacho__finding *f;
	char name[TACHO__TEXT];

	if (!k->wakes)
		return;
	share = 100.0 * (double)k->self_wakes / (double)k->wakes;
	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_SELF_WAKE, name, (double)k->busy.sum, rate,
			 TACHO__LIMIT_SELF_WAKE_RATE) ||
	    tacho__below(x, TACHO__RULE_SELF_WAKE, name, (double)k->busy.sum, share,
			 TACHO__LIMIT_SELF_WAKE_SHARE))
		return;
	waiting = waiting_for(x, k->process, k->kind);
	f = tacho__find(x, TACHO__RULE_SELF_WAKE, tacho__severity_of_waiting(x, waiting),
			k->process, (double)k->busy.sum);
	f->waiting_ns = waiting;
	f->kind = k->kind;
	f->task = k->self.task;
	tacho__where_id(x, f, k->kind, x->sum->last_ns);
	tacho__where_id(x, f, k->place, x->sum->last_ns);
	tacho__say_summary(f,
			   "%s wakes itself %.0f times per second instead of waiting for something",
			   tacho__id_text(x, name, k->process, k->kind), rate);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, share, "%",
			    "%.0f %% of its wakes are its own", share);
}

/* Alive at the end of each quarter, by spawns and ends: only what began in the window. */
static int grows(const struct tacho__task_sum *k, double *alive)
{
	double quarter[4], now = 0;

	for (uint32_t i = 0; i < TACHO__SERIES; i++) {
		now += (double)k->spawned_at.at[i];
		now -= (double)k->ended_at.at[i];
		quarter[i * 4 / TACHO__SERIES] = now;
	}
	*alive = quarter[3];
	/* Four times as many, if they come evenly; a program may have less to do for a while. */
	return quarter[0] > 0 && quarter[1] >= quarter[0] && quarter[2] >= quarter[1] &&
	       quarter[3] - quarter[2] >= (quarter[3] - quarter[0]) * tacho__last_quarter_share &&
	       quarter[3] >= tacho__task_growth_times * quarter[0];
}

/* The hooks tell when a thread begins, and count those that end: rules_leak.c. */
static int is_thread(const struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, k->process, k->kind);

	return d && d->value && strcmp(d->name, "thread") == 0;
}

/* Tasks that wait for something and live on; those that were woken wait for their loop. 1: found */
static int find_task_leak(struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	struct tacho__finding *f;
	char name[TACHO__TEXT];
	double alive;

	if (is_thread(x, k) || !grows(k, &alive) ||
	    tacho__below(x, TACHO__RULE_TASK_LEAK, tacho__id_text(x, name, k->process, k->kind), 0,
			 alive, TACHO__LIMIT_TASK_LEAK_COUNT))
		return 0;
	if (alive < tacho__task_leak_share * (double)k->spawned ||
	    (double)k->woken_at_end > alive / 2) {
		tacho__consider(x, TACHO__RULE_TASK_LEAK, name, 0, 0, "%s",
				(double)k->woken_at_end > alive / 2
					? "most of them wait for their loop"
					: "nearly all of them end");
		return 0;
	}
	f = tacho__find(x, TACHO__RULE_TASK_LEAK, TACHO__SEVERITY_WARNING, k->process, 0);
	f->kind = k->kind;
	f->task = k->stuck.task;
	/* So many ends that were lost would make the same. */
	f->absent = (uint64_t)(alive - TACHO__LIMIT(x, TASK_LEAK_COUNT)) + 1;
	tacho__where_id(x, f, k->place, x->sum->last_ns);
	tacho__where_id(x, f, k->kind, x->sum->last_ns);
	tacho__say_summary(f,
			   "tasks of kind %s pile up: %llu were spawned, %.0f of them have not "
			   "ended, and their number grows",
			   tacho__id_text(x, name, k->process, k->kind),
			   (unsigned long long)k->spawned, alive);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, alive, "tasks",
			    "%.0f alive at the end of the window", alive);
	if (k->idle_at_end)
		tacho__say_evidence(
			f, 0, k->stuck.spawn_ns, x->sum->last_ns, (double)k->idle_at_end, "tasks",
			"%llu waiting without a wake%s%s", (unsigned long long)k->idle_at_end,
			k->stuck.waits_for ? ", for " : "",
			k->stuck.waits_for ? tacho__id_text(x, name, k->process, k->stuck.waits_for)
					   : "");
	return 1;
}

/* A loop of the process has more to do than it can: what is woken waits for long. */
static int is_full(const struct tacho__explaining *x)
{
	const struct tacho__ledger *l = x->out->ledger;

	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == x->process && l->threads[i].is_loop &&
		    tacho__busy_share(x, l->threads[i].thread) >= tacho__full_share)
			return 1;
	return 0;
}

/* Woken, and its loop never came to it; or one of many that waits far longer than its peers. */
static void find_stuck(struct tacho__explaining *x, const struct tacho__task_sum *k, int queue)
{
	uint64_t end_ns = x->sum->process[k->process].end_ns;
	double limit = TACHO__LIMIT(x, STUCK_TASK_NS), ns, peers;
	const struct tacho__task *t = NULL;
	struct tacho__finding *f;
	char name[TACHO__TEXT], text[TACHO__TEXT], what[TACHO__TEXT];
	int woken = 0;

	/* In a queue that grows, the last wait long. */
	if (k->woken_at_end && !queue && (double)(end_ns - k->woken.woken_ns) >= limit) {
		t = &k->woken;
		woken = 1;
	} else if (k->idle_at_end && k->spawned && k->stuck.polls && k->stuck.spawned) {
		/* What the others of its kind take from one poll to the next. */
		peers = (double)(k->ended ? tacho__hist_at(&k->life, tacho__tail) : 0);
		ns = (double)(end_ns - k->stuck.last_ns);
		if (k->seen >= tacho__several &&
		    (double)k->ended >= tacho__peers_ended_times * (double)k->idle_at_end &&
		    ns >= limit && ns >= tacho__far_times * peers)
			t = &k->stuck;
	}
	if (!t)
		return;
	if (woken && k->woken_at_end >= tacho__several && is_full(x)) {
		tacho__consider(x, TACHO__RULE_STUCK_TASK,
				tacho__id_text(x, name, k->process, k->kind),
				(double)(end_ns - t->woken_ns), 0,
				"%llu of its kind were woken and wait for a loop that is full",
				(unsigned long long)k->woken_at_end);
		return;
	}
	ns = (double)(end_ns - (woken ? t->woken_ns : t->last_ns));
	f = tacho__find(x, TACHO__RULE_STUCK_TASK, TACHO__SEVERITY_WARNING, k->process, 0);
	f->waiting_ns = ns; /* at least: that of one */
	f->kind = k->kind;
	f->task = t->task;
	if (t->waits_stack && !woken)
		tacho__where_id(x, f, t->waits_stack, end_ns);
	tacho__where_id(x, f, k->kind, end_ns);
	tacho__where_id(x, f, k->place, end_ns);
	tacho__id_text(x, name, k->process, k->kind);
	tacho__ns_text(text, ns);
	if (woken)
		tacho__say_summary(f, "%s was woken %s ago and has not run since", name, text);
	else
		tacho__say_summary(
			f,
			"%s has waited for %s%s%s and nobody wakes it: its peers end within "
			"a tenth of that",
			name, text, t->waits_for ? " for " : "",
			t->waits_for ? tacho__id_text(x, what, k->process, t->waits_for) : "");
	if (woken)
		tacho__say_advice(f, "See whether its loop still runs, and whether the loop took "
				     "the task out of its queue.");
	tacho__say_evidence(f, 0, woken ? t->woken_ns : t->last_ns, end_ns, ns, "ns", "task %llu",
			    (unsigned long long)t->task);
	tacho__evidence_task(f, t->task);
}

/* It is proved, so peers do not matter; but a task that is kept until somebody cancels it is meant to be so. */
static int find_forsaken(struct tacho__explaining *x, const struct tacho__task_sum *k)
{
	const struct tacho__task *t = &k->forsaken;
	uint64_t end_ns = x->sum->process[k->process].end_ns;
	char name[TACHO__TEXT], text[TACHO__TEXT];
	struct tacho__finding *f;
	double ns;

	if (!k->forsaken_at_end)
		return 0;
	ns = (double)(end_ns - t->no_waker_ns);
	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_STUCK_TASK, name, ns, ns, TACHO__LIMIT_STUCK_TASK_NS))
		return 0;
	if (k->forsaken_ended) {
		tacho__consider(x, TACHO__RULE_STUCK_TASK, name, ns, 0,
				"others of its kind that nobody could wake were cancelled");
		return 0;
	}
	f = tacho__find(x, TACHO__RULE_STUCK_TASK, TACHO__SEVERITY_WARNING, k->process, 0);
	f->waiting_ns = ns; /* at least: that of one */
	f->kind = k->kind;
	f->task = t->task;
	if (t->waits_stack)
		tacho__where_id(x, f, t->waits_stack, end_ns);
	tacho__where_id(x, f, k->kind, end_ns);
	tacho__where_id(x, f, k->place, end_ns);
	if (t->no_waker_stack)
		tacho__where_id(x, f, t->no_waker_stack, end_ns);
	tacho__say_summary(f,
			   "%s has waited for %s and nobody can wake it any more: nobody has a "
			   "waker of it",
			   name, tacho__ns_text(text, ns));
	tacho__say_advice(
		f, "Let who makes it wait keep the waker of the last poll, and wake it before "
		   "letting go of that. A task that only keeps something needs none: keep "
		   "the thing elsewhere.");
	tacho__say_evidence(f, 0, t->no_waker_ns, end_ns, ns, "ns", "task %llu%s",
			    (unsigned long long)t->task,
			    t->no_waker_stack ? ", since its last waker was dropped" : "");
	if (k->forsaken_at_end > 1)
		tacho__say_evidence(f, 0, t->no_waker_ns, end_ns, (double)k->forsaken_at_end,
				    "tasks", "%llu of its kind",
				    (unsigned long long)k->forsaken_at_end);
	return 1;
}

/* Whether tasks of the kind wait there in the middle of work: where they wait for work, most of their
   time goes by, and it is loops that wake them. */
static int is_in_the_middle(const struct tacho__explaining *x, const struct tacho__task_wait_sum *k)
{
	uint64_t own = k->sum_ns - (k->oldest.end_ns - k->oldest.begin_ns);

	for (const struct tacho__task_wait_sum *u = NULL;
	     (u = tacho__table_next(&x->sum->task_waits, u));)
		if (u->process == k->process && u->kind == k->kind && u->sum_ns > own && u->count &&
		    u->by_loop >= (u->count + 1) / 2)
			return 1;
	return 0;
}

static int is_found(const struct tacho__explaining *x, uint64_t task)
{
	for (uint32_t i = 0; i < x->out->count; i++)
		if (x->out->findings[i].process == x->process && x->out->findings[i].task == task &&
		    x->out->findings[i].rule == TACHO__RULE_STUCK_TASK)
			return 1;
	return 0;
}

/*
 * A wake that does not come. A task may wait for its next request, or message, for as long as it
 * likes: what counts is a wait in the middle of work, for what threads and tasks of the program give
 * and no peer, out of which it was woken before, as others still are, soon each time.
 */
static void find_lost_wake(struct tacho__explaining *x, const struct tacho__task_wait_sum *k)
{
	const struct tacho__task_wait *w = &k->oldest;
	double ns = (double)(w->end_ns - w->begin_ns);
	char name[TACHO__TEXT], what[TACHO__TEXT], text[TACHO__TEXT], most[TACHO__TEXT];
	struct tacho__finding *f;

	if (!w->begin_ns || k->count < tacho__usual_count || is_found(x, w->task))
		return;
	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_STUCK_TASK, name, ns, ns, TACHO__LIMIT_STUCK_TASK_NS))
		return;
	if ((double)k->by_loop > tacho__by_loop_share * (double)k->count ||
	    ns < tacho__far_times * (double)k->longest_ns ||
	    (double)k->last_begin_ns < (double)w->begin_ns + ns / 2 || !is_in_the_middle(x, k)) {
		tacho__consider(x, TACHO__RULE_STUCK_TASK, name, ns, 0, "%s",
				ns < tacho__far_times * (double)k->longest_ns
					? "others waited a tenth as long and were woken"
					: "what it waits for may come from outside");
		return;
	}
	f = tacho__find(x, TACHO__RULE_STUCK_TASK, TACHO__SEVERITY_WARNING, k->process, 0);
	f->waiting_ns = ns;
	f->kind = k->kind;
	f->task = w->task;
	if (w->stack)
		tacho__where_id(x, f, w->stack, w->end_ns);
	tacho__where_id(x, f, k->kind, w->end_ns);
	tacho__say_summary(
		f, "%s has waited%s%s for %s and nobody wakes it: %llu such waits took %s at most",
		tacho__id_text(x, name, k->process, k->kind), k->what ? " for " : "",
		k->what ? tacho__id_text(x, what, k->process, k->what) : "",
		tacho__ns_text(text, ns), (unsigned long long)k->count,
		tacho__ns_text(most, (double)k->longest_ns));
	tacho__say_evidence(f, 0, w->begin_ns, w->end_ns, ns, "ns", "task %llu",
			    (unsigned long long)w->task);
	tacho__evidence_task(f, w->task);
}

void tacho__rules_tasks(struct tacho__explaining *x, int queue)
{
	for (const struct tacho__task_sum *k = NULL; (k = tacho__table_next(&x->sum->tasks, k));) {
		find_self_wake(x, k);
		if (!find_task_leak(x, k) && !find_forsaken(x, k))
			find_stuck(x, k, queue);
	}
	for (const struct tacho__task_wait_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->task_waits, k));)
		find_lost_wake(x, k);
}
