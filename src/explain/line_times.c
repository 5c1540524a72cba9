#include "explain/line_times.h"

#include <errno.h>
#include <stdlib.h>

#include "explain/diary.h"
#include "explain/ledger_book.h"
#include "read/memory.h"
#include "read/records.h"

#define STRETCHES (1u << 20) /* of a piece of the trace */
#define PIECES (1u << 12)
#define AROUND_NS UINT64_C(100000000) /* of what was before a piece, and is recorded after it */
#define OF_THREAD ((UINT64_C(1) << 36) - 1) /* of the first key of an owner: all but the thread */

/* What a line is known by in every ledger of the same trace. */
struct sought {
	uint32_t process, thread;
	uint64_t key[2], function; /* function 0: of the owner itself */
	int is_rest;
	struct tacho__line_times *out;
};

static int by_length(const void *a, const void *b)
{
	const struct tacho__line_time *x = a, *y = b;
	uint64_t p = x->to_ns - x->from_ns, q = y->to_ns - y->from_ns;

	if (p != q)
		return p < q ? 1 : -1;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct tacho__line_time *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static void keep_longest(struct tacho__line_times *t)
{
	TACHO__SORT(t->at, t->count, by_length);
	t->count = t->count < t->most ? t->count : t->most;
}

static int add(struct tacho__line_times *t, uint64_t from, uint64_t to)
{
	if (to <= from)
		return 0;
	t->all++;
	t->all_ns += to - from;
	if (t->count >= 2 * t->most)
		keep_longest(t);
	if (TACHO__GROW(t->at, t->capacity, t->count + 1))
		return -ENOMEM;
	t->at[t->count++] = (struct tacho__line_time){from, to};
	return 0;
}

static int is_sought(const struct sought *s, const struct tacho__ledger *l,
		     const struct tacho__passage *p)
{
	const struct tacho__owned *o;

	if (p->owned == TACHO__NONE)
		return s->is_rest;
	o = tacho__owned_at(l, p->owned);
	return !s->is_rest && (o->entry.key[0] & OF_THREAD) == s->key[0] &&
	       o->entry.key[1] == s->key[1];
}

/* The part of a stretch in which the function was sampled. *at: of the samples, which are read on. */
static int add_sampled(const struct sought *s, const struct tacho__ledger *l,
		       const struct tacho__diary *d, uint32_t owned, uint64_t from, uint64_t to,
		       uint32_t *at)
{
	const struct tacho__diary_sample *before = NULL;
	uint64_t begin = from;
	int error = 0, was = 0;

	for (; *at < d->sample_count && d->samples[*at].ns <= to && !error; ++*at) {
		const struct tacho__diary_sample *now = &d->samples[*at];
		const struct tacho__function *f;
		int is;

		if (now->ns <= from || now->owned != owned)
			continue;
		f = tacho__table_at(&l->functions, now->function);
		is = f && f->entry.key[1] == s->function;
		if (before && is != was) {
			uint64_t half = before->ns + (now->ns - before->ns) / 2;

			if (was)
				error = add(s->out, begin, half);
			begin = half;
		}
		was = is;
		before = now;
	}
	return was && !error ? add(s->out, begin, to) : error;
}

static int look(const struct sought *s, const struct tacho__ledger *l, const struct tacho__diary *d,
		uint64_t from_ns, uint64_t to_ns)
{
	uint32_t samples = 0;
	int error = 0;

	for (uint32_t i = 0; i < d->count && !error; i++) {
		const struct tacho__passage *p = &d->at[i];
		uint64_t from = p->from > from_ns ? p->from : from_ns, to;

		if (!is_sought(s, l, p))
			continue;
		while (i + 1 < d->count && d->at[i + 1].from == d->at[i].to &&
		       d->at[i + 1].owned == p->owned && d->at[i + 1].poll_ns == p->poll_ns)
			i++;
		to = d->at[i].to < to_ns ? d->at[i].to : to_ns;
		if (s->function)
			error = add_sampled(s, l, d, p->owned, from, to, &samples);
		else
			error = add(s->out, from, to);
	}
	return error;
}

/* What lies between these, as read with more around it. -EFBIG: that is too much at once. */
static int look_between(const struct sought *s, struct tacho_reader *reader, uint64_t from_ns,
			uint64_t to_ns)
{
	struct tacho__diary diary = {.process = s->process,
				     .thread = s->thread,
				     .from_ns = from_ns ? from_ns - 1 : 0,
				     .most = STRETCHES};
	struct tacho__ledger *l;
	struct tacho__facts facts;
	int error;

	tacho__read_only(reader, s->process);
	l = tacho__ledger_new(reader);
	if (!l)
		return -ENOMEM;
	tacho__diary_keep(l, &diary);
	facts = tacho__ledger_facts(l);
	error = tacho__model_run(reader, &facts, NULL, NULL, NULL);
	if (!error)
		error = tacho__ledger_turn_page(l);
	if (diary.count == STRETCHES)
		error = -EFBIG;
	tacho__diary_close(&diary);
	if (!error)
		error = look(s, l, &diary, from_ns, to_ns);
	tacho__diary_free(&diary);
	tacho__ledger_free(l);
	return error;
}

/* Most traces are read at once, which is exact: at the edges of pieces something is cut. */
static int look_in_pieces(const struct sought *s, struct tacho_reader *reader, uint64_t first,
			  uint64_t last, uint32_t pieces)
{
	uint64_t each = (last - first) / pieces, from = first;
	int error = 0;

	s->out->count = 0;
	s->out->all = s->out->all_ns = 0;
	for (uint32_t i = 0; i < pieces && !error; i++) {
		uint64_t to = i + 1 == pieces ? last : from + each;
		uint64_t before = from > AROUND_NS ? from - AROUND_NS : 0;

		error = pieces == 1 ? tacho__read_limit(reader, 0, 0)
				    : tacho__read_limit(reader, before, to + AROUND_NS);
		if (!error)
			error = look_between(s, reader, from, to);
		from = to;
	}
	return error;
}

/* Whether its function is one of several that its owner's time is shared out among. */
static int shares_owner(const struct tacho__ledger *l, const struct tacho__ledger_line *line)
{
	for (uint32_t i = 0; i < l->line_count; i++)
		if (l->lines[i].owned == line->owned && l->lines[i].function != line->function)
			return 1;
	return 0;
}

int tacho__line_times_make(struct tacho__line_times *out, struct tacho_reader *reader,
			   const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			   uint32_t most)
{
	const struct tacho__ledger_thread *t = &l->threads[line->thread];
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	const struct tacho__function *f =
		line->function && shares_owner(l, line)
			? tacho__table_at(&l->functions, line->function - 1)
			: NULL;
	struct sought s = {
		.process = t->process,
		.thread = t->thread,
		.key = {o->entry.key[0] & OF_THREAD, o->entry.key[1]},
		.function = f ? f->entry.key[1] : 0,
		.is_rest = !line->owned,
		.out = out,
	};
	int error = -EFBIG;

	*out = (struct tacho__line_times){.most = most};
	for (uint32_t pieces = 1; error == -EFBIG && pieces <= PIECES; pieces *= 8)
		error = look_in_pieces(&s, reader, t->first_ns, t->last_ns, pieces);
	keep_longest(out);
	TACHO__SORT(out->at, out->count, by_time);
	tacho__read_only(reader, UINT32_MAX);
	return error;
}

void tacho__line_times_free(struct tacho__line_times *t)
{
	free(t->at);
}
