/* Pools of threads, of libuv or the program's own: what waits for one of them. */
#include <stdio.h>
#include <string.h>

#include "explain/causes.h"

/*
 * Work of libuv's own (files, names): when its pool begins with it is not seen, only when it is
 * done. What it takes by itself is known from that which found a thread free; only what is
 * longer than all of these was made to wait.
 */
static int is_seen(const struct tacho__work_sum *k)
{
	return k->run.count != 0;
}

/* What one takes by itself, where its begin is not seen. */
static double usual(const struct tacho__work_sum *k)
{
	return k->at_once.count ? (double)tacho__hist_at(&k->at_once, 0.5)
				: (double)k->crowded.least;
}

/* Time of the pool's threads that all work of a kind needs. */
static double needs(const struct tacho__work_sum *k)
{
	return is_seen(k) ? (double)k->run.sum
			  : (double)k->at_once.sum + usual(k) * (double)k->crowded.count;
}

/* What work of a kind waits for a thread: so much at most, or all but a share of it. */
static double waits(const struct tacho__work_sum *k, double share)
{
	const struct tacho__hist *h = is_seen(k) ? &k->wait : &k->crowded;
	double own = is_seen(k) ? 0 : k->at_once.count ? (double)k->at_once.most : usual(k);
	double most = share < 1 ? (double)tacho__hist_at(h, share) : (double)h->most;

	return most > own ? most - own : 0;
}

static uint64_t waiters(const struct tacho__work_sum *k)
{
	return is_seen(k) ? k->wait.count : k->crowded.count;
}

static double wait_sum(const struct tacho__work_sum *k)
{
	double sum = (double)k->crowded.sum - usual(k) * (double)k->crowded.count;

	if (is_seen(k))
		return (double)k->wait.sum;
	return sum > 0 && waits(k, 1) > 0 ? sum : 0;
}

/* --------------------------------------------------------- what keeps its threads */

#define KEEPERS 64u

/* What threads of a pool were in while work waited. */
struct keeper {
	enum tacho__owns owns;
	uint64_t key;
	double rank; /* what waited for it; of libuv's pool, where not all of that is seen, its time */
	const struct tacho__owned *worst;
	const struct tacho__function *function; /* of code, if it was sampled */
};

struct kept {
	struct keeper keepers[KEEPERS], *most;
	uint32_t count;
	double waiting_ns, code_ns, cpu_ns;
};

static void add_keeper(struct kept *k, const struct tacho__owned *o,
		       const struct tacho__function *f, uint64_t key, uint32_t pool, double share)
{
	double waiting_ns = (double)o->waiting_ns * share;
	struct keeper *to = k->keepers;

	while (to < k->keepers + k->count && !(to->owns == o->owns && to->key == key))
		to++;
	if (to == k->keepers + KEEPERS)
		return;
	if (to == k->keepers + k->count)
		k->keepers[k->count++] = (struct keeper){.owns = o->owns, .key = key};
	if (!to->worst || o->longest_ns > to->worst->longest_ns) {
		to->worst = o;
		to->function = f;
	}
	to->rank += pool ? waiting_ns : (double)o->ns * share;
	k->waiting_ns += waiting_ns;
	if (!k->most || to->rank > k->most->rank)
		k->most = to;
}

/* `pool`: as struct tacho__ledger_thread has it. */
static int is_of(const struct tacho__explaining *x, const struct tacho__owned *o, uint32_t pool)
{
	const struct tacho__ledger_thread *t = &x->out->ledger->threads[o->thread];

	return o->process == x->process && t->is_pool && !t->is_loop && t->pool == pool;
}

static void look_at_keepers(const struct tacho__explaining *x, uint32_t pool, struct kept *k)
{
	const struct tacho__ledger *l = x->out->ledger;

	memset(k, 0, sizeof(*k));
	for (const struct tacho__function *f = NULL; (f = tacho__table_next(&l->functions, f));) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, f->owned);

		if (o && is_of(x, o, pool) && o->sample_ns)
			add_keeper(k, o, f, f->entry.key[1], pool,
				   (double)f->ns / (double)o->sample_ns);
	}
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		if (!is_of(x, o, pool) || o->owns == TACHO__OWNS_IDLE ||
		    o->owns == TACHO__OWNS_LATE)
			continue;
		if (o->owns == TACHO__OWNS_CODE) {
			k->code_ns += (double)o->ns;
			k->cpu_ns += (double)o->sample_ns;
		}
		if (o->owns != TACHO__OWNS_CODE || !o->sample_ns)
			add_keeper(k, o, NULL, tacho__cause_key(x, o), pool, 1);
	}
}

