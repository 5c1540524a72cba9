#include "agent/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tacho_read.h"
#include "text/text.h"
#include "write/trace_write.h"

#define SHOWN 8u /* processes that are named in the line about it */

void tacho__recording_init(struct tacho__recording *r, const struct tacho__voice *voice)
{
	*r = (struct tacho__recording){.voice = voice, .fd = -1};
}

/* ----------------------------------------------------------------------- parts */

static int begin_first(struct tacho__recording *r, const struct tacho_process *named, char *message,
		       size_t message_size)
{
	int error = r->file ? tacho__new_file_begin(&r->first, r->file, r->replace)
			    : tacho__new_file_begin_in(&r->first, r->folder, named);

	if (error < 0)
		snprintf(message, message_size, "%s", r->first.message);
	return error < 0 ? error : r->first.fd;
}

int tacho__recording_begin(struct tacho__recording *r, const struct tacho_process *named,
			   char *message, size_t message_size)
{
	struct stat st;

	/* One that was deleted is nobody's any more. */
	if (r->fd >= 0 && fstat(r->fd, &st) == 0 && st.st_nlink == 0) {
		close(r->fd);
		r->fd = -1;
	}
	if (r->fd < 0)
		return begin_first(r, named, message, message_size);
	r->whole = lseek(r->fd, 0, SEEK_END);
	if (r->whole < 0) {
		snprintf(message, message_size, "cannot append to %s: %s.", r->path,
			 strerror(errno));
		return -errno;
	}
	return r->fd;
}

void tacho__recording_abandon(struct tacho__recording *r)
{
	if (r->fd < 0)
		tacho__new_file_abandon(&r->first);
	else if (ftruncate(r->fd, r->whole) < 0)
		tacho__warn(r->voice, "%s has a part at its end that is not whole: %s.", r->path,
			    strerror(errno));
}

static int commit_first(struct tacho__recording *r, char *message, size_t message_size)
{
	int fd = fcntl(r->first.fd, F_DUPFD_CLOEXEC, 0);
	int error = fd < 0 ? -errno : tacho__new_file_commit(&r->first);

	if (error < 0) {
		snprintf(message, message_size, "%s",
			 r->first.message[0] ? r->first.message : strerror(-error));
		if (fd >= 0)
			close(fd);
		else
			tacho__new_file_abandon(&r->first);
		return error;
	}
	r->fd = fd;
	snprintf(r->path, sizeof(r->path), "%s", r->first.path);
	if (r->first.kept_old)
		tacho__note(r->voice, "%s from before is kept as %s.old", r->path, r->path);
	return 0;
}

