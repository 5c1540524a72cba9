/* Rows of a query on standard output. */
#ifndef TACHO_CLI_SQL_OUTPUT_H
#define TACHO_CLI_SQL_OUTPUT_H

#include <sqlite3.h>
#include <stdbool.h>

enum sql_form {
	SQL_FORM_TABLE, /* columns for people; NULL is "-" */
	SQL_FORM_CSV,	/* RFC 4180, a line with the names first; NULL is nothing, "" is "" */
	SQL_FORM_JSON,	/* an object for each row, on a line of its own */
};

/* false: there is no such. */
bool sql_form_parse(const char *text, enum sql_form *form);
/* Steps through all rows. What sqlite3_step said last, SQLITE_DONE when all is well. */
int sql_output(sqlite3_stmt *s, enum sql_form form);

#endif
