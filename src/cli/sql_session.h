/* A trace, an SQLite database with its tables, and queries to it. */
#ifndef TACHO_CLI_SQL_SESSION_H
#define TACHO_CLI_SQL_SESSION_H

#include <stdbool.h>
#include <stdint.h>

struct sql_session_options {
	const char *form; /* "table", "csv" or "json" */
	const char *into; /* a database of SQLite that queries may write to; NULL: none */
	/* Of each query: CPU time, and memory of SQLite. */
	uint64_t max_time_ns, max_memory;
};

/* Without SQLite (meson's option `sql`) there is none. */
#ifdef TACHO_SQL
static inline bool sql_session_exists(void)
{
	return true;
}
bool sql_session_has_form(const char *form);
/* Opens the trace and answers the queries, those that are typed if none are given. Returns an exit
   status. */
int sql_session(const char *path, const struct sql_session_options *options, char **queries,
		int count);
#else
static inline bool sql_session_exists(void)
{
	return false;
}
static inline bool sql_session_has_form(const char *form)
{
	return form[0] != 0;
}
static inline int sql_session(const char *path, const struct sql_session_options *options,
			      char **queries, int count)
{
	(void)path;
	(void)options;
	(void)queries;
	return count;
}
#endif

#endif