static int count_part(struct tacho__recording *r, const struct tacho_process *p, uint64_t events)
{
	struct tacho__recorded *grown, *at = NULL;

	for (size_t i = 0; i < r->count && !at; i++)
		if (r->processes[i].pid == p->pid &&
		    r->processes[i].created_ns == p->created_mono_ns)
			at = &r->processes[i];
	if (!at) {
		grown = reallocarray(r->processes, r->count + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		r->processes = grown;
		at = &grown[r->count++];
		*at = (struct tacho__recorded){.pid = p->pid, .created_ns = p->created_mono_ns};
		snprintf(at->comm, sizeof(at->comm), "%s", p->comm);
	}
	at->parts++;
	at->events += events;
	return 0;
}

int tacho__recording_commit(struct tacho__recording *r, const struct tacho_process *process,
			    const struct tacho__trace_result *part, const char *why, char *message,
			    size_t message_size)
{
	int error = 0;

	if (r->fd < 0) {
		error = commit_first(r, message, message_size);
	} else if (fdatasync(r->fd) < 0 && errno != EINVAL) {
		error = -errno;
		snprintf(message, message_size, "cannot write %s: %s.", r->path, strerror(-error));
		tacho__recording_abandon(r);
	}
	if (error < 0)
		return error;
	r->bytes += part->bytes;
	if (!r->first_ns || part->first_ns < r->first_ns)
		r->first_ns = part->first_ns;
	if (part->last_ns > r->last_ns)
		r->last_ns = part->last_ns;
	if (why && why[0])
		snprintf(r->why, sizeof(r->why), "%s", why);
	return count_part(r, process, part->events);
}

/* ------------------------------------------------------------------------- end */

/* Windows of one process may overlap: what a reader finds counts. */
static void count_again(struct tacho__recording *r)
{
	struct tacho_reader *reader = NULL;
	const struct tacho_event *event;
	uint64_t *events;

	if (tacho_read_open(&reader, r->path, NULL, NULL, 0) < 0)
		return;
	events = calloc(tacho_read_process_count(reader) + 1, sizeof(*events));
	while (events && tacho_read_next(reader, &event) > 0)
		events[event->process] += event->type != TACHO_EV_RESUME;
	for (uint32_t i = 0; events && i < tacho_read_process_count(reader); i++) {
		const struct tacho_process *p = tacho_read_process(reader, i);

		for (size_t k = 0; k < r->count; k++)
			if (r->processes[k].pid == p->pid &&
			    r->processes[k].created_ns == p->created_mono_ns)
				r->processes[k].events = events[i];
	}
	free(events);
	tacho_read_close(reader);
}

static int by_events(const void *a, const void *b)
{
	const struct tacho__recorded *x = a, *y = b;

	return (x->events < y->events) - (x->events > y->events);
}

static void name_processes(const struct tacho__recording *r, char *out, size_t size)
{
	size_t used = 0, shown = r->count < SHOWN ? r->count : SHOWN;

	out[0] = 0;
	for (size_t i = 0; i < shown && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s (%" PRIu32 ") %" PRIu64,
					 i ? ", " : "", r->processes[i].comm, r->processes[i].pid,
					 r->processes[i].events);
	if (r->count > shown && used < size)
		snprintf(out + used, size - used, " and %zu more", r->count - shown);
}

static void say_what_is_in_it(struct tacho__recording *r)
{
	char seconds[TEXT_SMALL], bytes[TEXT_SMALL], names[1024];
	uint64_t events = 0;
	uint32_t parts = 0;

	for (size_t i = 0; i < r->count; i++)
		parts += r->processes[i].parts;
	if (parts > r->count)
		count_again(r);
	for (size_t i = 0; i < r->count; i++)
		events += r->processes[i].events;
	qsort(r->processes, r->count, sizeof(*r->processes), by_events);
	text_duration(seconds, r->last_ns - r->first_ns);
	text_bytes(bytes, r->bytes);
	if (r->count == 1) {
		tacho__note(r->voice,
			    "%s: window of %s (%" PRIu32 "), %" PRIu64 " events in %s, %s%s%s",
			    r->path, r->processes[0].comm, r->processes[0].pid, events, seconds,
			    bytes, r->why[0] ? "; " : "", r->why);
		return;
	}
	name_processes(r, names, sizeof(names));
	tacho__note(r->voice, "%s: %zu processes, %" PRIu64 " events in %s, %s: %s%s%s", r->path,
		    r->count, events, seconds, bytes, names, r->why[0] ? "; " : "", r->why);
}

void tacho__recording_end(struct tacho__recording *r)
{
	struct stat ours, there;

	if (r->fd >= 0) {
		say_what_is_in_it(r);
		if (fstat(r->fd, &ours) == 0 &&
		    (stat(r->path, &there) < 0 || there.st_ino != ours.st_ino))
			tacho__warn(r->voice,
				    "%s was renamed or replaced by somebody while this ran; "
				    "another tacho run of that name makes it %s.old.",
				    r->path, r->path);
		close(r->fd);
	}
	free(r->processes);
	r->processes = NULL;
	r->count = 0;
	r->fd = -1;
}
