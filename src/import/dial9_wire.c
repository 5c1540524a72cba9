#include "import/dial9_wire.h"

#define TYPES 65536u
#define ARENA_MAX (1ull << 30)
#define SCHEMAS_MAX (1u << 20)
#define ANNOTATIONS_MAX 1024u /* of one frame that are kept */

static const uint8_t magic[4] = {'T', 'R', 'C', 0};

int tacho__dial9_wire_open(struct tacho__dial9_wire *w)
{
	memset(w, 0, sizeof(*w));
	w->arena.limit = ARENA_MAX;
	w->types = calloc(TYPES, sizeof(*w->types));
	return w->types ? 0 : -ENOMEM;
}

static void pool_free(struct tacho__dial9_pool *p)
{
	tacho__map_free(&p->ids);
	free(p->all);
}

void tacho__dial9_wire_close(struct tacho__dial9_wire *w)
{
	tacho__arena_free(&w->arena);
	tacho__map_free(&w->known);
	pool_free(&w->strings);
	pool_free(&w->stacks);
	free(w->schemas);
	free(w->types);
	memset(w, 0, sizeof(*w));
}

int tacho__dial9_header(const void *data, size_t size)
{
	return size >= TACHO__DIAL9_HEADER && !memcmp(data, magic, sizeof(magic));
}

size_t tacho__dial9_next(const struct tacho__dial9_wire *w)
{
	size_t at = w->at;

	while (at + TACHO__DIAL9_HEADER <= w->size) {
		const uint8_t *found = memchr(w->data + at, magic[0], w->size - at);

		if (!found)
			break;
		at = (size_t)(found - w->data);
		if (tacho__dial9_header(found, w->size - at) &&
		    found[sizeof(magic)] == TACHO__DIAL9_VERSION)
			return at;
		at++;
	}
	return w->size;
}

/* ------------------------------------------------------------------ numbers */

static int has(const struct tacho__dial9_wire *w, uint64_t bytes)
{
	return bytes <= w->size - w->at;
}

/* `bytes` of them, at most 8; there must be as many. */
static uint64_t take(struct tacho__dial9_wire *w, unsigned bytes)
{
	uint64_t n = 0;

	memcpy(&n, w->data + w->at, bytes);
	w->at += bytes;
	return n;
}

/* ULEB128. 1, or 0: it is cut. More than 64 bits are dropped. */
static int take_varint(struct tacho__dial9_wire *w, uint64_t *n)
{
	const uint8_t *p = w->data + w->at, *end = w->data + w->size;
	unsigned shift = 0;

	for (*n = 0; p < end; shift += 7) {
		if (shift < 64)
			*n |= (uint64_t)(*p & 0x7f) << shift;
		if (*p++ & 0x80)
			continue;
		w->at = (size_t)(p - w->data);
		return 1;
	}
	return 0;
}

/* u32 count, and that many pieces of `unit` bytes. */
static int take_sized(struct tacho__dial9_wire *w, uint32_t unit, const uint8_t **bytes,
		      uint32_t *size)
{
	if (!has(w, 4))
		return 0;
	*size = (uint32_t)take(w, 4);
	if (!has(w, (uint64_t)*size * unit))
		return 0;
	*bytes = w->data + w->at;
	w->at += (size_t)*size * unit;
	return 1;
}

/* ------------------------------------------------------------------- values */

static struct tacho__dial9_pooled *pooled(struct tacho__dial9_pool *p, uint32_t id)
{
	uint32_t n = tacho__map_get(&p->ids, id);

	return n ? &p->all[n - 1] : NULL;
}

/* The entries of a list or map, of which `v` keeps where they are. */
static enum tacho__dial9_end take_container(struct tacho__dial9_wire *w, unsigned depth,
					    struct tacho__dial9_value *v)
{
	size_t begin = w->at;
	struct tacho__dial9_value inner;
	uint64_t count;

