#include "write/columns_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "write/columns_cost.h"
#include "write/columns_list.h"
#include "write/columns_put.h"
#include "format/record.h"
#include "tacho_read.h"

#define WORD_COLUMNS (1 + TACHO_COLUMN_WORDS)

/* What the words of a record are, so that columns about the same things share a list. */
enum list_of { LIST_TASKS, LIST_LOCKS, LIST_SPANS, LIST_RESOURCES, LIST_COUNT, LIST_NONE };

struct values {
	uint64_t *v;	 /* the values */
	uint64_t *coded; /* what DICT would store for them, where it may be chosen */
	uint32_t count;
	uint8_t list;
};

struct type_values {
	uint8_t type;
	uint8_t variable; /* 1: the first word is made of words and data */
	uint8_t text;	  /* its words are no numbers */
	uint8_t mate;	  /* arg is the kind of the task in the first word: see MATE */
	uint32_t records;
	uint32_t rest_words;
	struct values next; /* what follows: places in follow */
	uint8_t follow[256];
	uint8_t follow_count;
	struct values time; /* until the next record */
	struct values arg, words, data;
	struct values new_mate, mates; /* arg as MATE */
	struct values w[WORD_COLUMNS];
};

struct list_choice {
	struct tacho__list list;
	uint32_t uses;
	uint8_t used;	/* its columns are DICT */
	uint8_t mated;	/* and their args MATE */
	uint8_t number; /* in the block */
};

struct tacho__encoder_scratch {
	uint64_t *values;
	size_t capacity, taken;
	uint64_t *part;	   /* of a column: as many values as there are records */
	uint8_t slot[256]; /* of a type in types, if it occurs */
	uint32_t type_count;
	struct type_values types[256];
	struct list_choice lists[LIST_COUNT];
};

static enum list_of list_for(unsigned role)
{
	switch (role) {
	case TACHO_ROLE_TASK:
		return LIST_TASKS;
	case TACHO_ROLE_LOCK:
		return LIST_LOCKS;
	case TACHO_ROLE_SPAN:
	case TACHO_ROLE_SPAN_OR_NONE:
		return LIST_SPANS;
	case TACHO_ROLE_RESOURCE:
		return LIST_RESOURCES;
	default:
		return LIST_NONE;
	}
}

/* What its columns hold. */
static void set_roles(struct type_values *t, int quick)
{
	const struct tacho_event_info *info = tacho_read_event_info(t->type);
	uint8_t kind = 0;

	for (unsigned k = 0; k < WORD_COLUMNS; k++)
		t->w[k].list = LIST_NONE;
	for (uint32_t i = 0; info && i < info->field_count; i++) {
		const struct tacho_event_field *f = &info->fields[i];

		if (!quick && f->word >= 0 && f->word < (int)WORD_COLUMNS && f->bits == 64)
			t->w[f->word].list = (uint8_t)list_for(f->role);
		t->text |= f->role == TACHO_ROLE_TEXT;
		kind |= f->role == TACHO_ROLE_KIND;
	}
	t->mate = kind && t->w[t->variable].list == LIST_TASKS &&
		  t->w[t->variable].count == t->records;
}

/* --------------------------------------------------------------- gathering */

static int check_records(const struct tacho__records *r)
{
	uint32_t count = r->head.count;

	if (count > TACHO_BLOCK_EVENTS_MAX || r->head.open_listed > TACHO_OPEN_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		unsigned type = r->type_arg[i] & 0xff;
		uint32_t at = r->word_at[i];
		uint32_t n = r->word_at[i + 1] - at;

		if (type == TACHO_REC_NONE || type == TACHO_REC_TIME ||
		    (i && r->ns[i] < r->ns[i - 1]) || n > TACHO_RECORD_MAX_WORDS)
			return -EINVAL;
		if (n != tacho_record_words(type, n ? r->words[at] : 0))
			return -EINVAL;
		if (TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE && !n)
			return -EINVAL;
	}
	return 0;
}

