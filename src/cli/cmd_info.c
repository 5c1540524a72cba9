/*
 * tacho info: what a trace file, a folder of them, or a box is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/about.h"
#include "cli/importing.h"
#include "cli/cli.h"
#include "answer/describe.h"
#include "text/end.h"
#include "text/json.h"
#include "text/names.h"
#include "text/text.h"

struct info {
	const char *path;
	const struct tacho_reader *reader;
	struct cli_counts counts;
	bool has_window;
	uint64_t first_ns, last_ns;
	struct tacho__at_ends at_ends;
};

#define CLASSES (TACHO_DEF_DESCRIPTOR + 1)
#define THREADS_SHOWN 40u /* of the text; JSON has all */
#define GAPS_SHOWN 20u

/* How many definitions of each class; what is none of them counts as class 0. */
static void count_definitions(const struct tacho_reader *reader, uint32_t process,
			      uint64_t by_class[CLASSES])
{
	uint32_t limit = tacho_read_definition_limit(reader, process);

	memset(by_class, 0, CLASSES * sizeof(by_class[0]));
	for (uint32_t id = 1; id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(reader, process, id);

		if (d)
			by_class[d->def_class < CLASSES ? d->def_class : 0]++;
	}
}

/* Of the events that have the name of `type`; 0 but for the first type of that name. */
static uint64_t type_count(const struct info *in, uint32_t process, unsigned type)
{
	const uint64_t *by_type = in->counts.by_type + (size_t)process * 256;
	const char *name = name_type(type);
	uint64_t count = by_type[type];

	for (unsigned other = 0; name && other < 256; other++) {
		const char *same = other == type ? NULL : name_type(other);

		if (!same || strcmp(same, name) != 0)
			continue;
		if (other < type)
			return 0;
		count += by_type[other];
	}
	return count;
}

/* The first thing that whoever was woken up wants to know. */
static void print_why(const struct info *in)
{
	uint32_t processes = tacho_read_process_count(in->reader);
	char text[TEXT_SMALL];

	for (uint32_t i = 0; i < processes; i++) {
		const struct tacho_process *p = tacho_read_process(in->reader, i);

		if (!p || !p->why[0])
			continue;
		about_label("why");
		if (processes > 1)
			printf("process %" PRIu32 ": ", p->pid);
		text_put(stdout, p->why);
		if (p->why_mono_ns)
			printf(", on %s",
			       text_utc(text, tacho_read_real_ns(in->reader, i, p->why_mono_ns)));
		if (p->why_mono_ns && in->has_window && p->why_mono_ns >= in->first_ns)
			printf(" (at %s s)", text_seconds(text, p->why_mono_ns - in->first_ns));
		putchar('\n');
	}
}

static void print_taken(const struct tacho_process *p)
{
	char text[TEXT_SMALL];

	about_label("taken");
	if (p->imported[0]) {
		fputs("imported from ", stdout);
		text_put(stdout, p->imported);
		if (p->taken_real_ns)
			printf(", which ends on %s", text_utc(text, p->taken_real_ns));
		putchar('\n');
		return;
	}
	if (p->taken_by == TACHO_TAKEN_BOX)
		fputs("from the box, now", stdout);
	else if (p->segment)
		printf("by an agent as segment %" PRIu64 " on %s", p->segment,
		       text_utc(text, p->taken_real_ns));
	else
		printf("by %s on %s", name_taken_by(p->taken_by), text_utc(text, p->taken_real_ns));
	printf("; the process %s, its state %s\n",
	       p->alive == TACHO_ALIVE_YES  ? "was running"
	       : p->alive == TACHO_ALIVE_NO ? "was gone"
					    : "may have been running",
	       name_state(p->state));
}

