/* From definitions and samples to the places that a finding names. */
#include <string.h>

#include "explain/rules.h"
#include "model/language.h"

#define STACKS_TRIED 8u

/* So many are enough to say where a callback spends its time. */
static void put_places(struct tacho__finding *f, const struct tacho__place *places, uint32_t n)
{
	int any = tacho__places_own(places, n) < n;

	if (f->where_count && n)
		f->where_other |= 1u << f->where_count;
	for (uint32_t i = 0; i < n && f->where_count < TACHO__WHERE; i++)
		if (!any || tacho__place_is_own(&places[i]))
			f->where[f->where_count++] = places[i];
}

void tacho__where_id(const struct tacho__explaining *x, struct tacho__finding *f, uint32_t id,
		     uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	put_places(f, places,
		   tacho__places_of_id(x->reader, f->process, id, ns, places, TACHO__PLACES_MAX));
}

void tacho__where_code(const struct tacho__explaining *x, struct tacho__finding *f, uint64_t code,
		       uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	put_places(f, places,
		   tacho__places_of_frames(x->reader, f->process, &code, code != 0, 1, ns, places,
					   TACHO__PLACES_MAX));
}

static uint32_t places_of_sample(const struct tacho__explaining *x, uint32_t process,
				 const struct tacho__sampled *s, uint64_t ns,
				 struct tacho__place *places)
{
	if (s->stack)
		return tacho__places_of_id(x->reader, process, s->stack, ns, places,
					   TACHO__PLACES_MAX);
	return tacho__places_of_frames(x->reader, process, s->frames, s->frame_count, 1, ns, places,
				       TACHO__PLACES_MAX);
}

static int same_function(const struct tacho__place *a, const struct tacho__place *b)
{
	if (!a->function[0] && !b->function[0])
		return a->address == b->address;
	return strcmp(a->function, b->function) == 0;
}

/* Index of the first place in the same function; `count`: none. */
static uint32_t find_function(const struct tacho__place *places, uint32_t count,
			      const struct tacho__place *function)
{
	uint32_t i = 0;

	while (i < count && !same_function(&places[i], function))
		i++;
	return i;
}

void tacho__where_function(const struct tacho__explaining *x, struct tacho__finding *f,
			   const struct tacho__function *function)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n, from;

	if (function->stack)
		n = tacho__places_of_id(x->reader, f->process, function->stack, function->at_ns,
					places, TACHO__PLACES_MAX);
	else
		n = tacho__places_of_frames(x->reader, f->process, function->frames,
					    function->frame_count, 1, function->at_ns, places,
					    TACHO__PLACES_MAX);
	from = find_function(places, n, &function->place);
	f->where_sampled |= !f->where_count;
	put_places(f, places + from, n - from);
}

void tacho__where_hottest(const struct tacho__explaining *x, struct tacho__finding *f,
			  const struct tacho__hottest *h, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = places_of_sample(x, f->process, h->stack, ns, places);
	uint32_t from = find_function(places, n, &h->place);

	f->where_sampled |= !f->where_count;
	put_places(f, places + from, n - from);
}

static struct tacho__place sample_place(const struct tacho__explaining *x, uint32_t process,
					const struct tacho__sampled *s, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	return tacho__places_best(places, places_of_sample(x, process, s, ns, places));
}

struct tacho__place tacho__own_place(const struct tacho__explaining *x, uint32_t process,
				     uint32_t id, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	return tacho__places_best(
		places, tacho__places_of_id(x->reader, process, id, ns, places, TACHO__PLACES_MAX));
}

void tacho__name_scripts(struct tacho__explaining *x)
{
	for (uint32_t i = 0; i < x->out->count; i++) {
		struct tacho__finding *f = &x->out->findings[i];

		tacho__language_advice(f->names, f->where, f->where_count);
	}
}

struct hot_sum {
	uint64_t function, line; /* ns */
};

