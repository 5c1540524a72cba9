#include "read/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/record.h"
#include "read/recency.h"

/* What is left of the payload. */
struct input {
	const uint8_t *at;
	size_t left;
};

struct column {
	const uint8_t *body;
	uint32_t count; /* of values: the distance between two planes */
	uint32_t next;
	uint64_t before; /* DELTA: the value before */
	uint8_t transform;
	uint8_t width; /* bytes, or 0 */
	uint8_t bits;  /* of a value, where it is less than a byte; else 0 */
	uint8_t list;
};

/* The columns of one type. w[0] is unused in variable types: that word is made of
   words and data. */
struct type_columns {
	uint8_t type;
	uint32_t records;
	uint32_t begun;	       /* records of this type that were built */
	const uint8_t *follow; /* types that follow */
	uint32_t follow_count;
	uint32_t time_at;   /* in times: that of the first of them */
	struct column next; /* which of them follows */
	struct column words, data;
	struct column arg; /* MATE: of items that have one already */
	struct column new_arg;
	uint8_t mated;
	struct column w[1 + TACHO_COLUMN_WORDS];
	struct column rest;
	uint8_t fixed; /* columns of w in use: fixed types 0..2, variable 1 + TACHO_COLUMN_WORDS */
	uint8_t key;   /* of the columns of w, the one whose list MATE looks at */
};

#define NO_MATE 0xffffffffu

struct list {
	struct column values; /* distinct ones */
	struct tacho__recency recency;
	uint32_t uses;	   /* by all columns together */
	uint32_t known;	   /* values that have appeared */
	uint32_t *item_at; /* by position */
	uint64_t *value;   /* by item */
	uint32_t *mate;	   /* by item: the argument that it had last, or NO_MATE */
};

struct decoder {
	struct input in;
	struct tacho__records *out;
	uint32_t words; /* payload words of all records */
	uint8_t first_type, last_type;
	uint8_t slot[256]; /* of a type in columns; beyond type_count: does not occur */
	struct type_columns *columns;
	uint32_t type_count;
	struct column *times; /* by type and what follows it */
	uint32_t time_count;
	uint32_t list_count;
	struct list lists[TACHO_COLUMN_LISTS];
};

static const uint8_t *take(struct input *in, size_t size)
{
	const uint8_t *at = in->at;

	if (size > in->left)
		return NULL;
	in->at += size;
	in->left -= size;
	return at;
}

static int take_u32(struct input *in, uint32_t *value)
{
	const uint8_t *p = take(in, 4);

	if (!p)
		return -EBADMSG;
	*value = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	return 0;
}

/* Finds the parts of a column of `count` values; `allowed` is a mask of transforms. */
static int take_column(struct input *in, struct column *c, uint32_t count, unsigned allowed)
{
	const uint8_t *p = take(in, 2);
	size_t size;

	if (!p || p[0] > TACHO_TRANSFORM_WORDS || !(allowed & (1u << p[0])))
		return -EBADMSG;
	*c = (struct column){.count = count, .transform = p[0]};
	if (p[1] & TACHO_COLUMN_BITS)
		c->bits = p[1] & 0x7f;
	else
		c->width = p[1];
	if (c->width > 8 ||
	    (p[1] & TACHO_COLUMN_BITS && c->bits != 1 && c->bits != 2 && c->bits != 4))
		return -EBADMSG;
	if (c->transform == TACHO_TRANSFORM_DICT) {
		p = take(in, 1);
		if (!p)
			return -EBADMSG;
		c->list = p[0];
	}
	if (c->transform == TACHO_TRANSFORM_WORDS && c->width != 8)
		return -EBADMSG;
	size = c->bits ? ((size_t)count * c->bits + 7) / 8 : (size_t)count * c->width;
	c->body = take(in, size);
	return c->body ? 0 : -EBADMSG;
}

static inline uint64_t next_stored(struct column *c)
{
	uint32_t i_th = c->next++;
	const uint8_t *p = c->body + i_th;
	uint64_t value = 0;

	if (c->bits) {
		size_t bit = (size_t)i_th * c->bits;

		return c->body[bit / 8] >> (bit % 8) & ((1u << c->bits) - 1);
	}
	for (unsigned i = 0; i < c->width; i++, p += c->count)
		value |= (uint64_t)*p << (8 * i);
	return value;
}

/* The next value of a column that needs no list. */
static inline uint64_t next_simple(struct column *c)
{
	uint64_t stored = next_stored(c);

	if (c->transform != TACHO_TRANSFORM_DELTA)
		return stored;
	c->before += (stored >> 1) ^ (0 - (stored & 1));
	return c->before;
}

