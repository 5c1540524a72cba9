/*
 * Which finding explains which, and the order of all of them.
 *
 * Critical findings come first, then warnings, then notes. Among those of one severity, ends and hangs
 * come first (ORDER in rules.def), then those that something waited for, most waiting first. The rest are
 * conditions: nobody was seen to wait because of them, so they have no rank.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "explain/group.h"
#include "read/memory.h"

#define ONCE 2	/* as loop-saturated */
#define FILLS 4 /* part of the time of a full loop that explains it */

static const struct tacho__order *order_of(const struct tacho__finding *f)
{
	return &tacho__rules[f->rule].order;
}

static int may_be_for_pool(const struct tacho__finding *f)
{
	return f->pool &&
	       (f->rule == TACHO__RULE_BLOCKING_CALL || f->rule == TACHO__RULE_LONG_CALLBACK);
}

/* A loop that waits for room in the queue of a pool does so because the pool is too small. What keeps its
   threads is a part of that. */
static int is_for_pool(const struct tacho__finding *pool, const struct tacho__finding *f)
{
	return may_be_for_pool(f) && pool->pool == f->pool &&
	       pool->severity >= TACHO__SEVERITY_WARNING &&
	       pool->rule == TACHO__RULE_POOL_EXHAUSTED;
}

/* Without a finding about the pool, what waits for it is a cause of its own. */
static void look_at_pools(struct tacho__finding *findings, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct tacho__finding *f = &findings[i];
		uint32_t k = 0;

		while (k < count && !is_for_pool(&findings[k], f))
			k++;
		f->pool = k < count || f->rule == TACHO__RULE_POOL_EXHAUSTED ? f->pool : 0;
	}
}

static int symptom_of(const struct tacho__finding *f)
{
	return may_be_for_pool(f) ? 1 : order_of(f)->explained;
}

static int first_of(const struct tacho__finding *f)
{
	return f->severity == TACHO__SEVERITY_CRITICAL ? order_of(f)->first : 0;
}

int tacho__is_condition(const struct tacho__finding *f)
{
	return !(f->waiting_ns > 0) && !first_of(f);
}

static int by_amount(double a, double b)
{
	return (a < b) - (a > b);
}

/* ---------------------------------------------------------------- what explains what */

/* A symptom comes after all causes, so that the cause that explains it comes before it. */
static int tier_of(const struct tacho__finding *f)
{
	return f->once ? ONCE : symptom_of(f);
}

/* Of pointers: what comes first explains what comes later. */
static int by_cause(const void *a, const void *b)
{
	const struct tacho__finding *f = *(struct tacho__finding *const *)a;
	const struct tacho__finding *g = *(struct tacho__finding *const *)b;
	int first = first_of(g) - first_of(f);

	if (first)
		return first;
	if ((f->severity >= TACHO__SEVERITY_WARNING) != (g->severity >= TACHO__SEVERITY_WARNING))
		return f->severity >= TACHO__SEVERITY_WARNING ? -1 : 1;
	if (tier_of(f) != tier_of(g))
		return tier_of(f) - tier_of(g);
	if (by_amount(f->waiting_ns, g->waiting_ns))
		return by_amount(f->waiting_ns, g->waiting_ns);
	return by_amount(f->cost_ns, g->cost_ns);
}

/* Symptoms of one loop are not explained by what happens on another, where both are known. */
static int explains(const struct tacho__finding *cause, const struct tacho__finding *symptom)
{
	if (cause->severity < TACHO__SEVERITY_WARNING)
		return 0;
	if (cause->rule == symptom->rule || !order_of(cause)->explains)
		return 0;
	if (symptom->pool)
		return is_for_pool(cause, symptom);
	/* A loop that lacks a CPU asks less often for nothing. And one that is full in the time that it has
	   would be so with more: but for a quota, which is all that it may have. */
	if (symptom->rule == TACHO__RULE_FUTILE_WAKEUPS &&
	    tacho__rules[cause->rule].category == TACHO__CATEGORY_SCHEDULING)
		return 0;
	if (symptom->rule == TACHO__RULE_LOOP_SATURATED &&
	    tacho__rules[cause->rule].category == TACHO__CATEGORY_SCHEDULING)
		return cause->rule == TACHO__RULE_CPU_THROTTLED;
	if (symptom->rule == TACHO__RULE_KERNEL_SCHEDULING_DELAY)
		return cause->rule == TACHO__RULE_CPU_THROTTLED;
	/* A loop that is full is explained by what fills it, not by a wait here and there. Tasks of a
	   kind run on whichever loop comes. */
	if (symptom->rule == TACHO__RULE_LOOP_SATURATED)
		return cause->cost_ns >= symptom->cost_ns / FILLS &&
		       (cause->loop == symptom->loop || (!cause->loop && cause->kind));
	if (cause->loop && symptom->loop && cause->loop != symptom->loop)
		return cause->rule == TACHO__RULE_POOL_EXHAUSTED;
	return 1;
}

