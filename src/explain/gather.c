#include "explain/gather.h"

#include <string.h>

#include "model/summing.h"

#define RECENT 32u
#define CASES 4096u
#define THREADS 4096u
#define LOOPS 1024u
/* A poll that is so long without samples, and a loop that wakes up so late, did not only lack a
   CPU: the process did not run, if its other threads did not either. */
#define ASLEEP_NS UINT64_C(100000000)

struct recent_sample {
	uint64_t ns;
	struct tacho__sampled what;
};

/* What a thread did lately, newest last; what a poll contains is found by when it began. */
struct recent {
	struct tacho__entry entry; /* key: process, thread */
	struct tacho__call calls[RECENT];
	struct tacho__lock locks[RECENT];
	struct recent_sample samples[RECENT];
	uint32_t call_count, lock_count, sample_count; /* ever */
	uint64_t turn_ns;			       /* length of the last turn */
	uint64_t asleep_ns; /* begin of the last turn that came after a pause */
};

void tacho__gather_init(struct tacho__gathered *g, const struct tacho_reader *reader,
			uint64_t long_ns)
{
	memset(g, 0, sizeof(*g));
	g->reader = reader;
	g->long_ns = long_ns;
	tacho__table_init(&g->cases, sizeof(struct tacho__case), CASES);
	tacho__table_init(&g->threads, sizeof(struct recent), THREADS);
	tacho__table_init(&g->hot, sizeof(struct tacho__hot), LOOPS);
}

void tacho__gather_free(struct tacho__gathered *g)
{
	tacho__table_free(&g->cases);
	tacho__table_free(&g->threads);
	tacho__table_free(&g->hot);
}

static struct recent *recent_of(struct tacho__gathered *g, const struct tacho__at *at)
{
	return tacho__table_get(&g->threads, at->process, at->thread, &g->error);
}

/* ------------------------------------------------------------- what happens */

static void note_active(struct tacho__gathered *g, uint32_t process, uint32_t thread, uint64_t ns)
{
	g->active[g->active_count++ % TACHO__ACTIVITY] =
		(struct tacho__active){ns, process, thread};
}

static void on_call(void *arg, const struct tacho__call *c)
{
	struct tacho__gathered *g = arg;
	struct recent *r = c->at.poll_ns ? recent_of(g, &c->at) : NULL;

	note_active(g, c->at.process, c->at.thread, c->end_ns);
	if (r)
		r->calls[r->call_count++ % RECENT] = *c;
}

static void on_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__gathered *g = arg;
	struct recent *r = l->at.poll_ns ? recent_of(g, &l->at) : NULL;

	if (r)
		r->locks[r->lock_count++ % RECENT] = *l;
}

static int same_stack(const struct tacho__sampled *a, const struct tacho__sampled *b)
{
	return a->stack == b->stack && a->frame_count == b->frame_count &&
	       memcmp(a->frames, b->frames, a->frame_count * sizeof(a->frames[0])) == 0;
}

static void add_sample(struct tacho__samples *to, const struct tacho__sampled *s)
{
	uint32_t i = 0;

	while (i < to->count && !same_stack(&to->at[i], s))
		i++;
	if (i == TACHO__CASE_SAMPLES)
		return;
	if (i == to->count) {
		to->at[to->count++] = *s;
		return;
	}
	to->at[i].count++;
	to->at[i].ns += s->ns;
}

static void on_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__gathered *g = arg;
	struct recent *r = s->at.poll_ns ? recent_of(g, &s->at) : NULL;
	struct tacho__sampled what = {.stack = s->stack, .count = 1, .ns = s->cpu_ns};
	struct tacho__hot *hot;

	note_active(g, s->at.process, s->at.thread, s->ns);
	for (uint32_t i = s->kernel;
	     !s->stack && i < s->count && what.frame_count < TACHO__SAMPLE_FRAMES; i++)
		what.frames[what.frame_count++] = s->frames[i];
	if (r)
		r->samples[r->sample_count++ % RECENT] = (struct recent_sample){s->ns, what};
	hot = s->at.loop ? tacho__table_get(&g->hot, s->at.process, s->at.loop, &g->error) : NULL;
	if (hot)
		add_sample(&hot->samples, &what);
}

/* --------------------------------------------------------------- long polls */

static uint32_t kept(uint32_t ever)
{
	return ever < RECENT ? ever : RECENT;
}

static int is_in(uint64_t ns, const struct tacho__poll *p)
{
	return ns >= p->begin_ns && ns <= p->end_ns;
}

