#include "read/definitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "format/definition.h"
#include "format/record.h"

/* Integers in payloads are not aligned. */
static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int parse_name(struct tacho_definition *d, struct tacho__arena *arena,
		      const struct tacho__raw_definition *raw)
{
	const uint8_t *p = raw->payload;
	size_t name, file, unit;

	if (raw->size < TACHO_NAME_HEAD)
		return -EBADMSG;
	name = get16(p + 12);
	file = get16(p + 14);
	unit = p[17];
	if (name + file + unit > raw->size - TACHO_NAME_HEAD)
		return -EBADMSG;
	d->value = get64(p);
	d->line = get32(p + 8);
	if (raw->def_class == TACHO_DEF_LOOP)
		d->level = p[16];
	else if (raw->def_class == TACHO_DEF_COUNTER || raw->def_class == TACHO_DEF_GAUGE)
		d->value_type = p[16];
	p += TACHO_NAME_HEAD;
	d->name = tacho__arena_text(arena, p, name);
	d->file = file ? tacho__arena_text(arena, p + name, file) : "";
	d->unit = unit ? tacho__arena_text(arena, p + name + file, unit) : "";
	return d->name && d->file && d->unit ? 0 : -ENOMEM;
}

static int parse_schema(struct tacho_definition *d, struct tacho__arena *arena,
			const struct tacho__raw_definition *raw)
{
	const uint8_t *p = raw->payload + TACHO_SCHEMA_HEAD;
	struct tacho_field *fields;
	size_t left, name;

	if (raw->size < TACHO_SCHEMA_HEAD)
		return -EBADMSG;
	left = raw->size - TACHO_SCHEMA_HEAD;
	name = get16(raw->payload);
	d->count = get16(raw->payload + 2);
	if (name > left || d->count > TACHO_SCHEMA_FIELDS)
		return -EBADMSG;
	d->name = tacho__arena_text(arena, p, name);
	fields = tacho__arena_get(arena, d->count * sizeof(*fields));
	if (!d->name || !fields)
		return -ENOMEM;
	d->fields = fields;
	p += name;
	left -= name;
	for (uint32_t i = 0; i < d->count; i++) {
		if (left < 2 || p[1] > left - 2)
			return -EBADMSG;
		fields[i].type = p[0] & (uint8_t)~TACHO_FIELD_OPTIONAL;
		fields[i].optional = (p[0] & TACHO_FIELD_OPTIONAL) != 0;
		if (fields[i].type < TACHO_FIELD_U64 || fields[i].type > TACHO_FIELD_STRING)
			return -EBADMSG;
		fields[i].name = tacho__arena_text(arena, p + 2, p[1]);
		if (!fields[i].name)
			return -ENOMEM;
		left -= 2u + p[1];
		p += 2u + p[1];
	}
	return 0;
}

static int parse_stack(struct tacho_definition *d, struct tacho__arena *arena,
		       const struct tacho__raw_definition *raw)
{
	uint64_t *frames;

	if (raw->size % 8 || raw->size / 8 > TACHO_STACK_MAX)
		return -EBADMSG;
	frames = tacho__arena_get(arena, raw->size);
	if (!frames)
		return -ENOMEM;
	if (raw->size)
		memcpy(frames, raw->payload, raw->size);
	d->count = raw->size / 8u;
	d->frames = frames;
	return 0;
}

static int parse_module(struct tacho_definition *d, struct tacho__arena *arena,
			const struct tacho__timebase *timebase,
			const struct tacho__raw_definition *raw)
{
	const uint8_t *p = raw->payload;
	uint32_t hint = 0;
	uint8_t *build_id;
	size_t path;

	if (raw->size < TACHO_MODULE_HEAD)
		return -EBADMSG;
	d->start = get64(p);
	d->end = get64(p + 8);
	d->offset = get64(p + 16);
	d->since_ns = tacho__timebase_ns(timebase, get64(p + 24), &hint);
	d->build_id_size = p[32];
	path = get16(p + 34);
	if (d->build_id_size > TACHO_BUILD_ID_MAX || d->end < d->start ||
	    d->build_id_size + path > raw->size - TACHO_MODULE_HEAD)
		return -EBADMSG;
	p += TACHO_MODULE_HEAD;
	build_id = tacho__arena_get(arena, d->build_id_size);
	d->name = tacho__arena_text(arena, p + d->build_id_size, path);
	if (!build_id || !d->name)
		return -ENOMEM;
	if (d->build_id_size)
		memcpy(build_id, p, d->build_id_size);
	d->build_id = build_id;
	return 0;
}

