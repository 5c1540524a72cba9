#include "cli/sql_session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/sql_output.h"
#include "query/module.h"
#include "read/input.h"
#include "text/text.h"

/* Beyond its time a query that does not stop by itself, in one call of a function, takes tacho with
   it. */
#define GRACE_S 3

struct session {
	sqlite3 *db;
	const struct sql_session_options *options;
	struct tacho__sql_source source;
	enum sql_form form;
	struct cli_progress progress;
	bool shows; /* the progress line is there */
	uint64_t first_ns, last_ns;
};

/* Ctrl-C at the prompt ends the query, not the program. */
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t out_of_time; /* the query has used up its CPU time */

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static void on_time(int number)
{
	static const char text[] =
		"tacho sql: the query has used up its CPU time and did not stop; tacho ends. "
		"Allow more time with --max-time.\n";

	(void)number;
	if (out_of_time) {
		ssize_t unused = write(STDERR_FILENO, text, sizeof(text) - 1);

		(void)unused;
		_exit(CLI_FAILED);
	}
	out_of_time = interrupted = 1;
}

/* The time of a query begins; 0: there is no limit. It is CPU time, which does not pass while somebody
   pages through the answer, and begins again when a table has been read, which takes as long as the trace
   is large. */
static void set_time(uint64_t ns)
{
	struct itimerval t = {
		.it_value = {(time_t)(ns / 1000000000), (suseconds_t)(ns % 1000000000 / 1000)}};

	if (ns)
		t.it_interval.tv_sec = GRACE_S;
	if (ns && !t.it_value.tv_sec && !t.it_value.tv_usec)
		t.it_value.tv_usec = 1;
	setitimer(ITIMER_PROF, &t, NULL);
}

/* Asked by SQLite between rows. */
static int may_go_on(void *arg)
{
	(void)arg;
	return interrupted;
}

/* Asked while a table is filled; ns 0: only whether to stop. */
static int filling(void *arg, uint64_t ns)
{
	struct session *s = arg;

	if (ns > s->first_ns) {
		if (!s->shows) {
			cli_progress_begin(&s->progress, "reading");
			set_time(0);
		}
		s->shows = true;
		cli_progress(&s->progress, ns - s->first_ns, s->last_ns - s->first_ns);
	} else if (!ns && s->shows) {
		s->shows = false;
		cli_progress_end(&s->progress);
		set_time(s->options->max_time_ns);
	}
	return interrupted;
}

bool sql_session_has_form(const char *form)
{
	enum sql_form unused;

	return sql_form_parse(form, &unused);
}

/* ------------------------------------------------------------------- errors */

/* The line of the query that SQLite points at, and a caret below it. */
static void put_caret(const char *sql, size_t at)
{
	size_t begin = at, size, column;

	while (begin && sql[begin - 1] != '\n')
		begin--;
	size = strcspn(sql + begin, "\n");
	fputs("  ", stderr);
	text_put_n(stderr, sql + begin, size);
	fputs("\n  ", stderr);
	/* One column to the character; what is escaped takes four. */
	for (column = begin; column < at;) {
		int32_t code;
		size_t bytes = tacho__character(sql + column, at - column, &code);

		fputs(tacho__is_hostile(code) ? "    " : " ", stderr);
		column += bytes;
	}
	fputs("^\n", stderr);
}

/* True: the query went beyond a limit, and that was said. */
static bool say_limit(const struct session *s)
{
	char text[TEXT_SMALL];

	if (out_of_time) {
		cli_error("the query was stopped after %s of CPU time.",
			  text_duration(text, s->options->max_time_ns));
		cli_note("Allow more with --max-time, for example --max-time 10m.");
		return true;
	}
	if (sqlite3_errcode(s->db) != SQLITE_NOMEM)
		return false;
	cli_error("the query was stopped: it needs more memory than the %s that SQLite may use.",
		  text_bytes(text, s->options->max_memory));
	cli_note("Allow more with --max-memory, for example --max-memory 4G.");
	return true;
}

static void say_error(const struct session *s, const char *sql, bool compiling)
{
	const char *text = sqlite3_errmsg(s->db);
	int at = compiling ? sqlite3_error_offset(s->db) : -1;

	if (say_limit(s))
		return;
	cli_error("%s.", text);
	if (at >= 0 && (size_t)at <= strlen(sql))
		put_caret(sql, (size_t)at);
	if (strstr(text, "no such table"))
		cli_note("'.tables' in place of a query lists the tables.");
	if (strstr(text, "not authorized to use function"))
		cli_note("docs/sql.md lists the functions that queries may use.");
	else if (sqlite3_errcode(s->db) == SQLITE_AUTH)
		cli_note("Queries read. To keep what they find, give a database with --into FILE "
			 "and "
			 "write to its tables: CREATE TABLE out.NAME AS SELECT ...");
	if (strstr(text, "no such column"))
		cli_note("'.schema TABLE' in place of a query lists its columns.");
}

