/* Who keeps things waiting: what is said of the causes that the ledger has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/causes.h"

#define LOST_WEIGHT 10 /* capacity that is lost costs less than waiting */
/* Of the time of long callbacks, the least part that samples must have seen run. */
#define SEEN_SHARE 4
#define SEEN_SAMPLES 3

static struct tacho__finding *begin(struct tacho__explaining *x, const struct tacho__cause *g,
				    const char *rule)
{
	struct tacho__finding *f = tacho__find(x, rule, g->severity, x->process, (double)g->ns);

	f->waiting_ns = (double)g->waiting_ns;
	f->rank_ns = f->waiting_ns + (f->cost_ns - (double)g->own_ns) / LOST_WEIGHT;
	f->loop = g->worst->loop;
	f->kind = g->worst->kind;
	f->thread = x->out->ledger->threads[g->worst->thread].thread;
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

static const char *callback(const struct tacho__explaining *x, char out[TACHO__TEXT],
			    const struct tacho__cause *g)
{
	struct tacho__poll p = {.at.process = x->process, .kind = g->worst->kind};

	if (tacho__serves_one(tacho_read_definition(x->reader, x->process, g->worst->loop)))
		return strcpy(out, "a request");
	if (!x->out->ledger->threads[g->worst->thread].is_loop && !g->worst->kind)
		return strcpy(out, "work of a pool");
	return tacho__callback_text(x, out, &p);
}

static void show(struct tacho__finding *f, const struct tacho__cause *g, const char *what)
{
	char ns[TACHO__TEXT], all[TACHO__TEXT], sum[TACHO__TEXT];

	tacho__say_evidence(f, f->thread, g->longest_at_ns, g->longest_at_ns + g->longest_ns,
			    (double)g->longest_ns, "ns", "%s took %s", what,
			    tacho__ns_text(ns, (double)g->longest_ns));
	if (g->count > 1)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)g->ns, "ns",
				    "%llu times, %s in all", (unsigned long long)g->count,
				    tacho__ns_text(all, (double)g->ns));
	if (g->waiting_ns)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)g->waiting_ns,
				    "ns", "what was ready meanwhile waited %s in all",
				    tacho__ns_text(sum, (double)g->waiting_ns));
}

/* Whether the loop has several clients, as far as it was seen. */
static int has_several(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	uint32_t n = 0;

	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));)
		n += r->process == x->process && r->loop == g->worst->loop;
	return n > 1;
}

/* Long ones that hardly ran where code that runs is sampled were kept by something that nobody saw:
   a CPU that a virtual machine did not have, say. */
static int was_seen(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	return !tacho__source_is_on(x, x->process, "cpu_samples") ||
	       (g->samples >= SEEN_SAMPLES && g->cpu_ns >= g->ns / SEEN_SHARE) ||
	       (g->size[3].count && (g->worst->kind || has_several(x, g)));
}

static void find_code(struct tacho__explaining *x, const struct tacho__cause *causes,
		      uint32_t count, uint32_t index)
{
	const struct tacho__cause *g = &causes[index];
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	const struct tacho__function *hot = g->function;
	struct tacho__finding *f;

	if (!was_seen(x, g)) {
		tacho__drop_cause(x, g, "it hardly ran, and what kept it was not seen");
		return;
	}
	f = begin(x, g, "long-callback");
	if (hot && !(g->is_joined && tacho__where_joined(x, f, causes, count, index)))
		tacho__where_function(x, f, hot);
	if (!f->where_count && g->worst->kind)
		tacho__where_id(x, f, g->worst->kind, g->worst->last_ns);
	tacho__say_summary(f, "%s keeps its loop busy for up to %s%s%s", callback(x, name, g),
			   tacho__ns_text(ns, (double)g->longest_ns),
			   hot && f->where_count ? ", in " : "; what it did was not seen",
			   hot && f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "Split the work, or give it to a pool of threads, so that other "
			     "callbacks of the loop can run in between.");
	show(f, g, name);
}

/* A note says who waited; there is nothing to do about it. */
static const char *blocked_advice(const struct tacho__cause *g, const char *advice)
{
	if (g->severity > TACHO__SEVERITY_INFO)
		return advice;
	return g->several
		       ? "Other threads serve the rest meanwhile: only what this one serves waits."
		       : "Its only client waits for it; nobody else does.";
}

/* A loop that is run in the middle of another's turn waits as a call does. */
static const char *call_text(const struct tacho__explaining *x, char out[2 * TACHO__TEXT],
			     uint32_t id)
{
	const struct tacho_definition *d = tacho_read_definition(x->reader, x->process, id);
	char name[TACHO__TEXT];
	int is_loop = d && d->def_class == TACHO_DEF_LOOP;

	snprintf(out, 2 * TACHO__TEXT, is_loop ? "a wait of another loop (%s)" : "%s",
		 tacho__id_text(x, name, x->process, id));
	return out;
}

