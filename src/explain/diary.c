#include "explain/diary.h"

#include <errno.h>
#include <stdlib.h>

#include "explain/ledger_book.h"
#include "read/memory.h"

#define STRETCHES (1u << 22)

void tacho__diary_keep(struct tacho__ledger *l, struct tacho__diary *d)
{
	l->book->diary = d;
}

void tacho__diary_free(struct tacho__diary *d)
{
	free(d->at);
	free(d->last);
	free(d->samples);
}

/* ------------------------------------------------------------------ while it is kept */

static int is_of(const struct tacho__diary *d, const struct tacho__worker *w)
{
	return w->process == d->process && (!d->thread || w->number == d->thread);
}

static struct tacho__passage *add(struct tacho__ledger_book *b)
{
	struct tacho__diary *d = b->diary;

	if (d->count == (d->most ? d->most : STRETCHES) ||
	    TACHO__GROW(d->at, d->capacity, d->count + 1)) {
		b->error = -ENOMEM;
		return NULL;
	}
	return &d->at[d->count++];
}

static uint32_t *last_of(struct tacho__ledger_book *b, uint32_t line)
{
	struct tacho__diary *d = b->diary;

	while (d->last_count <= line) {
		if (TACHO__GROW(d->last, d->last_capacity, d->last_count + 1)) {
			b->error = -ENOMEM;
			return NULL;
		}
		d->last[d->last_count++] = 0;
	}
	return &d->last[line];
}

void tacho__book_write(struct tacho__ledger_book *b, const struct tacho__worker *w, uint32_t owned,
		       uint64_t to)
{
	const struct tacho__paid *p = &w->open[w->depth];
	struct tacho__diary *d = b->diary;
	struct tacho__passage *s;
	uint32_t *last;

	if (!is_of(d, w) || to <= d->from_ns)
		return;
	last = last_of(b, w->thread);
	s = last ? add(b) : NULL;
	if (!s)
		return;
	*s = d->with;
	s->from = w->at;
	s->to = to;
	s->thread = w->number;
	s->line = w->thread;
	s->owned = owned;
	s->kind = p->kind;
	s->poll_ns = w->depth ? p->begin_ns : 0;
	s->before = *last;
	*last = d->count;
}

/* Of the newest that `from` has, so much is of `to`. */
void tacho__book_rewrite(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns)
{
	struct tacho__diary *d = b->diary;
	uint32_t line = tacho__owned_at(b->l, from)->thread;
	uint32_t i = line < d->last_count ? d->last[line] : 0, next = 0;

	for (; i && ns; next = i, i = d->at[i - 1].before) {
		struct tacho__passage *s = &d->at[i - 1], *rest;
		uint64_t length = s->to - s->from;

		if (s->owned != from)
			continue;
		if (length > ns) {
			rest = add(b);
			if (!rest)
				return;
			s = &d->at[i - 1];
			*rest = *s;
			rest->from = s->to = s->to - ns;
			rest->before = i;
			*(next ? &d->at[next - 1].before : &d->last[line]) = d->count;
			s = rest;
			length = ns;
		}
		s->owned = to;
		ns -= length;
	}
}

void tacho__book_write_sample(struct tacho__ledger_book *b, const struct tacho__worker *w,
			      const struct tacho__recent_sample *sample)
{
	struct tacho__diary *d = b->diary;

	if (!is_of(d, w) || sample->at <= d->from_ns)
		return;
	if (d->sample_count == STRETCHES ||
	    TACHO__GROW(d->samples, d->sample_capacity, d->sample_count + 1)) {
		b->error = -ENOMEM;
		return;
	}
	d->samples[d->sample_count++] = (struct tacho__diary_sample){
		sample->at, w->number, sample->owned, sample->function};
}

/* ------------------------------------------------------------------- once it is full */

static int by_stretch(const void *a, const void *b)
{
	const struct tacho__passage *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static int by_sample(const void *a, const void *b)
{
	const struct tacho__diary_sample *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

void tacho__diary_close(struct tacho__diary *d)
{
	TACHO__SORT(d->at, d->count, by_stretch);
	TACHO__SORT(d->samples, d->sample_count, by_sample);
}

uint32_t tacho__diary_find(const struct tacho__diary *d, uint32_t thread, uint64_t ns)
{
	uint32_t low = 0, high = d->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct tacho__passage *s = &d->at[middle];

		if (s->thread < thread || (s->thread == thread && s->to <= ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->count && d->at[low].thread == thread ? low : d->count;
}
