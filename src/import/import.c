#include "import/import.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/stream.h"
#include "read/input.h"
#include "read/memory.h"

#define FILES_MAX 65536u

static const struct tacho__importer *const importers[] = {
	&tacho__import_dial9,
	&tacho__import_go,
};

/* A box is opened once: it changes from one moment to the next. */
static int is_own_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (strcmp(dot, ".box") == 0 || strcmp(dot, ".tacho") == 0);
}

static const struct tacho__importer *importer_of(const char *path)
{
	uint8_t head[TACHO__IMPORT_HEAD];
	struct tacho__stream *s;
	size_t size;
	int error;

	if (is_own_name(path))
		return NULL;
	s = tacho__stream_open(path, &error);
	if (!s)
		return NULL;
	size = tacho__stream_read(s, head, sizeof(head));
	tacho__stream_close(s);
	for (size_t i = 0; i < sizeof(importers) / sizeof(importers[0]); i++)
		if (importers[i]->recognises(head, size))
			return importers[i];
	return NULL;
}

/* ----------------------------------------------------------------- folders */

static int add_path(struct tacho__found *f, uint32_t *capacity, const char *path)
{
	if (TACHO__GROW(f->paths, *capacity, f->path_count + 1))
		return -ENOMEM;
	f->paths[f->path_count] = strdup(path);
	return f->paths[f->path_count] ? (f->path_count++, 0) : -ENOMEM;
}

static int is_own(const char *name)
{
	size_t size = strlen(name);

	return size > 6 && !strcmp(name + size - 6, ".tacho");
}

/* The files of the folder, by name; none when it is one of tacho's own. */
static int list_folder(struct tacho__found *f, const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, NULL, alphasort), own = 0, err = 0;
	char path[PATH_MAX];
	uint32_t capacity = 0;

	if (count < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < count; i++)
		own |= is_own(entries[i]->d_name);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (!err && !own && name[0] != '.' && f->path_count < FILES_MAX &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) < sizeof(path))
			err = add_path(f, &capacity, path);
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* Of the files those that the importer of the first of them takes. */
static int find_in_folder(struct tacho__found *f, const char *path)
{
	int err = list_folder(f, path);
	uint32_t kept = 0;

	for (uint32_t i = 0; !err && i < f->path_count; i++) {
		const struct tacho__importer *importer = importer_of(f->paths[i]);

		if (importer && importer->folders && !f->importer)
			f->importer = importer;
		if (importer && importer == f->importer) {
			char *own = f->paths[kept];

			f->paths[kept++] = f->paths[i];
			f->paths[i] = own;
		}
	}
	for (uint32_t i = kept; i < f->path_count; i++)
		free(f->paths[i]);
	f->path_count = kept;
	return err ? err : kept != 0;
}

int tacho__import_find(struct tacho__found *f, const char *path)
{
	uint32_t capacity = 0;
	struct stat st;
	int fd;

	*f = (struct tacho__found){0};
	if (is_own_name(path))
		return 0;
	/* What cannot be opened, as a link that another user made, is for others to complain of. */
	fd = tacho__open_any(path, &st);
	if (fd < 0)
		return 0;
	close(fd);
	if (S_ISDIR(st.st_mode))
		return find_in_folder(f, path);
	f->importer = importer_of(path);
	if (!f->importer)
		return 0;
	return add_path(f, &capacity, path) ? -ENOMEM : 1;
}

void tacho__found_free(struct tacho__found *f)
{
	for (uint32_t i = 0; i < f->path_count; i++)
		free(f->paths[i]);
	free(f->paths);
	*f = (struct tacho__found){0};
}

/* --------------------------------------------------------------- importing */

int tacho__import(const struct tacho__found *f, int fd, const struct tacho__import_options *options,
		  struct tacho__trace_result *result, char *message, size_t message_size)
{
	struct tacho__importing i = {
		.made = tacho__made_new(),
		.paths = (const char *const *)f->paths,
		.path_count = f->path_count,
		.progress = options->progress,
		.progress_arg = options->progress_arg,
		.message = message,
		.message_size = message_size,
	};
	int err = i.made ? 0 : -ENOMEM;

	message[0] = 0;
	if (!err && options->once)
		tacho__made_for_once(i.made);
	if (!err)
		err = f->importer->import(&i);
	if (!err)
		err = tacho__made_write(i.made, fd, result, message, message_size);
	if (err && !message[0])
		snprintf(message, message_size, "%s", strerror(-err));
	tacho__made_free(i.made);
	return err;
}

int tacho__import_memory(const struct tacho__found *f,
			 void (*progress)(void *arg, uint64_t done, uint64_t total),
			 void *progress_arg, char *message, size_t message_size)
{
	const struct tacho__import_options options = {
		.progress = progress, .progress_arg = progress_arg, .once = 1};
	int fd = memfd_create("tacho-import", MFD_CLOEXEC), error;

	if (fd < 0) {
		error = -errno;
		snprintf(message, message_size, "no memory for it: %s", strerror(-error));
		return error;
	}
	error = tacho__import(f, fd, &options, NULL, message, message_size);
	if (!error)
		return fd;
	close(fd);
	return error;
}
