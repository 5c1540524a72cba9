#include "serve/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "agent/end.h"
#include "read/news.h"
#include "tacho_read.h"
#include "write/new_file.h"

#define COPY_BYTES (1u << 20)

static void describe(struct tacho__snapshot *s, const struct tacho_process *box,
		     const struct tacho__trace_end *end)
{
	struct tacho_process p = *box;

	if (end->how) {
		p.end_how = end->how;
		p.end_status = end->status;
		p.end_flags = end->flags;
		p.end_ns = end->ns;
	}
	text_end(s->how, &p);
	s->pid = p.pid;
	s->start_time = p.start_time;
	s->alive = p.alive;
	snprintf(s->comm, sizeof(s->comm), "%s", p.comm);
}

static int write_snapshot(struct tacho__snapshot *s, const struct tacho__snapshot_source *source,
			  struct tacho_reader *reader, char *message, size_t message_size)
{
	const struct tacho_process *p = tacho_read_process(reader, 0);
	const char *slash = strrchr(source->path, '/');
	struct tacho__trace_end end = source->end;
	struct tacho__trace_options options = {
		.taken_by = TACHO_TAKEN_DUMP,
		.box_name = slash ? slash + 1 : source->path,
		.end = end.how ? &end : NULL,
	};

	if (!p || p->taken_by != TACHO_TAKEN_BOX) {
		snprintf(message, message_size, "%s is not a box any more", source->path);
		return -EBADMSG;
	}
	tacho__end_settle(&end, p);
	describe(s, p, &end);
	s->fd = memfd_create("tacho-snapshot", MFD_CLOEXEC);
	if (s->fd < 0)
		return -errno;
	return tacho__trace_write(reader, s->fd, &options, &s->result, message, message_size);
}

int tacho__snapshot_take(struct tacho__snapshot *s, const struct tacho__snapshot_source *source,
			 char *message, size_t message_size)
{
	struct tacho_read_options options = {.size = sizeof(options), .last_ns = source->last_ns};
	struct tacho_reader *reader = NULL;
	int error;

	*s = (struct tacho__snapshot){.fd = -1};
	message[0] = 0;
	error = tacho__read_fd(&reader, source->box, source->path, &options, message, message_size);
	if (error >= 0)
		error = write_snapshot(s, source, reader, message, message_size);
	tacho_read_close(reader);
	if (error < 0 && !message[0])
		snprintf(message, message_size, "cannot take a snapshot of %s: %s", source->path,
			 strerror(-error));
	if (error < 0 && s->fd >= 0) {
		close(s->fd);
		s->fd = -1;
	}
	return error < 0 ? error : 0;
}

static int copy(int to, int from)
{
	off_t at = 0;
	ssize_t n;

	do
		n = sendfile(to, from, &at, COPY_BYTES);
	while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? -errno : 0;
}

int tacho__snapshot_keep(int fd, char name[NAME_MAX + 1], char *message, size_t message_size)
{
	struct tacho__new_file file;
	struct tacho_reader *reader = NULL;
	int error = tacho__read_fd(&reader, fd, "the snapshot", NULL, message, message_size);

	if (error < 0)
		return error;
	error = tacho__new_file_begin_in(&file, ".", tacho_read_process(reader, 0));
	tacho_read_close(reader);
	if (error < 0) {
		snprintf(message, message_size, "%s", file.message);
		return error;
	}
	error = copy(file.fd, fd);
	if (error < 0) {
		snprintf(message, message_size, "cannot write %s: %s. Make room there.", file.path,
			 strerror(-error));
		tacho__new_file_abandon(&file);
		return error;
	}
	error = tacho__new_file_commit(&file);
	if (error < 0)
		snprintf(message, message_size, "%s", file.message);
	else
		snprintf(name, NAME_MAX + 1, "%s", file.name);
	return error;
}
