/*
 * Queries may come from a page or from a script that somebody sent, and a database that they write to
 * may be somebody else's. Whatever allow.h does not name is refused.
 */
#include <stdlib.h>
#include <string.h>

#include "query/allow.h"
#include "query/module.h"

static int is_listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (sqlite3_stricmp(*list, name) == 0)
			return 1;
	return 0;
}

static int may(void *arg, int action, const char *what, const char *of, const char *database,
	       const char *trigger)
{
	(void)arg;
	(void)database;
	(void)trigger;
	if (action == SQLITE_FUNCTION)
		return is_listed(tacho__sql_functions, of) ? SQLITE_OK : SQLITE_DENY;
	if (action == SQLITE_PRAGMA)
		return is_listed(tacho__sql_pragmas, what) ? SQLITE_OK : SQLITE_DENY;
	switch (action) {
#define ALLOWED(name) case SQLITE_##name:
		TACHO_SQL_READS(ALLOWED)
		TACHO_SQL_WRITES(ALLOWED)
#undef ALLOWED
		return SQLITE_OK;
	default:
		return SQLITE_DENY;
	}
}

/*
 * Functions of extensions that are not listed, such as full-text search, do not exist any more. They hold
 * memory of their module, which is taken out; and a default or a check in the schema of a database is not
 * shown to the authorizer when it is read. Those that are SQLite's own can only be refused.
 */
static int remove_functions(sqlite3 *db)
{
	sqlite3_stmt *s = NULL;
	int result = sqlite3_prepare_v2(
		db, "SELECT DISTINCT name, narg FROM pragma_function_list WHERE NOT builtin", -1,
		&s, NULL);
	char *names = NULL; /* "name\nnarg\n" each: none can be removed while they are listed */

	while (result == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(s, 0);

		if (name && is_listed(tacho__sql_functions, name))
			continue;
		names = sqlite3_mprintf("%z%s\n%d\n", names, name, sqlite3_column_int(s, 1));
		result = names ? SQLITE_OK : SQLITE_NOMEM;
	}
	if (sqlite3_finalize(s) != SQLITE_OK)
		result = SQLITE_ERROR;
	for (char *rest = names, *name;
	     result == SQLITE_OK && (name = strsep(&rest, "\n")) && rest;) {
		int arguments = atoi(strsep(&rest, "\n"));

		result = sqlite3_create_function_v2(db, name, arguments, SQLITE_ANY, NULL, NULL,
						    NULL, NULL, NULL);
	}
	sqlite3_free(names);
	return result;
}

int tacho__sql_harden(sqlite3 *db)
{
	int result = SQLITE_OK;

	/* A build of SQLite that does not know what is switched off does not have it. */
#define SWITCH(name, value)                                                                \
	if (sqlite3_db_config(db, SQLITE_DBCONFIG_##name, value, (int *)0) != SQLITE_OK && \
	    (value))                                                                       \
		result = SQLITE_ERROR;
	TACHO_SQL_CONFIG(SWITCH)
#undef SWITCH
#define LIMIT(name, value) sqlite3_limit(db, SQLITE_LIMIT_##name, value);
	TACHO_SQL_LIMITS(LIMIT)
#undef LIMIT
	if (result == SQLITE_OK)
		result = remove_functions(db);
	/* This call takes a list of pointers to text that it does not change. */
	if (result == SQLITE_OK)
		result = sqlite3_drop_modules(db, (const char **)(uintptr_t)tacho__sql_modules);
	/* As SQLite's own advice on files of others has it; it maps no file either. */
	if (result == SQLITE_OK)
		result = sqlite3_exec(db, "PRAGMA cell_size_check = 1; PRAGMA mmap_size = 0", NULL,
				      NULL, NULL);
	return result;
}

int tacho__sql_guard(sqlite3 *db)
{
	return sqlite3_set_authorizer(db, may, NULL);
}
