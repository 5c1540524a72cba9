/*
 * What the commands of `tacho` share: the table row, messages, options, exit
 * status, colours and progress.
 *
 * Rules for all commands: results go to standard output, everything else to
 * standard error; whatever comes from a box, a trace or the command line is
 * escaped before it reaches a terminal (text.h).
 */
#ifndef TACHO_CLI_CLI_H
#define TACHO_CLI_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tacho_read.h"

enum cli_status {
	CLI_OK = 0,
	CLI_FAILED = 1, /* what was asked for could not be done */
	CLI_USAGE = 2,	/* it was not understood */
};

#define CLI_MESSAGE 1024u /* bytes for a sentence */

struct cli_command {
	const char *name;
	const char *summary;		   /* half a line, for `tacho help` */
	const char *help;		   /* the whole text of `tacho NAME --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
	bool stops;			   /* the first word that is no option ends them */
};

extern const struct cli_command cli_run, cli_agent, cli_ls, cli_status, cli_dump, cli_recover,
	cli_info, cli_cat, cli_report, cli_stats, cli_blame, cli_diff, cli_sql, cli_view, cli_serve,
	cli_flame, cli_export, cli_import, cli_doctor, cli_agents, cli_help;

/* main.c */
extern bool cli_started_without_sigpipe; /* SIGPIPE was ignored when the program started */
const struct cli_command *cli_command_at(size_t index); /* NULL after the last */
const struct cli_command *cli_command_find(const char *name);
/* Says that there is no such command, and which one is nearest. Returns CLI_USAGE. */
int cli_unknown_command(const char *name);

/* say.c: "tacho COMMAND: ..." on standard error, escaped, with a newline. */
void cli_set_command(const char *name); /* NULL: plain "tacho" */
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void cli_note(const char *format, ...);
__attribute__((format(printf, 1, 2))) void cli_warn(const char *format, ...);
/* The same followed by "Try 'tacho COMMAND --help'."; returns CLI_USAGE. */
__attribute__((format(printf, 1, 2))) int cli_usage(const char *format, ...);
/* Flushes standard output; says what went wrong, if so. Returns `status` or CLI_FAILED. */
int cli_finish(int status);

/*
 * options.c: getopt_long(3) with messages of ours. Returns -1 after the last option and '?'
 * for a bad one, after saying what is wrong with it. "--help" and -h need not be
 * listed and return 'h'. With a '+' before the short options, the first word that is no
 * option ends them.
 */
#define CLI_OPTIONS_MAX 32u
int cli_option(int argc, char **argv, const char *short_options, const struct option *options);
int cli_show_help(const struct cli_command *command);
/* An option, and the one place that it goes to. The table ends with a row without name. */
struct parse_instant;
struct cli_row {
	const char *name;
	char letter; /* short for it; 0: none */
	bool *flag;  /* it is given; takes no value, but for `call` */
	const char **text;
	struct parse_instant *instant;
	uint64_t *duration, *count, *task;
	const char *const *words; /* one of these, up to NULL; `word` gets its index */
	unsigned *word;
	/* False after saying what is wrong; `option` is "--name". */
	bool (*call)(void *arg, const char *option, const char *text);
	void (*mark)(void *arg); /* without a value */
	void *arg;
};
/* CLI_TAKEN, or the status that the command ends with. */
#define CLI_TAKEN (-1)
int cli_take_options(int argc, char **argv, const struct cli_command *command,
		     const struct cli_row *rows);

/* term.c: escape sequences, or "" where the stream is no terminal or NO_COLOR is set. */
enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW };
const char *cli_colour(FILE *stream, enum cli_colour colour);
/* Columns of the terminal; 0: it is none, and lines may have any length. */
size_t cli_columns(FILE *stream);
/* Tables for people, on standard output: a name, `numbers` columns of numbers, and a remark. How
   wide names may be, so that names and numbers fit the terminal; at most `most`. */
size_t cli_table_names(size_t most, size_t numbers);
/* A name, filled up to `width`; one that is longer gets a line of its own. */
void cli_table_name(const char *name, size_t width);
/* The end of a line of which `used` columns are taken: the remark, or "", there or below. */
void cli_table_remark(const char *remark, size_t used);

