#include "cli/sql_output.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "text/json.h"
#include "text/text.h"

#define WIDTH_MAX 60u
/* What column widths are taken from: so many rows, or fewer if these have so many bytes. */
#define BUFFERED 2000u
#define BUFFERED_BYTES (16u << 20)

bool sql_form_parse(const char *text, enum sql_form *form)
{
	static const char *const names[] = {"table", "csv", "json"};

	for (unsigned i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*form = (enum sql_form)i;
			return true;
		}
	return false;
}

/* Nobody reads any more: a row after the other would be made for nothing. */
static int step(sqlite3_stmt *s)
{
	return ferror(stdout) ? SQLITE_DONE : sqlite3_step(s);
}

/* A text may hold zero bytes; size is all of it. */
static const char *cell(sqlite3_stmt *s, int column, size_t *size)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	*size = text ? (size_t)sqlite3_column_bytes(s, column) : 0;
	return text ? text : "";
}

/* ---------------------------------------------------------------------- csv */

static void put_csv_text(const char *text, size_t size)
{
	bool quoted = size == 0;

	for (size_t i = 0; i < size && !quoted; i++)
		quoted = strchr(",\"\r\n", text[i]) != NULL; /* also for a zero byte */
	if (!quoted) {
		fwrite(text, 1, size, stdout);
		return;
	}
	putchar('"');
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

static int put_csv(sqlite3_stmt *s)
{
	int n = sqlite3_column_count(s), result = step(s);

	/* A query that fails at once prints nothing. */
	if (result != SQLITE_ROW && result != SQLITE_DONE)
		return result;
	for (int i = 0; i < n; i++) {
		const char *name = sqlite3_column_name(s, i);

		fputs(i ? "," : "", stdout);
		put_csv_text(name ? name : "", name ? strlen(name) : 0);
	}
	fputs(n ? "\r\n" : "", stdout);
	for (; result == SQLITE_ROW; result = step(s)) {
		for (int i = 0; i < n; i++) {
			size_t size;
			const char *text;

			fputs(i ? "," : "", stdout);
			if (sqlite3_column_type(s, i) == SQLITE_NULL)
				continue;
			text = cell(s, i, &size);
			put_csv_text(text, size);
		}
		fputs("\r\n", stdout);
	}
	return result;
}

/* --------------------------------------------------------------------- json */

static void put_json_cell(struct json *j, sqlite3_stmt *s, int column)
{
	const char *text;
	size_t size;

	switch (sqlite3_column_type(s, column)) {
	case SQLITE_INTEGER:
		json_i64(j, sqlite3_column_int64(s, column));
		break;
	case SQLITE_FLOAT:
		json_f64(j, sqlite3_column_double(s, column));
		break;
	case SQLITE_NULL:
		json_null(j);
		break;
	default:
		text = cell(s, column, &size);
		json_string_n(j, text, size);
	}
}

static int put_json(sqlite3_stmt *s)
{
	int n = sqlite3_column_count(s), result;
	struct json j;

	json_begin(&j, stdout, false);
	while ((result = step(s)) == SQLITE_ROW) {
		json_object(&j);
		for (int i = 0; i < n; i++) {
			const char *name = sqlite3_column_name(s, i);

			json_key(&j, name ? name : "");
			put_json_cell(&j, s, i);
		}
		json_object_end(&j);
		json_end_line(&j);
	}
	return result;
}

/* -------------------------------------------------------------------- table */

struct grid {
	char **cells; /* row by row; the first are the names */
	size_t count, capacity;
	size_t *width;
	bool *right;
	size_t columns;
	size_t bytes; /* of the cells, before they were escaped */
};

/* As it is shown: escaped, so that a width can be taken. */
static char *shown(const char *text, size_t size)
{
	char *out = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&out, &length);

	if (!stream)
		return NULL;
	text_put_n(stream, text, size);
	if (fclose(stream) == 0)
		return out;
	free(out);
	return NULL;
}

static bool grid_add(struct grid *g, const char *text, size_t size)
{
	size_t column = g->count % g->columns, width;

	if (g->count == g->capacity) {
		size_t capacity = g->capacity ? 2 * g->capacity : 256;
		char **cells = realloc(g->cells, capacity * sizeof(*cells));

		if (!cells)
			return false;
		g->cells = cells;
		g->capacity = capacity;
	}
	g->cells[g->count] = shown(text, size);
	if (!g->cells[g->count])
		return false;
	g->bytes += size;
	width = text_width(g->cells[g->count++]);
	if (width > g->width[column])
		g->width[column] = width < WIDTH_MAX ? width : WIDTH_MAX;
	return true;
}

static void put_cell(const struct grid *g, size_t i)
{
	size_t column = i % g->columns, width = text_width(g->cells[i]);
	bool last = column + 1 == g->columns;
	size_t blanks = width < g->width[column] ? g->width[column] - width : 0;

	if (column)
		fputs("  ", stdout);
	printf("%*s%s", g->right[column] ? (int)blanks : 0, "", g->cells[i]);
	printf("%*s%s", g->right[column] || last ? 0 : (int)blanks, "", last ? "\n" : "");
}

static void grid_flush(struct grid *g, bool names)
{
	for (size_t i = 0; i < g->count; i++) {
		if (names && i == 0)
			fputs(cli_colour(stdout, CLI_BOLD), stdout);
		put_cell(g, i);
		if (names && i + 1 == g->columns)
			fputs(cli_colour(stdout, CLI_PLAIN), stdout);
		free(g->cells[i]);
	}
	g->count = g->bytes = 0;
}

/* A column of numbers stands on the right; the first row that is not NULL decides. */
static bool grid_row(struct grid *g, sqlite3_stmt *s, bool *decided)
{
	for (int i = 0; i < (int)g->columns; i++) {
		int type = sqlite3_column_type(s, i);
		size_t size = 1;
		const char *text = type == SQLITE_NULL ? "-" : cell(s, i, &size);

		if (!decided[i] && type != SQLITE_NULL) {
			decided[i] = true;
			g->right[i] = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
		}
		if (!grid_add(g, text, size))
			return false;
	}
	return true;
}

static int put_table(sqlite3_stmt *s)
{
	int n = sqlite3_column_count(s), result = SQLITE_DONE;
	struct grid g = {.columns = (size_t)n};
	uint64_t rows = 0;
	bool names = true, ok = true, *decided;

	if (!n)
		return step(s);
	g.width = calloc((size_t)n, sizeof(*g.width));
	g.right = calloc((size_t)n, sizeof(*g.right));
	decided = calloc((size_t)n, sizeof(*decided));
	ok = g.width && g.right && decided;
	for (int i = 0; ok && i < n; i++) {
		const char *name = sqlite3_column_name(s, i);

		ok = name && grid_add(&g, name, strlen(name));
	}
	while (ok && (result = step(s)) == SQLITE_ROW) {
		ok = grid_row(&g, s, decided);
		if (++rows % BUFFERED == 0 || g.bytes > BUFFERED_BYTES) {
			grid_flush(&g, names);
			names = false;
		}
	}
	/* A query that fails at once prints nothing. */
	if (ok && (rows || result == SQLITE_DONE))
		grid_flush(&g, names);
	for (size_t i = 0; i < g.count; i++)
		free(g.cells[i]);
	free(g.cells);
	free(g.width);
	free(g.right);
	free(decided);
	return ok ? result : SQLITE_NOMEM;
}

int sql_output(sqlite3_stmt *s, enum sql_form form)
{
	return form == SQL_FORM_CSV    ? put_csv(s)
	       : form == SQL_FORM_JSON ? put_json(s)
				       : put_table(s);
}
