/*
 * What `status`, `info` and `ls` say about a process.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "cli/about.h"
#include "cli/cli.h"
#include "answer/describe.h"
#include "text/end.h"
#include "text/names.h"
#include "text/text.h"

#define LABEL_WIDTH 12

void about_label(const char *label)
{
	printf("%s%-*s%s", cli_colour(stdout, label[0] ? CLI_BOLD : CLI_PLAIN), LABEL_WIDTH, label,
	       cli_colour(stdout, CLI_PLAIN));
}

const char *about_alive(const struct tacho_process *process)
{
	return process->alive == TACHO_ALIVE_YES  ? "running"
	       : process->alive == TACHO_ALIVE_NO ? "gone"
						  : "not known whether it runs";
}

void about_window(uint64_t first_ns, uint64_t last_ns, const struct cli_counts *counts)
{
	char all[TEXT_SMALL], whole[TEXT_SMALL];

	if (counts->whole_ns <= first_ns)
		printf("%s\n", text_duration(all, last_ns - first_ns));
	else
		printf("%s without holes; before that pieces back to %s (%" PRIu64
		       " records between them were overwritten or damaged, %" PRIu64
		       " found no room)\n",
		       text_duration(whole, last_ns - counts->whole_ns),
		       text_duration(all, last_ns - first_ns), counts->missing, counts->dropped);
}

void about_sources(const struct tacho_reader *reader, uint32_t process)
{
	const char *label = "sources";

	for (uint32_t i = 0; i < tacho_read_source_count(reader); i++) {
		struct tacho_source_info s = {.size = sizeof(s)};

		if (tacho_read_source(reader, process, i, &s) < 0 || s.state == TACHO_SOURCE_ABSENT)
			continue;
		about_label(label);
		printf("%-14s  %s", s.name, name_source_state(s.state));
		if (s.state == TACHO_SOURCE_REFUSED)
			printf(": %s", s.error ? strerror(s.error) : "no reason was given");
		putchar('\n');
		label = "";
	}
	if (label[0]) {
		about_label(label);
		puts("none");
	}
}

/* Losses first, then what was merely counted. */
void about_losses(const struct tacho_reader *reader, uint32_t process)
{
	static const char *const labels[] = {"counted", "losses"};

	for (int lossy = 1; lossy >= 0; lossy--) {
		const char *label = labels[lossy];

		for (uint32_t i = 0; i < tacho_read_loss_count(reader); i++) {
			struct tacho_loss_info l = {.size = sizeof(l)};

			if (tacho_read_loss(reader, process, i, &l) < 0 || l.count == 0 ||
			    (l.lossy != 0) != lossy)
				continue;
			about_label(label);
			printf("%-20s  %" PRIu64 "  %s\n", l.name, l.count, l.text);
			label = "";
		}
		if (lossy && label[0]) {
			about_label(label);
			puts("none");
		}
	}
}

void about_sources_json(struct json *j, const struct tacho_reader *reader, uint32_t process)
{
	json_put_array(j, "sources");
	for (uint32_t i = 0; i < tacho_read_source_count(reader); i++) {
		struct tacho_source_info s = {.size = sizeof(s)};

		if (tacho_read_source(reader, process, i, &s) < 0)
			continue;
		json_object(j);
		json_put_string(j, "name", s.name);
		json_put_string(j, "state", name_source_state(s.state));
		json_put_known(j, "reason",
			       s.state == TACHO_SOURCE_REFUSED && s.error ? strerror(s.error) : "");
		json_object_end(j);
	}
	json_array_end(j);
}

void about_losses_json(struct json *j, const struct tacho_reader *reader, uint32_t process)
{
	json_put_array(j, "losses");
	for (uint32_t i = 0; i < tacho_read_loss_count(reader); i++) {
		struct tacho_loss_info l = {.size = sizeof(l)};

		if (tacho_read_loss(reader, process, i, &l) < 0)
			continue;
		json_object(j);
		json_put_string(j, "name", l.name);
		json_put_u64(j, "count", l.count);
		json_put_bool(j, "lossy", l.lossy != 0);
		json_put_string(j, "text", l.text);
		json_object_end(j);
	}
	json_array_end(j);
}