/* Whether it is the program that keeps its threads, and not others that have the CPU. */
static int is_own_doing(const struct tacho__explaining *x, const struct kept *k)
{
	switch (k->most ? k->most->owns : TACHO__OWNS_IDLE) {
	case TACHO__OWNS_CALL:
	case TACHO__OWNS_LOCK:
		return 1;
	case TACHO__OWNS_CODE:
		return !tacho__source_is_on(x, x->process, "cpu_samples") ||
		       k->cpu_ns >= tacho__runs_share * k->code_ns;
	default:
		return 0;
	}
}

/* Its places, and in words: "nanosleep, called by fetch (db.c:12)". */
static const char *keeper_text(const struct tacho__explaining *x, struct tacho__finding *f,
			       const struct keeper *k, char out[4 * TACHO__TEXT])
{
	const struct tacho__owned *o = k->worst;
	char where[2 * TACHO__TEXT], name[TACHO__TEXT];

	if (k->function)
		tacho__where_function(x, f, k->function);
	else if (k->owns != TACHO__OWNS_CODE && o->place)
		tacho__where_id(x, f, o->place, o->last_ns);
	else if (o->code)
		tacho__where_code(x, f, o->code, o->last_ns);
	if (!f->where_count && o->kind)
		tacho__where_id(x, f, o->kind, o->last_ns);
	if (f->where_count)
		tacho__where_text(where, f);
	if (k->owns == TACHO__OWNS_CODE)
		snprintf(out, 4 * TACHO__TEXT, "%s",
			 f->where_count ? where : "code that was not seen");
	else
		snprintf(out, 4 * TACHO__TEXT, "%s%s%s",
			 k->owns == TACHO__OWNS_CALL ? tacho__id_text(x, name, x->process, o->name)
			 : o->is_signal		     ? "waits for another thread to signal it"
						     : "waits for a lock",
			 !f->where_count	       ? ""
			 : k->owns == TACHO__OWNS_CALL ? ", called by "
						       : " in ",
			 f->where_count ? where : "");
	return out;
}

/* ---------------------------------------------------------------- of the program */

static void find_own_pool(struct tacho__explaining *x, uint32_t index)
{
	const struct tacho__ledger_pool *p = &x->out->ledger->pools[index];
	double warn = TACHO__LIMIT(x, POOL_EXHAUSTED_WARN), share, p99;
	char ns[TACHO__TEXT], sum[TACHO__TEXT], text[4 * TACHO__TEXT];
	struct tacho__finding *f;
	struct kept k;

	look_at_keepers(x, index + 1, &k);
	share = 100 * k.waiting_ns / tacho__window_ns(x);
	p99 = (double)tacho__hist_at(&p->wait, tacho__tail);
	snprintf(text, sizeof(text), "work of a pool of %u threads", p->threads);
	if (tacho__below(x, TACHO__RULE_POOL_EXHAUSTED, text, k.waiting_ns, p99,
			 TACHO__LIMIT_POOL_EXHAUSTED_WARN) ||
	    tacho__below(x, TACHO__RULE_POOL_EXHAUSTED, text, k.waiting_ns, share,
			 TACHO__LIMIT_WAITING_SHARE))
		return;
	if (!is_own_doing(x, &k)) {
		tacho__consider(x, TACHO__RULE_POOL_EXHAUSTED, text, 0, k.waiting_ns,
				"its threads did not run: others had their CPU");
		return;
	}
	if (k.most->owns == TACHO__OWNS_LOCK && !k.most->worst->is_signal) {
		tacho__consider(x, TACHO__RULE_POOL_EXHAUSTED, text, 0, k.waiting_ns,
				"its threads wait for a lock: more of them would wait as well");
		return;
	}
	f = tacho__find(x, TACHO__RULE_POOL_EXHAUSTED,
			p99 >= tacho__critical_times * warn ? TACHO__SEVERITY_CRITICAL
							    : TACHO__SEVERITY_WARNING,
			x->process, 0);
	f->waiting_ns = k.waiting_ns;
	f->lock = p->lock;
	f->pool = index + 1;
	f->thread = x->out->ledger->threads[k.most->worst->thread].thread;
	tacho__say_summary(f, "work waits up to %s for a thread of a pool of %u, kept busy by %s",
			   tacho__ns_text(ns, (double)p->longest_ns), p->threads,
			   keeper_text(x, f, k.most, text));
	tacho__where_id(x, f, p->place, x->sum->last_ns);
	tacho__say_evidence(f, f->thread, p->longest_at_ns, p->longest_at_ns + p->longest_ns,
			    (double)p->longest_ns, "ns", "the oldest waited %s", ns);
	tacho__say_evidence(f, f->thread, x->sum->first_ns, x->sum->last_ns, k.waiting_ns, "ns",
			    "%llu pieces of work waited %s in all", (unsigned long long)p->count,
			    tacho__ns_text(sum, k.waiting_ns));
}

