#include "cli/viewing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/exporting.h"
#include "cli/importing.h"
#include "read/input.h"
#include "serve/alone.h"
#include "serve/folder.h"
#include "serve/live.h"
#include "serve/site.h"
#include "serve/snapshot.h"
#include "text/text.h"

enum kind { UNREADABLE, TRACE, BOX };

/* What can not be shown is said here, not on the page. */
static enum kind look_at(const char *path)
{
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	const struct tacho_process *p;
	enum kind kind;

	cli_progress_begin(&progress, "opening");
	if (cli_open_whole(&reader, path, &progress) < 0)
		return UNREADABLE;
	p = tacho_read_process(reader, 0);
	kind = p && p->taken_by == TACHO_TAKEN_BOX ? BOX : TRACE;
	tacho_read_close(reader);
	return kind;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --------------------------------------------------------------------- serve */

/* It was read before, and must not have become a link that another user made; or -1. */
static int open_again(const char *path)
{
	struct stat st;
	int fd = tacho__open_any(path, &st);

	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	return fd;
}

static void answer_trace(void *arg, const char *path, bool post, struct tacho__answer *a)
{
	const char *file = arg, *name = importing_name(file), *slash = strrchr(name, '/');
	int error = 0;

	if (post)
		tacho__answer_text(a, 405, "Nothing here can be changed.\n");
	else if (strcmp(path, "what") == 0)
		tacho__answer_what(a, "trace", slash ? slash + 1 : name);
	else if (strcmp(path, "trace") == 0)
		error = tacho__answer_file(a, open_again(file));
	if (error)
		tacho__answer_text(a, 404, "The trace is not there any more.\n");
}

/* A file that only this user can read and that leads to the address, which is a secret: arguments of
   a browser are none, other users read them in /proc. */
static int write_way(char *path, size_t size, const char *address)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	int fd;

	if (!tmp || tmp[0] != '/')
		tmp = "/tmp";
	if ((size_t)snprintf(path, size, "%s/tacho-view-XXXXXX.html",
			     runtime && runtime[0] == '/' ? runtime : tmp) >= size)
		return -ENAMETOOLONG;
	fd = mkostemps(path, 5, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	dprintf(fd,
		"<!doctype html><meta name=referrer content=no-referrer>"
		"<meta http-equiv=refresh content=\"0;url=%s\">\n",
		address);
	close(fd);
	return 0;
}

/* Where there is a screen, and somebody to open it for. `way`: a file to be deleted in the end, or
   "". */
static void open_browser(const char *address, char *way, size_t size)
{
	char *const argv[] = {"xdg-open", way, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if ((!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) || write_way(way, size, address)) {
		way[0] = 0;
		return;
	}
	if (posix_spawn_file_actions_init(&actions))
		return;
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
}

/* Until Ctrl-C; `ends` are blocked in all threads. */
static int serve(const struct viewing *v, struct tacho__site_options *options, const sigset_t *ends)
{
	char message[CLI_MESSAGE] = "", way[PATH_MAX] = "";
	struct tacho__site *site;
	int number;

	options->port = (uint16_t)v->port;
	site = tacho__site_start(options, message, sizeof(message));
	if (!site) {
		cli_error("%s", message);
		return CLI_FAILED;
	}
	printf("%s\n", tacho__site_address(site));
	fflush(stdout);
	cli_note("The page is at this address, for you alone, until Ctrl-C.");
	if (!v->no_browser)
		open_browser(tacho__site_address(site), way, sizeof(way));
	while (sigwait(ends, &number))
		;
	if (way[0])
		unlink(way);
	tacho__site_stop(site);
	return CLI_OK;
}

/* Signals that end it are waited for, and reach no thread. */
static void block_ends(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigaddset(ends, SIGHUP);
	sigprocmask(SIG_BLOCK, ends, NULL);
}

/* NULL as argument: it could not be opened, and `message` says why. */
static int serve_opened(const struct viewing *v, struct tacho__site_options *options,
			const char *message, const sigset_t *ends)
{
	if (options->arg)
		return serve(v, options, ends);
	cli_error("%s", message);
	return CLI_FAILED;
}

int viewing_serve_folder(const struct viewing *v, const char *path)
{
	struct tacho__site_options options = {.answer = tacho__folder_answer};
	char message[CLI_MESSAGE] = "";
	sigset_t ends;
	int status;

	block_ends(&ends);
	options.arg = tacho__folder_open(path, message, sizeof(message));
	status = serve_opened(v, &options, message, &ends);
	tacho__folder_close(options.arg);
	return status;
}

static int serve_box(const struct viewing *v, const char *path)
{
	struct tacho__site_options options = {.answer = tacho__live_answer};
	char message[CLI_MESSAGE] = "";
	sigset_t ends;
	int status;

	block_ends(&ends);
	options.arg = tacho__live_start(path, message, sizeof(message));
	status = serve_opened(v, &options, message, &ends);
	tacho__live_stop(options.arg);
	return status;
}

static int serve_trace(const struct viewing *v, const char *path)
{
	struct tacho__site_options options = {.answer = answer_trace,
					      .arg = (void *)(uintptr_t)path};
	sigset_t ends;

	block_ends(&ends);
	return serve(v, &options, &ends);
}

int viewing_serve(const struct viewing *v, const char *path)
{
	enum kind kind;

	if (is_folder(path))
		return viewing_serve_folder(v, path);
	kind = look_at(path);
	if (kind == UNREADABLE)
		return CLI_FAILED;
	return kind == BOX ? serve_box(v, path) : serve_trace(v, path);
}

/* --------------------------------------------------------------------- write */

/* The bytes of a trace file, or of a snapshot of the box; -1 after saying why not. */
static int open_trace(const char *path)
{
	struct tacho__snapshot_source source = {.path = path};
	struct tacho__snapshot s = {.fd = -1};
	char message[CLI_MESSAGE] = "";
	enum kind kind;
	int fd;

	if (is_folder(path)) {
		cli_error("%s is a folder. A page holds one trace file: name that.", path);
		return -1;
	}
	kind = look_at(path);
	if (kind == UNREADABLE)
		return -1;
	fd = open_again(path);
	if (fd < 0)
		cli_error("cannot open %s: %s.", path, strerror(errno));
	if (fd < 0 || kind == TRACE)
		return fd;
	source.box = fd;
	if (tacho__snapshot_take(&s, &source, message, sizeof(message)) < 0)
		cli_error("%s", message);
	close(fd);
	return s.fd;
}

static bool fits(const char *path, uint64_t size)
{
	char has[TEXT_SMALL], most[TEXT_SMALL];

	if (size <= TACHO__ALONE_MAX)
		return true;
	cli_error("%s has %s, and a page can hold %s. Take less with 'tacho dump --last', or use "
		  "'tacho view' without --html.",
		  importing_name(path), text_bytes(has, size), text_bytes(most, TACHO__ALONE_MAX));
	return false;
}

int viewing_write(const struct viewing *v, const char *path)
{
	static struct exporting e;
	struct stat st = {0};
	int fd = path ? open_trace(path) : -1;
	int status = CLI_FAILED;

	if (path && fd < 0)
		return CLI_FAILED;
	if (fd >= 0 && fstat(fd, &st))
		cli_error("cannot read %s: %s.", path, strerror(errno));
	else if (fits(path, (uint64_t)st.st_size) &&
		 exporting_begin(&e, v->html, v->force, false) == 0)
		status = exporting_end(&e, tacho__alone_write(e.file, fd, (uint64_t)st.st_size));
	if (fd >= 0)
		close(fd);
	return status;
}