/* The item of a list that a stored place means, which moves to the front. */
static int use_item(struct list *l, uint64_t stored, uint32_t *item)
{
	uint32_t position;

	if (stored == 0) {
		if (l->known == l->values.count)
			return -EBADMSG;
		*item = l->known++;
	} else {
		if (stored > l->recency.live)
			return -EBADMSG;
		position = tacho__recency_find(&l->recency, (uint32_t)(stored - 1));
		tacho__recency_take(&l->recency, position);
		*item = l->item_at[position];
	}
	l->item_at[tacho__recency_push(&l->recency)] = *item;
	return 0;
}

static int read_head(struct decoder *d)
{
	struct tacho_trace_events *h = &d->out->head;
	const uint8_t *p;
	uint32_t size;
	struct input peek = d->in;

	if (take_u32(&peek, &size) || size < sizeof(*h))
		return -EBADMSG;
	p = take(&d->in, size);
	if (!p)
		return -EBADMSG;
	memcpy(h, p, sizeof(*h));
	h->size = sizeof(*h);
	if (h->open_listed > TACHO_OPEN_MAX || h->count > TACHO_BLOCK_EVENTS_MAX ||
	    h->last_ns < h->first_ns)
		return -EBADMSG;
	memset(d->out->open, 0, sizeof(d->out->open));
	p = take(&d->in, h->open_listed * sizeof(struct tacho_open));
	if (!p)
		return -EBADMSG;
	if (h->open_listed)
		memcpy(d->out->open, p, h->open_listed * sizeof(struct tacho_open));
	h->name[sizeof(h->name) - 1] = 0;
	return 0;
}

/* Which types occur and how often, which gives all columns their lengths. */
static int read_type_table(struct decoder *d)
{
	const uint8_t *p = take(&d->in, 3);
	uint32_t all = 0;

	if (!p)
		return -EBADMSG;
	d->type_count = p[0];
	d->first_type = p[1];
	d->last_type = p[2];
	memset(d->slot, 0xff, sizeof(d->slot));
	d->columns = calloc(d->type_count + 1, sizeof(*d->columns));
	if (!d->columns)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->type_count; i++) {
		struct type_columns *t = &d->columns[i];

		p = take(&d->in, 1);
		if (!p || take_u32(&d->in, &t->records))
			return -EBADMSG;
		t->type = *p;
		if (t->type == TACHO_REC_NONE || t->type == TACHO_REC_TIME ||
		    (i && t->type <= d->columns[i - 1].type) || !t->records ||
		    t->records > d->out->head.count - all)
			return -EBADMSG;
		all += t->records;
		d->slot[t->type] = (uint8_t)i;
	}
	return all == d->out->head.count ? 0 : -EBADMSG;
}

static int read_types(struct decoder *d)
{
	int err = read_type_table(d);

	for (uint32_t i = 0; !err && i < d->type_count; i++) {
		struct type_columns *t = &d->columns[i];
		const uint8_t *p = take(&d->in, 1);

		if (!p)
			return -EBADMSG;
		t->follow_count = *p;
		t->follow = take(&d->in, t->follow_count);
		if (!t->follow)
			return -EBADMSG;
		t->time_at = d->time_count;
		d->time_count += t->follow_count;
		err = take_column(&d->in, &t->next, t->records - (t->type == d->last_type),
				  1u << TACHO_TRANSFORM_PLAIN);
	}
	return err;
}

static int read_times(struct decoder *d)
{
	const unsigned simple = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA;

	d->times = calloc((size_t)d->time_count + 1, sizeof(*d->times));
	if (!d->times)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->type_count; i++) {
		struct type_columns *t = &d->columns[i];
		struct column next = t->next;
		uint32_t count[256] = {0};

		while (next.next < next.count) {
			uint64_t follow = next_stored(&next);

			if (follow >= t->follow_count)
				return -EBADMSG;
			count[follow]++;
		}
		for (uint32_t k = 0; k < t->follow_count; k++) {
			if (take_column(&d->in, &d->times[t->time_at + k], count[k], simple))
				return -EBADMSG;
		}
	}
	return 0;
}

static int read_lists(struct decoder *d)
{
	const uint8_t *p = take(&d->in, 1);
	const unsigned allowed = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA;

	if (!p || *p > TACHO_COLUMN_LISTS)
		return -EBADMSG;
	d->list_count = *p;
	for (uint32_t i = 0; i < d->list_count; i++) {
		uint32_t distinct;

		/* Each value is used at least once, by a word of a record. */
		if (take_u32(&d->in, &distinct) ||
		    distinct > d->out->head.count * (1 + TACHO_COLUMN_WORDS) ||
		    take_column(&d->in, &d->lists[i].values, distinct, allowed))
			return -EBADMSG;
	}
	return 0;
}

