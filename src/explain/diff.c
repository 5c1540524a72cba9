#include "explain/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/diff_names.h"
#include "explain/diff_test.h"
#include "model/judgement.h"
#include "model/model.h"
#include "model/table.h"
#include "read/memory.h"

#define ROWS_MAX 4096u
#define IDS_MAX 65536u
#define NO_ROW UINT32_MAX

/* Which row an id of a trace stands for. */
struct known {
	struct tacho__entry entry; /* key: process << 32 | id, is_span */
	uint32_t row;		   /* index + 1; NO_ROW: there was no room */
};

struct reading {
	struct tacho__diff *diff;
	const struct tacho__diff_names *names;
	struct tacho__table ids;
	uint64_t first_ns, block_ns;
	uint64_t polls, lot;
	uint32_t side; /* 0: a, 1: b */
	int error;
};

/* ------------------------------------------------------------------- reading */

static struct tacho__diff_row *row_named(struct reading *r, const char *name, int is_span,
					 uint32_t *index)
{
	struct tacho__diff *d = r->diff;

	for (*index = 0; *index < d->count; ++*index)
		if (d->rows[*index].is_span == is_span && strcmp(d->rows[*index].name, name) == 0)
			return &d->rows[*index];
	if (d->count == ROWS_MAX) {
		d->missed++;
		return NULL;
	}
	if (TACHO__GROW(d->rows, d->capacity, d->count + 1)) {
		r->error = -ENOMEM;
		return NULL;
	}
	memset(&d->rows[d->count], 0, sizeof(d->rows[0]));
	memcpy(d->rows[d->count].name, name, TACHO__DIFF_NAME);
	d->rows[d->count].is_span = is_span;
	return &d->rows[d->count++];
}

static struct tacho__diff_side *side_of(struct reading *r, uint32_t process, uint32_t id,
					int is_span)
{
	struct known *k = tacho__table_get(&r->ids, (uint64_t)process << 32 | id, (uint64_t)is_span,
					   &r->error);
	char name[TACHO__DIFF_NAME];

	if (!k || k->row == NO_ROW)
		return NULL;
	if (!k->row) {
		tacho__diff_name(r->names, r->side, process, id, name);
		if (!row_named(r, name, is_span, &k->row)) {
			k->row = NO_ROW;
			return NULL;
		}
		k->row++;
	}
	return r->side ? &r->diff->rows[k->row - 1].b : &r->diff->rows[k->row - 1].a;
}

/* Of all values each is kept with the same probability; the same trace gives the same ones. */
static void draw(struct reading *r, struct tacho__diff_block *b, float ns)
{
	uint64_t at = b->count;

	if (at >= TACHO__DIFF_VALUES) {
		r->lot = r->lot * 6364136223846793005u + 1442695040888963407u;
		at = (r->lot >> 33) % (at + 1);
	}
	if (at < TACHO__DIFF_VALUES)
		b->ns[at] = ns;
	if (b->count != UINT32_MAX)
		b->count++;
}

static void put(struct reading *r, struct tacho__diff_side *s, uint64_t at, uint64_t ns)
{
	uint64_t block = at > r->first_ns ? (at - r->first_ns) / r->block_ns : 0;

	if (!s->blocks)
		s->blocks = calloc(TACHO__DIFF_BLOCKS, sizeof(*s->blocks));
	if (!s->blocks || tacho__hist_add(&s->ns, ns)) {
		r->error = -ENOMEM;
		return;
	}
	if (block >= TACHO__DIFF_BLOCKS)
		block = TACHO__DIFF_BLOCKS - 1;
	draw(r, &s->blocks[block], (float)ns);
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct reading *r = arg;
	uint64_t ns = p->end_ns - p->begin_ns, others = p->inner_ns + p->spent.delay_ns;
	struct tacho__diff_side *s;

	if (p->cut)
		return;
	r->polls++;
	s = side_of(r, p->at.process, p->kind, 0);
	if (s)
		put(r, s, p->begin_ns, ns > others ? ns - others : 0);
}

static void on_span(void *arg, const struct tacho__span *p)
{
	struct reading *r = arg;
	struct tacho__diff_side *s;

	if (p->cut)
		return;
	s = side_of(r, p->at.process, p->name, 1);
	if (s)
		put(r, s, p->begin_ns, p->end_ns - p->begin_ns);
}

