/*
 * tacho status: does it record, what, how far back, and what is missing?
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/about.h"
#include "cli/cli.h"
#include "text/json.h"
#include "text/names.h"
#include "text/text.h"

struct status {
	const char *path;
	const struct tacho_reader *reader;
	const struct tacho_process *process;
	struct cli_counts counts;
	bool has_window;
	uint64_t first_ns, last_ns;
};

static bool is_recording(const struct tacho_process *p)
{
	return p->alive != TACHO_ALIVE_NO && p->state == TACHO_STATE_RECORDING;
}

static void print_recording(const struct status *s)
{
	const struct tacho_process *p = s->process;
	char text[TEXT_SMALL];

	about_label("recording");
	if (is_recording(p))
		printf("yes, since %s", text_local(text, p->created_real_ns));
	else if (p->alive != TACHO_ALIVE_NO)
		printf("no, %s", name_state(p->state));
	else if (tacho_read_crash_count(s->reader) > 0 && !tacho_read_crash(s->reader, 0)->survived)
		printf("no, the process is gone after a crash: %s",
		       name_signal(text, tacho_read_crash(s->reader, 0)->signal));
	else
		printf("no, the process is gone%s",
		       p->state == TACHO_STATE_STOPPED ? " and had stopped recording" : "");
	putchar('\n');
	if (p->reason[0]) {
		about_label("");
		text_put(stdout, p->reason);
		putchar('\n');
	}
}

/* How long ago the last event was: a hung process shows here. */
static bool last_event_age(const struct status *s, uint64_t *age_ns)
{
	const struct tacho_process *p = s->process;

	if (!s->has_window || p->alive != TACHO_ALIVE_YES || p->taken_mono_ns < s->last_ns)
		return false;
	*age_ns = p->taken_mono_ns - s->last_ns;
	return true;
}

/* The window against what was asked for. What lies before a hole is no part of it. */
static void print_window(const struct status *s)
{
	const struct tacho_process *p = s->process;
	uint64_t window = s->last_ns - s->counts.whole_ns;
	char text[TEXT_SMALL], wanted[TEXT_SMALL];
	uint64_t age_ns;

	about_label("events");
	printf("%" PRIu64 " in the window\n", s->counts.events);
	about_label("window");
	if (!s->has_window) {
		puts("empty: nothing was recorded yet");
		return;
	}
	about_window(s->first_ns, s->last_ns, &s->counts);
	if (last_event_age(s, &age_ns)) {
		about_label("");
		printf("the last event was %s ago\n", text_duration(text, age_ns));
	}
	text_duration(wanted, p->min_age_ns);
	about_label("");
	if (p->min_age_ns == 0)
		puts("no min_age was asked for: as long as memory allows");
	else if (window >= p->min_age_ns)
		printf("min_age %s is kept\n", wanted);
	else if (s->last_ns < p->created_mono_ns + p->min_age_ns)
		printf("min_age %s: recording began only %s before the last event\n", wanted,
		       text_duration(text, s->last_ns > p->created_mono_ns
						   ? s->last_ns - p->created_mono_ns
						   : 0));
	else
		printf("less than min_age %s: raise max_bytes\n", wanted);
}

static void print_agent(const struct status *s)
{
	const struct tacho_process *p = s->process;

	about_label("agent");
	if (!p->agent_pid)
		puts("none looks after this box");
	else if (!about_agent_runs(p))
		printf("%" PRIu32 " looked after this box and is gone\n", p->agent_pid);
	else
		printf("%" PRIu32 " looks after this box\n", p->agent_pid);
	if (about_has_sentinels(s->reader, 0)) {
		about_label("sentinels");
		about_sentinels(stdout, s->reader, 0);
		putchar('\n');
	}
}