void about_process_json(struct json *j, const struct tacho_process *p)
{
	char boot[33], build[2 * 255 + 1];

	json_put_u64(j, "pid", p->pid);
	json_put_u64(j, "uid", p->uid);
	json_put_not_zero(j, "parent_pid", p->parent_pid);
	json_put_u64(j, "start_time", p->start_time);
	json_put_string(j, "boot_id", text_hex(boot, p->boot_id, sizeof(p->boot_id)));
	json_put_known(j, "program", p->comm);
	json_put_known(j, "exe", p->exe);
	/* Traces of before do not have it. */
	if (p->command_line[0])
		json_put_string(j, "command_line", p->command_line);
	json_put_known(j, "service", p->service);
	json_put_known(j, "host", p->host);
	json_put_known(j, "version", p->version);
	json_put_known(
		j, "build_id",
		text_hex(build, p->build_id, p->build_id_size <= 255 ? p->build_id_size : 0));
	json_put_known(j, "arch", name_arch(p->arch));
	json_put_string(j, "clock", name_clock(p->clock));
	json_put_string(j, "state", name_state(p->state));
	json_put_known(j, "reason", p->reason);
	describe_alive_json(j, p->alive);
	text_end_json(j, p);
	json_put_string(j, "taken_by", name_taken_by(p->taken_by));
	if (p->imported[0])
		json_put_string(j, "imported", p->imported);
	json_put_time(j, "taken", p->taken_real_ns);
	json_put_time(j, "since", p->created_real_ns);
	json_put_u64(j, "max_bytes", p->max_bytes);
	json_put_u64(j, "min_age_ns", p->min_age_ns);
	json_put_u64(j, "poll_threshold_ns", p->poll_threshold_ns);
	json_put_u64(j, "threads_seen", p->threads_seen);
}

/* A time of the trace, relative to its first event. */
static void print_rel(uint64_t ns, uint64_t zero_ns)
{
	char text[TEXT_SMALL];

	if (ns >= zero_ns)
		printf("%s s", text_seconds(text, ns - zero_ns));
	else
		printf("-%s s", text_seconds(text, zero_ns - ns));
}

static void print_crash(const struct tacho_reader *reader, const struct tacho_crash_info *c,
			uint64_t zero_ns)
{
	char text[TEXT_SMALL];

	about_label("crash");
	printf("%s (code %d) at address 0x%" PRIx64 " in thread ", name_signal(text, c->signal),
	       c->code, c->address);
	text_put(stdout, c->thread_name);
	printf("/%" PRIu32 ", at ", c->tid);
	print_rel(c->ns, zero_ns);
	putchar('\n');
	if (c->said[0]) {
		about_label("");
		text_put(stdout, c->said);
		putchar('\n');
	}
	if (c->survived) {
		about_label("");
		puts("the process went on after it, and ended in order");
	}
	for (uint32_t i = 0; i < c->frame_count; i++) {
		about_label("");
		printf("#%-2" PRIu32 " 0x%016" PRIx64 "  ", i, c->frames[i]);
		describe_address(stdout, reader, c->process, c->frames[i], c->ns, i > 0);
		putchar('\n');
	}
	if (c->unwind_failed || c->frame_count == 0) {
		about_label("");
		puts(c->frame_count ? "the stack was damaged here: this is what could be read"
				    : "no stack could be read");
	}
	for (uint32_t i = 0; i < c->reg_count; i++) {
		const char *name = name_register(c->arch, i);

		if (i % 4 == 0)
			about_label("");
		printf("%-7s %016" PRIx64 "%s", name ? name : "?", c->regs[i],
		       i % 4 == 3 || i + 1 == c->reg_count ? "\n" : "  ");
	}
}

void about_crashes(const struct tacho_reader *reader, uint32_t process, uint64_t zero_ns)
{
	for (uint32_t i = 0; i < tacho_read_crash_count(reader); i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		if (c && c->process == process)
			print_crash(reader, c, zero_ns);
	}
}

