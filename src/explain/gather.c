#include "explain/gather.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "model/judgement.h"
#include "model/place.h"

#define RECENT 32u
#define RECENT_SAMPLES 64u
#define PROCESSES 4096u
#define THREADS 4096u
#define TASK_LOCKS 4096u
#define STACKS 65536u
#define PACES 65536u

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
};

void tacho__gather_init(struct tacho__gathered *g, const struct tacho_reader *reader,
			uint64_t late_ns)
{
	memset(g, 0, sizeof(*g));
	g->reader = reader;
	g->late_ns = late_ns;
	tacho__table_init(&g->late, sizeof(struct tacho__late), PROCESSES);
	tacho__table_init(&g->ran, sizeof(struct tacho__ran), THREADS);
	tacho__table_init(&g->long_waits, sizeof(struct tacho__long_wait), THREADS);
	tacho__table_init(&g->open, sizeof(struct tacho__open_poll), THREADS);
	tacho__table_init(&g->threads, sizeof(struct recent), THREADS);
	tacho__table_init(&g->opened, sizeof(struct tacho__opened), PROCESSES);
	tacho__herds_init(&g->herding, late_ns);
	tacho__soles_init(&g->soles);
	tacho__table_init(&g->task_locks, sizeof(struct tacho__task_lock), TASK_LOCKS);
	tacho__table_init(&g->outside, sizeof(struct tacho__outside), STACKS);
	tacho__table_init(&g->paces, sizeof(struct tacho__pace), PACES);
}

void tacho__gather_free(struct tacho__gathered *g)
{
	tacho__table_free(&g->open);
	tacho__table_free(&g->ran);
	tacho__table_free(&g->long_waits);
	tacho__table_free(&g->threads);
	tacho__table_free(&g->late);
	tacho__table_free(&g->opened);
	tacho__herds_free(&g->herding);
	tacho__table_free(&g->soles);
	tacho__table_free(&g->task_locks);
	for (struct tacho__outside *o = NULL; (o = tacho__table_next(&g->outside, o));)
		tacho__hist_free(&o->ns);
	tacho__table_free(&g->outside);
	tacho__table_free(&g->paces);
}

static struct recent *recent_of(struct tacho__gathered *g, const struct tacho__at *at)
{
	struct recent *r = g->last_thread ? tacho__table_at(&g->threads, g->last_thread - 1) : NULL;

	if (r && r->entry.key[0] == at->process && r->entry.key[1] == at->thread)
		return r;
	r = tacho__table_get(&g->threads, at->process, at->thread, &g->error);
	g->last_thread = r ? r->entry.index + 1 : 0;
	return r;
}

/* ------------------------------------------------------------- what happens */

static void note_wait(struct tacho__gathered *g, const struct tacho__at *at, uint64_t begin_ns,
		      uint64_t end_ns, uint32_t call)
{
	struct tacho__long_wait *w =
		end_ns - begin_ns < tacho__kept_waiting_ns
			? NULL
			: tacho__table_get(&g->long_waits, at->process, at->thread, &g->error);

	if (!w || end_ns - begin_ns <= w->end_ns - w->begin_ns)
		return;
	w->begin_ns = begin_ns;
	w->end_ns = end_ns;
	w->call = call;
}

static void on_call(void *arg, const struct tacho__call *c)
{
	struct tacho__gathered *g = arg;
	struct recent *r = c->at.poll_ns ? recent_of(g, &c->at) : NULL;

	if (r)
		r->calls[r->call_count++ % RECENT] = *c;
	if (c->fd >= 0 && (c->fd_kind || c->cut))
		note_wait(g, &c->at, c->begin_ns, c->end_ns, c->name);
}

static void on_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__gathered *g = arg;
	struct recent *r = l->at.poll_ns ? recent_of(g, &l->at) : NULL;

	if (r)
		r->locks[r->lock_count++ % RECENT] = *l;
	if (l->is_signal || l->for_signal)
		note_wait(g, &l->at, l->begin_ns, l->end_ns, 0);
	if (l->cut && l->owner && g->stuck_count < TACHO__STUCK)
		g->stuck[g->stuck_count++] = *l;
}

