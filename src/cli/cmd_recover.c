/*
 * tacho recover: boxes whose process is gone into trace files. A box is deleted
 * only when its trace file is on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "format/trace.h"
#include "text/end.h"
#include "text/json.h"
#include "text/text.h"
#include "write/trace_write.h"

enum outcome {
	RECOVERED,
	EMPTY, /* a note of a process that could not record; nothing to recover */
	ALIVE, /* left alone */
	BUSY,  /* another recover works on it */
	FAILED,
	OUTCOMES
};
static const char *const outcome_names[OUTCOMES] = {"recovered", "empty", "alive", "busy",
						    "failed"};

struct recover {
	const char *folder;
	bool keep, json, no_symbols, debuginfod;
	bool named; /* named: boxes were given by name */
	unsigned count[OUTCOMES];
	struct json j;
};

/* What came of one box. */
struct item {
	const char *path;
	enum outcome outcome;
	char file[PATH_MAX];
	char message[CLI_MESSAGE];
	bool removed;
	struct tacho__trace_result result;
	struct tacho_process process; /* its numbers alone: texts are the reader's */
};

static int write_trace(struct recover *r, struct item *item, struct tacho_reader *reader)
{
	const char *slash = strrchr(item->path, '/');
	struct cli_progress progress;
	struct tacho__trace_options options = {
		.taken_by = TACHO_TAKEN_RECOVER,
		.box_name = slash ? slash + 1 : item->path,
		.no_symbols = r->no_symbols,
		.progress = cli_progress,
		.progress_arg = &progress,
	};
	struct tacho__new_file output;
	int error = output_begin_in(&output, r->folder, tacho_read_process(reader, 0));

	if (error < 0) {
		snprintf(item->message, sizeof(item->message), "no trace file could be made in %s.",
			 r->folder);
		return error;
	}
	cli_progress_begin(&progress, "writing the trace");
	error = tacho__trace_write(reader, output.fd, &options, &item->result, item->message,
				   sizeof(item->message));
	cli_progress_end(&progress);
	if (error < 0) {
		output_abandon(&output);
		return error;
	}
	error = output_commit(&output);
	snprintf(item->file, sizeof(item->file), "%s", output.path);
	if (error < 0)
		snprintf(item->message, sizeof(item->message),
			 "the trace file is not safe on disk.");
	return error;
}

static void remove_box(const struct recover *r, struct item *item, const struct stat *st)
{
	char message[TEXT_SENTENCE];

	if (r->keep)
		return;
	item->removed = tacho__box_remove(item->path, st, message, sizeof(message)) == 0;
	if (!item->removed)
		cli_warn("%s", message);
}

static void recover_open(struct recover *r, struct item *item, struct tacho_reader *reader,
			 const struct stat *st)
{
	const struct tacho_process *process = tacho_read_process(reader, 0);

	item->outcome = FAILED;
	if (!process || process->taken_by != TACHO_TAKEN_BOX) {
		snprintf(item->message, sizeof(item->message),
			 "it is not a box but a trace already.");
	} else if (process->alive != TACHO_ALIVE_NO) {
		item->outcome = ALIVE;
		snprintf(item->message, sizeof(item->message), "%s; use 'tacho dump %" PRIu32 "'.",
			 process->alive == TACHO_ALIVE_YES
				 ? "its process runs"
				 : "it is not known whether its process runs",
			 process->pid);
	} else if (write_trace(r, item, reader) == 0) {
		item->outcome = RECOVERED;
		item->process = *process;
		cli_warn_problems(reader, 5);
		remove_box(r, item, st);
	}
}

