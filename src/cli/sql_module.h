/* The tables (sql_table.h) in an SQLite database. */
#ifndef TACHO_CLI_SQL_MODULE_H
#define TACHO_CLI_SQL_MODULE_H

#include <sqlite3.h>

#include "cli/sql_table.h"

/* Adds all tables to `db`. SQLITE_OK or what SQLite says. */
int sql_module_add(sqlite3 *db, struct sql_source *source);

#endif
