/* Tasks that wait for each other while loops idle, and tasks that are woken all at once. */
#include <string.h>

#include "explain/rules.h"

#define GROUPS 32u

/* Waits of tasks for locks of the same function. */
struct group {
	struct tacho__place place;
	const struct tacho__task_wait_sum *worst;
	uint64_t kept, kept_ns;
};

/* Whether the program waits there for a lock that tasks wait for; and where that is. */
static int is_task_lock(const struct tacho__explaining *x, const struct tacho__task_wait_sum *k,
			struct tacho__place *place)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = k->stack && !k->what
			     ? tacho__places_of_id(x->reader, k->process, k->stack,
						   k->longest_at_ns, places, TACHO__PLACES_MAX)
			     : 0;
	uint32_t own = tacho__places_own(places, n);

	if (own == n || !tacho__places_of_lock(places, own))
		return 0;
	*place = places[own];
	return 1;
}

static uint32_t group_waits(const struct tacho__explaining *x, struct group *groups)
{
	uint32_t count = 0;

	for (const struct tacho__task_wait_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->task_waits, k));) {
		struct tacho__place place;
		uint32_t i = 0;

		if (k->process != x->process || !k->kept || !is_task_lock(x, k, &place))
			continue;
		while (i < count && strcmp(groups[i].place.function, place.function) != 0)
			i++;
		if (i == GROUPS)
			continue;
		if (i == count)
			groups[count++] = (struct group){.place = place, .worst = k};
		groups[i].kept += k->kept;
		groups[i].kept_ns += k->kept_ns;
		if (k->longest_ns > groups[i].worst->longest_ns)
			groups[i].worst = k;
	}
	return count;
}

/* The tasks that are seen to wait are some of all: where they wait is told now and then. */
static void find_task_lock(struct tacho__explaining *x, const struct group *g)
{
	const struct tacho__task_wait_sum *k = g->worst;
	double share = 100.0 * (double)g->kept_ns / tacho__window_ns(x);
	char name[TACHO__TEXT], ns[TACHO__TEXT], holder[TACHO__TEXT];
	int other = k->by_kind && k->by_kind != k->kind;
	struct tacho__finding *f;

	tacho__id_text(x, name, k->process, k->kind);
	if (tacho__below(x, TACHO__RULE_LOCK_CONTENTION, name, (double)g->kept_ns, share,
			 TACHO__LIMIT_WAITING_SHARE))
		return;
	f = tacho__find(x, TACHO__RULE_LOCK_CONTENTION,
			tacho__severity_of_waiting(x, (double)g->kept_ns), k->process,
			(double)g->kept_ns);
	f->waiting_ns = (double)g->kept_ns;
	f->kind = k->kind;
	if (other)
		tacho__where_id(x, f, k->by_kind, x->sum->last_ns);
	tacho__where_id(x, f, k->stack, k->longest_at_ns);
	tacho__ns_text(ns, (double)k->longest_ns);
	if (other)
		tacho__id_text(x, holder, k->process, k->by_kind);
	if (other)
		tacho__say_summary(
			f,
			"%s waits up to %s in %s for a lock that %s holds while it waits "
			"for something else",
			name, ns, g->place.function, holder);
	else
		tacho__say_summary(
			f,
			"%s waits up to %s in %s for a lock that others of its kind hold "
			"while they wait for something else",
			name, ns, g->place.function);
	tacho__say_advice(f,
			  "Let go of the lock before waiting for anything else: take out what is "
			  "needed, drop the guard, then await.");
	tacho__say_evidence(f, 0, k->longest_at_ns, k->longest_at_ns + k->longest_ns,
			    (double)k->longest_ns, "ns", "the longest wait took %s", ns);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, (double)g->kept_ns, "ns",
			    "%llu waits that were looked at took %s in all",
			    (unsigned long long)g->kept, tacho__ns_text(ns, (double)g->kept_ns));
}

static void find_herd(struct tacho__explaining *x, const struct tacho__herds *h)
{
	double share = 100.0 * (double)h->others_ns / tacho__window_ns(x);
	char waker[TACHO__TEXT], woken[TACHO__TEXT], ns[TACHO__TEXT];
	struct tacho__finding *f;

	tacho__id_text(x, woken, h->process, h->woken);
	if (h->process != x->process ||
	    tacho__below(x, TACHO__RULE_WAKE_STORM, woken, (double)h->others_ns, share,
			 TACHO__LIMIT_WAITING_SHARE))
		return;
	f = tacho__find(x, TACHO__RULE_WAKE_STORM,
			tacho__severity_of_waiting(x, (double)h->others_ns), h->process,
			(double)h->ns);
	f->waiting_ns = (double)h->others_ns;
	f->kind = h->woken;
	tacho__where_id(x, f, h->woken, x->sum->last_ns);
	tacho__where_id(x, f, h->waker, x->sum->last_ns);
	tacho__say_summary(f,
			   "%s wakes up to %llu tasks at once (%s): until all have run, for up to "
			   "%s, others wait",
			   tacho__id_text(x, waker, h->process, h->waker),
			   (unsigned long long)h->most, woken,
			   tacho__ns_text(ns, (double)h->longest_ns));
	tacho__say_advice(f, "Wake those alone that have something to do, or some at a time.");
	tacho__say_evidence(f, 0, h->longest_at_ns, h->longest_at_ns + h->longest_ns,
			    (double)h->longest_ns, "ns", "the longest took %s", ns);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, (double)h->tasks, "wakes",
			    "%llu tasks in %llu times", (unsigned long long)h->tasks,
			    (unsigned long long)h->count);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, (double)h->others_ns, "ns",
			    "%llu others waited %s in all meanwhile", (unsigned long long)h->others,
			    tacho__ns_text(ns, (double)h->others_ns));
}

void tacho__rules_async(struct tacho__explaining *x)
{
	struct group groups[GROUPS];
	uint32_t count = group_waits(x, groups);

	for (uint32_t i = 0; i < count; i++)
		find_task_lock(x, &groups[i]);
	tacho__herds_end(&x->gathered.herding, &x->error);
	for (const struct tacho__herds *h = NULL;
	     (h = tacho__table_next(&x->gathered.herding.herds, h));)
		find_herd(x, h);
}
