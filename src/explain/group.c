#include "explain/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "explain/workers.h"
#include "model/language.h"
#include "read/memory.h"

/* ---------------------------------------------------------------- which are one */

/* A cause while it is weighed. */
struct cause {
	struct tacho__entry entry;
	uint32_t count;		   /* findings */
	enum tacho__severity most; /* of these, each for itself */
	uint32_t advises;	   /* one that is as severe as that */
	double waiting_ns;	   /* of what others might have served */
	double window_ns;	   /* of the process that was seen for longest */
	uint64_t stalls;
	int once;
};

static uint64_t hash_text(const char *text, uint64_t seed)
{
	return tacho__hash_bytes(text, strlen(text), seed);
}

/* What the code is called. A sample is in one of several lines that its function runs in, and of code
   without a name in one of several instructions: what called it tells more. */
static uint64_t hash_place(const struct tacho__finding *f)
{
	const struct tacho__place *p = &f->where[0];

	for (uint32_t i = 1; f->where_sampled && !p->function[0] && i < f->where_count &&
			     !(f->where_other >> i & 1);
	     i++)
		p = &f->where[i];
	if (p->function[0])
		return hash_text(tacho__script_function(p->function),
				 f->where_sampled ? 0 : p->line) ^
		       hash_text(p->file[0] ? p->file : p->module, 1);
	p = &f->where[0];
	return hash_text(p->module, p->module[0] ? p->offset : p->address);
}

static uint64_t hash_kind(const struct tacho__explaining *x, const struct tacho__finding *f)
{
	const struct tacho_definition *d =
		f->kind ? tacho_read_definition(x->reader, f->process, f->kind) : NULL;

	return tacho__program_class(x->reader, f->process) ^ (d ? hash_text(d->name, 2) : 0);
}

static struct cause *cause_of(const struct tacho__explaining *x, struct tacho__grouping *g,
			      const struct tacho__finding *f, int *error)
{
	return tacho__table_get(&g->causes, tacho__hash_words(f->rule, f->subject, 0),
				f->where_count ? hash_place(f) : hash_kind(x, f), error);
}

/* ---------------------------------------------------------------- how severe it is */

static double window_of(const struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__explained *p = &x->out->processes[process];
	double window = (double)(p->last_ns - p->first_ns);
	double least = TACHO__LIMIT(x, NOT_ENOUGH_DATA_NS);

	return window > least ? window : least;
}

static void weigh(const struct tacho__explaining *x, struct cause *c, uint32_t index)
{
	const struct tacho__finding *f = &x->out->findings[index];
	double window = window_of(x, f->process);

	if (!c->count++ || f->severity > c->most) {
		c->most = f->severity;
		c->advises = index;
	}
	c->waiting_ns += f->waiting_ns - f->served_ns;
	c->stalls += f->stalls;
	c->once |= f->once;
	c->window_ns = window > c->window_ns ? window : c->window_ns;
}

/*
 * The sums decide, by the limits that hold for one process. What a blocked thread serves is left out: it
 * is a share of the capacity, and that does not grow with the number of workers. A note stays one: those
 * who wait are clients of the threads that are kept, one for each, and there are no others.
 */
static enum tacho__severity severity_of(const struct tacho__explaining *x, const struct cause *c)
{
	double share = 100 * c->waiting_ns / c->window_ns, least = TACHO__LIMIT(x, WAITING_SHARE);

	if (c->count < 2 || c->once || c->most == TACHO__SEVERITY_INFO)
		return c->most;
	if ((double)c->stalls >= TACHO__LIMIT(x, STALL_COUNT) ||
	    share >= tacho__critical_times * least)
		return TACHO__SEVERITY_CRITICAL;
	return share >= least && !c->most ? TACHO__SEVERITY_WARNING : c->most;
}

