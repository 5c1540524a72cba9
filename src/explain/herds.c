#include "explain/herds.h"

#include <string.h>

#include "model/judgement.h"

#define HERDS 4096u

void tacho__herds_init(struct tacho__herding *h, uint64_t late_ns)
{
	memset(h, 0, sizeof(*h));
	h->late_ns = late_ns;
	for (uint8_t i = 0; i < TACHO__HERDS_OPEN; i++)
		h->recent[i] = i;
	tacho__table_init(&h->herds, sizeof(struct tacho__herds), HERDS);
}

void tacho__herds_free(struct tacho__herding *h)
{
	tacho__table_free(&h->herds);
}

static void close_herd(struct tacho__herding *h, uint32_t i, int *error)
{
	const struct tacho__herd *d = &h->open[i];
	uint64_t ns = d->to_ns > d->from_ns ? d->to_ns - d->from_ns : 0;
	struct tacho__herds *k = NULL;

	if (h->poll_ns[i] && d->tasks >= tacho__herd_tasks)
		k = tacho__table_get(&h->herds, (uint64_t)d->process << 32 | d->waker, d->woken,
				     error);
	h->poll_ns[i] = 0;
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

static int is_of(const struct tacho__herding *h, uint32_t i, const struct tacho__wake *w)
{
	const struct tacho__herd *d = &h->open[i];

	return h->poll_ns[i] == w->at.poll_ns && d->thread == w->at.thread &&
	       d->process == w->at.process && d->woken == w->kind;
}

/* Where in h->recent the herd of a wake is; behind its end: there is none. */
static uint32_t find(const struct tacho__herding *h, const struct tacho__wake *w)
{
	uint32_t i = 0;

	while (i < TACHO__HERDS_OPEN && !is_of(h, h->recent[i], w))
		i++;
	return i;
}

static void make_first(struct tacho__herding *h, uint32_t i)
{
	uint8_t at = h->recent[i];

	memmove(h->recent + 1, h->recent, i);
	h->recent[0] = at;
}

/* It waited while a herd ran: its part of that time. */
static void keep_other(struct tacho__herd *d, const struct tacho__wake *w)
{
	uint64_t from = w->ns > d->from_ns ? w->ns : d->from_ns;
	uint64_t to = w->begin_ns < d->to_ns ? w->begin_ns : d->to_ns;

	if (d->process == w->at.process && d->woken != w->kind && d->tasks >= tacho__herd_tasks &&
	    to > from && to - from >= tacho__kept_waiting_ns) {
		d->others++;
		d->others_ns += to - from;
	}
}

void tacho__herds_wake(struct tacho__herding *h, const struct tacho__wake *w, int *error)
{
	struct tacho__herd *d;
	uint32_t i, at;

	if (w->begin_ns <= w->ns || w->lost)
		return;
	if (w->begin_ns - w->ns >= tacho__kept_waiting_ns)
		for (i = 0; i < TACHO__HERDS_OPEN; i++)
			if (h->poll_ns[i])
				keep_other(&h->open[i], w);
	/* What a loop wakes at once is what its wait reported: load. */
	if (!w->at.kind)
		return;
	i = find(h, w);
	make_first(h, i < TACHO__HERDS_OPEN ? i : TACHO__HERDS_OPEN - 1);
	at = h->recent[0];
	if (i == TACHO__HERDS_OPEN) {
		close_herd(h, at, error);
		h->poll_ns[at] = w->at.poll_ns;
		h->open[at] = (struct tacho__herd){.process = w->at.process,
						   .thread = w->at.thread,
						   .waker = w->at.kind,
						   .woken = w->kind,
						   .from_ns = w->ns};
	}
	d = &h->open[at];
	d->tasks++;
	d->late += w->begin_ns - w->ns >= h->late_ns;
	d->to_ns = w->begin_ns > d->to_ns ? w->begin_ns : d->to_ns;
}

void tacho__herds_end(struct tacho__herding *h, int *error)
{
	for (uint32_t i = 0; i < TACHO__HERDS_OPEN; i++)
		close_herd(h, i, error);
}
