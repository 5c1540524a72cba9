/* From definitions and samples to the places that a finding names. */
#include <string.h>

#include "explain/rules.h"

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

void tacho__where_sample(const struct tacho__explaining *x, struct tacho__finding *f,
			 const struct tacho__sampled *s, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];

	put_places(f, places, places_of_sample(x, f->process, s, ns, places));
}

struct tacho__place tacho__sample_place(const struct tacho__explaining *x, uint32_t process,
					const struct tacho__sampled *s, uint64_t ns)
{
	static const struct tacho__place none = {.function = "", .file = "", .module = ""};
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = places_of_sample(x, process, s, ns, places),
		 own = tacho__places_own(places, n);

	return n ? places[own < n ? own : 0] : none;
}

struct tacho__place tacho__own_place(const struct tacho__explaining *x, uint32_t process,
				     uint32_t id, uint64_t ns)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(x->reader, process, id, ns, places, TACHO__PLACES_MAX);
	uint32_t own = tacho__places_own(places, n);
	static const struct tacho__place none = {.function = "", .file = "", .module = ""};

	return n ? places[own < n ? own : 0] : none;
}

const struct tacho__sampled *tacho__hottest(const struct tacho__explaining *x, uint32_t process,
					    const struct tacho__samples *samples, uint64_t ns)
{
	struct tacho__place places[TACHO__CASE_SAMPLES];
	uint64_t best_ns = 0, sum;
	uint32_t best = 0;

	for (uint32_t i = 0; i < samples->count; i++)
		places[i] = tacho__sample_place(x, process, &samples->at[i], ns);
	for (uint32_t i = 0; i < samples->count; i++) {
		sum = 0;
		for (uint32_t k = 0; k < samples->count; k++)
			if (strcmp(places[i].function, places[k].function) == 0)
				sum += samples->at[k].ns;
		/* Of one function, the line that was seen most. */
		if (sum > best_ns ||
		    (sum == best_ns && samples->at[i].count > samples->at[best].count)) {
			best_ns = sum;
			best = i;
		}
	}
	return samples->count ? &samples->at[best] : NULL;
}

void tacho__where_busy(const struct tacho__explaining *x, struct tacho__finding *f,
		       const struct tacho__loop_sum *l)
{
	const struct tacho__hot *hot = tacho__table_find(&x->gathered.hot, l->process, l->loop);
	const struct tacho__sampled *s;
	const struct tacho__kind_sum *busiest = NULL;

	for (uint32_t i = 0; i < x->sum->kinds.used; i++) {
		const struct tacho__kind_sum *k = tacho__table_at(&x->sum->kinds, i);

		if (k && k->kind && k->process == l->process && k->worst.count &&
		    k->worst.at[0].at.loop == l->loop && (!busiest || k->ns.sum > busiest->ns.sum))
			busiest = k;
	}
	/* A callback that has no part in it is not what the loop is busy with. */
	if (busiest && busiest->ns.sum >= l->busy_ns / 4) {
		f->kind = busiest->kind;
		tacho__where_id(x, f, busiest->kind, x->sum->last_ns);
		return;
	}
	s = hot ? tacho__hottest(x, l->process, &hot->samples, x->sum->last_ns) : NULL;
	if (s)
		tacho__where_sample(x, f, s, x->sum->last_ns);
}