static int take_word_column(struct decoder *d, struct column *c, uint32_t count)
{
	const unsigned allowed = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA |
				 1u << TACHO_TRANSFORM_DICT | 1u << TACHO_TRANSFORM_WORDS;

	if (take_column(&d->in, c, count, allowed))
		return -EBADMSG;
	if (c->transform == TACHO_TRANSFORM_DICT) {
		if (c->list >= d->list_count)
			return -EBADMSG;
		d->lists[c->list].uses += count;
	}
	return 0;
}

/* Columns of a variable type behind time and arg. */
static int read_variable(struct decoder *d, struct type_columns *t)
{
	const unsigned plain = 1u << TACHO_TRANSFORM_PLAIN;
	const unsigned simple = plain | 1u << TACHO_TRANSFORM_DELTA;
	uint32_t with[1 + TACHO_COLUMN_WORDS] = {0}; /* records that have word k */
	uint32_t rest = 0;

	if (take_column(&d->in, &t->words, t->records, plain) || t->words.width != 1 ||
	    take_column(&d->in, &t->data, t->records, simple))
		return -EBADMSG;
	for (uint32_t i = 0; i < t->records; i++) {
		uint32_t words = t->words.body[i];

		if (words == 0 || words > TACHO_RECORD_MAX_WORDS)
			return -EBADMSG;
		d->words += words;
		for (uint32_t k = 1; k <= TACHO_COLUMN_WORDS && k < words; k++)
			with[k]++;
		if (words > 1 + TACHO_COLUMN_WORDS)
			rest += words - 1 - TACHO_COLUMN_WORDS;
	}
	for (uint32_t k = 1; k <= TACHO_COLUMN_WORDS; k++) {
		if (take_word_column(d, &t->w[k], with[k]))
			return -EBADMSG;
	}
	t->fixed = 1 + TACHO_COLUMN_WORDS;
	t->key = 1;
	/* Eight bytes each in any case: no small payload makes a large array. */
	return take_column(&d->in, &t->rest, rest, 1u << TACHO_TRANSFORM_WORDS);
}

static int read_arg(struct decoder *d, struct type_columns *t)
{
	const unsigned simple = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA;
	uint32_t first;

	if (!d->in.left || d->in.at[0] != TACHO_TRANSFORM_MATE)
		return take_column(&d->in, &t->arg, t->records, simple);
	t->mated = 1;
	if (!take(&d->in, 2) || take_u32(&d->in, &first) || first > t->records ||
	    take_column(&d->in, &t->new_arg, first, simple))
		return -EBADMSG;
	return take_column(&d->in, &t->arg, t->records - first, simple);
}

static int read_columns(struct decoder *d, struct type_columns *t)
{
	unsigned class = TACHO_REC_CLASS(t->type);

	if (read_arg(d, t))
		return -EBADMSG;
	if (class == TACHO_REC_CLASS_VARIABLE) {
		if (read_variable(d, t))
			return -EBADMSG;
	} else {
		for (unsigned k = 0; k < class; k++) {
			if (take_word_column(d, &t->w[k], t->records))
				return -EBADMSG;
		}
		t->fixed = (uint8_t) class;
		d->words += class * t->records;
	}
	/* A mate is found by an item: every record must have one. */
	if (t->mated && (t->key >= t->fixed || t->w[t->key].transform != TACHO_TRANSFORM_DICT ||
			 t->w[t->key].count != t->records))
		return -EBADMSG;
	return 0;
}

/* The values themselves, once it is known how often each list is used. */
static int fill_lists(struct decoder *d)
{
	for (uint32_t i = 0; i < d->list_count; i++) {
		struct list *l = &d->lists[i];
		uint32_t distinct = l->values.count;

		if (distinct > l->uses)
			return -EBADMSG;
		l->item_at = malloc(((size_t)l->uses + 1) * sizeof(*l->item_at));
		l->value = malloc(((size_t)distinct + 1) * sizeof(*l->value));
		l->mate = malloc(((size_t)distinct + 1) * sizeof(*l->mate));
		if (!l->item_at || !l->value || !l->mate ||
		    tacho__recency_reset(&l->recency, l->uses))
			return -ENOMEM;
		for (uint32_t k = 0; k < distinct; k++) {
			l->value[k] = next_simple(&l->values);
			l->mate[k] = NO_MATE;
		}
	}
	return 0;
}

