/*
 * tacho blame: where the time of one request, task, wake or callback went.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/importing.h"
#include "answer/answer.h"
#include "cli/parse.h"
#include "text/text.h"
#include "explain/blame.h"
#include "explain/explain.h"
#include "model/language.h"
#include "read/records.h"

#define SUBJECTS_MAX 1000u
#define SLOWEST_DEFAULT 5u

struct asked {
	struct tacho__subject_filter filter;
	uint64_t most;
	bool json;
	struct json j;
	uint64_t zero_ns; /* first event of the trace */
	char names[TACHO__LANGUAGE_TEXT];
};

/* ------------------------------------------------------------------- options */

static bool take_trace_id(void *arg, const char *option, const char *text)
{
	struct tacho__subject_filter *f = arg;
	size_t size = strlen(text);
	char half[17];
	char *end;

	if (size == 0 || size > 32 || strspn(text, "0123456789abcdefABCDEF") != size ||
	    strspn(text, "0") == size) {
		cli_usage("%s: '%s' is not 1 to 32 hexadecimal digits other than 0.", option, text);
		return false;
	}
	f->trace_high = 0;
	if (size > 16) {
		snprintf(half, sizeof(half), "%.*s", (int)(size - 16), text);
		f->trace_high = strtoull(half, &end, 16);
		text += size - 16;
	}
	f->trace_low = strtoull(text, &end, 16);
	return true;
}

/* ------------------------------------------------------------------- output */

static void put_piece(const struct tacho__blame *b, const struct tacho__piece *p)
{
	double whole = (double)(b->subject.to_ns - b->subject.from_ns);
	size_t indent = 2 + 2 * (size_t)p->depth + 38; /* what the numbers and the owner take */
	char text[TEXT_SMALL], what[sizeof(p->text) + 256], name[128];
	size_t used;

	printf("  %*s", (int)(2 * p->depth), "");
	if (p->depth)
		printf("%s", cli_colour(stdout, CLI_DIM));
	printf("%10s %5.1f %%  %-17s ", text_duration(text, p->ns),
	       whole > 0 ? 100.0 * (double)p->ns / whole : 0, tacho__owner_name(p->owner));
	snprintf(what, sizeof(what), "%s", p->text);
	if (p->where_count) {
		const struct tacho__place *w = &p->where[0];

		used = strlen(what);
		snprintf(what + used, sizeof(what) - used, "%s%s", used ? "  " : "",
			 tacho__place_name(name, sizeof(name), w));
		used = strlen(what);
		if (w->file[0])
			snprintf(what + used, sizeof(what) - used, " (%s:%" PRIu32 ")",
				 tacho__place_file(w), w->line);
	}
	used = strlen(what);
	if (p->parts > 1)
		snprintf(what + used, sizeof(what) - used, "%sin %" PRIu32 " parts",
			 used ? "  " : "", p->parts);
	text_put_broken(stdout, what, indent, indent, cli_columns(stdout));
	printf("%s\n", p->depth ? cli_colour(stdout, CLI_PLAIN) : "");
}

static void put_text(struct asked *a, const struct tacho_reader *reader,
		     const struct tacho__blame *b)
{
	const struct tacho__subject *s = &b->subject;
	char name[160], from[TEXT_SMALL], length[TEXT_SMALL], task[TEXT_SMALL], what[CLI_MESSAGE];
	bool several = tacho_read_process_count(reader) > 1;
	char process[TACHO__TEXT] = "";
	uint64_t sum = 0;

	answer_subject_name(reader, s, name, sizeof(name));
	if (several)
		tacho__process_text(reader, process, s->process);
	snprintf(what, sizeof(what), "%s%s%s %s%s%s: %s, from +%s%s", process, several ? ": " : "",
		 answer_subject_type(s->type), name, s->task ? " of task " : "",
		 s->task ? text_id(task, s->task) : "",
		 text_duration(length, s->to_ns - s->from_ns),
		 text_duration(from, s->from_ns - a->zero_ns),
		 s->cut ? " (cut by the end of what was recorded)" : "");
	printf("%s", cli_colour(stdout, CLI_BOLD));
	text_put_broken(stdout, what, 0, 2, cli_columns(stdout));
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
	for (uint32_t i = 0; i < b->count; i++) {
		put_piece(b, &b->pieces[i]);
		if (!a->names[0])
			tacho__language_advice(a->names, b->pieces[i].where,
					       b->pieces[i].where_count);
		sum += b->pieces[i].depth ? 0 : b->pieces[i].ns;
	}
	printf("  %10s in all\n\n", text_duration(length, sum));
}