static void print_status(const struct status *s)
{
	const struct tacho_process *p = s->process;
	char used[TEXT_SMALL], budget[TEXT_SMALL];
	uint32_t live, threads = about_thread_count(s->reader, 0, &live);

	about_label("process");
	printf("%" PRIu32 " ", p->pid);
	text_put(stdout, p->comm[0] ? p->comm : "(name not known)");
	if (p->service[0]) {
		fputs(", service ", stdout);
		text_put(stdout, p->service);
	}
	printf(", %s\n", about_alive(p));
	about_label("box");
	text_put(stdout, s->path);
	putchar('\n');
	print_recording(s);
	print_window(s);
	print_agent(s);
	about_label("memory");
	printf("%s of %s\n", text_bytes(used, p->used_bytes), text_bytes(budget, p->max_bytes));
	about_label("threads");
	printf("%" PRIu32 " known, %" PRIu32 " of them running; %" PRIu32 " recorded so far\n",
	       threads, live, p->threads_seen);
	about_label("clock");
	puts(name_clock(p->clock));
	if (p->poll_threshold_ns) {
		about_label("polls");
		printf("shorter than %s are counted, not recorded one by one\n",
		       text_duration(used, p->poll_threshold_ns));
	}
	about_sources(s->reader, 0);
	about_losses(s->reader, 0);
	about_crashes(s->reader, 0, s->first_ns);
}

static void print_status_json(const struct status *s)
{
	uint32_t live, threads = about_thread_count(s->reader, 0, &live);
	uint64_t age_ns;
	struct json j;

	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_string(&j, "box", s->path);
	json_put_bool(&j, "recording", is_recording(s->process));
	about_process_json(&j, s->process);
	about_agent_json(&j, s->reader, 0);
	json_put_u64(&j, "used_bytes", s->process->used_bytes);
	json_put_u64(&j, "events", s->counts.events);
	json_put_u64_if(&j, "window_ns", s->has_window, s->last_ns - s->first_ns);
	json_put_u64_if(&j, "unbroken_ns", s->has_window, s->last_ns - s->counts.whole_ns);
	json_key(&j, "last_event_age_ns");
	if (last_event_age(s, &age_ns))
		json_u64(&j, age_ns);
	else
		json_null(&j);
	json_put_u64(&j, "missing_records", s->counts.missing);
	json_put_u64(&j, "dropped_records", s->counts.dropped);
	json_put_u64(&j, "threads", threads);
	json_put_u64(&j, "threads_running", live);
	about_sources_json(&j, s->reader, 0);
	about_losses_json(&j, s->reader, 0);
	about_crashes_json(&j, s->reader, 0);
	json_object_end(&j);
	json_end_line(&j);
}

/* A process that could not record left only the reason. */
static void print_off(const char *path, const char *reason, bool json)
{
	struct json j;

	if (!json) {
		about_label("box");
		text_put(stdout, path);
		putchar('\n');
		about_label("recording");
		fputs("no: ", stdout);
		text_put(stdout, reason);
		putchar('\n');
		return;
	}
	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_string(&j, "box", path);
	json_put_bool(&j, "recording", false);
	json_put_string(&j, "state", "off");
	json_put_string(&j, "reason", reason);
	json_object_end(&j);
	json_end_line(&j);
}

static int show(const char *path, bool json)
{
	char message[CLI_MESSAGE];
	struct status s = {.path = path};
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	int result;

	cli_progress_begin(&progress, "reading the box");
	result = cli_open(&reader, path, &progress, 0, message, sizeof(message));
	if (result == -ENODATA) {
		print_off(path, message, json);
		return CLI_OK;
	}
	if (result < 0)
		return CLI_FAILED;
	s.reader = reader;
	s.process = tacho_read_process(reader, 0);
	if (!s.process || s.process->taken_by != TACHO_TAKEN_BOX) {
		cli_error("%s is not a box but a trace. Use 'tacho info'.", path);
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	s.has_window = tacho_read_window(reader, &s.first_ns, &s.last_ns) >= 0;
	result = cli_count_events(reader, &progress, &s.counts);
	if (json)
		print_status_json(&s);
	else
		print_status(&s);
	cli_warn_problems(reader, 10);
	if (result < 0)
		cli_error("reading %s ended early: %s.", path, strerror(-result));
	tacho_read_close(reader);
	return result < 0 ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
	return cli_show_one(argc, argv, &cli_status,
			    "which process? Give a PID or the path of a box.",
			    "one process at a time.", show);
}

const struct cli_command cli_status = {
	.name = "status",
	.summary = "whether a process records, what, and what is missing",
	.help = "Usage: tacho status PID|BOX [--json]\n\n"
		"Says whether the process records, from which sources, how many events and\n"
		"seconds the window holds, and what was lost.\n\n"
		"  --json   for programs\n\n"
		"Example:\n"
		"  tacho status 4711\n",
	.run = run,
};