static int read_side(struct tacho__diff *d, const struct tacho__diff_names *names, uint32_t side)
{
	struct reading r = {.diff = d, .names = names, .side = side};
	const struct tacho__facts facts = {
		.arg = &r, .error = &r.error, .poll = on_poll, .span = on_span};
	struct tacho_reader *reader = names->reader[side];
	uint64_t last_ns = 0, ns;

	tacho__table_init(&r.ids, sizeof(struct known), IDS_MAX);
	if (tacho_read_window(reader, &r.first_ns, &last_ns) < 0)
		r.first_ns = last_ns = 0;
	ns = last_ns - r.first_ns;
	r.block_ns = ns / TACHO__DIFF_BLOCKS + 1;
	r.error = tacho__model_run(reader, &facts, NULL, NULL, NULL);
	d->missed += r.ids.missed;
	tacho__table_free(&r.ids);
	for (uint32_t i = 0; i < d->count && ns; i++) {
		struct tacho__diff_side *s = side ? &d->rows[i].b : &d->rows[i].a;

		s->per_second = (double)s->ns.count * 1e9 / (double)ns;
	}
	*(side ? &d->b_ns : &d->a_ns) = ns;
	*(side ? &d->b_count : &d->a_count) = r.polls;
	return r.error;
}

/* ------------------------------------------------------------------ comparing */

static double block_at(const struct tacho__diff_block *b, double share)
{
	double values[TACHO__DIFF_VALUES];
	uint32_t n = b->count < TACHO__DIFF_VALUES ? b->count : TACHO__DIFF_VALUES;

	for (uint32_t i = 0; i < n; i++)
		values[i] = (double)b->ns[i];
	return tacho__quantile(values, n, share);
}

/* What lies at `share` of each block, in order; returns how many blocks have enough. */
static uint32_t blocks_at(const struct tacho__diff_side *s, double share, double *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; s->blocks && i < TACHO__DIFF_BLOCKS; i++)
		if (s->blocks[i].count >= tacho__diff_values)
			out[n++] = block_at(&s->blocks[i], share);
	return n;
}

static int enough(const struct tacho__diff_row *r)
{
	return r->change == TACHO__CHANGE_NONE && r->ratio > 0;
}

/* What can be said without the others. */
static void look_at(struct tacho__diff_row *r, double level)
{
	double values[TACHO__DIFF_BLOCKS];
	uint32_t n = blocks_at(&r->a, 0.5, values), m;

	r->a.median = tacho__quantile(values, n, 0.5);
	m = blocks_at(&r->b, 0.5, values);
	r->b.median = tacho__quantile(values, m, 0.5);
	r->chance = 1;
	r->ratio = r->a.median > 0 && r->b.median > 0 ? r->b.median / r->a.median : 0;
	if (!r->a.ns.count || !r->b.ns.count)
		r->change = r->a.ns.count ? TACHO__CHANGE_GONE : TACHO__CHANGE_NEW;
	else if (tacho__mann_whitney_least(n, m) > level)
		r->change = TACHO__CHANGE_TOO_FEW;
}

static double common_of(const struct tacho__diff *d)
{
	double *ratios = malloc((d->count + 1) * sizeof(*ratios)), factor = 1;
	uint32_t n = 0;

	for (uint32_t i = 0; ratios && i < d->count; i++)
		/* What is as short as the floor changes for reasons of its own. */
		if (enough(&d->rows[i]) &&
		    d->rows[i].a.median >= tacho__diff_floor_times * (double)tacho__diff_floor_ns)
			ratios[n++] = d->rows[i].ratio;
	if (n >= tacho__diff_rows)
		factor = tacho__common_factor(ratios, n);
	free(ratios);
	return factor;
}

/* Sorts the values. */
static double spread_of(double *values, uint32_t n)
{
	double median = tacho__quantile(values, n, 0.5);

	return median > 0 ? (values[n - 1 - n / 4] - values[n / 4]) / median : 0;
}