static void crash_json(struct json *j, const struct tacho_reader *reader,
		       const struct tacho_crash_info *c)
{
	char text[TEXT_SMALL];

	json_object(j);
	json_put_string(j, "signal", name_signal(text, c->signal));
	json_key(j, "signal_number");
	json_i64(j, c->signal);
	json_key(j, "code");
	json_i64(j, c->code);
	json_put_address(j, "address", c->address);
	json_put_u64(j, "ns", c->ns);
	json_put_time(j, "wall", tacho_read_real_ns(reader, c->process, c->ns));
	json_put_u64(j, "tid", c->tid);
	json_put_known(j, "thread_name", c->thread_name);
	json_put_bool(j, "unwind_failed", c->unwind_failed != 0);
	if (c->said[0])
		json_put_string(j, "said", c->said);
	if (c->survived)
		json_put_bool(j, "survived", 1);
	json_put_array(j, "frames");
	for (uint32_t i = 0; i < c->frame_count; i++)
		describe_address_json(j, reader, c->process, c->frames[i], c->ns, i > 0);
	json_array_end(j);
	json_put_object(j, "registers");
	for (uint32_t i = 0; i < c->reg_count; i++) {
		const char *name = name_register(c->arch, i);

		snprintf(text, sizeof(text), "r#%" PRIu32, i);
		json_put_address(j, name ? name : text, c->regs[i]);
	}
	json_object_end(j);
	json_object_end(j);
}

void about_crashes_json(struct json *j, const struct tacho_reader *reader, uint32_t process)
{
	json_put_array(j, "crashes");
	for (uint32_t i = 0; i < tacho_read_crash_count(reader); i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		if (c && c->process == process)
			crash_json(j, reader, c);
	}
	json_array_end(j);
}

uint32_t about_thread_count(const struct tacho_reader *reader, uint32_t process, uint32_t *live)
{
	uint32_t all = tacho_read_thread_count(reader), count = 0;

	*live = 0;
	for (uint32_t i = 0; i < all; i++) {
		const struct tacho_thread *t = tacho_read_thread(reader, i);

		if (!t || t->process != process)
			continue;
		count++;
		*live += t->live != 0;
	}
	return count;
}

bool about_agent_runs(const struct tacho_process *process)
{
	return process->agent_pid && process->agent_pid <= INT32_MAX &&
	       (!kill((pid_t)process->agent_pid, 0) || errno == EPERM);
}

void about_sentinels(FILE *out, const struct tacho_reader *reader, uint32_t process)
{
	const char *before = "";

	for (uint32_t i = 0; i < tacho_read_sentinel_count(reader); i++) {
		struct tacho_sentinel_info s = {.size = sizeof(s)};
		char text[TEXT_SMALL];

		if (tacho_read_sentinel(reader, process, i, &s) < 0 || !s.limit)
			continue;
		fprintf(out, "%s%s>%s", before, s.name,
			describe_sentinel_value(text, s.name, s.limit));
		before = ", ";
	}
}

bool about_has_sentinels(const struct tacho_reader *reader, uint32_t process)
{
	for (uint32_t i = 0; i < tacho_read_sentinel_count(reader); i++) {
		struct tacho_sentinel_info s = {.size = sizeof(s)};

		if (tacho_read_sentinel(reader, process, i, &s) >= 0 && s.limit)
			return true;
	}
	return false;
}

void about_agent_json(struct json *j, const struct tacho_reader *reader, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(reader, process);

	json_put_u64_if(j, "agent_pid", about_agent_runs(p), p->agent_pid);
	json_put_object(j, "sentinels");
	for (uint32_t i = 0; i < tacho_read_sentinel_count(reader); i++) {
		struct tacho_sentinel_info s = {.size = sizeof(s)};

		if (tacho_read_sentinel(reader, process, i, &s) >= 0 && s.limit)
			json_put_u64(j, s.name, s.limit);
	}
	json_object_end(j);
}

#define ABSENT_SHOWN 20u

void about_absentee(const struct tacho_absent *a)
{
	text_put(stdout, a->comm);
	printf(" (%" PRIu32 "): %s", a->pid, a->text);
	if (a->said[0]) {
		fputs(": ", stdout);
		text_put(stdout, a->said);
	}
}

void about_absent(const struct tacho_reader *reader)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < tacho_read_absent_count(reader); i++) {
		const struct tacho_absent *a = tacho_read_absent(reader, i);

		if (count++ >= ABSENT_SHOWN)
			continue;
		about_label(count == 1 ? "absent" : "");
		about_absentee(a);
		putchar('\n');
	}
	if (count > ABSENT_SHOWN) {
		about_label("");
		printf("and %" PRIu32 " more: see --json\n", count - ABSENT_SHOWN);
	}
}