	if (depth >= TACHO__DIAL9_NESTING)
		return TACHO__DIAL9_DEEP;
	if (!has(w, 4))
		return TACHO__DIAL9_CUT;
	count = take(w, 4);
	if (v->type != TACHO__DIAL9_LIST)
		count *= 2;
	for (; count; count--) {
		uint8_t type = TACHO__DIAL9_STRING;
		enum tacho__dial9_end end;

		if (v->type != TACHO__DIAL9_STRING_MAP) {
			if (!has(w, 1))
				return TACHO__DIAL9_CUT;
			type = (uint8_t)take(w, 1);
		}
		end = tacho__dial9_take(w, type, depth + 1, &inner);
		if (end)
			return end;
	}
	if (w->at - begin > UINT32_MAX)
		return TACHO__DIAL9_DEEP;
	v->bytes = w->data + begin;
	v->size = (uint32_t)(w->at - begin);
	return TACHO__DIAL9_WHOLE;
}

static int take_pooled(struct tacho__dial9_wire *w, struct tacho__dial9_pool *pool,
		       struct tacho__dial9_value *v)
{
	if (!has(w, 4))
		return 0;
	v->number = take(w, 4);
	v->pooled = pooled(pool, (uint32_t)v->number);
	v->there = v->pooled != NULL;
	if (v->pooled) {
		v->bytes = v->pooled->bytes;
		v->size = v->pooled->size;
	}
	return 1;
}

/* Bytes of numbers by type, 0: not one of fixed size. */
static const uint8_t fixed[16] = {
	[TACHO__DIAL9_NONE] = 1, [TACHO__DIAL9_I64] = 8, [TACHO__DIAL9_F64] = 8,
	[TACHO__DIAL9_BOOL] = 1, [TACHO__DIAL9_U8] = 1,	 [TACHO__DIAL9_U16] = 2,
	[TACHO__DIAL9_U32] = 4,
};

enum tacho__dial9_end tacho__dial9_take(struct tacho__dial9_wire *w, uint8_t type, unsigned depth,
					struct tacho__dial9_value *v)
{
	int whole;

	/* Nothing of the value that was there before: a name may be a number in another's file. */
	*v = (struct tacho__dial9_value){.type = type & 0x7f, .there = 1};
	if (type & TACHO__DIAL9_OPTIONAL) {
		if (!has(w, 1))
			return TACHO__DIAL9_CUT;
		v->there = take(w, 1) != 0;
		if (!v->there)
			return TACHO__DIAL9_WHOLE;
	}
	switch (v->type) {
	case TACHO__DIAL9_VARINT:
		whole = take_varint(w, &v->number);
		break;
	case TACHO__DIAL9_POOLED_STRING:
		whole = take_pooled(w, &w->strings, v);
		break;
	case TACHO__DIAL9_POOLED_STACK:
		whole = take_pooled(w, &w->stacks, v);
		break;
	case TACHO__DIAL9_STRING:
	case TACHO__DIAL9_BYTES:
	case TACHO__DIAL9_STACK:
		whole = take_sized(w, v->type == TACHO__DIAL9_STACK ? 8 : 1, &v->bytes, &v->size);
		break;
	case TACHO__DIAL9_STRING_MAP:
	case TACHO__DIAL9_LIST:
	case TACHO__DIAL9_MAP:
		return take_container(w, depth, v);
	default:
		if (v->type >= sizeof(fixed) || (!v->type && !depth)) {
			w->detail = type;
			return TACHO__DIAL9_FIELD;
		}
		whole = has(w, fixed[v->type]);
		if (whole)
			v->number = take(w, fixed[v->type]);
		v->there = v->type != TACHO__DIAL9_NONE;
	}
	return whole ? TACHO__DIAL9_WHOLE : TACHO__DIAL9_CUT;
}

/* ------------------------------------------------------------------ schemas */

static int take_name(struct tacho__dial9_wire *w, unsigned bytes, const uint8_t **name,
		     uint32_t *size)
{
	if (!has(w, bytes))
		return 0;
	*size = (uint32_t)take(w, bytes);
	if (!has(w, *size))
		return 0;
	*name = w->data + w->at;
	w->at += *size;
	return 1;
}

/* What stands at w->at, which is known to be whole, as a schema of its own. */
static struct tacho__dial9_schema *learn(struct tacho__dial9_wire *w, uint64_t hash, size_t size)
{
	struct tacho__dial9_schema *s = tacho__arena_get(&w->arena, sizeof(*s));
	struct tacho__dial9_field *fields;
	const uint8_t *name;
	uint32_t n;

