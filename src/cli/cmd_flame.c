/*
 * tacho flame: where time goes, as collapsed stacks or as a flame graph.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/exporting.h"
#include "cli/importing.h"
#include "text/text.h"
#include "export/flame_svg.h"
#include "export/stacks.h"

struct asked {
	struct parse_instant from, to;
	struct tacho__stacks_options stacks;
	uint64_t task;
	const char *out;
	bool svg, force;
	struct cli_progress progress;
};

/* What the picture is of: "redis-server, 3.2 s, 412 samples on the CPU, loop main". */
static void describe(const struct asked *a, struct tacho_reader *reader,
		     const struct tacho__stacks *stacks, char *title, char *subtitle, size_t size)
{
	const struct tacho_process *p = tacho_read_process(reader, 0);
	uint64_t first = 0, last = 0;
	char length[TEXT_SMALL], total[TEXT_SMALL], filter[256] = "";

	tacho_read_window(reader, &first, &last);
	snprintf(title, size, "%s: %s", p && p->comm[0] ? p->comm : "trace",
		 a->stacks.off_cpu ? "waiting, off the CPU" : "on the CPU");
	if (a->stacks.kind)
		snprintf(filter, sizeof(filter), ", kind %.100s", a->stacks.kind);
	if (a->stacks.loop)
		snprintf(filter + strlen(filter), sizeof(filter) - strlen(filter), ", loop %.100s",
			 a->stacks.loop);
	if (a->stacks.task)
		snprintf(filter + strlen(filter), sizeof(filter) - strlen(filter),
			 ", task %" PRIu64, a->task);
	if (a->stacks.ns)
		text_duration(total, stacks->total);
	else
		snprintf(total, sizeof(total), "%" PRIu64 " samples", stacks->total);
	snprintf(subtitle, size, "%s in %s of recording%s", total,
		 text_duration(length, last - first), filter);
}

static int write_svg(const struct asked *a, struct tacho_reader *reader,
		     const struct tacho__stacks *stacks, const struct exporting *e)
{
	char title[CLI_MESSAGE], subtitle[CLI_MESSAGE];
	struct tacho__flame flame = {title, subtitle, a->stacks.ns, a->stacks.off_cpu};

	describe(a, reader, stacks, title, subtitle, sizeof(title));
	return tacho__flame_svg(stacks, &flame, &e->sink);
}

static int say_empty(const struct asked *a)
{
	bool filtered =
		a->stacks.task || a->stacks.kind || a->stacks.loop || a->from.given || a->to.given;

	if (filtered)
		cli_error("nothing in the trace fits what was asked for. 'tacho stats' lists "
			  "loops and kinds.");
	else if (a->stacks.off_cpu)
		cli_error("the trace has no waits for locks, no blocking calls and no switches.");
	else
		cli_error("the trace has no CPU samples. 'tacho run' records them; --off-cpu shows "
			  "waits instead.");
	return CLI_FAILED;
}

static int draw(struct asked *a, struct tacho_reader *reader, const struct tacho__stacks *stacks)
{
	static struct exporting e;
	int error;

	exporting_warn(&stacks->missed, stacks->cut);
	cli_warn_problems(reader, 5);
	if (!stacks->total)
		return say_empty(a);
	if (stacks->advice[0])
		cli_note("%s", stacks->advice);
	if (exporting_begin(&e, a->out, a->force, false) < 0)
		return CLI_FAILED;
	error = a->svg ? write_svg(a, reader, stacks, &e) : tacho__stacks_write(stacks, &e.sink);
	return exporting_end(&e, error);
}

static int flame_path(void *arg, const char *path)
{
	struct asked *a = arg;
	struct tacho_reader *reader = NULL;
	struct tacho__stacks stacks;
	int error, status;

	if (cli_open_between(&reader, &path, 1, &a->from, &a->to) < 0)
		return CLI_FAILED;
	cli_progress_begin(&a->progress, "adding up stacks");
	a->stacks.stop = exporting_progress;
	a->stacks.stop_arg = &a->progress;
	error = tacho__stacks_read(&stacks, reader, &a->stacks);
	cli_progress_end(&a->progress);
	if (error) {
		cli_error("cannot read %s: %s.", importing_name(path), strerror(-error));
		status = CLI_FAILED;
	} else {
		status = draw(a, reader, &stacks);
		tacho__stacks_free(&stacks);
	}
	tacho_read_close(reader);
	return status;
}

static bool ends_in_svg(const char *path)
{
	size_t size = strlen(path);

	return size > 4 && strcmp(path + size - 4, ".svg") == 0;
}

static bool take_task(void *arg, const char *option, const char *text)
{
	struct asked *a = arg;

	a->stacks.task = &a->task;
	return parse_task(option, text, &a->task);
}

static void take_off_cpu(void *arg)
{
	struct asked *a = arg;

	a->stacks.off_cpu = a->stacks.ns = 1;
}

static bool take_svg(void *arg, const char *option, const char *text)
{
	struct asked *a = arg;

	(void)option;
	a->svg = true;
	a->out = text;
	return true;
}

static bool take_output(void *arg, const char *option, const char *text)
{
	struct asked *a = arg;

	(void)option;
	a->svg = a->svg || ends_in_svg(text);
	a->out = text;
	return true;
}

static int run(int argc, char **argv)
{
	static struct asked a;
	const struct cli_row options[] = {
		{"from", .instant = &a.from},
		{"to", .instant = &a.to},
		{"task", .call = take_task, .arg = &a},
		{"kind", .text = &a.stacks.kind},
		{"loop", .text = &a.stacks.loop},
		{"off-cpu", .mark = take_off_cpu, .arg = &a},
		{"weight", .call = exporting_weight, .arg = &a.stacks.ns},
		{"svg", .call = take_svg, .arg = &a},
		{"output", .letter = 'o', .call = take_output, .arg = &a},
		{"force", .flag = &a.force},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_flame, options);

	if (status != CLI_TAKEN)
		return status;
	return cli_with_trace(argc, argv, flame_path, &a);
}

const struct cli_command cli_flame = {
	.name = "flame",
	.summary = "a flame graph of any part of a trace",
	.help = "Usage: tacho flame FILE|FOLDER|BOX|PID [OPTIONS]\n\n"
		"Adds up the stacks of the CPU samples and prints a line 'a;b;c 12' for each, or\n"
		"draws them as an SVG that opens alone in a browser.\n\n"
		"  --svg FILE         draw; '-' is standard output\n"
		"  -o, --output FILE  to this file; draws if its name ends in .svg\n"
		"  --force            replace the file if it is there; else it is kept as "
		"FILE.old\n"
		"  --off-cpu          time spent waiting: for locks, in blocking calls, switched "
		"out\n"
		"  --from TIME        begin here: 1.5s is from the first event, -1s from the last\n"
		"  --to TIME          end here, counted in the same way\n"
		"  --task ID          only while this task ran\n"
		"  --kind NAME        only in callbacks of this kind or function\n"
		"  --loop NAME        only on this loop (its name, or #ID)\n"
		"  --weight WHAT      samples (the default) or ns\n"
		"  --pid PID          only this process\n"
		"  --process NAME     only processes of this name\n\n"
		"Examples:\n"
		"  tacho flame slow.tacho --svg slow.svg\n"
		"  tacho flame slow.tacho --off-cpu --loop front -o waits.svg\n",
	.run = run,
};
