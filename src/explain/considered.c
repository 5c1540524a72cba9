/* What was looked at and is no finding, and why. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain/causes.h"

static int comes_before(const struct tacho__considered *a, const struct tacho__considered *b)
{
	if (a->waiting_ns > b->waiting_ns || a->waiting_ns < b->waiting_ns)
		return a->waiting_ns > b->waiting_ns;
	return a->cost_ns > b->cost_ns;
}

/* Those with most waiting are kept, in that order; then those that took most time. */
static void keep(struct tacho__explanation *e, const struct tacho__considered *c, double window_ns)
{
	uint32_t at = e->considered_count;

	double size_ns = c->cost_ns > c->waiting_ns ? c->cost_ns : c->waiting_ns;

	/* What has no size in time is not small. */
	if (size_ns > 0 && size_ns < window_ns * tacho__negligible_share)
		return;
	if (at == TACHO__CONSIDERED) {
		e->considered_more++;
		if (!comes_before(c, &e->considered[at - 1]))
			return;
		at--;
	} else {
		e->considered_count++;
	}
	for (; at && comes_before(c, &e->considered[at - 1]); at--)
		e->considered[at] = e->considered[at - 1];
	e->considered[at] = *c;
}

void tacho__consider(const struct tacho__explaining *x, enum tacho__rule_id rule, const char *what,
		     double cost_ns, double waiting_ns, const char *format, ...)
{
	struct tacho__considered c = {
		.rule = rule, .process = x->process, .cost_ns = cost_ns, .waiting_ns = waiting_ns};
	va_list list;

	snprintf(c.what, sizeof(c.what), "%s", what);
	va_start(list, format);
	vsnprintf(c.reason, sizeof(c.reason), format, list);
	va_end(list);
	keep(x->out, &c, tacho__window_ns(x));
}

static const char *value_text(char out[TACHO__TEXT], enum tacho__unit unit, double value)
{
	if (unit == TACHO__UNIT_NS)
		return tacho__ns_text(out, value);
	snprintf(out, TACHO__TEXT, "%.3g%s", value, tacho__unit_text(unit));
	return out;
}

int tacho__below(const struct tacho__explaining *x, enum tacho__rule_id rule, const char *what,
		 double cost_ns, double value, enum tacho__limit_id limit)
{
	const struct tacho__threshold *t = &tacho__thresholds[limit];
	double least = tacho__limit_of(x, limit);
	char is[TACHO__TEXT], of[TACHO__TEXT];

	if (value >= least)
		return 0;
	if (value * tacho__near_times >= least && value > 0)
		tacho__consider(x, rule, what, cost_ns, 0, "%s is below %s, %s",
				value_text(is, t->unit, value), t->name,
				value_text(of, t->unit, least));
	return 1;
}

/* ------------------------------------------------------------------- of the ledger */

static enum tacho__rule_id rule_of(enum tacho__owns owns, enum tacho__owns_reason reason)
{
	switch (owns) {
	case TACHO__OWNS_CODE:
		return TACHO__RULE_LONG_CALLBACK;
	case TACHO__OWNS_CALL:
		return TACHO__RULE_BLOCKING_CALL;
	case TACHO__OWNS_LOCK:
		return TACHO__RULE_LOCK_CONTENTION;
	case TACHO__OWNS_STOPPED:
	case TACHO__OWNS_FAULTING:
		return TACHO__RULE_PROCESS_PAUSE;
	case TACHO__OWNS_THROTTLED:
		return TACHO__RULE_CPU_THROTTLED;
	case TACHO__OWNS_RECORDER:
	case TACHO__OWNS_NOT_OBSERVED:
		return TACHO__RULE_RECORDER_LOSS;
	default:
		return reason == TACHO__LATE_TIMER   ? TACHO__RULE_TIMER_LATE
		       : reason == TACHO__LATE_WOKEN ? TACHO__RULE_WAKE_LATENCY
		       : reason == TACHO__LATE_QUOTA ? TACHO__RULE_CPU_THROTTLED
						     : TACHO__RULE_KERNEL_SCHEDULING_DELAY;
	}
}

/* In the words of the ledger: "call nanosleep at flush (log.c:12): 12 times of up to 3.1 ms". */
static void owner_text(const struct tacho__explaining *x, char *out, size_t size,
		       const struct tacho__owned *o, const struct tacho__function *f,
		       uint64_t count, uint64_t longest_ns)
{
	const struct tacho__ledger *l = x->out->ledger;
	const struct tacho__ledger_line line = {.owns = o->owns,
						.thread = o->thread,
						.owned = o->entry.index + 1,
						.function = f ? f->entry.index + 1 : 0};
	char key[2 * TACHO__TEXT], where[2 * TACHO__TEXT] = "", ns[TACHO__TEXT];
	struct tacho__place place;

	tacho__ledger_key(l, &line, key, sizeof(key));
	if (o->owns != TACHO__OWNS_CODE && tacho__ledger_place(l, &line, &place))
		tacho__place_text(where, &place);
	snprintf(out, size, "%s%s%s%s%s: %llu times of up to %s", tacho__owns_name(o->owns),
		 key[0] ? " " : "", key, where[0] ? " at " : "", where, (unsigned long long)count,
		 tacho__ns_text(ns, (double)longest_ns));
}

