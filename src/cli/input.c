/*
 * What a command's argument means, and reading it.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/boxes.h"
#include "cli/cli.h"
#include "cli/importing.h"
#include "cli/parse.h"
#include "model/model.h"
#include "read/records.h"
#include "text/problems.h"

/* What --pid and --process ask for. */
static struct {
	uint32_t pid;
	const char *process;
} narrow;

bool cli_narrow_pid(void *arg, const char *option, const char *text)
{
	(void)arg;
	if (!parse_pid(text, &narrow.pid))
		cli_usage("%s: '%s' is no process id.", option, text);
	return narrow.pid != 0;
}

bool cli_narrow_process(void *arg, const char *option, const char *text)
{
	(void)arg;
	narrow.process = text;
	if (!text[0])
		cli_usage("%s: the name is empty.", option);
	return text[0];
}

static void warn(void *arg, const char *sentence)
{
	(void)arg;
	cli_warn("%s", sentence);
}

int cli_list_boxes(struct tacho__box_list *list, bool all_users)
{
	int error = tacho__box_list_read(list, all_users);

	if (error)
		cli_error("out of memory.");
	else
		tacho__box_list_tell(list, all_users, warn, NULL);
	return error;
}

static void say_no_box(uint32_t pid)
{
	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		cli_error("process %" PRIu32
			  " does not run and left no box. 'tacho ls' lists the boxes there are.",
			  pid);
	else
		cli_error("process %" PRIu32
			  " runs but has no box: it is not recorded, or another user records it. "
			  "Start it with 'tacho run -- COMMAND', or let it call tacho_start.",
			  pid);
}

char *cli_resolve(const char *argument)
{
	const struct tacho__box_file *file, *rival;
	struct tacho__box_list list;
	char *path = NULL;
	uint32_t pid;

	if (!argument[0]) {
		cli_error("the name of the box or trace is empty. Try 'tacho ls'.");
		return NULL;
	}
	if (!parse_pid(argument, &pid)) {
		path = strdup(argument);
		if (!path)
			cli_error("out of memory.");
		return path ? importing_resolve(path) : NULL;
	}
	/* Root asks about the processes of all users. */
	if (tacho__box_list_read(&list, geteuid() == 0) < 0) {
		cli_error("out of memory.");
		return NULL;
	}
	tacho__box_list_tell(&list, false, warn, NULL);
	file = tacho__box_list_find(&list, pid);
	rival = file ? tacho__box_list_rival(&list, file) : NULL;
	if (!file) {
		say_no_box(pid);
	} else if (rival) {
		cli_error("process %" PRIu32
			  " is gone, and users %u and %u both have a box of it: %s and %s. Give "
			  "the one that you mean.",
			  pid, (unsigned)rival->owner, (unsigned)file->owner, rival->path,
			  file->path);
	} else {
		path = strdup(file->path);
		if (!path)
			cli_error("out of memory.");
	}
	tacho__box_list_free(&list);
	return path;
}

char *cli_resolve_trace(const char *argument)
{
	char *path = cli_resolve(argument);

	return path ? importing_box(path) : NULL;
}

static int with_one(int argc, char **argv, const char *none, const char *many,
		    char *(*resolve)(const char *argument), int (*use)(void *arg, const char *path),
		    void *arg)
{
	char *path;
	int status;

	if (argc - optind != 1)
		return cli_usage("%s", optind == argc ? none : many);
	path = resolve(argv[optind]);
	if (!path)
		return CLI_FAILED;
	status = use(arg, path);
	free(path);
	return status;
}

static const char no_trace[] = "which trace? Give a trace file, a folder of them, a box or a PID.";
static const char many_traces[] = "one trace at a time; a folder of traces counts as one.";

int cli_with_trace(int argc, char **argv, int (*use)(void *arg, const char *path), void *arg)
{
	return with_one(argc, argv, no_trace, many_traces, cli_resolve_trace, use, arg);
}

int cli_with_source(int argc, char **argv, int (*use)(void *arg, const char *path), void *arg)
{
	return with_one(argc, argv, no_trace, many_traces, cli_resolve, use, arg);
}

int cli_with_traces(int argc, char **argv,
		    int (*use)(void *arg, const char *const *paths, uint32_t count), void *arg)
{
	uint32_t count = 0;
	int status = CLI_FAILED;
	char **paths;

	if (optind == argc)
		return cli_usage("%s", no_trace);
	paths = calloc((size_t)(argc - optind), sizeof(*paths));
	if (!paths) {
		cli_error("out of memory.");
		return CLI_FAILED;
	}
	for (; optind < argc; optind++, count++) {
		paths[count] = cli_resolve_trace(argv[optind]);
		if (!paths[count])
			break;
	}
	if (optind == argc)
		status = use(arg, (const char *const *)paths, count);
	while (count)
		free(paths[--count]);
	free(paths);
	return status;
}

