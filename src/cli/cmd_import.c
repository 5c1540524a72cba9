/*
 * tacho import: a trace of another recorder, kept as one of tacho's.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "import/import.h"
#include "text/json.h"
#include "text/text.h"

struct asked {
	const char *out;
	bool force, json;
};

static int write_to(const struct tacho__found *found, const char *path, int fd,
		    struct tacho__trace_result *result)
{
	struct cli_progress progress;
	const struct tacho__import_options options = {.progress = cli_progress,
						      .progress_arg = &progress};
	char message[CLI_MESSAGE] = "";
	int error;

	cli_progress_begin(&progress, "importing");
	error = tacho__import(found, fd, &options, result, message, sizeof(message));
	cli_progress_end(&progress);
	if (error < 0)
		cli_error("cannot import %s: %s.", path, message);
	return error;
}

/* What the trace says of itself: where it came from, and what it lacks. */
static void print_result(const struct asked *a, const char *path,
			 const struct tacho__trace_result *r)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	const struct tacho_process *p = NULL;
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL];
	struct json j;

	if (strcmp(path, "-") && tacho_read_open(&reader, path, &options, NULL, 0) >= 0)
		p = tacho_read_process(reader, 0);
	if (p && p->reason[0])
		cli_warn("%s.", p->reason);
	if (a->json) {
		json_begin(&j, stdout, false);
		json_object(&j);
		json_put_string(&j, "file", path);
		json_put_known(&j, "imported", p ? p->imported : "");
		json_put_known(&j, "reason", p ? p->reason : "");
		json_put_u64(&j, "events", r->events);
		json_put_u64(&j, "window_ns", r->last_ns - r->first_ns);
		json_put_u64(&j, "bytes", r->bytes);
		json_object_end(&j);
		json_end_line(&j);
	} else if (strcmp(path, "-")) {
		text_put(stdout, path);
		printf(": %" PRIu64 " events in %s, %s\n", r->events,
		       text_duration(seconds, r->last_ns - r->first_ns),
		       text_bytes(bytes, r->bytes));
	}
	tacho_read_close(reader);
}

static int import_to_file(const struct tacho__found *found, const char *path, const struct asked *a)
{
	struct tacho__trace_result result = {0};
	struct tacho__new_file output;

	if (output_begin(&output, a->out, a->force) < 0)
		return CLI_FAILED;
	if (write_to(found, path, output.fd, &result) < 0) {
		output_abandon(&output);
		return CLI_FAILED;
	}
	if (output_commit(&output) < 0)
		return CLI_FAILED;
	print_result(a, output.path, &result);
	return CLI_OK;
}

static int import_path(const char *path, const struct asked *a)
{
	struct tacho__trace_result result = {0};
	struct tacho__found found;
	int is = tacho__import_find(&found, path), status = CLI_FAILED;

	if (is < 0)
		cli_error("out of memory.");
	else if (!is && access(path, R_OK))
		cli_error("cannot read %s: %m.", path);
	else if (!is)
		cli_error(
			"%s is no trace of another recorder that tacho knows. It imports execution "
			"traces of Go 1.22 and later, and traces of dial9 0.3 and later.",
			path);
	else if (strcmp(a->out, "-"))
		status = import_to_file(&found, path, a);
	else if (write_to(&found, path, STDOUT_FILENO, &result) == 0)
		status = CLI_OK;
	tacho__found_free(&found);
	return status;
}

static int run(int argc, char **argv)
{
	struct asked a = {0};
	const struct cli_row options[] = {
		{"output", .letter = 'o', .text = &a.out},
		{"force", .letter = 'f', .flag = &a.force},
		{"json", .flag = &a.json},
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_import, options);

	if (status != CLI_TAKEN)
		return status;
	if (argc - optind != 1)
		return cli_usage(optind == argc ? "which trace? Give the file, or the folder, of "
						  "another recorder."
						: "one trace at a time.");
	if (!a.out || !a.out[0])
		return cli_usage("-o needs the name of a file, or - for standard output.");
	if (strcmp(a.out, "-") == 0 && (a.force || a.json))
		return cli_usage("-o - goes with neither --force nor --json.");
	if (strcmp(a.out, "-") == 0 && isatty(STDOUT_FILENO))
		return cli_usage("a trace is not written to a terminal: redirect it, or use "
				 "-o FILE.");
	return cli_finish(import_path(argv[optind], &a));
}

const struct cli_command cli_import = {
	.name = "import",
	.summary = "a trace of another recorder into a trace file",
	.help = "Usage: tacho import FILE|FOLDER -o OUT.tacho [--force] [--json]\n\n"
		"Makes a trace of what another recorder wrote: execution traces of Go 1.22 and\n"
		"later (runtime/trace, FlightRecorder); segments of dial9 0.3 to 0.5, or their\n"
		"folder; also gzipped. What is recognised is decided by the first bytes, not by\n"
		"the name. All commands that take a trace also take such a file; this one keeps\n"
		"the result.\n\n"
		"  -o OUT   trace file; -: standard output\n"
		"  --force  replace OUT if it exists; else it is kept as OUT.old\n"
		"  --json   print what was imported as one JSON object\n\n"
		"Examples:\n"
		"  tacho import snapshot.trace -o snapshot.tacho\n"
		"  tacho import /tmp/my_traces -o my_traces.tacho\n"
		"  tacho report snapshot.trace\n",
	.run = run,
};