int tacho__group(struct tacho__explaining *x, struct tacho__grouping *g)
{
	struct tacho__explanation *e = x->out;
	int error = tacho__workers_make(x, g);

	tacho__table_init(&g->causes, sizeof(struct cause), e->count + 1);
	for (uint32_t i = 0; i < e->count && !error; i++) {
		struct cause *c = cause_of(x, g, &e->findings[i], &error);

		if (!c)
			break;
		e->findings[i].cause = c->entry.index;
		weigh(x, c, i);
	}
	for (uint32_t i = 0; i < e->count && !error; i++)
		e->findings[i].severity =
			severity_of(x, tacho__table_at(&g->causes, e->findings[i].cause));
	return error;
}

void tacho__grouping_free(struct tacho__grouping *g)
{
	tacho__table_free(&g->causes);
	tacho__workers_free(g);
}

/* ----------------------------------------------------------------- one for each */

#define NOBODY UINT32_MAX

/* A finding, as far as it takes to put it in order. */
struct member {
	uint32_t cause, process, index;
	uint32_t explains; /* cause that explains it, or NOBODY */
};

static int by_explanation(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return (x->explains > y->explains) - (x->explains < y->explains);
}

static int by_process(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->cause != y->cause)
		return x->cause < y->cause ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static uint32_t end_of_cause(const struct member *m, uint32_t from, uint32_t count)
{
	uint32_t to = from;

	while (to < count && m[to].cause == m[from].cause)
		to++;
	return to;
}

/* Of findings of one cause, by explanation: the cause that explains most of them, if more than half are
   explained; else NOBODY. */
static uint32_t elect(const struct member *m, uint32_t count)
{
	uint32_t best = NOBODY, most = 0, explained = 0;

	for (uint32_t i = 0, votes = 0; i < count && m[i].explains != NOBODY; i++) {
		votes = i && m[i].explains == m[i - 1].explains ? votes + 1 : 1;
		explained++;
		if (votes > most) {
			most = votes;
			best = m[i].explains;
		}
	}
	return 2 * explained > count ? best : NOBODY;
}

static int is_worse(const struct tacho__finding *f, const struct tacho__finding *g)
{
	if (f->measure.longest_ns != g->measure.longest_ns)
		return f->measure.longest_ns > g->measure.longest_ns;
	if (f->waiting_ns > g->waiting_ns || f->waiting_ns < g->waiting_ns)
		return f->waiting_ns > g->waiting_ns;
	return f->cost_ns > g->cost_ns;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static double sum_or_same(int is_shared, double a, double b)
{
	return !is_shared ? a + b : a > b ? a : b;
}

static void add_costs(struct tacho__finding *to, const struct tacho__finding *f)
{
	to->cost_ns = sum_or_same(f->is_shared, to->cost_ns, f->cost_ns);
	to->waiting_ns += f->waiting_ns;
	to->served_ns += f->served_ns;
	to->stalls += f->stalls;
	to->measure.count += f->measure.count;
	to->measure.total_ns += f->measure.total_ns;
	to->measure.longest_ns = larger(to->measure.longest_ns, f->measure.longest_ns);
	to->measure.threads += f->measure.threads;
}

static void add_instance(struct tacho__instance *to, const struct tacho__finding *f)
{
	if (!to->thread || f->measure.longest_ns > to->longest_ns)
		to->thread = f->thread;
	to->process = f->process;
	to->cost_ns = sum_or_same(f->is_shared, to->cost_ns, f->cost_ns);
	to->waiting_ns += f->waiting_ns;
	to->count += f->measure.count;
	to->longest_ns = larger(to->longest_ns, f->measure.longest_ns);
	to->threads += f->measure.threads ? f->measure.threads : f->thread != 0;
}

static int by_waiting(const void *a, const void *b)
{
	const struct tacho__instance *x = a, *y = b;

	if (x->waiting_ns > y->waiting_ns || x->waiting_ns < y->waiting_ns)
		return x->waiting_ns > y->waiting_ns ? -1 : 1;
	return (x->cost_ns < y->cost_ns) - (x->cost_ns > y->cost_ns);
}

/* Into `at`, which has room for one for each: one for each process. */
static void spread_out(const struct tacho__explanation *e, const struct member *m, uint32_t count,
		       struct tacho__instance *at, struct tacho__spread *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!i || m[i].process != m[i - 1].process)
			memset(&at[n++], 0, sizeof(*at));
		add_instance(&at[n - 1], &e->findings[m[i].index]);
	}
	TACHO__SORT(at, n, by_waiting);
	s->at = at;
	s->processes = n;
	s->count = n < TACHO__INSTANCES ? n : TACHO__INSTANCES;
	s->left_out = n - s->count;
	for (uint32_t i = 0; i < n; i++)
		s->threads += at[i].threads;
}