/* ---------------------------------------------------------------------- of libuv */

struct pool {
	const struct tacho__work_sum *taker, *sufferer;
	double wait_ns, needs_ns;
};

static struct pool look_at_pool(const struct tacho__explaining *x, uint32_t process)
{
	struct pool p = {NULL, NULL, 0, 0};

	for (const struct tacho__work_sum *k = NULL; (k = tacho__table_next(&x->sum->works, k));) {
		if (k->process != process ||
		    (!k->run.count && !k->at_once.count && !k->crowded.count))
			continue;
		p.wait_ns += wait_sum(k);
		p.needs_ns += needs(k);
		if (!p.taker || needs(k) > needs(p.taker))
			p.taker = k;
		if (waiters(k) >= tacho__several &&
		    (!p.sufferer || waits(k, tacho__tail) > waits(p.sufferer, tacho__tail)))
			p.sufferer = k;
	}
	return p;
}

static void show_waits(struct tacho__finding *f, const struct tacho__work_sum *k, const char *name)
{
	const struct tacho__worst_works *worst = is_seen(k) ? &k->worst : &k->worst_crowded;

	for (uint32_t i = 0; i < worst->count && i < 3; i++) {
		const struct tacho__work *w = &worst->at[i];
		uint64_t to = is_seen(k) ? w->begin_ns : w->done_ns;

		tacho__say_evidence(f, w->submitter, w->submit_ns, to, (double)(to - w->submit_ns),
				    "ns", "%s waited behind %u others", name, w->ahead);
	}
}

static void find_pool(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__pool_sum *pool = &x->sum->process[process].pool;
	struct pool p = look_at_pool(x, process);
	double warn = TACHO__LIMIT(x, POOL_EXHAUSTED_WARN), p99;
	uint32_t threads = pool->workers ? pool->workers : TACHO__POOL_THREADS;
	char ns[TACHO__TEXT], name[TACHO__TEXT], other[TACHO__TEXT], text[4 * TACHO__TEXT] = "";
	struct tacho__finding *f;
	struct kept k;

	if (!p.taker || !p.sufferer)
		return;
	/* Work that waits while threads idle does not wait for the pool, and all threads were busy
	   for as long as one work waited for any of them. */
	p99 = waits(p.sufferer, tacho__tail);
	if (is_seen(p.sufferer) ? pool->most_waiting <= 1 : pool->most_ahead < threads)
		return;
	tacho__id_text(x, other, process, p.sufferer->kind);
	if (tacho__below(x, TACHO__RULE_POOL_EXHAUSTED, other, p.wait_ns, p99,
			 TACHO__LIMIT_POOL_EXHAUSTED_WARN))
		return;
	if (p99 > tacho__pool_needs_times * p.needs_ns / threads ||
	    (!is_seen(p.sufferer) && p99 < tacho__pool_usual_times * usual(p.sufferer))) {
		tacho__consider(x, TACHO__RULE_POOL_EXHAUSTED, other, 0, p.wait_ns,
				"the pool had too little to do to keep it waiting for so long");
		return;
	}
	f = tacho__find(x, TACHO__RULE_POOL_EXHAUSTED,
			p99 >= tacho__critical_times * warn ? TACHO__SEVERITY_CRITICAL
							    : TACHO__SEVERITY_WARNING,
			process, 0);
	f->waiting_ns = p.wait_ns;
	f->kind = p.taker->kind;
	look_at_keepers(x, 0, &k);
	if (is_own_doing(x, &k) && k.most->worst->kind == f->kind &&
	    (k.most->function || k.most->owns != TACHO__OWNS_CODE))
		keeper_text(x, f, k.most, text);
	tacho__where_id(x, f, p.taker->kind, x->sum->last_ns);
	tacho__say_summary(
		f,
		"work waits up to %s for one of the %u threads of the pool, which %s keeps "
		"busy%s%s%s%s",
		tacho__ns_text(ns, waits(p.sufferer, 1)), threads,
		tacho__id_text(x, name, process, p.taker->kind), text[0] ? ", in " : "", text,
		p.sufferer != p.taker ? "; hit hardest is " : "",
		p.sufferer != p.taker ? other : "");
	tacho__say_advice(f, "Give long work (name look-ups above all) a pool of its own, or raise "
			     "UV_THREADPOOL_SIZE.");
	show_waits(f, p.sufferer, other);
	tacho__say_evidence(f, 0, x->sum->first_ns, x->sum->last_ns, needs(p.taker), "ns",
			    "%s ran for %s in all", name, tacho__ns_text(ns, needs(p.taker)));
}