/* How many values each column will have. */
static void count_values(struct tacho__encoder_scratch *s, const struct tacho__records *r)
{
	uint32_t records[256] = {0};

	for (uint32_t i = 0; i < r->head.count; i++)
		records[r->type_arg[i] & 0xff]++;
	s->type_count = 0;
	for (unsigned t = 0; t < 256; t++) {
		if (!records[t])
			continue;
		s->slot[t] = (uint8_t)s->type_count;
		s->types[s->type_count++] = (struct type_values){
			.type = (uint8_t)t,
			.variable = TACHO_REC_CLASS(t) == TACHO_REC_CLASS_VARIABLE,
			.records = records[t],
		};
	}
	for (uint32_t i = 0; i < r->head.count; i++) {
		struct type_values *t = &s->types[s->slot[r->type_arg[i] & 0xff]];
		uint32_t n = r->word_at[i + 1] - r->word_at[i];
		uint32_t k = t->variable;

		for (; k < n && k < WORD_COLUMNS; k++)
			t->w[k].count++;
		t->rest_words += n - k;
	}
}

static void place(struct tacho__encoder_scratch *s, struct values *c, uint32_t count, int coded)
{
	c->count = 0;
	c->v = s->values + s->taken;
	s->taken += count;
	if (coded) {
		c->coded = s->values + s->taken;
		s->taken += count;
	}
}

static int scratch_room(struct tacho__encoder_scratch *s)
{
	size_t need = 1;

	for (uint32_t i = 0; i < s->type_count; i++) {
		/* part, next, time, arg as it is and in the two parts of MATE, words,
		   data; each word as it is and as DICT. */
		need += (size_t)s->types[i].records * 8;
		for (unsigned k = 0; k < WORD_COLUMNS; k++)
			need += (size_t)s->types[i].w[k].count * 2;
	}
	if (need <= s->capacity)
		return 0;
	free(s->values);
	s->values = malloc(need * sizeof(*s->values));
	s->capacity = s->values ? need : 0;
	return s->values ? 0 : -ENOMEM;
}

/* Gives each column its place in the scratch memory, and each list its room. */
static int place_columns(struct tacho__encoder_scratch *s, uint32_t count, int quick)
{
	if (scratch_room(s))
		return -ENOMEM;
	s->part = s->values;
	s->taken = count;
	for (unsigned i = 0; i < LIST_COUNT; i++)
		s->lists[i].uses = s->lists[i].used = s->lists[i].mated = 0;
	for (uint32_t i = 0; i < s->type_count; i++) {
		struct type_values *t = &s->types[i];

		set_roles(t, quick);
		place(s, &t->next, t->records, 0);
		place(s, &t->time, t->records, 0);
		place(s, &t->arg, t->records, 0);
		place(s, &t->new_mate, t->mate ? t->records : 0, 0);
		place(s, &t->mates, t->mate ? t->records : 0, 0);
		place(s, &t->words, t->variable ? t->records : 0, 0);
		place(s, &t->data, t->variable ? t->records : 0, 0);
		for (unsigned k = 0; k < WORD_COLUMNS; k++) {
			if (t->w[k].list != LIST_NONE)
				s->lists[t->w[k].list].uses += t->w[k].count;
			place(s, &t->w[k], t->w[k].count, t->w[k].list != LIST_NONE);
		}
	}
	for (unsigned i = 0; i < LIST_COUNT; i++) {
		struct list_choice *l = &s->lists[i];

		if (l->uses && tacho__list_reset(&l->list, l->uses))
			return -ENOMEM;
	}
	return 0;
}

static void gather_record(struct tacho__encoder_scratch *s, struct type_values *t, uint32_t arg,
			  const uint64_t *words, uint32_t n)
{
	uint32_t key = 0;

	if (t->variable) {
		t->words.v[t->words.count++] = n;
		t->data.v[t->data.count++] = words[0] >> 16;
	}
	for (uint32_t k = t->variable; k < n && k < WORD_COLUMNS; k++) {
		struct values *c = &t->w[k];
		uint32_t item;

		if (c->list != LIST_NONE) {
			c->coded[c->count] =
				tacho__list_use(&s->lists[c->list].list, words[k], &item);
			if (k == t->variable)
				key = item;
		}
		c->v[c->count++] = words[k];
	}
	if (t->mate) {
		int first;
		uint64_t code = tacho__list_mate(&s->lists[LIST_TASKS].list, key, arg, &first);
		struct values *c = first ? &t->new_mate : &t->mates;

		c->v[c->count++] = code;
	}
	t->arg.v[t->arg.count++] = arg;
}

/* A record of type t is followed by one of `type`, after `ns`. */
static void gather_next(struct type_values *t, uint8_t type, uint64_t ns)
{
	unsigned place = 0;

	while (place < t->follow_count && t->follow[place] != type)
		place++;
	if (place == t->follow_count)
		t->follow[t->follow_count++] = type;
	t->next.v[t->next.count++] = place;
	t->time.v[t->time.count++] = ns;
}

