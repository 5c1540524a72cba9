/* Waits that are short, and many. */
#include <string.h>

#include "explain/rules.h"

#define SHORT_ONES 3 /* times the share of the window that long ones must take */

/*
 * Threads of pools idle inside a library that waits for a condition; recorders before this one
 * did not tell that from waiting for a lock.
 */
int tacho__idles(const struct tacho__explaining *x, const struct tacho__lock *l)
{
	static const char *const names[] = {"cond_wait", "cond_timedwait", "sem_wait"};
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(x->reader, l->at.process, l->stack ? l->stack : l->place,
					 l->end_ns, places, TACHO__PLACES_MAX);

	if (l->is_signal)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (strstr(places[i].function, names[k]))
				return 1;
	return 0;
}

/* Waits for a lock that are each short, or on threads without a loop, but many. */
static void find_busy_lock(struct tacho__explaining *x, const struct tacho__lock_sum *k)
{
	double window = tacho__window_ns(x), inside = 100.0 * (double)k->inside.sum / window;
	double any = 100.0 * (double)k->ns.sum / window;
	const struct tacho__lock *l = k->worst.count ? &k->worst.at[0] : &k->worst_any.at[0];
	char ns[TACHO__TEXT], all[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f;

	/* Condition variables and semaphores are what idle threads wait for. */
	if (k->is_signal || !k->worst_any.count || k->ns.count < 10)
		return;
	if (inside < SHORT_ONES * tacho__limit(x, "blocked.share") &&
	    (any < tacho__limit(x, "lock-contention.share") || tacho__idles(x, l)))
		return;
	for (uint32_t i = 0; i < x->out->count; i++)
		if (x->out->findings[i].lock == k->lock &&
		    x->out->findings[i].process == k->process)
			return;
	f = tacho__find(x, "lock-contention", TACHO__SEVERITY_WARNING, k->process,
			(double)(inside > 0 ? k->inside.sum : k->ns.sum));
	f->lock = k->lock;
	f->loop = l->at.loop;
	f->thread = l->at.thread;
	if (l->release_ns)
		tacho__where_id(x, f, l->release_place, l->end_ns);
	tacho__where_id(x, f, l->stack ? l->stack : l->place, l->end_ns);
	tacho__say_summary(f, "threads wait %s in all for one lock, %llu times, up to %s each%s%s",
			   tacho__ns_text(all, (double)k->ns.sum), (unsigned long long)k->ns.count,
			   tacho__ns_text(ns, (double)k->ns.most),
			   f->where_count ? "; it is held longest in " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f,
			  "Hold it for a shorter time, split it, or let each thread have its own "
			  "copy of what it protects.");
	tacho__say_evidence(f, l->at.thread, l->begin_ns, l->end_ns,
			    (double)(l->end_ns - l->begin_ns), "ns", "the longest wait took %s",
			    tacho__ns_text(ns, (double)(l->end_ns - l->begin_ns)));
}

static void find_busy_call(struct tacho__explaining *x, const struct tacho__call_sum *k)
{
	double share = 100.0 * (double)k->ns.sum / tacho__window_ns(x);
	const struct tacho__call *c = &k->worst.at[0];
	char ns[TACHO__TEXT], name[TACHO__TEXT], all[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f;

	if (!k->worst.count || !c->at.poll_ns ||
	    share < SHORT_ONES * tacho__limit(x, "blocked.share") || k->ns.count < 10)
		return;
	f = tacho__find(x, "blocking-call", TACHO__SEVERITY_WARNING, k->process, (double)k->ns.sum);
	f->loop = c->at.loop;
	f->kind = c->at.kind;
	f->thread = c->at.thread;
	tacho__where_id(x, f, k->stack, c->end_ns);
	tacho__say_summary(f, "%s blocks the loop %llu times, for %s in all, up to %s each%s%s",
			   tacho__id_text(x, name, k->process, k->name),
			   (unsigned long long)k->ns.count, tacho__ns_text(all, (double)k->ns.sum),
			   tacho__ns_text(ns, (double)k->ns.most),
			   f->where_count ? ", called by " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "Call it from a pool of threads: while it waits, nothing else on this "
			     "loop runs.");
	tacho__say_evidence(f, c->at.thread, c->begin_ns, c->end_ns,
			    (double)(c->end_ns - c->begin_ns), "ns", "the longest took %s", ns);
}

static int call_is_known(const struct tacho__explaining *x, const struct tacho__call_sum *k)
{
	struct tacho__place place = tacho__own_place(x, k->process, k->stack, x->sum->last_ns);

	for (uint32_t i = 0; i < x->out->count; i++) {
		const struct tacho__finding *f = &x->out->findings[i];

		if (strcmp(f->rule, "blocking-call") == 0 && f->process == k->process &&
		    f->where_count && strcmp(f->where[0].function, place.function) == 0)
			return 1;
	}
	return 0;
}

void tacho__rules_short(struct tacho__explaining *x)
{
	for (const struct tacho__lock_sum *k = NULL; (k = tacho__table_next(&x->sum->locks, k));)
		find_busy_lock(x, k);
	for (const struct tacho__call_sum *k = NULL; (k = tacho__table_next(&x->sum->calls, k));) {
		if (!call_is_known(x, k))
			find_busy_call(x, k);
	}
}
