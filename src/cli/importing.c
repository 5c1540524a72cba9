#include "cli/importing.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "import/import.h"

/* What was imported, the newest first. */
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

char *importing_resolve(char *path)
{
	struct tacho__found found;
	int is = tacho__import_find(&found, path);
	struct imported *i = is > 0 ? calloc(1, sizeof(*i)) : NULL;
	int fd;

	if (is < 0 || (is && !i)) {
		cli_error("out of memory.");
		goto failed;
	}
	if (!is)
		return path;
	fd = import_memory(&found, path);
	tacho__found_free(&found);
	if (fd < 0)
		goto failed;
	snprintf(i->path, sizeof(i->path), "/proc/self/fd/%d", fd);
	i->name = path;
	i->before = newest;
	newest = i;
	path = strdup(i->path);
	if (!path)
		cli_error("out of memory.");
	return path;

failed:
	tacho__found_free(&found);
	free(i);
	free(path);
	return NULL;
}
