/* What tasks wait for: locks of other tasks, Go's collector, other services. */
#include <stdio.h>
#include <string.h>

#include "explain/chain.h"

/* ------------------------------------------------------------------- locks */

/* Task, holder, and what that one waits for. */
static void chain(const struct tacho__explaining *x, struct tacho__finding *f,
		  const struct tacho__task_wait *w)
{
	struct tacho__part *p = tacho__add_part(f, TACHO__ROLE_WAITER, 0);
	char what[TACHO__TEXT];

	p->task = w->task;
	p->place = tacho__own_place(x, f->process, w->stack, w->end_ns);
	p = tacho__add_part(f, TACHO__ROLE_HOLDER, 0);
	p->task = w->by.task;
	p->place = tacho__own_place(x, f->process, w->by.stack, w->end_ns);
	if (!w->by.waits_for)
		return;
	p = tacho__add_part(f, TACHO__ROLE_HOLDER_DID, 0);
	p->task = w->by.task;
	snprintf(p->what, sizeof(p->what), "waiting for %.80s",
		 tacho__id_text(x, what, f->process, w->by.waits_for));
	p->place = tacho__own_place(x, f->process, w->by.waits_stack, w->end_ns);
}

/*
 * Tasks wait for a lock that another one has. Waiting for it they leave their loop to others, so the
 * ledger of the loops has nothing of it: what counts is how long they waited, all together.
 */
static void find_task_lock(struct tacho__explaining *x, const struct tacho__task_lock *k)
{
	const struct tacho__task_wait *w = &k->longest;
	double ns = (double)(w->end_ns - w->begin_ns), sum = (double)k->sum_ns;
	double share = 100.0 * sum / tacho__window_ns(x);
	int blocked = w->by.waited_ns >= (w->end_ns - w->begin_ns) / 2;
	char all[TACHO__TEXT], most[TACHO__TEXT], holder[TACHO__TEXT], kind[TACHO__TEXT],
		what[TACHO__TEXT], where[2 * TACHO__TEXT] = "";
	struct tacho__finding *f;

	tacho__id_text(x, kind, k->process, w->kind);
	if (tacho__below(x, TACHO__RULE_LOCK_CONTENTION, kind, sum, share,
			 TACHO__LIMIT_WAITING_SHARE))
		return;
	if (w->by.late_ns >= (w->end_ns - w->begin_ns) / 2) {
		tacho__consider(x, TACHO__RULE_LOCK_CONTENTION, kind, sum, sum,
				"who had the lock was ready to run, and did not run");
		return;
	}
	f = tacho__find(x, TACHO__RULE_LOCK_CONTENTION, tacho__severity_of_waiting(x, sum),
			k->process, sum);
	tacho__measured(x, f,
			&(struct tacho__measure){.count = k->count,
						 .longest_ns = w->end_ns - w->begin_ns,
						 .total_ns = k->sum_ns});
	f->kind = w->by.kind;
	f->task = w->by.task;
	f->waiting_ns = sum;
	/* Where it waits itself says more than where it lets the lock go. */
	if (blocked)
		tacho__where_id(x, f, w->by.waits_stack, w->end_ns);
	if (w->by.stack)
		tacho__where_id(x, f, w->by.stack, w->end_ns);
	if (f->where_count)
		tacho__where_text(where, f);
	tacho__where_id(x, f, w->stack, w->end_ns);
	tacho__say_summary(
		f,
		"tasks of kind %s wait %s in all for a lock (%s), %llu times, up to %s "
		"each; task %llu of kind %s has it%s%s",
		kind, tacho__ns_text(all, sum), tacho__id_text(x, what, k->process, w->what),
		(unsigned long long)k->count, tacho__ns_text(most, ns),
		(unsigned long long)w->by.task, tacho__id_text(x, holder, k->process, w->by.kind),
		where[0] ? " in " : "", where);
	tacho__say_advice(f, "%s",
			  blocked ? "Let it go before waiting for something else: copy what is "
				    "needed under the lock, then wait without it."
				  : "Hold it for a shorter time, or split what it protects.");
	tacho__say_evidence(f, 0, w->begin_ns, w->end_ns, ns, "ns", "task %llu waited %s",
			    (unsigned long long)w->task, most);
	tacho__evidence_task(f, w->task);
	chain(x, f, w);
	if (!w->by.waits_for)
		return;
	tacho__say_evidence(f, 0, w->begin_ns, w->end_ns, (double)w->by.waited_ns, "ns",
			    "meanwhile who has it waits %s for %s",
			    tacho__ns_text(all, (double)w->by.waited_ns),
			    tacho__id_text(x, what, k->process, w->by.waits_for));
	tacho__evidence_task(f, w->by.task);
}

