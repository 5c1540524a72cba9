#include "query/files.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* SQLite keeps file systems in one list for all of the program. */
static sqlite3_vfs *below;
static sqlite3_vfs files;
static char *database; /* its path, as SQLite knows it; NULL: none is open yet */

/* The database, or what SQLite calls a file that belongs to it. */
static int is_ours(const char *name)
{
	static const char *const ends[] = {"", "-journal", "-wal", NULL};
	size_t size = database ? strlen(database) : 0;

	for (unsigned i = 0; database && ends[i]; i++)
		if (strncmp(name, database, size) == 0 && strcmp(name + size, ends[i]) == 0)
			return 1;
	return 0;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *got)
{
	(void)vfs;
	file->pMethods = NULL;
	if (name && !database && flags & SQLITE_OPEN_MAIN_DB) {
		database = strdup(name);
		if (!database)
			return SQLITE_NOMEM;
	}
	/* One without a name is a temporary one. */
	if (name && !is_ours(name))
		return SQLITE_CANTOPEN;
	return below->xOpen(below, name, file, flags, got);
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs;
	return is_ours(name) ? below->xDelete(below, name, sync) : SQLITE_IOERR_DELETE;
}

const char *tacho__sql_files(void)
{
	below = sqlite3_vfs_find(NULL);
	if (!below)
		return NULL;
	free(database);
	database = NULL;
	files = *below;
	files.zName = "tacho";
	files.pNext = NULL;
	files.xOpen = open_file;
	files.xDelete = delete_file;
	return sqlite3_vfs_register(&files, 0) == SQLITE_OK ? files.zName : NULL;
}
