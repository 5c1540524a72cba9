/*
 * The command line of `tacho run`.
 */
#define _GNU_SOURCE 1 /* sigabbrev_np */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/parse.h"
#include "cli/run_options.h"
#include "text/text.h"
#include "write/new_file.h"
#include "core/options.h"
#include "format/box.h"

#define NAME_BYTES 15u /* of a process that the kernel keeps */
#define SERVICE_BYTES 63u
#define ROOM_WANTED (1u << 20)

enum {
	MEMORY = 256,
	MIN_AGE,
	POLL_THRESHOLD,
	CALL_THRESHOLD,
	EXCLUDE,
	SERVICE,
	TRIGGER,
	NO_WAIT,
};

static int parse_signal(const char *text)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t number;

	if (strncasecmp(name, "RTMIN+", 6) == 0 && tacho__parse_u64(name + 6, &number) == 0 &&
	    number <= (uint64_t)(SIGRTMAX - SIGRTMIN))
		return SIGRTMIN + (int)number;
	if (tacho__parse_u64(text, &number) == 0)
		return number < NSIG ? (int)number : 0;
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcasecmp(known, name) == 0)
			return i;
	}
	return 0;
}

static int read_trigger(struct run_options *o, const char *text)
{
	o->run.trigger = parse_signal(text);
	if (o->run.trigger == 0)
		return cli_usage("--trigger-signal: '%s' is no signal; give one such as USR2.",
				 text);
	if (o->run.trigger == SIGKILL || o->run.trigger == SIGSTOP || o->run.trigger == SIGCHLD ||
	    o->run.trigger == SIGCONT)
		return cli_usage("--trigger-signal: %s cannot be used; give one such as USR2.",
				 text);
	return 0;
}

static int read_bytes(const char **out, const char *text)
{
	uint64_t bytes;

	if (tacho__parse_bytes(text, &bytes))
		return cli_usage("--memory: '%s' is no size; give one such as 64M.", text);
	if (bytes < TACHO_BOX_MIN_BYTES || bytes > TACHO_BOX_MAX_BYTES)
		return cli_usage("--memory: %s is not between 1 MiB and 64 GiB.", text);
	*out = text;
	return 0;
}

static int read_time(const char **out, const char *option, const char *text)
{
	struct parse_instant time;

	/* Nought has a meaning of its own, also without a unit. */
	if (strcmp(text, "0") != 0 &&
	    (text[0] == '-' || text[0] == '+' || !parse_instant(option, text, &time))) {
		if (text[0] == '-' || text[0] == '+')
			cli_error("%s: '%s' is not a duration: write a number and a unit, such as "
				  "1.5s.",
				  option, text);
		return CLI_USAGE;
	}
	*out = text;
	return 0;
}

/* The hooks compare with what the kernel keeps of a name. */
static int read_exclude(struct run_options *o, const char *text)
{
	char *out = calloc(1, strlen(text) + 1);
	size_t used = 0;

	if (!out) {
		cli_error("out of memory.");
		return TACHO__RUN_FAILED;
	}
	for (;;) {
		size_t n = strcspn(text, ",");

		if (n == 0) {
			free(out);
			return cli_usage("--exclude: a name is empty; give names such as sh,git.");
		}
		memcpy(out + used, text, n < NAME_BYTES ? n : NAME_BYTES);
		used += n < NAME_BYTES ? n : NAME_BYTES;
		if (!text[n])
			break;
		out[used++] = ',';
		text += n + 1;
	}
	free(o->exclude);
	o->run.exclude = o->exclude = out;
	return 0;
}

static int read_service(struct run_options *o, const char *text)
{
	if (!text[0] || strlen(text) > SERVICE_BYTES)
		return cli_usage("--service: give a name of 1 to %u bytes.", SERVICE_BYTES);
	o->watch.engine.service = text;
	return 0;
}

static int cannot_write(const char *path, int error)
{
	cli_error("cannot save windows to %s: %s. Give another place with -o; nothing was started.",
		  path, strerror(error));
	return TACHO__RUN_FAILED;
}

/* While the command can still be started somewhere else. */
int run_check_folder(const char *folder)
{
	struct statvfs fs;
	struct stat st;

	if (stat(folder, &st) < 0)
		return cannot_write(folder, errno);
	if (!S_ISDIR(st.st_mode))
		return cannot_write(folder, ENOTDIR);
	if (access(folder, W_OK | X_OK) < 0)
		return cannot_write(folder, errno);
	if (statvfs(folder, &fs) == 0 && fs.f_blocks > 0) {
		char room[TEXT_SMALL];
		uint64_t left = (uint64_t)fs.f_frsize * (geteuid() == 0 ? fs.f_bfree : fs.f_bavail);

		if (left < ROOM_WANTED)
			cli_warn("only %s are free for windows in %s. A window that finds no room "
				 "stays in its box, for 'tacho recover'.",
				 text_bytes(room, left), folder);
	}
	return 0;
}

/* One that a recorder does not take leaves it without a place where it could say so. */
int run_check_box_dir(void)
{
	const char *given = getenv("TACHO_BOX_DIR");

	if (!given || !given[0] || (given[0] == '/' && strlen(given) < TACHO__PATH_MAX))
		return 0;
	cli_error(
		"TACHO_BOX_DIR=%s cannot be used for boxes: give an absolute path of less than %u "
		"bytes; nothing was started.",
		given, TACHO__PATH_MAX);
	return TACHO__RUN_FAILED;
}

