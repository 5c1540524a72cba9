/*
 * Writing a trace file so that its name never stands for half a file.
 */
#define _GNU_SOURCE 1 /* renameat2 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "text/text.h"

#define UNIQUE_TRIES 1000

/* For the signal handler: what to remove. Set while `pending` is 0 only. */
static int pending_folder = -1;
static char pending_name[NAME_MAX + 1];
static volatile sig_atomic_t pending;

static void remove_and_die(int number)
{
	if (pending)
		unlinkat(pending_folder, pending_name, 0);
	/* SA_RESETHAND: the default action follows when the handler returns. */
	raise(number);
}

static void catch_interrupts(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXFSZ, SIGXCPU};
	struct sigaction action = {.sa_handler = remove_and_die, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction old;

		/* nohup and shells set signals to be ignored on purpose. */
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
	}
}

static int say_failed(const struct output *o, const char *what, int error)
{
	cli_error("cannot %s %s: %s. Give another place with -o.", what, o->path, strerror(error));
	return -error;
}

static int open_temporary(struct output *o)
{
	int error = EEXIST;

	catch_interrupts();
	for (int tries = 0; tries < 16 && error == EEXIST; tries++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			number = cli_now_ns() ^ (uint64_t)getpid() << 32;
		snprintf(o->temporary, sizeof(o->temporary), ".tacho-%016" PRIx64 ".tmp", number);
		/* An interrupt just after the file is made has to find its name. */
		pending_folder = o->folder;
		memcpy(pending_name, o->temporary, sizeof(pending_name));
		pending = 1;
		o->fd = openat(o->folder, o->temporary,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (o->fd >= 0)
			return 0;
		error = errno;
		pending = 0;
	}
	o->temporary[0] = 0;
	return -error;
}

/* Takes the path apart and opens its folder. */
static int open_folder(struct output *o, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char folder[PATH_MAX] = ".";

	o->fd = o->folder = -1;
	if (strlen(path) >= sizeof(o->path) || strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(o->path, path);
	strcpy(o->name, name);
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	if (slash) {
		size_t size = slash == path ? 1 : (size_t)(slash - path);

		memcpy(folder, path, size);
		folder[size] = 0;
	}
	o->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return o->folder < 0 ? -errno : 0;
}

/* Whether something stands under the name that must not be replaced. */
static int check_existing(const struct output *o)
{
	struct stat st;

	if (fstatat(o->folder, o->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return -ENOTSUP;
	return o->replace ? 0 : -EEXIST;
}

static int say_begin(struct output *o, int result)
{
	if (result == -EEXIST)
		cli_error("%s exists already and is left as it is. Use --force to replace it, or "
			  "another name.",
			  o->path);
	else if (result == -EISDIR)
		cli_error("cannot write %s: it is a folder. Give the name of a file in it.",
			  o->path);
	else if (result == -ENOTSUP)
		cli_error("%s is not a regular file. Use -o - and a redirection to write to a "
			  "pipe or device.",
			  o->path);
	else
		say_failed(o, "write", -result);
	return result;
}

int output_begin(struct output *o, const char *path, bool replace)
{
	int result;

	memset(o, 0, sizeof(*o));
	snprintf(o->path, sizeof(o->path), "%s", path);
	o->replace = replace;
	result = open_folder(o, path);
	if (result == 0)
		result = check_existing(o);
	if (result == 0)
		result = open_temporary(o);
	if (result < 0) {
		say_begin(o, result);
		output_abandon(o);
	}
	return result;
}

int output_begin_unique(struct output *o, const char *path)
{
	int result;

	memset(o, 0, sizeof(*o));
	snprintf(o->path, sizeof(o->path), "%s", path);
	o->unique = true;
	result = open_folder(o, path);
	if (result == 0)
		result = open_temporary(o);
	if (result < 0) {
		say_failed(o, "write", -result);
		output_abandon(o);
	}
	return result;
}

int output_begin_in(struct output *o, const char *folder, const struct tacho_process *process)
{
	char comm[32], stamp[TEXT_SMALL], path[PATH_MAX];
	size_t n = 0;

	/* A process chooses its name; it must not choose our folder. */
	for (const char *c = process->comm; *c && n < sizeof(comm) - 1; c++) {
		bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			     (*c >= '0' && *c <= '9') || *c == '_' || *c == '+' || *c == '.' ||
			     *c == '-';

		comm[n++] = plain ? *c : '_';
	}
	comm[n] = 0;
	text_stamp(stamp, process->taken_real_ns ? process->taken_real_ns
						 : tacho__clock_ns(CLOCK_REALTIME));
	if ((size_t)snprintf(path, sizeof(path), "%s/tacho-%s-%" PRIu32 "-%s.tacho", folder,
			     n ? comm : "unknown", process->pid, stamp) >= sizeof(path)) {
		cli_error("the name of the folder %s is too long. Give another with -o.", folder);
		return -ENAMETOOLONG;
	}
	return output_begin_unique(o, path);
}

/* Gives the file its name if that is free: -EEXIST when it is not. */
static int rename_new(const struct output *o, const char *name)
{
	if (renameat2(o->folder, o->temporary, o->folder, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system without RENAME_NOREPLACE. */
	if (linkat(o->folder, o->temporary, o->folder, name, 0) < 0)
		return -errno;
	unlinkat(o->folder, o->temporary, 0);
	return 0;
}

/* name.tacho, name-2.tacho, name-3.tacho, ... */
static int rename_unique(struct output *o)
{
	size_t stem = strlen(o->name) - strlen(".tacho");
	size_t folder = strlen(o->path) - strlen(o->name);
	int result = rename_new(o, o->name);

	for (int n = 2; result == -EEXIST && n < UNIQUE_TRIES; n++) {
		snprintf(o->name + stem, sizeof(o->name) - stem, "-%d.tacho", n);
		result = rename_new(o, o->name);
	}
	snprintf(o->path + folder, sizeof(o->path) - folder, "%s", o->name);
	return result;
}

int output_commit(struct output *o)
{
	int result = 0;

	if (fsync(o->fd) < 0)
		result = -errno;
	if (close(o->fd) < 0 && result == 0)
		result = -errno;
	o->fd = -1;
	if (result == 0) {
		if (o->unique)
			result = rename_unique(o);
		else if (!o->replace)
			result = rename_new(o, o->name);
		else if (renameat(o->folder, o->temporary, o->folder, o->name) < 0)
			result = -errno;
	}
	if (result < 0) {
		say_begin(o, result);
		output_abandon(o);
		return result;
	}
	pending = 0;
	/* Some file systems cannot sync a folder; they say EINVAL. */
	if (fsync(o->folder) < 0 && errno != EINVAL) {
		result = -errno;
		cli_error("wrote %s but cannot make sure that its folder is on the disk: %s.",
			  o->path, strerror(-result));
	}
	close(o->folder);
	o->folder = -1;
	return result;
}

void output_abandon(struct output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	if (o->temporary[0] && o->folder >= 0 && pending) {
		unlinkat(o->folder, o->temporary, 0);
		pending = 0;
	}
	if (o->folder >= 0)
		close(o->folder);
	o->fd = o->folder = -1;
}
