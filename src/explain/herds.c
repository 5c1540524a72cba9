#include "explain/herds.h"

#include <string.h>

#define HERDS 4096u
#define MANY 100u
#define KEPT_NS 1000000u

void tacho__herds_init(struct tacho__herding *h, uint64_t late_ns)
{
	memset(h, 0, sizeof(*h));
	h->late_ns = late_ns;
	tacho__table_init(&h->herds, sizeof(struct tacho__herds), HERDS);
}

void tacho__herds_free(struct tacho__herding *h)
{
	tacho__table_free(&h->herds);
}

static void close_herd(struct tacho__herding *h, struct tacho__herd *d, int *error)
{
	uint64_t ns = d->to_ns > d->from_ns ? d->to_ns - d->from_ns : 0;
	struct tacho__herds *k = NULL;

	if (d->poll_ns && d->tasks >= MANY)
		k = tacho__table_get(&h->herds, (uint64_t)d->process << 32 | d->waker, d->woken,
				     error);
	d->poll_ns = 0;
	if (!k)
		return;
	k->process = d->process;
	k->waker = d->waker;
	k->woken = d->woken;
	k->count++;
	k->tasks += d->tasks;
	k->late += d->late;
	k->most = d->tasks > k->most ? d->tasks : k->most;
	k->ns += ns;
	if (ns > k->longest_ns) {
		k->longest_ns = ns;
		k->longest_at_ns = d->from_ns;
	}
	k->others += d->others;
	k->others_ns += d->others_ns;
}

static int is_of(const struct tacho__herd *d, const struct tacho__wake *w)
{
	return d->poll_ns == w->at.poll_ns && d->thread == w->at.thread &&
	       d->process == w->at.process && d->woken == w->kind;
}

/* It waited while a herd ran: its part of that time. */
static void keep_other(struct tacho__herd *d, const struct tacho__wake *w)
{
	uint64_t from = w->ns > d->from_ns ? w->ns : d->from_ns;
	uint64_t to = w->begin_ns < d->to_ns ? w->begin_ns : d->to_ns;

	if (d->poll_ns && d->process == w->at.process && d->woken != w->kind && d->tasks >= MANY &&
	    to > from && to - from >= KEPT_NS) {
		d->others++;
		d->others_ns += to - from;
	}
}

void tacho__herds_wake(struct tacho__herding *h, const struct tacho__wake *w, int *error)
{
	struct tacho__herd *d = &h->open[h->last];

	if (w->begin_ns <= w->ns || w->lost)
		return;
	if (w->begin_ns - w->ns >= KEPT_NS)
		for (uint32_t i = 0; i < TACHO__HERDS_OPEN; i++)
			keep_other(&h->open[i], w);
	/* What a loop wakes at once is what its wait reported: load. */
	if (!w->at.kind)
		return;
	for (uint32_t i = 0; i < TACHO__HERDS_OPEN && !is_of(d, w); i++)
		d = &h->open[(h->last + i) % TACHO__HERDS_OPEN];
	if (!is_of(d, w)) {
		struct tacho__herd *oldest = &h->open[0];

		for (uint32_t i = 1; i < TACHO__HERDS_OPEN && oldest->poll_ns; i++)
			if (!h->open[i].poll_ns || h->open[i].to_ns < oldest->to_ns)
				oldest = &h->open[i];
		d = oldest;
		close_herd(h, d, error);
		*d = (struct tacho__herd){.process = w->at.process,
					  .thread = w->at.thread,
					  .waker = w->at.kind,
					  .woken = w->kind,
					  .poll_ns = w->at.poll_ns,
					  .from_ns = w->ns};
	}
	h->last = (uint32_t)(d - h->open);
	d->tasks++;
	d->late += w->begin_ns - w->ns >= h->late_ns;
	d->to_ns = w->begin_ns > d->to_ns ? w->begin_ns : d->to_ns;
}

void tacho__herds_end(struct tacho__herding *h, int *error)
{
	for (uint32_t i = 0; i < TACHO__HERDS_OPEN; i++)
		close_herd(h, &h->open[i], error);
}
