#include "explain/causes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define LOOPS 4096u
/* Code that is no longer than usual is load: longer than all shorter ones by so much is not. */
#define OUTLYING 5
#define USUAL 2 /* times as many as are far longer: what most callbacks take is usual */
#define ONE_CLIENT 0.01
#define SHORT_ONES 3 /* times what is lost must be lost, if short ones are a part of it */
#define FULL 0.9     /* busy for so much of the time, a loop has too much to do */
/* Of the time of a function, what is in callbacks that are longer than usual, if it is the reason. */
#define SPECIFIC 0.7
#define PROPORTION_LEAST 3u

/* -------------------------------------------------------------------- groups */

uint64_t tacho__cause_place(const struct tacho__explaining *x, const struct tacho__owned *o,
			    uint32_t id)
{
	struct tacho__place p = tacho__own_place(x, o->process, id, o->last_ns);

	return p.function[0] ? tacho__hash_bytes(p.function, strlen(p.function), p.line)
			     : tacho__hash_words(id, p.address, 0);
}

/* What it is to a person; 0: of no interest here. */
static enum tacho__owns kind_of(const struct tacho__owned *o)
{
	switch (o->owns) {
	case TACHO__OWNS_LATE:
		return o->reason == TACHO__LATE_RUNNABLE  ? TACHO__OWNS_DESCHEDULED
		       : o->reason == TACHO__LATE_STOPPED ? TACHO__OWNS_STOPPED
							  : (enum tacho__owns)0;
	case TACHO__OWNS_CODE:
	case TACHO__OWNS_CALL:
	case TACHO__OWNS_LOCK:
	case TACHO__OWNS_DESCHEDULED:
	case TACHO__OWNS_STOPPED:
	case TACHO__OWNS_FAULTING:
		return o->owns;
	default:
		return (enum tacho__owns)0;
	}
}

/* Somebody saw from outside that the process was stopped. */
static int owns_stop(const struct tacho__owned *o)
{
	return o->owns == TACHO__OWNS_STOPPED && o->reason;
}

uint64_t tacho__cause_key(const struct tacho__explaining *x, const struct tacho__owned *o)
{
	switch (o->owns) {
	case TACHO__OWNS_CODE:
		return o->kind ? o->kind : (uint64_t)o->loop << 32;
	case TACHO__OWNS_CALL:
		return tacho__hash_words(
			o->name, o->place ? tacho__cause_place(x, o, o->place) : o->code, 0);
	case TACHO__OWNS_LOCK:
		return o->is_signal ? tacho__cause_place(x, o, o->place) : o->lock;
	default:
		return owns_stop(o) ? o->reason : 0;
	}
}

/* What is looked up for each owner, counted once. */
struct counted {
	double running_ns; /* the window without the time in which nothing of the process ran */
	uint32_t clients;  /* of the process: what was ready more than now and then */
	struct tacho__table told; /* loops of which it is told what was ready; key: loop, 0 */
	/* By index of the owner: what functions had of its code. */
	struct sampled {
		struct tacho__size size[TACHO__SIZES];
		uint64_t cpu_ns; /* of those of 1 to 10 ms */
	} * sampled;
	int error;
};

/* Its part of what waited in callbacks that it had most of. */
static uint64_t waited(const struct tacho__owned *o, const struct tacho__function *f, uint32_t size)
{
	const struct tacho__size *all = &o->size[size];

	return all->ns ? (uint64_t)((double)all->waiting_ns *
				    ((double)f->size[size].ns / (double)all->ns))
		       : 0;
}

static void count_sampled(const struct tacho__explaining *x, struct counted *c)
{
	const struct tacho__ledger *l = x->out->ledger;

	c->sampled = calloc(l->owned.used + 1u, sizeof(*c->sampled));
	if (!c->sampled) {
		c->error = -ENOMEM;
		return;
	}
	for (const struct tacho__function *f = NULL; (f = tacho__table_next(&l->functions, f));) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, f->owned);

		for (uint32_t i = 1; o && i < TACHO__SIZES; i++) {
			struct tacho__size *to = &c->sampled[f->owned].size[i];

			to->count += f->size[i].count;
			to->ns += f->size[i].ns;
			to->waiting_ns += waited(o, f, i);
		}
		c->sampled[f->owned].cpu_ns += f->size_cpu_ns[1];
	}
}

