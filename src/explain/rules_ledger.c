/*
 * Who keeps things waiting: owners of the ledger, by what waited while they had the time of a
 * thread that should have served it.
 *
 * One notion of what matters for all of them. What waits for less than a millisecond is not kept
 * waiting. An owner matters when what waited because of it sums up to a share of the window, or when
 * it stalled a loop for long several times. Where threads are blocked in the middle of work, the
 * capacity that is lost matters by itself, whatever waited. A process that has one client has its
 * time told, and nobody is to blame.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "explain/rules.h"

#define GROUPS 256u
#define LOOPS 4096u
#define WAITERS 64u		     /* of one lock that are looked at */
#define FUNCTION (UINT64_C(1) << 63) /* in keys of code: by function */
/* Code that is no longer than usual is load: longer than all shorter ones by so much is not. */
#define OUTLYING 5
#define ONE_CLIENT 0.01
#define HARDLY 0.01
#define SHARED 5
#define SHORT_ONES 3   /* times what is lost must be lost, if short ones are a part of it */
#define LOST_WEIGHT 10 /* capacity that is lost costs less than waiting */
/* Of the time of long callbacks, the least part that samples must have seen run. */
#define SEEN_SHARE 4
#define SEEN_SAMPLES 3
#define FULL 0.9 /* busy for so much of the time, a loop has too much to do */
/* Of the time of a function, what is in callbacks that are longer than usual, if it is the reason. */
#define SPECIFIC 0.7

/* Owners that are one to a person. */
struct group {
	enum tacho__owns owns;
	uint64_t key;
	const struct tacho__owned *worst; /* with the longest */
	/* Of code, where it was sampled: the function that had most of these. */
	const struct tacho__function *function;
	uint64_t cpu_ns, function_ns; /* of these; of the function in all */
	uint32_t samples;
	uint64_t longest_ns, longest_at_ns;
	uint64_t first_ns, last_ns;
	int several; /* clients wait for it, or may */
	struct tacho__size size[TACHO__SIZES];
	uint32_t from; /* the least size that counts; of those: */
	uint64_t count, ns, waiting_ns;
};

/* -------------------------------------------------------------------- groups */

static uint64_t hash_place(const struct tacho__explaining *x, const struct tacho__owned *o,
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

static uint64_t key_of(const struct tacho__explaining *x, const struct tacho__owned *o)
{
	switch (o->owns) {
	case TACHO__OWNS_CODE:
		return o->kind ? o->kind : (uint64_t)o->loop << 32;
	case TACHO__OWNS_CALL:
		return tacho__hash_words(o->name, o->place ? hash_place(x, o, o->place) : o->code,
					 0);
	case TACHO__OWNS_LOCK:
		return o->is_signal ? hash_place(x, o, o->place) : o->lock;
	default:
		return 0;
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
	}
}

static void count_clients(const struct tacho__explaining *x, struct counted *c)
{
	uint64_t all = 0;

	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));) {
		if (r->process != x->process)
			continue;
		all += r->count;
		tacho__table_get(&c->told, r->loop, 0, &c->error);
	}
	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));)
		c->clients +=
			r->process == x->process && (double)r->count >= ONE_CLIENT * (double)all;
}

/* What the clock jumped over, or the process was stopped for, is time that nothing has a share of. */
static void count_running(const struct tacho__explaining *x, struct counted *c)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint64_t paused = 0;

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->process == x->process && kind_of(o) == TACHO__OWNS_STOPPED && o->ns > paused)
			paused = o->ns;
	c->running_ns = tacho__window_ns(x) - (double)paused;
	if (c->running_ns < 1)
		c->running_ns = 1;
}

/*
 * Whether the thread works for one client alone. What was ready tells: of all that was ready in the
 * process, one nearly always; where that is not told, one at a time.
 */
