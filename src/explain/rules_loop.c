/*
 * What keeps a loop from coming back: each long poll has one cause (gather.h), and cases with the
 * same cause at the same place in the code are one finding (groups.h).
 */
#include <stdio.h>
#include <string.h>

#include "explain/groups.h"
#include "explain/rules.h"

#define WOKEN_ONES 3 /* times the share of the window that delays of callbacks must take */
#define SAMPLED_NS UINT64_C(100000000)

/* ------------------------------------------------------------------ findings */

/*
 * One that is critical by itself, or several that take a part of the time that matters; without
 * what the kernel took from them, which has a rule of its own.
 */
static int matters(const struct tacho__explaining *x, const struct tacho__group *g)
{
	uint64_t sum = g->cause == TACHO__CAUSE_SCHED ? g->cause_ns : g->own_ns;
	double share = 100.0 * (double)sum / tacho__window_ns(x);

	/* Long polls with hardly a sample, and nobody says whether they had a CPU at all. */
	if (g->cause == TACHO__CAUSE_CODE && g->unsure == g->count &&
	    g->sample_ns < g->own_ns / 4 && tacho__source_is_on(x, g->process, "cpu_samples"))
		return 0;
	return (double)g->longest_own_ns >= tacho__limit(x, "long-callback.critical") ||
	       (share >= tacho__limit(x, "blocked.share") &&
		g->count >= tacho__limit(x, "blocked.count"));
}

static enum tacho__severity severity_of(const struct tacho__explaining *x,
					const struct tacho__group *g)
{
	return (double)g->longest_own_ns >= tacho__limit(x, "long-callback.critical")
		       ? TACHO__SEVERITY_CRITICAL
		       : TACHO__SEVERITY_WARNING;
}

static struct tacho__finding *begin(struct tacho__explaining *x, const struct tacho__group *g,
				    const char *rule)
{
	const struct tacho__poll *p = g->top[0];
	struct tacho__finding *f =
		tacho__find(x, rule, severity_of(x, g), g->process, (double)g->own_ns);

	f->loop = p->at.loop;
	f->kind = p->kind;
	f->thread = p->at.thread;
	return f;
}

const char *tacho__callback_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
				 const struct tacho__poll *p)
{
	if (p->kind)
		return tacho__id_text(x, out, p->at.process, p->kind);
	strcpy(out, "a turn of the loop");
	return out;
}

static void show_polls(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__group *g)
{
	char ns[TACHO__TEXT], name[TACHO__TEXT];

	for (uint32_t i = 0; i < TACHO__SHOWN && g->top[i]; i++) {
		const struct tacho__poll *p = g->top[i];

		tacho__say_evidence(f, p->at.thread, p->begin_ns, p->end_ns,
				    (double)tacho__length(p), "ns", "%s took %s",
				    tacho__callback_text(x, name, p),
				    tacho__ns_text(ns, (double)tacho__length(p)));
	}
}

static int is_kept_by_many(uint64_t one_ns, uint64_t all_ns, uint32_t count)
{
	return count >= 2 && all_ns >= one_ns + one_ns / 2;
}

/*
 * How long the longest poll was kept by waits of which the longest took `one_ns`, and how many
 * these were: "1.18 s in 212 waits" where one of them says too little.
 */
static const char *kept_text(char out[2 * TACHO__TEXT], const struct tacho__group *g,
			     uint64_t one_ns, uint64_t all_ns, uint32_t count, const char *what)
{
	char ns[TACHO__TEXT];
	uint64_t most = tacho__length(g->top[0]);

	if (all_ns > most)
		all_ns = most;
	if (!is_kept_by_many(one_ns, all_ns, count))
		snprintf(out, 2 * TACHO__TEXT, "%s", tacho__ns_text(ns, (double)one_ns));
	else
		snprintf(out, 2 * TACHO__TEXT, "%s in %u %s", tacho__ns_text(ns, (double)all_ns),
			 count, what);
	return out;
}

/* Code that runs for so long is sampled: this hardly ran, and nothing that was recorded kept it. */
static int hardly_ran(const struct tacho__explaining *x, const struct tacho__group *g)
{
	return g->own_ns >= SAMPLED_NS && g->sample_ns < g->own_ns / 4 &&
	       tacho__source_is_on(x, g->process, "cpu_samples") &&
	       tacho__counted(x, g->process, "not_sampled") <= 0;
}