static int read_output(struct run_options *o, const char *path)
{
	size_t n = strlen(path);
	const char *slash = strrchr(path, '/');
	struct stat st;
	bool exists = stat(path, &st) == 0;

	if (n == 0 || strcmp(path, "-") == 0)
		return cli_usage("-o needs the name of a file or a folder.");
	if (n >= sizeof(o->folder))
		return cannot_write(path, ENAMETOOLONG);
	if ((exists && S_ISDIR(st.st_mode)) || path[n - 1] == '/') {
		strcpy(o->folder, path);
		return run_check_folder(o->folder);
	}
	snprintf(o->folder, sizeof(o->folder), "%.*s",
		 slash ? (slash == path ? 1 : (int)(slash - path)) : 1, slash ? path : ".");
	o->watch.engine.file = path;
	if (exists && !S_ISREG(st.st_mode)) {
		cli_error("%s is not a regular file. Give another name with -o; nothing was "
			  "started.",
			  path);
		return TACHO__RUN_FAILED;
	}
	if (exists && !o->watch.engine.replace) {
		cli_error("%s exists already and is left as it is. Use --force to replace it, or "
			  "another name; nothing was started.",
			  path);
		return TACHO__RUN_FAILED;
	}
	return run_check_folder(o->folder);
}

int run_segment_folder(char *folder, size_t size, const char *out, const char *name)
{
	char plain[SERVICE_BYTES + 1];
	size_t n = out ? strlen(out) : 0;
	struct stat st;

	tacho__plain_name(plain, sizeof(plain), name);
	if (out && (n == 0 || strcmp(out, "-") == 0))
		return cli_usage("-o needs the name of a folder.");
	if (out && ((stat(out, &st) == 0 && !S_ISDIR(st.st_mode)) ||
		    (n > 6 && strcmp(out + n - 6, ".tacho") == 0)))
		return cli_usage("--continuous writes many files, and -o %s is one; give a folder.",
				 out);
	if (out ? n >= size : (size_t)snprintf(folder, size, "./tacho-%s", plain) >= size)
		return cannot_write(out ? out : plain, ENAMETOOLONG);
	if (out)
		strcpy(folder, out);
	return 0;
}

/* Segments belong to a service; without a name for it, it is the command. */
static const char *command_name(const char *command)
{
	static char name[SERVICE_BYTES + 1];
	const char *slash = strrchr(command, '/');

	snprintf(name, sizeof(name), "%s", slash && slash[1] ? slash + 1 : command);
	return name;
}

static int take_option(struct run_options *o, int c, const char **out)
{
	switch (c) {
	case 'o':
		*out = optarg;
		return 0;
	case 'f':
		o->watch.engine.replace = true;
		return 0;
	case 'q':
		o->watch.quiet = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	case MEMORY:
		return read_bytes(&o->run.memory, optarg);
	case MIN_AGE:
		return read_time(&o->run.min_age, "--min-age", optarg);
	case POLL_THRESHOLD:
		return read_time(&o->run.poll_threshold, "--poll-threshold", optarg);
	case CALL_THRESHOLD:
		return read_time(&o->run.call_threshold, "--call-threshold", optarg);
	case EXCLUDE:
		return read_exclude(o, optarg);
	case SERVICE:
		return read_service(o, optarg);
	case TRIGGER:
		return read_trigger(o, optarg);
	case NO_WAIT:
		o->run.no_wait = true;
		return 0;
	default:
		return c >= WATCH_OPTIONS_FIRST ? watch_options_take(&o->watch, c) : CLI_USAGE;
	}
}

int run_options_read(struct run_options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"force", no_argument, NULL, 'f'},
		{"quiet", no_argument, NULL, 'q'},
		{"memory", required_argument, NULL, MEMORY},
		{"min-age", required_argument, NULL, MIN_AGE},
		{"poll-threshold", required_argument, NULL, POLL_THRESHOLD},
		{"call-threshold", required_argument, NULL, CALL_THRESHOLD},
		{"exclude", required_argument, NULL, EXCLUDE},
		{"service", required_argument, NULL, SERVICE},
		{"trigger-signal", required_argument, NULL, TRIGGER},
		{"no-wait-children", no_argument, NULL, NO_WAIT},
		WATCH_OPTIONS_ROWS,
		{NULL, 0, NULL, 0},
	};
	const char *off = getenv("TACHO"), *out = NULL;
	int c, status;

	while ((c = cli_option(argc, argv, "+o:fq", options)) != -1) {
		status = take_option(o, c, &out);
		if (status || o->help)
			return status;
	}
	if (optind == argc)
		return cli_usage("which command? Give it after --, as in 'tacho run -- "
				 "redis-server'.");
	if (off && strcmp(off, "off") == 0)
		return cli_usage("TACHO=off in the environment forbids all recording; unset it.");
	status = watch_options_check(&o->watch);
	if (status == 0)
		status = run_check_box_dir();
	if (status)
		return status;
	if (o->watch.engine.replace && (!out || o->watch.engine.continuous))
		return cli_usage("--force needs -o FILE: a name that tacho chooses is always new.");
	if (o->watch.engine.continuous) {
		if (!o->watch.engine.service)
			o->watch.engine.service = getenv("TACHO_SERVICE");
		if (!o->watch.engine.service || !o->watch.engine.service[0])
			o->watch.engine.service = command_name(argv[optind]);
		return run_segment_folder(o->folder, sizeof(o->folder), out,
					  o->watch.engine.service);
	}
	if (!out) {
		strcpy(o->folder, ".");
		return run_check_folder(o->folder);
	}
	status = read_output(o, out);
	if (status == 0 && o->watch.engine.replace && !o->watch.engine.file)
		return cli_usage("--force needs -o FILE: a name that tacho chooses is always new.");
	return status;
}
