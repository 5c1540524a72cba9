/*
 * tacho cat: the events, one line each.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/importing.h"
#include "answer/describe.h"
#include "answer/event.h"
#include "cli/parse.h"
#include "read/records.h"
#include "text/end.h"
#include "text/json.h"
#include "text/names.h"
#include "text/text.h"

enum time_form { TIME_REL, TIME_MONO, TIME_WALL, TIME_DEFAULT };

struct cat {
	/* What was asked for. */
	struct parse_instant from, to;
	uint64_t last_ns;
	bool by_type;
	bool types[256];
	const char *thread;
	uint64_t limit;
	bool json;
	unsigned time; /* enum time_form, or TIME_DEFAULT */

	/* What is at hand. */
	struct tacho_reader *reader;
	uint64_t first_ns, end_ns; /* of the whole input */
	uint64_t from_ns, to_ns;
	size_t label_width;
	uint64_t holes; /* records in holes that a filter kept from being shown */
};

#define OUTPUT_BUFFER 65536u
#define LABEL_MAX 32u /* columns of a thread's name; longer ones push their line out */

/* Thread as a person finds it: name/tid, with the process where there are several. */
static void thread_label(const struct cat *c, const struct tacho_event *e, char *out, size_t size)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(c->reader, e->process, e->thread);
	const struct tacho_process *p = tacho_read_process(c->reader, e->process);
	const char *signal = e->stream == TACHO_STREAM_KERNEL	? " (kernel)"
			     : e->stream >= TACHO_STREAM_SIGNAL ? " (signal)"
								: "";
	char pid[16] = "";

	if (tacho_read_process_count(c->reader) > 1 && p)
		snprintf(pid, sizeof(pid), "%" PRIu32 ":", p->pid);
	if (t)
		snprintf(out, size, "%s%.64s/%" PRIu32 "%s", pid, t->name[0] ? t->name : "?",
			 t->tid, signal);
	else
		snprintf(out, size, "%sthread %" PRIu32 "%s", pid, e->thread, signal);
}

static void find_label_width(struct cat *c)
{
	uint32_t count = tacho_read_thread_count(c->reader);

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho_thread *t = tacho_read_thread(c->reader, i);
		struct tacho_event e = {0};
		char label[128];
		size_t width;

		if (!t)
			continue;
		e.process = t->process;
		e.thread = t->number;
		thread_label(c, &e, label, sizeof(label));
		width = text_width(label);
		if (width <= LABEL_MAX && width > c->label_width)
			c->label_width = width;
	}
}

static bool thread_matches(const struct cat *c, const struct tacho_event *e)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(c->reader, e->process, e->thread);
	uint32_t tid;

	if (!t)
		return false;
	if (parse_pid(c->thread, &tid) && t->tid == tid)
		return true;
	return strcmp(t->name, c->thread) == 0;
}

static bool thread_exists(const struct cat *c)
{
	uint32_t count = tacho_read_thread_count(c->reader);

	for (uint32_t i = 0; i < count; i++) {
		const struct tacho_thread *t = tacho_read_thread(c->reader, i);
		struct tacho_event e = {0};

		if (!t)
			continue;
		e.process = t->process;
		e.thread = t->number;
		if (thread_matches(c, &e))
			return true;
	}
	return false;
}

static void print_time(const struct cat *c, const struct tacho_event *e)
{
	char text[TEXT_SMALL];

	switch (c->time) {
	case TIME_WALL:
		printf("%-30s", text_utc(text, tacho_read_real_ns(c->reader, e->process, e->ns)));
		break;
	case TIME_MONO:
		printf("%18s", text_seconds(text, e->ns));
		break;
	default:
		printf("%14s", text_seconds(text, e->ns > c->first_ns ? e->ns - c->first_ns : 0));
		break;
	}
}

static void print_text(const struct cat *c, const struct tacho_event *e)
{
	const char *type = name_type(e->type);
	bool resume = e->type == TACHO_EV_RESUME;
	char label[128], unknown[TEXT_SMALL];

	snprintf(unknown, sizeof(unknown), "type-0x%02x", e->type);
	thread_label(c, e, label, sizeof(label));
	if (resume)
		fputs(cli_colour(stdout, CLI_DIM), stdout);
	print_time(c, e);
	fputs("  ", stdout);
	text_put_wide(stdout, label, c->label_width);
	if (resume)
		fputs("  \u2026 ", stdout);
	else
		printf("  %-12s  ", type ? type : unknown);
	event_put_text(stdout, c->reader, e, c->time == TIME_MONO ? 0 : c->first_ns);
	if (resume)
		fputs(cli_colour(stdout, CLI_PLAIN), stdout);
	putchar('\n');
}

static void print_json(const struct cat *c, const struct tacho_event *e)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(c->reader, e->process, e->thread);
	const struct tacho_process *p = tacho_read_process(c->reader, e->process);
	const char *type = name_type(e->type);
	struct json j;

	json_begin(&j, stdout, false);
	json_object(&j);
	json_put_u64(&j, "ns", e->ns);
	json_put_u64(&j, "rel_ns", e->ns > c->first_ns ? e->ns - c->first_ns : 0);
	json_put_time(&j, "wall", tacho_read_real_ns(c->reader, e->process, e->ns));
	json_put_u64(&j, "pid", p ? p->pid : 0);
	json_put_u64(&j, "thread", e->thread);
	describe_thread_json(&j, "tid", t);
	json_put_known(&j, "thread_name", t ? t->name : "");
	json_put_u64(&j, "stream", e->stream);
	json_put_string(&j, "type", type ? type : "unknown");
	event_put_json(&j, c->reader, e);
	json_object_end(&j);
	json_end_line(&j);
}