/* One line on standard error, rewritten while work goes on; nothing at all when that is
   no terminal. `what` must stay until the end. */
struct cli_progress {
	const char *what;
	uint64_t shown_ns;
	bool visible;
};
void cli_progress_begin(struct cli_progress *p, const char *what);
void cli_progress(void *arg, uint64_t done, uint64_t total); /* arg: struct cli_progress */
void cli_progress_at(void *arg, uint64_t ns); /* the same for who goes through time */
void cli_progress_end(struct cli_progress *p);

/* debuginfod.c: from now on missing debug files are fetched, if the command line or
   TACHO_DEBUGINFOD says so; a warning when that cannot be. */
void cli_allow_debuginfod(bool asked);

/* input.c: what a command's argument means. */

/* The boxes there are; says what was not searched. 0 or -ENOMEM, after saying so. */
struct tacho__box_list;
int cli_list_boxes(struct tacho__box_list *list, bool all_users);
/* A number is the newest box of that process, anything else a path; a trace of another recorder
   is imported (importing.h). Returns a path to free, or NULL after saying why not. */
char *cli_resolve(const char *argument);
/* The same, but a box is a trace now, with the names of its code (importing.h). */
char *cli_resolve_trace(const char *argument);
/* `use` gets the path of the one trace that follows the options. If there is none, or more than
   one, this says so instead. */
int cli_with_trace(int argc, char **argv, int (*use)(void *arg, const char *path), void *arg);
/* The same for a command that follows a box by itself. */
int cli_with_source(int argc, char **argv, int (*use)(void *arg, const char *path), void *arg);
/* As cli_with_trace for one or more, that are read as one. */
int cli_with_traces(int argc, char **argv,
		    int (*use)(void *arg, const char *const *paths, uint32_t count), void *arg);
/* Rows for commands that read traces: --pid PID and --process NAME narrow what is opened. */
bool cli_narrow_pid(void *arg, const char *option, const char *text);
bool cli_narrow_process(void *arg, const char *option, const char *text);
#define CLI_NARROW_ROWS                               \
	{"pid", .call = cli_narrow_pid},              \
	{                                             \
		"process", .call = cli_narrow_process \
	}
/* A command that takes one such argument and --json; `none` and `many` are said when there is
   none or more than one. */
int cli_show_one(int argc, char **argv, const struct cli_command *command, const char *none,
		 const char *many, int (*show)(const char *path, bool json));
/* Opens it and says why when that fails. -ENODATA: a note of a process that could not
   record; the reason is then in `message` and nothing has been said. */
int cli_open(struct tacho_reader **out, const char *path, struct cli_progress *progress,
	     uint64_t last_ns, char *message, size_t message_size);
/* From now on only what lies between two instants is read. Says why when that fails. */
int cli_limit(struct tacho_reader *reader, const struct parse_instant *from,
	      const struct parse_instant *to);
/* Opens what lies between two instants. Says why when that fails or nothing lies between them. */
int cli_open_between(struct tacho_reader **out, const char *const *paths, uint32_t count,
		     const struct parse_instant *from, const struct parse_instant *to);
/* Opens the whole trace in the same way, and shows progress. */
int cli_open_whole(struct tacho_reader **out, const char *path, struct cli_progress *progress);
/* Says what the model had no room for. */
struct tacho__tracker_limits;
void cli_warn_missed(const struct tacho__tracker_limits *missed);
/* Problems of the input, as warnings; at most `limit`, then how many more there are. */
void cli_warn_problems(const struct tacho_reader *reader, uint32_t limit);
/* Reads all events to the end and counts them, in all and (if not NULL) by type for each
   process: by_type[process * 256 + type]. TACHO_EV_RESUME is no event of the program; it
   tells of holes. */
struct cli_counts {
	uint64_t events;
	uint64_t missing, dropped;
	uint64_t whole_ns; /* from here to the last event no stream has a hole */
	uint64_t *by_type;
};
int cli_count_events(struct tacho_reader *reader, struct cli_progress *progress,
		     struct cli_counts *counts);

#endif
