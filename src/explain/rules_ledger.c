/* Who keeps things waiting: what is said of the causes that the ledger has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/causes.h"
#include "explain/chain.h"

/* Causes of a process that are too small by themselves, and are kept to be added to those of others. */
#define SMALL_ONES 16u
#define STOPPED_BY 256u /* subjects of process-pause: by what, beside the owners of time */

static uint32_t threads_of(const struct tacho__cause *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TACHO__CAUSE_THREADS; i++)
		n += g->threads[i / 64] >> i % 64 & 1;
	return n;
}

/* Told by somebody who saw it from outside. */
static int is_stop(const struct tacho__cause *g)
{
	return g->worst->owns == TACHO__OWNS_STOPPED && g->worst->reason;
}

/* It happens on a thread of a pool, which has no loop. */
static int is_of_pool(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	return !x->out->ledger->threads[g->worst->thread].is_loop;
}

static struct tacho__finding *begin(struct tacho__explaining *x, const struct tacho__cause *g,
				    enum tacho__rule_id rule)
{
	struct tacho__finding *f = tacho__find(x, rule, g->severity, x->process, (double)g->ns);
	int is_blocked = g->owns == TACHO__OWNS_CALL || g->owns == TACHO__OWNS_LOCK;

	/* What a blocked thread serves waits as well. */
	f->served_ns = is_blocked && g->several ? (double)g->ns : 0;
	f->waiting_ns = (double)(g->waiting_ns + g->served_ns) + f->served_ns;
	f->stalls = g->size[TACHO__SIZES - 1].count;
	f->loop = g->worst->loop;
	if (is_blocked || g->owns == TACHO__OWNS_CODE)
		f->kind = g->worst->kind;
	else
		f->subject = is_stop(g) ? STOPPED_BY + g->worst->reason : g->owns;
	f->thread = x->out->ledger->threads[g->worst->thread].thread;
	if (is_of_pool(x, g))
		f->pool = x->out->ledger->threads[g->worst->thread].pool;
	tacho__measured(x, f,
			&(struct tacho__measure){.count = g->count,
						 .longest_ns = g->longest_ns,
						 .total_ns = g->ns,
						 .threads = threads_of(g),
						 .is_sum = g->worst->is_sum});
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
	if (is_of_pool(x, g) && !g->worst->kind)
		return strcpy(out, "work of a pool");
	return tacho__callback_text(x, out, &p);
}

/* What it keeps: its loop, or a thread that has none. */
static const char *kept_text(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	return is_of_pool(x, g) ? "its thread" : "its loop";
}

/* For the rest of the time that it kept its loop, others had the CPU, or it was blocked. */
static int ran_for_a_part(const struct tacho__cause *g)
{
	return g->owns == TACHO__OWNS_CODE && g->wall_ns - g->longest_ns > g->longest_ns / 4;
}

/* Its numbers are those of the measure, whatever rule it is of. */
static void show(struct tacho__finding *f, const struct tacho__cause *g, const char *what)
{
	const struct tacho__measure *m = &f->measure;
	char ns[TACHO__TEXT], all[TACHO__TEXT], sum[TACHO__TEXT];

	tacho__say_evidence(f, f->thread, g->longest_at_ns, g->longest_at_ns + g->wall_ns,
			    (double)m->longest_ns, "ns", "%s %s %s%s", what,
			    ran_for_a_part(g) ? "ran for" : "took",
			    tacho__ns_text(ns, (double)m->longest_ns),
			    m->is_sum ? ", added up over one iteration or wait" : "");
	if (m->count > 1)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)m->total_ns,
				    "ns", "%llu times, %s in all", (unsigned long long)m->count,
				    tacho__ns_text(all, (double)m->total_ns));
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
	       (g->samples >= tacho__seen_samples &&
		(double)g->cpu_ns >= tacho__seen_share * (double)g->ns) ||
	       (g->size[3].count && (g->worst->kind || has_several(x, g)));
}