/* A box that cannot be read: a note, or a failure. */
static void recover_unread(struct recover *r, struct item *item, int error, const struct stat *st)
{
	struct tacho__box_file file;
	enum tacho_alive runs = tacho__box_name_parse(item->path, &file)
					? tacho__box_process_runs(file.pid, file.start_time)
					: TACHO_ALIVE_UNKNOWN;

	if (error == -ENODATA && runs == TACHO_ALIVE_NO) {
		item->outcome = EMPTY;
		remove_box(r, item, st);
	} else if (runs == TACHO_ALIVE_YES) {
		item->outcome = ALIVE;
	} else {
		item->outcome = FAILED;
		if (!item->message[0])
			snprintf(item->message, sizeof(item->message), "%s.", strerror(-error));
	}
}

static void recover_box(struct recover *r, struct item *item)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	struct stat st = {0};
	int lock, error;

	cli_progress_begin(&progress, "reading the box");
	options.progress = cli_progress;
	options.progress_arg = &progress;
	lock = tacho__box_lock(item->path, &st);
	if (lock == -EWOULDBLOCK) {
		item->outcome = BUSY;
		snprintf(item->message, sizeof(item->message),
			 "another 'tacho recover' works on it.");
		return;
	}
	/* Also when it could not be locked: the reader says best what is wrong with it. */
	error = tacho_read_open(&reader, item->path, &options, item->message,
				sizeof(item->message));
	cli_progress_end(&progress);
	if (error < 0)
		recover_unread(r, item, error, &st);
	else
		recover_open(r, item, reader, &st);
	tacho_read_close(reader);
	if (lock >= 0)
		close(lock);
}

static void print_item(const struct recover *r, const struct item *item)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL], end[TEXT_END];

	/* Boxes of living processes are of no interest unless they were asked for. */
	if (item->outcome == ALIVE && !r->named)
		return;
	if (item->outcome == FAILED) {
		cli_error("%s is left as it is: %s", item->path, item->message);
		return;
	}
	text_put(stdout, item->path);
	if (item->outcome == RECOVERED) {
		fputs(" -> ", stdout);
		text_put(stdout, item->file);
		printf(": %" PRIu64 " events in %s, %s; %s", item->result.events,
		       text_duration(seconds, item->result.last_ns - item->result.first_ns),
		       text_bytes(bytes, item->result.bytes), text_end(end, &item->process));
	} else {
		printf(": %s", item->outcome == EMPTY ? "nothing was recorded: " : "left alone: ");
		text_put(stdout, item->message);
	}
	puts(item->removed || item->outcome == ALIVE || item->outcome == BUSY ? "" : " (box kept)");
}

static void json_item(struct json *j, const struct item *item)
{
	json_object(j);
	json_put_string(j, "box", item->path);
	json_put_string(j, "result", outcome_names[item->outcome]);
	json_put_known(j, "message", item->message);
	json_put_known(j, "file", item->file);
	json_put_bool(j, "box_removed", item->removed);
	if (item->outcome == RECOVERED) {
		json_put_u64(j, "events", item->result.events);
		json_put_u64(j, "window_ns", item->result.last_ns - item->result.first_ns);
		json_put_u64(j, "bytes", item->result.bytes);
		text_end_json(j, &item->process);
	}
	json_object_end(j);
}

static void recover_one(struct recover *r, const char *path)
{
	struct item item = {.path = path};

	recover_box(r, &item);
	if (item.outcome == ALIVE && r->named && !item.message[0])
		snprintf(item.message, sizeof(item.message), "its process runs.");
	r->count[item.outcome]++;
	if (r->json)
		json_item(&r->j, &item);
	else
		print_item(r, &item);
}

static int recover_named(struct recover *r, int count, char **arguments)
{
	int status = CLI_OK;

	for (int i = 0; i < count; i++) {
		char *path = cli_resolve(arguments[i]);

		if (path)
			recover_one(r, path);
		else
			status = CLI_FAILED;
		free(path);
	}
	return status;
}

static int recover_found(struct recover *r, bool all)
{
	struct tacho__box_list list;

	if (cli_list_boxes(&list, all) < 0)
		return CLI_FAILED;
	/* The name of a box does not tell whether its process is gone: exec keeps pid and
	   start time. The reader can. */
	for (size_t i = 0; i < list.file_count; i++)
		recover_one(r, list.files[i].path);
	tacho__box_list_free(&list);
	return CLI_OK;
}

