/* Which finding explains which, their rank, and the verdict. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/rules.h"
#include "read/memory.h"

#define ONCE 2 /* as loop-saturated */

struct fold {
	const char *rule;
	const char *category; /* of the verdict, when it comes first */
	int first;	      /* when critical, before all others: largest first */
	int cause;	      /* 1: explains symptoms of the same loop or process */
	int symptom;	      /* 0: nothing explains it; else what is ranked before it may */
};

static const struct fold folds[] = {
	{"crash", "crash", 10, 1, 0},
	{"out-of-memory", "memory", 10, 1, 0},
	{"deadlock", "hang", 9, 1, 0},
	{"end", "none", 0, 0, 0}, /* of severity info: a note */
	{"hang", "hang", 8, 1, 0},
	{"never-yields", "hang", 7, 1, 0},
	{"long-callback", "blocked-loop", 0, 1, 0},
	{"blocking-call", "blocked-loop", 0, 1, 0},
	{"lock-contention", "lock", 0, 1, 0},
	{"stop-the-world", "runtime", 0, 1, 0},
	{"gc-assist", "runtime", 0, 1, 0},
	{"kernel-scheduling-delay", "scheduling", 0, 1, 1},
	{"cpu-throttled", "scheduling", 1, 1, 0},
	{"process-pause", "blocked-loop", 0, 1, 0},
	{"pool-exhausted", "pool", 0, 1, 0},
	{"timer-storm", "overload", 0, 1, 0},
	{"self-wake", "overload", 0, 1, 0},
	{"wake-storm", "overload", 0, 1, 0},
	{"fd-flood", "overload", 0, 1, 0},
	{"task-leak", "leak", 0, 0, 0},
	{"handle-leak", "leak", 0, 0, 0},
	{"stuck-task", "stuck", 0, 0, 0},
	{"memory-growth", "leak", 0, 0, 2},
	{"write-backlog", "overload", 0, 1, 0},
	{"worker-imbalance", "overload", 0, 1, 1},
	{"futile-wakeups", "overload", 0, 1, 1},
	{"loop-saturated", "overload", 0, 1, 2},
	{"queue-growth", "overload", 0, 1, 2},
	{"wake-latency", "latency", 0, 0, 3},
	{"timer-late", "latency", 0, 0, 3},
	{"downstream-wait", "downstream", 0, 0, 3},
	{"outlier", "none", 0, 0, 3}, /* of severity info: a note */
	{"recorder-loss", "recording", 6, 0, 0},
	{"not-enough-data", "not-enough-data", 0, 0, 0},
};

static const struct fold *fold_of(const struct tacho__finding *f)
{
	for (uint32_t i = 0; i < sizeof(folds) / sizeof(folds[0]); i++)
		if (strcmp(folds[i].rule, f->rule) == 0)
			return &folds[i];
	return &folds[0];
}

/* A loop that waits for room in the queue of a pool does so because the pool is too small. */
static int is_for_pool(const struct tacho__finding *pool, const struct tacho__finding *f)
{
	return f->pool && pool->pool == f->pool && pool->process == f->process &&
	       pool->severity >= TACHO__SEVERITY_WARNING &&
	       strcmp(pool->rule, "pool-exhausted") == 0 && strcmp(f->rule, "blocking-call") == 0;
}

/* Where the pool is not, what it waits for is a cause. */
static void look_at_pools(struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		struct tacho__finding *f = &e->findings[i];
		uint32_t k = 0;

		while (k < e->count && !is_for_pool(&e->findings[k], f))
			k++;
		f->pool = k < e->count || strcmp(f->rule, "pool-exhausted") == 0 ? f->pool : 0;
	}
}

static int symptom_of(const struct tacho__finding *f)
{
	return f->pool && strcmp(f->rule, "blocking-call") == 0 ? 1 : fold_of(f)->symptom;
}

static int first_of(const struct tacho__finding *f)
{
	return f->severity == TACHO__SEVERITY_CRITICAL ? fold_of(f)->first : 0;
}

/* A symptom comes after all causes, so that the cause that explains it comes before it. */
static int tier_of(const struct tacho__finding *f)
{
	return f->once ? ONCE : symptom_of(f);
}

static int by_rank(const void *a, const void *b)
{
	const struct tacho__finding *f = a, *g = b;
	int first = first_of(g) - first_of(f);

	if (first)
		return first;
	if ((f->severity >= TACHO__SEVERITY_WARNING) != (g->severity >= TACHO__SEVERITY_WARNING))
		return f->severity >= TACHO__SEVERITY_WARNING ? -1 : 1;
	if (tier_of(f) != tier_of(g))
		return tier_of(f) - tier_of(g);
	return (f->rank_ns < g->rank_ns) - (f->rank_ns > g->rank_ns);
}

