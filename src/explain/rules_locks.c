/* Locks that threads without loops wait for, of whose time the ledger has no account. */
#include <stdio.h>
#include <string.h>

#include "explain/rules.h"

/*
 * Threads of pools idle inside a library that waits for a condition; recorders before this one
 * did not tell that from waiting for a lock.
 */
int tacho__idles(const struct tacho_reader *reader, const struct tacho__lock *l)
{
	static const char *const names[] = {"cond_wait", "cond_timedwait", "sem_wait"};
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(reader, l->at.process, l->stack ? l->stack : l->place,
					 l->end_ns, places, TACHO__PLACES_MAX);

	if (l->is_signal)
		return 1;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (strstr(places[i].function, names[k]))
				return 1;
	return 0;
}

static void find_crowded(struct tacho__explaining *x, const struct tacho__lock_sum *k)
{
	double outside =
		(double)(k->ns.sum - (k->inside.sum < k->ns.sum ? k->inside.sum : k->ns.sum));
	double share = 100.0 * outside / tacho__window_ns(x);
	const struct tacho__lock *l = &k->worst_any.at[0];
	char ns[TACHO__TEXT], all[TACHO__TEXT], where[2 * TACHO__TEXT];
	struct tacho__finding *f;

	/* Condition variables and semaphores are what idle threads wait for. */
	if (k->is_signal || !k->worst_any.count || k->ns.count < tacho__crowd_waits ||
	    tacho__idles(x->reader, l))
		return;
	snprintf(all, sizeof(all), "threads wait for lock 0x%llx", (unsigned long long)k->lock);
	if (tacho__below(x, TACHO__RULE_LOCK_CONTENTION, all, outside, share,
			 TACHO__LIMIT_LOCK_CONTENTION_SHARE))
		return;
	for (uint32_t i = 0; i < x->out->count; i++)
		if (x->out->findings[i].lock == k->lock && x->out->findings[i].severity &&
		    x->out->findings[i].process == k->process)
			return;
	f = tacho__find(x, TACHO__RULE_LOCK_CONTENTION, TACHO__SEVERITY_WARNING, k->process,
			outside);
	tacho__measured(x, f,
			&(struct tacho__measure){.count = k->ns.count,
						 .longest_ns = k->ns.most,
						 .total_ns = k->ns.sum});
	f->waiting_ns = outside;
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

void tacho__rules_locks(struct tacho__explaining *x)
{
	for (const struct tacho__lock_sum *k = NULL; (k = tacho__table_next(&x->sum->locks, k));)
		find_crowded(x, k);
}