static void gather(struct tacho__encoder_scratch *s, const struct tacho__records *r)
{
	for (uint32_t i = 0; i < r->head.count; i++) {
		struct type_values *t = &s->types[s->slot[r->type_arg[i] & 0xff]];
		uint32_t at = r->word_at[i];

		gather_record(s, t, r->type_arg[i] >> 8, r->words + at, r->word_at[i + 1] - at);
		if (i + 1 < r->head.count)
			gather_next(t, (uint8_t)r->type_arg[i + 1], r->ns[i + 1] - r->ns[i]);
	}
}

/* ---------------------------------------------------------------- choosing */

static uint64_t cheaper(const uint64_t *v, uint32_t count)
{
	struct tacho__cost plain, delta;

	tacho__cost_simple(v, count, &plain, &delta);
	return plain.bits < delta.bits ? plain.bits : delta.bits;
}

static uint64_t as_stored(const uint64_t *v, uint32_t count)
{
	struct tacho__cost plain;

	tacho__cost_plain(v, count, &plain);
	return plain.bits;
}

/* Whether a list makes its columns smaller, and its mates their args. */
static void choose_list(struct tacho__encoder_scratch *s, unsigned which)
{
	struct list_choice *l = &s->lists[which];
	uint64_t apart = 0, args = 0, mates = 0;
	uint64_t together = 0;
	int doubtful = l->list.distinct > l->uses / 2; /* else there is no need to look closer */

	if (doubtful)
		together = cheaper(l->list.value, l->list.distinct);
	for (uint32_t i = 0; i < s->type_count; i++) {
		struct type_values *t = &s->types[i];

		for (unsigned k = 0; k < WORD_COLUMNS; k++) {
			if (doubtful && t->w[k].list == which && t->w[k].count) {
				apart += cheaper(t->w[k].v, t->w[k].count);
				together += as_stored(t->w[k].coded, t->w[k].count);
			}
		}
		if (t->mate && which == LIST_TASKS) {
			args += as_stored(t->arg.v, t->records);
			mates += as_stored(t->new_mate.v, t->new_mate.count);
			mates += as_stored(t->mates.v, t->mates.count);
		}
	}
	l->used = !doubtful || together < apart;
	l->mated = l->used && mates < args;
}

/* ----------------------------------------------------------------- columns */

static void put_head(struct tacho__encoder *e, const struct tacho__records *r)
{
	struct tacho_trace_events head = r->head;

	head.size = sizeof(head);
	head.reserved = 0;
	if (head.count) {
		head.first_ns = r->ns[0];
		head.last_ns = r->ns[head.count - 1];
	} else {
		head.last_ns = head.first_ns;
	}
	tacho__put_raw(e, &head, sizeof(head));
	tacho__put_raw(e, r->open, head.open_listed * sizeof(r->open[0]));
}

static void put_types(struct tacho__encoder *e, const struct tacho__records *r)
{
	struct tacho__encoder_scratch *s = e->scratch;
	uint32_t count = r->head.count;
	const uint8_t start[3] = {(uint8_t)s->type_count, (uint8_t)(count ? r->type_arg[0] : 0),
				  (uint8_t)(count ? r->type_arg[count - 1] : 0)};

	tacho__put_raw(e, start, sizeof(start));
	for (uint32_t i = 0; i < s->type_count; i++) {
		tacho__put_raw(e, &s->types[i].type, 1);
		tacho__put_raw(e, &s->types[i].records, 4);
	}
	for (uint32_t i = 0; i < s->type_count; i++) {
		struct type_values *t = &s->types[i];

		tacho__put_cut(e, 0);
		tacho__put_raw(e, &t->follow_count, 1);
		tacho__put_raw(e, t->follow, t->follow_count);
		tacho__put_column(e, TACHO_TRANSFORM_PLAIN, 0, t->next.v, t->next.count);
	}
}

static void put_times(struct tacho__encoder *e)
{
	struct tacho__encoder_scratch *s = e->scratch;

	for (uint32_t i = 0; i < s->type_count; i++) {
		struct type_values *t = &s->types[i];

		for (unsigned place = 0; place < t->follow_count; place++) {
			uint32_t count = 0;

			for (uint32_t k = 0; k < t->next.count; k++) {
				if (t->next.v[k] == place)
					s->part[count++] = t->time.v[k];
			}
			tacho__put_simple(e, s->part, count);
		}
	}
}