static void find_code(struct tacho__explaining *x, const struct tacho__cause *causes,
		      uint32_t count, uint32_t index)
{
	const struct tacho__cause *g = &causes[index];
	char ns[TACHO__TEXT], wall[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	char part[4 * TACHO__TEXT];
	const struct tacho__function *hot = g->function;
	struct tacho__finding *f;

	if (!was_seen(x, g)) {
		tacho__drop_cause(x, g, "it hardly ran, and what kept it was not seen");
		return;
	}
	f = begin(x, g, TACHO__RULE_LONG_CALLBACK);
	if (hot && !(g->is_joined && tacho__where_joined(x, f, causes, count, index)))
		tacho__where_function(x, f, hot);
	if (!f->where_count && g->worst->kind)
		tacho__where_id(x, f, g->worst->kind, g->worst->last_ns);
	callback(x, name, g);
	tacho__ns_text(ns, (double)f->measure.longest_ns);
	if (ran_for_a_part(g))
		snprintf(part, sizeof(part), "%s ran for up to %s of %s", name, ns,
			 tacho__ns_text(wall, (double)g->wall_ns));
	else
		snprintf(part, sizeof(part), "%s keeps %s busy for up to %s", name, kept_text(x, g),
			 ns);
	tacho__say_summary(f, "%s%s%s", part,
			   hot && f->where_count ? ", in " : "; what it did was not seen",
			   hot && f->where_count ? tacho__where_text(where, f) : "");
	if (hot && f->where_count)
		tacho__say_many(f, "%s keeps %c busy for up to %s", where, TACHO__WHO, ns);
	show(f, g, name);
}

/* A note says who waited; there is nothing to do about it. A thread of a pool has no loop to go back to. */
static void say_who_waits(const struct tacho__explaining *x, struct tacho__finding *f,
			  const struct tacho__cause *g)
{
	if (is_of_pool(x, g))
		tacho__say_advice(
			f, "Each thread that is blocked there is one less for all other work: "
			   "make it wait for less, with a time-out, or give such work a "
			   "pool of its own.");
	if (g->severity == TACHO__SEVERITY_INFO)
		tacho__say_advice(f, g->several
					     ? "Other threads serve the rest meanwhile: only what "
					       "this one serves waits."
					     : "Its only client waits for it; nobody else does.");
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
	struct tacho__finding *f = begin(x, g, TACHO__RULE_BLOCKING_CALL);
	char ns[TACHO__TEXT], name[TACHO__TEXT], call[2 * TACHO__TEXT], where[2 * TACHO__TEXT];

	if (o->place)
		tacho__where_id(x, f, o->place, o->last_ns);
	else if (o->code)
		tacho__where_code(x, f, o->code, o->last_ns);
	if (!f->where_count && o->kind)
		tacho__where_id(x, f, o->kind, o->last_ns);
	call_text(x, call, o->name);
	tacho__say_summary(f, "%s blocks %s for up to %s in %s%s%s", callback(x, name, g),
			   kept_text(x, g), tacho__ns_text(ns, (double)f->measure.longest_ns), call,
			   f->where_count ? ", called by " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_many(f, "%s blocks %c for up to %s in %s", f->where_count ? where : name,
			TACHO__WHO, ns, call);
	say_who_waits(x, f, g);
	show(f, g, call);
}

static void find_lock(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, TACHO__RULE_LOCK_CONTENTION);
	const struct tacho__owned *o = g->worst, *k = tacho__keeper(x, g);
	char ns[TACHO__TEXT], name[TACHO__TEXT], holder[TACHO__TEXT], where[2 * TACHO__TEXT];

	f->lock = o->lock;
	if (k)
		tacho__where_id(x, f, k->held_place, o->last_ns);
	callback(x, name, g);
	tacho__ns_text(ns, (double)f->measure.longest_ns);
	if (k && f->where_count)
		tacho__say_summary(f, "%s waits up to %s for a lock that %s holds in %s", name, ns,
				   tacho__thread_text(x, holder, x->process, k->holder),
				   tacho__where_text(where, f));
	else
		tacho__say_summary(f, "%s waits up to %s for a lock; who holds it was not seen",
				   name, ns);
	tacho__say_many(f, "%c wait up to %s for a lock%s%s", TACHO__WHO, ns,
			k && f->where_count ? " held in " : "; who holds it was not seen",
			k && f->where_count ? where : "");
	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__chain_owned(x, f, o, k);
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
	struct tacho__finding *f = begin(x, g, TACHO__RULE_BLOCKING_CALL);
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	int sleeps = 2 * o->gave_up_ns > o->ns;
	const char *how =
		sleeps ? "sleeping until a time-out" : "waiting for another thread to signal it";

	/* That it was not for work is known from what other threads did. */
	f->rests = TACHO__RESTS_ON_ALL;
	if (2 * o->room_ns > o->ns)
		f->pool = o->room_of;
	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__say_summary(f, "%s blocks %s for up to %s, %s%s%s", callback(x, name, g),
			   kept_text(x, g), tacho__ns_text(ns, (double)f->measure.longest_ns), how,
			   f->where_count ? ", in " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_many(f, "%s blocks %c for up to %s, %s", f->where_count ? where : name,
			TACHO__WHO, ns, how);
	tacho__say_advice(f, sleeps ? "Use a timer of the loop instead: while it sleeps, nothing "
				      "else on this loop runs."
				    : "Return to the loop, and let the other thread tell it when "
				      "it is done (uv_async_send, event_active, an eventfd): while "
				      "it waits, nothing else on this loop runs.");
	say_who_waits(x, f, g);
	show(f, g, "the longest wait");
}

static void find_sched(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, TACHO__RULE_KERNEL_SCHEDULING_DELAY);
	const struct tacho__measure *m = &f->measure;
	char ns[TACHO__TEXT], name[TACHO__TEXT], all[TACHO__TEXT], many[2 * TACHO__TEXT];

	tacho__thread_text(x, name, x->process, f->thread);
	if (m->threads > 1)
		snprintf(many, sizeof(many), "%u threads (%s most) when they could", m->threads,
			 name);
	else
		snprintf(many, sizeof(many), "%s when it could", name);
	tacho__say_summary(f, "the kernel does not run %s: %s in all, %llu times, up to %s%s", many,
			   tacho__ns_text(all, (double)m->total_ns), (unsigned long long)m->count,
			   tacho__ns_text(ns, (double)m->longest_ns),
			   m->is_sum ? " in one iteration or wait" : "");
	tacho__say_many(f, "the kernel does not run %c when they could, for up to %s%s", TACHO__WHO,
			ns, m->is_sum ? " in one iteration or wait" : "");
	show(f, g, m->is_sum ? "the most time without a CPU" : "the longest time without a CPU");
	if (g->own_ns)
		tacho__say_evidence(
			f, f->thread, g->first_ns, g->last_ns, (double)g->own_ns, "ns",
			"for %s of that in all, threads of the process itself had the CPUs",
			tacho__ns_text(ns, (double)g->own_ns));
}

static void find_pause(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, TACHO__RULE_PROCESS_PAUSE);
	char ns[TACHO__TEXT];

	f->once = g->severity < TACHO__SEVERITY_CRITICAL;
	f->rests = TACHO__RESTS_ON_ABSENCE;
	tacho__say_summary(f,
			   "nothing of the process ran for up to %s: it was stopped, or waited in "
			   "the kernel where tacho does not see why",
			   tacho__ns_text(ns, (double)f->measure.longest_ns));
	show(f, g, "the longest");
}

