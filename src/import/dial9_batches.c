/*
 * Which thread a batch is of.
 *
 * A batch is what one thread recorded. Parks and unparks in it say which (tid, since 0.3.10), but a
 * worker that is busy all the time does not park, and one that moves to another thread
 * (block_in_place) may never have. Such a batch is of the thread that the worker was seen on, if
 * that has no batch of its own at this time, else of another, of which no more is known.
 */
#include "import/dial9_making.h"

/* Decodes a batch into `b` until it says its thread, or to its end. */
static void look_at(struct tacho__dial9 *d, struct tacho__dial9_batch *b)
{
	d->wire.at = b->at;
	d->look = b;
	if (tacho__dial9_batch(&d->wire, tacho__dial9_take_event, d) == TACHO__DIAL9_MEMORY)
		d->error = -ENOMEM;
	d->look = NULL;
}

static void remember(struct tacho__dial9 *d, const struct tacho__dial9_batch *b)
{
	struct tacho__dial9_worker *w = tacho__dial9_worker(d, b->worker);

	for (unsigned i = 0; w && i < TACHO__DIAL9_MOVES; i++)
		if (!w->on[i] || w->on[i] == b->thread) {
			w->on[i] = b->thread;
			return;
		}
}

/* All batches with workers in them. Returns how many of them do not say their thread. */
static uint32_t find_batches(struct tacho__dial9 *d)
{
	struct tacho__dial9_wire *w = &d->wire;
	uint32_t unsaid = 0;

	d->batch_count = 0;
	for (w->at = 0; (w->at = tacho__dial9_next(w)) < w->size && !d->error; w->at++) {
		struct tacho__dial9_batch b = {.at = w->at}, *to;

		look_at(d, &b);
		w->at = b.at;
		if (!b.events)
			continue;
		if (b.tid) {
			d->has_tids = 1;
			b.thread = tacho__dial9_thread(d, b.tid);
		}
		if (b.thread)
			remember(d, &b);
		else
			unsaid++;
		to = TACHO__DIAL9_ROOM(d, batches, batch_count, batch_capacity);
		if (to)
			*to = b;
	}
	return unsaid;
}

static int by_time(const void *a, const void *b)
{
	const struct tacho__dial9_batch *x = a, *y = b;

	return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

/* A thread that the worker was on and that recorded nothing else meanwhile; or a new one. */
static uint32_t free_thread(struct tacho__dial9 *d, const struct tacho__dial9_batch *b)
{
	const struct tacho__dial9_worker *w = tacho__dial9_worker(d, b->worker);

	for (unsigned i = 0; w && i < TACHO__DIAL9_MOVES && w->on[i]; i++) {
		const struct tacho__dial9_thread *t = &d->threads[w->on[i] - 1];

		if (t->busy_until_ns <= b->first_ns && t->next_ns >= b->last_ns)
			return w->on[i];
	}
	return tacho__dial9_thread(d, 0);
}

/* Sets, for each batch and at first for each thread, when the next batch of its thread begins. */
static void find_next(struct tacho__dial9 *d)
{
	for (uint32_t i = 0; i < d->thread_count; i++)
		d->threads[i].next_ns = UINT64_MAX;
	for (uint32_t i = d->batch_count; i--;) {
		struct tacho__dial9_batch *b = &d->batches[i];

		if (!b->thread)
			continue;
		b->next_ns = d->threads[b->thread - 1].next_ns;
		d->threads[b->thread - 1].next_ns = b->first_ns;
	}
}

/* Gives those that do not say their thread one, in the order of time. */
static void assign(struct tacho__dial9 *d)
{
	for (uint32_t i = 0; i < d->batch_count && !d->error; i++) {
		struct tacho__dial9_batch *b = &d->batches[i];

		if (!b->tid || b->whole)
			continue;
		b->whole = 1;
		look_at(d, b);
	}
	TACHO__SORT(d->batches, d->batch_count, by_time);
	find_next(d);
	for (uint32_t i = 0; i < d->batch_count && !d->error; i++) {
		struct tacho__dial9_batch *b = &d->batches[i];
		struct tacho__dial9_thread *t;

		if (!b->thread) {
			b->thread = free_thread(d, b);
			if (!b->thread)
				return;
			remember(d, b);
		} else {
			d->threads[b->thread - 1].next_ns = b->next_ns;
		}
		t = &d->threads[b->thread - 1];
		if (b->last_ns > t->busy_until_ns)
			t->busy_until_ns = b->last_ns;
	}
}

void tacho__dial9_look(struct tacho__dial9 *d)
{
	if (find_batches(d))
		assign(d);
	tacho__map_clear(&d->owners);
	for (uint32_t i = 0; i < d->batch_count && !d->error; i++)
		if (d->batches[i].thread &&
		    tacho__map_put(&d->owners, d->batches[i].at, d->batches[i].thread))
			d->error = -ENOMEM;
}