/* The worst of them, with the sums of all. */
static void merge(const struct tacho__explanation *e, const struct cause *c, const struct member *m,
		  uint32_t count, struct tacho__finding *out)
{
	const struct tacho__finding *worst = &e->findings[m[0].index];

	for (uint32_t i = 1; i < count; i++)
		if (is_worse(&e->findings[m[i].index], worst))
			worst = &e->findings[m[i].index];
	*out = *worst;
	for (uint32_t i = 0; i < count; i++)
		if (&e->findings[m[i].index] != worst)
			add_costs(out, &e->findings[m[i].index]);
	memcpy(out->advice, e->findings[c->advises].advice, sizeof(out->advice));
}

struct merging {
	struct member *members;
	struct tacho__instance *instances;
	struct tacho__finding *findings;
	uint32_t *explained; /* by cause: that which explains it */
	int32_t *index;	     /* by cause: where it stands in the end; -1: it is dropped */
};

static int begin_merging(struct merging *m, const struct tacho__explanation *e)
{
	size_t n = e->count + 1u;

	m->members = malloc(n * sizeof(*m->members));
	m->instances = malloc(n * sizeof(*m->instances));
	m->findings = malloc(n * sizeof(*m->findings));
	m->explained = malloc(n * sizeof(*m->explained));
	m->index = malloc(n * sizeof(*m->index));
	return m->members && m->instances && m->findings && m->explained && m->index ? 0 : -ENOMEM;
}

static void end_merging(struct merging *m)
{
	free(m->members);
	free(m->instances);
	free(m->findings);
	free(m->explained);
	free(m->index);
}

static void elect_all(struct merging *m, const struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		m->members[i] = (struct member){
			.cause = f->cause,
			.process = f->process,
			.index = i,
			.explains =
				f->folded_into < 0 ? NOBODY : e->findings[f->folded_into].cause};
	}
	TACHO__SORT(m->members, e->count, by_explanation);
	for (uint32_t i = 0, to; i < e->count; i = to) {
		to = end_of_cause(m->members, i, e->count);
		m->explained[m->members[i].cause] = elect(m->members + i, to - i);
	}
}

static uint32_t merge_all(struct tacho__explaining *x, const struct tacho__grouping *g,
			  struct merging *m)
{
	struct tacho__explanation *e = x->out;
	uint32_t n = 0;

	TACHO__SORT(m->members, e->count, by_process);
	for (uint32_t i = 0, to; i < e->count; i = to) {
		const struct cause *c = tacho__table_at(&g->causes, m->members[i].cause);
		struct tacho__finding *f = &m->findings[n];

		to = end_of_cause(m->members, i, e->count);
		merge(e, c, m->members + i, to - i, f);
		spread_out(e, m->members + i, to - i, m->instances + i, &f->spread);
		tacho__workers_count(x, g, f);
		m->index[f->cause] = f->severity ? (int32_t)n : -1;
		if (f->severity)
			n++;
		else
			tacho__consider_small(x, f, c->window_ns);
	}
	return n;
}

int tacho__group_merge(struct tacho__explaining *x, const struct tacho__grouping *g)
{
	struct tacho__explanation *e = x->out;
	struct merging m;
	int error = begin_merging(&m, e);
	uint32_t n;

	if (!error) {
		elect_all(&m, e);
		n = merge_all(x, g, &m);
		for (uint32_t i = 0; i < n; i++) {
			struct tacho__finding *f = &m.findings[i];
			uint32_t by = m.explained[f->cause];

			f->folded_into = by == NOBODY ? -1 : m.index[by];
			tacho__workers_say(f);
			e->findings[i] = *f;
		}
		e->count = n;
		e->instances = m.instances;
		m.instances = NULL;
	}
	end_merging(&m);
	return error;
}