static void print_summary(struct recover *r)
{
	unsigned done = r->count[RECOVERED], empty = r->count[EMPTY], failed = r->count[FAILED];

	if (r->json) {
		json_array_end(&r->j);
		for (int i = 0; i < OUTCOMES; i++)
			json_put_u64(&r->j, outcome_names[i], r->count[i]);
		json_object_end(&r->j);
		json_end_line(&r->j);
		return;
	}
	if (done + failed + empty + r->count[BUSY] == 0) {
		if (!r->named)
			printf("Nothing to recover: %u boxes of running processes, none of dead "
			       "ones.\n",
			       r->count[ALIVE]);
		return;
	}
	printf("%u recovered, %u failed", done, failed);
	if (empty)
		printf(", %u empty", empty);
	if (r->count[ALIVE])
		printf(", %u of running processes left alone", r->count[ALIVE]);
	putchar('\n');
}

/* Before anything is read: a wrong folder is one error, not one for each box. */
static bool folder_usable(const char *folder)
{
	struct stat st;
	int error = stat(folder, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;

	if (error == 0 && access(folder, W_OK | X_OK) < 0)
		error = errno;
	if (error)
		cli_error("cannot write trace files to %s: %s. Give a folder that you can write "
			  "to with -o.",
			  folder, strerror(error));
	return error == 0;
}

static int run(int argc, char **argv)
{
	struct recover r = {.folder = "."};
	bool all = false;
	const struct cli_row options[] = {
		{"output", .letter = 'o', .text = &r.folder},
		{"keep", .flag = &r.keep},
		{"no-symbols", .flag = &r.no_symbols},
		{"all", .flag = &all},
		{"debuginfod", .flag = &r.debuginfod},
		{"json", .flag = &r.json},
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_recover, options);

	if (status != CLI_TAKEN)
		return status;
	r.named = optind < argc;
	if (all && r.named)
		return cli_usage("--all and boxes by name contradict each other.");
	if (all && geteuid() != 0)
		return cli_usage("--all is for root: boxes are private to their users.");
	if (r.debuginfod && r.no_symbols)
		return cli_usage("--debuginfod and --no-symbols contradict each other.");
	if (!r.folder[0])
		return cli_usage("-o needs the name of a folder.");
	if (!folder_usable(r.folder))
		return CLI_FAILED;
	if (!r.no_symbols)
		cli_allow_debuginfod(r.debuginfod);
	if (r.json) {
		json_begin(&r.j, stdout, true);
		json_object(&r.j);
		json_put_array(&r.j, "boxes");
	}
	status = r.named ? recover_named(&r, argc - optind, argv + optind) : recover_found(&r, all);
	print_summary(&r);
	if (r.count[FAILED] || (r.named && r.count[ALIVE] + r.count[BUSY]))
		status = CLI_FAILED;
	return status;
}

const struct cli_command cli_recover = {
	.name = "recover",
	.summary = "boxes of dead processes into trace files",
	.help = "Usage: tacho recover [BOX...] [-o DIR] [--keep] [--all] [--json]\n"
		"       [--no-symbols] [--debuginfod]\n\n"
		"Writes the window of every process that is gone into a trace file, and then\n"
		"deletes its box. Boxes of running processes are left alone.\n\n"
		"  -o DIR   where the trace files go (default: here)\n"
		"  --keep   do not delete the boxes\n"
		"  --all    boxes of all users (root only)\n"
		"  --no-symbols  leave code addresses as they are\n"
		"  --debuginfod  fetch missing debug files from the servers of DEBUGINFOD_URLS\n"
		"  --json   for programs\n\n"
		"Example:\n"
		"  tacho recover -o /var/tmp/traces\n",
	.run = run,
};
