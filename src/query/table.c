#include "query/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "query/fill.h"
#include "read/memory.h"

const char *tacho__sql_column_type(const struct tacho__sql_column *c)
{
	switch (c->view) {
	case SQL_VALUE:
		return "NUMERIC";
	case SQL_RESULT:
	case SQL_LEVEL:
	case SQL_DESCRIPTOR:
	case SQL_TRACE_ID:
	case SQL_POINTER:
	case SQL_THREAD_NAME:
	case SQL_ID_NAME:
	case SQL_ID_UNIT:
	case SQL_ID_FUNCTION:
	case SQL_ID_FILE:
		return "TEXT";
	default:
		return "INTEGER";
	}
}

uint32_t tacho__sql_column_fields(const struct tacho__sql_column *c)
{
	uint32_t fields = 1u << c->field;

	if (c->view == SQL_DIFFERENCE || c->view == SQL_IF || c->view == SQL_VALUE ||
	    c->view == SQL_TRACE_ID)
		fields |= 1u << c->field2;
	if (c->view >= SQL_PID || c->view == SQL_VALUE)
		fields |= 1u << SQL_PROCESS;
	return fields;
}

/* ------------------------------------------------------------------ filling */

int tacho__sql_run(struct tacho__sql_filling *f, const struct tacho__facts *facts)
{
	const struct tacho__sql_source *s = f->source;
	struct tacho__facts all = *facts;
	int error = tacho_read_seek(s->reader, 0);

	all.arg = f;
	all.error = &f->error;
	if (error >= 0)
		error = tacho__model_run(s->reader, &all, s->stop, s->stop_arg, NULL);
	/* model_run does not tell that it was stopped. */
	if (error >= 0 && s->stop && s->stop(s->stop_arg, 0))
		error = -EINTR;
	return error;
}

static uint8_t width_of(uint64_t most)
{
	return most == 0	    ? 0
	       : most <= UINT8_MAX  ? 1
	       : most <= UINT16_MAX ? 2
	       : most <= UINT32_MAX ? 4
				    : 8;
}

static void pack(struct tacho__sql_block *b, const uint64_t *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t above = values[i] - b->least;

		switch (b->width) {
		case 1:
			b->above[i] = (uint8_t)above;
			break;
		case 2:
			((uint16_t *)(void *)b->above)[i] = (uint16_t)above;
			break;
		case 4:
			((uint32_t *)(void *)b->above)[i] = (uint32_t)above;
			break;
		default:
			((uint64_t *)(void *)b->above)[i] = above;
		}
	}
}

/* The first `count` values of the tail become a block. */
static int seal(struct tacho__sql_field *f, uint32_t count)
{
	uint64_t least = UINT64_MAX, most = 0;
	struct tacho__sql_block *b;

	if (TACHO__GROW(f->blocks, f->capacity, f->count + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		least = f->tail[i] < least ? f->tail[i] : least;
		most = f->tail[i] > most ? f->tail[i] : most;
	}
	b = &f->blocks[f->count];
	*b = (struct tacho__sql_block){.least = least, .width = width_of(most - least)};
	if (b->width) {
		b->above = malloc((size_t)count * b->width);
		if (!b->above)
			return -ENOMEM;
		pack(b, f->tail, count);
	}
	f->count++;
	return 0;
}

static int put_value(struct tacho__sql_field *f, uint32_t row, uint64_t value)
{
	if (!f->tail) {
		f->tail = malloc(SQL_BLOCK * sizeof(*f->tail));
		if (!f->tail)
			return -ENOMEM;
	}
	if (row && (int64_t)value < f->last)
		f->unsorted = true;
	f->last = (int64_t)value;
	f->tail[row % SQL_BLOCK] = value;
	return row % SQL_BLOCK == SQL_BLOCK - 1 ? seal(f, SQL_BLOCK) : 0;
}

static int add_row(struct tacho__sql_rows *rows, const uint64_t *values)
{
	if (rows->count >= SQL_ROWS_MAX)
		return -EOVERFLOW;
	for (uint32_t left = rows->has; left; left &= left - 1) {
		uint32_t field = (uint32_t)__builtin_ctz(left);
		int error = put_value(&rows->field[field], rows->count, values[field]);

		if (error)
			return error;
	}
	rows->count++;
	return 0;
}

void tacho__sql_put(struct tacho__sql_filling *f, const uint64_t *values)
{
	int error = 0;

	if (f->source->most && f->rows->count >= f->source->most)
		f->rows->more++;
	else if (!f->error)
		error = add_row(f->rows, values);
	if (error)
		f->error = error;
}

static int finish(struct tacho__sql_rows *rows)
{
	int error = 0;

	for (uint32_t i = 0; i < SQL_FIELDS; i++) {
		struct tacho__sql_field *f = &rows->field[i];

		if (rows->has >> i & 1 && rows->count % SQL_BLOCK && !error)
			error = seal(f, rows->count % SQL_BLOCK);
		free(f->tail);
		f->tail = NULL;
	}
	return error;
}

static void field_free(struct tacho__sql_field *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		free(f->blocks[i].above);
	free(f->blocks);
	free(f->tail);
	free(f->order);
	memset(f, 0, sizeof(*f));
}

/*
 * Only the missing fields are read: cursors of a query that runs may stand in the rows, and these
 * stay what they are. A trace gives the same rows each time.
 */
int tacho__sql_need(struct tacho__sql_source *s, uint32_t table, uint32_t wanted)
{
	struct tacho__sql_rows *rows = &s->rows[table];
	struct tacho__sql_rows more = {.has = wanted & ~rows->has};
	struct tacho__sql_filling f = {.source = s, .rows = &more};
	const struct tacho__sql_table *t = tacho__sql_table_at(table);
	int error;

	if (rows->filled && !more.has)
		return 0;
	error = t->fill ? t->fill(&f) : tacho__sql_run(&f, &t->facts);
	if (!error)
		error = finish(&more);
	if (!error && rows->filled && rows->count != more.count)
		error = -ESTALE;
	for (uint32_t i = 0; i < SQL_FIELDS; i++)
		if (error)
			field_free(&more.field[i]);
		else if (more.has >> i & 1)
			rows->field[i] = more.field[i];
	if (error)
		return error;
	rows->has |= more.has;
	rows->count = more.count;
	rows->more = more.more;
	rows->filled = true;
	return 0;
}

/* -------------------------------------------------------------------- texts */

struct tacho__sql_text {
	struct tacho__sql_text *next;
	char text[];
};

const char *tacho__sql_keep(struct tacho__sql_filling *f, const char *text, size_t size)
{
	struct tacho__sql_text *t = malloc(sizeof(*t) + size + 1);

	if (!t) {
		f->error = -ENOMEM;
		return NULL;
	}
	memcpy(t->text, text, size);
	t->text[size] = 0;
	t->next = f->source->texts;
	f->source->texts = t;
	return t->text;
}

const char *tacho__sql_keep_text(struct tacho__sql_filling *f, const char *text)
{
	return tacho__sql_keep(f, text, strlen(text));
}

void tacho__sql_source_free(struct tacho__sql_source *s)
{
	for (uint32_t i = 0; s->rows && i < SQL_TABLES; i++)
		for (uint32_t f = 0; f < SQL_FIELDS; f++)
			field_free(&s->rows[i].field[f]);
	free(s->rows);
	s->rows = NULL;
	while (s->texts) {
		struct tacho__sql_text *next = s->texts->next;

		free(s->texts);
		s->texts = next;
	}
	tacho__sql_stacks_free(s);
}