static void find_call(struct tacho__explaining *x, const struct tacho__cause *g)
{
	const struct tacho__owned *o = g->worst;
	struct tacho__finding *f = begin(x, g, "blocking-call");
	char ns[TACHO__TEXT], name[TACHO__TEXT], call[2 * TACHO__TEXT], where[2 * TACHO__TEXT];

	if (o->place)
		tacho__where_id(x, f, o->place, o->last_ns);
	else if (o->code)
		tacho__where_code(x, f, o->code, o->last_ns);
	if (!f->where_count && o->kind)
		tacho__where_id(x, f, o->kind, o->last_ns);
	call_text(x, call, o->name);
	tacho__say_summary(f, "%s blocks its loop for up to %s in %s%s%s", callback(x, name, g),
			   tacho__ns_text(ns, (double)o->longest_ns), call,
			   f->where_count ? ", called by " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "%s",
			  blocked_advice(g, "Call it from a pool of threads, or use what the loop "
					    "offers instead of it: while it waits, nothing else on "
					    "this loop runs."));
	show(f, g, call);
}

static void find_lock(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, "lock-contention");
	const struct tacho__owned *o = g->worst, *k = tacho__keeper(x, g);
	char ns[TACHO__TEXT], name[TACHO__TEXT], holder[TACHO__TEXT], where[2 * TACHO__TEXT];

	f->lock = o->lock;
	if (k)
		tacho__where_id(x, f, k->held_place, o->last_ns);
	callback(x, name, g);
	tacho__ns_text(ns, (double)o->longest_ns);
	if (k && f->where_count)
		tacho__say_summary(f, "%s waits up to %s for a lock that %s holds in %s", name, ns,
				   tacho__thread_text(x, holder, x->process, k->holder),
				   tacho__where_text(where, f));
	else
		tacho__say_summary(f, "%s waits up to %s for a lock; who holds it was not seen",
				   name, ns);
	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__say_advice(f, "Hold the lock for a shorter time: do what takes long before or "
			     "after, split the lock, or copy what it protects.");
	show(f, g, "the longest wait");
	if (k)
		tacho__say_evidence(f, k->holder, o->longest_at_ns,
				    o->longest_at_ns + o->longest_ns, 0, "", "released by %s",
				    tacho__thread_text(x, holder, x->process, k->holder));
}

/*
 * Nobody holds what it waits for: it asked another thread for something, and waits until then; or it
 * sleeps, as Java's threads do at a condition that nobody signals.
 */
static void find_signal(struct tacho__explaining *x, const struct tacho__cause *g)
{
	const struct tacho__owned *o = g->worst;
	struct tacho__finding *f = begin(x, g, "blocking-call");
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	int sleeps = 2 * o->gave_up_ns > o->ns;

	f->pool = 2 * o->room_ns > o->ns ? o->room_of : 0;
	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__say_summary(
		f, "%s blocks its loop for up to %s, %s%s%s", callback(x, name, g),
		tacho__ns_text(ns, (double)o->longest_ns),
		sleeps ? "sleeping until a time-out" : "waiting for another thread to signal it",
		f->where_count ? ", in " : "", f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "%s",
			  blocked_advice(g, sleeps ? "Use a timer of the loop instead: while it "
						     "sleeps, nothing else on this loop runs."
						   : "Return to the loop, and let the other thread "
						     "tell it when it is done (uv_async_send, "
						     "event_active, an eventfd): while it waits, "
						     "nothing else on this loop runs."));
	show(f, g, "the longest wait");
}

static void find_sched(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, "kernel-scheduling-delay");
	char ns[TACHO__TEXT], name[TACHO__TEXT], all[TACHO__TEXT];

	tacho__say_summary(f,
			   "the kernel does not run %s when it could: %s in %llu times of up to %s",
			   tacho__thread_text(x, name, x->process, f->thread),
			   tacho__ns_text(all, (double)g->ns), (unsigned long long)g->count,
			   tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Other threads or processes take its CPU: give it more CPUs or a "
			     "higher priority, pin it, or move its neighbours elsewhere.");
	show(f, g, "the longest time without a CPU");
	if (g->own_ns)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)g->own_ns, "ns",
				    "for %s of that, threads of the process itself had the CPUs",
				    tacho__ns_text(ns, (double)g->own_ns));
}

static void find_pause(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, "process-pause");
	char ns[TACHO__TEXT];

	f->once = g->severity < TACHO__SEVERITY_CRITICAL;
	tacho__say_summary(f,
			   "nothing of the process ran for up to %s: it was stopped, or waited in "
			   "the kernel where tacho does not see why",
			   tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Look for SIGSTOP, a debugger, a frozen cgroup, a snapshot of the "
			     "machine, a clock that jumped, fork of a large process, or page "
			     "faults that read from disk at that time.");
	show(f, g, "the longest");
}

static void find_faults(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, "process-pause");
	char ns[TACHO__TEXT], name[TACHO__TEXT];

	f->once = g->severity < TACHO__SEVERITY_CRITICAL;
	tacho__say_summary(f, "%s waits up to %s for pages that the kernel reads from a disk",
			   callback(x, name, g), tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Its memory is not all there: give the machine or the cgroup more of "
			     "it, keep it off the swap (mlock), or read files that are mapped "
			     "before they are needed, from a pool of threads.");
	show(f, g, "the longest");
}

