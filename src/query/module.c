/*
 * Virtual tables of SQLite over the columns.
 *
 * A comparison with one field, or a range of it, is done here; SQLite makes it again, and the
 * others. So joins over ids and ranges of time cost the rows that they find. Only fields by which
 * rows are worth being looked up are searched (SQL_KEY, SQL_OPTIONAL): of one process or one
 * thread there are too many.
 */
#include "query/module.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/files.h"
#include "query/fill.h"

struct module_table {
	sqlite3_vtab base; /* must be first */
	struct tacho__sql_source *source;
	uint32_t table;
};

struct module_cursor {
	sqlite3_vtab_cursor base; /* must be first */
	struct tacho__sql_range range;
	uint32_t field; /* for range.check */
	int64_t low, high;
};

/* idxNum of a plan: these and the field << 8; idxStr: fields that the query uses. */
enum plan { PLAN_ALL = 0, PLAN_FROM = 1, PLAN_TO = 2, PLAN_EQUAL = 4 };

static struct module_table *table_of(sqlite3_vtab *base)
{
	return (struct module_table *)(void *)base;
}

static int connect(sqlite3 *db, void *arg, int argc, const char *const *argv, sqlite3_vtab **out,
		   char **error)
{
	struct tacho__sql_source *source = arg;
	struct module_table *t;
	char text[4096] = "CREATE TABLE x("; /* no table comes near that */
	size_t used = strlen(text);
	uint32_t index = 0;
	const struct tacho__sql_table *table;

	(void)argc;
	(void)error;
	while (index < SQL_TABLES && strcmp(tacho__sql_table_at(index)->name, argv[2]) != 0)
		index++;
	if (index == SQL_TABLES)
		return SQLITE_ERROR;
	table = tacho__sql_table_at(index);
	for (uint32_t i = 0; i < table->column_count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\"%s\" %s",
					 i ? ", " : "", table->columns[i].name,
					 tacho__sql_column_type(&table->columns[i]));
	snprintf(text + used, sizeof(text) - used, ")");
	/* Views over it are as harmless as itself. */
	if (sqlite3_declare_vtab(db, text) != SQLITE_OK ||
	    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS) != SQLITE_OK)
		return SQLITE_ERROR;
	t = sqlite3_malloc(sizeof(*t));
	if (!t)
		return SQLITE_NOMEM;
	memset(t, 0, sizeof(*t));
	t->source = source;
	t->table = index;
	*out = &t->base;
	return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* -------------------------------------------------------------------- plans */

static enum plan plan_of(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return PLAN_EQUAL;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return PLAN_FROM;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return PLAN_TO;
	default:
		return PLAN_ALL;
	}
}

static int is_searched(enum tacho__sql_view view)
{
	return view == SQL_KEY || view == SQL_OPTIONAL;
}

/* An instant has one row or few, a task may have as many as there are. */
static int is_time(const struct tacho__sql_column *c)
{
	size_t size = strlen(c->name);

	return size >= 2 && strcmp(c->name + size - 2, "ns") == 0;
}

/* What comparisons with one field can be done here; *time: it is one. */
static unsigned plans_with(const sqlite3_index_info *info, const struct tacho__sql_table *table,
			   uint32_t field, int *time)
{
	unsigned plans = PLAN_ALL;

	*time = 0;
	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;

		if (!info->aConstraint[i].usable || column < 0 ||
		    !is_searched(table->columns[column].view) ||
		    table->columns[column].field != field)
			continue;
		plans |= plan_of(info->aConstraint[i].op);
		*time = is_time(&table->columns[column]);
	}
	return plans & PLAN_EQUAL ? PLAN_EQUAL : plans;
}

/* Passes the values of the plan's comparisons to the filter: one, or from and to. */
static void use(sqlite3_index_info *info, const struct tacho__sql_table *table, uint32_t field,
		unsigned plans)
{
	unsigned left = plans;

	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;
		unsigned plan = plan_of(info->aConstraint[i].op);

		if (!info->aConstraint[i].usable || column < 0 || !(left & plan) ||
		    !is_searched(table->columns[column].view) ||
		    table->columns[column].field != field)
			continue;
		info->aConstraintUsage[i].argvIndex = plan == PLAN_TO && plans & PLAN_FROM ? 2 : 1;
		left &= ~plan;
	}
}

