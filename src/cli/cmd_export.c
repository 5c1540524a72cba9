/*
 * tacho export: a trace for the tools of others.
 */
#include <string.h>

#include "cli/exporting.h"
#include "cli/facts_json.h"
#include "export/export.h"
#include "export/stacks.h"

enum format { FORMAT_NONE, FORMAT_PERFETTO, FORMAT_PPROF, FORMAT_COLLAPSED, FORMAT_JSONL };

struct asked {
	enum format format;
	struct parse_instant from, to;
	const char *out;
	bool force, weight_given, ns;
	struct cli_progress progress;
};

static int warn_no_samples(uint64_t samples)
{
	if (!samples)
		cli_warn("the trace has no CPU samples, so there are no stacks.");
	return 0;
}

static int export_proto(struct asked *a, struct tacho_reader *reader, struct exporting *e)
{
	struct tacho__export_options options = {
		.sink = e->sink, .stop = exporting_progress, .stop_arg = &a->progress};
	struct tacho__exported done;
	int error = a->format == FORMAT_PPROF ? tacho__export_pprof(reader, &options, &done)
					      : tacho__export_perfetto(reader, &options, &done);

	cli_progress_end(&a->progress);
	exporting_warn(&done.missed, done.left_out);
	if (!error && a->format == FORMAT_PPROF)
		warn_no_samples(done.samples);
	return error;
}

static int export_collapsed(struct asked *a, struct tacho_reader *reader, struct exporting *e)
{
	struct tacho__stacks_options options = {
		.ns = a->ns, .stop = exporting_progress, .stop_arg = &a->progress};
	struct tacho__stacks stacks;
	int error = tacho__stacks_read(&stacks, reader, &options);

	cli_progress_end(&a->progress);
	if (error)
		return error;
	exporting_warn(&stacks.missed, stacks.cut);
	warn_no_samples(stacks.stacks);
	error = tacho__stacks_write(&stacks, &e->sink);
	tacho__stacks_free(&stacks);
	return error;
}

static int export_jsonl(struct asked *a, struct tacho_reader *reader, struct exporting *e)
{
	struct tacho__tracker_limits missed = {0};
	int error;

	cli_progress_end(&a->progress);
	error = facts_put_json(e->file, reader, &missed);
	exporting_warn(&missed, 0);
	return error;
}

static int export_path(void *arg, const char *path)
{
	struct asked *a = arg;
	bool binary = a->format == FORMAT_PERFETTO || a->format == FORMAT_PPROF;
	struct tacho_reader *reader = NULL;
	static struct exporting e;
	int error, status;

	if (cli_open_between(&reader, path, &a->from, &a->to) < 0)
		return CLI_FAILED;
	if (exporting_begin(&e, a->out, a->force, binary) < 0) {
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	cli_progress_begin(&a->progress, "exporting");
	if (a->format == FORMAT_JSONL)
		error = export_jsonl(a, reader, &e);
	else if (a->format == FORMAT_COLLAPSED)
		error = export_collapsed(a, reader, &e);
	else
		error = export_proto(a, reader, &e);
	cli_warn_problems(reader, 5);
	status = exporting_end(&e, error);
	tacho_read_close(reader);
	return status;
}

static bool parse_format(const char *text, enum format *out)
{
	static const char *const names[] = {"", "perfetto", "pprof", "collapsed", "jsonl"};

	for (unsigned i = 1; i < 5; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum format)i;
			return true;
		}
	}
	cli_usage("--format: '%s' is none of perfetto, pprof, collapsed, jsonl.", text);
	return false;
}

static bool take_option(struct asked *a, int option)
{
	switch (option) {
	case 'F':
		return parse_format(optarg, &a->format);
	case 'f':
		return parse_instant("--from", optarg, &a->from);
	case 't':
		return parse_instant("--to", optarg, &a->to);
	case 'o':
		a->out = optarg;
		return true;
	case 'x':
		a->force = true;
		return true;
	case 'w':
		a->weight_given = true;
		return exporting_weight(optarg, &a->ns);
	default:
		return false;
	}
}

static int run(int argc, char **argv)
{
	static const struct option options[] = {
		{"format", required_argument, NULL, 'F'},
		{"from", required_argument, NULL, 'f'},
		{"to", required_argument, NULL, 't'},
		{"output", required_argument, NULL, 'o'},
		{"force", no_argument, NULL, 'x'},
		{"weight", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	static struct asked a;
	int option;

	while ((option = cli_option(argc, argv, "o:", options)) != -1) {
		if (option == 'h')
			return cli_show_help(&cli_export);
		if (!take_option(&a, option))
			return CLI_USAGE;
	}
	if (a.format == FORMAT_NONE)
		return cli_usage(
			"which format? Give --format perfetto, pprof, collapsed or jsonl.");
	if (a.weight_given && a.format != FORMAT_COLLAPSED)
		return cli_usage("--weight is for --format collapsed; pprof has both weights.");
	return cli_with_trace(argc, argv, export_path, &a);
}

const struct cli_command cli_export = {
	.name = "export",
	.summary = "a trace for Perfetto, pprof and others",
	.help = "Usage: tacho export FILE|FOLDER|BOX|PID --format FORMAT [OPTIONS]\n\n"
		"Writes the trace in a format that other tools read:\n\n"
		"  perfetto   for ui.perfetto.dev and Perfetto's trace processor: loops, polls,\n"
		"             spans, locks, calls, wakes as arrows, counters, CPU samples\n"
		"  pprof      the CPU samples for 'pprof' and 'go tool pprof'\n"
		"  collapsed  the CPU samples as lines 'a;b;c 12', for flame graphs of others\n"
		"  jsonl      the facts that follow from the events, one JSON object per line\n\n"
		"  -o, --output FILE  to this file instead of standard output\n"
		"  --force            replace the file if it is there\n"
		"  --from TIME        begin here: 1.5s is from the first event, -1s from the last\n"
		"  --to TIME          end here, counted in the same way\n"
		"  --weight WHAT      collapsed: samples (the default) or ns\n\n"
		"Examples:\n"
		"  tacho export slow.tacho --format perfetto -o slow.pftrace\n"
		"  tacho export slow.tacho --format pprof -o slow.pb.gz\n"
		"  go tool pprof -top slow.pb.gz\n",
	.run = run,
};