	if (!s || w->schema_count >= SCHEMAS_MAX ||
	    TACHO__GROW(w->schemas, w->schema_capacity, w->schema_count + 1))
		return NULL;
	s->raw = (const uint8_t *)tacho__arena_text(&w->arena, w->data + w->at, size);
	s->raw_size = (uint32_t)size;
	if (!take_name(w, 2, &name, &n))
		return NULL;
	s->name = tacho__arena_text(&w->arena, name, n);
	s->has_time = take(w, 1) != 0;
	s->field_count = (uint32_t)take(w, 2);
	fields = tacho__arena_get(&w->arena, (s->field_count + 1) * sizeof(*fields));
	if (!s->raw || !s->name || !fields)
		return NULL;
	for (uint32_t i = 0; i < s->field_count; i++) {
		if (!take_name(w, 2, &name, &n))
			return NULL;
		fields[i].name = tacho__arena_text(&w->arena, name, n);
		fields[i].type = (uint8_t)take(w, 1);
		if (!fields[i].name)
			return NULL;
	}
	s->fields = fields;
	w->schemas[w->schema_count++] = s;
	s->number = w->schema_count;
	return tacho__map_put(&w->known, hash, s->number) ? NULL : s;
}

/* Whether a schema is whole: then w->at is behind it. */
static int step_over_schema(struct tacho__dial9_wire *w)
{
	const uint8_t *name;
	uint32_t n, fields;

	if (!take_name(w, 2, &name, &n) || !has(w, 3))
		return 0;
	w->at++;
	for (fields = (uint32_t)take(w, 2); fields; fields--) {
		if (!take_name(w, 2, &name, &n) || !has(w, 1))
			return 0;
		w->at++;
	}
	return 1;
}

static enum tacho__dial9_end take_schema(struct tacho__dial9_wire *w)
{
	struct tacho__dial9_schema *s;
	uint32_t type, known;
	size_t begin, size;
	uint64_t hash;

	if (!has(w, 2))
		return TACHO__DIAL9_CUT;
	type = (uint32_t)take(w, 2);
	begin = w->at;
	if (!step_over_schema(w))
		return TACHO__DIAL9_CUT;
	size = w->at - begin;
	hash = tacho__hash_bytes(w->data + begin, size, 0);
	known = tacho__map_get(&w->known, hash);
	s = known ? w->schemas[known - 1] : NULL;
	if (!s || s->raw_size != size || memcmp(s->raw, w->data + begin, size) != 0) {
		w->at = begin;
		s = learn(w, hash, size);
		if (!s)
			return TACHO__DIAL9_MEMORY;
	}
	w->types[type].schema = s;
	w->types[type].batch = w->batch;
	return TACHO__DIAL9_WHOLE;
}

static struct tacho__dial9_schema *schema_of(const struct tacho__dial9_wire *w, uint64_t type)
{
	return type < TYPES && w->types[type].batch == w->batch ? w->types[type].schema : NULL;
}

static int annotate(struct tacho__dial9_wire *w, struct tacho__dial9_schema *s, uint32_t field,
		    const uint8_t *const part[2], const uint32_t size[2])
{
	struct tacho__dial9_annotation *a = tacho__arena_get(&w->arena, sizeof(*a));

	if (!a)
		return 0;
	a->key = tacho__arena_text(&w->arena, part[0], size[0]);
	a->value = tacho__arena_text(&w->arena, part[1], size[1]);
	a->field = field;
	a->next = (struct tacho__dial9_annotation *)s->annotations;
	s->annotations = a;
	return a->key && a->value;
}

static enum tacho__dial9_end take_annotations(struct tacho__dial9_wire *w)
{
	struct tacho__dial9_schema *s;
	uint64_t type;
	uint32_t count;

	if (!take_varint(w, &type) || !has(w, 2))
		return TACHO__DIAL9_CUT;
	s = schema_of(w, type);
	/* The same schema comes again in each batch, with the same annotations. */
	if (s && s->annotated && s->annotated != w->batch)
		s = NULL;
	count = (uint32_t)take(w, 2);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *part[2];
		uint32_t size[2], field;

		if (!has(w, 2))
			return TACHO__DIAL9_CUT;
		field = (uint32_t)take(w, 2);
		if (!take_name(w, 2, &part[0], &size[0]) || !take_name(w, 4, &part[1], &size[1]))
			return TACHO__DIAL9_CUT;
		if (s && i < ANNOTATIONS_MAX && !annotate(w, s, field, part, size))
			return TACHO__DIAL9_MEMORY;
	}
	if (s)
		s->annotated = w->batch;
	return TACHO__DIAL9_WHOLE;
}

