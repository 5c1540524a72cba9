#include "explain/busy.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double tacho__median_busy(const struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	uint32_t from = tacho__summary_step(x->sum, l->first_ns);
	uint32_t to = tacho__summary_step(x->sum, l->last_ns);
	uint64_t sorted[TACHO__SERIES], middle;
	double share;

	memcpy(sorted, l->busy.at, sizeof(sorted));
	if (to <= from)
		return 0;
	qsort(sorted + from, to - from, sizeof(sorted[0]), by_value);
	middle = sorted[from + (to - from) / 2];
	share = 100.0 * (double)middle / (double)tacho__summary_step_ns(x->sum);
	return share < 100 ? share : 100;
}

static int is_off(const struct tacho__owned *o)
{
	switch (o->owns) {
	case TACHO__OWNS_DESCHEDULED:
	case TACHO__OWNS_THROTTLED:
	case TACHO__OWNS_STOPPED:
		return 1;
	default:
		return o->reason == TACHO__LATE_RUNNABLE || o->reason == TACHO__LATE_QUOTA ||
		       o->reason == TACHO__LATE_STOPPED;
	}
}

struct tacho__own_time tacho__own_time_of(const struct tacho__explaining *x, uint32_t thread)
{
	const struct tacho__ledger *l = x->out->ledger;
	struct tacho__own_time t = {0};

	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == x->process && l->threads[i].thread == thread) {
			t.all_ns += (double)(l->threads[i].last_ns - l->threads[i].first_ns);
			t.idle_ns += (double)l->threads[i].idle_ns;
		}
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		if (o->process != x->process || l->threads[o->thread].thread != thread)
			continue;
		if (o->owns == TACHO__OWNS_CODE) {
			t.code_ns += (double)o->ns;
			t.cpu_ns += (double)o->sample_ns;
			t.waiting_ns += (double)o->waiting_ns;
		} else if (is_off(o)) {
			t.off_ns += (double)o->ns;
		} else if (o->owns == TACHO__OWNS_LATE) {
			/* It slept on while a timer was due, or something was woken. */
			t.idle_ns += (double)o->ns;
		} else if (o->owns == TACHO__OWNS_NOT_OBSERVED) {
			t.all_ns -= (double)o->ns;
		}
	}
	return t;
}

double tacho__rest_ns(struct tacho__own_time t, const struct tacho__loop_sum *l)
{
	double short_ns = (double)l->short_waits_ns;

	return t.idle_ns > short_ns ? t.idle_ns - short_ns : 0;
}

/* What it rests before its clients come and after they have gone. */
static double edges_ns(const struct tacho__explaining *x, const struct tacho__loop_sum *l)
{
	uint64_t step_ns = tacho__summary_step_ns(x->sum), rest = 0;
	uint32_t from = tacho__summary_step(x->sum, l->first_ns);
	uint32_t to = tacho__summary_step(x->sum, l->last_ns);

	for (; from < to && l->busy.at[from] < step_ns / 2; from++)
		rest += step_ns - l->busy.at[from];
	for (; to > from && l->busy.at[to - 1] < step_ns / 2; to--)
		rest += step_ns - l->busy.at[to - 1];
	return (double)rest;
}

double tacho__utilisation(const struct tacho__explaining *x, struct tacho__own_time t,
			  const struct tacho__loop_sum *l)
{
	double rest = tacho__rest_ns(t, l), ran = t.all_ns - t.off_ns - rest;
	double edges = edges_ns(x, l), between = rest > edges ? rest - edges : 0;
	double had, whole;

	if (ran <= 0)
		return 0;
	had = ran / (ran + between);
	whole = 1 - rest / t.all_ns;
	return had < whole ? had : whole;
}

double tacho__undisturbed(const struct tacho__explaining *x, struct tacho__own_time t,
			  const struct tacho__loop_sum *l, double times)
{
	return l && tacho__utilisation(x, t, l) >= tacho__full_share && t.all_ns > t.off_ns
		       ? times * (t.all_ns / (t.all_ns - t.off_ns))
		       : times;
}

double tacho__waited_in(struct tacho__own_time t, double ns)
{
	return t.code_ns > ns ? t.waiting_ns * (ns / t.code_ns) : t.waiting_ns;
}
