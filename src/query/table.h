/*
 * The tables of `tacho sql`: facts of the model as columns of numbers.
 *
 * A table is filled when a query first reads it, and only with the fields that the query uses.
 * A field is one 64-bit number a row; what a query sees is made of fields when it is asked for:
 * the name behind an id, the function behind an address, a difference.
 *
 * Memory: a field is kept in blocks of SQL_BLOCK rows, each as its least value and what the
 * others have above it, in as few bytes as the block needs: none for a field that is the same in
 * all rows, mostly four for a time. The order of a field, four bytes a row, is made when the field
 * was searched some times, as a join does; a field whose rows are in order needs none.
 */
#ifndef TACHO_QUERY_TABLE_H
#define TACHO_QUERY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

#define SQL_FIELDS 32u
#define SQL_BLOCK 4096u /* rows */
#define SQL_ROWS_MAX (UINT32_MAX - SQL_BLOCK)

/* How a column is made of its field. Numbers are signed, as all are in SQLite. */
enum tacho__sql_view {
	SQL_NUMBER,	  /* as it is */
	SQL_KEY,	  /* as it is; rows are looked up by it */
	SQL_OPTIONAL,	  /* likewise, 0: NULL */
	SQL_NOT_NEGATIVE, /* as it is, -1: NULL */
	SQL_IF,		  /* field, NULL when field2 is 0 */
	SQL_DIFFERENCE,	  /* field minus field2; NULL when one of them is 0 */
	SQL_VALUE,	  /* of the counter field2: an integer, or the bits of a double */
	SQL_RESULT,	  /* of a poll */
	SQL_LEVEL,	  /* of a loop */
	SQL_DESCRIPTOR,	  /* kind of a descriptor */
	SQL_TRACE_ID,	  /* field and field2 as hexadecimal digits; NULL when both are 0 */
	SQL_POINTER,	  /* a text that lives as long as the source */
	/* From here on things are looked up in the process of the row. */
	SQL_PID,
	SQL_TID, /* of a thread's number */
	SQL_THREAD_NAME,
	SQL_ID_NAME,	 /* name of a definition; NULL for 0 */
	SQL_ID_UNIT,	 /* of a counter */
	SQL_ID_FUNCTION, /* the function behind a definition: callback, place, innermost own frame */
	SQL_ID_FILE,
	SQL_ID_LINE,
};

struct tacho__sql_column {
	const char *name;
	enum tacho__sql_view view;
	uint8_t field, field2;
	const char *text; /* what it says */
};

struct tacho__sql_block {
	uint64_t least;
	uint8_t *above; /* `width` bytes a row; NULL: all are the least */
	uint8_t width;	/* 0, 1, 2, 4 or 8 */
};

struct tacho__sql_field {
	struct tacho__sql_block *blocks;
	uint32_t count, capacity;
	uint64_t *tail;	 /* values of the block that is not full yet */
	int64_t last;	 /* value of the last row */
	bool unsorted;	 /* rows are not in its order */
	uint32_t asked;	 /* times that it was searched */
	uint32_t *order; /* rows in its order; NULL: not made */
};

struct tacho__sql_rows {
	struct tacho__sql_field field[SQL_FIELDS]; /* those of `has` */
	uint32_t has;				   /* bit i: field i is there */
	uint32_t count;
	uint64_t more; /* rows beyond `most` of the source, which are not there */
	bool filled;
};

struct tacho__sql_source;

struct tacho__sql_filling {
	struct tacho__sql_source *source;
	struct tacho__sql_rows *rows;
	int error;
};

struct tacho__sql_table {
	const char *name;
	const char *text; /* what a row is */
	const struct tacho__sql_column *columns;
	uint32_t column_count;
	/* Fills rows with the fields of rows->has. 0 or a negative errno. */
	int (*fill)(struct tacho__sql_filling *f);
	/* Instead: what puts a row for each fact of the trace; its argument is the filling. */
	struct tacho__facts facts;
};

#define SQL_TABLES 22u
const struct tacho__sql_table *tacho__sql_table_at(uint32_t index);
/* INTEGER, TEXT or NUMERIC (integer or real). */
const char *tacho__sql_column_type(const struct tacho__sql_column *c);

/* Field 0 of every table: the process, an index of the reader. */
#define SQL_PROCESS 0u

struct tacho__sql_stacks;
struct tacho__sql_text;

struct tacho__sql_source {
	struct tacho_reader *reader;
	struct tacho__sql_rows *rows; /* by table */
	struct tacho__sql_stacks
		*stacks; /* of samples that came without a definition; NULL: none yet */
	struct tacho__sql_text *texts; /* that fields of SQL_POINTER point to */
	uint32_t most;		       /* rows of a table; 0: all */
	/* Asked now and then while a table is filled, may be NULL; not 0: give up. */
	int (*stop)(void *arg, uint64_t ns);
	void *stop_arg;
};

/* Fills what is missing. 0 or a negative errno. */
int tacho__sql_need(struct tacho__sql_source *s, uint32_t table, uint32_t wanted);
void tacho__sql_source_free(struct tacho__sql_source *s);
/* A copy of a text that lives as long as the source; NULL without memory, which is the filling's error. */
const char *tacho__sql_keep(struct tacho__sql_filling *f, const char *text, size_t size);
const char *tacho__sql_keep_text(struct tacho__sql_filling *f, const char *text);

/* Fields that a column needs, as bits. */
uint32_t tacho__sql_column_fields(const struct tacho__sql_column *c);

static inline uint64_t tacho__sql_value(const struct tacho__sql_rows *rows, uint32_t field,
					uint32_t row)
{
	const struct tacho__sql_block *b = &rows->field[field].blocks[row / SQL_BLOCK];
	uint32_t at = row % SQL_BLOCK;

	switch (b->width) {
	case 0:
		return b->least;
	case 1:
		return b->least + b->above[at];
	case 2:
		return b->least + ((const uint16_t *)(const void *)b->above)[at];
	case 4:
		return b->least + ((const uint32_t *)(const void *)b->above)[at];
	default:
		return b->least + ((const uint64_t *)(const void *)b->above)[at];
	}
}

/* What a query sees in a column of a row. */
enum tacho__sql_cell_type {
	SQL_CELL_NULL = 0,
	SQL_CELL_INTEGER,
	SQL_CELL_REAL,
	SQL_CELL_TEXT,
	SQL_CELL_NO_MEMORY,
};

struct tacho__sql_cell {
	enum tacho__sql_cell_type type;
	int64_t integer;
	double real;
	const char *text; /* printable UTF-8; lives as long as the source, unless it was made */
	char *made;	  /* the caller frees it */
};

/* The fields of the column are there (tacho__sql_need); NULL where not. */
void tacho__sql_cell(const struct tacho__sql_source *s, uint32_t table, uint32_t column,
		     uint32_t row, struct tacho__sql_cell *out);

/* The rows whose field lies in [low, high], in one of three ways. */
struct tacho__sql_range {
	const uint32_t *order; /* NULL: rows as they are */
	uint32_t at, end;      /* in that order */
	bool check;	       /* each has to be looked at */
};
/* 0 or -ENOMEM. */
int tacho__sql_search(struct tacho__sql_rows *rows, uint32_t field, int64_t low, int64_t high,
		      struct tacho__sql_range *range);

#endif