/* ------------------------------------------------------------------ queries */

static int run_all(struct session *s, const char *sql)
{
	const char *rest = sql;

	while (*rest) {
		sqlite3_stmt *statement = NULL;
		const char *begin = rest;
		int result = sqlite3_prepare_v2(s->db, begin, -1, &statement, &rest);

		if (result != SQLITE_OK) {
			say_error(s, begin, true);
			return CLI_FAILED;
		}
		if (!statement)
			continue;
		result = sql_output(statement, s->form);
		if (result != SQLITE_DONE) {
			fflush(stdout);
			say_error(s, begin, false);
			sqlite3_finalize(statement);
			return CLI_FAILED;
		}
		sqlite3_finalize(statement);
	}
	return CLI_OK;
}

static int query(struct session *s, const char *sql)
{
	int status;

	interrupted = out_of_time = 0;
	set_time(s->options->max_time_ns);
	status = run_all(s, sql);
	set_time(0);
	return status;
}

static void put_table(const struct tacho__sql_table *t, bool columns)
{
	printf("%s%-10s%s %s\n", cli_colour(stdout, CLI_BOLD), t->name,
	       cli_colour(stdout, CLI_PLAIN), t->text);
	for (uint32_t c = 0; columns && c < t->column_count; c++)
		printf("  %-16s %-8s %s\n", t->columns[c].name,
		       tacho__sql_column_type(&t->columns[c]), t->columns[c].text);
}

/* name: "" for all. */
static int put_schema(const char *name, bool columns)
{
	bool found = false;

	for (uint32_t i = 0; i < SQL_TABLES; i++) {
		const struct tacho__sql_table *t = tacho__sql_table_at(i);

		if (name[0] && strcmp(name, t->name) != 0)
			continue;
		found = true;
		put_table(t, columns);
	}
	if (!found)
		cli_error("there is no table '%s'; '.tables' lists them.", name);
	return found ? CLI_OK : CLI_FAILED;
}

/* What stands behind a command's name; NULL: it is another. */
static const char *argument(const char *line, const char *name)
{
	size_t size = strlen(name);

	if (strncmp(line, name, size) != 0 || (line[size] && line[size] != ' '))
		return NULL;
	return line + size + strspn(line + size, " ");
}

/* Lines that begin with a dot. */
static int command(struct session *s, const char *line, bool *quit)
{
	const char *rest;

	*quit = strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0;
	if (*quit)
		return CLI_OK;
	if ((rest = argument(line, ".schema")))
		return put_schema(rest, true);
	if (argument(line, ".tables"))
		return put_schema("", false);
	if ((rest = argument(line, ".format"))) {
		if (sql_form_parse(rest, &s->form))
			return CLI_OK;
		cli_error("'%s' is none of table, csv, json.", rest);
		return CLI_FAILED;
	}
	if (!argument(line, ".help")) {
		cli_error("there is no '%s'; '.help' lists what there is.", line);
		return CLI_FAILED;
	}
	puts(".tables           what there is\n"
	     ".schema [TABLE]   columns, their types and what they say\n"
	     ".format FORM      table, csv or json\n"
	     ".quit             leave\n"
	     "Anything else is SQL and ends with a semicolon. Ctrl-C ends a query.");
	return CLI_OK;
}

/* One line more; true: the text is whole. */
static bool take_line(char **all, size_t *used, const char *line, bool *failed)
{
	size_t size = strlen(line);
	char *grown = realloc(*all, *used + size + 2);

	if (!grown) {
		*failed = true;
		return false;
	}
	*all = grown;
	if (*used)
		grown[(*used)++] = '\n';
	memcpy(grown + *used, line, size + 1);
	*used += size;
	return sqlite3_complete(grown);
}