static void print_process(const struct tacho_process *p)
{
	char text[TEXT_SMALL], hex[2 * 255 + 1];

	about_label("process");
	/* An import may know neither; 0 is what a pid that is not known reads as. */
	if (p->pid || !p->imported[0])
		printf("%" PRIu32 " ", p->pid);
	text_put(stdout, p->comm[0] ? p->comm : "(name not known)");
	if (p->service[0]) {
		fputs(", service ", stdout);
		text_put(stdout, p->service);
	}
	if (!p->imported[0])
		printf(", user %" PRIu32, p->uid);
	if (p->parent_pid)
		printf(", child of %" PRIu32, p->parent_pid);
	putchar('\n');
	if (p->command_line[0]) {
		about_label("");
		text_put(stdout, p->command_line);
		putchar('\n');
	}
	if (p->exe[0]) {
		about_label("");
		text_put(stdout, p->exe);
		if (p->build_id_size && p->build_id_size <= 255)
			printf(" (build-id %s)", text_hex(hex, p->build_id, p->build_id_size));
		putchar('\n');
	}
	about_label("host");
	text_put(stdout, p->host[0] ? p->host : "(not known)");
	printf(", %s, clock %s\n", name_arch(p->arch) ? name_arch(p->arch) : "arch not known",
	       name_clock(p->clock));
	print_taken(p);
	if (p->reason[0]) {
		about_label("");
		text_put(stdout, p->reason);
		putchar('\n');
	}
	about_label("recording");
	printf("since %s", text_utc(text, p->created_real_ns));
	if (p->version[0]) {
		fputs(", by tacho ", stdout);
		text_put(stdout, p->version);
	}
	putchar('\n');
	if (p->agent_cpu_ns) {
		about_label("agent");
		printf("had used %s of CPU time\n", text_duration(text, p->agent_cpu_ns));
	}
}

static void print_options(const struct tacho_process *p)
{
	char text[TEXT_SMALL];

	about_label("options");
	printf("max_bytes %s", text_bytes(text, p->max_bytes));
	if (p->min_age_ns)
		printf(", min_age %s", text_duration(text, p->min_age_ns));
	if (p->poll_threshold_ns)
		printf(", poll_threshold %s", text_duration(text, p->poll_threshold_ns));
	putchar('\n');
}

static void print_types(const struct info *in, uint32_t process)
{
	uint64_t total = 0;

	for (unsigned t = 0; t < 256; t++)
		total += type_count(in, process, t);
	about_label("events");
	printf("%" PRIu64 "\n", total);
	for (unsigned t = 0; t < 256; t++) {
		uint64_t count = type_count(in, process, t);
		const char *name = name_type(t);
		char unknown[TEXT_SMALL];

		if (!count)
			continue;
		snprintf(unknown, sizeof(unknown), "type-0x%02x", t);
		about_label("");
		printf("%-14s  %" PRIu64 "\n", name ? name : unknown, count);
	}
}

static void print_threads(const struct info *in, uint32_t process)
{
	uint32_t all = tacho_read_thread_count(in->reader), live, shown = 0;
	uint32_t count = about_thread_count(in->reader, process, &live);

	about_label("threads");
	printf("%" PRIu32 ", %" PRIu32 " of them running\n", count, live);
	for (uint32_t i = 0; i < all && shown < THREADS_SHOWN; i++) {
		const struct tacho_thread *t = tacho_read_thread(in->reader, i);

		if (!t || t->process != process)
			continue;
		about_label("");
		printf("%10" PRIu32 "  ", t->tid);
		text_put(stdout, t->name[0] ? t->name : "(no name)");
		puts(t->live ? "" : " (ended)");
		shown++;
	}
	if (count > shown) {
		about_label("");
		printf("and %" PRIu32 " more: see --json\n", count - shown);
	}
}

static void print_definitions(const struct info *in, uint32_t process)
{
	uint64_t by_class[CLASSES];
	bool any = false;

	count_definitions(in->reader, process, by_class);
	about_label("definitions");
	for (unsigned c = 0; c < CLASSES; c++) {
		if (!by_class[c])
			continue;
		printf("%s%" PRIu64 " %s", any ? ", " : "", by_class[c],
		       c ? name_class(c) : "unknown");
		any = true;
	}
	puts(any ? "" : "none");
}