static int loop_is_gone(const struct tacho__explaining *x, uint32_t process)
{
	for (uint32_t i = 0; i < x->out->count; i++)
		if (x->out->findings[i].process == process &&
		    (x->out->findings[i].rule == TACHO__RULE_HANG ||
		     x->out->findings[i].rule == TACHO__RULE_NEVER_YIELDS ||
		     x->out->findings[i].rule == TACHO__RULE_CRASH))
			return 1;
	return 0;
}

/* What the pool has begun does not end, so that the rest is never begun. */
static void find_stuck_pool(struct tacho__explaining *x, uint32_t process)
{
	const struct tacho__process_sum *p = &x->sum->process[process];
	const struct tacho__work_sum *keeper = NULL, *sufferer = NULL;
	char ns[TACHO__TEXT], name[TACHO__TEXT], other[TACHO__TEXT];
	struct tacho__finding *f;
	uint64_t count = 0, waited;

	for (const struct tacho__work_sum *k = NULL; (k = tacho__table_next(&x->sum->works, k));) {
		if (k->process != process)
			continue;
		count += k->left_count;
		if (k->kept.submit_ns && (!keeper || k->kept.submit_ns < keeper->kept.submit_ns))
			keeper = k;
		if (k->left.submit_ns &&
		    (!sufferer || k->left.submit_ns < sufferer->left.submit_ns))
			sufferer = k;
	}
	/* Its end may be among records that are missing, or its loop did not look. */
	if (!keeper || !sufferer || keeper->kept.submit_ns > sufferer->left.submit_ns ||
	    p->missing || p->dropped || loop_is_gone(x, process))
		return;
	waited = sufferer->left.done_ns ? sufferer->left.done_ns - sufferer->left.submit_ns : 0;
	if ((double)waited < TACHO__LIMIT(x, HANG_NS))
		return;
	f = tacho__find(x, TACHO__RULE_POOL_EXHAUSTED, TACHO__SEVERITY_CRITICAL, process, 0);
	f->waiting_ns = (double)waited; /* at least: when the others were given is not kept */
	f->rests = TACHO__RESTS_ON_ABSENCE;
	f->kind = keeper->kind;
	tacho__where_id(x, f, keeper->kind, x->sum->last_ns);
	tacho__say_summary(f,
			   "%llu pieces of work have waited up to %s for a thread of the pool: %s "
			   "has kept it busy since before that and does not end",
			   (unsigned long long)count, tacho__ns_text(ns, (double)waited),
			   tacho__id_text(x, name, process, keeper->kind));
	tacho__say_advice(f, "See what it waits for: a file system or a peer that does not answer. "
			     "Give such work a pool of its own, and a time-out.");
	tacho__say_evidence(f, sufferer->left.submitter, sufferer->left.submit_ns, x->sum->last_ns,
			    (double)waited, "ns", "%s was given to the pool and not done",
			    tacho__id_text(x, other, process, sufferer->kind));
	tacho__say_evidence(f, keeper->kept.submitter, keeper->kept.submit_ns, x->sum->last_ns,
			    (double)(x->sum->last_ns - keeper->kept.submit_ns), "ns",
			    "%s has not ended", name);
}

void tacho__rules_pool(struct tacho__explaining *x)
{
	find_pool(x, x->process);
	find_stuck_pool(x, x->process);
	for (uint32_t i = 0; i < x->out->ledger->pool_count; i++)
		if (x->out->ledger->pools[i].process == x->process)
			find_own_pool(x, i);
}