static void find_faults(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, TACHO__RULE_PROCESS_PAUSE);
	char ns[TACHO__TEXT], name[TACHO__TEXT];

	f->once = g->severity < TACHO__SEVERITY_CRITICAL;
	tacho__say_summary(f, "%s waits up to %s for pages that the kernel reads from a disk",
			   callback(x, name, g), tacho__ns_text(ns, (double)f->measure.longest_ns));
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

static void find_stops(struct tacho__explaining *x, const struct tacho__cause *g)
{
	struct tacho__finding *f = begin(x, g, TACHO__RULE_PROCESS_PAUSE);

	f->once = (double)g->count < TACHO__LIMIT(x, STALL_COUNT);
	say_stops(f, g->worst->reason, f->measure.count, f->measure.longest_ns,
		  ", while work waited for it");
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
	return (double)s->count >= TACHO__LIMIT(x, STALL_COUNT) &&
			       100 * (double)s->ns >=
				       TACHO__LIMIT(x, LOST_SHARE) * tacho__window_ns(x)
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
	f = tacho__find(x, TACHO__RULE_PROCESS_PAUSE, severity, x->process, (double)s->ns);
	f->subject = STOPPED_BY + s->reason;
	tacho__measured(x, f,
			&(struct tacho__measure){.count = s->count,
						 .longest_ns = s->longest_ns,
						 .total_ns = s->ns,
						 .threads = 1});
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
	uint32_t small = 0;
	int stops = 0;

	if (!causes)
		x->error = -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tacho__cause *g = &causes[i];

		if (!g->severity && (!tacho__may_add_up(x, g) || small++ == SMALL_ONES))
			continue;
		stops |= is_stop(g);
		if (!g->count || !g->ns) {
			tacho__drop_cause(x, g, "how long it took was not seen");
			continue;
		}
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
	}
	if (!stops)
		find_other_stops(x);
	free(causes);
	tacho__consider_owners(x);
}
