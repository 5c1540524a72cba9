/*
 * A new file that gets its name only when it is complete.
 */
#define _GNU_SOURCE 1 /* renameat2 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "read/input.h"
#include "tacho_read.h"
#include "text/text.h"
#include "write/new_file.h"

#define UNIQUE_TRIES 1000

static int open_temporary(struct tacho__new_file *f)
{
	int error = EEXIST;

	for (int tries = 0; tries < 16 && error == EEXIST; tries++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			number = tacho__clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 32;
		snprintf(f->temporary, sizeof(f->temporary), ".tacho-%016" PRIx64 ".tmp", number);
		/* An interrupt just after the file is made has to find its name. */
		f->pending = 1;
		f->fd = openat(f->folder, f->temporary,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (f->fd >= 0)
			return 0;
		error = errno;
		f->pending = 0;
	}
	f->temporary[0] = 0;
	return -error;
}

/* Takes the path apart and opens its folder. */
static int open_folder(struct tacho__new_file *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char folder[PATH_MAX] = ".";
	struct stat st;

	f->fd = f->folder = -1;
	if (strlen(path) >= sizeof(f->path) || strlen(name) > NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(f->path, path);
	strcpy(f->name, name);
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EISDIR;
	if (slash) {
		size_t size = slash == path ? 1 : (size_t)(slash - path);

		/* The name of a link that ends with a slash is that of what it leads to. */
		while (size > 1 && path[size - 1] == '/')
			size--;
		memcpy(folder, path, size);
		folder[size] = 0;
	}
	/* A link that another user made does not decide where our files go. */
	f->folder = tacho__open_any(folder, &st);
	if (f->folder < 0)
		return f->folder == -EINVAL ? -ENOTDIR : f->folder;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int old_name(const struct tacho__new_file *f, char *out, size_t size)
{
	return (size_t)snprintf(out, size, "%s.old", f->name) < size ? 0 : -ENAMETOOLONG;
}

/* Whether something stands under the name that can be neither replaced nor kept. */
static int check_existing(const struct tacho__new_file *f)
{
	char old[NAME_MAX + 1];
	struct stat st;

	if (fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return -ENOTSUP;
	if (f->replace)
		return 0;
	if (old_name(f, old, sizeof(old)) < 0)
		return -ENAMETOOLONG;
	if (fstatat(f->folder, old, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return -EEXIST;
	return 0;
}

static void explain(struct tacho__new_file *f, int result)
{
	char *out = f->message;

	if (result == -EEXIST)
		snprintf(out, sizeof(f->message),
			 "%s exists already, and its name with .old is that of a folder. Use "
			 "--force to replace it, or another name.",
			 f->path);
	else if (result == -EISDIR)
		snprintf(out, sizeof(f->message),
			 "cannot write %s: it is a folder. Give the name of a file in it.",
			 f->path);
	else if (result == -ELOOP)
		snprintf(out, sizeof(f->message),
			 "cannot write %s: its folder is a symbolic link that another user made. "
			 "Give the folder itself if you trust it.",
			 f->path);
	else if (result == -ENOTSUP)
		snprintf(out, sizeof(f->message),
			 "%s is not a regular file. Give another name with -o.", f->path);
	else
		snprintf(out, sizeof(f->message),
			 "cannot write %s: %s. Give another place with -o.", f->path,
			 strerror(-result));
}

static int begin(struct tacho__new_file *f, const char *path, bool replace, bool unique)
{
	int result;

	memset(f, 0, sizeof(*f));
	snprintf(f->path, sizeof(f->path), "%s", path);
	f->replace = replace;
	f->unique = unique;
	result = open_folder(f, path);
	if (result == 0 && !unique)
		result = check_existing(f);
	if (result == 0)
		result = open_temporary(f);
	if (result < 0) {
		explain(f, result);
		tacho__new_file_abandon(f);
	}
	return result;
}

int tacho__new_file_begin(struct tacho__new_file *f, const char *path, bool replace)
{
	return begin(f, path, replace, false);
}

int tacho__new_file_begin_unique(struct tacho__new_file *f, const char *path)
{
	return begin(f, path, false, true);
}

void tacho__plain_name(char *out, size_t size, const char *name)
{
	size_t n = 0;

	for (; *name && n < size - 1; name++) {
		bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			     (*name >= '0' && *name <= '9') || strchr("_+-.", *name);

		out[n++] = plain ? *name : '_';
	}
	out[n] = 0;
}

int tacho__new_file_begin_in(struct tacho__new_file *f, const char *folder,
			     const struct tacho_process *process)
{
	char comm[32], stamp[TEXT_SMALL], path[PATH_MAX];

	tacho__plain_name(comm, sizeof(comm), process->comm);
	text_stamp(stamp, process->taken_real_ns ? process->taken_real_ns
						 : tacho__clock_ns(CLOCK_REALTIME));
	if ((size_t)snprintf(path, sizeof(path), "%s%stacho-%s-%" PRIu32 "-%s.tacho", folder,
			     folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/",
			     comm[0] ? comm : "unknown", process->pid, stamp) >= sizeof(path)) {
		memset(f, 0, sizeof(*f));
		f->fd = f->folder = -1;
		snprintf(f->message, sizeof(f->message),
			 "the name of the folder %s is too long. Give another with -o.", folder);
		return -ENAMETOOLONG;
	}
	return tacho__new_file_begin_unique(f, path);
}

/* Gives the file its name if that is free: -EEXIST when it is not. */
static int rename_new(const struct tacho__new_file *f, const char *name)
{
	if (renameat2(f->folder, f->temporary, f->folder, name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system without RENAME_NOREPLACE. */
	if (linkat(f->folder, f->temporary, f->folder, name, 0) < 0)
		return -errno;
	unlinkat(f->folder, f->temporary, 0);
	return 0;
}

/* As perf does: what had the name is kept. */
static int rename_keeping_old(struct tacho__new_file *f)
{
	char old[NAME_MAX + 1];
	int result = rename_new(f, f->name);

	if (result != -EEXIST)
		return result;
	if (old_name(f, old, sizeof(old)) < 0)
		return -ENAMETOOLONG;
	if (renameat(f->folder, f->name, f->folder, old) < 0 && errno != ENOENT)
		return errno == EISDIR ? -EEXIST : -errno;
	f->kept_old = true;
	return rename_new(f, f->name);
}

/* name.tacho, name-2.tacho, name-3.tacho, ... */
static int rename_unique(struct tacho__new_file *f)
{
	size_t stem = strlen(f->name) - strlen(".tacho");
	size_t folder = strlen(f->path) - strlen(f->name);
	int result = rename_new(f, f->name);

	for (int n = 2; result == -EEXIST && n < UNIQUE_TRIES; n++) {
		snprintf(f->name + stem, sizeof(f->name) - stem, "-%d.tacho", n);
		result = rename_new(f, f->name);
	}
	snprintf(f->path + folder, sizeof(f->path) - folder, "%s", f->name);
	return result;
}

int tacho__new_file_commit(struct tacho__new_file *f)
{
	int result = 0;

	if (fsync(f->fd) < 0)
		result = -errno;
	if (close(f->fd) < 0 && result == 0)
		result = -errno;
	f->fd = -1;
	if (result == 0) {
		if (f->unique)
			result = rename_unique(f);
		else if (!f->replace)
			result = rename_keeping_old(f);
		else if (renameat(f->folder, f->temporary, f->folder, f->name) < 0)
			result = -errno;
	}
	if (result < 0) {
		explain(f, result);
		tacho__new_file_abandon(f);
		return result;
	}
	f->pending = 0;
	/* Some file systems cannot sync a folder; they say EINVAL. */
	if (fsync(f->folder) < 0 && errno != EINVAL) {
		result = -errno;
		snprintf(f->message, sizeof(f->message),
			 "wrote %s, but its folder could not be synced to the disk: %s.", f->path,
			 strerror(-result));
	}
	close(f->folder);
	f->folder = -1;
	return result;
}

void tacho__new_file_abandon(struct tacho__new_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->folder >= 0 && f->pending) {
		unlinkat(f->folder, f->temporary, 0);
		f->pending = 0;
	}
	if (f->folder >= 0)
		close(f->folder);
	f->fd = f->folder = -1;
}