struct shown {
	int (*show)(const char *path, bool json);
	bool json;
};

static int show_one(void *arg, const char *path)
{
	const struct shown *s = arg;

	return s->show(path, s->json);
}

int cli_show_one(int argc, char **argv, const struct cli_command *command, const char *none,
		 const char *many, int (*show)(const char *path, bool json))
{
	struct shown shown = {.show = show};
	const struct cli_row options[] = {{"json", .flag = &shown.json}, CLI_NARROW_ROWS, {0}};
	int status = cli_take_options(argc, argv, command, options);

	if (status != CLI_TAKEN)
		return status;
	return with_one(argc, argv, none, many, cli_resolve, show_one, &shown);
}

int cli_open(struct tacho_reader **out, const char *path, struct cli_progress *progress,
	     uint64_t last_ns, char *message, size_t message_size)
{
	struct tacho_read_options options = {
		.size = sizeof(options),
		.last_ns = last_ns,
		.progress = progress ? cli_progress : NULL,
		.progress_arg = progress,
		.pid = narrow.pid,
		.process = narrow.process,
	};
	int result;

	message[0] = 0;
	result = tacho_read_open(out, path, &options, message, message_size);
	if (progress)
		cli_progress_end(progress);
	if (result >= 0 || result == -ENODATA)
		return result;
	if (message[0])
		cli_error("%s", message);
	else
		cli_error("cannot open %s: %s. Try 'tacho ls' for the boxes there are.", path,
			  strerror(-result));
	return result;
}

int cli_open_whole(struct tacho_reader **out, const char *path, struct cli_progress *progress)
{
	char message[CLI_MESSAGE];
	int result = cli_open(out, path, progress, 0, message, sizeof(message));

	if (result == -ENODATA)
		cli_error("there are no events: %s", message);
	return result;
}

int cli_limit(struct tacho_reader *reader, const struct parse_instant *from,
	      const struct parse_instant *to)
{
	uint64_t first = 0, last = 0, from_ns, to_ns;
	int error;

	if ((!from->given && !to->given) || tacho_read_window(reader, &first, &last) < 0)
		return 0;
	last = tacho__read_last_ns(reader);
	from_ns = parse_instant_ns(from, first, last);
	to_ns = parse_instant_ns(to, first, last);
	if (to->given && !to_ns)
		to_ns = 1; /* 0 would be no limit */
	if (to_ns && from_ns > to_ns) {
		cli_error("the time that was asked for ends before it begins: nothing is in it.");
		return -EINVAL;
	}
	error = tacho__read_limit(reader, from_ns, to_ns);
	if (error < 0)
		cli_error("%s", strerror(-error));
	return error;
}

int cli_open_between(struct tacho_reader **out, const char *const *paths, uint32_t count,
		     const struct parse_instant *from, const struct parse_instant *to)
{
	struct tacho_read_options options = {
		.size = sizeof(options),
		.pid = narrow.pid,
		.process = narrow.process,
	};
	char message[CLI_MESSAGE] = "";
	int error = tacho_read_open_all(out, paths, count, &options, message, sizeof(message));

	if (error < 0)
		cli_error("%s", message[0] ? message : strerror(-error));
	else
		error = cli_limit(*out, from, to);
	if (error < 0) {
		tacho_read_close(*out);
		*out = NULL;
	}
	return error;
}

void cli_warn_missed(const struct tacho__tracker_limits *m)
{
	uint64_t facts = m->tasks + m->locks + m->works + m->spans + m->threads + m->depth;

	if (facts)
		cli_warn("%" PRIu64 " events are left out: more tasks, locks, spans or threads "
			 "were in use at one time than tacho keeps track of.",
			 facts);
}

void cli_warn_problems(const struct tacho_reader *reader, uint32_t limit)
{
	text_problems(reader, limit, warn, NULL);
}

int cli_count_events(struct tacho_reader *reader, struct cli_progress *progress,
		     struct cli_counts *counts)
{
	uint32_t processes = tacho_read_process_count(reader);
	uint64_t first = 0, last = 0;
	const struct tacho_event *event;
	int result;

	counts->events = counts->missing = counts->dropped = 0;
	tacho_read_window(reader, &first, &last);
	counts->whole_ns = first;
	while ((result = tacho_read_next(reader, &event)) > 0) {
		if (event->type == TACHO_EV_RESUME) {
			counts->missing += event->resume->missing;
			counts->dropped += event->resume->dropped;
			if (!event->resume->first &&
			    (event->resume->missing || event->resume->dropped))
				counts->whole_ns = event->ns;
			continue;
		}
		counts->events++;
		if (counts->by_type && event->process < processes)
			counts->by_type[(size_t)event->process * 256 + event->type]++;
		if (progress && (counts->events & 0xffff) == 0)
			cli_progress(progress, event->ns - first, last - first);
	}
	if (progress)
		cli_progress_end(progress);
	return result;
}
