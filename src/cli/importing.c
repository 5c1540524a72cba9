#include "cli/importing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "format/box.h"
#include "import/import.h"
#include "read/damage.h"
#include "read/input.h"
#include "read/news.h"
#include "write/trace_write.h"

/* What became a trace in memory, the newest first. */
static struct imported {
	struct imported *before;
	char path[32];
	char *name;
} * newest;

const char *importing_name(const char *path)
{
	for (const struct imported *i = newest; i; i = i->before)
		if (strcmp(i->path, path) == 0)
			return i->name;
	return path;
}

/* The descriptor of the trace; negative after saying why not. */
static int import_memory(const struct tacho__found *found, const char *path)
{
	struct cli_progress progress;
	char message[CLI_MESSAGE] = "";
	int fd;

	cli_progress_begin(&progress, "importing");
	fd = tacho__import_memory(found, cli_progress, &progress, message, sizeof(message));
	cli_progress_end(&progress);
	if (fd < 0)
		cli_error("cannot import %s: %s.", path, message);
	return fd;
}

/* The path by which the trace behind `fd` is opened; frees `path`, which people call it. NULL after
   saying why not. */
static char *keep(int fd, char *path)
{
	struct imported *i = calloc(1, sizeof(*i));
	char *instead = i ? calloc(1, sizeof(i->path)) : NULL;

	if (!instead) {
		cli_error("out of memory.");
		close(fd);
		free(i);
		free(path);
		return NULL;
	}
	snprintf(i->path, sizeof(i->path), "/proc/self/fd/%d", fd);
	memcpy(instead, i->path, sizeof(i->path));
	i->name = path;
	i->before = newest;
	newest = i;
	return instead;
}

char *importing_resolve(char *path)
{
	struct tacho__found found;
	int is = tacho__import_find(&found, path);
	int fd = is > 0 ? import_memory(&found, path) : -1;

	if (is < 0)
		cli_error("out of memory.");
	tacho__found_free(&found);
	if (!is)
		return path;
	if (fd >= 0)
		return keep(fd, path);
	free(path);
	return NULL;
}

/* Opens the file if it is a box. Returns -1 for all others; whoever opens them later reports what is wrong. */
static int open_box(const char *path)
{
	char magic[8] = "";
	struct stat st;
	int fd;

	if (tacho__lstat_box_path(path, &st) || !S_ISREG(st.st_mode))
		return -1;
	fd = tacho__open_box_path(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    !memcmp(magic, TACHO_BOX_MAGIC, sizeof(magic)))
		return fd;
	close(fd);
	return -1;
}

/* The window of the box as a trace in memory; negative after saying why not. */
static int write_box(struct tacho_reader *reader, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct cli_progress progress;
	struct tacho__trace_options options = {
		.taken_by = TACHO_TAKEN_DUMP,
		.level = -1, /* it is read once */
		.box_name = slash ? slash + 1 : path,
		.progress = cli_progress,
		.progress_arg = &progress,
	};
	int fd = memfd_create("tacho-box", MFD_CLOEXEC), error = fd < 0 ? -errno : 0;
	char message[CLI_MESSAGE] = "";

	cli_allow_debuginfod(false);
	cli_progress_begin(&progress, "looking names up");
	if (!error)
		error = tacho__trace_write(reader, fd, &options, NULL, message, sizeof(message));
	cli_progress_end(&progress);
	if (!error)
		return fd;
	cli_error("cannot read %s: %s.", path, message[0] ? message : strerror(-error));
	if (fd >= 0)
		close(fd);
	return error;
}

char *importing_box(char *path)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	struct tacho_reader *reader = NULL;
	struct tacho__damage damage;
	char message[CLI_MESSAGE] = "";
	int box = open_box(path), fd, error;

	if (box < 0)
		return path;
	error = tacho__read_fd(&reader, box, path, &options, message, sizeof(message));
	close(box);
	if (error < 0) {
		tacho_read_close(reader);
		return path;
	}
	fd = write_box(reader, path);
	tacho__read_damage(reader, UINT32_MAX, &damage);
	if (fd < 0 || !damage.places)
		cli_warn_problems(reader, 10);
	tacho_read_close(reader);
	if (fd >= 0 && damage.places) {
		close(fd);
		return path;
	}
	if (fd >= 0)
		return keep(fd, path);
	free(path);
	return NULL;
}