/* 1 slower, -1 faster, 0 neither, by the quantile `share` of each block; *chance: that it is chance. */
static int changed_at(const struct tacho__diff *d, const struct tacho__diff_row *r, double share,
		      double least, double level, double *chance)
{
	double a[TACHO__DIFF_BLOCKS], b[TACHO__DIFF_BLOCKS], spread_a, spread_b, from, to;
	uint32_t n = blocks_at(&r->a, share, a), m = blocks_at(&r->b, share, b);

	for (uint32_t i = 0; i < m; i++)
		b[i] /= d->common;
	*chance = tacho__mann_whitney(a, n, b, m);
	spread_a = spread_of(a, n);
	spread_b = spread_of(b, m);
	from = tacho__quantile(a, n, 0.5);
	to = tacho__quantile(b, m, 0.5);
	if (!(from > 0) || !(to > 0) || *chance > level || fabs(to / from - 1) < least ||
	    fabs(to - from) < (double)tacho__diff_floor_ns ||
	    fabs(log(to / from)) <
		    tacho__diff_spreads * (spread_a > spread_b ? spread_a : spread_b))
		return 0;
	return to > from ? 1 : -1;
}

static void judge(struct tacho__diff *d, struct tacho__diff_row *r, double least, double level)
{
	double quartile;
	int way = changed_at(d, r, 0.5, least, level, &r->chance);

	if (!way || changed_at(d, r, 0.25, least, level, &quartile) != way)
		return;
	r->change = way > 0 ? TACHO__CHANGE_SLOWER : TACHO__CHANGE_FASTER;
	d->changed++;
}

static double weight(const struct tacho__diff_row *r)
{
	int changed = r->change == TACHO__CHANGE_SLOWER || r->change == TACHO__CHANGE_FASTER;
	double a = (double)r->a.ns.sum, b = (double)r->b.ns.sum;

	return (changed ? 1e20 : 0) + (a > b ? a : b);
}

static int by_weight(const void *a, const void *b)
{
	double x = weight(a), y = weight(b);

	if (x != y)
		return x < y ? 1 : -1;
	return strcmp(((const struct tacho__diff_row *)a)->name,
		      ((const struct tacho__diff_row *)b)->name);
}

static void compare(struct tacho__diff *d, const struct tacho__diff_options *options)
{
	double least = options && options->least > 0 ? options->least : tacho__diff_least;
	double level = options && options->chance > 0 ? options->chance : tacho__diff_chance;
	uint32_t both = 0;

	for (uint32_t i = 0; i < d->count; i++)
		both += d->rows[i].a.ns.count && d->rows[i].b.ns.count;
	if (both)
		level /= both;
	for (uint32_t i = 0; i < d->count; i++)
		look_at(&d->rows[i], level);
	d->common = options && options->absolute ? 1 : common_of(d);
	for (uint32_t i = 0; i < d->count; i++)
		if (enough(&d->rows[i])) {
			d->compared++;
			judge(d, &d->rows[i], least, level);
		}
	TACHO__SORT(d->rows, d->count, by_weight);
}

struct tacho__diff *tacho__diff_make(struct tacho_reader *a, struct tacho_reader *b,
				     const struct tacho__diff_options *options, int *error)
{
	struct tacho__diff *d = calloc(1, sizeof(*d));
	struct tacho__diff_names names = {.reader = {a, b}};

	*error = d ? tacho__diff_names_make(&names) : -ENOMEM;
	for (uint32_t side = 0; side < 2 && !*error; side++)
		*error = read_side(d, &names, side);
	tacho__diff_names_free(&names);
	if (*error) {
		tacho__diff_free(d);
		return NULL;
	}
	compare(d, options);
	return d;
}

static void side_free(struct tacho__diff_side *s)
{
	tacho__hist_free(&s->ns);
	free(s->blocks);
}

void tacho__diff_free(struct tacho__diff *d)
{
	if (!d)
		return;
	for (uint32_t i = 0; i < d->count; i++) {
		side_free(&d->rows[i].a);
		side_free(&d->rows[i].b);
	}
	free(d->rows);
	free(d);
}

const char *tacho__change_name(enum tacho__change change)
{
	static const char *const names[] = {"none", "slower", "faster", "new", "gone", "too-few"};

	return names[change];
}
