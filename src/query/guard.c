/* Queries may come from a page or from a script that somebody sent: they read. */
#include <string.h>

#include "query/module.h"

/* The pragmas that only tell something. */
static int is_question(const char *pragma)
{
	static const char *const known[] = {
		"collation_list", "compile_options", "database_list", "function_list",
		"index_info",	  "index_list",	     "index_xinfo",   "module_list",
		"pragma_list",	  "table_info",	     "table_list",    "table_xinfo",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (sqlite3_stricmp(pragma, known[i]) == 0)
			return 1;
	return 0;
}

/* Tables and views of the query's own are in memory, or in the database that the user named. */
static int may(void *arg, int action, const char *what, const char *of, const char *database,
	       const char *trigger)
{
	(void)arg;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_ATTACH: /* VACUUM INTO asks for this, too */
	case SQLITE_DETACH:
		return SQLITE_DENY;
	case SQLITE_PRAGMA:
		return is_question(what) ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_FUNCTION:
		return strcmp(of, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
	default:
		return SQLITE_OK;
	}
}

int tacho__sql_guard(sqlite3 *db)
{
	return sqlite3_set_authorizer(db, may, NULL);
}