static int parse(struct tacho_definition *d, struct tacho__arena *arena,
		 const struct tacho__timebase *timebase, const struct tacho__raw_definition *raw)
{
	d->id = raw->id;
	d->def_class = raw->def_class;
	d->cut = (raw->flags & TACHO_DEF_CUT) != 0;
	d->exact = raw->def_class == TACHO_DEF_STACK && raw->flags & TACHO_DEF_EXACT;
	d->name = d->file = d->unit = "";
	switch (raw->def_class) {
	case TACHO_DEF_SCHEMA:
		return parse_schema(d, arena, raw);
	case TACHO_DEF_STACK:
		return parse_stack(d, arena, raw);
	case TACHO_DEF_MODULE:
		return parse_module(d, arena, timebase, raw);
	default:
		return parse_name(d, arena, raw);
	}
}

static uint32_t slot_of(const struct tacho__definitions *d, uint32_t id)
{
	uint32_t mask = d->capacity - 1;
	uint32_t at = (uint32_t)(tacho__mix(id) >> 32) & mask;

	while (d->table[at] && d->table[at]->id != id)
		at = (at + 1) & mask;
	return at;
}

static int make_room(struct tacho__definitions *d)
{
	struct tacho__definitions larger = {0};

	if (d->count + 1 <= d->capacity / 2)
		return 0;
	larger.capacity = d->capacity ? d->capacity * 2 : 64;
	larger.table = calloc(larger.capacity, sizeof(struct tacho_definition *));
	if (!larger.table)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->capacity; i++)
		if (d->table[i])
			larger.table[slot_of(&larger, d->table[i]->id)] = d->table[i];
	free(d->table);
	d->table = larger.table;
	d->capacity = larger.capacity;
	return 0;
}

int tacho__definitions_add(struct tacho__definitions *d, struct tacho__arena *arena,
			   const struct tacho__timebase *timebase,
			   const struct tacho__raw_definition *raw)
{
	struct tacho_definition *item;
	int err;

	if (raw->id == 0 || raw->id > TACHO_ARG_MAX || raw->def_class == 0 ||
	    raw->size > TACHO_DEF_PAYLOAD_MAX)
		return -EBADMSG;
	if (raw->def_class > TACHO_DEF_DESCRIPTOR || tacho__definitions_get(d, raw->id))
		return 0;
	if (make_room(d))
		return -ENOMEM;
	item = tacho__arena_get(arena, sizeof(*item));
	if (!item)
		return -ENOMEM;
	err = parse(item, arena, timebase, raw);
	if (err)
		return err;
	if (raw->def_class == TACHO_DEF_MODULE) {
		if (TACHO__GROW(d->modules, d->module_capacity, d->module_count + 1))
			return -ENOMEM;
		d->modules[d->module_count++] = item;
	}
	d->table[slot_of(d, item->id)] = item;
	d->count++;
	if (item->id >= d->limit)
		d->limit = item->id + 1;
	return 1;
}

const struct tacho_definition *tacho__definitions_get(const struct tacho__definitions *d,
						      uint32_t id)
{
	return d->capacity ? d->table[slot_of(d, id)] : NULL;
}

static int by_time(const void *va, const void *vb)
{
	const struct tacho_definition *a = *(const struct tacho_definition *const *)va;
	const struct tacho_definition *b = *(const struct tacho_definition *const *)vb;

	if (a->since_ns != b->since_ns)
		return a->since_ns < b->since_ns ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

void tacho__definitions_settle(struct tacho__definitions *d)
{
	TACHO__SORT(d->modules, d->module_count, by_time);
}

const struct tacho_definition *tacho__definitions_module(const struct tacho__definitions *d,
							 uint64_t address, uint64_t ns)
{
	for (uint32_t i = d->module_count; i-- > 0;) {
		const struct tacho_definition *m = d->modules[i];

		if (m->since_ns <= ns && address >= m->start && address < m->end)
			return m;
	}
	return NULL;
}

void tacho__definitions_free(struct tacho__definitions *d)
{
	free(d->table);
	free(d->modules);
	*d = (struct tacho__definitions){0};
}