void tacho__drop_cause(const struct tacho__explaining *x, const struct tacho__cause *g,
		       const char *format, ...)
{
	char what[TACHO__SUMMARY_MAX], why[TACHO__SUMMARY_MAX];
	uint64_t count = 0, ns = 0, waiting = 0, longest = 0;
	va_list list;

	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		longest = g->size[i].longest_ns > longest ? g->size[i].longest_ns : longest;
		count += g->size[i].count;
		ns += g->size[i].ns;
		waiting += g->size[i].waiting_ns;
	}
	/* What belongs to another cause is considered there. */
	if (!count)
		return;
	va_start(list, format);
	vsnprintf(why, sizeof(why), format, list);
	va_end(list);
	owner_text(x, what, sizeof(what), g->worst, g->function, count, longest);
	tacho__consider(x, rule_of(g->owns, g->worst->reason), what, (double)ns, (double)waiting,
			"%s", why);
}

void tacho__drop_small(const struct tacho__explaining *x, const struct tacho__cause *g,
		       double share, double lost)
{
	if (!g->count)
		tacho__drop_cause(x, g, "each took less than %s",
				  g->from > 1 ? "10 ms: that is load" : "1 ms");
	else if (!tacho__may_add_up(x, g))
		tacho__drop_cause(
			x, g,
			"what waited is %.2g %% of the window (waiting.share %g), it took "
			"50 ms or longer %llu times (stall.count %g), and %.2g %% of the "
			"capacity (lost.share %g)",
			share, TACHO__LIMIT(x, WAITING_SHARE),
			(unsigned long long)g->size[TACHO__SIZES - 1].count,
			TACHO__LIMIT(x, STALL_COUNT), lost, TACHO__LIMIT(x, LOST_SHARE));
}

/* What the kernel does to each process is no cause that they have in common. */
int tacho__may_add_up(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	int is_own = g->owns == TACHO__OWNS_CODE || g->owns == TACHO__OWNS_CALL ||
		     g->owns == TACHO__OWNS_LOCK;

	return x->out->process_count > 1 && is_own && g->several && g->count && g->ns &&
	       !tacho__is_go(x) &&
	       (g->size[TACHO__SIZES - 1].count ||
		(double)(g->waiting_ns + g->ns) >= tacho__window_ns(x) * tacho__negligible_share);
}

void tacho__consider_small(const struct tacho__explaining *x, const struct tacho__finding *f,
			   double window_ns)
{
	struct tacho__considered c = {.rule = f->rule,
				      .process = f->process,
				      .cost_ns = f->cost_ns,
				      .waiting_ns = f->waiting_ns};

	snprintf(c.what, sizeof(c.what), "%s", f->summary);
	snprintf(c.reason, sizeof(c.reason),
		 "what waited in %u processes is %.2g %% of the window (waiting.share %g), and it "
		 "took "
		 "50 ms or longer %llu times (stall.count %g)",
		 f->spread.processes, 100 * (f->waiting_ns - f->served_ns) / window_ns,
		 TACHO__LIMIT(x, WAITING_SHARE), (unsigned long long)f->stalls,
		 TACHO__LIMIT(x, STALL_COUNT));
	keep(x->out, &c, window_ns);
}

/* Why an owner is no cause, whatever it costs; NULL: it is one, or has nothing to say. */
static const char *no_cause(const struct tacho__ledger *l, const struct tacho__owned *o)
{
	const struct tacho__ledger_thread *t = &l->threads[o->thread];

	if (o->work_place_ns)
		return "it is where its thread waits for work";
	switch (o->owns) {
	case TACHO__OWNS_LATE:
		return o->reason == TACHO__LATE_RUNNABLE || o->reason == TACHO__LATE_STOPPED
			       ? NULL
			       : "that rule tells of it by its own numbers";
	case TACHO__OWNS_THROTTLED:
		return "that rule tells of it by its own numbers";
	case TACHO__OWNS_RECORDER:
		return "it is tacho's own time";
	case TACHO__OWNS_NOT_OBSERVED:
		return "what was done then is not known";
	case TACHO__OWNS_CODE:
		if (t->is_loop && !o->size[1].count && !o->size[2].count && !o->size[3].count)
			return "each took less than 1 ms";
		break;
	default:
		break;
	}
	return t->is_pool && !tacho__may_be_cause(l, o) && o->owns != TACHO__OWNS_IDLE
		       ? "threads of a pool are there for what takes long; pool-exhausted tells "
			 "when "
			 "work waits for them"
		       : NULL;
}

void tacho__consider_owners(const struct tacho__explaining *x)
{
	const struct tacho__ledger *l = x->out->ledger;

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		const char *why = o->process == x->process ? no_cause(l, o) : NULL;
		char what[TACHO__SUMMARY_MAX];

		if (!why || (!o->ns && !o->work_place_ns))
			continue;
		owner_text(x, what, sizeof(what), o, NULL, o->count, o->longest_ns);
		tacho__consider(x, rule_of(o->owns, o->reason), what,
				(double)(o->ns + o->work_place_ns), (double)o->waiting_ns, "%s",
				why);
	}
}
