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

/* Divides stretch `i` of a thread, after which comes `next` (0: none), at `ns`. The number of the later part;
   0: no room. */
static uint32_t divide(struct tacho__ledger_book *b, uint32_t line, uint32_t i, uint32_t next,
		       uint64_t ns)
{
	struct tacho__diary *d = b->diary;
	struct tacho__passage *later = add(b);

	if (!later)
		return 0;
	*later = d->at[i - 1];
	later->from = d->at[i - 1].to = ns;
	later->before = i;
	*(next ? &d->at[next - 1].before : &d->last[line]) = d->count;
	return d->count;
}

/* Of what `from` has, the newest before `until`, so much is of `to`. If there is less, the newest of all. */
void tacho__book_rewrite(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
			 uint64_t until)
{
	struct tacho__diary *d = b->diary;
	uint32_t line = tacho__owned_at(b->l, from)->thread;
	uint32_t i = line < d->last_count ? d->last[line] : 0, next = 0;

	for (; i && ns; next = i, i = d->at[i - 1].before) {
		uint32_t part = i;

		if (d->at[i - 1].owned != from || d->at[i - 1].from >= until)
			continue;
		if (d->at[i - 1].to > until && !(next = divide(b, line, i, next, until)))
			return;
		if (d->at[i - 1].to - d->at[i - 1].from > ns &&
		    !(part = divide(b, line, i, next, d->at[i - 1].to - ns)))
			return;
		d->at[part - 1].owned = to;
		ns -= d->at[part - 1].to - d->at[part - 1].from;
	}
	if (ns && until != UINT64_MAX)
		tacho__book_rewrite(b, from, to, ns, UINT64_MAX);
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
