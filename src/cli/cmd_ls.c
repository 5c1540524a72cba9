/*
 * tacho ls: which boxes there are and what each is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "cli/about.h"
#include "cli/cli.h"
#include "answer/describe.h"
#include "text/end.h"
#include "text/json.h"
#include "text/names.h"
#include "text/text.h"

/* What the table says of one box. */
struct row {
	uint32_t pid;
	const char *word; /* recording, paused, stopped, off, dead, unreadable, unknown */
	char state[CLI_MESSAGE + 64]; /* the word and what is to add */
	char reason[CLI_MESSAGE];
	char crash[TEXT_SMALL]; /* name of the signal, or "" */
	char program[64], service[64];
	char since[TEXT_SMALL], window[TEXT_SMALL], memory[2 * TEXT_SMALL];
	uint64_t created_real_ns, window_ns, unbroken_ns, used, budget;
	uint32_t agent_pid; /* of an agent that runs and looks after it, or 0 */
	int alive;	    /* enum tacho_alive */
	bool read, has_window;
	struct tacho_process process; /* its numbers alone: texts are the reader's */
};

static void row_without_reader(struct row *r, const struct tacho__box_file *file, int result,
			       const char *message)
{
	r->alive = tacho__box_process_runs(file->pid, file->start_time);
	r->word = result == -ENODATA ? (r->alive == TACHO_ALIVE_NO ? "dead" : "off") : "unreadable";
	if (r->alive == TACHO_ALIVE_YES)
		tacho__box_process_comm(file->pid, r->program, sizeof(r->program));
	snprintf(r->reason, sizeof(r->reason), "%s", message[0] ? message : strerror(-result));
	snprintf(r->state, sizeof(r->state), "%s%s: %s", r->word,
		 result == -ENODATA && r->alive == TACHO_ALIVE_NO ? ", was off" : "", r->reason);
}

/* Why the reader says that a box records only in part, or how its process died. */
static void row_state(struct row *r, const struct tacho_reader *reader,
		      const struct tacho_process *p)
{
	const char *more = "";
	char agent[TEXT_SMALL] = "", end[TEXT_END] = "";

	r->alive = p->alive;
	r->word = p->alive == TACHO_ALIVE_NO ? "dead" : name_state(p->state);
	snprintf(r->reason, sizeof(r->reason), "%s", p->reason);
	if (tacho_read_crash_count(reader) > 0 && !tacho_read_crash(reader, 0)->survived)
		name_signal(r->crash, tacho_read_crash(reader, 0)->signal);
	if (p->alive == TACHO_ALIVE_NO && p->state == TACHO_STATE_STOPPED && !r->crash[0])
		more = ": had stopped recording";
	else if (p->alive == TACHO_ALIVE_NO)
		text_end(end, p);
	if (end[0] || (p->alive != TACHO_ALIVE_NO && p->reason[0]))
		more = ": ";
	if (about_agent_runs(p)) {
		r->agent_pid = p->agent_pid;
		snprintf(agent, sizeof(agent), ", agent %" PRIu32, p->agent_pid);
	}
	snprintf(r->state, sizeof(r->state), "%s%s%s%s", r->word, agent, more,
		 p->alive == TACHO_ALIVE_NO ? end : p->reason);
}

static void row_fill(struct row *r, const struct tacho_reader *reader,
		     const struct tacho_process *p)
{
	char used[TEXT_SMALL], budget[TEXT_SMALL];

	r->read = true;
	row_state(r, reader, p);
	snprintf(r->program, sizeof(r->program), "%s", p->comm);
	snprintf(r->service, sizeof(r->service), "%s", p->service);
	r->created_real_ns = p->created_real_ns;
	r->process = *p;
	r->used = p->used_bytes;
	r->budget = p->max_bytes;
	text_local(r->since, p->created_real_ns);
	snprintf(r->memory, sizeof(r->memory), "%s / %s", text_bytes(used, p->used_bytes),
		 text_bytes(budget, p->max_bytes));
}