/* Symptoms of one loop are not explained by what happens on another, where both are known. */
static int explains(const struct tacho__finding *cause, const struct tacho__finding *symptom)
{
	if (cause->severity < TACHO__SEVERITY_WARNING || cause->process != symptom->process)
		return 0;
	if (strcmp(cause->rule, symptom->rule) == 0 || !fold_of(cause)->cause)
		return 0;
	if (symptom->pool)
		return is_for_pool(cause, symptom);
	/* A loop that lacks a CPU asks less often for nothing. */
	if (strcmp(symptom->rule, "futile-wakeups") == 0 &&
	    strcmp(fold_of(cause)->category, "scheduling") == 0)
		return 0;
	if (strcmp(symptom->rule, "kernel-scheduling-delay") == 0)
		return strcmp(cause->rule, "cpu-throttled") == 0;
	/* A loop that is full is explained by what fills it, not by a wait here and there. */
	if (strcmp(symptom->rule, "loop-saturated") == 0)
		return cause->cost_ns >= symptom->cost_ns / 2 && cause->loop == symptom->loop;
	if (cause->loop && symptom->loop && cause->loop != symptom->loop)
		return strcmp(cause->rule, "pool-exhausted") == 0;
	return 1;
}

static void fold_all(struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		struct tacho__finding *f = &e->findings[i];

		for (uint32_t k = 0; k < i && symptom_of(f) && f->folded_into < 0; k++)
			if (e->findings[k].folded_into < 0 && explains(&e->findings[k], f))
				f->folded_into = (int32_t)k;
	}
}

/* A loop that is full, and nothing explains it, is a cause: what waits for it is known. */
static int is_full(const struct tacho__finding *f)
{
	return strcmp(f->rule, "loop-saturated") == 0 && f->waiting_ns > 0;
}

/* What has less than a tenth of what waits for a thread that has no CPU is not why it does. */
static int is_beside(const struct tacho__finding *g, const struct tacho__finding *f)
{
	return strcmp(f->rule, "kernel-scheduling-delay") == 0 && g->waiting_ns > 0 &&
	       10 * g->rank_ns < f->waiting_ns;
}

/* A symptom that nothing explains is a finding as any other symptom: the dearest first. */
static int comes_before(const struct tacho__finding *f, const struct tacho__finding *g)
{
	if ((f->folded_into >= 0) != (g->folded_into >= 0))
		return g->folded_into >= 0;
	return f->folded_into < 0 && !first_of(f) && !first_of(g) && fold_of(f)->symptom &&
	       (fold_of(g)->symptom || (is_full(f) && g->waiting_ns > 0) || is_beside(g, f)) &&
	       (f->severity >= TACHO__SEVERITY_WARNING) ==
		       (g->severity >= TACHO__SEVERITY_WARNING) &&
	       f->rank_ns > g->rank_ns;
}

/* Folded ones go behind all others; what points to a finding goes with it. 0 or -ENOMEM. */
static int move_folded(struct tacho__explanation *e)
{
	struct tacho__finding *sorted = malloc((e->count + 1) * sizeof(*sorted));
	int32_t *now = malloc((e->count + 1) * sizeof(*now));
	uint32_t *order = malloc((e->count + 1) * sizeof(*order));
	int error = sorted && now && order ? 0 : -ENOMEM;
	uint32_t n = error ? 0 : e->count;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		for (; at && comes_before(&e->findings[i], &e->findings[order[at - 1]]); at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		now[order[i]] = (int32_t)i;
		sorted[i] = e->findings[order[i]];
	}
	if (n) {
		for (uint32_t i = 0; i < n; i++)
			if (sorted[i].folded_into >= 0)
				sorted[i].folded_into = now[sorted[i].folded_into];
		memcpy(e->findings, sorted, n * sizeof(*sorted));
	}
	free(sorted);
	free(now);
	free(order);
	return error;
}

static void judge(const struct tacho__explaining *x, struct tacho__explanation *e)
{
	const struct tacho__finding *f = e->count ? &e->findings[0] : NULL;
	const struct tacho__finding *none = NULL;
	uint32_t unknown = 0; /* processes of which too little is known */

	for (uint32_t i = 0; i < e->process_count; i++)
		if (e->processes[i].events > e->processes[e->process].events)
			e->process = i;
	for (uint32_t i = 0; i < e->count; i++)
		if (strcmp(e->findings[i].rule, "not-enough-data") == 0) {
			unknown++;
			if (!none || e->findings[i].process == e->process)
				none = &e->findings[i];
		}
	if (f && f->severity >= TACHO__SEVERITY_WARNING) {
		e->process = f->process;
		e->verdict.category = fold_of(f)->category;
		snprintf(e->verdict.summary, sizeof(e->verdict.summary), "%s", f->summary);
	} else if (none && unknown >= e->process_count) {
		e->verdict.category = "not-enough-data";
		snprintf(e->verdict.summary, sizeof(e->verdict.summary), "%s", none->summary);
	} else {
		e->verdict.category = "none";
		snprintf(e->verdict.summary, sizeof(e->verdict.summary),
			 "nothing is wrong with the loops in this window%s",
			 x->idle ? ": they had almost nothing to do" : "");
	}
}

int tacho__fold(struct tacho__explaining *x)
{
	struct tacho__explanation *e = x->out;
	int error;

	look_at_pools(e);
	TACHO__SORT(e->findings, e->count, by_rank);
	fold_all(e);
	error = move_folded(e);
	judge(x, e);
	return error;
}
