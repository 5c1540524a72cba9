/* Which rules could look, and what the others lacked: the inputs of rules.def. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "explain/rules.h"
#include "format/definition.h"
#include "model/language.h"

_Static_assert(TACHO__RULE_COUNT <= 64, "tacho__explaining.covered has a bit for each rule");

/* Of a further process: what could be looked for in one of them was looked for, and one in
   which it could not is named. */
static void cover_again(const struct tacho__explaining *x, struct tacho__coverage *c, int checked,
			const char *why)
{
	char name[TACHO__TEXT], before[sizeof(c->why)];

	if (checked == c->checked)
		return;
	memcpy(before, c->why, sizeof(before));
	snprintf(c->why, sizeof(c->why), "not of %s: %.80s",
		 tacho__process_text(x->reader, name, checked ? c->process : x->process),
		 checked ? before : why);
	c->checked = c->is_partial = 1;
}

void tacho__cover(struct tacho__explaining *x, enum tacho__rule_id rule, int checked,
		  const char *format, ...)
{
	struct tacho__coverage *c = &x->out->coverage[rule];
	char text[sizeof(c->why)];
	va_list list;

	if (x->covered >> rule & 1)
		return;
	x->covered |= UINT64_C(1) << rule;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (c->is_known) {
		cover_again(x, c, checked, text);
		return;
	}
	c->is_known = 1;
	c->checked = checked;
	c->process = x->process;
	memcpy(c->why, text, sizeof(c->why));
}

void tacho__uncover(struct tacho__explaining *x, enum tacho__rule_id rule, const char *why)
{
	/* All that is known of the rule is of this process. */
	if (x->out->process_count == 1)
		x->out->coverage[rule].is_known = 0;
	x->covered &= ~(UINT64_C(1) << rule);
	tacho__cover(x, rule, 0, "%s", why);
}

/* ------------------------------------------------------------------- what is there */

/* Tokio's workers are seen, and nobody tells of their tasks. */
static int has_silent_tokio(const struct tacho__explaining *x)
{
	int seen = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		if (l->level == TACHO_LEVEL_API)
			return 0;
	for (uint32_t i = 0; i < tacho_read_thread_count(x->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(x->reader, i);

		seen |= t->process == x->process && tacho__is_tokio(t->name);
	}
	return seen;
}

static int has_due_timers(const struct tacho__summary *s)
{
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&s->kinds, k));)
		if (k->late.count)
			return 1;
	return 0;
}

/* Those of libuv are recorded only when there is something in them. */
static int has_gauges(const struct tacho__explaining *x)
{
	for (const struct tacho__counter_sum *k = NULL;
	     (k = tacho__table_next(&x->sum->counters, k));) {
		const struct tacho_definition *d =
			k->depth ? NULL : tacho_read_definition(x->reader, k->process, k->name);

		if (d && d->def_class == TACHO_DEF_GAUGE && strcmp(d->name, TACHO_GAUGE_CPUS) != 0)
			return 1;
	}
	return tacho__source_is_on(x, x->process, "libuv");
}

static int has_input(const struct tacho__explaining *x, enum tacho__input input)
{
	const struct tacho__summary *s = x->sum;
	uint32_t p = x->process;

	switch (input) {
	case TACHO__INPUT_SAMPLES:
		return tacho__source_is_on(x, p, "cpu_samples") || s->process[p].samples;
	case TACHO__INPUT_CALLS:
		return tacho__source_is_on(x, p, "calls") || s->calls.count;
	case TACHO__INPUT_LOCKS:
		return tacho__source_is_on(x, p, "locks") || s->locks.count;
	case TACHO__INPUT_SCHED:
		return tacho__source_is_on(x, p, "sched");
	case TACHO__INPUT_WORKS:
		return s->works.count || x->out->ledger->pool_count;
	case TACHO__INPUT_DUE:
		return has_due_timers(s);
	case TACHO__INPUT_TASKS:
		return !has_silent_tokio(x);
	case TACHO__INPUT_HANDLES:
		return tacho__source_is_on(x, p, "threads");
	case TACHO__INPUT_GAUGES:
		return has_gauges(x);
	case TACHO__INPUT_SPANS:
		return s->spans.count != 0;
	default:
		return 1;
	}
}

/* What is said of the first of a set that is missing; "": nothing. */
static const char *absent_of(uint32_t set, uint32_t there)
{
	const char *absent = "";

	for (uint32_t i = 0; i < TACHO__INPUT_COUNT && !absent[0]; i++)
		if (set & ~there & UINT32_C(1) << i)
			absent = tacho__input_absent[i];
	return absent;
}

/* A callback that had not ended where the records do, of a process whose end nobody saw. */
static void cover_unseen_end(struct tacho__explaining *x)
{
	const struct tacho__poll *last = NULL;
	char name[TACHO__TEXT];

	if (!tacho__ended_unseen(tacho_read_process(x->reader, x->process)))
		return;
	for (const struct tacho__open_poll *o = NULL;
	     (o = tacho__table_next(&x->gathered.open, o));)
		if (o->poll.kind && o->poll.end_ns >= x->sum->process[x->process].end_ns &&
		    (!last || o->poll.begin_ns > last->begin_ns))
			last = &o->poll;
	if (!last)
		return;
	x->out->processes[x->process].ended_badly = 1;
	tacho__callback_text(x, name, last);
	tacho__cover(x, TACHO__RULE_NEVER_YIELDS, 0,
		     "%s had not come back, and nobody saw until when", name);
	tacho__cover(x, TACHO__RULE_HANG, 0, "%s had not come back, and nobody saw until when",
		     name);
}

void tacho__cover_rules(struct tacho__explaining *x)
{
	uint32_t there = 0;

	for (uint32_t i = 0; i < TACHO__INPUT_COUNT; i++)
		there |= (uint32_t)(has_input(x, i) != 0) << i;
	cover_unseen_end(x);
	tacho__cover(x, TACHO__RULE_WAKE_LATENCY, 1, "%llu wakes were seen",
		     (unsigned long long)x->sum->process[x->process].wakes.count);
	for (uint32_t i = 0; i < TACHO__RULE_COUNT; i++) {
		const char *lacks = absent_of(tacho__rules[i].needs, there);

		tacho__cover(x, i, !lacks[0], "%s",
			     lacks[0] ? lacks : absent_of(tacho__rules[i].helps, there));
	}
}