static int has_one_client(const struct tacho__explaining *x, const struct counted *c,
			  const struct tacho__owned *o)
{
	const struct tacho__ledger_thread *t = &x->out->ledger->threads[o->thread];
	const struct tacho__loop_sum *l =
		tacho__table_find(&x->sum->loops, (uint64_t)t->process << 32 | t->loop, t->thread);

	/* Others wait where connections come in. */
	if (l && l->listens)
		return 0;
	return tacho__table_find(&c->told, t->loop, 0)
		       ? c->clients <= 1
		       : t->level == TACHO_LEVEL_WAITS && t->most_ready == 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void reach(struct group *g, uint64_t first_ns, uint64_t last_ns)
{
	if (!g->first_ns || first_ns < g->first_ns)
		g->first_ns = first_ns;
	if (last_ns > g->last_ns)
		g->last_ns = last_ns;
}

/* Of code, without what functions had of it. */
static void add_owned(const struct tacho__explaining *x, const struct counted *c, struct group *g,
		      const struct tacho__owned *o)
{
	const struct tacho__size *less = c->sampled[o->entry.index].size;

	g->several |= !has_one_client(x, c, o);
	reach(g, o->first_ns, o->last_ns);
	if (!g->worst || o->longest_ns > g->longest_ns) {
		g->worst = o;
		g->longest_ns = o->longest_ns;
		g->longest_at_ns = o->longest_at_ns;
	}
	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		const struct tacho__size *size = &o->size[i];

		g->size[i].count += size->count - least(less[i].count, size->count);
		g->size[i].ns += size->ns - least(less[i].ns, size->ns);
		g->size[i].waiting_ns +=
			size->waiting_ns - least(less[i].waiting_ns, size->waiting_ns);
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

struct tacho__own_time tacho__own_time(const struct tacho__explaining *x, uint32_t thread)
{
	const struct tacho__ledger *l = x->out->ledger;
	struct tacho__own_time t = {0, 0, 0, 0};

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		if (o->process != x->process || l->threads[o->thread].thread != thread)
			continue;
		if (o->owns == TACHO__OWNS_CODE) {
			t.code_ns += (double)o->ns;
			t.cpu_ns += (double)o->sample_ns;
			t.waiting_ns += (double)o->waiting_ns;
		} else if (o->owns == TACHO__OWNS_DESCHEDULED || o->owns == TACHO__OWNS_THROTTLED ||
			   o->owns == TACHO__OWNS_STOPPED) {
			t.off_ns += (double)o->ns;
		}
	}
	return t;
}

/*
 * From which size on occurrences count. Code of less than 10 ms does where it is far longer than
 * usual, if the loop has time for all else, and if it is of a function that is not in what is short.
 */
static uint32_t counts_from(const struct tacho__explaining *x, const struct group *g)
{
	const struct tacho__size *all = g->worst->size;
	uint32_t thread = x->out->ledger->threads[g->worst->thread].thread;

	if (g->owns != TACHO__OWNS_CODE)
		return 1;
	return all[0].count >= OUTLYING * all[1].count &&
			       mean(&all[1]) >= OUTLYING * mean(&all[0]) &&
			       tacho__busy_share(x, thread) < FULL && g->function &&
			       (double)g->cpu_ns >= SPECIFIC * (double)g->function_ns
		       ? 1
		       : 2;
}

static struct group *group_of(struct group *groups, uint32_t *count, enum tacho__owns owns,
			      uint64_t key)
{
	uint32_t at = 0;

	while (at < *count && !(groups[at].owns == owns && groups[at].key == key))
		at++;
	if (at == GROUPS)
		return NULL;
	if (at == *count)
		groups[(*count)++] = (struct group){.owns = owns, .key = key};
	return &groups[at];
}

static void add_function(const struct tacho__explaining *x, const struct counted *c,
			 struct group *g, const struct tacho__owned *o,
			 const struct tacho__function *f)
{
	g->several |= !has_one_client(x, c, o);
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
		g->size[i].count += f->size[i].count;
		g->size[i].ns += f->size[i].ns;
		g->size[i].waiting_ns += waited(o, f, i);
		g->cpu_ns += f->size_cpu_ns[i];
	}
}

static int is_long(const struct tacho__size *size)
{
	return size[1].count || size[2].count || size[3].count;
}

/* Code by function, as far as it was sampled; the rest by callback. */
static void group_code(const struct tacho__explaining *x, const struct counted *c,
		       struct group *groups, uint32_t *count)
{
	const struct tacho__ledger *l = x->out->ledger;
	struct group *g;