/* One word of a record; *item is set when it comes from a list. */
static inline int next_word(struct decoder *d, struct column *c, uint64_t *word, uint32_t *item)
{
	struct list *l;

	switch (c->transform) {
	case TACHO_TRANSFORM_DICT:
		l = &d->lists[c->list];
		if (use_item(l, next_stored(c), item))
			return -EBADMSG;
		*word = l->value[*item];
		return 0;
	case TACHO_TRANSFORM_WORDS:
		memcpy(word, c->body + 8 * (size_t)c->next++, 8);
		return 0;
	default:
		*word = next_simple(c);
		return 0;
	}
}

static int next_arg(struct decoder *d, struct type_columns *t, uint32_t item, uint32_t *arg)
{
	uint32_t *mate = t->mated ? &d->lists[t->w[t->key].list].mate[item] : NULL;
	struct column *c = mate && *mate == NO_MATE ? &t->new_arg : &t->arg;
	uint64_t value;

	if (c->next == c->count)
		return -EBADMSG;
	value = next_simple(c);
	if (mate && c == &t->arg)
		value = value ? value - 1 : *mate;
	if (value > TACHO_ARG_MAX)
		return -EBADMSG;
	*arg = (uint32_t)value;
	if (mate)
		*mate = *arg;
	return 0;
}

/* The payload words of a record into `words`; *item is that of the key column. */
static int next_words(struct decoder *d, struct type_columns *t, uint64_t *words, uint32_t n,
		      uint32_t *item)
{
	uint32_t first = 0;
	uint32_t k;

	if (t->words.count) {
		words[0] = n | next_simple(&t->data) << 16;
		first = 1;
	}
	for (k = first; k < n && k < t->fixed; k++) {
		uint32_t this_item = 0;

		if (next_word(d, &t->w[k], &words[k], &this_item))
			return -EBADMSG;
		if (k == t->key)
			*item = this_item;
	}
	for (; k < n; k++)
		memcpy(&words[k], t->rest.body + 8 * (size_t)t->rest.next++, 8);
	return 0;
}

static int build_record(struct decoder *d, struct type_columns *t, uint32_t i)
{
	struct tacho__records *out = d->out;
	uint32_t at = out->word_at[i];
	uint32_t n = TACHO_REC_CLASS(t->type);
	uint32_t item = 0, arg;

	if (t->words.count)
		n = t->words.body[t->words.next++];
	if (next_words(d, t, &out->words[at], n, &item) || next_arg(d, t, item, &arg))
		return -EBADMSG;
	out->type_arg[i] = tacho_record_head(t->type, arg);
	out->word_at[i + 1] = at + n;
	return 0;
}

/* From a record of type *type at *ns to the next. */
static int step(struct decoder *d, struct type_columns *t, uint8_t *type, uint64_t *ns)
{
	uint64_t follow, passed;

	if (t->next.next == t->next.count)
		return -EBADMSG;
	follow = next_stored(&t->next); /* below follow_count: see read_times */
	passed = next_simple(&d->times[t->time_at + follow]);
	if (passed > d->out->head.last_ns - *ns)
		return -EBADMSG;
	*ns += passed;
	*type = t->follow[follow];
	return 0;
}

static int build(struct decoder *d)
{
	struct tacho__records *out = d->out;
	uint32_t count = out->head.count;
	uint64_t ns = out->head.first_ns;
	uint8_t type = d->first_type;

	if (tacho__records_reserve(out, count, d->words))
		return -ENOMEM;
	out->word_at[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct type_columns *t = &d->columns[d->slot[type]];

		/* Columns have as many values as the type has records: none is read
		   beyond its end. */
		if (d->slot[type] >= d->type_count || t->begun++ == t->records ||
		    build_record(d, t, i))
			return -EBADMSG;
		out->ns[i] = ns;
		if (i + 1 < count && step(d, t, &type, &ns))
			return -EBADMSG;
	}
	return ns == out->head.last_ns || !count ? 0 : -EBADMSG;
}

static int decode(struct decoder *d)
{
	int err = read_head(d);

	if (err)
		return err;
	err = read_types(d);
	if (err)
		return err;
	err = read_times(d);
	if (!err)
		err = read_lists(d);
	for (uint32_t i = 0; !err && i < d->type_count; i++)
		err = read_columns(d, &d->columns[i]);
	if (!err && d->in.left)
		err = -EBADMSG;
	if (!err)
		err = fill_lists(d);
	return err ? err : build(d);
}

int tacho__columns_decode(const uint8_t *data, size_t size, struct tacho__records *out)
{
	struct decoder d = {.in = {data, size}, .out = out};
	int err = decode(&d);

	for (uint32_t i = 0; i < d.list_count; i++) {
		tacho__recency_free(&d.lists[i].recency);
		free(d.lists[i].item_at);
		free(d.lists[i].value);
		free(d.lists[i].mate);
	}
	free(d.times);
	free(d.columns);
	if (err)
		out->head.count = 0;
	return err;
}
