/*
 * What a query may use, for `tacho sql` (guard.c) and for the page, whose engine hands the same lists
 * to the worker that runs SQLite (page/engine/sql.c).
 *
 * Everything else is refused. SQLite has functions, virtual tables and pragmas that reach files or
 * native code, as fts3_tokenizer() does, and each version of it adds some.
 */
#ifndef TACHO_QUERY_ALLOW_H
#define TACHO_QUERY_ALLOW_H

/* Lists end with NULL. */
extern const char *const tacho__sql_functions[];
extern const char *const tacho__sql_modules[]; /* beside the tables of the trace */
extern const char *const tacho__sql_pragmas[];

/* Actions of sqlite3_set_authorizer(), without SQLITE_. In the page queries only read. Elsewhere they
   also have tables of their own, in memory or in the database that the user named. */
/* clang-format off */
#define TACHO_SQL_READS(X) X(FUNCTION) X(PRAGMA) X(READ) X(RECURSIVE) X(SELECT)
#define TACHO_SQL_WRITES(X)                                                             \
	X(CREATE_INDEX) X(CREATE_TABLE) X(CREATE_VIEW) X(DELETE) X(DROP_INDEX)          \
	X(DROP_TABLE) X(DROP_VIEW) X(INSERT) X(REINDEX) X(SAVEPOINT) X(TRANSACTION)     \
	X(UPDATE) X(CREATE_TEMP_INDEX) X(CREATE_TEMP_TABLE) X(CREATE_TEMP_VIEW)         \
	X(DROP_TEMP_INDEX) X(DROP_TEMP_TABLE) X(DROP_TEMP_VIEW)
/* clang-format on */

/* Switches of sqlite3_db_config(), without SQLITE_DBCONFIG_. */
#define TACHO_SQL_CONFIG(X)         \
	X(DEFENSIVE, 1)             \
	X(ENABLE_FTS3_TOKENIZER, 0) \
	X(ENABLE_LOAD_EXTENSION, 0) \
	X(ENABLE_TRIGGER, 0)        \
	X(TRUSTED_SCHEMA, 0)        \
	X(WRITABLE_SCHEMA, 0)

/* Sizes for sqlite3_limit(), without SQLITE_LIMIT_. */
#define TACHO_SQL_LIMITS(X)          \
	X(LENGTH, 64 << 20)          \
	X(SQL_LENGTH, 1 << 20)       \
	X(EXPR_DEPTH, 500)           \
	X(VDBE_OP, 1 << 20)          \
	X(LIKE_PATTERN_LENGTH, 1000) \
	X(WORKER_THREADS, 0)

/* Of a query, if the user allows no more: CPU time, and memory of SQLite. What it takes to read the
   tables of the trace is not counted: that follows from the size of the trace. */
#define TACHO_SQL_SECONDS 30u
#define TACHO_SQL_BYTES (1u << 30)

#endif