/* Of the samples that end in the same function of the program as the i-th, and in the same line. */
static struct hot_sum sum_leaves(const struct tacho__samples *samples,
				 const struct tacho__place *leaves, uint32_t i)
{
	const struct tacho__place *p = &leaves[i];
	struct hot_sum sum = {0, 0};

	for (uint32_t k = 0; k < samples->count; k++) {
		if (!same_function(&leaves[k], p))
			continue;
		sum.function += samples->at[k].ns;
		if (p->line ? leaves[k].line == p->line : leaves[k].address == p->address)
			sum.line += samples->at[k].ns;
	}
	return sum;
}

/* Of the samples that have the function in their stack. */
static uint64_t sum_through(const struct tacho__explaining *x, uint32_t process,
			    const struct tacho__samples *samples,
			    const struct tacho__place *function, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < samples->count; i++) {
		uint32_t n = places_of_sample(x, process, &samples->at[i], ns, places);

		sum += find_function(places, n, function) < n ? samples->at[i].ns : 0;
	}
	return sum;
}

/* The innermost function of the stack that three quarters of all go through, into `place`. */
static uint64_t find_common(const struct tacho__explaining *x, uint32_t process,
			    const struct tacho__samples *samples, uint64_t all, uint64_t ns,
			    struct tacho__hottest *h)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = places_of_sample(x, process, h->stack, ns, places);
	int any = tacho__places_own(places, n) < n;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t sum = !any || tacho__place_is_own(&places[i])
				       ? sum_through(x, process, samples, &places[i], ns)
				       : 0;

		if ((double)sum >= tacho__common_share * (double)all) {
			h->place = places[i];
			return sum;
		}
	}
	return 0;
}

int tacho__find_hottest(const struct tacho__explaining *x, uint32_t process,
			const struct tacho__samples *samples, uint64_t ns, int common,
			struct tacho__hottest *h)
{
	struct tacho__place leaves[TACHO__CASE_SAMPLES];
	struct hot_sum best = {0, 0};
	uint64_t all = 0, sum = 0;

	memset(h, 0, sizeof(*h));
	for (uint32_t i = 0; i < samples->count; i++)
		leaves[i] = sample_place(x, process, &samples->at[i], ns);
	for (uint32_t i = 0; i < samples->count; i++) {
		struct hot_sum now = sum_leaves(samples, leaves, i);

		all += samples->at[i].ns;
		/* Of one function, the line that was seen most. */
		if (h->stack && (now.function < best.function ||
				 (now.function == best.function && now.line <= best.line)))
			continue;
		best = now;
		h->stack = &samples->at[i];
		h->place = leaves[i];
	}
	if (common && h->stack && best.function < all / 2)
		sum = find_common(x, process, samples, all, ns, h);
	h->share = all ? (double)(sum ? sum : best.function) / (double)all : 1;
	return h->stack != NULL;
}

int tacho__where_common(const struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__samples *samples, uint64_t ns)
{
	struct tacho__hottest h;
	uint64_t all = 0;

	memset(&h, 0, sizeof(h));
	for (uint32_t i = 0; i < samples->count; i++) {
		all += samples->at[i].ns;
		if (!h.stack || samples->at[i].ns > h.stack->ns)
			h.stack = &samples->at[i];
	}
	if (!h.stack || !find_common(x, f->process, samples, all, ns, &h))
		return 0;
	tacho__where_hottest(x, f, &h, ns);
	return 1;
}

void tacho__samples_add(struct tacho__samples *to, const struct tacho__function *f)
{
	uint32_t at = to->count;

	to->all += f->samples;
	if (at < TACHO__CASE_SAMPLES) {
		to->count++;
	} else {
		at = 0;
		for (uint32_t i = 1; i < to->count; i++)
			at = to->at[i].ns < to->at[at].ns ? i : at;
		if (to->at[at].ns >= f->ns)
			return;
	}
	to->at[at] = (struct tacho__sampled){
		.stack = f->stack, .frame_count = f->frame_count, .count = f->samples, .ns = f->ns};
	memcpy(to->at[at].frames, f->frames, sizeof(f->frames));
}

