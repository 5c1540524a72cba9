/* Numbers of findings, and the relations between them, which hold for all of them from here on. */
#include <string.h>

#include "explain/rules.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The end of what was seen of the process. */
static uint64_t end_of(const struct tacho__explaining *x)
{
	return x->seen_ns > x->sum->last_ns ? x->seen_ns : x->sum->last_ns;
}

void tacho__measured(const struct tacho__explaining *x, struct tacho__finding *f,
		     const struct tacho__measure *m)
{
	uint64_t window = end_of(x) - x->sum->first_ns;
	struct tacho__measure *to = &f->measure;

	*to = *m;
	to->longest_ns = least(m->longest_ns, m->total_ns);
	if (!m->count || !to->longest_ns) {
		*to = (struct tacho__measure){.count = 0};
		return;
	}
	/* Each is as long as the longest at most. */
	if (to->total_ns / to->count > to->longest_ns)
		to->longest_ns = to->total_ns / to->count;
	if (to->longest_ns * to->count < to->total_ns)
		to->longest_ns++;
	if (!to->threads)
		to->threads = 1;
	/* What several threads had at once, however it was counted, is not the time of one. */
	if (window && to->total_ns > window * to->threads)
		to->threads = (uint32_t)((to->total_ns + window - 1) / window);
}

/* What began before the window, or ended after it, is shown as far as it lies in it. */
static void clip(const struct tacho__explaining *x, struct tacho__evidence *v)
{
	uint64_t first = x->sum->first_ns, last = end_of(x);

	v->to_ns = least(v->to_ns > first ? v->to_ns : first, last);
	v->from_ns = least(v->from_ns > first ? v->from_ns : first, v->to_ns);
}

/* Whether something that is measured in time took none. */
static int is_nothing(const struct tacho__finding *f)
{
	const struct tacho__evidence *v = &f->evidence[0];

	return f->evidence_count && strcmp(v->unit, "ns") == 0 && v->value < 1;
}

void tacho__finish(struct tacho__explaining *x, uint32_t first)
{
	for (uint32_t i = first; i < x->out->count; i++) {
		struct tacho__finding *f = &x->out->findings[i];

		for (uint32_t k = 0; k < f->evidence_count; k++)
			clip(x, &f->evidence[k]);
		if (f->severity && is_nothing(f))
			f->severity = TACHO__SEVERITY_INFO;
	}
}
