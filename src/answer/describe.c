/*
 * What ids and addresses of a trace are called.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "answer/describe.h"
#include "text/names.h"
#include "text/text.h"

/* The symbol's file without its folders: lines stay short, JSON has all of it. */
static void put_place(FILE *out, const struct tacho_symbol *s)
{
	const char *slash = strrchr(s->file, '/');

	if (!s->file[0])
		return;
	fputs(" (", out);
	text_put(out, slash && slash[1] ? slash + 1 : s->file);
	if (s->line)
		fprintf(out, ":%" PRIu32, s->line);
	fputc(')', out);
}

void describe_address(FILE *out, const struct tacho_reader *reader, uint32_t process,
		      uint64_t address, uint64_t ns, bool is_return)
{
	uint64_t at = is_return ? address - 1 : address;
	const struct tacho_definition *m = tacho_read_module_at(reader, process, at, ns);
	const struct tacho_symbol *symbol;
	const char *slash;
	uint32_t i = 0;

	for (; (symbol = tacho_read_symbol(reader, process, at, ns, i)); i++) {
		fputs(i ? " < " : "", out);
		text_put(out, symbol->function[0] ? symbol->function : "?");
		put_place(out, symbol);
	}
	if (i)
		return;
	if (!m) {
		fprintf(out, "0x%" PRIx64, address);
		return;
	}
	slash = strrchr(m->name, '/');
	text_put(out, slash && slash[1] ? slash + 1 : m->name);
	fprintf(out, "+0x%" PRIx64, address - m->start + m->offset);
}

/* One function: that of the address, or one it was inlined into. */
static void put_symbol(struct json *j, const struct tacho_symbol *s)
{
	json_put_known(j, "function", s->function);
	json_put_known(j, "file", s->file);
	json_put_not_zero(j, "line", s->line);
}

void describe_place_json(struct json *j, const struct tacho__place *p)
{
	json_put_known(j, "function", p->function);
	json_put_known(j, "file", p->file);
	json_put_not_zero(j, "line", p->line);
	json_put_known(j, "module", p->module);
	json_put_u64_if(j, "offset", p->module[0], p->offset);
}

void describe_thread_json(struct json *j, const char *key, const struct tacho_thread *t)
{
	json_put_u64_if(j, key, t, t ? t->tid : 0);
}

void describe_alive_json(struct json *j, int alive)
{
	json_key(j, "alive");
	if (alive == TACHO_ALIVE_UNKNOWN)
		json_null(j);
	else
		json_bool(j, alive == TACHO_ALIVE_YES);
}

void describe_address_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			   uint64_t address, uint64_t ns, bool is_return)
{
	describe_frame_json(j, reader, process, address, ns, is_return, false);
}

void describe_frame_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			 uint64_t address, uint64_t ns, bool is_return, bool kernel)
{
	uint64_t at = is_return ? address - 1 : address;
	const struct tacho_definition *m = tacho_read_module_at(reader, process, at, ns);
	const struct tacho_symbol *symbol;

	json_object(j);
	json_put_address(j, "address", address);
	if (kernel)
		json_put_bool(j, "kernel", true);
	json_put_known(j, "module", m ? m->name : "");
	json_put_address_if(j, "offset", m, m ? address - m->start + m->offset : 0);
	symbol = tacho_read_symbol(reader, process, at, ns, 0);
	if (symbol)
		put_symbol(j, symbol);
	if (tacho_read_symbol(reader, process, at, ns, 1)) {
		json_put_array(j, "inlined_into");
		for (uint32_t i = 1; (symbol = tacho_read_symbol(reader, process, at, ns, i));
		     i++) {
			json_object(j);
			put_symbol(j, symbol);
			json_object_end(j);
		}
		json_array_end(j);
	}
	json_object_end(j);
}

void describe_stack(FILE *out, const struct tacho_reader *reader, uint32_t process,
		    const struct describe_stack *stack, uint64_t ns)
{
	fputc('[', out);
	for (uint32_t i = 0; i < stack->count; i++) {
		if (i)
			fputs(" < ", out);
		describe_address(out, reader, process, stack->frames[i], ns,
				 i > 0 || !stack->exact);
	}
	fputs(stack->cut ? " < ...]" : "]", out);
}

void describe_stack_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			 const struct describe_stack *stack, uint64_t ns)
{
	json_put_array(j, "frames");
	for (uint32_t i = 0; i < stack->count; i++)
		describe_address_json(j, reader, process, stack->frames[i], ns,
				      i > 0 || !stack->exact);
	json_array_end(j);
}

static struct describe_stack stack_of(const struct tacho_definition *d)
{
	return (struct describe_stack){d->frames, d->count, d->exact != 0, d->cut != 0};
}

void describe_id(FILE *out, const struct tacho_reader *reader, uint32_t process, uint32_t id,
		 uint64_t ns)
{
	const struct tacho_definition *d;
	bool has_code;

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
		struct describe_stack stack = stack_of(d);

		describe_stack(out, reader, process, &stack, ns);
		return;
	}
	has_code = d->value && (d->def_class == TACHO_DEF_KIND || d->def_class == TACHO_DEF_PLACE);
	if (d->name[0])
		text_put(out, d->name);
	if (d->name[0] && has_code && !d->file[0])
		fputs(": ", out);
	if (has_code && (!d->name[0] || !d->file[0]))
		describe_address(out, reader, process, d->value, ns,
				 d->def_class == TACHO_DEF_PLACE);
	else if (!d->name[0])
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
	struct describe_stack stack;

	switch (d->def_class) {
	case TACHO_DEF_LOOP:
		json_put_u64(j, "number", d->value);
		json_put_known(j, "level", name_level(d->level));
		break;
	case TACHO_DEF_KIND:
	case TACHO_DEF_PLACE:
		if (d->value) {
			json_key(j, "code");
			describe_address_json(j, reader, process, d->value, ns,
					      d->def_class == TACHO_DEF_PLACE);
		}
		break;
	case TACHO_DEF_COUNTER:
	case TACHO_DEF_GAUGE:
		json_put_known(j, "unit", d->unit);
		break;
	case TACHO_DEF_STACK:
		stack = stack_of(d);
		describe_stack_json(j, reader, process, &stack, ns);
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
		json_put_not_zero(j, "line", d->line);
	}
	if (d)
		put_value(j, reader, process, d, ns);
	if (d && d->cut)
		json_put_bool(j, "cut", true);
	json_object_end(j);
}

const struct tacho_trigger_info *describe_trigger(const struct tacho_reader *reader,
						  uint32_t process, uint64_t number)
{
	uint32_t low = 0, high = tacho_read_trigger_count(reader);

	/* They are sorted by process and number. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct tacho_trigger_info *t = tacho_read_trigger(reader, mid);

		if (t->process == process && t->number == number)
			return t;
		if (t->process < process || (t->process == process && t->number < number))
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

const char *describe_sentinel_value(char *out, const char *sentinel, uint64_t value)
{
	if (!strcmp(sentinel, "queue") || !strcmp(sentinel, "unknown"))
		snprintf(out, TEXT_SMALL, "%" PRIu64, value);
	else
		text_duration(out, value);
	return out;
}

void describe_trigger_json(struct json *j, const struct tacho_trigger_info *trigger)
{
	const char *sentinel = trigger ? trigger->sentinel : "";

	json_put_known(j, "sentinel", sentinel);
	json_put_u64_if(j, "value", sentinel[0], trigger ? trigger->value : 0);
}
