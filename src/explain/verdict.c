/* The verdict: what kind of trouble it is, or what was looked at in which there is none. */
#include <stdio.h>
#include <string.h>

#include "explain/rules.h"

/* ---------------------------------------------------------------- what it covers */

static const struct tacho__ledger_thread *find_thread(const struct tacho__ledger *l,
						      uint32_t process, uint64_t thread)
{
	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == process && l->threads[i].thread == thread)
			return &l->threads[i];
	return NULL;
}

/* A loop that several threads run is one. */
static uint32_t count_loops(const struct tacho__summary *s, uint32_t process)
{
	uint32_t count = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&s->loops, l));) {
		const struct tacho__loop_sum *k = NULL;

		if (!l->loop || l->process != process)
			continue;
		do
			k = tacho__table_next(&s->loops, k);
		while (k != l && (k->process != process || k->loop != l->loop));
		count += k == l;
	}
	return count;
}

void tacho__cover_threads(struct tacho__explaining *x)
{
	struct tacho__explained *to = &x->out->processes[x->process];

	to->loops = count_loops(x->sum, x->process);
	to->is_idle = tacho__is_idle(x);
	to->sees_cpu = tacho__source_is_on(x, x->process, "cpu_samples") || x->gathered.ran.count;
	for (const struct tacho__ran *r = NULL; (r = tacho__table_next(&x->gathered.ran, r));) {
		const struct tacho__ledger_thread *t =
			find_thread(x->out->ledger, x->process, r->entry.key[1]);

		if ((t && (t->is_loop || t->is_pool)) || !tacho__ran_ns(r))
			continue;
		to->others++;
		to->others_ns += tacho__ran_ns(r);
	}
}

static void add_up(struct tacho__explanation *e)
{
	struct tacho__verdict *v = &e->verdict;
	uint64_t ns = 0, last, first = tacho__explained_window(e, &last);
	int sees_cpu = 0;

	for (uint32_t i = 0; i < e->process_count; i++) {
		v->loops += e->processes[i].loops;
		v->others += e->processes[i].others;
		ns += e->processes[i].others_ns;
		sees_cpu |= e->processes[i].sees_cpu;
	}
	v->others_cpus = !sees_cpu ? -1 : last > first ? (double)ns / (double)(last - first) : 0;
}

/* ------------------------------------------------------------------- in words */

static void append(struct tacho__verdict *v, const char *text)
{
	size_t n = strlen(v->summary);

	snprintf(v->summary + n, sizeof(v->summary) - n, "%s", text);
}

/* ". 3 other threads used 92 % of a CPU and were not judged" */
static void say_others(struct tacho__verdict *v)
{
	char text[2 * TACHO__TEXT], many[TACHO__TEXT];

	if (v->others_cpus < tacho__least_busy_share)
		return;
	snprintf(many, sizeof(many), v->others == 1 ? "Another thread" : "%u other threads",
		 v->others);
	if (v->others_cpus < 0.995)
		snprintf(text, sizeof(text), ". %s used %.0f %% of a CPU and %s not judged", many,
			 100 * v->others_cpus, v->others == 1 ? "was" : "were");
	else
		snprintf(text, sizeof(text), ". %s used %.1f CPUs and %s not judged", many,
			 v->others_cpus, v->others == 1 ? "was" : "were");
	append(v, text);
}

/* Processes of which too little is known. */
static void say_unknown(struct tacho__verdict *v, uint32_t unknown)
{
	char text[2 * TACHO__TEXT];

	if (!unknown)
		return;
	snprintf(text, sizeof(text),
		 unknown == 1 ? ". One process recorded too little to be judged"
			      : ". %u processes recorded too little to be judged",
		 unknown);
	append(v, text);
}

static void say_none(struct tacho__explanation *e, uint32_t unknown)
{
	struct tacho__verdict *v = &e->verdict;
	int idle = 1;

	for (uint32_t i = 0; i < e->process_count; i++)
		idle &= e->processes[i].is_idle || !e->processes[i].loops;
	v->category = tacho__category_names[TACHO__CATEGORY_NONE];
	if (v->loops == 1)
		snprintf(v->summary, sizeof(v->summary), "no problem found in the event loop%s%s",
			 e->readable.is_damaged ? ", as far as it can be read" : "",
			 idle ? ", which had almost nothing to do" : "");
	else
		snprintf(v->summary, sizeof(v->summary),
			 "no problem found in the %u event loops%s%s", v->loops,
			 e->readable.is_damaged ? ", as far as they can be read" : "",
			 idle ? ", which had almost nothing to do" : "");
	say_others(v);
	say_unknown(v, unknown);
}

void tacho__judge(struct tacho__explaining *x)
{
	struct tacho__explanation *e = x->out;
	const struct tacho__finding *f = e->count ? &e->findings[0] : NULL;
	const struct tacho__finding *none = NULL;
	uint32_t unknown = 0;

	add_up(e);
	for (uint32_t i = 0; i < e->process_count; i++)
		if (e->processes[i].events > e->processes[e->process].events)
			e->process = i;
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].rule == TACHO__RULE_NOT_ENOUGH_DATA) {
			unknown += e->findings[i].spread.processes;
			if (!none || e->findings[i].process == e->process)
				none = &e->findings[i];
		}
	if (f && f->severity >= TACHO__SEVERITY_WARNING) {
		e->process = f->process;
		e->verdict.category = tacho__category_names[tacho__rules[f->rule].category];
		snprintf(e->verdict.summary, sizeof(e->verdict.summary), "%s", f->summary);
	} else if (none && unknown >= e->process_count) {
		e->verdict.category = tacho__category_names[TACHO__CATEGORY_NOT_ENOUGH_DATA];
		snprintf(e->verdict.summary, sizeof(e->verdict.summary), "%s", none->summary);
		say_others(&e->verdict);
	} else {
		say_none(e, unknown);
	}
}