/* Pointers to findings, in that order. NULL without memory. */
static struct tacho__finding **sort_causes(struct tacho__finding *findings, uint32_t count)
{
	struct tacho__finding **order = malloc((count + 1) * sizeof(struct tacho__finding *));

	for (uint32_t i = 0; order && i < count; i++)
		order[i] = &findings[i];
	if (order)
		TACHO__SORT(order, count, by_cause);
	return order;
}

/* Those of one process. 0 or -ENOMEM. */
static int fold_process(struct tacho__explanation *e, uint32_t from, uint32_t count)
{
	struct tacho__finding **order;

	look_at_pools(e->findings + from, count);
	order = sort_causes(e->findings + from, count);
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < i && symptom_of(order[i]) && order[i]->folded_into < 0;
		     k++)
			if (order[k]->folded_into < 0 && explains(order[k], order[i]))
				order[i]->folded_into = (int32_t)(order[k] - e->findings);
	free(order);
	return 0;
}

/* Findings of a process stand beside each other. */
static int fold_all(struct tacho__explanation *e)
{
	int error = 0;

	for (uint32_t i = 0, to; i < e->count && !error; i = to) {
		for (to = i; to < e->count; to++)
			if (e->findings[to].process != e->findings[i].process)
				break;
		error = fold_process(e, i, to - i);
	}
	return error;
}

/*
 * Once each finding stands for several processes. What explains another stands for itself: where two
 * explain each other, one in one process and one in another, it is the first of them. 0 or -ENOMEM.
 */
static int settle(struct tacho__explanation *e)
{
	struct tacho__finding **order = sort_causes(e->findings, e->count);
	uint8_t *passed = calloc(e->count + 1, 1);

	for (uint32_t i = 0; order && passed && i < e->count; i++) {
		struct tacho__finding *f = order[i];
		int32_t by = f->folded_into;

		passed[f - e->findings] = 1;
		if (by >= 0 && !passed[by])
			by = -1;
		f->folded_into = by >= 0 && e->findings[by].folded_into >= 0
					 ? e->findings[by].folded_into
					 : by;
	}
	free(order);
	free(passed);
	return order && passed ? 0 : -ENOMEM;
}

/* ----------------------------------------------------------------------- the order */

static int by_rank(const void *a, const void *b)
{
	const struct tacho__finding *f = a, *g = b;

	if ((f->folded_into >= 0) != (g->folded_into >= 0))
		return f->folded_into >= 0 ? 1 : -1;
	if (f->severity != g->severity)
		return f->severity > g->severity ? -1 : 1;
	if (first_of(f) != first_of(g))
		return first_of(g) - first_of(f);
	if (by_amount(f->waiting_ns, g->waiting_ns))
		return by_amount(f->waiting_ns, g->waiting_ns);
	/* Conditions: causes first, as the table of rules has them. */
	if (symptom_of(f) != symptom_of(g))
		return symptom_of(f) - symptom_of(g);
	if (f->rule != g->rule)
		return f->rule < g->rule ? -1 : 1;
	return by_amount(f->cost_ns, g->cost_ns);
}

/* What points to a finding goes with it. 0 or -ENOMEM. */
static int rank(struct tacho__explanation *e)
{
	int32_t *now = malloc((e->count + 1) * sizeof(*now));

	if (!now)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->count; i++)
		e->findings[i].cause = i;
	TACHO__SORT(e->findings, e->count, by_rank);
	for (uint32_t i = 0; i < e->count; i++) {
		now[e->findings[i].cause] = (int32_t)i;
		e->findings[i].cause = i;
	}
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].folded_into >= 0)
			e->findings[i].folded_into = now[e->findings[i].folded_into];
	free(now);
	return 0;
}

int tacho__fold(struct tacho__explaining *x)
{
	struct tacho__explanation *e = x->out;
	struct tacho__grouping g;
	int error = tacho__group(x, &g);

	if (!error)
		error = fold_all(e);
	if (!error)
		error = tacho__group_merge(x, &g);
	tacho__grouping_free(&g);
	if (!error)
		error = settle(e);
	if (!error)
		error = rank(e);
	tacho__judge(x);
	return error;
}
