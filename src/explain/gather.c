#include "explain/gather.h"

#include <string.h>

#include "base/hash.h"
#include "model/place.h"
#include "model/summing.h"

#define RECENT 32u
#define RECENT_SAMPLES 64u
#define CASES 2048u
#define PROCESSES 4096u
#define FUNCTIONS 256u
/* This many samples are enough to say what a poll spent its time on. */
#define SAMPLES_TO_TELL 4u
#define THREADS 4096u
#define HOTS 1024u
/* A poll that is so long without samples, and a loop that wakes up so late, did not only lack a
   CPU: the process did not run, if its other threads did not either. */
#define ASLEEP_NS UINT64_C(100000000)

struct recent_sample {
	uint64_t ns, poll_ns;
	struct tacho__sampled what;
};

/* What a thread did lately, newest last; what a poll contains is found by when it began. */
struct recent {
	struct tacho__entry entry; /* key: process, thread */
	struct tacho__call calls[RECENT];
	struct tacho__lock locks[RECENT];
	struct recent_sample samples[RECENT_SAMPLES];
	uint32_t call_count, lock_count; /* ever */
	uint32_t sample_count;
	uint32_t stride, skipped;
	uint64_t sampled_ns; /* begin of the poll that was sampled last */
	uint64_t turn_ns;    /* length of the last turn */
	uint64_t asleep_ns;  /* begin of the last turn that came after a pause */
};

void tacho__gather_init(struct tacho__gathered *g, const struct tacho_reader *reader,
			uint64_t long_ns, uint64_t late_ns)
{
	memset(g, 0, sizeof(*g));
	g->reader = reader;
	g->long_ns = long_ns;
	g->late_ns = late_ns;
	tacho__table_init(&g->late, sizeof(struct tacho__late), PROCESSES);
	tacho__table_init(&g->cases, sizeof(struct tacho__case), CASES);
	tacho__table_init(&g->threads, sizeof(struct recent), THREADS);
	tacho__table_init(&g->hot, sizeof(struct tacho__hot), HOTS);
	tacho__table_init(&g->opened, sizeof(struct tacho__opened), PROCESSES);
}

void tacho__gather_free(struct tacho__gathered *g)
{
	tacho__table_free(&g->cases);
	tacho__table_free(&g->threads);
	tacho__table_free(&g->hot);
	tacho__table_free(&g->late);
	tacho__table_free(&g->opened);
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
	if (l->cut && l->owner && g->stuck_count < TACHO__STUCK)
		g->stuck[g->stuck_count++] = *l;
}

static void add_sample(struct tacho__samples *to, const struct tacho__sampled *s)
{
	uint32_t at = to->count;

	to->all += s->count;
	/* Each that was seen is there with the same chance. */
	if (to->seen++ >= TACHO__CASE_SAMPLES)
		at = (uint32_t)((tacho__mix(to->seen) >> 32) % to->seen);
	else
		to->count++;
	if (at < TACHO__CASE_SAMPLES)
		to->at[at] = *s;
}

/* Makes room: what polls before left goes, and if that was little, every second one. */
static void thin_samples(struct recent *r, uint64_t poll_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->sample_count; i++)
		if (r->samples[i].poll_ns == poll_ns)
			r->samples[n++] = r->samples[i];
	r->sample_count = n;
	if (n <= RECENT_SAMPLES / 2)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct tacho__sampled *what = &r->samples[i / 2].what;

		if (i % 2) {
			what->count += r->samples[i].what.count;
			what->ns += r->samples[i].what.ns;
		} else {
			r->samples[i / 2] = r->samples[i];
		}
	}
	r->sample_count = (n + 1) / 2;
	r->stride *= 2;
}

/* Of a poll that is sampled more often than there is room for, every second, fourth... one; those
   between count for the one before. */
static void keep_sample(struct recent *r, uint64_t ns, uint64_t poll_ns,
			const struct tacho__sampled *what)
{
	if (r->sampled_ns != poll_ns) {
		r->sampled_ns = poll_ns;
		r->stride = 1;
		r->skipped = 0;
	}
	if (++r->skipped < r->stride) {
		r->samples[r->sample_count - 1].what.count += what->count;
		r->samples[r->sample_count - 1].what.ns += what->ns;
		return;
	}
	r->skipped = 0;
	if (r->sample_count == RECENT_SAMPLES)
		thin_samples(r, poll_ns);
	r->samples[r->sample_count++] = (struct recent_sample){ns, poll_ns, *what};
}