static void row_read(struct row *r, const struct tacho__box_file *file)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	char message[CLI_MESSAGE] = "";
	struct tacho_reader *reader = NULL;
	const struct tacho_process *p;
	struct cli_counts counts = {0};
	struct cli_progress progress;
	uint64_t first, last;
	int result;

	memset(r, 0, sizeof(*r));
	r->pid = file->pid;
	cli_progress_begin(&progress, file->path);
	result = tacho_read_open(&reader, file->path, &options, message, sizeof(message));
	p = result < 0 ? NULL : tacho_read_process(reader, 0);
	if (!p) {
		row_without_reader(r, file, result < 0 ? result : -EBADMSG, message);
		tacho_read_close(reader);
		return;
	}
	row_fill(r, reader, p);
	if (tacho_read_window(reader, &first, &last) >= 0) {
		r->has_window = true;
		r->window_ns = last - first;
		cli_count_events(reader, &progress, &counts);
		r->unbroken_ns = last - counts.whole_ns;
		text_duration(r->window, r->unbroken_ns);
	}
	tacho_read_close(reader);
}

static enum cli_colour state_colour(const struct row *r)
{
	if (r->alive == TACHO_ALIVE_YES && strcmp(r->word, "recording") == 0)
		return r->reason[0] ? CLI_YELLOW : CLI_GREEN;
	if (strcmp(r->word, "dead") == 0 && !r->crash[0])
		return CLI_DIM;
	return strcmp(r->word, "stopped") == 0	? CLI_PLAIN
	       : strcmp(r->word, "paused") == 0 ? CLI_YELLOW
						: CLI_RED;
}

enum { PROGRAM, SERVICE, SINCE, WINDOW, MEMORY, PATH, COLUMNS };
static const char *const titles[COLUMNS] = {"PROGRAM", "SERVICE", "SINCE",
					    "WINDOW",  "MEMORY",  "PATH"};

static const char *cell(const struct row *r, const struct tacho__box_file *file, int column)
{
	const char *const cells[COLUMNS] = {r->program, r->service, r->since,
					    r->window,	r->memory,  file->path};

	return cells[column][0] ? cells[column] : "-";
}

static void print_table(const struct row *rows, const struct tacho__box_list *list, bool paths)
{
	size_t width[COLUMNS];
	int columns = paths ? COLUMNS : PATH;

	for (int c = 0; c < columns; c++) {
		width[c] = strlen(titles[c]);
		for (size_t i = 0; i < list->file_count; i++) {
			size_t w = text_width(cell(&rows[i], &list->files[i], c));

			width[c] = w > width[c] ? w : width[c];
		}
	}
	printf("%s%10s  ", cli_colour(stdout, CLI_BOLD), "PID");
	for (int c = 0; c < columns; c++)
		printf("%-*s  ", (int)width[c], titles[c]);
	printf("STATE%s\n", cli_colour(stdout, CLI_PLAIN));
	for (size_t i = 0; i < list->file_count; i++) {
		printf("%10" PRIu32 "  ", rows[i].pid);
		for (int c = 0; c < columns; c++) {
			text_put_wide(stdout, cell(&rows[i], &list->files[i], c), width[c]);
			fputs("  ", stdout);
		}
		fputs(cli_colour(stdout, state_colour(&rows[i])), stdout);
		text_put(stdout, rows[i].state);
		printf("%s\n", cli_colour(stdout, CLI_PLAIN));
	}
}

static void json_row(struct json *j, const struct row *r, const struct tacho__box_file *file)
{
	json_object(j);
	json_put_u64(j, "pid", r->pid);
	json_put_string(j, "state", r->word);
	json_put_known(j, "reason", r->reason);
	json_put_known(j, "crash", r->crash);
	text_end_json(j, &r->process);
	describe_alive_json(j, r->alive);
	json_put_not_zero(j, "agent_pid", r->agent_pid);
	json_put_known(j, "program", r->program);
	json_put_known(j, "service", r->service);
	json_put_time(j, "since", r->created_real_ns);
	json_put_u64_if(j, "window_ns", r->has_window, r->window_ns);
	json_put_u64_if(j, "unbroken_ns", r->has_window, r->unbroken_ns);
	json_put_u64_if(j, "used_bytes", r->read, r->used);
	json_put_u64_if(j, "max_bytes", r->read, r->budget);
	json_put_string(j, "path", file->path);
	json_object_end(j);
}