static void print_triggers(const struct info *in, uint32_t process)
{
	char text[TEXT_SMALL];

	for (uint32_t i = 0; i < tacho_read_trigger_count(in->reader); i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(in->reader, i);

		if (!t || t->process != process)
			continue;
		about_label("trigger");
		printf("%" PRIu32 " by thread %" PRIu32 " on %s: ", t->number, t->tid,
		       text_utc(text, tacho_read_real_ns(in->reader, process, t->ns)));
		text_put(stdout, t->reason);
		if (t->sentinel[0])
			printf(" (sentinel %s: %s)", t->sentinel,
			       describe_sentinel_value(text, t->sentinel, t->value));
		putchar('\n');
	}
}

static void print_gaps(const struct info *in, uint32_t process)
{
	char length[TEXT_SMALL], text[TEXT_SMALL];
	uint32_t shown = 0, count = 0;

	for (uint32_t i = 0; i < tacho_read_gap_count(in->reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(in->reader, i);

		if (g->process != process)
			continue;
		if (count++ >= GAPS_SHOWN)
			continue;
		shown++;
		about_label(count == 1 ? "gaps" : "");
		printf("%s from %s, ", text_duration(length, g->to_ns - g->from_ns),
		       text_utc(text, tacho_read_real_ns(in->reader, process, g->from_ns)));
		if (g->records)
			printf("%" PRIu64 " record%s lost: %s", g->records,
			       g->records == 1 ? "" : "s", g->text);
		else
			printf("how many records is not known: %s", g->text);
		if (g->error)
			printf(" (%s)", strerror(g->error));
		putchar('\n');
	}
	if (count > shown) {
		about_label("");
		printf("and %" PRIu32 " more: see --json\n", count - shown);
	}
}

static void print_ends(const struct info *in)
{
	uint32_t processes = tacho_read_process_count(in->reader);
	char text[TEXT_END];

	for (uint32_t i = 0; i < processes; i++) {
		const struct tacho_process *p = tacho_read_process(in->reader, i);

		if (!p || !text_end(text, p)[0])
			continue;
		about_label("end");
		if (processes > 1)
			printf("process %" PRIu32 ": ", p->pid);
		puts(text);
	}
}

static void print_info(const struct info *in)
{
	uint32_t processes = tacho_read_process_count(in->reader);

	print_ends(in);
	about_label("file");
	text_put(stdout, in->path);
	if (processes > 1)
		printf(" (%" PRIu32 " processes)", processes);
	putchar('\n');
	print_why(in);
	about_label("window");
	if (in->has_window)
		about_window(in->first_ns, in->last_ns, &in->counts);
	else
		puts("empty");
	for (uint32_t i = 0; i < processes; i++) {
		const struct tacho_process *p = tacho_read_process(in->reader, i);

		if (!p)
			continue;
		if (processes > 1)
			putchar('\n');
		print_process(p);
		print_options(p);
		print_types(in, i);
		print_threads(in, i);
		about_at_end(&in->at_ends, i);
		print_definitions(in, i);
		about_sources(in->reader, i);
		about_losses(in->reader, i);
		print_gaps(in, i);
		print_triggers(in, i);
		about_crashes(in->reader, i, in->first_ns);
	}
	if (processes > 1 && tacho_read_absent_count(in->reader))
		putchar('\n');
	about_absent(in->reader);
}

static void json_threads(struct json *j, const struct info *in, uint32_t process)
{
	json_put_array(j, "threads");
	for (uint32_t i = 0; i < tacho_read_thread_count(in->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(in->reader, i);

		if (!t || t->process != process)
			continue;
		json_object(j);
		json_put_u64(j, "number", t->number);
		json_put_u64(j, "tid", t->tid);
		json_put_known(j, "name", t->name);
		json_put_bool(j, "running", t->live != 0);
		json_put_not_zero(j, "start_ns", t->start_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_modules(struct json *j, const struct info *in, uint32_t process)
{
	uint32_t limit = tacho_read_definition_limit(in->reader, process);
	char hex[2 * 255 + 1];

	json_put_array(j, "modules");
	for (uint32_t id = 1; id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(in->reader, process, id);

		if (!d || d->def_class != TACHO_DEF_MODULE)
			continue;
		json_object(j);
		json_put_string(j, "path", d->name);
		json_put_address(j, "start", d->start);
		json_put_address(j, "end", d->end);
		json_put_address(j, "offset", d->offset);
		json_put_known(
			j, "build_id",
			text_hex(hex, d->build_id, d->build_id_size <= 255 ? d->build_id_size : 0));
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_counts(struct json *j, const struct info *in, uint32_t process)
{
	uint64_t by_class[CLASSES];

	json_put_object(j, "events");
	for (unsigned t = 0; t < 256; t++) {
		uint64_t count = type_count(in, process, t);
		const char *name = name_type(t);
		char unknown[TEXT_SMALL];

		snprintf(unknown, sizeof(unknown), "type-0x%02x", t);
		if (count)
			json_put_u64(j, name ? name : unknown, count);
	}
	json_object_end(j);
	count_definitions(in->reader, process, by_class);
	json_put_object(j, "definitions");
	for (unsigned c = 0; c < CLASSES; c++)
		if (by_class[c])
			json_put_u64(j, c ? name_class(c) : "unknown", by_class[c]);
	json_object_end(j);
}

static void json_triggers(struct json *j, const struct info *in, uint32_t process)
{
	json_put_array(j, "triggers");
	for (uint32_t i = 0; i < tacho_read_trigger_count(in->reader); i++) {
		const struct tacho_trigger_info *t = tacho_read_trigger(in->reader, i);

		if (!t || t->process != process)
			continue;
		json_object(j);
		json_put_u64(j, "number", t->number);
		json_put_u64(j, "tid", t->tid);
		json_put_u64(j, "ns", t->ns);
		json_put_time(j, "wall", tacho_read_real_ns(in->reader, process, t->ns));
		json_put_string(j, "reason", t->reason);
		describe_trigger_json(j, t);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_why(struct json *j, const struct info *in, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(in->reader, process);
	uint64_t ns = p->why_mono_ns;

	json_put_known(j, "why", p->why);
	json_put_not_zero(j, "why_ns", ns);
	json_put_time(j, "why_wall", ns ? tacho_read_real_ns(in->reader, process, ns) : 0);
	json_put_not_zero(j, "segment", p->segment);
	json_put_not_zero(j, "recording_number", p->recording);
	json_put_not_zero(j, "agent_cpu_ns", p->agent_cpu_ns);
}

static void json_gaps(struct json *j, const struct info *in, uint32_t process)
{
	json_put_array(j, "gaps");
	for (uint32_t i = 0; i < tacho_read_gap_count(in->reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(in->reader, i);

		if (g->process != process)
			continue;
		json_object(j);
		json_put_u64(j, "from_ns", g->from_ns);
		json_put_u64(j, "to_ns", g->to_ns);
		json_put_time(j, "wall", tacho_read_real_ns(in->reader, process, g->from_ns));
		json_put_not_zero(j, "records", g->records);
		json_put_string(j, "reason", g->reason);
		json_put_string(j, "text", g->text);
		json_put_known(j, "error", g->error ? strerror(g->error) : "");
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_problems(struct json *j, const struct tacho_reader *reader)
{
	json_put_array(j, "problems");
	for (uint32_t i = 0; i < tacho_read_problem_count(reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(reader, i);

		if (!p)
			continue;
		json_object(j);
		json_put_string(j, "name", p->name);
		json_put_string(j, "text", p->text);
		json_put_known(j, "path", p->path);
		if (p->size) {
			json_put_u64(j, "offset", p->offset);
			json_put_u64(j, "size", p->size);
		}
		json_object_end(j);
	}
	json_array_end(j);
}

static void print_info_json(const struct info *in)
{
	struct json j;

	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_string(&j, "path", in->path);
	json_put_u64(&j, "event_count", in->counts.events);
	json_put_u64(&j, "missing_records", in->counts.missing);
	json_put_u64(&j, "dropped_records", in->counts.dropped);
	if (in->has_window) {
		json_put_u64(&j, "first_ns", in->first_ns);
		json_put_u64(&j, "last_ns", in->last_ns);
		json_put_u64(&j, "window_ns", in->last_ns - in->first_ns);
		json_put_u64(&j, "unbroken_ns", in->last_ns - in->counts.whole_ns);
	}
	json_put_array(&j, "processes");
	for (uint32_t i = 0; i < tacho_read_process_count(in->reader); i++) {
		const struct tacho_process *p = tacho_read_process(in->reader, i);

		if (!p)
			continue;
		json_object(&j);
		json_why(&j, in, i);
		about_process_json(&j, p);
		json_counts(&j, in, i);
		json_threads(&j, in, i);
		answer_at_end(&j, &in->at_ends, i);
		json_modules(&j, in, i);
		about_sources_json(&j, in->reader, i);
		about_losses_json(&j, in->reader, i);
		json_gaps(&j, in, i);
		json_triggers(&j, in, i);
		about_crashes_json(&j, in->reader, i);
		json_object_end(&j);
	}
	json_array_end(&j);
	answer_absent(&j, in->reader);
	json_problems(&j, in->reader);
	json_object_end(&j);
	json_end_line(&j);
}

static int show(const char *path, bool json)
{
	char message[CLI_MESSAGE];
	struct info in = {.path = importing_name(path)};
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	int result;

	cli_progress_begin(&progress, "reading");
	result = cli_open(&reader, path, &progress, 0, message, sizeof(message));
	if (result == -ENODATA)
		cli_error("there is nothing in it: %s", message);
	if (result < 0)
		return CLI_FAILED;
	in.reader = reader;
	in.counts.by_type = calloc((size_t)tacho_read_process_count(reader) + 1,
				   256 * sizeof(in.counts.by_type[0]));
	if (!in.counts.by_type) {
		cli_error("out of memory.");
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	in.has_window = tacho_read_window(reader, &in.first_ns, &in.last_ns) >= 0;
	result = cli_count_events(reader, &progress, &in.counts);
	if (result >= 0)
		result = tacho__at_end_list(reader, &in.at_ends);
	if (json)
		print_info_json(&in);
	else
		print_info(&in);
	cli_warn_problems(reader, UINT32_MAX);
	if (result < 0)
		cli_error("reading %s ended early: %s.", importing_name(path), strerror(-result));
	free(in.counts.by_type);
	tacho__at_end_free(&in.at_ends);
	tacho_read_close(reader);
	return result < 0 ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
	return cli_show_one(argc, argv, &cli_info,
			    "which trace? Give a trace file, a folder of them, a box or a PID.",
			    "one trace at a time; a folder of traces counts as one.", show);
}

const struct cli_command cli_info = {
	.name = "info",
	.summary = "what a trace file is: process, window, events, losses, crashes",
	.help = "Usage: tacho info FILE|FOLDER|BOX|PID [--json] [--pid PID] [--process NAME]\n\n"
		"Says why a trace was taken, of which process it is, how and when it was\n"
		"taken, what it holds, what was lost, and what is damaged.\n\n"
		"  --json          for programs\n"
		"  --pid PID       only this process\n"
		"  --process NAME  only processes of this name\n\n"
		"Example:\n"
		"  tacho info slow.tacho\n",
	.run = run,
};
