/*
 * tacho dump: the window of a box into a trace file, without the help of its
 * process.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/trace_write.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "text/text.h"
#include "format/trace.h"

struct dump {
	const char *out; /* NULL: a name of our own */
	bool force, no_symbols, debuginfod;
	uint64_t last_ns;
};

static int write_to(struct tacho_reader *reader, const char *path, int fd, const struct dump *d,
		    struct tacho__trace_result *result)
{
	const char *slash = strrchr(path, '/');
	struct cli_progress progress;
	struct tacho__trace_options options = {
		.taken_by = TACHO_TAKEN_DUMP,
		.box_name = slash ? slash + 1 : path,
		.no_symbols = d->no_symbols,
		.progress = cli_progress,
		.progress_arg = &progress,
	};
	char message[CLI_MESSAGE] = "";
	int error;

	cli_progress_begin(&progress, "writing the trace");
	error = tacho__trace_write(reader, fd, &options, result, message, sizeof(message));
	cli_progress_end(&progress);
	if (error < 0 && error != -EPIPE)
		cli_error("%s", message[0] ? message : strerror(-error));
	return error;
}

static void print_result(FILE *out, const char *path, const struct tacho__trace_result *r)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL];

	text_put(out, path);
	fprintf(out, ": %" PRIu64 " events in %s, %s\n", r->events,
		text_duration(seconds, r->last_ns - r->first_ns), text_bytes(bytes, r->bytes));
}

static int dump_to_stdout(struct tacho_reader *reader, const char *path, const struct dump *d)
{
	struct tacho__trace_result result = {0};

	if (write_to(reader, path, STDOUT_FILENO, d, &result) < 0)
		return CLI_FAILED;
	cli_warn_problems(reader, 10);
	print_result(stderr, "(standard output)", &result);
	return CLI_OK;
}

static int dump_to_file(struct tacho_reader *reader, const char *path, const struct dump *d)
{
	struct tacho__trace_result result = {0};
	struct tacho__new_file output;
	int error;

	if (d->out)
		error = output_begin(&output, d->out, d->force);
	else
		error = output_begin_in(&output, ".", tacho_read_process(reader, 0));
	if (error < 0)
		return CLI_FAILED;
	if (write_to(reader, path, output.fd, d, &result) < 0) {
		output_abandon(&output);
		return CLI_FAILED;
	}
	if (output_commit(&output) < 0)
		return CLI_FAILED;
	cli_warn_problems(reader, 10);
	if (result.events == 0)
		cli_warn("there are no events in it%s.", d->last_ns ? " for this time" : "");
	print_result(stdout, output.path, &result);
	return CLI_OK;
}

static int dump_box(const char *path, const struct dump *d)
{
	char message[CLI_MESSAGE];
	struct cli_progress progress;
	struct tacho_reader *reader = NULL;
	const struct tacho_process *process;
	int status = CLI_FAILED;
	int result;

	cli_progress_begin(&progress, "reading the box");
	result = cli_open(&reader, path, &progress, d->last_ns, message, sizeof(message));
	if (result == -ENODATA)
		cli_error("there is nothing to dump: %s", message);
	if (result < 0)
		return CLI_FAILED;
	process = tacho_read_process(reader, 0);
	if (!process || process->taken_by != TACHO_TAKEN_BOX)
		cli_error("%s is not a box but a trace already. Read it with 'tacho info' or "
			  "'tacho cat'.",
			  path);
	else if (d->out && strcmp(d->out, "-") == 0)
		status = dump_to_stdout(reader, path, d);
	else
		status = dump_to_file(reader, path, d);
	tacho_read_close(reader);
	return status;
}

static int run(int argc, char **argv)
{
	struct dump d = {0};
	const struct cli_row options[] = {
		{"output", .letter = 'o', .text = &d.out},  {"last", .duration = &d.last_ns},
		{"force", .letter = 'f', .flag = &d.force}, {"no-symbols", .flag = &d.no_symbols},
		{"debuginfod", .flag = &d.debuginfod},	    {0},
	};
	int status = cli_take_options(argc, argv, &cli_dump, options);
	char *path;

	if (status != CLI_TAKEN)
		return status;
	if (argc - optind != 1)
		return cli_usage(optind == argc ? "which process? Give a PID or the path of a box."
						: "one process at a time.");
	if (d.debuginfod && d.no_symbols)
		return cli_usage("--debuginfod and --no-symbols contradict each other.");
	if (d.out && !d.out[0])
		return cli_usage("-o needs the name of a file, or - for standard output.");
	if (d.force && !d.out)
		return cli_usage("--force needs -o FILE: a name that tacho chooses is always new.");
	if (d.out && strcmp(d.out, "-") == 0) {
		if (d.force)
			return cli_usage("--force and -o - contradict each other.");
		if (isatty(STDOUT_FILENO))
			return cli_usage("a trace is not written to a terminal: redirect it, or "
					 "use -o FILE.");
	}
	path = cli_resolve(argv[optind]);
	if (!path)
		return CLI_FAILED;
	if (!d.no_symbols)
		cli_allow_debuginfod(d.debuginfod);
	status = dump_box(path, &d);
	free(path);
	return status;
}

const struct cli_command cli_dump = {
	.name = "dump",
	.summary = "the window of a process into a trace file",
	.help = "Usage: tacho dump PID|BOX [-o FILE] [--last TIME] [--force] [--no-symbols]\n"
		"       [--debuginfod]\n\n"
		"Writes what the box holds now into a trace file. The process is not asked:\n"
		"it may be running, stopped, hung or dead.\n\n"
		"  -o FILE      trace file (default tacho-NAME-PID-TIME.tacho here; -: stdout)\n"
		"  --last TIME  only this long before the last event: 500ms, 5s, 2m\n"
		"  --force      replace FILE if it exists; else it is kept as FILE.old\n"
		"  --no-symbols leave code addresses as they are: no functions, files, lines\n"
		"  --debuginfod fetch missing debug files from the servers of DEBUGINFOD_URLS\n\n"
		"Example:\n"
		"  tacho dump 4711 --last 5s -o slow.tacho\n",
	.run = run,
};
