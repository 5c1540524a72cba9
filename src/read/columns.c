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

/* A column as it stands in the payload. */
struct stored {
	const uint8_t *body;
	uint32_t count; /* of values: the distance between two planes */
	uint8_t transform;
	uint8_t width; /* bytes, or 0 */
	uint8_t bits;  /* of a value, where it is less than a byte; else 0 */
	uint8_t list;
};

/* The same taken apart: its values, of DICT the places in its list. */
struct column {
	const uint64_t *next, *end;
	uint8_t is_dict;
	uint8_t list;
};

/* The columns of one type. w[0] is unused in variable types: that word is made of
   words and data. */
struct type_columns {
	uint8_t type;
	uint32_t records;
	uint32_t begun; /* records of this type that were built */
	struct follow *follow;
	uint32_t follow_count;
	struct column next;   /* which of them follows */
	const uint8_t *words; /* of each record; NULL: not a variable type */
	struct column data;
	struct column arg; /* MATE: of items that have one already */
	struct column new_arg;
	uint8_t mated;
	struct column w[1 + TACHO_COLUMN_WORDS];
	const uint8_t *rest; /* what is left of it */
	uint8_t fixed; /* columns of w in use: fixed types 0..2, variable 1 + TACHO_COLUMN_WORDS */
	uint8_t key;   /* of the columns of w, the one whose list MATE looks at */
};

/* A type that follows another. */
struct follow {
	struct type_columns *type; /* NULL: it is said to follow, but no record has it */
	struct column time;	   /* from the one to the other */
};

#define NO_MATE 0xffffffffu
#define FRONT 1024u

/* What was used last stands in an array, what stands behind it in the recency list. Most that is
   used again was used lately, and costs no more than moving some items on by one: of a thousand that
   takes less time than a few steps through the tree of a recency list. */
struct list {
	struct stored values; /* distinct ones */
	uint32_t *front;
	uint32_t front_count; /* less than FRONT: there are no others */
	struct tacho__recency recency;
	uint32_t uses;	   /* by all columns together */
	uint32_t known;	   /* values that have appeared */
	uint32_t *item_at; /* by position in the recency list */
	uint64_t *value;   /* by item */
	uint32_t *mate;	   /* by item: the argument that it had last, or NO_MATE */
};