	for (const struct tacho__function *f = NULL; (f = tacho__table_next(&l->functions, f));) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, f->owned);

		if (!o || o->process != x->process || !l->threads[o->thread].is_loop ||
		    f->is_recorder || !is_long(f->size))
			continue;
		g = group_of(groups, count, TACHO__OWNS_CODE, f->entry.key[1] | FUNCTION);
		if (g)
			add_function(x, c, g, o, f);
	}
}

/* Whether one of these is the holder of another, and waits for half as long at least. */
static int holder_waits(const struct tacho__ledger *l, const struct tacho__owned *const *waiters,
			uint32_t count, const struct tacho__owned *o)
{
	int waits = 0;

	for (uint32_t i = 0; i < count; i++)
		waits |= l->threads[waiters[i]->thread].thread == o->holder &&
			 waiters[i]->longest_ns >= o->longest_ns / 2;
	return waits;
}

/* Who has the lock while others wait: not one that waited for it as well. */
static const struct tacho__owned *keeper(const struct tacho__explaining *x, const struct group *g)
{
	const struct tacho__ledger *l = x->out->ledger;
	const struct tacho__owned *waiters[WAITERS], *best = NULL;
	uint32_t n = 0;
	int best_waits = 1;

	for (const struct tacho__owned *o = NULL;
	     n < WAITERS && (o = tacho__table_next(&l->owned, o));)
		if (o->process == x->process && o->owns == TACHO__OWNS_LOCK &&
		    o->lock == g->worst->lock && !o->is_signal)
			waiters[n++] = o;
	for (uint32_t i = 0; i < n; i++) {
		const struct tacho__owned *o = waiters[i];
		int waits = holder_waits(l, waiters, n, o);

		if (o->holder &&
		    (!best || waits < best_waits || (waits == best_waits && o->ns > best->ns))) {
			best = o;
			best_waits = waits;
		}
	}
	return best;
}

/* What is in one group belongs to the other. */
static void add_group(struct group *to, struct group *from)
{
	if (from->longest_ns > to->longest_ns) {
		to->worst = from->worst;
		to->longest_ns = from->longest_ns;
		to->longest_at_ns = from->longest_at_ns;
	}
	to->several |= from->several;
	reach(to, from->first_ns, from->last_ns);
	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		to->size[i].count += from->size[i].count;
		to->size[i].ns += from->size[i].ns;
		to->size[i].waiting_ns += from->size[i].waiting_ns;
	}
	memset(from->size, 0, sizeof(from->size));
}

/* What is held in one place is one cause, however many locks it is: a lock for each bucket, say. */
static void join_locks(const struct tacho__explaining *x, struct group *groups, uint32_t count)
{
	uint64_t held[GROUPS] = {0};

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__owned *k = NULL;
		uint32_t to = 0;

		if (groups[i].owns == TACHO__OWNS_LOCK && !groups[i].worst->is_signal)
			k = keeper(x, &groups[i]);
		if (!k || !k->held_place)
			continue;
		held[i] = hash_place(x, k, k->held_place) | 1;
		while (held[to] != held[i])
			to++;
		if (to < i)
			add_group(&groups[to], &groups[i]);
	}
}

/* Whether there are long ones of which no function had most. */
static int has_unsampled(const struct counted *c, const struct tacho__owned *o)
{
	const struct tacho__size *less = c->sampled[o->entry.index].size;
	int any = 0;

	for (uint32_t i = 1; i < TACHO__SIZES; i++)
		any |= o->size[i].count > less[i].count;
	return any;
}

static uint32_t group_all(const struct tacho__explaining *x, const struct counted *c,
			  struct group *groups)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint32_t n = 0;

	group_code(x, c, groups, &n);
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		enum tacho__owns owns = kind_of(o);
		struct group *g;

		/* What threads of a pool do may take long: that is what they are for. */
		if (o->process != x->process || !owns || !l->threads[o->thread].is_loop)
			continue;
		if (owns == TACHO__OWNS_CODE && !has_unsampled(c, o))
			continue;
		g = group_of(groups, &n, owns, key_of(x, o));
		if (g)
			add_owned(x, c, g, o);
	}
	join_locks(x, groups, n);
	for (uint32_t i = 0; i < n; i++) {
		groups[i].from = counts_from(x, &groups[i]);
		for (uint32_t k = groups[i].from; k < TACHO__SIZES; k++) {
			groups[i].count += groups[i].size[k].count;
			groups[i].ns += groups[i].size[k].ns;
			groups[i].waiting_ns += groups[i].size[k].waiting_ns;
		}
	}
	return n;
}