static void print_json(const struct row *rows, const struct tacho__box_list *list)
{
	static const char *const states[] = {"searched", "absent", "skipped"};
	struct json j;

	json_begin(&j, stdout, true);
	json_object(&j);
	json_put_array(&j, "boxes");
	for (size_t i = 0; i < list->file_count; i++)
		json_row(&j, &rows[i], &list->files[i]);
	json_array_end(&j);
	json_put_array(&j, "folders");
	for (size_t i = 0; i < list->folder_count; i++) {
		json_object(&j);
		json_put_string(&j, "path", list->folders[i].path);
		json_put_string(&j, "state", states[list->folders[i].state]);
		json_put_known(&j, "reason", list->folders[i].reason);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end_line(&j);
}

static void print_none(const struct tacho__box_list *list)
{
	puts("No boxes. Searched:");
	for (size_t i = 0; i < list->folder_count; i++) {
		const struct tacho__box_folder *f = &list->folders[i];

		fputs("  ", stdout);
		text_put(stdout, f->path);
		if (f->state == TACHO__BOX_FOLDER_ABSENT)
			fputs(" (does not exist)", stdout);
		else if (f->state == TACHO__BOX_FOLDER_SKIPPED)
			printf(" (skipped: %s)", f->reason);
		putchar('\n');
	}
	puts("'tacho run -- COMMAND' records a program as it is; one that is linked with -ltacho "
	     "calls tacho_start(NULL), see tacho.h.\nTACHO_BOX_DIR=FOLDER finds boxes that were "
	     "made in another folder.");
}

static int list_boxes(bool all, bool paths, bool json)
{
	struct tacho__box_list list;
	struct row *rows;
	size_t unreadable = 0;

	if (cli_list_boxes(&list, all) < 0)
		return CLI_FAILED;
	rows = calloc(list.file_count + 1, sizeof(*rows));
	if (!rows) {
		cli_error("out of memory.");
		tacho__box_list_free(&list);
		return CLI_FAILED;
	}
	for (size_t i = 0; i < list.file_count; i++) {
		row_read(&rows[i], &list.files[i]);
		unreadable += strcmp(rows[i].word, "unreadable") == 0;
	}
	if (json)
		print_json(rows, &list);
	else if (list.file_count == 0)
		print_none(&list);
	else
		print_table(rows, &list, paths);
	free(rows);
	unreadable = list.file_count > 0 && unreadable == list.file_count;
	tacho__box_list_free(&list);
	return unreadable ? CLI_FAILED : CLI_OK;
}

static int run(int argc, char **argv)
{
	bool all = false, paths = false, json = false;
	const struct cli_row options[] = {
		{"all", .flag = &all},
		{"paths", .flag = &paths},
		{"json", .flag = &json},
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_ls, options);

	if (status != CLI_TAKEN)
		return status;
	if (optind < argc)
		return cli_usage("'%s' is too much: ls takes no arguments. For one box use "
				 "'tacho status'.",
				 argv[optind]);
	if (all && geteuid() != 0)
		return cli_usage("--all is for root: boxes are private to their users.");
	return list_boxes(all, paths, json);
}

const struct cli_command cli_ls = {
	.name = "ls",
	.summary = "boxes of running and dead processes",
	.help = "Usage: tacho ls [--paths] [--all] [--json]\n\n"
		"Lists the boxes of this user: process, window, memory, and whether it records.\n\n"
		"  --paths   show the path of each box\n"
		"  --all     boxes of all users (root only)\n"
		"  --json    for programs\n\n"
		"Example:\n"
		"  tacho ls --paths\n",
	.run = run,
};
