/* The files of SQLite: one database and what belongs to it, and temporary ones. */
#ifndef TACHO_QUERY_FILES_H
#define TACHO_QUERY_FILES_H

/*
 * The name of a VFS for sqlite3_open_v2; NULL: no memory. The first database that is opened with it is
 * the only one, from then on: no other file is opened or deleted, whatever is in that database and in the
 * journal beside it. A journal may name another file that SQLite deletes when it has played it back.
 */
const char *tacho__sql_files(void);

#endif
