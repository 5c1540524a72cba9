/* Samples: which functions the time of an owner went to. */
#include <string.h>

#include "base/hash.h"
#include "explain/ledger_book.h"

#define STACK_KEY (UINT64_C(1) << 62)

/* ---------------------------------------------------------------- functions */

static uint64_t hash_of(const struct tacho__sample *s)
{
	uint32_t count = s->count - s->kernel < TACHO__LEDGER_FRAMES ? s->count - s->kernel
								     : TACHO__LEDGER_FRAMES;

	if (s->stack || s->kernel >= s->count)
		return s->stack | STACK_KEY;
	return tacho__hash_bytes(s->frames + s->kernel, count * sizeof(s->frames[0]), 1) &
	       ~STACK_KEY;
}

/* Whether the code that was interrupted is tacho's. */
static int is_recorder(const struct tacho__ledger_book *b, const struct tacho__sample *s)
{
	const struct tacho_definition *d =
		!s->stack && s->kernel < s->count
			? tacho_read_module_at(b->l->reader, s->at.process, s->frames[s->kernel],
					       s->ns)
			: NULL;

	return d && tacho__is_tachos(d->name, "");
}

static void resolve(struct tacho__ledger_book *b, const struct tacho__sample *s,
		    struct tacho__resolved *r)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = 0, own;

	if (s->stack)
		n = tacho__places_of_id(b->l->reader, s->at.process, s->stack, s->ns, places,
					TACHO__PLACES_MAX);
	else if (s->kernel < s->count)
		n = tacho__places_of_frames(b->l->reader, s->at.process, s->frames + s->kernel,
					    s->count - s->kernel, 1, s->ns, places,
					    TACHO__PLACES_MAX);
	r->known = 1;
	r->is_recorder = (uint8_t)is_recorder(b, s);
	if (!n)
		return;
	own = tacho__places_own(places, n);
	own = own < n ? own : 0;
	/* Addresses in code without names are all different; where it was called is one. */
	if (!places[own].function[0] && own + 1 < n)
		own++;
	r->place = places[own];
	r->function = r->is_recorder ? 1
		      : r->place.function[0]
			      ? tacho__hash_bytes(r->place.function, strlen(r->place.function), 0)
			      : r->place.address;
}

static void keep_stack(struct tacho__function *f, const struct tacho__sample *s)
{
	f->stack = s->stack;
	f->at_ns = s->ns;
	f->frame_count = 0;
	for (uint32_t i = s->kernel;
	     !s->stack && i < s->count && f->frame_count < TACHO__LEDGER_FRAMES; i++)
		f->frames[f->frame_count++] = s->frames[i];
}

static struct tacho__function *function_of(struct tacho__ledger_book *b,
					   const struct tacho__sample *s, uint32_t owned)
{
	struct tacho__resolved once = {.function = 0}, *r;
	struct tacho__function *f;

	r = tacho__table_get(&b->resolved, s->at.process, hash_of(s), &b->error);
	r = r ? r : &once;
	if (!r->known)
		resolve(b, s, r);
	if (!r->function)
		return NULL;
	f = tacho__table_get(&b->l->functions, owned, r->function, &b->error);
	if (!f)
		return NULL;
	if (!f->samples++) {
		f->owned = owned;
		f->is_recorder = r->is_recorder;
	}
	/* Of its lines the one that most are in, if one has more than half. */
	if (f->line_votes && f->place.line != r->place.line) {
		f->line_votes--;
	} else if (!f->line_votes++) {
		f->place = r->place;
		keep_stack(f, s);
	}
	return f;
}

/* ------------------------------------------------------------------- samples */

/* What waits for the thread, and its part of what waits in its queue. */
static double rate(const struct tacho__ledger_book *b, const struct tacho__worker *w)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);
	double each = w->halves / 2.0;
	uint32_t busy = q ? q->serving - q->parked - q->idle : 0;

	if (busy && !q->parked && w->standing == TACHO__BUSY)
		each += (double)q->waiting / busy;
	return each;
}

