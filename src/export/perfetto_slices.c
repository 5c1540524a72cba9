/*
 * Slices of one track nest, and the trace processor believes the order in which they begin. What
 * lies inside is complete before what is around it, so slices wait until what is around them is
 * complete, too, and are written from the outside in. That matters only where two begin at the
 * same instant: those that waited too long are written, and their times say where they belong.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/perfetto.h"
#include "read/memory.h"

static void put_event(struct tacho__perfetto *p, uint64_t track, enum tacho__pf_type type,
		      uint64_t ns, const uint8_t *body, size_t size)
{
	struct tacho__proto *e = &p->built;

	e->size = 0;
	tacho__proto_u64(e, PF_EVENT_TYPE, type);
	tacho__proto_u64(e, PF_EVENT_TRACK, track);
	tacho__proto_raw(e, body, size);
	tacho__pf_put(p, PF_TRACK_EVENT, ns, e);
}

void tacho__pf_slice(struct tacho__perfetto *p, uint64_t track, uint64_t begin_ns, uint64_t end_ns)
{
	put_event(p, track, PF_SLICE_BEGIN, begin_ns, p->event.data, p->event.size);
	put_event(p, track, PF_SLICE_END, end_ns, NULL, 0);
	p->event.size = 0;
}

void tacho__pf_keep(struct tacho__perfetto *p, struct tacho__pf_thread *t, uint64_t begin_ns,
		    uint64_t end_ns, int instant)
{
	if (t->count == TACHO__PF_SLICES)
		tacho__pf_flush(p, t);
	if (TACHO__GROW(t->slices, t->room, t->count + 1)) {
		p->error = -ENOMEM;
		return;
	}
	t->slices[t->count++] = (struct tacho__pf_slice){
		.begin_ns = begin_ns,
		.end_ns = end_ns > begin_ns ? end_ns : begin_ns,
		.number = p->slices++,
		.body = t->bodies.size,
		.body_size = p->event.size,
		.instant = instant,
	};
	tacho__proto_raw(&t->bodies, p->event.data, p->event.size);
	if (t->bodies.bad || p->event.bad)
		p->error = -ENOMEM;
	p->event.size = 0;
}

/* By begin; of those that begin together, the longer is around the shorter, and of equal ones the
   later, because what lies inside was complete first. */
static int by_begin(const void *a, const void *b)
{
	const struct tacho__pf_slice *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->number > y->number ? -1 : 1;
}

void tacho__pf_flush(struct tacho__perfetto *p, struct tacho__pf_thread *t)
{
	uint64_t open[TACHO__PF_SLICES]; /* when they end */
	uint32_t depth = 0;

	TACHO__SORT(t->slices, t->count, by_begin);
	for (uint32_t i = 0; i < t->count && !p->error; i++) {
		const struct tacho__pf_slice *s = &t->slices[i];
		uint64_t end = s->end_ns;

		while (depth && open[depth - 1] <= s->begin_ns)
			put_event(p, t->track, PF_SLICE_END, open[--depth], NULL, 0);
		put_event(p, t->track, s->instant ? PF_INSTANT : PF_SLICE_BEGIN, s->begin_ns,
			  t->bodies.data + s->body, s->body_size);
		if (s->instant)
			continue;
		/* Ends that cross come from damaged records; a track cannot have them. */
		if (depth && end > open[depth - 1])
			end = open[depth - 1];
		open[depth++] = end;
	}
	while (depth && !p->error)
		put_event(p, t->track, PF_SLICE_END, open[--depth], NULL, 0);
	t->count = 0;
	t->bodies.size = 0;
}
