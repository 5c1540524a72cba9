/*
 * What ids and addresses of a trace are called.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/describe.h"
#include "cli/names.h"
#include "cli/text.h"

void describe_address(FILE *out, const struct tacho_reader *reader, uint32_t process,
		      uint64_t address, uint64_t ns)
{
	const struct tacho_definition *m = tacho_read_module_at(reader, process, address, ns);
	const char *slash;

	if (!m) {
		fprintf(out, "0x%" PRIx64, address);
		return;
	}
	slash = strrchr(m->name, '/');
	text_put(out, slash && slash[1] ? slash + 1 : m->name);
	fprintf(out, "+0x%" PRIx64, address - m->start + m->offset);
}

void describe_address_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			   uint64_t address, uint64_t ns)
{
	const struct tacho_definition *m = tacho_read_module_at(reader, process, address, ns);

	json_object(j);
	json_key(j, "address");
	json_address(j, address);
	json_put_known(j, "module", m ? m->name : "");
	json_key(j, "offset");
	if (m)
		json_address(j, address - m->start + m->offset);
	else
		json_null(j);
	json_object_end(j);
}

static void describe_stack(FILE *out, const struct tacho_reader *reader, uint32_t process,
			   const struct tacho_definition *d, uint64_t ns)
{
	fputc('[', out);
	for (uint32_t i = 0; i < d->count; i++) {
		if (i)
			fputs(" < ", out);
		describe_address(out, reader, process, d->frames[i], ns);
	}
	fputs(d->cut ? " < ...]" : "]", out);
}

void describe_id(FILE *out, const struct tacho_reader *reader, uint32_t process, uint32_t id,
		 uint64_t ns)
{
	const struct tacho_definition *d;

	if (id == 0) {
		fputs("(not given)", out);
		return;
	}
	d = tacho_read_definition(reader, process, id);
	if (!d) {
		fprintf(out, "(id %" PRIu32 " is not in the trace)", id);
		return;
	}
	if (d->def_class == TACHO_DEF_STACK) {
		describe_stack(out, reader, process, d, ns);
		return;
	}
	if (d->name[0])
		text_put(out, d->name);
	else if (d->value && (d->def_class == TACHO_DEF_KIND || d->def_class == TACHO_DEF_PLACE))
		describe_address(out, reader, process, d->value, ns);
	else
		fprintf(out, "(id %" PRIu32 " has no name)", id);
	if (d->cut)
		fputs("...", out);
	/* Several loops may have one name. What tells them apart is often an address; the
	   id does it too, and is short. */
	if (d->def_class == TACHO_DEF_LOOP && d->value)
		fprintf(out, "#%" PRIu32, id);
	if (d->file[0]) {
		fputs(" (", out);
		text_put(out, d->file);
		if (d->line)
			fprintf(out, ":%" PRIu32, d->line);
		fputc(')', out);
	}
}

static void put_value(struct json *j, const struct tacho_reader *reader, uint32_t process,
		      const struct tacho_definition *d, uint64_t ns)
{
	switch (d->def_class) {
	case TACHO_DEF_LOOP:
		json_put_u64(j, "number", d->value);
		json_put_known(j, "level", name_level(d->level));
		break;
	case TACHO_DEF_KIND:
	case TACHO_DEF_PLACE:
		if (d->value) {
			json_key(j, "code");
			describe_address_json(j, reader, process, d->value, ns);
		}
		break;
	case TACHO_DEF_COUNTER:
	case TACHO_DEF_GAUGE:
		json_put_known(j, "unit", d->unit);
		break;
	case TACHO_DEF_STACK:
		json_key(j, "frames");
		json_array(j);
		for (uint32_t i = 0; i < d->count; i++)
			describe_address_json(j, reader, process, d->frames[i], ns);
		json_array_end(j);
		break;
	default:
		break;
	}
}

void describe_id_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
		      uint32_t id, uint64_t ns)
{
	const struct tacho_definition *d;

	if (id == 0) {
		json_null(j);
		return;
	}
	d = tacho_read_definition(reader, process, id);
	json_object(j);
	json_put_u64(j, "id", id);
	json_put_known(j, "class", d ? name_class(d->def_class) : "");
	if (!d || d->def_class != TACHO_DEF_STACK)
		json_put_known(j, "name", d ? d->name : "");
	if (d && d->file[0]) {
		json_put_string(j, "file", d->file);
		json_key(j, "line");
		if (d->line)
			json_u64(j, d->line);
		else
			json_null(j);
	}
	if (d)
		put_value(j, reader, process, d, ns);
	if (d && d->cut)
		json_put_bool(j, "cut", true);
	json_object_end(j);
}