void tacho__book_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w = tacho__book_worker(b, s->at.process, s->at.thread);
	struct tacho__paid *p;
	struct tacho__function *f;
	struct tacho__recent_sample *recent;
	double cost;

	if (!w)
		return;
	/* It may reach further back than what the thread recorded itself. */
	tacho__book_seen(b, w->of, w->process, s->ns);
	/* Two samplers of one thread tell the same time. */
	w->perf |= s->perf;
	if (s->perf != w->perf || w->doing != TACHO__RUNNING || w->in_lock)
		return;
	p = tacho__book_open(b, w);
	p->sample_ns = tacho__add(p->sample_ns, s->cpu_ns);
	if (p->owned == TACHO__NONE || s->cpu_ns > TACHO__MUCH)
		return;
	f = function_of(b, s, p->owned);
	recent = &w->samples[w->sample_count++ % TACHO__BOOK_SAMPLES];
	*recent = (struct tacho__recent_sample){s->ns, s->cpu_ns, p->owned,
						f ? f->entry.index : TACHO__NONE};
	if (!f)
		return;
	if (b->diary)
		tacho__book_write_sample(b, w, recent);
	if (p->function == f->entry.index + 1) {
		p->votes_ns += s->cpu_ns;
	} else if (p->votes_ns >= s->cpu_ns) {
		p->votes_ns -= s->cpu_ns;
	} else {
		p->function = f->entry.index + 1;
		p->votes_ns = s->cpu_ns - p->votes_ns;
	}
	cost = rate(b, w) * (double)s->cpu_ns;
	f->ns = tacho__add(f->ns, s->cpu_ns);
	f->cost += cost;
	tacho__owned_at(b->l, p->owned)->sample_ns += s->cpu_ns;
	tacho__owned_at(b->l, p->owned)->sample_cost += cost;
}

void tacho__book_sample_costs(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			      uint64_t to, double each)
{
	uint32_t kept =
		w->sample_count < TACHO__BOOK_SAMPLES ? w->sample_count : TACHO__BOOK_SAMPLES;

	for (uint32_t i = 0; i < kept; i++) {
		const struct tacho__recent_sample *r = &w->samples[i];
		struct tacho__function *f;

		if (r->at <= from || r->at > to || r->function == TACHO__NONE)
			continue;
		f = tacho__table_at(&b->l->functions, r->function);
		f->cost += each * (double)r->ns;
		tacho__owned_at(b->l, r->owned)->sample_cost += each * (double)r->ns;
	}
}

static void add_beside(struct tacho__ledger_book *b, uint32_t most, uint32_t other, uint64_t ns)
{
	struct tacho__beside *s = tacho__table_get(&b->l->beside, most, other, &b->error);

	if (!s)
		return;
	s->most = most;
	s->other = other;
	s->ns = tacho__add(s->ns, ns);
}

/* Which functions ran in a long one, beside that which had most of it. */
static void count_beside(struct tacho__ledger_book *b, const struct tacho__worker *w,
			 const struct tacho__paid *p)
{
	uint32_t kept =
		w->sample_count < TACHO__BOOK_SAMPLES ? w->sample_count : TACHO__BOOK_SAMPLES;
	uint32_t most = p->function - 1;

	for (uint32_t i = 0; i < kept; i++) {
		const struct tacho__recent_sample *r = &w->samples[i];

		if (r->owned != p->owned || r->function == TACHO__NONE || r->at <= p->from_ns ||
		    r->at > p->end_ns)
			continue;
		add_beside(b, most, most, r->ns);
		if (r->function != most)
			add_beside(b, most, r->function, r->ns);
	}
}

void tacho__book_dominated(struct tacho__ledger_book *b, const struct tacho__worker *w,
			   const struct tacho__paid *p, uint64_t size_ns)
{
	uint32_t size = tacho__size_of(size_ns);
	struct tacho__function *f =
		size && p->function ? tacho__table_at(&b->l->functions, p->function - 1) : NULL;

	if (!f)
		return;
	if (size > 1)
		count_beside(b, w, p);
	tacho__size_more(&f->size[size], p->ns, p->waiting_ns, p->begin_ns,
			 p->end_ns > p->begin_ns ? p->end_ns - p->begin_ns : 0);
	f->size_cpu_ns[size] = tacho__add(f->size_cpu_ns[size], p->sample_ns);
	if (p->ns > f->longest_ns) {
		f->longest_ns = p->ns;
		f->longest_at_ns = p->begin_ns;
	}
}