static void find_unseen(struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__poll *p = g->top[0];
	char ns[TACHO__TEXT], name[TACHO__TEXT];
	struct tacho__finding *f = begin(x, g, "long-callback");

	if (p->kind)
		tacho__where_id(x, f, p->kind, g->worst->last_ns);
	tacho__say_summary(
		f, "%s keeps its loop for up to %s but hardly runs: what it waits for was not seen",
		tacho__callback_text(x, name, p), tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f,
			  "Record with --sched, which shows where it leaves its CPU: page faults, "
			  "and calls that tacho does not know, wait in the kernel.");
	show_polls(x, f, g);
}

static void find_code(struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__poll *p = g->top[0];
	const struct tacho__case *c = g->dearest;
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f;
	struct tacho__hottest h;
	int sampled;

	if (hardly_ran(x, g)) {
		find_unseen(x, g);
		return;
	}
	f = begin(x, g, "long-callback");
	sampled =
		tacho__find_hottest(x, g->process, &c->samples, c->last_ns, tacho__has_code(c), &h);
	if (sampled)
		tacho__where_hottest(x, f, &h, c->last_ns);
	if (p->kind && !f->where_count)
		tacho__where_id(x, f, p->kind, c->last_ns);
	tacho__callback_text(x, name, p);
	tacho__ns_text(ns, (double)g->longest_ns);
	if (sampled && f->where_count)
		tacho__say_summary(f, "%s keeps its loop busy for up to %s, in %s", name, ns,
				   tacho__where_text(where, f));
	else
		tacho__say_summary(f,
				   "%s keeps its loop busy for up to %s; what it did was not seen",
				   name, ns);
	tacho__say_advice(f, "Split the work, or give it to a pool of threads, so that other "
			     "callbacks of the loop can run in between.");
	show_polls(x, f, g);
	if (sampled)
		tacho__say_evidence(f, p->at.thread, c->first_ns, c->last_ns, 100 * h.share, "%",
				    "%.0f %% of %u CPU samples in this place", 100 * h.share,
				    c->samples.all);
}