static const struct tacho__call *longest_call(const struct recent *r, const struct tacho__poll *p)
{
	const struct tacho__call *best = NULL;

	for (uint32_t i = 0; i < kept(r->call_count); i++) {
		const struct tacho__call *c = &r->calls[i];

		if (is_in(c->end_ns, p) &&
		    (!best || c->end_ns - c->begin_ns > best->end_ns - best->begin_ns))
			best = c;
	}
	return best;
}

static const struct tacho__lock *longest_lock(const struct recent *r, const struct tacho__poll *p)
{
	const struct tacho__lock *best = NULL;

	for (uint32_t i = 0; i < kept(r->lock_count); i++) {
		const struct tacho__lock *l = &r->locks[i];

		if (is_in(l->end_ns, p) &&
		    (!best || l->end_ns - l->begin_ns > best->end_ns - best->begin_ns))
			best = l;
	}
	return best;
}

/* Whether another thread of the process did something in the middle of the poll. */
static int others_ran(const struct tacho__gathered *g, const struct tacho__poll *p)
{
	uint64_t edge = (p->end_ns - p->begin_ns) / 10;
	uint32_t count = g->active_count < TACHO__ACTIVITY ? g->active_count : TACHO__ACTIVITY;
	uint64_t oldest = UINT64_MAX;
	int others = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__active *a = &g->active[i];

		if (a->ns < oldest)
			oldest = a->ns;
		if (a->process != p->at.process || a->thread == p->at.thread)
			continue;
		others = 1;
		if (a->ns > p->begin_ns + edge && a->ns < p->end_ns - edge)
			return 1;
	}
	/* So many did so much that what they did in the middle is not kept. */
	return others && count == TACHO__ACTIVITY && oldest > p->begin_ns + edge;
}

/* Whether code that runs would have been sampled: all threads got a timer. */
static int is_sampled(const struct tacho__gathered *g, uint32_t process)
{
	struct tacho_source_info info;
	struct tacho_loss_info loss;

	for (uint32_t i = 0; i < tacho_read_loss_count(g->reader); i++)
		if (tacho_read_loss(g->reader, process, i, &loss) >= 0 &&
		    strcmp(loss.name, "not_sampled") == 0 && loss.count)
			return 0;
	for (uint32_t i = 0; i < tacho_read_source_count(g->reader); i++)
		if (tacho_read_source(g->reader, process, i, &info) >= 0 &&
		    strcmp(info.name, "cpu_samples") == 0)
			return info.state == 2;
	return 0;
}

/* The time for which the kernel ran others, as far as it is known. */
static uint64_t delay_of(const struct tacho__poll *p)
{
	uint64_t ns = p->end_ns - p->begin_ns, delay = p->spent.delay_ns;

	if (p->spent.preempted_ns > delay)
		delay = p->spent.preempted_ns;
	return delay < ns ? delay : ns;
}

struct judged {
	uint32_t cause;
	uint64_t ns;   /* that it took */
	uint64_t what; /* tells cases apart */
	const struct tacho__call *call;
	const struct tacho__lock *lock;
};

/*
 * What the poll would have taken without others on its CPU decides: is that long already, then the
 * delay on top is not the cause. Of it, half at least must be seen for a cause other than its own
 * code.
 */
static struct judged judge(const struct tacho__gathered *g, const struct recent *r,
			   const struct tacho__poll *p)
{
	uint64_t ns = p->end_ns - p->begin_ns;
	uint64_t delay = delay_of(p), own = ns - delay, half = own / 2;
	uint64_t kind = p->kind ? p->kind : (uint64_t)p->at.loop << 32;
	struct judged j = {TACHO__CAUSE_UNKNOWN, ns, kind, NULL, NULL};

	if (p->cut & TACHO__CUT_END) {
		j.cause = TACHO__CAUSE_OPEN;
		j.what = p->at.thread;
		j.lock = r ? longest_lock(r, p) : NULL;
		return j;
	}

	if (own < g->long_ns && delay >= ns / 2)
		return (struct judged){TACHO__CAUSE_SCHED, delay, p->at.loop, NULL, NULL};
	if (p->spent.call_ns >= half && p->spent.call_ns >= p->spent.lock_ns) {
		j.call = r ? longest_call(r, p) : NULL;
		if (j.call)
			return (struct judged){TACHO__CAUSE_CALL, p->spent.call_ns,
					       (uint64_t)j.call->name << 32 | j.call->stack, j.call,
					       NULL};
	}
	if (p->spent.lock_ns >= half) {
		j.lock = r ? longest_lock(r, p) : NULL;
		if (j.lock)
			return (struct judged){j.lock->is_signal ? TACHO__CAUSE_SIGNAL
								 : TACHO__CAUSE_LOCK,
					       p->spent.lock_ns, j.lock->lock, NULL, j.lock};
	}
	/* A timer of 99 Hz may miss polls of some 20 ms altogether. */
	if (p->spent.samples && p->spent.sample_ns >= own / 4) {
		j.cause = TACHO__CAUSE_CODE;
		return j;
	}
	if (own >= ASLEEP_NS && is_sampled(g, p->at.process) && !others_ran(g, p)) {
		j.cause = TACHO__CAUSE_PAUSE;
		j.what = 0;
	}
	return j;
}