/* Whether threads wait for work at a loop; else for what they need in the middle of it. */
static int is_for_work(const struct tacho__explaining *x, uint32_t loop)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint32_t i = 0;

	while (i < l->thread_count &&
	       !(l->threads[i].process == x->process && l->threads[i].loop == loop))
		i++;
	return i < l->thread_count;
}

/*
 * Many callbacks of 1 to 10 ms have no sample, because they are shorter than the time between two. If
 * the samples of the others make up for the time of all, all of them ran, and functions have them in
 * the proportion of those that were sampled.
 */
static int is_in_proportion(const struct counted *c, const struct tacho__owned *o, uint32_t size)
{
	const struct sampled *s = &c->sampled[o->entry.index];

	return size == 1 && s->size[1].count >= PROPORTION_LEAST &&
	       s->cpu_ns >= o->size[1].ns / 2 && o->size[1].ns >= s->size[1].ns;
}

static uint64_t in_proportion(uint64_t part, uint64_t sampled, uint64_t all)
{
	return sampled ? (uint64_t)((double)part * ((double)all / (double)sampled)) : part;
}

static void count_clients(const struct tacho__explaining *x, struct counted *c)
{
	uint64_t all = 0;

	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));) {
		if (r->process != x->process || !is_for_work(x, r->loop))
			continue;
		all += r->count;
		tacho__table_get(&c->told, r->loop, 0, &c->error);
	}
	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));)
		c->clients += r->process == x->process && is_for_work(x, r->loop) &&
			      (double)r->count >= ONE_CLIENT * (double)all;
}

/* What shares are of. A process that lived for a moment, as one that a server forks for each client, has
   not waited for much of anything: as for rates, half a second at least. */
static double shared_ns(const struct tacho__explaining *x, double window_ns)
{
	double least_ns = tacho__limit(x, "not-enough-data.ns");

	return window_ns > least_ns ? window_ns : least_ns;
}

/* What the clock jumped over, or the process was stopped for, is time that nothing has a share of. */
static void count_running(const struct tacho__explaining *x, struct counted *c)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint64_t paused = 0;

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->process == x->process && kind_of(o) == TACHO__OWNS_STOPPED && o->ns > paused)
			paused = o->ns;
	c->running_ns = shared_ns(x, tacho__window_ns(x) - (double)paused);
}

/*
 * Whether the thread works for one client alone, who waits for each answer. What was ready tells: of all
 * that was ready in the process, one nearly always; where that is not told, one at a time.
 */
