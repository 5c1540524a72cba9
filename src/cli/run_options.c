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
#define ROOM_WANTED (1u << 20)

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

static bool read_trigger(void *arg, const char *option, const char *text)
{
	int signal = parse_signal(text);

	*(int *)arg = signal;
	if (signal == 0)
		cli_usage("%s: '%s' is no signal; give one such as USR2.", option, text);
	else if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCHLD || signal == SIGCONT)
		cli_usage("%s: %s cannot be used; give one such as USR2.", option, text);
	else
		return true;
	return false;
}

static bool read_bytes(void *arg, const char *option, const char *text)
{
	uint64_t bytes;

	*(const char **)arg = text;
	if (tacho__parse_bytes(text, &bytes))
		cli_usage("%s: '%s' is no size; give one such as 64M.", option, text);
	else if (bytes < TACHO_BOX_MIN_BYTES || bytes > TACHO_BOX_MAX_BYTES)
		cli_usage("%s: %s is not between 1 MiB and 64 GiB.", option, text);
	else
		return true;
	return false;
}

static bool read_time(void *arg, const char *option, const char *text)
{
	struct parse_instant time;

	*(const char **)arg = text;
	/* Nought has a meaning of its own, also without a unit. */
	if (strcmp(text, "0") == 0)
		return true;
	if (text[0] != '-' && text[0] != '+')
		return parse_instant(option, text, &time);
	cli_error("%s: '%s' is not a duration: write a number and a unit, such as 1.5s.", option,
		  text);
	return false;
}