static void add_hot(struct tacho__gathered *g, const struct tacho__at *at, uint32_t kind,
		    const struct tacho__sampled *what)
{
	struct tacho__hot *hot =
		tacho__table_get(&g->hot, (uint64_t)at->process << 32 | at->loop, kind, &g->error);

	if (hot)
		add_sample(&hot->samples, what);
}

static void on_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__gathered *g = arg;
	struct recent *r = s->at.poll_ns ? recent_of(g, &s->at) : NULL;
	struct tacho__sampled what = {.stack = s->stack, .count = 1, .ns = s->cpu_ns};

	note_active(g, s->at.process, s->at.thread, s->ns);
	for (uint32_t i = s->kernel;
	     !s->stack && i < s->count && what.frame_count < TACHO__SAMPLE_FRAMES; i++)
		what.frames[what.frame_count++] = s->frames[i];
	if (r)
		keep_sample(r, s->ns, s->at.poll_ns, &what);
	if (s->at.loop)
		add_hot(g, &s->at, 0, &what);
	if (s->at.loop && s->at.kind)
		add_hot(g, &s->at, s->at.kind, &what);
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

/* The call that has not returned. */
static const struct tacho__call *open_call(const struct recent *r, const struct tacho__poll *p)
{
	const struct tacho__call *c =
		r->call_count ? &r->calls[(r->call_count - 1) % RECENT] : NULL;

	return c && c->cut && c->begin_ns >= p->begin_ns ? c : NULL;
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

/* A function that samples of a poll have in their stacks. */
struct function {
	uint64_t key, ns;
	uint64_t depth; /* summed up over the samples that have it */
	uint32_t samples, last;
};

struct functions {
	struct function at[FUNCTIONS];
	uint32_t count, samples;
	uint64_t ns;
};

static uint64_t key_of(const struct tacho__place *p)
{
	if (!p->function[0])
		return p->address;
	return tacho__hash_bytes(p->function, strlen(p->function), 0);
}

static void add_function(struct functions *f, uint64_t key, uint64_t ns, uint32_t depth)
{
	uint32_t i = 0;

	while (i < f->count && f->at[i].key != key)
		i++;
	if (i == FUNCTIONS)
		return;
	if (i == f->count)
		f->at[f->count++] = (struct function){.key = key};
	/* One that calls itself is in it once. */
	if (f->at[i].last == f->samples)
		return;
	f->at[i].last = f->samples;
	f->at[i].samples++;
	f->at[i].ns += ns;
	f->at[i].depth += depth;
}

static void add_functions(const struct tacho__gathered *g, const struct tacho__poll *p,
			  const struct recent_sample *s, struct functions *f)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = s->what.stack ? tacho__places_of_id(g->reader, p->at.process, s->what.stack,
							 s->ns, places, TACHO__PLACES_MAX)
				   : tacho__places_of_frames(g->reader, p->at.process,
							     s->what.frames, s->what.frame_count, 1,
							     s->ns, places, TACHO__PLACES_MAX);
	int any;

	any = tacho__places_own(places, n) < n;
	f->samples++;
	f->ns += s->what.ns;
	for (uint32_t i = 0; i < n; i++)
		if (!any || tacho__place_is_own(&places[i]))
			add_function(f, key_of(&places[i]), s->what.ns, i);
}

/* What tells the code that ran in a poll from that of others; 0: its samples do not say. */
static uint64_t code_of(const struct tacho__gathered *g, const struct recent *r,
			const struct tacho__poll *p)
{
	const struct function *best = NULL;
	struct functions f = {.count = 0};

	for (uint32_t i = 0; r && i < r->sample_count; i++)
		if (is_in(r->samples[i].ns, p))
			add_functions(g, p, &r->samples[i], &f);
	if (f.samples < SAMPLES_TO_TELL)
		return 0;
	for (uint32_t i = 0; i < f.count; i++)
		if (f.at[i].ns >= f.ns / 4 * 3 &&
		    (!best || f.at[i].depth * best->samples < best->depth * f.at[i].samples))
			best = &f.at[i];
	return best ? best->key | UINT64_C(1) << 63 : 0;
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
	/* If too many threads did too much, what they did in the middle is not kept. */
	return others && count == TACHO__ACTIVITY && oldest > p->begin_ns + edge;
}

