/* The tables (table.h) in an SQLite database. */
#ifndef TACHO_QUERY_MODULE_H
#define TACHO_QUERY_MODULE_H

#include <sqlite3.h>

#include "query/table.h"

/*
 * A database in memory with all tables of `source`, which has its reader. SQLITE_OK or what SQLite
 * says, also through *db where that is not NULL. Ends with sqlite3_close, then
 * tacho__sql_source_free.
 */
int tacho__sql_open(sqlite3 **db, struct tacho__sql_source *source);
/* First of all: what allow.h switches off is off, and no virtual table is left but those that it
   names. SQLITE_OK or an error. */
int tacho__sql_harden(sqlite3 *db);
/* From here on queries use only what allow.h names, and touch no files but those of databases that are
   already attached. */
int tacho__sql_guard(sqlite3 *db);

#endif