static uint64_t place_instant(const struct cat *c, const struct parse_instant *i)
{
	uint64_t ns;

	if (i->from_end)
		return i->ns < c->end_ns ? c->end_ns - i->ns : 0;
	return __builtin_add_overflow(c->first_ns, i->ns, &ns) ? UINT64_MAX : ns;
}

/* Where to begin and end. False: that is no stretch of time; it has been said. */
static bool place_limits(struct cat *c)
{
	c->from_ns = 0;
	c->to_ns = UINT64_MAX;
	if (c->from.given)
		c->from_ns = place_instant(c, &c->from);
	if (c->to.given)
		c->to_ns = place_instant(c, &c->to);
	if (c->last_ns)
		c->from_ns = c->last_ns < c->end_ns ? c->end_ns - c->last_ns : 0;
	if (c->from_ns <= c->to_ns)
		return true;
	cli_error("--from lies after --to: there is nothing between them.");
	return false;
}

static bool wanted(struct cat *c, const struct tacho_event *e)
{
	bool show = (!c->by_type || c->types[e->type]) && (!c->thread || thread_matches(c, e));

	if (!show && e->type == TACHO_EV_RESUME && !e->resume->first)
		c->holes += e->resume->missing + e->resume->dropped;
	return show;
}

static int print_events(struct cat *c)
{
	const struct tacho_event *event;
	uint64_t shown = 0;
	int result = 0;

	if (c->from_ns > c->first_ns)
		result = tacho_read_seek(c->reader, c->from_ns);
	while (result >= 0 && shown < c->limit && !ferror(stdout)) {
		result = tacho_read_next(c->reader, &event);
		if (result <= 0 || event->ns > c->to_ns)
			break;
		if (event->ns < c->from_ns || !wanted(c, event))
			continue;
		if (c->json)
			print_json(c, event);
		else
			print_text(c, event);
		shown++;
	}
	return result < 0 ? result : 0;
}

static int cat_reader(struct cat *c, const char *path)
{
	int result;

	if (tacho_read_window(c->reader, &c->first_ns, &c->end_ns) < 0) {
		cli_warn_problems(c->reader, 10);
		cli_warn("there are no events in %s.", importing_name(path));
		return CLI_OK;
	}
	c->end_ns = tacho__read_last_ns(c->reader);
	if (!place_limits(c))
		return CLI_USAGE;
	if (c->thread && !thread_exists(c)) {
		cli_error("no thread of %s has the tid or name '%s'. 'tacho info' lists them.",
			  importing_name(path), c->thread);
		return CLI_FAILED;
	}
	find_label_width(c);
	if (!c->json)
		text_put_ends(stdout, c->reader);
	if (!isatty(STDOUT_FILENO))
		setvbuf(stdout, NULL, _IOFBF, OUTPUT_BUFFER);
	result = print_events(c);
	fflush(stdout);
	cli_warn_problems(c->reader, 10);
	if (c->holes)
		cli_warn("%" PRIu64 " records are missing in holes that are not shown.", c->holes);
	if (result < 0) {
		cli_error("reading %s ended early: %s.", importing_name(path), strerror(-result));
		return CLI_FAILED;
	}
	return CLI_OK;
}

static int cat_path(void *arg, const char *path)
{
	struct cat *c = arg;
	struct cli_progress progress;
	int status;

	cli_progress_begin(&progress, "reading");
	if (cli_open_whole(&c->reader, path, &progress) < 0)
		return CLI_FAILED;
	status = cat_reader(c, path);
	tacho_read_close(c->reader);
	return status;
}

static bool take_types(void *arg, const char *option, const char *text)
{
	return parse_types(option, text, arg);
}

static int run(int argc, char **argv)
{
	static const char *const forms[] = {"rel", "mono", "wall", NULL};
	static struct cat c = {.limit = UINT64_MAX, .time = TIME_DEFAULT};
	const struct cli_row options[] = {
		{"from", .instant = &c.from},
		{"to", .instant = &c.to},
		{"last", .duration = &c.last_ns},
		{"type", .flag = &c.by_type, .call = take_types, .arg = c.types},
		{"thread", .text = &c.thread},
		{"limit", .count = &c.limit},
		{"time", .words = forms, .word = &c.time},
		{"json", .flag = &c.json},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_cat, options);

	if (status != CLI_TAKEN)
		return status;
	if (c.last_ns && (c.from.given || c.to.given))
		return cli_usage("--last and --from or --to contradict each other.");
	if (c.json && c.time != TIME_DEFAULT)
		return cli_usage("--time and --json contradict each other: JSON has all three.");
	return cli_with_trace(argc, argv, cat_path, &c);
}

const struct cli_command cli_cat = {
	.name = "cat",
	.summary = "the events of a trace, one line each",
	.help = "Usage: tacho cat FILE|FOLDER|BOX|PID [OPTIONS]\n\n"
		"Prints all events in the order of time.\n\n"
		"  --from TIME    begin here: 1.5s is from the first event, -1s from the last\n"
		"  --to TIME      end here, counted in the same way\n"
		"  --last TIME    only this long before the last event\n"
		"  --type TYPES   only these: poll,wake,log, or exactly: poll-begin\n"
		"  --thread T     only this thread: tid or name\n"
		"  --limit N      at most N events\n"
		"  --time FORM    rel (to the first event), mono or wall\n"
		"  --json         one JSON object per line, for programs\n"
		"  --pid PID      only this process\n"
		"  --process NAME only processes of this name\n\n"
		"Example:\n"
		"  tacho cat slow.tacho --last 1s --type poll\n",
	.run = run,
};