/* The functions of the ledger that were sampled on the loop in callbacks of that kind, 0: in all. 1:
   there is enough of it. */
static int find_hot(const struct tacho__explaining *x, const struct tacho__loop_sum *l,
		    uint32_t kind, struct tacho__samples *samples, struct tacho__hottest *h)
{
	const struct tacho__ledger *ledger = x->out->ledger;

	memset(samples, 0, sizeof(*samples));
	for (const struct tacho__function *f = NULL;
	     (f = tacho__table_next(&ledger->functions, f));) {
		const struct tacho__owned *o = tacho__table_at(&ledger->owned, f->owned);

		if (o && o->process == l->process && o->loop == l->loop &&
		    (!kind || o->kind == kind))
			tacho__samples_add(samples, f);
	}
	/* All that a loop does has the loop in common. */
	return samples->all >= tacho__hot_samples &&
	       tacho__find_hottest(x, l->process, samples, x->sum->last_ns, kind != 0, h);
}

void tacho__where_kind(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l, uint32_t kind)
{
	struct tacho__samples samples;
	struct tacho__hottest h;

	f->kind = kind;
	if (find_hot(x, l, kind, &samples, &h)) {
		tacho__where_hottest(x, f, &h, x->sum->last_ns);
		tacho__say_evidence(f, f->thread, l->first_ns, l->last_ns, 100 * h.share, "%",
				    "%.0f %% of the CPU samples in this callback are in this place",
				    100 * h.share);
	} else {
		tacho__where_id(x, f, kind, x->sum->last_ns);
	}
}

void tacho__where_busy(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l)
{
	struct tacho__samples samples;
	struct tacho__hottest h;
	const struct tacho__kind_sum *busiest = NULL;

	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));) {
		if (k->kind && k->process == l->process && k->worst.count &&
		    k->worst.at[0].at.loop == l->loop && (!busiest || k->ns.sum > busiest->ns.sum))
			busiest = k;
	}
	/* A callback that has no part in it is not what the loop is busy with. */
	if (busiest && (double)busiest->ns.sum >= tacho__busiest_share * (double)l->busy_ns)
		tacho__where_kind(x, f, l, busiest->kind);
	else if (find_hot(x, l, 0, &samples, &h))
		tacho__where_hottest(x, f, &h, x->sum->last_ns);
}

/* The innermost function that most of them go through: it is in every second stack, so a few of these
   have it. 0: there is none. */
static int find_most(const struct tacho__explaining *x, uint32_t process,
		     const struct tacho__samples *samples, struct tacho__hottest *h)
{
	uint64_t all = 0, least = UINT64_MAX, ns = x->sum->last_ns;

	for (uint32_t i = 0; i < samples->count; i++)
		all += samples->at[i].ns;
	for (uint32_t i = 0; i < samples->count && i < STACKS_TRIED; i++) {
		struct tacho__place places[TACHO__PLACES_MAX];
		uint32_t n = places_of_sample(x, process, &samples->at[i], ns, places);

		for (uint32_t k = tacho__places_own(places, n); k < n; k++) {
			uint64_t sum = tacho__place_is_own(&places[k])
					       ? sum_through(x, process, samples, &places[k], ns)
					       : 0;

			if (sum <= all / 2)
				continue;
			if (sum < least)
				*h = (struct tacho__hottest){&samples->at[i], places[k],
							     (double)sum / (double)all};
			least = sum < least ? sum : least;
			break;
		}
	}
	return least != UINT64_MAX;
}

void tacho__where_sole(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l, uint64_t what)
{
	const struct tacho__samples *samples =
		tacho__soles_of(&x->gathered.soles, l->process, l->loop, l->thread, what);
	struct tacho__hottest h;

	if (samples && samples->all >= tacho__hot_samples && find_most(x, l->process, samples, &h))
		tacho__where_hottest(x, f, &h, x->sum->last_ns);
	else
		tacho__where_busy(x, f, l);
}