/* ------------------------------------------------------------- significance */

/* Threads that serve what this one does. */
static uint32_t peers(const struct tacho__explaining *x, const struct group *g)
{
	const struct tacho__ledger *l = x->out->ledger;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->thread_count; i++)
		n += l->threads[i].process == x->process && l->threads[i].is_loop &&
		     l->threads[i].loop == g->worst->loop;
	return n ? n : 1;
}

/* Whether its thread never waits where it asks what is ready: one thing is, all the time. */
static int asks_in_vain(const struct tacho__explaining *x, const struct group *g)
{
	const struct tacho__ledger_thread *t = &x->out->ledger->threads[g->worst->thread];

	return t->most_ready <= 1 &&
	       (double)t->idle_ns < HARDLY * (double)(t->last_ns - t->first_ns);
}

/* Time of long ones that is no use to anybody: of code, that of callbacks that should have been
   split. */
static uint64_t lost_ns(const struct group *g)
{
	switch (g->owns) {
	case TACHO__OWNS_CODE:
		return g->size[2].ns + g->size[3].ns;
	case TACHO__OWNS_DESCHEDULED:
		return g->ns / SHARED; /* CPUs are shared: a part of it is to be expected */
	case TACHO__OWNS_STOPPED:
		return 0;
	default:
		return g->ns > (g->ns + g->size[0].ns) / SHORT_ONES
			       ? g->ns
			       : (g->ns + g->size[0].ns) / SHORT_ONES;
	}
}

static enum tacho__severity severity_of(const struct tacho__explaining *x, const struct counted *c,
					const struct group *g)
{
	double window = g->owns == TACHO__OWNS_STOPPED ? tacho__window_ns(x) : c->running_ns;
	double share = 100 * (double)g->waiting_ns / window;
	double least = tacho__limit(x, "waiting.share");
	double lost = 100 * (double)lost_ns(g) / window / peers(x, g);
	int stalls = (double)g->size[3].count >= tacho__limit(x, "stall.count") ||
		     (g->owns == TACHO__OWNS_STOPPED &&
		      (double)g->longest_ns >= tacho__limit(x, "process-pause.ns"));

	if (share < least && !stalls && lost < tacho__limit(x, "lost.share"))
		return (enum tacho__severity)0;
	/* Its only client waits for it, and has nothing else to ask for. */
	if (!g->several && g->owns != TACHO__OWNS_DESCHEDULED &&
	    (share < least || asks_in_vain(x, g)))
		return TACHO__SEVERITY_INFO;
	if (g->owns == TACHO__OWNS_STOPPED && (double)g->count < tacho__limit(x, "stall.count"))
		return TACHO__SEVERITY_WARNING;
	return share >= 5 * least || stalls ? TACHO__SEVERITY_CRITICAL : TACHO__SEVERITY_WARNING;
}

/* ------------------------------------------------------------------ findings */

static struct tacho__finding *begin(struct tacho__explaining *x, const struct group *g,
				    enum tacho__severity severity, const char *rule)
{
	struct tacho__finding *f = tacho__find(x, rule, severity, x->process, (double)g->ns);

	f->waiting_ns = (double)g->waiting_ns;
	f->rank_ns = f->waiting_ns + f->cost_ns / LOST_WEIGHT;
	f->loop = g->worst->loop;
	f->kind = g->worst->kind;
	f->thread = x->out->ledger->threads[g->worst->thread].thread;
	return f;
}

const char *tacho__callback_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
				 const struct tacho__poll *p)
{
	if (p->kind)
		return tacho__id_text(x, out, p->at.process, p->kind);
	strcpy(out, "a turn of the loop");
	return out;
}

static const char *callback(const struct tacho__explaining *x, char out[TACHO__TEXT],
			    const struct group *g)
{
	struct tacho__poll p = {.at.process = x->process, .kind = g->worst->kind};

	return tacho__callback_text(x, out, &p);
}