/* --------------------------------------------------------------------- run */

static int blame_one(struct asked *a, struct tacho_reader *reader, const struct tacho__subject *s)
{
	uint64_t from =
		s->from_ns > TACHO__BLAME_BEFORE_NS ? s->from_ns - TACHO__BLAME_BEFORE_NS : 0;
	int error = tacho__read_limit(reader, from, s->to_ns + TACHO__BLAME_AFTER_NS);
	struct tacho__blame *b = error ? NULL : tacho__blame_make(reader, s, &error);

	if (!b)
		cli_error("cannot work out where the time went: %s.", strerror(-error));
	else if (a->json)
		answer_blame(&a->j, reader, b);
	else
		put_text(a, reader, b);
	tacho__blame_free(b);
	return error ? CLI_FAILED : CLI_OK;
}

static int blame(void *arg, const char *path)
{
	struct asked *a = arg;
	static struct tacho__subject subjects[SUBJECTS_MAX];
	const struct parse_instant any = {0};
	struct tacho_reader *reader = NULL;
	uint64_t last;
	int count, status = CLI_OK;

	if (cli_open_between(&reader, &path, 1, &any, &any) < 0)
		return CLI_FAILED;
	tacho_read_window(reader, &a->zero_ns, &last);
	count = tacho__blame_find(reader, &a->filter, subjects, (uint32_t)a->most);
	cli_warn_problems(reader, 5);
	if (count < 0) {
		cli_error("cannot read %s: %s.", importing_name(path), strerror(-count));
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	if (a->json) {
		json_begin(&a->j, stdout, true);
		json_object(&a->j);
		json_put_u64(&a->j, "version", 1);
		json_put_array(&a->j, "subjects");
	}
	if (!count) {
		cli_error("%s holds nothing that was asked for. 'tacho stats' lists what it holds.",
			  importing_name(path));
		status = CLI_FAILED;
	}
	for (int i = 0; i < count && status == CLI_OK; i++)
		status = blame_one(a, reader, &subjects[i]);
	if (a->names[0]) {
		text_put_broken(stdout, a->names, 0, 2, cli_columns(stdout));
		putchar('\n');
	}
	if (a->json) {
		json_array_end(&a->j);
		json_object_end(&a->j);
		json_end_line(&a->j);
	}
	tacho_read_close(reader);
	return cli_finish(status);
}

static int run(int argc, char **argv)
{
	struct asked a = {.most = SLOWEST_DEFAULT};
	const struct cli_row options[] = {
		{"json", .flag = &a.json},
		{"slowest", .count = &a.most},
		{"task", .task = &a.filter.task},
		{"span", .text = &a.filter.span},
		{"trace-id", .call = take_trace_id, .arg = &a.filter},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_blame, options);

	if (status != CLI_TAKEN)
		return status;
	if (a.most > SUBJECTS_MAX)
		return cli_usage("--slowest: %u at most.", SUBJECTS_MAX);
	return cli_with_trace(argc, argv, blame, &a);
}

const struct cli_command cli_blame = {
	.name = "blame",
	.summary = "where the time of a slow request, task or callback went",
	.help = "Usage: tacho blame FILE|FOLDER|BOX|PID [OPTIONS]\n\n"
		"Cuts the time of a callback (from its wake on), span or task into pieces with "
		"one\n"
		"owner each, those of 'tacho report --ledger': code, calls, locks and who held "
		"them,\n"
		"the kernel, or not observed; for what is on no thread a pool, or the outside. "
		"The\n"
		"pieces add up to the whole; what is indented says what the piece above it\n"
		"consisted of.\n\n"
		"  --slowest N      the N slowest of what is chosen (default 5)\n"
		"  --task ID        only this task\n"
		"  --span NAME      only spans of this name\n"
		"  --trace-id HEX   only spans with this trace id\n"
		"  --json           for programs\n"
		"  --pid PID        only this process\n"
		"  --process NAME   only processes of this name\n\n"
		"Example:\n"
		"  tacho blame slow.tacho --span request --slowest 3\n",
	.run = run,
};
