#include "cli/exporting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "model/model.h"

int exporting_open(struct tacho_reader **reader, const char *path, const struct parse_instant *from,
		   const struct parse_instant *to)
{
	struct tacho_read_options options = {.size = sizeof(options)};
	char message[CLI_MESSAGE] = "";
	uint64_t first = 0, last = 0;
	int error = tacho_read_open(reader, path, &options, message, sizeof(message));

	/* The reader has to know the limits when it opens. */
	if (error >= 0 && (from->given || to->given) &&
	    tacho_read_window(*reader, &first, &last) >= 0) {
		options.from_ns = parse_instant_ns(from, first, last);
		options.to_ns = parse_instant_ns(to, first, last);
		tacho_read_close(*reader);
		*reader = NULL;
		if (options.to_ns && options.from_ns > options.to_ns) {
			cli_error("--from lies after --to: there is nothing between them.");
			return -EINVAL;
		}
		error = tacho_read_open(reader, path, &options, message, sizeof(message));
	}
	if (error < 0)
		cli_error("%s", message[0] ? message : strerror(-error));
	return error;
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
		cli_error("this is no text for a terminal. Name a file with -o, or redirect the "
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
		cli_error("cannot write %s: %s. Nothing is left of it.", e->output.path,
			  strerror(-error));
		output_abandon(&e->output);
		return CLI_FAILED;
	}
	return output_commit(&e->output) < 0 ? CLI_FAILED : CLI_OK;
}

void exporting_warn(const struct tacho__tracker_limits *m, uint64_t frames)
{
	uint64_t facts = m->tasks + m->locks + m->works + m->spans + m->threads + m->depth;

	if (facts)
		cli_warn("%" PRIu64 " events are left out: more tasks, locks, spans or threads "
			 "were in use at one time than are kept track of.",
			 facts);
	if (frames)
		cli_warn("%" PRIu64 " frames of stacks found no room and are not named.", frames);
}