static void show(struct tacho__finding *f, const struct group *g, const char *what)
{
	char ns[TACHO__TEXT], all[TACHO__TEXT], sum[TACHO__TEXT];

	tacho__say_evidence(f, f->thread, g->longest_at_ns, g->longest_at_ns + g->longest_ns,
			    (double)g->longest_ns, "ns", "%s took %s", what,
			    tacho__ns_text(ns, (double)g->longest_ns));
	if (g->count > 1)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)g->ns, "ns",
				    "%llu times, %s in all", (unsigned long long)g->count,
				    tacho__ns_text(all, (double)g->ns));
	if (g->waiting_ns)
		tacho__say_evidence(f, f->thread, g->first_ns, g->last_ns, (double)g->waiting_ns,
				    "ns", "what was ready meanwhile waited %s in all",
				    tacho__ns_text(sum, (double)g->waiting_ns));
}

/* Whether the loop has several clients, as far as it was seen. */
static int has_several(const struct tacho__explaining *x, const struct group *g)
{
	uint32_t n = 0;

	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));)
		n += r->process == x->process && r->loop == g->worst->loop;
	return n > 1;
}

/* Long ones that hardly ran where code that runs is sampled were kept by something that nobody saw:
   a CPU that a virtual machine did not have, say. */
static int was_seen(const struct tacho__explaining *x, const struct group *g)
{
	return !tacho__source_is_on(x, x->process, "cpu_samples") ||
	       (g->samples >= SEEN_SAMPLES && g->cpu_ns >= g->ns / SEEN_SHARE) ||
	       (g->size[3].count && (g->worst->kind || has_several(x, g)));
}

static void find_code(struct tacho__explaining *x, const struct group *g,
		      enum tacho__severity severity)
{
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];
	const struct tacho__function *hot = g->function;
	struct tacho__finding *f;

	if (!was_seen(x, g))
		return;
	f = begin(x, g, severity, "long-callback");
	if (hot)
		tacho__where_function(x, f, hot);
	if (!f->where_count && g->worst->kind)
		tacho__where_id(x, f, g->worst->kind, g->worst->last_ns);
	tacho__say_summary(f, "%s keeps its loop busy for up to %s%s%s", callback(x, name, g),
			   tacho__ns_text(ns, (double)g->longest_ns),
			   hot && f->where_count ? ", in " : "; what it did was not seen",
			   hot && f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "Split the work, or give it to a pool of threads, so that other "
			     "callbacks of the loop can run in between.");
	show(f, g, name);
}

static void find_call(struct tacho__explaining *x, const struct group *g,
		      enum tacho__severity severity)
{
	const struct tacho__owned *o = g->worst;
	struct tacho__finding *f = begin(x, g, severity, "blocking-call");
	char ns[TACHO__TEXT], name[TACHO__TEXT], call[TACHO__TEXT], where[2 * TACHO__TEXT];

	if (o->place)
		tacho__where_id(x, f, o->place, o->last_ns);
	else if (o->code)
		tacho__where_code(x, f, o->code, o->last_ns);
	if (!f->where_count && o->kind)
		tacho__where_id(x, f, o->kind, o->last_ns);
	tacho__id_text(x, call, x->process, o->name);
	tacho__say_summary(f, "%s blocks its loop for up to %s in %s%s%s", callback(x, name, g),
			   tacho__ns_text(ns, (double)o->longest_ns), call,
			   f->where_count ? ", called by " : "",
			   f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f,
			  severity > TACHO__SEVERITY_INFO
				  ? "Call it from a pool of threads, or use what the loop offers "
				    "instead of it: while it waits, nothing else on this loop runs."
				  : "Its only client waits for it; nobody else does.");
	show(f, g, call);
}

static void find_lock(struct tacho__explaining *x, const struct group *g,
		      enum tacho__severity severity)
{
	struct tacho__finding *f = begin(x, g, severity, "lock-contention");
	const struct tacho__owned *o = g->worst, *k = keeper(x, g);
	char ns[TACHO__TEXT], name[TACHO__TEXT], holder[TACHO__TEXT], where[2 * TACHO__TEXT];