static int prompt(struct session *s)
{
	char *line = NULL, *all = NULL;
	size_t size = 0, used = 0;
	bool quit = false, failed = false, talks = isatty(STDIN_FILENO);
	int status = CLI_OK;

	if (talks) {
		struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};

		sigaction(SIGINT, &action, NULL);
		puts("SQL over this trace. .tables lists the tables, .quit leaves.");
	}
	/* A script stops at the first error, a person goes on. */
	while (!quit && !failed && (talks || status == CLI_OK)) {
		if (talks)
			fputs(used ? "   ...> " : "tacho> ", stdout);
		fflush(stdout);
		if (getline(&line, &size, stdin) < 0)
			break;
		line[strcspn(line, "\r\n")] = 0;
		if (!used && line[0] == '.') {
			status = command(s, line, &quit);
		} else if ((used || line[0]) && take_line(&all, &used, line, &failed)) {
			status = query(s, all);
			used = 0;
		}
	}
	if (used && !quit && !failed && (talks || status == CLI_OK))
		status = query(s, all);
	if (talks && !quit)
		putchar('\n');
	if (failed) {
		cli_error("no memory for a query of this length.");
		status = CLI_FAILED;
	}
	free(line);
	free(all);
	return talks && !failed ? CLI_OK : status;
}

/* --------------------------------------------------------------------- life */

static bool is_foreign_link(const char *path)
{
	struct stat st;
	int fd = tacho__open_any(path, &st);

	if (fd >= 0)
		close(fd);
	return fd == -ELOOP;
}

/* The database that may be written, as `out`; then all other files are out of reach. */
static int attach(sqlite3 *db, const char *into)
{
	/* With a folder in front no name is a URI, which could ask for more than a file. */
	char *sql = into ? sqlite3_mprintf("ATTACH '%s%q' AS out", into[0] == '/' ? "" : "./", into)
			 : NULL;
	int result = into && !sql ? SQLITE_NOMEM : SQLITE_OK;

	if (into && is_foreign_link(into)) {
		cli_error("cannot write to the database %s: it is a symbolic link that another "
			  "user made; give the file itself if you trust it.",
			  into);
		sqlite3_free(sql);
		return CLI_FAILED;
	}
	if (sql)
		result = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_free(sql);
	if (result == SQLITE_OK && into) /* what is no database is noticed when it is read */
		result = sqlite3_exec(db, "PRAGMA out.schema_version", NULL, NULL, NULL);
	if (result != SQLITE_OK) {
		cli_error("cannot write to the database %s: %s.", into, sqlite3_errstr(result));
		return CLI_FAILED;
	}
	if (tacho__sql_guard(db) == SQLITE_OK)
		return CLI_OK;
	cli_error("cannot restrict what queries may do; none is run.");
	return CLI_FAILED;
}

static int start(struct session *s, const char *path)
{
	const struct sigaction action = {.sa_handler = on_time, .sa_flags = SA_RESTART};
	struct cli_progress progress;
	char message[CLI_MESSAGE] = "";
	int error;

	cli_progress_begin(&progress, "opening");
	error = cli_open(&s->source.reader, path, &progress, 0, message, sizeof(message));
	cli_progress_end(&progress);
	if (error < 0) {
		if (message[0])
			cli_error("%s", message);
		return CLI_FAILED;
	}
	if (tacho_read_window(s->source.reader, &s->first_ns, &s->last_ns) < 0)
		s->first_ns = s->last_ns = 0;
	s->source.stop = filling;
	s->source.stop_arg = s;
	if (tacho__sql_open(&s->db, &s->source) != SQLITE_OK) {
		cli_error("cannot start SQLite: %s.", s->db ? sqlite3_errmsg(s->db) : "no memory");
		return CLI_FAILED;
	}
	sqlite3_progress_handler(s->db, 1000, may_go_on, s);
	sqlite3_hard_heap_limit64(s->options->max_memory < INT64_MAX
					  ? (sqlite3_int64)s->options->max_memory
					  : INT64_MAX);
	sigaction(SIGPROF, &action, NULL);
	return attach(s->db, s->options->into);
}

int sql_session(const char *path, const struct sql_session_options *options, char **queries,
		int count)
{
	struct session s = {.form = SQL_FORM_TABLE, .options = options};
	int status = start(&s, path);

	sql_form_parse(options->form, &s.form);
	if (status == CLI_OK && !count)
		status = prompt(&s);
	for (int i = 0; i < count && status == CLI_OK; i++) {
		bool quit;

		status = queries[i][0] == '.' ? command(&s, queries[i], &quit)
					      : query(&s, queries[i]);
	}
	if (s.source.reader)
		cli_warn_problems(s.source.reader, 5);
	sqlite3_close(s.db);
	tacho__sql_source_free(&s.source);
	tacho_read_close(s.source.reader);
	return cli_finish(status);
}
