/*
 * tacho export: a trace for the tools of others.
 */
#include <string.h>

#include "cli/exporting.h"
#include "cli/facts_json.h"
#include "export/export.h"
#include "export/stacks.h"

enum format { FORMAT_PERFETTO, FORMAT_PPROF, FORMAT_COLLAPSED, FORMAT_JSONL, FORMAT_NONE };
#define WEIGHT_NONE (-1)

struct asked {
	unsigned format; /* enum format */
	struct parse_instant from, to;
	const char *out;
	bool force;
	int ns; /* WEIGHT_NONE: not given */
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
		.ns = a->ns == 1, .stop = exporting_progress, .stop_arg = &a->progress};
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

	if (cli_open_between(&reader, &path, 1, &a->from, &a->to) < 0)
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

static int run(int argc, char **argv)
{
	static const char *const formats[] = {"perfetto", "pprof", "collapsed", "jsonl", NULL};
	static struct asked a = {.format = FORMAT_NONE, .ns = WEIGHT_NONE};
	const struct cli_row options[] = {
		{"format", .words = formats, .word = &a.format},
		{"from", .instant = &a.from},
		{"to", .instant = &a.to},
		{"output", .letter = 'o', .text = &a.out},
		{"force", .flag = &a.force},
		{"weight", .call = exporting_weight, .arg = &a.ns},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_export, options);

	if (status != CLI_TAKEN)
		return status;
	if (a.format == FORMAT_NONE)
		return cli_usage(
			"which format? Give --format perfetto, pprof, collapsed or jsonl.");
	if (a.ns != WEIGHT_NONE && a.format != FORMAT_COLLAPSED)
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
		"  --force            replace the file if it is there; else it is kept as "
		"FILE.old\n"
		"  --from TIME        begin here: 1.5s is from the first event, -1s from the last\n"
		"  --to TIME          end here, counted in the same way\n"
		"  --weight WHAT      collapsed: samples (the default) or ns\n"
		"  --pid PID          only this process\n"
		"  --process NAME     only processes of this name\n\n"
		"Examples:\n"
		"  tacho export slow.tacho --format perfetto -o slow.pftrace\n"
		"  tacho export slow.tacho --format pprof -o slow.pb.gz\n"
		"  go tool pprof -top slow.pb.gz\n",
	.run = run,
};