/* ---------------------------------------------------------------- collector */

int tacho__is_go(const struct tacho__explaining *x)
{
	const struct tacho_process *p = tacho_read_process(x->reader, x->process);

	return p && strncmp(p->imported, "a Go ", 5) == 0;
}

static int has_prefix(const struct tacho__explaining *x, uint32_t name, const char *prefix)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, x->process, name);

	return d && tacho__is_go(x) && strncmp(d->name, prefix, strlen(prefix)) == 0;
}

int tacho__is_runtime_span(const struct tacho__explaining *x, uint32_t name)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, x->process, name);

	return has_prefix(x, name, "stop the world: ") || has_prefix(x, name, "GC ") ||
	       (d && tacho__is_go(x) && strcmp(d->name, "GC") == 0);
}

static uint64_t stalls(const struct tacho__span_sum *k)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < k->worst.count; i++)
		count += k->worst.at[i].end_ns - k->worst.at[i].begin_ns >= tacho__stall_ns;
	return count;
}

/* Nothing of the program runs meanwhile. Go stops it to begin and end tracing, too. */
static void find_stopped_world(struct tacho__explaining *x, const struct tacho__span_sum *k)
{
	double share = 100.0 * (double)k->ns.sum / tacho__window_ns(x);
	double rest = 100.0 * (double)(k->ns.sum - k->ns.most) / tacho__window_ns(x);
	const struct tacho__span *s = &k->worst.at[0];
	const struct tacho_definition *d = tacho_read_definition(x->reader, x->process, k->name);
	char name[TACHO__TEXT], all[TACHO__TEXT], most[TACHO__TEXT];
	struct tacho__finding *f;

	if (!has_prefix(x, k->name, "stop the world: ") ||
	    has_prefix(x, k->name, "stop the world: start tr") ||
	    has_prefix(x, k->name, "stop the world: stop tr") || !k->worst.count)
		return;
	tacho__id_text(x, name, k->process, k->name);
	/* One that takes long may be the kernel's doing. */
	if ((double)stalls(k) < TACHO__LIMIT(x, STALL_COUNT)) {
		if (tacho__below(x, TACHO__RULE_STOP_THE_WORLD, name, (double)k->ns.sum, share,
				 TACHO__LIMIT_WAITING_SHARE))
			return;
		if (rest < TACHO__LIMIT(x, WAITING_SHARE) / 2) {
			tacho__consider(x, TACHO__RULE_STOP_THE_WORLD, name, (double)k->ns.sum, 0,
					"nearly all of it is one stop");
			return;
		}
	}
	f = tacho__find(x, TACHO__RULE_STOP_THE_WORLD,
			tacho__severity_of_waiting(x, (double)k->ns.sum), k->process,
			(double)k->ns.sum);
	tacho__measured(x, f,
			&(struct tacho__measure){.count = k->ns.count,
						 .longest_ns = k->ns.most,
						 .total_ns = k->ns.sum});
	f->waiting_ns = (double)k->ns.sum; /* at least: of one goroutine */
	f->thread = s->at.thread;
	f->kind = s->at.kind;
	f->task = s->at.task;
	tacho__where_id(x, f, d && d->file[0] ? k->name : s->at.kind, s->end_ns);
	tacho__say_summary(f,
			   "the runtime stopped all goroutines %llu times (%s), %s in all and up "
			   "to %s at once",
			   (unsigned long long)k->ns.count, name + strlen("stop the world: "),
			   tacho__ns_text(all, (double)k->ns.sum),
			   tacho__ns_text(most, (double)k->ns.most));
	tacho__say_evidence(f, s->at.thread, s->begin_ns, s->end_ns,
			    (double)(s->end_ns - s->begin_ns), "ns", "the longest took %s", most);
}

/* How long goroutines ran or were ready to: while one helps, others may have its P. */
static double ready_ns(const struct tacho__explaining *x)
{
	double busy = (double)x->sum->process[x->process].wakes.latency.sum;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		busy += (double)l->busy_ns;
	return busy > 0 ? busy : 1;
}

