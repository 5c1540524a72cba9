/*
 * tacho sql: questions to a trace.
 */
#include <stdlib.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/sql_session.h"
#include "query/allow.h"

static bool take_form(void *arg, const char *option, const char *text)
{
	*(const char **)arg = text;
	if (sql_session_has_form(text))
		return true;
	cli_usage("%s: '%s' is none of table, csv, json.", option, text);
	return false;
}

static void take_csv(void *arg)
{
	*(const char **)arg = "csv";
}

static void take_json(void *arg)
{
	*(const char **)arg = "json";
}

static bool take_bytes(void *arg, const char *option, const char *text)
{
	if (tacho__parse_bytes(text, arg) == 0 && *(uint64_t *)arg)
		return true;
	cli_usage("%s: '%s' is no size; 2G and 500M are.", option, text);
	return false;
}

static int run(int argc, char **argv)
{
	struct sql_session_options o = {
		.form = "table",
		.max_time_ns = TACHO_SQL_SECONDS * 1000000000ull,
		.max_memory = TACHO_SQL_BYTES,
	};
	const struct cli_row options[] = {
		{"format", .call = take_form, .arg = &o.form},
		{"json", .mark = take_json, .arg = &o.form},
		{"csv", .mark = take_csv, .arg = &o.form},
		{"into", .text = &o.into},
		{"max-time", .duration = &o.max_time_ns},
		{"max-memory", .call = take_bytes, .arg = &o.max_memory},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_sql, options);
	char *path;

	if (status != CLI_TAKEN)
		return status;
	if (optind == argc)
		return cli_usage(
			"which trace? Give a trace file, a folder of them, a box or a PID.");
	if (!sql_session_exists()) {
		cli_error(
			"this tacho was built without SQLite; build it with -Dsql=enabled, or use "
			"'tacho cat --json'.");
		return CLI_FAILED;
	}
	path = cli_resolve_trace(argv[optind]);
	if (!path)
		return CLI_FAILED;
	status = sql_session(path, &o, argv + optind + 1, argc - optind - 1);
	free(path);
	return status;
}

const struct cli_command cli_sql = {
	.name = "sql",
	.summary = "questions to a trace, in SQL",
	.help = "Usage: tacho sql FILE|FOLDER|BOX|PID [OPTIONS] ['SELECT ...' ...]\n\n"
		"Answers SQL queries over the polls, wakes, tasks, turns, loops, locks, calls,\n"
		"pool, spans, samples, frames, counters and losses of a trace, and more. Without\n"
		"a query it prompts for them, or reads them from standard input. Nothing is\n"
		"imported: a table is read when a query needs it. Times are nanoseconds of\n"
		"CLOCK_MONOTONIC.\n\n"
		"  --format table|csv|json  json: one object per line (default table)\n"
		"  --csv, --json            short for --format csv and --format json\n"
		"  --into FILE              a database of SQLite, 'out' in queries, to keep things "
		"in\n"
		"  --max-time DURATION      CPU time that a query may take (30s)\n"
		"  --max-memory BYTES       memory that SQLite may use (1G)\n"
		"  --pid PID                only this process\n"
		"  --process NAME           only processes of this name\n\n"
		"In place of a query:\n"
		"  .tables                  what there is\n"
		"  .schema [TABLE]          columns, their types and what they say\n\n"
		"Example:\n"
		"  tacho sql slow.tacho 'SELECT function, count(*), max(ns) FROM polls\n"
		"      GROUP BY function ORDER BY 3 DESC LIMIT 5'\n",
	.run = run,
};
