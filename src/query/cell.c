/* What a query sees of a row, made of its fields. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "query/fill.h"
#include "text/names.h"
#include "text/text.h"

static int is_plain(const char *text)
{
	while (*text >= ' ' && *text <= '~')
		text++;
	return !*text;
}

/* Text of a trace may hold any bytes; others want UTF-8, and get it with the rest escaped. */
static void put_text(struct tacho__sql_cell *out, const char *text)
{
	size_t size = 0;
	FILE *stream;

	if (!text || !text[0])
		return;
	out->type = SQL_CELL_TEXT;
	out->text = text;
	/* Nearly always. */
	if (is_plain(text))
		return;
	stream = open_memstream(&out->made, &size);
	if (stream)
		text_put(stream, text);
	if (!stream || fclose(stream) != 0)
		out->type = SQL_CELL_NO_MEMORY;
	out->text = out->made;
}

static void put_integer(struct tacho__sql_cell *out, uint64_t value, bool known)
{
	if (!known)
		return;
	out->type = SQL_CELL_INTEGER;
	out->integer = (int64_t)value;
}

/* What stands behind an id, as code: innermost of the program. */
static void put_place(const struct tacho__sql_source *s, struct tacho__sql_cell *out,
		      enum tacho__sql_view view, uint32_t process, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t kernel;
	uint32_t n = tacho__sql_stack_places(s, process, id, places, TACHO__PLACES_MAX, &kernel);
	uint32_t own = kernel + tacho__places_own(places + kernel, n - kernel);
	const struct tacho__place *p = n ? &places[own < n ? own : kernel < n ? kernel : 0] : NULL;

	if (p && view == SQL_ID_LINE)
		put_integer(out, p->line, p->line != 0);
	else if (p)
		put_text(out, view == SQL_ID_FUNCTION ? p->function : p->file);
}

static void put_thread(const struct tacho__sql_source *s, struct tacho__sql_cell *out,
		       enum tacho__sql_view view, uint32_t process, uint32_t number)
{
	const struct tacho_thread *t =
		number ? tacho_read_thread_by_number(s->reader, process, number) : NULL;

	if (view == SQL_TID)
		put_integer(out, t ? t->tid : 0, t != NULL);
	else
		put_text(out, t ? t->name : NULL);
}

/* A number of a counter; of the depth of a queue the definition is a loop. */
static void put_value(struct tacho__sql_cell *out, const struct tacho_definition *d, uint64_t value)
{
	if (d && (d->def_class == TACHO_DEF_COUNTER || d->def_class == TACHO_DEF_GAUGE) &&
	    d->value_type == TACHO_VALUE_F64) {
		out->type = SQL_CELL_REAL;
		memcpy(&out->real, &value, sizeof(out->real));
	} else {
		put_integer(out, value, true);
	}
}

static void put_trace_id(struct tacho__sql_cell *out, uint64_t high, uint64_t low)
{
	if (!high && !low)
		return;
	out->made = malloc(33);
	out->type = out->made ? SQL_CELL_TEXT : SQL_CELL_NO_MEMORY;
	out->text = out->made;
	if (out->made)
		snprintf(out->made, 33, "%016" PRIx64 "%016" PRIx64, high, low);
}

/* What is looked up in the process of the row. */
static void put_known(const struct tacho__sql_source *s, struct tacho__sql_cell *out,
		      enum tacho__sql_view view, uint32_t process, uint32_t id)
{
	const struct tacho_definition *d;
	const struct tacho_process *p;

	switch (view) {
	case SQL_PID:
		p = tacho_read_process(s->reader, process);
		put_integer(out, p ? p->pid : 0, p != NULL);
		break;
	case SQL_TID:
	case SQL_THREAD_NAME:
		put_thread(s, out, view, process, id);
		break;
	case SQL_ID_NAME:
	case SQL_ID_UNIT:
		d = id ? tacho_read_definition(s->reader, process, id) : NULL;
		put_text(out, !d ? NULL : view == SQL_ID_NAME ? d->name : d->unit);
		break;
	default:
		put_place(s, out, view, process, id);
	}
}

static void put_number(struct tacho__sql_cell *out, enum tacho__sql_view view, uint64_t value,
		       uint64_t other)
{
	switch (view) {
	case SQL_OPTIONAL:
		put_integer(out, value, value != 0);
		break;
	case SQL_NOT_NEGATIVE:
		put_integer(out, value, value != UINT64_MAX);
		break;
	case SQL_IF:
		put_integer(out, value, other != 0);
		break;
	case SQL_DIFFERENCE:
		put_integer(out, value - other, value && other);
		break;
	case SQL_RESULT:
		put_text(out, name_result((unsigned)value));
		break;
	case SQL_LEVEL:
		put_text(out, name_level((unsigned)value));
		break;
	case SQL_DESCRIPTOR:
		put_text(out, name_descriptor((unsigned)value));
		break;
	case SQL_TRACE_ID:
		put_trace_id(out, value, other);
		break;
	case SQL_POINTER:
		put_text(out, (const char *)(uintptr_t)value);
		break;
	default:
		put_integer(out, value, true);
	}
}

void tacho__sql_cell(const struct tacho__sql_source *s, uint32_t table, uint32_t column,
		     uint32_t row, struct tacho__sql_cell *out)
{
	const struct tacho__sql_rows *rows = &s->rows[table];
	const struct tacho__sql_column *col = &tacho__sql_table_at(table)->columns[column];
	uint32_t process = 0;
	uint64_t value, other = 0;

	memset(out, 0, sizeof(*out));
	/* Nobody asks for a column that was not announced. */
	if (tacho__sql_column_fields(col) & ~rows->has)
		return;
	value = tacho__sql_value(rows, col->field, row);
	if (tacho__sql_column_fields(col) >> col->field2 & 1)
		other = tacho__sql_value(rows, col->field2, row);
	if (rows->has >> SQL_PROCESS & 1)
		process = (uint32_t)tacho__sql_value(rows, SQL_PROCESS, row);
	if (col->view == SQL_VALUE)
		put_value(out, tacho_read_definition(s->reader, process, (uint32_t)other), value);
	else if (col->view >= SQL_PID)
		put_known(s, out, col->view, process, (uint32_t)value);
	else
		put_number(out, col->view, value, other);
}