/* ------------------------------------------------------------------- frames */

static enum tacho__dial9_end take_pool(struct tacho__dial9_wire *w, struct tacho__dial9_pool *p,
				       uint32_t unit)
{
	uint64_t count;

	if (!has(w, 4))
		return TACHO__DIAL9_CUT;
	for (count = take(w, 4); count; count--) {
		struct tacho__dial9_pooled entry = {0};
		uint32_t id;

		if (!has(w, 4))
			return TACHO__DIAL9_CUT;
		id = (uint32_t)take(w, 4);
		if (!take_sized(w, unit, &entry.bytes, &entry.size))
			return TACHO__DIAL9_CUT;
		if (TACHO__GROW(p->all, p->capacity, p->count + 1) ||
		    tacho__map_put(&p->ids, id, p->count + 1))
			return TACHO__DIAL9_MEMORY;
		p->all[p->count++] = entry;
	}
	return TACHO__DIAL9_WHOLE;
}

static enum tacho__dial9_end take_event(struct tacho__dial9_wire *w, struct tacho__dial9_event *e)
{
	struct tacho__dial9_schema *s;
	struct tacho__dial9_value rest;
	uint32_t type;

	if (!has(w, 2))
		return TACHO__DIAL9_CUT;
	type = (uint32_t)take(w, 2);
	s = schema_of(w, type);
	if (!s) {
		w->detail = type;
		return TACHO__DIAL9_TYPE;
	}
	if (s->has_time) {
		uint64_t delta;

		if (!has(w, 3))
			return TACHO__DIAL9_CUT;
		delta = take(w, 3);
		w->ns = delta > UINT64_MAX - w->ns ? UINT64_MAX : w->ns + delta;
	}
	for (uint32_t i = 0; i < s->field_count; i++) {
		struct tacho__dial9_value *v = i < TACHO__DIAL9_VALUES ? &w->values[i] : &rest;
		enum tacho__dial9_end end = tacho__dial9_take(w, s->fields[i].type, 0, v);

		if (end)
			return end;
	}
	e->schema = s;
	e->ns = w->ns;
	e->count = s->field_count < TACHO__DIAL9_VALUES ? s->field_count : TACHO__DIAL9_VALUES;
	e->values = w->values;
	return TACHO__DIAL9_WHOLE;
}

static enum tacho__dial9_end take_other(struct tacho__dial9_wire *w, uint32_t tag)
{
	switch (tag) {
	case 1:
		return take_schema(w);
	case 3:
		return take_pool(w, &w->strings, 1);
	case 4:
		return take_pool(w, &w->stacks, 8);
	case 5:
		if (!has(w, 8))
			return TACHO__DIAL9_CUT;
		w->ns = take(w, 8);
		return TACHO__DIAL9_WHOLE;
	case 6:
		return take_annotations(w);
	default:
		w->detail = tag;
		return TACHO__DIAL9_TAG;
	}
}

static void forget(struct tacho__dial9_wire *w)
{
	w->batch++;
	w->ns = 0;
	w->strings.count = w->stacks.count = 0;
	tacho__map_clear(&w->strings.ids);
	tacho__map_clear(&w->stacks.ids);
}

enum tacho__dial9_end
tacho__dial9_batch(struct tacho__dial9_wire *w,
		   int (*event)(void *arg, const struct tacho__dial9_event *e), void *arg)
{
	struct tacho__dial9_event e;

	forget(w);
	w->at += sizeof(magic);
	w->detail = (uint32_t)take(w, 1);
	if (w->detail != TACHO__DIAL9_VERSION)
		return TACHO__DIAL9_NEWER;
	while (w->at < w->size) {
		size_t begin = w->at;
		enum tacho__dial9_end end;
		uint32_t tag = w->data[w->at];

		if (tag == magic[0] && tacho__dial9_header(w->data + begin, w->size - begin))
			return TACHO__DIAL9_WHOLE;
		w->at++;
		end = tag == 2 ? take_event(w, &e) : take_other(w, tag);
		if (end) {
			w->at = begin;
			return end;
		}
		if (tag == 2 && event(arg, &e))
			return TACHO__DIAL9_STOP;
	}
	return TACHO__DIAL9_WHOLE;
}