/* Who allocates faster than the collector frees has to help it. */
static void find_assist(struct tacho__explaining *x, const struct tacho__span_sum *k)
{
	double share = 100.0 * (double)k->ns.sum / ready_ns(x);
	const struct tacho__span *s = &k->worst.at[0];
	char kind[TACHO__TEXT], all[TACHO__TEXT], most[TACHO__TEXT];
	struct tacho__finding *f;

	if (!has_prefix(x, k->name, "GC assist") || !k->worst.count)
		return;
	if (tacho__below(x, TACHO__RULE_GC_ASSIST, "GC assist", (double)k->ns.sum, share,
			 TACHO__LIMIT_GC_ASSIST_SHARE))
		return;
	f = tacho__find(x, TACHO__RULE_GC_ASSIST, TACHO__SEVERITY_WARNING, k->process,
			(double)k->ns.sum);
	f->waiting_ns = f->cost_ns; /* what they are there for does */
	f->kind = s->at.kind;
	f->task = s->at.task;
	f->thread = s->at.thread;
	tacho__where_id(x, f, s->at.kind, s->end_ns);
	tacho__say_summary(f,
			   "goroutines help the garbage collector for %s in all, %.0f %% of the "
			   "time in which they could run, up to %s at once; the longest is %s",
			   tacho__ns_text(all, (double)k->ns.sum), share,
			   tacho__ns_text(most, (double)k->ns.most),
			   tacho__id_text(x, kind, k->process, s->at.kind));
	tacho__say_evidence(f, s->at.thread, s->begin_ns, s->end_ns,
			    (double)(s->end_ns - s->begin_ns), "ns", "the longest took %s", most);
}

/* ---------------------------------------------------------------- downstream */

/* Tasks that ask another service, and wait for its answer while there is nothing else to do. */
static void find_slow_answers(struct tacho__explaining *x, const struct tacho__outside *k)
{
	const struct tacho__task_wait *w = &k->longest;
	double p99 = (double)tacho__hist_at(&k->ns, tacho__tail), sum = (double)k->ns.sum;
	char kind[TACHO__TEXT], most[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f;
	int is_own;

	if (k->ns.count < tacho__several)
		return;
	tacho__id_text(x, kind, k->process, w->kind);
	if (tacho__below(x, TACHO__RULE_DOWNSTREAM_WAIT, kind, sum, p99,
			 TACHO__LIMIT_DOWNSTREAM_WAIT_WARN))
		return;
	if (tacho__idle_share(x, k->process) < 0.5) {
		tacho__consider(x, TACHO__RULE_DOWNSTREAM_WAIT, kind, sum, 0,
				"the loops were busy meanwhile");
		return;
	}
	is_own = tacho__is_own_pace(&x->gathered, w);
	f = tacho__find(x, TACHO__RULE_DOWNSTREAM_WAIT,
			is_own ? TACHO__SEVERITY_INFO : TACHO__SEVERITY_WARNING, k->process, sum);
	f->waiting_ns = is_own ? 0 : sum;
	f->kind = w->kind;
	f->task = w->task;
	tacho__where_id(x, f, w->stack, w->end_ns);
	tacho__say_summary(f,
			   "%s waits up to %s for the answer of another service while the loops "
			   "idle, %llu times, asked in %s%s",
			   kind, tacho__ns_text(most, (double)k->ns.most),
			   (unsigned long long)k->ns.count,
			   f->where_count ? tacho__where_text(where, f) : "(not known)",
			   is_own ? "; it works at its own pace, and nobody waits for it" : "");
	tacho__say_advice(f,
			  "Look at the service that it asks. Give the request a time-out, or ask "
			  "for several things at the same time.");
	tacho__say_evidence(f, 0, w->begin_ns, w->end_ns, (double)(w->end_ns - w->begin_ns), "ns",
			    "task %llu waited %s", (unsigned long long)w->task, most);
	tacho__evidence_task(f, w->task);
}

void tacho__rules_runtime(struct tacho__explaining *x)
{
	for (const struct tacho__task_lock *k = NULL;
	     (k = tacho__table_next(&x->gathered.task_locks, k));)
		if (k->process == x->process)
			find_task_lock(x, k);
	for (const struct tacho__outside *k = NULL;
	     (k = tacho__table_next(&x->gathered.outside, k));)
		if (k->is_client && k->process == x->process)
			find_slow_answers(x, k);
	for (const struct tacho__span_sum *k = NULL; (k = tacho__table_next(&x->sum->spans, k));) {
		find_stopped_world(x, k);
		find_assist(x, k);
	}
}