/* ---------------------------------------------------------------------- stops */

const char *tacho__stopped_by(enum tacho__owns_reason reason)
{
	return reason == TACHO__STOPPED_TRACED	 ? "a debugger"
	       : reason == TACHO__STOPPED_FROZEN ? "the freezer of its cgroup"
						 : "a signal";
}

static void say_stops(struct tacho__finding *f, enum tacho__owns_reason reason, uint64_t count,
		      uint64_t longest_ns, const char *more)
{
	char ns[TACHO__TEXT];

	tacho__ns_text(ns, (double)longest_ns);
	if (count > 1)
		tacho__say_summary(f, "the process was stopped by %s, %llu times for up to %s%s",
				   tacho__stopped_by(reason), (unsigned long long)count, ns, more);
	else
		tacho__say_summary(f, "the process was stopped by %s for %s%s",
				   tacho__stopped_by(reason), ns, more);
	tacho__say_advice(
		f, reason == TACHO__STOPPED_TRACED
			   ? "A debugger or tracer (gdb, strace) was attached to it: nothing of it "
			     "runs until that lets it go on."
		   : reason == TACHO__STOPPED_FROZEN
			   ? "Look for who froze its cgroup (docker pause, systemctl freeze, a "
			     "snapshot): nothing of it runs until that is thawed."
			   : "Look for who sends SIGSTOP or SIGTSTP: a terminal, a supervisor, a "
			     "tool that limits its CPU time. Nothing of it runs until SIGCONT.");
}

/* Told by somebody who saw it from outside. */
static int is_stop(const struct tacho__cause *g)
{
	return g->worst->owns == TACHO__OWNS_STOPPED && g->worst->reason;
}

static void find_stops(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, "process-pause");

	f->once = (double)g->count < tacho__limit(x, "stall.count");
	say_stops(f, g->worst->reason, g->count, g->longest_ns, ", while work waited for it");
	show(f, g, "the longest");
}

/* Where nothing of what waits is seen, all of it may have waited. */
static enum tacho__severity severity_of_stops(const struct tacho__explaining *x,
					      const struct tacho__ledger_stops *s)
{
	const struct tacho__ledger *l = x->out->ledger;

	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == x->process && l->threads[i].is_loop)
			return TACHO__SEVERITY_INFO;
	return (double)s->count >= tacho__limit(x, "stall.count") &&
			       100 * (double)s->ns >=
				       tacho__limit(x, "lost.share") * tacho__window_ns(x)
		       ? TACHO__SEVERITY_WARNING
		       : TACHO__SEVERITY_INFO;
}

/* Stops of which the ledger does not say that something waited. */
static void find_other_stops(struct tacho__explaining *x)
{
	const struct tacho__ledger_stops *s = &x->out->ledger->stops[x->process];
	enum tacho__severity severity = severity_of_stops(x, s);
	struct tacho__finding *f;
	char ns[TACHO__TEXT];

	if (!s->count)
		return;
	f = tacho__find(x, "process-pause", severity, x->process, (double)s->ns);
	say_stops(f, s->reason, s->count, s->longest_ns,
		  severity == TACHO__SEVERITY_INFO ? "; nothing was seen to wait for it"
						   : "; what waited for it meanwhile was not seen");
	tacho__say_evidence(f, 0, s->longest_at_ns, s->longest_at_ns + s->longest_ns,
			    (double)s->longest_ns, "ns", "the longest took %s",
			    tacho__ns_text(ns, (double)s->longest_ns));
	if (s->count > 1)
		tacho__say_evidence(f, 0, s->first_ns, s->to_ns, (double)s->ns, "ns",
				    "%llu times, %s in all", (unsigned long long)s->count,
				    tacho__ns_text(ns, (double)s->ns));
}

void tacho__rules_ledger(struct tacho__explaining *x)
{
	struct tacho__cause *causes = calloc(TACHO__CAUSES, sizeof(*causes));
	uint32_t n = causes ? tacho__causes(x, causes) : 0;
	int stops = 0;

	if (!causes)
		x->error = -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tacho__cause *g = &causes[i];

		if (!g->severity)
			continue;
		if (g->owns == TACHO__OWNS_CODE)
			find_code(x, causes, n, i);
		else if (g->owns == TACHO__OWNS_CALL)
			find_call(x, g);
		else if (g->owns == TACHO__OWNS_LOCK && g->worst->is_signal)
			find_signal(x, g);
		else if (g->owns == TACHO__OWNS_LOCK)
			find_lock(x, g);
		else if (g->owns == TACHO__OWNS_DESCHEDULED)
			find_sched(x, g);
		else if (g->owns == TACHO__OWNS_FAULTING)
			find_faults(x, g);
		else if (is_stop(g))
			find_stops(x, g);
		else
			find_pause(x, g);
		stops |= is_stop(g);
	}
	if (!stops)
		find_other_stops(x);
	free(causes);
	tacho__consider_owners(x);
}