static void put_lists(struct tacho__encoder *e)
{
	struct tacho__encoder_scratch *s = e->scratch;
	uint8_t count = 0;

	for (unsigned i = 0; i < LIST_COUNT; i++) {
		if (s->lists[i].uses)
			choose_list(s, i);
		if (s->lists[i].used)
			s->lists[i].number = count++;
	}
	tacho__put_cut(e, 0);
	tacho__put_raw(e, &count, 1);
	for (unsigned i = 0; i < LIST_COUNT; i++) {
		struct tacho__list *l = &s->lists[i].list;

		if (!s->lists[i].used)
			continue;
		tacho__put_raw(e, &l->distinct, 4);
		tacho__put_simple(e, l->value, l->distinct);
	}
}

static void put_arg(struct tacho__encoder *e, struct type_values *t)
{
	const uint8_t head[2] = {TACHO_TRANSFORM_MATE, 0};

	if (!t->mate || !e->scratch->lists[LIST_TASKS].mated) {
		tacho__put_simple(e, t->arg.v, t->records);
		return;
	}
	tacho__put_cut(e, 0);
	tacho__put_raw(e, head, sizeof(head));
	tacho__put_raw(e, &t->new_mate.count, 4);
	tacho__put_simple(e, t->new_mate.v, t->new_mate.count);
	tacho__put_simple(e, t->mates.v, t->mates.count);
}

static void put_word_column(struct tacho__encoder *e, const struct type_values *t, struct values *c)
{
	if (t->text) {
		tacho__put_words_head(e, c->count);
		tacho__put_raw(e, c->v, (size_t)c->count * 8);
	} else if (c->list == LIST_NONE || !e->scratch->lists[c->list].used) {
		tacho__put_simple(e, c->v, c->count);
	} else {
		tacho__put_column(e, TACHO_TRANSFORM_DICT, e->scratch->lists[c->list].number,
				  c->coded, c->count);
	}
}

static void put_rest(struct tacho__encoder *e, const struct type_values *t,
		     const struct tacho__records *r)
{
	tacho__put_words_head(e, t->rest_words);
	for (uint32_t i = 0; t->rest_words && i < r->head.count; i++) {
		uint32_t at = r->word_at[i] + WORD_COLUMNS;

		if ((r->type_arg[i] & 0xff) == t->type && r->word_at[i + 1] > at)
			tacho__put_raw(e, r->words + at, (size_t)(r->word_at[i + 1] - at) * 8);
	}
}

static void put_type(struct tacho__encoder *e, struct type_values *t,
		     const struct tacho__records *r)
{
	unsigned end = t->variable ? WORD_COLUMNS : TACHO_REC_CLASS(t->type);

	put_arg(e, t);
	if (t->variable) {
		tacho__put_bytes(e, t->words.v, t->records);
		tacho__put_simple(e, t->data.v, t->records);
	}
	for (unsigned k = t->variable; k < end; k++)
		put_word_column(e, t, &t->w[k]);
	if (t->variable)
		put_rest(e, t, r);
}

int tacho__columns_encode(struct tacho__encoder *e, const struct tacho__records *r)
{
	int err = check_records(r);

	e->size = 0;
	e->cut_count = 0;
	e->error = 0;
	e->after_large = 0;
	if (err)
		return err;
	if (!e->scratch)
		e->scratch = calloc(1, sizeof(*e->scratch));
	if (!e->scratch)
		return -ENOMEM;
	count_values(e->scratch, r);
	err = place_columns(e->scratch, r->head.count, e->quick);
	if (err)
		return err;
	gather(e->scratch, r);
	put_head(e, r);
	put_types(e, r);
	put_times(e);
	put_lists(e);
	for (uint32_t i = 0; i < e->scratch->type_count; i++)
		put_type(e, &e->scratch->types[i], r);
	return e->error;
}

void tacho__encoder_free(struct tacho__encoder *e)
{
	for (unsigned i = 0; e->scratch && i < LIST_COUNT; i++)
		tacho__list_free(&e->scratch->lists[i].list);
	if (e->scratch)
		free(e->scratch->values);
	free(e->scratch);
	free(e->data);
	free(e->cuts);
	*e = (struct tacho__encoder){0};
}