	f->lock = o->lock;
	if (k)
		tacho__where_id(x, f, k->held_place, o->last_ns);
	callback(x, name, g);
	tacho__ns_text(ns, (double)o->longest_ns);
	if (k && f->where_count)
		tacho__say_summary(f, "%s waits up to %s for a lock that %s holds in %s", name, ns,
				   tacho__thread_text(x, holder, x->process, k->holder),
				   tacho__where_text(where, f));
	else
		tacho__say_summary(f, "%s waits up to %s for a lock; who holds it was not seen",
				   name, ns);
	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__say_advice(f, "Hold the lock for a shorter time: do what takes long before or "
			     "after, split the lock, or copy what it protects.");
	show(f, g, "the longest wait");
	if (k)
		tacho__say_evidence(f, k->holder, o->longest_at_ns,
				    o->longest_at_ns + o->longest_ns, 0, "", "released by %s",
				    tacho__thread_text(x, holder, x->process, k->holder));
}

/* Nobody holds what it waits for: it asked another thread for something, and waits until then. */
static void find_signal(struct tacho__explaining *x, const struct group *g,
			enum tacho__severity severity)
{
	const struct tacho__owned *o = g->worst;
	struct tacho__finding *f = begin(x, g, severity, "blocking-call");
	char ns[TACHO__TEXT], name[TACHO__TEXT], where[2 * TACHO__TEXT];

	tacho__where_id(x, f, o->place, o->last_ns);
	tacho__say_summary(
		f, "%s blocks its loop for up to %s, waiting for another thread to signal it%s%s",
		callback(x, name, g), tacho__ns_text(ns, (double)o->longest_ns),
		f->where_count ? ", in " : "", f->where_count ? tacho__where_text(where, f) : "");
	tacho__say_advice(f, "Return to the loop, and let the other thread tell it when it is done "
			     "(uv_async_send, event_active, an eventfd): while it waits, nothing "
			     "else on this loop runs.");
	show(f, g, "the longest wait");
}

static void find_sched(struct tacho__explaining *x, const struct group *g,
		       enum tacho__severity severity)
{
	struct tacho__finding *f = begin(x, g, severity, "kernel-scheduling-delay");
	char ns[TACHO__TEXT], name[TACHO__TEXT], all[TACHO__TEXT];

	tacho__say_summary(f,
			   "the kernel does not run %s when it could: %s in %llu times of up to %s",
			   tacho__thread_text(x, name, x->process, f->thread),
			   tacho__ns_text(all, (double)g->ns), (unsigned long long)g->count,
			   tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Other threads or processes take its CPU: give it more CPUs or a "
			     "higher priority, pin it, or move its neighbours elsewhere.");
	show(f, g, "the longest time without a CPU");
}

static void find_pause(struct tacho__explaining *x, const struct group *g,
		       enum tacho__severity severity)
{
	struct tacho__finding *f = begin(x, g, severity, "process-pause");
	char ns[TACHO__TEXT];

	tacho__say_summary(f,
			   "nothing of the process ran for up to %s: it was stopped, or waited in "
			   "the kernel where tacho does not see why",
			   tacho__ns_text(ns, (double)g->longest_ns));
	tacho__say_advice(f, "Look for SIGSTOP, a debugger, a frozen cgroup, a snapshot of the "
			     "machine, a clock that jumped, fork of a large process, or page "
			     "faults that read from disk at that time.");
	show(f, g, "the longest");
}

void tacho__rules_ledger(struct tacho__explaining *x)
{
	struct group *groups = calloc(GROUPS, sizeof(*groups));
	struct counted c = {.error = 0};
	uint32_t n = 0;

	tacho__table_init(&c.told, sizeof(struct tacho__entry), LOOPS);
	count_sampled(x, &c);
	count_clients(x, &c);
	count_running(x, &c);
	if (groups && !c.error)
		n = group_all(x, &c, groups);
	else
		x->error = -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct group *g = &groups[i];
		enum tacho__severity severity = severity_of(x, &c, g);

		if (!severity)
			continue;
		if (g->owns == TACHO__OWNS_CODE)
			find_code(x, g, severity);
		else if (g->owns == TACHO__OWNS_CALL)
			find_call(x, g, severity);
		else if (g->owns == TACHO__OWNS_LOCK && g->worst->is_signal)
			find_signal(x, g, severity);
		else if (g->owns == TACHO__OWNS_LOCK)
			find_lock(x, g, severity);
		else if (g->owns == TACHO__OWNS_DESCHEDULED)
			find_sched(x, g, severity);
		else
			find_pause(x, g, severity);
	}
	tacho__table_free(&c.told);
	free(c.sampled);
	free(groups);
}
