/* What was looked at and is no finding, and why. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain/causes.h"

#define LOST_WEIGHT 10 /* as findings are ranked */
/* What is further below a threshold, or a smaller part of the window, is not worth a word. */
#define NEAR 10
#define SMALL 1000

static double rank_of(const struct tacho__considered *c)
{
	return c->waiting_ns + c->cost_ns / LOST_WEIGHT;
}

/* The costliest are kept, costliest first. */
void tacho__consider(const struct tacho__explaining *x, const char *rule, const char *what,
		     double cost_ns, double waiting_ns, const char *format, ...)
{
	struct tacho__explanation *e = x->out;
	struct tacho__considered c = {
		.rule = rule, .process = x->process, .cost_ns = cost_ns, .waiting_ns = waiting_ns};
	uint32_t at = e->considered_count;
	double least = tacho__window_ns(x) / SMALL;
	va_list list;

	if (cost_ns < least && waiting_ns < least)
		return;
	if (at == TACHO__CONSIDERED) {
		e->considered_more++;
		if (rank_of(&c) <= rank_of(&e->considered[at - 1]))
			return;
		at--;
	} else {
		e->considered_count++;
	}
	snprintf(c.what, sizeof(c.what), "%s", what);
	va_start(list, format);
	vsnprintf(c.reason, sizeof(c.reason), format, list);
	va_end(list);
	for (; at && rank_of(&c) > rank_of(&e->considered[at - 1]); at--)
		e->considered[at] = e->considered[at - 1];
	e->considered[at] = c;
}

static const char *value_text(char out[TACHO__TEXT], const char *unit, double value)
{
	if (strcmp(unit, "ns") == 0)
		return tacho__ns_text(out, value);
	snprintf(out, TACHO__TEXT, "%.3g%s", value,
		 strcmp(unit, "%") == 0		   ? " %"
		 : strcmp(unit, "per-second") == 0 ? "/s"
						   : "");
	return out;
}

int tacho__below(const struct tacho__explaining *x, const char *rule, const char *what,
		 double cost_ns, double value, const char *limit)
{
	double least = tacho__limit(x, limit);
	char is[TACHO__TEXT], of[TACHO__TEXT];
	const char *unit = "";

	if (value >= least)
		return 0;
	for (uint32_t i = 0; i < tacho__threshold_count; i++)
		if (strcmp(tacho__thresholds[i].name, limit) == 0)
			unit = tacho__thresholds[i].unit;
	if (value * NEAR >= least && value > 0)
		tacho__consider(x, rule, what, cost_ns, 0, "%s is below %s, %s",
				value_text(is, unit, value), limit, value_text(of, unit, least));
	return 1;
}

/* ------------------------------------------------------------------- of the ledger */

static const char *rule_of(enum tacho__owns owns, enum tacho__owns_reason reason)
{
	switch (owns) {
	case TACHO__OWNS_CODE:
		return "long-callback";
	case TACHO__OWNS_CALL:
		return "blocking-call";
	case TACHO__OWNS_LOCK:
		return "lock-contention";
	case TACHO__OWNS_STOPPED:
	case TACHO__OWNS_FAULTING:
		return "process-pause";
	case TACHO__OWNS_THROTTLED:
		return "cpu-throttled";
	case TACHO__OWNS_RECORDER:
	case TACHO__OWNS_NOT_OBSERVED:
		return "recorder-loss";
	default:
		return reason == TACHO__LATE_TIMER   ? "timer-late"
		       : reason == TACHO__LATE_WOKEN ? "wake-latency"
		       : reason == TACHO__LATE_QUOTA ? "cpu-throttled"
						     : "kernel-scheduling-delay";
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
	uint64_t count = 0, ns = 0, waiting = 0;
	va_list list;

	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
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
	owner_text(x, what, sizeof(what), g->worst, g->function, count, g->longest_ns);
	tacho__consider(x, rule_of(g->owns, g->worst->reason), what, (double)ns, (double)waiting,
			"%s", why);
}

void tacho__drop_small(const struct tacho__explaining *x, const struct tacho__cause *g,
		       double share, double lost)
{
	if (!g->count)
		tacho__drop_cause(x, g, "each took less than %s",
				  g->from > 1 ? "10 ms: that is load" : "1 ms");
	else
		tacho__drop_cause(
			x, g,
			"what waited is %.2g %% of the window (waiting.share %g), it took "
			"50 ms or longer %llu times (stall.count %g), and %.2g %% of the "
			"capacity (lost.share %g)",
			share, tacho__limit(x, "waiting.share"),
			(unsigned long long)g->size[TACHO__SIZES - 1].count,
			tacho__limit(x, "stall.count"), lost, tacho__limit(x, "lost.share"));
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