/* The hooks compare with what the kernel keeps of a name. */
static bool read_exclude(void *arg, const char *option, const char *text)
{
	struct run_options *o = arg;
	char *out = calloc(1, strlen(text) + 1);
	size_t used = 0;

	if (!out) {
		o->run.exclude = text; /* and a long name is not recognised */
		return true;
	}
	for (;;) {
		size_t n = strcspn(text, ",");

		if (n == 0) {
			free(out);
			cli_usage("%s: a name is empty; give names such as sh,git.", option);
			return false;
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
	return true;
}

/* Whatever keeps windows from being saved keeps no command from running. */
static void cannot_save(const struct run_options *o, const char *path, const char *why)
{
	tacho__warn(&o->watch.voice,
		    "cannot save windows to %s: %s. The command is started and "
		    "recorded; " TACHO__RUN_SAVE,
		    path, why);
}

int run_check_folder(const struct watch_options *o, const char *folder)
{
	struct statvfs fs;
	struct stat st;

	if (stat(folder, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (access(folder, W_OK | X_OK) < 0)
		return -errno;
	if (statvfs(folder, &fs) == 0 && fs.f_blocks > 0) {
		char room[TEXT_SMALL];
		uint64_t left = (uint64_t)fs.f_frsize * (geteuid() == 0 ? fs.f_bfree : fs.f_bavail);

		if (left < ROOM_WANTED)
			tacho__warn(
				&o->voice,
				"only %s are free for windows in %s. A window that finds no room "
				"stays in its box, for 'tacho recover'.",
				text_bytes(room, left), folder);
	}
	return 0;
}

static void check_folder(const struct run_options *o)
{
	int error = run_check_folder(&o->watch, o->folder);

	if (error < 0)
		cannot_save(o, o->folder, strerror(-error));
}

bool run_box_dir_is_good(void)
{
	const char *given = getenv("TACHO_BOX_DIR");

	return !given || !given[0] || (given[0] == '/' && strlen(given) < TACHO__PATH_MAX);
}

/* A recorder that does not take it would have no place where it could say so. */
static void check_box_dir(const struct run_options *o)
{
	if (run_box_dir_is_good())
		return;
	tacho__warn(&o->watch.voice,
		    "TACHO_BOX_DIR=%s is ignored: it is no absolute path of less than %u bytes.",
		    getenv("TACHO_BOX_DIR"), TACHO__PATH_MAX);
	unsetenv("TACHO_BOX_DIR");
}

static bool is_folder(const char *path, const char *suffix)
{
	char whole[PATH_MAX + 8];
	struct stat st;

	snprintf(whole, sizeof(whole), "%s%s", path, suffix);
	return stat(whole, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_trace_name(const char *path)
{
	size_t n = strlen(path);

	return n > 6 && strcmp(path + n - 6, ".tacho") == 0;
}

static void use_folder(struct run_options *o, const char *path)
{
	size_t n = strlen(path);

	strcpy(o->folder, path);
	while (n > 1 && o->folder[n - 1] == '/')
		o->folder[--n] = 0;
	if (o->watch.engine.replace)
		tacho__warn(&o->watch.voice, "--force has no effect: %s is a folder.", o->folder);
	if (!is_folder(path, "") && mkdir(o->folder, 0777) < 0)
		cannot_save(o, o->folder, strerror(errno));
	else
		check_folder(o);
}

static void use_file(struct run_options *o, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	bool exists = stat(path, &st) == 0;

	snprintf(o->folder, sizeof(o->folder), "%.*s",
		 slash ? (slash == path ? 1 : (int)(slash - path)) : 1, slash ? path : ".");
	o->watch.engine.file = path;
	o->watch.engine.one_file = true;
	if (exists && !S_ISREG(st.st_mode))
		cannot_save(o, path, "it is not a regular file");
	else if (exists && !o->watch.engine.replace && is_folder(path, ".old"))
		cannot_save(o, path,
			    "it exists already and cannot be kept with .old after its name, which "
			    "is a folder");
	else
		check_folder(o);
}

/* What it is called decides whether that can be meant; what is there, only whether it works. */
static int read_output(struct run_options *o, const char *path)
{
	size_t n = strlen(path);
	bool many = o->watch.engine.keep || o->watch.engine.max_bytes;

	if (n == 0 || strcmp(path, "-") == 0)
		return cli_usage("-o needs the name of a file or a folder.");
	if (n >= sizeof(o->folder))
		return cli_usage("-o %s: the name is too long.", path);
	if (many && is_trace_name(path) && !is_folder(path, ""))
		return cli_usage("--%s deletes files of older windows, and -o %s is one; give a "
				 "folder.",
				 o->watch.engine.keep ? "keep" : "max-bytes", path);
	if (path[n - 1] == '/' && o->watch.engine.replace)
		return cli_usage("--force needs -o FILE: a name that tacho chooses is always new.");
	if (many || path[n - 1] == '/' || is_folder(path, ""))
		use_folder(o, path);
	else
		use_file(o, path);
	return 0;
}

int run_segment_folder(char *folder, size_t size, const char *out, const char *name)
{
	char plain[WATCH_SERVICE_BYTES + 1];
	size_t n = out ? strlen(out) : 0;

	tacho__plain_name(plain, sizeof(plain), name);
	if (out && (n == 0 || strcmp(out, "-") == 0))
		return cli_usage("-o needs the name of a folder.");
	if (out && is_trace_name(out) && !is_folder(out, ""))
		return cli_usage("--continuous writes many files, and -o %s is one; give a folder.",
				 out);
	if (n >= size)
		return cli_usage("-o %s: the name is too long.", out);
	snprintf(folder, size, "%s%s", out ? out : "./tacho-", out ? "" : plain);
	return 0;
}

/* Segments belong to a service; without a name for it, it is the command. */
static const char *command_name(const char *command)
{
	static char name[WATCH_SERVICE_BYTES + 1];
	const char *slash = strrchr(command, '/');

	snprintf(name, sizeof(name), "%s", slash && slash[1] ? slash + 1 : command);
	return name;
}

/* 0, or the exit status after saying what is wrong. */
static int check(struct run_options *o, int argc, char **argv, const char *out)
{
	const char *off = getenv("TACHO");
	int status;

	if (optind == argc)
		return cli_usage("which command? Give it after --, as in 'tacho run -- "
				 "redis-server'.");
	if (o->watch.engine.names && o->watch.engine.no_symbols)
		return cli_usage("--names and --no-symbols contradict each other.");
	status = watch_options_check(&o->watch);
	if (status)
		return status;
	if (o->watch.engine.replace && (!out || o->watch.engine.continuous))
		return cli_usage("--force needs -o FILE: a name that tacho chooses is always new.");
	o->run.off = off && strcmp(off, "off") == 0;
	if (o->run.off) {
		tacho__warn(&o->watch.voice,
			    "nothing will be recorded: TACHO=off is in the environment.");
		return 0;
	}
	check_box_dir(o);
	if (o->watch.engine.continuous) {
		if (!o->watch.engine.service)
			o->watch.engine.service = getenv("TACHO_SERVICE");
		if (!o->watch.engine.service || !o->watch.engine.service[0])
			o->watch.engine.service = command_name(argv[optind]);
		return run_segment_folder(o->folder, sizeof(o->folder), out,
					  o->watch.engine.service);
	}
	o->watch.engine.command = command_name(argv[optind]);
	if (out)
		return read_output(o, out);
	strcpy(o->folder, ".");
	/* Windows that conditions keep are files of their own: they may be deleted again. */
	o->watch.engine.one_file = o->watch.engine.rules.sentinels.count == 0;
	check_folder(o);
	return 0;
}

int run_options_read(struct run_options *o, int argc, char **argv)
{
	const char *out = NULL;
	const struct cli_row options[] = {
		{"output", .letter = 'o', .text = &out},
		{"force", .letter = 'f', .flag = &o->watch.engine.replace},
		{"quiet", .letter = 'q', .flag = &o->watch.quiet},
		{"memory", .call = read_bytes, .arg = &o->run.memory},
		{"min-age", .call = read_time, .arg = &o->run.min_age},
		{"poll-threshold", .call = read_time, .arg = &o->run.poll_threshold},
		{"call-threshold", .call = read_time, .arg = &o->run.call_threshold},
		{"exclude", .call = read_exclude, .arg = o},
		{"service", .call = watch_service, .arg = &o->watch},
		{"trigger-signal", .call = read_trigger, .arg = &o->run.trigger},
		{"no-wait-children", .flag = &o->run.no_wait},
		{"wait-children", .flag = &o->run.wait},
		{"names", .flag = &o->watch.engine.names},
		{"no-crash", .flag = &o->run.no_crash},
		WATCH_OPTIONS_ROWS(&o->watch),
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_run, options);

	if (status != CLI_TAKEN)
		return status;
	status = check(o, argc, argv, out);
	return status ? status : CLI_TAKEN;
}