static int has_one_client(const struct tacho__explaining *x, const struct counted *c,
			  const struct tacho__owned *o)
{
	const struct tacho__ledger_thread *t = &x->out->ledger->threads[o->thread];
	const struct tacho__loop_sum *l =
		tacho__table_find(&x->sum->loops, (uint64_t)t->process << 32 | t->loop, t->thread);

	/* Others wait where connections come in, and behind what comes by itself. */
	if ((l && l->listens) || tacho__arrive_by_themselves(&t->arrivals))
		return 0;
	return tacho__table_find(&c->told, t->loop, 0)
		       ? c->clients <= 1
		       : t->level == TACHO_LEVEL_WAITS && t->most_ready == 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What had no time of its own was at no time. */
static void reach(struct tacho__cause *g, uint64_t first_ns, uint64_t last_ns)
{
	if (first_ns && (!g->first_ns || first_ns < g->first_ns))
		g->first_ns = first_ns;
	if (last_ns > g->last_ns)
		g->last_ns = last_ns;
}

static void take_thread(struct tacho__cause *g, uint32_t thread)
{
	thread %= TACHO__CAUSE_THREADS;
	g->threads[thread / 64] |= UINT64_C(1) << thread % 64;
}

static void take_longest(struct tacho__size *to, const struct tacho__size *from)
{
	if (from->longest_ns <= to->longest_ns)
		return;
	to->longest_ns = from->longest_ns;
	to->longest_at_ns = from->longest_at_ns;
	to->wall_ns = from->wall_ns;
}

/* Of code, without what functions had of it. */
static void add_owned(const struct tacho__explaining *x, const struct counted *c,
		      struct tacho__cause *g, const struct tacho__owned *o)
{
	const struct tacho__size *less = c->sampled[o->entry.index].size;
	uint64_t served = 0;

	g->several |= !has_one_client(x, c, o);
	g->estimated_ns += o->estimated_ns;
	take_thread(g, o->thread);
	reach(g, o->first_ns, o->last_ns);
	if (!g->worst || o->longest_ns > g->longest_ns) {
		g->worst = o;
		g->longest_ns = o->longest_ns;
		g->longest_at_ns = o->longest_at_ns;
	}
	g->holder_off_ns += o->holder_off_ns;
	g->own_ns += o->own_ns;
	for (uint32_t i = 1; i < TACHO__SIZES && o->owns == TACHO__OWNS_DESCHEDULED; i++)
		served += o->size[i].ns;
	g->served_ns += served - least(o->own_ns, served);
	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		const struct tacho__size *size = &o->size[i];

		if (is_in_proportion(c, o, i))
			continue;
		g->size[i].count += size->count - least(less[i].count, size->count);
		g->size[i].ns += size->ns - least(less[i].ns, size->ns);
		g->size[i].waiting_ns +=
			size->waiting_ns - least(less[i].waiting_ns, size->waiting_ns);
		take_longest(&g->size[i], size);
	}
}

static double mean(const struct tacho__size *s)
{
	return s->count ? (double)s->ns / (double)s->count : 0;
}

double tacho__busy_share(const struct tacho__explaining *x, uint32_t thread)
{
	const struct tacho__ledger *l = x->out->ledger;

	for (uint32_t i = 0; i < l->thread_count; i++) {
		const struct tacho__ledger_thread *t = &l->threads[i];

		if (t->process == x->process && t->thread == thread && t->last_ns > t->first_ns)
			return 1 - (double)t->idle_ns / (double)(t->last_ns - t->first_ns);
	}
	return 0;
}

/* Whether the short ones are, and the others far longer. */
static int are_usual(const struct tacho__size *sizes)
{
	return sizes[0].count >= USUAL * sizes[1].count &&
	       mean(&sizes[1]) >= OUTLYING * mean(&sizes[0]);
}

/* All that the thread runs, by size: callbacks of each kind, and turns. */
static void all_code(const struct tacho__explaining *x, uint32_t thread,
		     struct tacho__size sizes[TACHO__SIZES])
{
	memset(sizes, 0, TACHO__SIZES * sizeof(*sizes));
	for (const struct tacho__owned *o = NULL;
	     (o = tacho__table_next(&x->out->ledger->owned, o));)
		for (uint32_t i = 0;
		     i < TACHO__SIZES && o->thread == thread && o->owns == TACHO__OWNS_CODE; i++) {
			sizes[i].count += o->size[i].count;
			sizes[i].ns += o->size[i].ns;
		}
}

/* Whether it is of a function that is not in what is short. Without samples nobody knows: then the length
   of the callback itself tells, if it is not what a loop had to do in a turn. */
static int is_specific(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	if (g->function)
		return (double)g->cpu_ns >= SPECIFIC * (double)g->function_ns;
	return g->worst->kind && !tacho__source_is_on(x, x->process, "cpu_samples");
}

/*
 * From which size on occurrences count. Code of less than 10 ms does where it is far longer than
 * usual, if the loop has time for all else, and if the usual does not run it.
 */
