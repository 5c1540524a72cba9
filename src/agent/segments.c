/* The folder and its rows; what is said to a person. segment_drain.c fills the rows. */
#include "agent/segments.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/segment_row.h"
#include "base/clock.h"

/* What could not be written is tried again after this long, if nothing happens before. */
#define RETRY_NS 1000000000ull
/* So much must have been written, or be free, for a full disk to count as one no more. */
#define SPACE_BYTES (64u << 10)

static void say(struct tacho__segments *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct tacho__segments *s, const char *format, ...)
{
	char sentence[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (s->options.say)
		s->options.say(s->options.arg, sentence);
}

static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

static void say_trouble(struct tacho__segments *s, int error)
{
	if (s->error == error)
		return;
	s->error = error;
	if (is_full(error))
		say(s,
		    "cannot write segments to %s: no space is left there; free some. Until then "
		    "records stay in their boxes, and the oldest are overwritten",
		    s->folder.path);
	else
		say(s,
		    "cannot write segments to %s: %s; fix that. Until then records stay in their "
		    "boxes, and the oldest are overwritten",
		    s->folder.path, strerror(error));
}

static void say_again(struct tacho__segments *s)
{
	if (s->error)
		say(s, "segments are written to %s again", s->folder.path);
	s->error = 0;
}

/* ------------------------------------------------------------------ the cap */

static bool is_spared(void *arg, const char *name)
{
	const struct tacho__segments *s = arg;

	for (const struct tacho__row *row = s->rows; row; row = row->next)
		if (!strcmp(row->before, name))
			return true;
	return false;
}

static void fit(struct tacho__segments *s)
{
	struct tacho__row *largest = NULL;

	if (tacho__folder_fit(&s->folder, is_spared, s))
		return;
	for (struct tacho__row *row = s->rows; row; row = row->next)
		if (row->segment.open && row->segment.first_ns != UINT64_MAX && !row->finish &&
		    (!largest || row->segment.whole > largest->segment.whole))
			largest = row;
	if (!largest)
		return;
	tacho__row_finish(largest);
	tacho__folder_fit(&s->folder, is_spared, s);
}

void tacho__segments_fit(struct tacho__segments *s)
{
	uint64_t before = s->folder.total;

	fit(s);
	if (!before || s->folder.total || s->emptied)
		return;
	s->emptied = true;
	say(s,
	    "nothing is kept in %s: a single segment is larger than the %" PRIu64
	    " bytes that may be there; allow more with --max-bytes",
	    s->folder.path, s->folder.max_bytes);
}

/* -------------------------------------------------------------------- open */

void tacho__segments_finished(struct tacho__segments *s, const char *name)
{
	struct stat st;
	char path[4096];

	if (!s->options.finished || fstatat(s->folder.dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	snprintf(path, sizeof(path), "%s/%s", s->folder.path, name);
	s->options.finished(s->options.arg, path, (uint64_t)st.st_size);
}

/* Finishes what dead agents left. */
static void finish_left(struct tacho__segments *s)
{
	struct tacho__folder_list list = {0};
	int err = tacho__folder_list(&s->folder, &list);

	s->left_later = false;
	s->unfinished = err != 0;
	for (size_t i = 0; !err && i < list.count; i++) {
		struct tacho__folder_file *file = &list.items[i];
		bool ours = false;
		int done;

		for (const struct tacho__row *row = s->rows; row; row = row->next)
			ours |= row->segment.open && !strcmp(row->segment.name, file->name);
		if (!file->part || ours)
			continue;
		done = tacho__segment_revive(&s->folder, file->name, s->options.no_symbols);
		if (done > 0)
			tacho__segments_finished(s, file->name);
		if (done < 0 && done != -EBADMSG) {
			s->unfinished = true;
			say_trouble(s, -done);
		}
	}
	tacho__folder_list_free(&list);
}

int tacho__segments_open(struct tacho__segments **out,
			 const struct tacho__segments_options *options, char *message,
			 size_t message_size)
{
	struct tacho__segments *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	*out = NULL;
	if (message && message_size)
		message[0] = 0;
	if (err && message && message_size)
		snprintf(message, message_size, "cannot write segments to %s: out of memory",
			 options->folder);
	if (!err)
		err = tacho__folder_take(&s->folder, options->folder, options->service,
					 options->max_bytes, message, message_size);
	if (err) {
		free(s);
		return err;
	}
	s->options = *options;
	s->options.folder = s->folder.path;
	s->options.service = s->folder.service;
	s->opened_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	s->left_later = options->left_later;
	if (!s->left_later)
		finish_left(s);
	tacho__segments_fit(s);
	*out = s;
	return 0;
}

void tacho__segments_close(struct tacho__segments *s)
{
	if (!s)
		return;
	while (s->rows)
		tacho__row_free(s, s->rows);
	if (s->left_later)
		finish_left(s);
	tacho__folder_release(&s->folder);
	free(s);
}

void tacho__segments_absent(struct tacho__segments *s, const struct tacho__absent *absent)
{
	s->absent = absent;
}

/* -------------------------------------------------------------------- rows */

struct tacho__row *tacho__segments_row(struct tacho__segments *s, const char *path)
{
	struct tacho__row *row = calloc(1, sizeof(*row));
	char *copy = strdup(path);

	if (!row || !copy) {
		free(row);
		free(copy);
		return NULL;
	}
	row->segments = s;
	row->path = copy;
	row->fd = -1;
	row->rights.capabilities = UINT64_MAX;
	row->next = s->rows;
	s->rows = row;
	return row;
}

/* A few bytes still go into the last page of a file when the disk is full. */
static bool has_space(const struct tacho__segments *s, uint64_t written)
{
	struct statvfs v;

	return written >= SPACE_BYTES || (written && !fstatvfs(s->folder.dir, &v) &&
					  (uint64_t)v.f_bavail * v.f_frsize >= SPACE_BYTES);
}

/* What came of a drain: `wrong` is 0, or why not all was written. */
static void settle(struct tacho__segments *s, struct tacho__row *row, int wrong, uint64_t written)
{
	if (!wrong && row->reason) {
		/* With nothing to write there is nothing to try, and nothing has changed. */
		row->retry_ns = UINT64_MAX;
		if (row->reason == TACHO_GAP_NO_SPACE ? !has_space(s, written) : !written)
			return;
		row->reason = 0;
		row->error = 0;
		s->trouble--;
	}
	if (!wrong && !s->trouble && !s->unfinished)
		say_again(s);
	if (!wrong)
		return;
	if (!row->reason)
		s->trouble++;
	row->reason = is_full(-wrong) ? TACHO_GAP_NO_SPACE : TACHO_GAP_UNWRITABLE;
	row->error = -wrong;
	row->retry_ns = tacho__clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
	say_trouble(s, -wrong);
}

void tacho__segments_command_line(struct tacho__row *row, const char *command_line)
{
	row->command_line = command_line;
}

void tacho__segments_end(struct tacho__row *row, const struct tacho__trace_end *end,
			 const char *command_line)
{
	row->end = *end;
	row->command_line = command_line;
}

void tacho__segments_lower(struct tacho__row *row, const struct tacho__rights *rights)
{
	tacho__rights_lower(&row->rights, rights);
}

int tacho__segments_drain(struct tacho__segments *s, struct tacho__row *row, enum tacho__drain how)
{
	uint64_t before = s->folder.written;
	int wrong = tacho__folder_check(&s->folder);
	int err;

	if (!wrong && (s->unfinished || s->left_later))
		finish_left(s);
	if (wrong) {
		settle(s, row, wrong, 0);
		return how == TACHO__DRAIN_END ? wrong : 0;
	}
	err = tacho__row_drain(row, how, &wrong);
	row->unreadable = err < 0 && err != -EMFILE && err != -ENFILE;
	if (!err)
		settle(s, row, wrong, s->folder.written - before);
	return err || how != TACHO__DRAIN_END ? err : wrong;
}

uint32_t tacho__segments_kernel(struct tacho__segments *s, struct tacho__row *row,
				const struct tacho__records *records, uint32_t count, uint64_t lost)
{
	uint64_t before = s->folder.written;
	uint32_t done = 0;
	int wrong;

	if (!row->known || row->finish || row->ended)
		return 0;
	wrong = tacho__row_kernel(row, records, count, lost, &done);
	settle(s, row, wrong, s->folder.written - before);
	return done;
}

static uint64_t row_due_ns(const struct tacho__row *row)
{
	uint64_t length = row->segments->options.segment_ns;
	uint64_t first = row->segment.first_ns;

	if (row->reason && row->retry_ns != UINT64_MAX)
		return row->retry_ns;
	if (!row->segment.open || !length || first > UINT64_MAX - length)
		return UINT64_MAX;
	return first + length;
}

uint64_t tacho__segments_due(const struct tacho__segments *s)
{
	uint64_t due = UINT64_MAX;

	for (const struct tacho__row *row = s->rows; row; row = row->next)
		if (row_due_ns(row) < due)
			due = row_due_ns(row);
	return due;
}

bool tacho__row_is_unreadable(const struct tacho__row *row)
{
	return row->unreadable;
}

bool tacho__row_due(const struct tacho__row *row, uint64_t now_ns)
{
	return row_due_ns(row) <= now_ns;
}

void tacho__row_free(struct tacho__segments *s, struct tacho__row *row)
{
	struct tacho__row **at = &s->rows;

	if (!row)
		return;
	if (!row->ended && row->known)
		tacho__segments_drain(s, row, TACHO__DRAIN_ALL);
	if (!tacho__folder_check(&s->folder))
		tacho__row_finish(row);
	/* What could not be finished is tried again, and left for the next agent at last. */
	s->unfinished |= row->segment.open;
	if (row->reason)
		s->trouble--;
	while (*at && *at != row)
		at = &(*at)->next;
	if (*at)
		*at = row->next;
	tacho__segment_close(&row->segment);
	tacho__streams_free(&row->streams);
	if (row->fd >= 0)
		close(row->fd);
	free(row->defined);
	free(row->path);
	free(row);
}