/* How many of so many rows a plan leaves, as far as can be guessed. */
static double rows_left(unsigned plans, int time, double rows)
{
	double left = plans == PLAN_EQUAL	       ? (time ? 1 : sqrt(rows))
		      : plans == (PLAN_FROM | PLAN_TO) ? rows / 1000
		      : plans			       ? rows / 3
						       : rows;

	return left < 1 ? 1 : left;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct module_table *t = table_of(base);
	const struct tacho__sql_table *table = tacho__sql_table_at(t->table);
	const struct tacho__sql_rows *rows = &t->source->rows[t->table];
	double count = rows->filled ? rows->count + 1.0 : 1e6, best = count;
	uint32_t fields = 0, field = 0;
	unsigned plans = PLAN_ALL;

	for (uint32_t i = 0; i < table->column_count; i++)
		if (info->colUsed >> (i < 63 ? i : 63) & 1)
			fields |= tacho__sql_column_fields(&table->columns[i]);
	for (uint32_t f = 0; f < SQL_FIELDS; f++) {
		int time;
		unsigned with = plans_with(info, table, f, &time);

		if (!with || rows_left(with, time, count) >= best)
			continue;
		plans = with;
		field = f;
		best = rows_left(with, time, count);
	}
	if (plans) {
		use(info, table, field, plans);
		fields |= 1u << field;
	}
	info->idxNum = (int)(plans | field << 8);
	info->idxStr = sqlite3_mprintf("%u", fields);
	if (!info->idxStr)
		return SQLITE_NOMEM;
	info->needToFreeIdxStr = 1;
	info->estimatedCost = best + 10;
	info->estimatedRows = (sqlite3_int64)best;
	return SQLITE_OK;
}

/* ------------------------------------------------------------------ cursors */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct module_cursor *c = sqlite3_malloc(sizeof(*c));

	(void)base;
	if (!c)
		return SQLITE_NOMEM;
	memset(c, 0, sizeof(*c));
	*out = &c->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

/* The integer next to a number: not above it, or not below. 0: it is none. */
static int number_of(sqlite3_value *given, bool below, int64_t *out)
{
	double real;

	if (sqlite3_value_type(given) == SQLITE_INTEGER) {
		*out = sqlite3_value_int64(given);
		return 1;
	}
	if (sqlite3_value_type(given) != SQLITE_FLOAT)
		return 0;
	real = sqlite3_value_double(given);
	real = below ? floor(real) : ceil(real);
	*out = real >= 0x1p63 ? INT64_MAX : real <= -0x1p63 ? INT64_MIN : (int64_t)real;
	return 1;
}

/* 1: low and high are set; 0: all rows may be right; -1: none is. A range that is too wide is
   right, because SQLite compares again. */
static int limits(struct module_cursor *c, unsigned plans, int argc, sqlite3_value **argv)
{
	int used = 0;

	c->low = INT64_MIN;
	c->high = INT64_MAX;
	for (int i = 0; i < argc; i++)
		if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
			return -1;
	/* Texts may be numbers to SQLite: it sorts that out. */
	if (argc && plans & (PLAN_EQUAL | PLAN_FROM))
		used |= number_of(argv[0], true, &c->low);
	if (argc && plans & PLAN_EQUAL)
		used |= number_of(argv[0], false, &c->high);
	if (argc && plans & PLAN_TO)
		used |= number_of(argv[argc - 1], false, &c->high);
	return used;
}

/* Goes on to a row in the range, where the range does not say it. */
static void skip(struct module_cursor *c)
{
	const struct module_table *t = table_of(c->base.pVtab);
	const struct tacho__sql_rows *rows = &t->source->rows[t->table];

	while (c->range.check && c->range.at < c->range.end) {
		int64_t x = (int64_t)tacho__sql_value(rows, c->field, c->range.at);

		if (x >= c->low && x <= c->high)
			break;
		c->range.at++;
	}
}