void tacho__samples_pick(struct tacho__samples *to, const struct tacho__sampled *s)
{
	uint32_t at = to->count;

	to->all += s->count;
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

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t tacho__ran_ns(const struct tacho__ran *r)
{
	return larger(larger(r->sampled_ns[0], r->sampled_ns[1]), r->switched_ns);
}

/* It ran since it was switched in, until now. */
static void on_off_cpu(void *arg, const struct tacho__switch *o)
{
	struct tacho__gathered *g = arg;
	struct tacho__ran *r = tacho__table_get(&g->ran, o->at.process, o->at.thread, &g->error);

	if (!r)
		return;
	if (r->since_ns && o->begin_ns > r->since_ns)
		r->switched_ns += o->begin_ns - r->since_ns;
	r->since_ns = o->cut ? 0 : o->end_ns;
}

static void on_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__gathered *g = arg;
	struct recent *r;
	struct tacho__ran *ran = tacho__table_get(&g->ran, s->at.process, s->at.thread, &g->error);
	struct tacho__sampled what = {.stack = s->stack, .count = 1, .ns = s->cpu_ns};

	if (ran && s->cpu_ns < UINT64_MAX / 2 - ran->sampled_ns[s->perf != 0])
		ran->sampled_ns[s->perf != 0] += s->cpu_ns;
	for (uint32_t i = s->kernel;
	     !s->stack && i < s->count && what.frame_count < TACHO__SAMPLE_FRAMES; i++)
		what.frames[what.frame_count++] = s->frames[i];
	tacho__soles_sample(&g->soles, &s->at, &what);
	r = s->at.poll_ns ? recent_of(g, &s->at) : NULL;
	if (r)
		keep_sample(r, s->ns, s->at.poll_ns, &what);
}

static void on_ready(void *arg, const struct tacho__ready *r)
{
	struct tacho__gathered *g = arg;

	tacho__soles_ready(&g->soles, r, &g->error);
}

static void on_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__gathered *g = arg;

	tacho__soles_turn(&g->soles, u);
}

/* --------------------------------------------------------------- open polls */

static uint32_t kept(uint32_t ever)
{
	return ever < RECENT ? ever : RECENT;
}

static int is_in(uint64_t ns, const struct tacho__poll *p)
{
	return ns >= p->begin_ns && ns <= p->end_ns;
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

/* Outer ones come last, and have all that is in them. */
static void keep_open(struct tacho__gathered *g, const struct tacho__poll *p)
{
	const struct recent *r = tacho__table_find(&g->threads, p->at.process, p->at.thread);
	struct tacho__open_poll *o =
		tacho__table_get(&g->open, p->at.process, p->at.thread, &g->error);
	const struct tacho__call *call = r ? open_call(r, p) : NULL;
	const struct tacho__lock *lock = r ? longest_lock(r, p) : NULL;

	/* The longest: what a hole cut before is no longer open. */
	if (!o || (o->poll.end_ns > p->end_ns && o->poll.at.loop))
		return;
	o->poll = *p;
	memset(&o->samples, 0, sizeof(o->samples));
	o->call = call ? *call : (struct tacho__call){.cut = 0};
	o->lock = lock ? *lock : (struct tacho__lock){.cut = 0};
	for (uint32_t i = 0; r && i < r->sample_count; i++)
		if (is_in(r->samples[i].ns, p))
			tacho__samples_pick(&o->samples, &r->samples[i].what);
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

	if (!(p->cut & TACHO__CUT_END))
		return;
	note_open(g, p);
	if (p->at.loop && !(p->cut & TACHO__CUT_BEGIN))
		keep_open(g, p);
}

/* Facts come in the order of their ends. */
static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__gathered *g = arg;
	struct tacho__late *l;

	tacho__herds_wake(&g->herding, w, &g->error);
	if (w->begin_ns < w->ns || w->begin_ns - w->ns < g->late_ns)
		return;
	l = tacho__table_get(&g->late, w->at.process, 0, &g->error);
	if (!l)
		return;
	l->wakes += !w->lost;
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

/* "sync.Mutex", "tokio::sync::Mutex" */
int tacho__is_lock(const struct tacho_definition *d)
{
	size_t size = d ? strlen(d->name) : 0;

	return size >= 5 && strcmp(d->name + size - 5, "Mutex") == 0;
}

/* The program's own place where the holder let it go. */
static uint64_t place_of(const struct tacho__gathered *g, const struct tacho__task_wait *w)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(g->reader, w->process, w->by.stack, w->end_ns, places,
					 TACHO__PLACES_MAX);

	return n ? tacho__places_best(places, n).address : 0;
}

