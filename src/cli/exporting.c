#include "cli/exporting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

int exporting_progress(void *arg, uint64_t ns)
{
	cli_progress_at(arg, ns);
	return 0;
}

bool exporting_weight(void *ns, const char *option, const char *text)
{
	*(int *)ns = strcmp(text, "ns") == 0;
	if (*(int *)ns || strcmp(text, "samples") == 0)
		return true;
	cli_usage("%s: '%s' is neither samples nor ns.", option, text);
	return false;
}

/* ------------------------------------------------------------------- output */

static int write_file(void *arg, const void *data, size_t size)
{
	struct exporting *e = arg;

	if (!size || fwrite(data, 1, size, e->file) == size)
		return 0;
	return errno ? -errno : -EIO;
}

int exporting_begin(struct exporting *e, const char *path, bool force, bool binary)
{
	int error;

	memset(e, 0, sizeof(*e));
	e->sink.write = write_file;
	e->sink.arg = e;
	e->file = stdout;
	if (!path || strcmp(path, "-") == 0) {
		if (!binary || !isatty(STDOUT_FILENO))
			return 0;
		cli_error("this format is not for a terminal. Name a file with -o, or redirect the "
			  "output.");
		return -EINVAL;
	}
	error = output_begin(&e->output, path, force);
	if (error < 0)
		return error;
	e->named = true;
	e->file = fdopen(dup(e->output.fd), "w");
	if (e->file)
		return 0;
	error = -errno;
	cli_error("cannot write %s: %s.", path, strerror(-error));
	output_abandon(&e->output);
	return error;
}

int exporting_end(struct exporting *e, int error)
{
	if (!error && fflush(e->file) != 0)
		error = errno ? -errno : -EIO;
	if (e->named && fclose(e->file) != 0 && !error)
		error = errno ? -errno : -EIO;
	if (!e->named) {
		if (error && error != -EPIPE)
			cli_error("the export ended early: %s.", strerror(-error));
		return error ? CLI_FAILED : CLI_OK;
	}
	if (error) {
		cli_error("cannot write %s: %s. The unfinished file is deleted.", e->output.path,
			  strerror(-error));
		output_abandon(&e->output);
		return CLI_FAILED;
	}
	return output_commit(&e->output) < 0 ? CLI_FAILED : CLI_OK;
}

void exporting_warn(const struct tacho__tracker_limits *m, uint64_t frames)
{
	cli_warn_missed(m);
	if (frames)
		cli_warn("%" PRIu64 " frames of stacks found no room and are not named.", frames);
}