static uint32_t counts_from(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	uint32_t thread = x->out->ledger->threads[g->worst->thread].thread;
	struct tacho__size all[TACHO__SIZES];

	if (g->owns != TACHO__OWNS_CODE)
		return 1;
	if (tacho__busy_share(x, thread) >= FULL || !is_specific(x, g))
		return 2;
	if (are_usual(g->worst->size))
		return 1;
	/* Callbacks that hardly do anything are no measure for those that do the work. */
	all_code(x, g->worst->thread, all);
	return are_usual(all) && all[0].ns * USUAL >= all[1].ns ? 1 : 2;
}

static struct tacho__cause *group_of(struct tacho__cause *groups, uint32_t *count,
				     enum tacho__owns owns, uint64_t key)
{
	uint32_t at = 0;

	while (at < *count && !(groups[at].owns == owns && groups[at].key == key))
		at++;
	if (at == TACHO__CAUSES)
		return NULL;
	if (at == *count)
		groups[(*count)++] = (struct tacho__cause){.owns = owns, .key = key};
	return &groups[at];
}

static void add_function(const struct tacho__explaining *x, const struct counted *c,
			 struct tacho__cause *g, const struct tacho__owned *o,
			 const struct tacho__function *f)
{
	g->several |= !has_one_client(x, c, o);
	g->estimated_ns += o->estimated_ns;
	take_thread(g, o->thread);
	reach(g, o->first_ns, o->last_ns);
	if (!g->worst || f->longest_ns > g->longest_ns) {
		g->worst = o;
		g->function = f;
		g->longest_ns = f->longest_ns;
		g->longest_at_ns = f->longest_at_ns;
	}
	g->samples += f->samples;
	g->function_ns += f->ns;
	for (uint32_t i = 1; i < TACHO__SIZES; i++) {
		const struct tacho__size *s = &c->sampled[o->entry.index].size[i];
		const struct tacho__size *all = is_in_proportion(c, o, i) ? &o->size[i] : s;

		g->size[i].count += in_proportion(f->size[i].count, s->count, all->count);
		g->size[i].ns += in_proportion(f->size[i].ns, s->ns, all->ns);
		g->size[i].waiting_ns += in_proportion(waited(o, f, i), s->ns, all->ns);
		take_longest(&g->size[i], &f->size[i]);
		g->cpu_ns += f->size_cpu_ns[i];
	}
}

static int is_long(const struct tacho__size *size)
{
	return size[1].count || size[2].count || size[3].count;
}

/* Code by function, as far as it was sampled; the rest by callback. */
static void group_code(const struct tacho__explaining *x, const struct counted *c,
		       struct tacho__cause *groups, uint32_t *count)
{
	const struct tacho__ledger *l = x->out->ledger;
	struct tacho__cause *g;

	for (const struct tacho__function *f = NULL; (f = tacho__table_next(&l->functions, f));) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, f->owned);

		if (!o || o->process != x->process || !tacho__may_be_cause(l, o) ||
		    f->is_recorder || !is_long(f->size))
			continue;
		g = group_of(groups, count, TACHO__OWNS_CODE, f->entry.key[1] | TACHO__BY_FUNCTION);
		if (g)
			add_function(x, c, g, o, f);
	}
}

/* What is in one group belongs to the other. */
void tacho__cause_add(struct tacho__cause *to, struct tacho__cause *from)
{
	if (from->longest_ns > to->longest_ns) {
		to->worst = from->worst;
		to->function = from->function;
		to->longest_ns = from->longest_ns;
		to->longest_at_ns = from->longest_at_ns;
	}
	to->several |= from->several;
	to->estimated_ns += from->estimated_ns;
	to->samples += from->samples;
	to->cpu_ns += from->cpu_ns;
	to->function_ns += from->function_ns;
	reach(to, from->first_ns, from->last_ns);
	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		to->size[i].count += from->size[i].count;
		to->size[i].ns += from->size[i].ns;
		to->size[i].waiting_ns += from->size[i].waiting_ns;
		take_longest(&to->size[i], &from->size[i]);
	}
	for (uint32_t i = 0; i < TACHO__CAUSE_THREADS / 64; i++)
		to->threads[i] |= from->threads[i];
	memset(from->size, 0, sizeof(from->size));
}