static void add_case(struct tacho__gathered *g, const struct recent *r, const struct tacho__poll *p,
		     struct judged j)
{
	uint64_t ns = p->end_ns - p->begin_ns;
	struct tacho__case *c = tacho__table_get(&g->cases, (uint64_t)p->at.process << 32 | j.cause,
						 j.what, &g->error);

	if (!c)
		return;
	if (!c->count++)
		c->first_ns = p->begin_ns;
	c->process = p->at.process;
	c->cause = j.cause;
	c->last_ns = p->end_ns;
	c->sum_ns += ns;
	c->cause_ns += j.ns;
	ns -= delay_of(p);
	c->own_ns += ns;
	if (ns > c->longest_own_ns)
		c->longest_own_ns = ns;
	c->sample_ns += p->spent.sample_ns;
	c->unsure += !p->spent.sched && !p->spent.off_cpu_ns;
	TACHO__WORST_ADD(&c->worst, p, x->end_ns - x->begin_ns);
	if (j.call && j.call->end_ns - j.call->begin_ns > c->call.end_ns - c->call.begin_ns)
		c->call = *j.call;
	if (j.lock && j.lock->end_ns - j.lock->begin_ns > c->lock.end_ns - c->lock.begin_ns)
		c->lock = *j.lock;
	for (uint32_t i = 0; r && i < kept(r->sample_count); i++)
		if (is_in(r->samples[i].ns, p))
			add_sample(&c->samples, &r->samples[i].what);
}

/*
 * A timer that was due long before its loop came out of its wait, while no other thread did
 * anything either: the process did not run. A loop whose turn before was long may have slept by
 * a clock that was behind by as much.
 */
static void look_asleep(struct tacho__gathered *g, struct recent *r, const struct tacho__poll *p)
{
	struct tacho__poll asleep = {
		.at = p->at, .begin_ns = p->begin_ns - p->late_ns, .end_ns = p->turn_ns};
	const struct judged j = {TACHO__CAUSE_PAUSE, p->late_ns, 0, NULL, NULL};

	if (p->turn_ns == r->asleep_ns || p->turn_ns < asleep.begin_ns ||
	    p->turn_ns - asleep.begin_ns < ASLEEP_NS + r->turn_ns ||
	    !is_sampled(g, p->at.process) || others_ran(g, &asleep))
		return;
	r->asleep_ns = p->turn_ns;
	add_case(g, NULL, &asleep, j);
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct tacho__gathered *g = arg;
	uint64_t ns = p->end_ns - p->begin_ns;
	struct recent *r = NULL;

	note_active(g, p->at.process, p->at.thread, p->end_ns);
	if (p->late_ns >= ASLEEP_NS && p->at.loop && p->late_ns < p->begin_ns)
		r = recent_of(g, &p->at);
	if (r)
		look_asleep(g, r, p);
	if (p->cut & TACHO__CUT_BEGIN || !p->at.loop)
		return;
	/* An outer poll that is long because of an inner one says nothing new; how long one that
	   still runs will be is not known. */
	if (!(p->cut & TACHO__CUT_END) && (ns < g->long_ns || p->inner_ns >= ns / 2))
		return;
	r = tacho__table_find(&g->threads, p->at.process, p->at.thread);
	add_case(g, r, p, judge(g, r, p));
}

static void on_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__gathered *g = arg;
	struct recent *r = tacho__table_find(&g->threads, u->process, u->thread);

	if (r)
		r->turn_ns = u->end_ns - u->begin_ns;
}

struct tacho__facts tacho__gather_facts(struct tacho__gathered *g)
{
	return (struct tacho__facts){
		.arg = g,
		.poll = on_poll,
		.turn = on_turn,
		.call = on_call,
		.lock = on_lock,
		.sample = on_sample,
	};
}