struct decoder {
	struct input in;
	struct tacho__records *out;
	uint32_t words; /* payload words of all records */
	uint8_t first_type, last_type;
	struct type_columns *by_type[256]; /* NULL: does not occur */
	struct type_columns *columns;
	uint32_t type_count;
	uint64_t *values; /* of all columns but the lists' */
	size_t value_count, values_taken;
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
static int take_stored(struct input *in, struct stored *c, uint32_t count, unsigned allowed)
{
	const uint8_t *p = take(in, 2);
	size_t size;

	if (!p || p[0] > TACHO_TRANSFORM_WORDS || !(allowed & (1u << p[0])))
		return -EBADMSG;
	*c = (struct stored){.count = count, .transform = p[0]};
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

static void expand_bits(const struct stored *c, uint64_t *values)
{
	uint32_t bits = c->bits, mask = (1u << bits) - 1;

	for (uint32_t i = 0; i < c->count; i++) {
		size_t bit = (size_t)i * bits;

		values[i] = (uint32_t)c->body[bit / 8] >> (bit % 8) & mask;
	}
}

static void expand_planes(const struct stored *c, uint64_t *values)
{
	const uint8_t *plane = c->body;

	/* Most take one byte or two. */
	if (c->width < 2) {
		for (uint32_t i = 0; i < c->count; i++)
			values[i] = c->width ? plane[i] : 0;
		return;
	}
	for (uint32_t i = 0; i < c->count; i++)
		values[i] = plane[i] | (uint64_t)plane[c->count + i] << 8;
	plane += c->count;
	for (unsigned k = 2; k < c->width; k++) {
		plane += c->count;
		for (uint32_t i = 0; i < c->count; i++)
			values[i] |= (uint64_t)plane[i] << (8 * k);
	}
}

/* All values of a column. One after the other, as records need them, each would be a guess of how
   many bytes it has. */
static void expand(const struct stored *c, uint64_t *values)
{
	uint64_t before = 0;

	if (c->bits)
		expand_bits(c, values);
	else if (c->transform != TACHO_TRANSFORM_WORDS)
		expand_planes(c, values);
	else if (c->count)
		memcpy(values, c->body, (size_t)c->count * 8);
	if (c->transform != TACHO_TRANSFORM_DELTA)
		return;
	for (uint32_t i = 0; i < c->count; i++) {
		before += (values[i] >> 1) ^ (0 - (values[i] & 1));
		values[i] = before;
	}
}

static int take_column(struct decoder *d, struct column *c, uint32_t count, unsigned allowed)
{
	uint64_t *values = d->values + d->values_taken;
	struct stored s;

	if (count > d->value_count - d->values_taken || take_stored(&d->in, &s, count, allowed))
		return -EBADMSG;
	d->values_taken += count;
	expand(&s, values);
	*c = (struct column){values, values + count, s.transform == TACHO_TRANSFORM_DICT, s.list};
	return 0;
}

/* The item of a list that a stored place means, which moves to the front. */
static int use_item(struct list *l, uint64_t stored, uint32_t *item)
{
	uint32_t moved = l->front_count;

	if (stored == 1 && moved) {
		*item = l->front[0];
		return 0;
	}
	if (stored == 0) {
		if (l->known == l->values.count)
			return -EBADMSG;
		*item = l->known++;
	} else if (stored <= l->front_count) {
		moved = (uint32_t)stored - 1;
		*item = l->front[moved];
	} else {
		uint32_t position;

		if (stored - l->front_count > l->recency.live)
			return -EBADMSG;
		position = tacho__recency_find(&l->recency, (uint32_t)stored - 1 - l->front_count);
		tacho__recency_take(&l->recency, position);
		*item = l->item_at[position];
	}
	if (moved == FRONT)
		l->item_at[tacho__recency_push(&l->recency)] = l->front[--moved];
	else if (moved == l->front_count)
		l->front_count++;
	memmove(l->front + 1, l->front, moved * sizeof(l->front[0]));
	l->front[0] = *item;
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

/* Columns of a type with a value for each of its records at most: what follows, time, arg (one for
   MATE together), and words. */
static uint32_t columns_of(uint8_t type)
{
	unsigned class = TACHO_REC_CLASS(type);

	return 3 + (class == TACHO_REC_CLASS_VARIABLE ? 1 + TACHO_COLUMN_WORDS : class);
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
		d->value_count += (size_t)t->records * columns_of(t->type);
		d->by_type[t->type] = t;
	}
	if (all != d->out->head.count)
		return -EBADMSG;
	d->values = malloc((d->value_count + 1) * sizeof(*d->values));
	return d->values ? 0 : -ENOMEM;
}

static int read_types(struct decoder *d)
{
	int err = read_type_table(d);

	for (uint32_t i = 0; !err && i < d->type_count; i++) {
		struct type_columns *t = &d->columns[i];
		const uint8_t *p = take(&d->in, 1);
		uint32_t count = p ? *p : 0;

		p = p ? take(&d->in, count) : NULL;
		if (!p)
			return -EBADMSG;
		t->follow = calloc(count + 1, sizeof(*t->follow));
		if (!t->follow)
			return -ENOMEM;
		t->follow_count = count;
		for (uint32_t k = 0; k < count; k++)
			t->follow[k].type = d->by_type[p[k]];
		err = take_column(d, &t->next, t->records - (t->type == d->last_type),
				  1u << TACHO_TRANSFORM_PLAIN);
	}
	return err;
}

static int read_times(struct decoder *d)
{
	const unsigned simple = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA;

	for (uint32_t i = 0; i < d->type_count; i++) {
		struct type_columns *t = &d->columns[i];
		/* Two, as a number that is counted twice in a row would wait for itself. */
		uint32_t count[2][256] = {0};

		for (const uint64_t *follow = t->next.next; follow < t->next.end; follow++) {
			if (*follow >= t->follow_count)
				return -EBADMSG;
			count[(t->next.end - follow) & 1][*follow]++;
		}
		for (uint32_t k = 0; k < t->follow_count; k++) {
			if (take_column(d, &t->follow[k].time, count[0][k] + count[1][k], simple))
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
		    take_stored(&d->in, &d->lists[i].values, distinct, allowed))
			return -EBADMSG;
	}
	return 0;
}

static int take_word_column(struct decoder *d, struct column *c, uint32_t count)
{
	const unsigned allowed = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA |
				 1u << TACHO_TRANSFORM_DICT | 1u << TACHO_TRANSFORM_WORDS;

	if (take_column(d, c, count, allowed))
		return -EBADMSG;
	if (c->is_dict) {
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
	struct stored words_of, rest_of;
	uint32_t rest = 0;

	if (take_stored(&d->in, &words_of, t->records, plain) || words_of.width != 1 ||
	    take_column(d, &t->data, t->records, simple))
		return -EBADMSG;
	t->words = words_of.body;
	for (uint32_t i = 0; i < t->records; i++) {
		uint32_t words = t->words[i];

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
	if (take_stored(&d->in, &rest_of, rest, 1u << TACHO_TRANSFORM_WORDS))
		return -EBADMSG;
	t->rest = rest_of.body;
	return 0;
}

static int read_arg(struct decoder *d, struct type_columns *t)
{
	const unsigned simple = 1u << TACHO_TRANSFORM_PLAIN | 1u << TACHO_TRANSFORM_DELTA;
	uint32_t first;

	if (!d->in.left || d->in.at[0] != TACHO_TRANSFORM_MATE)
		return take_column(d, &t->arg, t->records, simple);
	t->mated = 1;
	if (!take(&d->in, 2) || take_u32(&d->in, &first) || first > t->records ||
	    take_column(d, &t->new_arg, first, simple))
		return -EBADMSG;
	return take_column(d, &t->arg, t->records - first, simple);
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
	if (t->mated && (t->key >= t->fixed || !t->w[t->key].is_dict ||
			 (size_t)(t->w[t->key].end - t->w[t->key].next) != t->records))
		return -EBADMSG;
	return 0;
}

/* The values themselves, once it is known how often each list is used. */
static int fill_lists(struct decoder *d)
{
	for (uint32_t i = 0; i < d->list_count; i++) {
		struct list *l = &d->lists[i];
		uint32_t distinct = l->values.count;
		uint32_t behind = distinct > FRONT ? l->uses : 0;

		if (distinct > l->uses)
			return -EBADMSG;
		l->front = malloc(FRONT * sizeof(*l->front));
		l->item_at = malloc(((size_t)behind + 1) * sizeof(*l->item_at));
		l->value = malloc(((size_t)distinct + 1) * sizeof(*l->value));
		l->mate = malloc(((size_t)distinct + 1) * sizeof(*l->mate));
		if (!l->front || !l->item_at || !l->value || !l->mate ||
		    tacho__recency_reset(&l->recency, behind))
			return -ENOMEM;
		expand(&l->values, l->value);
		for (uint32_t k = 0; k < distinct; k++)
			l->mate[k] = NO_MATE;
	}
	return 0;
}

/* One word of a record; *item is set when it comes from a list. */
static inline int next_word(struct decoder *d, struct column *c, uint64_t *word, uint32_t *item)
{
	uint64_t value = *c->next++;

	if (!c->is_dict) {
		*word = value;
		return 0;
	}
	if (use_item(&d->lists[c->list], value, item))
		return -EBADMSG;
	*word = d->lists[c->list].value[*item];
	return 0;
}

static int next_arg(struct decoder *d, struct type_columns *t, uint32_t item, uint32_t *arg)
{
	uint32_t *mate = t->mated ? &d->lists[t->w[t->key].list].mate[item] : NULL;
	struct column *c = mate && *mate == NO_MATE ? &t->new_arg : &t->arg;
	uint64_t value;

	if (c->next == c->end)
		return -EBADMSG;
	value = *c->next++;
	if (mate && c == &t->arg)
		value = value ? value - 1 : *mate;
	if (value > TACHO_ARG_MAX)
		return -EBADMSG;
	*arg = (uint32_t)value;
	if (mate)
		*mate = *arg;
	return 0;
}

/* Payload words of a variable type, `n` in all. */
static int next_variable(struct decoder *d, struct type_columns *t, uint64_t *words, uint32_t n,
			 uint32_t *item)
{
	uint32_t k;

	words[0] = n | *t->data.next++ << 16;
	for (k = 1; k < n && k < t->fixed; k++) {
		uint32_t other = 0;

		if (next_word(d, &t->w[k], &words[k], k == t->key ? item : &other))
			return -EBADMSG;
	}
	for (; k < n; k++, t->rest += 8)
		memcpy(&words[k], t->rest, 8);
	return 0;
}

/* Record `i`, whose words begin at `at`; *words is how many it has. */
static int build_record(struct decoder *d, struct type_columns *t, uint32_t i, uint32_t at,
			uint32_t *words)
{
	uint64_t *word = d->out->words + at;
	uint32_t item = 0, arg;

	*words = t->fixed;
	if (t->words) {
		*words = *t->words++;
		if (next_variable(d, t, word, *words, &item))
			return -EBADMSG;
	} else if (t->fixed) {
		uint32_t other = 0;

		if (next_word(d, &t->w[0], word, &item) ||
		    (t->fixed > 1 && next_word(d, &t->w[1], word + 1, &other)))
			return -EBADMSG;
	}
	if (next_arg(d, t, item, &arg))
		return -EBADMSG;
	d->out->type_arg[i] = tacho_record_head(t->type, arg);
	return 0;
}

/* From a record of type *t at *ns to the next. */
static int step(const struct decoder *d, struct type_columns **t, uint64_t *ns)
{
	struct column *next = &(*t)->next;
	struct follow *f;
	uint64_t passed;

	if (next->next == next->end)
		return -EBADMSG;
	f = &(*t)->follow[*next->next++]; /* below follow_count: see read_times */
	passed = *f->time.next++;
	if (passed > d->out->head.last_ns - *ns)
		return -EBADMSG;
	*ns += passed;
	*t = f->type;
	return 0;
}

static int build(struct decoder *d)
{
	struct tacho__records *out = d->out;
	struct type_columns *t = d->by_type[d->first_type];
	uint32_t count = out->head.count;
	uint64_t ns = out->head.first_ns;
	uint32_t at = 0, words;

	if (tacho__records_reserve(out, count, d->words))
		return -ENOMEM;
	out->word_at[0] = 0;
	for (uint32_t i = 0; i < count; i++) {
		/* Columns have as many values as the type has records: none is read
		   beyond its end. */
		if (!t || t->begun++ == t->records || build_record(d, t, i, at, &words))
			return -EBADMSG;
		out->ns[i] = ns;
		at += words;
		out->word_at[i + 1] = at;
		if (i + 1 < count && step(d, &t, &ns))
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
		free(d.lists[i].front);
		free(d.lists[i].item_at);
		free(d.lists[i].value);
		free(d.lists[i].mate);
	}
	for (uint32_t i = 0; d.columns && i < d.type_count; i++)
		free(d.columns[i].follow);
	free(d.values);
	free(d.columns);
	if (err)
		out->head.count = 0;
	return err;
}