static void find_call(struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__call *c = &g->worst->call;
	const struct tacho__poll *p = g->top[0];
	char ns[TACHO__TEXT], name[TACHO__TEXT], call[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f = begin(x, g, "blocking-call");
	char path[TACHO__TEXT], all[2 * TACHO__TEXT];

	tacho__where_id(x, f, c->stack, g->worst->last_ns);
	if (!f->where_count && p->kind)
		tacho__where_id(x, f, p->kind, g->worst->last_ns);
	tacho__say_summary(
		f, "%s blocks its loop for up to %s in %s%s%s", tacho__callback_text(x, name, p),
		kept_text(all, g, c->end_ns - c->begin_ns, g->top[0]->spent.call_ns,
			  g->top[0]->spent.calls, "calls, mostly"),
		tacho__id_text(x, call, g->process, c->name), f->where_count ? ", called by " : "",
		f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "Call it from a pool of threads, or use what the loop offers instead "
			     "of it: while it waits, nothing else on this loop runs.");
	tacho__say_evidence(f, c->at.thread, c->begin_ns, c->end_ns,
			    (double)(c->end_ns - c->begin_ns), "ns", "%s%s%s took %s", call,
			    c->path ? " of " : "",
			    c->path ? tacho__id_text(x, path, g->process, c->path) : "",
			    tacho__ns_text(ns, (double)(c->end_ns - c->begin_ns)));
	show_polls(x, f, g);
}

static void find_lock(struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__lock *l = &g->worst->lock;
	char ns[TACHO__TEXT], name[TACHO__TEXT], holder[TACHO__TEXT], where[2 * TACHO__TEXT];
	char all[2 * TACHO__TEXT];
	struct tacho__finding *f = begin(x, g, "lock-contention");

	f->lock = l->lock;
	if (l->release_ns)
		tacho__where_id(x, f, l->release_place, g->worst->last_ns);
	tacho__callback_text(x, name, g->top[0]);
	tacho__ns_text(ns, (double)(l->end_ns - l->begin_ns));
	kept_text(all, g, l->end_ns - l->begin_ns, g->top[0]->spent.lock_ns, g->top[0]->spent.locks,
		  "waits");
	if (l->release_ns && f->where_count)
		tacho__say_summary(f, "%s waits up to %s for a lock that %s holds in %s", name, all,
				   tacho__thread_text(x, holder, g->process, l->releaser.thread),
				   tacho__where_text(where, f));
	else
		tacho__say_summary(f, "%s waits up to %s for a lock; who holds it was not seen",
				   name, all);
	tacho__where_id(x, f, l->stack ? l->stack : l->place, g->worst->last_ns);
	tacho__say_advice(f, "Hold the lock for a shorter time: do what takes long before or "
			     "after, split the lock, or copy what it protects.");
	tacho__say_evidence(f, l->at.thread, l->begin_ns, l->end_ns,
			    (double)(l->end_ns - l->begin_ns), "ns", "waited %s for lock 0x%llx",
			    ns, (unsigned long long)l->lock);
	if (l->release_ns)
		tacho__say_evidence(f, l->releaser.thread, l->release_ns, l->release_ns, 0, "",
				    "released by %s",
				    tacho__thread_text(x, holder, g->process, l->releaser.thread));
	show_polls(x, f, g);
}

/* Nobody holds what it waits for: it asked another thread for something, and waits until then. */
static void find_signal(struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__lock *l = &g->worst->lock;
	char ns[TACHO__TEXT], name[TACHO__TEXT], who[TACHO__TEXT], where[2 * TACHO__TEXT];
	char all[2 * TACHO__TEXT];
	struct tacho__finding *f = begin(x, g, "blocking-call");

	tacho__where_id(x, f, l->stack ? l->stack : l->place, g->worst->last_ns);
	tacho__say_summary(
		f, "%s blocks its loop for up to %s, waiting for another thread to signal it%s%s",
		tacho__callback_text(x, name, g->top[0]),
		kept_text(all, g, l->end_ns - l->begin_ns, g->top[0]->spent.lock_ns,
			  g->top[0]->spent.locks, "waits"),
		f->where_count ? ", in " : "", f->where_count ? tacho__where_text(where, f) : "");
	if (l->release_ns && is_kept_by_many(l->end_ns - l->begin_ns, g->top[0]->spent.lock_ns,
					     g->top[0]->spent.locks))
		tacho__say_advice(
			f,
			"See what %s does meanwhile: it holds what this loop waits for again and "
			"again, such as the lock of an interpreter, and hands it over late.",
			tacho__thread_text(x, who, g->process, l->releaser.thread));
	else
		tacho__say_advice(f, "Return to the loop, and let the other thread tell it when it "
				     "is done (uv_async_send, event_active, an eventfd): while it "
				     "waits, nothing else on this loop runs.");
	tacho__say_evidence(
		f, l->at.thread, l->begin_ns, l->end_ns, (double)(l->end_ns - l->begin_ns), "ns",
		"waited %s for condition 0x%llx",
		tacho__ns_text(ns, (double)(l->end_ns - l->begin_ns)), (unsigned long long)l->lock);
	if (l->release_ns) {
		tacho__where_id(x, f, l->release_place, g->worst->last_ns);
		tacho__say_evidence(f, l->releaser.thread, l->release_ns, l->release_ns, 0, "",
				    "signalled by %s",
				    tacho__thread_text(x, who, g->process, l->releaser.thread));
	}
	show_polls(x, f, g);
}

/* `what`: that the kernel kept waiting. */
static struct tacho__finding *begin_sched(struct tacho__explaining *x, const struct tacho__group *g,
					  const char *what)
{
	char ns[TACHO__TEXT], name[TACHO__TEXT], all[TACHO__TEXT];
	struct tacho__finding *f = begin(x, g, "kernel-scheduling-delay");

	f->cost_ns = (double)g->cause_ns;
	tacho__say_summary(f, "the kernel does not run %s when it could: %s in %u %s of up to %s",
			   tacho__thread_text(x, name, g->process, f->thread),
			   tacho__ns_text(all, (double)g->cause_ns), g->count, what,
			   tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(
		f,
		"Other threads or processes take its CPU: give it more CPUs or a higher priority, "
		"pin it, or move its neighbours elsewhere.");
	return f;
}

static void find_sched(struct tacho__explaining *x, const struct tacho__group *g)
{
	double share = 100.0 * (double)g->cause_ns / tacho__window_ns(x);
	char ns[TACHO__TEXT];
	struct tacho__finding *f;

	if (share < tacho__limit(x, "kernel-scheduling-delay.share") ||
	    g->count < tacho__limit(x, "blocked.count"))
		return;
	f = begin_sched(x, g, "callbacks");
	for (uint32_t i = 0; i < TACHO__SHOWN && g->top[i]; i++) {
		const struct tacho__poll *p = g->top[i];
		/* The kernel also counts what was before the poll. */
		uint64_t delay =
			p->spent.delay_ns < tacho__length(p) ? p->spent.delay_ns : tacho__length(p);

		tacho__say_evidence(f, p->at.thread, p->begin_ns, p->end_ns, (double)delay, "ns",
				    "%s of it runnable but not running, %u involuntary switches",
				    tacho__ns_text(ns, (double)delay), p->spent.involuntary);
	}
}

static struct tacho__finding *sched_finding(const struct tacho__explaining *x,
					    const struct tacho__group *g)
{
	for (uint32_t i = 0; i < x->out->count; i++) {
		struct tacho__finding *f = &x->out->findings[i];

		if (strcmp(f->rule, "kernel-scheduling-delay") == 0 && f->process == g->process &&
		    f->loop == g->top[0]->at.loop)
			return f;
	}
	return NULL;
}

/* Whether the loop would wait for something to do most of the time if it had its CPU at once: one
   that asks over and over, or is full, has to share its CPU if others want it. */
static int waits_mostly(const struct tacho__explaining *x, const struct tacho__group *g)
{
	const struct tacho__poll *p = g->top[0];
	const struct tacho__loop_sum *l = tacho__table_find(
		&x->sum->loops, (uint64_t)g->process << 32 | p->at.loop, p->at.thread);
	uint64_t busy = l ? l->busy_ns + l->short_waits_ns : 0;

	return l && l->parked_ns >= g->cause_ns &&
	       busy < (l->busy_ns + l->parked_ns - g->cause_ns) / 2;
}

/* The same for loops that come out of their waits late: each wait for a CPU is short, as a rule, and
   others are woken late once in a while as well. */
static void find_woken(struct tacho__explaining *x, const struct tacho__group *g)
{
	double share = 100.0 * (double)g->cause_ns / tacho__window_ns(x);
	char ns[TACHO__TEXT];
	struct tacho__finding *f = sched_finding(x, g);

	if (!waits_mostly(x, g))
		return;
	if (!f && (share < WOKEN_ONES * tacho__limit(x, "kernel-scheduling-delay.share") ||
		   (g->count < tacho__limit(x, "blocked.count") &&
		    (double)g->longest_ns < tacho__limit(x, "long-callback.critical"))))
		return;
	if (f) {
		f->cost_ns += (double)g->cause_ns;
	} else {
		f = begin_sched(x, g, "waits for a CPU");
	}
	for (uint32_t i = 0; i < TACHO__SHOWN && g->top[i]; i++)
		tacho__say_evidence(f, g->top[i]->at.thread, g->top[i]->begin_ns, g->top[i]->end_ns,
				    (double)tacho__length(g->top[i]), "ns",
				    "could run, and ran %s later",
				    tacho__ns_text(ns, (double)tacho__length(g->top[i])));
}

static void find_pause(struct tacho__explaining *x, const struct tacho__group *g)
{
	char ns[TACHO__TEXT];
	struct tacho__finding *f;

	if ((double)g->longest_ns < tacho__limit(x, "process-pause.ns"))
		return;
	f = begin(x, g, "process-pause");
	tacho__say_summary(
		f,
		"nothing of the process ran for up to %s: it was stopped, or waited in the "
		"kernel where tacho does not see why",
		tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Look for SIGSTOP, a debugger, a frozen cgroup, a snapshot of the "
			     "machine, a clock that jumped, fork of a large process, or page "
			     "faults that read from disk at that time.");
	for (uint32_t i = 0; i < TACHO__SHOWN && g->top[i]; i++) {
		const struct tacho__poll *p = g->top[i];

		tacho__say_evidence(f, p->at.thread, p->begin_ns, p->end_ns,
				    (double)(p->end_ns - p->begin_ns), "ns", "nothing ran for %s",
				    tacho__ns_text(ns, (double)(p->end_ns - p->begin_ns)));
	}
}

void tacho__rules_loop(struct tacho__explaining *x)
{
	struct tacho__group groups[TACHO__GROUPS];
	uint32_t n = tacho__group_cases(x, groups);
	static void (*const finders[])(struct tacho__explaining *, const struct tacho__group *) = {
		[TACHO__CAUSE_CODE] = find_code,   [TACHO__CAUSE_CALL] = find_call,
		[TACHO__CAUSE_LOCK] = find_lock,   [TACHO__CAUSE_SCHED] = find_sched,
		[TACHO__CAUSE_PAUSE] = find_pause, [TACHO__CAUSE_SIGNAL] = find_signal,
	};

	for (uint32_t i = 0; i < n; i++)
		if (groups[i].top[0] && groups[i].cause != TACHO__CAUSE_WOKEN &&
		    matters(x, &groups[i]))
			finders[groups[i].cause](x, &groups[i]);
	for (uint32_t i = 0; i < n; i++)
		if (groups[i].top[0] && groups[i].cause == TACHO__CAUSE_WOKEN)
			find_woken(x, &groups[i]);
}
