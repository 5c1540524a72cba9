/* A trace, an SQLite database with its tables, and queries to it. */
#ifndef TACHO_CLI_SQL_SESSION_H
#define TACHO_CLI_SQL_SESSION_H

#include <stdbool.h>

/* Without SQLite (meson's option `sql`) there is none. */
#ifdef TACHO_SQL
static inline bool sql_session_exists(void)
{
	return true;
}
bool sql_session_has_form(const char *form);
/* Opens the trace and answers the queries, those that are typed if none are given. into: NULL, or
   a database of SQLite that they may write to. Returns an exit status. */
int sql_session(const char *path, const char *form, const char *into, char **queries, int count);
#else
static inline bool sql_session_exists(void)
{
	return false;
}
static inline bool sql_session_has_form(const char *form)
{
	return form[0] != 0;
}
static inline int sql_session(const char *path, const char *form, const char *into, char **queries,
			      int count)
{
	(void)path;
	(void)form;
	(void)into;
	(void)queries;
	return count;
}
#endif

#endif