/* Whether there are long ones of which no function had most. */
static int has_unsampled(const struct counted *c, const struct tacho__owned *o)
{
	const struct tacho__size *less = c->sampled[o->entry.index].size;
	int any = 0;

	for (uint32_t i = 1; i < TACHO__SIZES; i++)
		any |= o->size[i].count > less[i].count && !is_in_proportion(c, o, i);
	return any;
}

/* Of those that count. The sums may have been corrected since it was noted: it is a part of these. */
static void settle_longest(struct tacho__cause *g)
{
	struct tacho__size all = {.longest_ns = 0};

	for (uint32_t k = g->owns == TACHO__OWNS_DESCHEDULED ? 0 : g->from; k < TACHO__SIZES; k++)
		take_longest(&all, &g->size[k]);
	if (all.longest_ns) {
		g->longest_at_ns = all.longest_at_ns;
		g->wall_ns = all.wall_ns;
	}
	g->longest_ns = least(all.longest_ns, g->ns);
	if (g->count && g->longest_ns < g->ns / g->count + 1)
		g->longest_ns = least((g->ns + g->count - 1) / g->count, g->ns);
	if (g->wall_ns < g->longest_ns)
		g->wall_ns = g->longest_ns;
	g->own_ns = least(g->own_ns, g->ns);
}

static uint32_t group_all(const struct tacho__explaining *x, const struct counted *c,
			  struct tacho__cause *groups)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint32_t n = 0;

	group_code(x, c, groups, &n);
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		enum tacho__owns owns = kind_of(o);
		struct tacho__cause *g;

		if (o->process != x->process || !owns || !tacho__may_be_cause(l, o))
			continue;
		if (owns == TACHO__OWNS_CODE && !has_unsampled(c, o))
			continue;
		g = group_of(groups, &n, owns, tacho__cause_key(x, o));
		if (g)
			add_owned(x, c, g, o);
	}
	tacho__causes_join(x, groups, n);
	for (uint32_t i = 0; i < n; i++) {
		groups[i].from = counts_from(x, &groups[i]);
		for (uint32_t k = groups[i].from; k < TACHO__SIZES; k++) {
			groups[i].count += groups[i].size[k].count;
			groups[i].ns += groups[i].size[k].ns;
			groups[i].waiting_ns += groups[i].size[k].waiting_ns;
		}
		/* Short ones are nothing that matters, but time that others had. */
		if (groups[i].owns == TACHO__OWNS_DESCHEDULED) {
			groups[i].waiting_ns += groups[i].kept_waiting_ns;
			groups[i].count += groups[i].size[0].count;
			groups[i].ns += groups[i].size[0].ns;
		}
		settle_longest(&groups[i]);
	}
	return n;
}

/* ------------------------------------------------------------- significance */

/* Threads that serve what this one does. */
static uint32_t peers(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	const struct tacho__ledger *l = x->out->ledger;
	const struct tacho__ledger_thread *of = &l->threads[g->worst->thread];
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->thread_count; i++) {
		const struct tacho__ledger_thread *t = &l->threads[i];

		n += t->process == x->process &&
		     (of->is_loop ? t->is_loop && t->loop == g->worst->loop
				  : t->is_pool && !t->is_loop && t->pool == of->pool);
	}
	return n ? n : 1;
}

/* On a thread of a pool: only what it keeps waiting, or is blocked for, is lost. */
static int is_of_pool(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	return !x->out->ledger->threads[g->worst->thread].is_loop;
}

/* Time of long ones that is no use to anybody: of code, that of callbacks that should have been
   split. */
static uint64_t lost_ns(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	switch (g->owns) {
	case TACHO__OWNS_CODE:
		return is_of_pool(x, g) ? 0 : g->size[2].ns + g->size[3].ns;
	case TACHO__OWNS_DESCHEDULED:
	case TACHO__OWNS_STOPPED:
		return 0;
	default:
		return g->ns > (g->ns + g->size[0].ns) / SHORT_ONES
			       ? g->ns
			       : (g->ns + g->size[0].ns) / SHORT_ONES;
	}
}