/* Whether code that runs would have been sampled: all threads got a timer. */
static int is_sampled(const struct tacho__gathered *g, uint32_t process)
{
	struct tacho_source_info info = {.size = sizeof(info)};
	struct tacho_loss_info loss = {.size = sizeof(loss)};

	for (uint32_t i = 0; i < tacho_read_loss_count(g->reader); i++)
		if (tacho_read_loss(g->reader, process, i, &loss) >= 0 &&
		    strcmp(loss.name, "not_sampled") == 0 && loss.count)
			return 0;
	for (uint32_t i = 0; i < tacho_read_source_count(g->reader); i++)
		if (tacho_read_source(g->reader, process, i, &info) >= 0 &&
		    strcmp(info.name, "cpu_samples") == 0)
			return info.state == TACHO_SOURCE_ON;
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

uint64_t tacho__own_ns(const struct tacho__poll *p)
{
	return p->end_ns - p->begin_ns - delay_of(p);
}

struct judged {
	uint32_t cause;
	uint64_t ns;   /* that it took */
	uint64_t what; /* tells cases apart */
	const struct tacho__call *call;
	const struct tacho__lock *lock;
	int by_code;
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
	struct judged j = {TACHO__CAUSE_UNKNOWN, ns, kind, NULL, NULL, 0};

	if (p->cut & TACHO__CUT_END) {
		j.cause = TACHO__CAUSE_OPEN;
		j.what = p->at.thread;
		j.lock = r ? longest_lock(r, p) : NULL;
		j.call = r ? open_call(r, p) : NULL;
		return j;
	}
	if (own < g->long_ns && delay >= ns / 2)
		return (struct judged){TACHO__CAUSE_SCHED, delay, p->at.loop, NULL, NULL, 0};
	if (p->spent.call_ns >= half && p->spent.call_ns >= p->spent.lock_ns) {
		j.call = r ? longest_call(r, p) : NULL;
		if (j.call)
			return (struct judged){TACHO__CAUSE_CALL,
					       p->spent.call_ns,
					       (uint64_t)j.call->name << 32 | j.call->stack,
					       j.call,
					       NULL,
					       0};
	}
	if (p->spent.lock_ns >= half) {
		j.lock = r ? longest_lock(r, p) : NULL;
		if (j.lock)
			return (struct judged){j.lock->is_signal ? TACHO__CAUSE_SIGNAL
								 : TACHO__CAUSE_LOCK,
					       p->spent.lock_ns,
					       j.lock->lock,
					       NULL,
					       j.lock,
					       0};
	}
	/* A timer of 99 Hz may miss polls of some 20 ms altogether. */
	if (p->spent.samples && p->spent.sample_ns >= own / 4) {
		uint64_t code = code_of(g, r, p);

		j.cause = TACHO__CAUSE_CODE;
		j.what = code ? code : kind;
		j.by_code = code != 0;
		return j;
	}
	if (own >= ASLEEP_NS && is_sampled(g, p->at.process) && !others_ran(g, p)) {
		j.cause = TACHO__CAUSE_PAUSE;
		j.what = 0;
	}
	return j;
}

/* Who released what a wait gave up waiting for, and the next one of the poll got. */
static void find_releaser(const struct recent *r, const struct tacho__poll *p,
			  struct tacho__lock *lock)
{
	for (uint32_t i = 0; r && i < kept(r->lock_count) && !lock->release_ns && !lock->cut; i++) {
		const struct tacho__lock *l = &r->locks[i];

		if (!l->release_ns || l->lock != lock->lock || !is_in(l->end_ns, p))
			continue;
		lock->release_ns = l->release_ns;
		lock->releaser = l->releaser;
		lock->release_place = l->release_place;
	}
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
	c->by_code = j.by_code;
	c->last_ns = p->end_ns;
	c->sum_ns += ns;
	c->cause_ns += j.ns;
	ns = tacho__own_ns(p);
	c->own_ns += ns;
	if (ns > c->longest_own_ns)
		c->longest_own_ns = ns;
	c->sample_ns += p->spent.sample_ns;
	c->unsure += !p->spent.sched && !p->spent.off_cpu_ns;
	TACHO__WORST_ADD(&c->worst, p, x->end_ns - x->begin_ns);
	if (j.call && j.call->end_ns - j.call->begin_ns > c->call.end_ns - c->call.begin_ns)
		c->call = *j.call;
	if (j.lock && j.lock->end_ns - j.lock->begin_ns > c->lock.end_ns - c->lock.begin_ns) {
		c->lock = *j.lock;
		find_releaser(r, p, &c->lock);
	}
	for (uint32_t i = 0; r && i < r->sample_count; i++)
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
	const struct judged j = {TACHO__CAUSE_PAUSE, p->late_ns, 0, NULL, NULL, 0};

	if (p->turn_ns == r->asleep_ns || p->turn_ns < asleep.begin_ns ||
	    p->turn_ns - asleep.begin_ns < ASLEEP_NS + r->turn_ns ||
	    !is_sampled(g, p->at.process) || others_ran(g, &asleep))
		return;
	r->asleep_ns = p->turn_ns;
	add_case(g, NULL, &asleep, j);
}

/* Inner ones come first. */
static void note_open(struct tacho__gathered *g, const struct tacho__poll *p)
{
	struct tacho__opened *o = tacho__table_get(&g->opened, p->at.process, 0, &g->error);
	const struct tacho__poll *before =
		o && o->count ? &o->at[(o->count - 1) % TACHO__OPENED] : NULL;

	if (o && !(before && before->at.thread == p->at.thread && before->end_ns == p->end_ns))
		o->at[o->count++ % TACHO__OPENED] = *p;
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct tacho__gathered *g = arg;
	uint64_t ns = p->end_ns - p->begin_ns;
	struct recent *r = NULL;

	note_active(g, p->at.process, p->at.thread, p->end_ns);
	if (p->cut & TACHO__CUT_END)
		note_open(g, p);
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

/* Facts come in the order of their ends. */
static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__gathered *g = arg;
	struct tacho__late *l;

	if (w->begin_ns < w->ns || w->begin_ns - w->ns < g->late_ns)
		return;
	l = tacho__table_get(&g->late, w->at.process, 0, &g->error);
	if (!l)
		return;
	if (!l->count || w->ns > l->to_ns) {
		l->count++;
		l->from_ns = w->ns;
		l->to_ns = w->ns;
	}
	if (w->begin_ns > l->to_ns) {
		l->sum_ns += w->begin_ns - l->to_ns;
		l->to_ns = w->begin_ns;
	}
	if (w->ns < l->from_ns) {
		l->sum_ns += l->from_ns - w->ns;
		l->from_ns = w->ns;
	}
}

static void on_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__gathered *g = arg;
	struct recent *r = tacho__table_find(&g->threads, u->process, u->thread);

	if (u->delay_ns >= g->long_ns && u->loop) {
		const struct judged j = {TACHO__CAUSE_WOKEN, u->delay_ns, u->loop, NULL, NULL, 0};
		const struct tacho__poll wait = {
			.at = {.process = u->process, .thread = u->thread, .loop = u->loop},
			.begin_ns = u->begin_ns - u->delay_ns,
			.end_ns = u->begin_ns,
			.spent = {.sched = 1, .delay_ns = u->delay_ns},
		};

		add_case(g, NULL, &wait, j);
	}
	if (r)
		r->turn_ns = u->end_ns - u->begin_ns;
}

static void on_left(void *arg, const struct tacho__left *l)
{
	const struct tacho__gathered *g = arg;

	if (g->at_ends)
		tacho__at_end_left(g->at_ends, l);
}

struct tacho__facts tacho__gather_facts(struct tacho__gathered *g)
{
	return (struct tacho__facts){
		.arg = g,
		.error = &g->error,
		.poll = on_poll,
		.turn = on_turn,
		.wake = on_wake,
		.call = on_call,
		.lock = on_lock,
		.sample = on_sample,
		.left = on_left,
	};
}