/* The program called what asks another service and waits for its answer. */
static int is_client(const struct tacho__gathered *g, const struct tacho__task_wait *w)
{
	static const char *const clients[] = {"net/http.(*persistConn).",
					      "net/http.(*Transport).getConn", "net.(*Dialer).",
					      "net.(*Resolver).", "database/sql."};
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(g->reader, w->process, w->stack, w->end_ns, places,
					 TACHO__PLACES_MAX);
	uint32_t own = tacho__places_own(places, n);

	for (uint32_t i = 0; own < n && i < own; i++)
		for (uint32_t k = 0; k < sizeof(clients) / sizeof(clients[0]); k++)
			if (strncmp(places[i].function, clients[k], strlen(clients[k])) == 0)
				return 1;
	return 0;
}

static void pace(struct tacho__gathered *g, const struct tacho__task_wait *w)
{
	struct tacho__pace *p = tacho__table_get(&g->paces, w->process, w->task, &g->error);
	const struct tacho_definition *d = tacho_read_definition(g->reader, w->process, w->what);

	if (!p)
		return;
	/* What no task wakes it from is a descriptor or a timer. */
	if (d && strcmp(d->name, "network") == 0)
		p->descriptors += p->descriptors < UINT32_MAX;
	else if (w->by_loop && !w->by.task)
		p->timers += p->timers < UINT32_MAX;
	else
		p->others += p->others < UINT32_MAX;
}

int tacho__is_own_pace(const struct tacho__gathered *g, const struct tacho__task_wait *w)
{
	const struct tacho__pace *p = tacho__table_find(&g->paces, w->process, w->task);

	return p && !p->descriptors && p->timers > p->others && p->timers >= tacho__several;
}

static void add_outside(struct tacho__gathered *g, const struct tacho__task_wait *w)
{
	struct tacho__outside *o = tacho__table_get(&g->outside, w->process, w->stack, &g->error);
	uint64_t ns = w->end_ns - w->begin_ns;

	if (!o)
		return;
	if (!o->looked) {
		o->looked = 1;
		o->process = w->process;
		o->is_client = is_client(g, w) != 0;
	}
	if (!o->is_client) {
		pace(g, w);
		return;
	}
	if (tacho__hist_add(&o->ns, ns))
		g->error = -ENOMEM;
	if (ns >= o->longest.end_ns - o->longest.begin_ns)
		o->longest = *w;
}

static void on_task_wait(void *arg, const struct tacho__task_wait *w)
{
	struct tacho__gathered *g = arg;
	struct tacho__task_lock *k;
	uint64_t ns = w->end_ns - w->begin_ns;

	if (!w->open && w->stack && w->what)
		add_outside(g, w);
	if (w->open || ns < tacho__kept_waiting_ns || !w->by.task || !w->what ||
	    !tacho__is_lock(tacho_read_definition(g->reader, w->process, w->what)))
		return;
	k = tacho__table_get(&g->task_locks, (uint64_t)w->process << 32 | w->by.kind,
			     place_of(g, w), &g->error);
	if (!k)
		return;
	k->process = w->process;
	k->count++;
	k->sum_ns += ns;
	if (ns > k->longest.end_ns - k->longest.begin_ns)
		k->longest = *w;
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
		.ready = on_ready,
		.wake = on_wake,
		.call = on_call,
		.lock = on_lock,
		.sample = on_sample,
		.off_cpu = on_off_cpu,
		.left = on_left,
		.task_wait = on_task_wait,
	};
}