/* When what is ready at once became so is not seen: of an only client, it is what it asked for next. */
static double known_ns(const struct tacho__cause *g)
{
	return (double)(g->waiting_ns - least(g->estimated_ns, g->waiting_ns));
}

static int is_blocked(const struct tacho__cause *g)
{
	return g->owns == TACHO__OWNS_CALL || g->owns == TACHO__OWNS_LOCK;
}

/*
 * While others wait, Go takes the P from what runs for 10 ms or is in a call: neither keeps anybody
 * waiting unless all Ps are busy, which other rules tell. And its trace does not say whether the
 * kernel ran it at all.
 */
static int is_preempted(const struct tacho__explaining *x, const struct tacho__cause *g)
{
	return (g->owns == TACHO__OWNS_CODE || g->owns == TACHO__OWNS_CALL) && tacho__is_go(x);
}

static enum tacho__severity severity_of(const struct tacho__explaining *x, const struct counted *c,
					const struct tacho__cause *g)
{
	double window =
		g->owns == TACHO__OWNS_STOPPED ? shared_ns(x, tacho__window_ns(x)) : c->running_ns;
	double share = 100 * (double)(g->waiting_ns + g->served_ns) / window;
	double least = tacho__limit(x, "waiting.share");
	uint32_t threads = peers(x, g);
	double lost = 100 * (double)lost_ns(x, g) / window / threads;
	/* Who is blocked waits as well; where others serve meanwhile, that is the capacity's share. */
	double felt =
		share +
		(g->several && threads == 1 && is_blocked(g) ? 100 * (double)g->ns / window : 0);
	int stalls = (double)g->size[3].count >= tacho__limit(x, "stall.count") ||
		     (g->owns == TACHO__OWNS_STOPPED && !owns_stop(g->worst) &&
		      (double)g->longest_ns >= tacho__limit(x, "process-pause.ns"));

	if (is_preempted(x, g)) {
		tacho__drop_cause(x, g,
				  "Go lets others run in between, and whether this ran is "
				  "not in its trace");
		return (enum tacho__severity)0;
	}
	/* What a thread of a pool does may take long: how much of them it takes counts. */
	if (felt < least && (!stalls || is_of_pool(x, g)) && lost < tacho__limit(x, "lost.share")) {
		/* What the blocked threads serve has waited, and nothing else: a note. */
		if (g->several && is_blocked(g) && 100 * (double)g->ns / window >= least)
			return TACHO__SEVERITY_INFO;
		tacho__drop_small(x, g, felt, lost);
		return (enum tacho__severity)0;
	}
	/* Its only client waits for it, and has nothing else to ask for. */
	if (!g->several && g->owns != TACHO__OWNS_DESCHEDULED && !owns_stop(g->worst) &&
	    100 * known_ns(g) / window < least)
		return TACHO__SEVERITY_INFO;
	if (g->owns == TACHO__OWNS_STOPPED && (double)g->count < tacho__limit(x, "stall.count"))
		return TACHO__SEVERITY_WARNING;
	return share >= 5 * least || stalls ? TACHO__SEVERITY_CRITICAL : TACHO__SEVERITY_WARNING;
}

uint32_t tacho__causes(struct tacho__explaining *x, struct tacho__cause *causes)
{
	struct counted c = {.error = 0};
	uint32_t n = 0;

	tacho__table_init(&c.told, sizeof(struct tacho__entry), LOOPS);
	count_sampled(x, &c);
	count_clients(x, &c);
	count_running(x, &c);
	if (!c.error)
		n = group_all(x, &c, causes);
	else
		x->error = -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		causes[i].severity = severity_of(x, &c, &causes[i]);
	tacho__table_free(&c.told);
	free(c.sampled);
	return n;
}
