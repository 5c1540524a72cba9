/* DEFINITIONS blocks: payloads as format/definition.h describes them, made again. */
#include <string.h>

#include "write/trace_parts.h"
#include "format/definition.h"
#include "tacho_read.h"

struct payload {
	uint8_t data[TACHO_DEF_PAYLOAD_MAX];
	uint32_t size;
	int cut; /* something did not fit */
};

static void put(struct payload *p, const void *data, size_t size)
{
	if (size > sizeof(p->data) - p->size) {
		size = sizeof(p->data) - p->size;
		p->cut = 1;
	}
	if (size)
		memcpy(p->data + p->size, data, size);
	p->size += (uint32_t)size;
}

static void put8(struct payload *p, uint8_t v)
{
	put(p, &v, sizeof(v));
}

static void put16(struct payload *p, uint16_t v)
{
	put(p, &v, sizeof(v));
}

static void put32(struct payload *p, uint32_t v)
{
	put(p, &v, sizeof(v));
}

static void put64(struct payload *p, uint64_t v)
{
	put(p, &v, sizeof(v));
}

/* The bytes of a text that are kept, of at most `max`. */
static uint16_t kept(struct payload *p, const char *text, size_t max)
{
	size_t size = strlen(text);

	if (size <= max)
		return (uint16_t)size;
	p->cut = 1;
	return (uint16_t)max;
}

static void put_name(struct payload *p, const struct tacho_definition *d)
{
	uint16_t name = kept(p, d->name, TACHO_NAME_MAX);
	uint16_t file = kept(p, d->file, TACHO_NAME_MAX);
	uint16_t unit = kept(p, d->unit, TACHO_UNIT_MAX);

	put64(p, d->value);
	put32(p, d->line);
	put16(p, name);
	put16(p, file);
	put8(p, d->def_class == TACHO_DEF_LOOP ? d->level : d->value_type);
	put8(p, (uint8_t)unit);
	put(p, d->name, name);
	put(p, d->file, file);
	put(p, d->unit, unit);
}

static void put_schema(struct payload *p, const struct tacho_definition *d)
{
	uint16_t name = kept(p, d->name, TACHO_NAME_MAX);
	uint32_t left = d->count;

	put16(p, name);
	put16(p, (uint16_t)d->count);
	put(p, d->name, name);
	for (uint32_t i = 0; i < d->count; i++, left--) {
		/* Every field keeps its type: without it records could not be read. */
		uint32_t room = (uint32_t)sizeof(p->data) - p->size - 2 * left;
		uint16_t size = kept(p, d->fields[i].name, room < 255 ? room : 255);

		put8(p, d->fields[i].type | (d->fields[i].optional ? TACHO_FIELD_OPTIONAL : 0));
		put8(p, (uint8_t)size);
		put(p, d->fields[i].name, size);
	}
}

static void put_module(struct payload *p, const struct tacho_definition *d)
{
	uint8_t id = (uint8_t)(d->build_id_size < TACHO_BUILD_ID_MAX ? d->build_id_size
								     : TACHO_BUILD_ID_MAX);
	uint16_t path = kept(p, d->name, TACHO_MODULE_PATH_MAX);

	put64(p, d->start);
	put64(p, d->end);
	put64(p, d->offset);
	put64(p, d->since_ns);
	put8(p, id);
	put8(p, 0);
	put16(p, path);
	put(p, d->build_id, id);
	put(p, d->name, path);
}

void tacho__definition_put(struct tacho__bytes *b, const struct tacho_definition *d)
{
	struct payload p = {.size = 0};
	struct tacho_trace_def head = {.id = d->id, .class = d->def_class};

	switch (d->def_class) {
	case TACHO_DEF_SCHEMA:
		if (d->count > TACHO_SCHEMA_FIELDS)
			return;
		put_schema(&p, d);
		break;
	case TACHO_DEF_STACK:
		put(&p, d->frames, (size_t)d->count * 8);
		break;
	case TACHO_DEF_MODULE:
		put_module(&p, d);
		break;
	default:
		put_name(&p, d);
		break;
	}
	head.size = (uint16_t)p.size;
	head.flags = d->cut || p.cut ? TACHO_DEF_CUT : 0;
	if (d->exact)
		head.flags |= TACHO_DEF_EXACT;
	tacho__bytes_put(b, &head, sizeof(head));
	tacho__bytes_put(b, p.data, p.size);
	tacho__bytes_pad(b);
}

int tacho__put_definitions(struct tacho__output *o, const struct tacho_reader *reader,
			   uint32_t process)
{
	uint32_t limit = tacho_read_definition_limit(reader, process);
	struct tacho__bytes b = {0};

	for (uint32_t id = 1; !o->error && id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(reader, process, id);

		if (d)
			tacho__definition_put(&b, d);
		if (b.error || b.size >= TACHO__DEFINITIONS_BYTES || (b.size && id + 1 == limit))
			tacho__output_bytes(o, TACHO_BLOCK_DEFINITIONS, &b);
	}
	tacho__bytes_free(&b);
	return o->error;
}