static int fill_error(struct module_table *t, int error)
{
	const char *name = tacho__sql_table_at(t->table)->name;

	if (error == -ENOMEM)
		return SQLITE_NOMEM;
	if (error == -EINTR)
		return SQLITE_INTERRUPT;
	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg =
		error == -EOVERFLOW
			? sqlite3_mprintf("the table %s has more than %u rows", name, SQL_ROWS_MAX)
			: sqlite3_mprintf("cannot read the table %s: %s", name, strerror(-error));
	return SQLITE_ERROR;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
		  sqlite3_value **argv)
{
	struct module_cursor *c = (struct module_cursor *)(void *)base;
	struct module_table *t = table_of(base->pVtab);
	struct tacho__sql_rows *rows = &t->source->rows[t->table];
	int error = tacho__sql_need(t->source, t->table, (uint32_t)strtoul(text, NULL, 10)), known;

	if (error)
		return fill_error(t, error);
	c->field = (uint32_t)number >> 8;
	known = limits(c, (unsigned)number & 0xff, argc, argv);
	c->range = (struct tacho__sql_range){.end = known < 0 ? 0 : rows->count};
	if (known > 0 && tacho__sql_search(rows, c->field, c->low, c->high, &c->range))
		return SQLITE_NOMEM;
	skip(c);
	return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *base)
{
	struct module_cursor *c = (struct module_cursor *)(void *)base;

	c->range.at++;
	skip(c);
	return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
	const struct module_cursor *c = (const struct module_cursor *)(const void *)base;

	return c->range.at >= c->range.end;
}

static uint32_t row_of(const struct module_cursor *c)
{
	return c->range.order ? c->range.order[c->range.at] : c->range.at;
}

/* ------------------------------------------------------------------- values */

static int column(sqlite3_vtab_cursor *base, sqlite3_context *out, int index)
{
	const struct module_cursor *c = (const struct module_cursor *)(const void *)base;
	const struct module_table *t = table_of(base->pVtab);
	struct tacho__sql_cell cell;

	tacho__sql_cell(t->source, t->table, (uint32_t)index, row_of(c), &cell);
	switch (cell.type) {
	case SQL_CELL_INTEGER:
		sqlite3_result_int64(out, cell.integer);
		break;
	case SQL_CELL_REAL:
		sqlite3_result_double(out, cell.real);
		break;
	case SQL_CELL_TEXT:
		/* The text lives as long as the reader, but for one that was made. */
		sqlite3_result_text(out, cell.text, -1,
				    cell.made ? SQLITE_TRANSIENT : SQLITE_STATIC);
		break;
	case SQL_CELL_NO_MEMORY:
		sqlite3_result_error_nomem(out);
		break;
	default:
		sqlite3_result_null(out);
	}
	free(cell.made);
	return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = row_of((const struct module_cursor *)(const void *)base);
	return SQLITE_OK;
}

int tacho__sql_open(sqlite3 **db, struct tacho__sql_source *source)
{
	static const sqlite3_module module = {
		.iVersion = 0,
		.xCreate = NULL, /* they are just there */
		.xConnect = connect,
		.xBestIndex = best_index,
		.xDisconnect = disconnect,
		.xOpen = open_cursor,
		.xClose = close_cursor,
		.xFilter = filter,
		.xNext = next,
		.xEof = at_end,
		.xColumn = column,
		.xRowid = rowid,
	};
	const char *vfs = tacho__sql_files();
	int result = SQLITE_NOMEM;

	source->rows = calloc(SQL_TABLES, sizeof(*source->rows));
	if (source->rows && vfs)
		result = sqlite3_open_v2(":memory:", db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
					 vfs);
	if (result == SQLITE_OK)
		result = tacho__sql_harden(*db);
	for (uint32_t i = 0; i < SQL_TABLES && result == SQLITE_OK; i++)
		result = sqlite3_create_module_v2(*db, tacho__sql_table_at(i)->name, &module,
						  source, NULL);
	return result;
}
