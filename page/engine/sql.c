/*
 * The tables of `tacho sql`, for the page's SQLite: what there is, and the rows of some columns of one
 * of them, a batch at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "query/allow.h"
#include "query/table.h"

#define ROWS_MOST 2000000u

static struct tacho__sql_source source;
static uint32_t opened;
static uint8_t asked[64];
static uint32_t asked_count;

EXPORT(page_sql_tables) const char *page_sql_tables(void)
{
	struct json j;

	answer_begin(&j);
	json_array(&j);
	for (uint32_t i = 0; i < SQL_TABLES; i++) {
		const struct tacho__sql_table *t = tacho__sql_table_at(i);

		json_object(&j);
		json_put_string(&j, "name", t->name);
		json_put_string(&j, "text", t->text);
		json_put_array(&j, "columns");
		for (uint32_t c = 0; c < t->column_count; c++) {
			json_object(&j);
			json_put_string(&j, "name", t->columns[c].name);
			json_put_string(&j, "type", tacho__sql_column_type(&t->columns[c]));
			json_put_string(&j, "text", t->columns[c].text);
			json_object_end(&j);
		}
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	return answer_end(&j);
}

static void put_names(struct json *j, const char *key, const char *const *names)
{
	json_put_array(j, key);
	for (; *names; names++)
		json_string(j, *names);
	json_array_end(j);
}

/* What queries may use, and how much of it: query/allow.h for the worker that runs SQLite. */
EXPORT(page_sql_rules) const char *page_sql_rules(void)
{
#define NAME(name) #name,
	static const char *const actions[] = {TACHO_SQL_READS(NAME) NULL};
#undef NAME
	struct json j;

	answer_begin(&j);
	json_object(&j);
	put_names(&j, "functions", tacho__sql_functions);
	put_names(&j, "modules", tacho__sql_modules);
	put_names(&j, "pragmas", tacho__sql_pragmas);
	put_names(&j, "actions", actions);
#define NUMBER(name, value) json_put_u64(&j, #name, value);
	json_put_object(&j, "config");
	TACHO_SQL_CONFIG(NUMBER)
	json_object_end(&j);
	json_put_object(&j, "limits");
	TACHO_SQL_LIMITS(NUMBER)
	json_object_end(&j);
#undef NUMBER
	json_put_u64(&j, "seconds", TACHO_SQL_SECONDS);
	json_put_u64(&j, "bytes", TACHO_SQL_BYTES);
	json_object_end(&j);
	return answer_end(&j);
}

/* Memory of the table that was opened last is given back. */
EXPORT(page_sql_close) const char *page_sql_close(void)
{
	tacho__sql_source_free(&source);
	memset(&source, 0, sizeof(source));
	return "null";
}

/* `columns`: their numbers, with spaces between. Says how many rows there are, and how many more than
   that the trace has. */
EXPORT(page_sql_open) const char *page_sql_open(uint32_t table, const char *columns)
{
	const struct tacho__sql_table *t = tacho__sql_table_at(table < SQL_TABLES ? table : 0);
	/* Something has to be read to count rows. */
	uint32_t fields = 1u << SQL_PROCESS;
	int error = -EINVAL;
	struct json j;
	char *end;

	page_sql_close();
	asked_count = 0;
	for (const char *at = columns; *at && asked_count < sizeof(asked); at = end) {
		unsigned long column = strtoul(at, &end, 10);

		if (end == at || column >= t->column_count)
			break;
		fields |= tacho__sql_column_fields(&t->columns[column]);
		asked[asked_count++] = (uint8_t)column;
	}
	opened = table;
	source.reader = page.reader;
	source.most = ROWS_MOST;
	source.rows = calloc(SQL_TABLES, sizeof(*source.rows));
	if (source.rows && table < SQL_TABLES)
		error = tacho__sql_need(&source, table, fields);
	answer_begin(&j);
	json_object(&j);
	json_put_known(&j, "error", error ? strerror(-error) : "");
	json_put_u64(&j, "rows", error ? 0 : source.rows[table].count);
	json_put_u64(&j, "more", error ? 0 : source.rows[table].more);
	json_object_end(&j);
	return answer_end(&j);
}

static void put_cell(struct json *j, uint32_t column, uint32_t row)
{
	struct tacho__sql_cell cell;

	tacho__sql_cell(&source, opened, column, row, &cell);
	switch (cell.type) {
	case SQL_CELL_INTEGER:
		json_i64(j, cell.integer);
		break;
	case SQL_CELL_REAL:
		json_f64(j, cell.real);
		break;
	case SQL_CELL_TEXT:
		json_string(j, cell.text);
		break;
	default:
		json_null(j);
	}
	free(cell.made);
}

/* Rows of the columns that were asked for. Integers from 2^53 on are texts. */
EXPORT(page_sql_rows) const char *page_sql_rows(uint32_t from, uint32_t count)
{
	uint32_t rows = source.rows ? source.rows[opened].count : 0;
	struct json j;

	answer_begin(&j);
	json_array(&j);
	for (uint32_t row = from; row < rows && row - from < count; row++) {
		json_array(&j);
		for (uint32_t i = 0; i < asked_count; i++)
			put_cell(&j, asked[i], row);
		json_array_end(&j);
	}
	json_array_end(&j);
	return answer_end(&j);
}
