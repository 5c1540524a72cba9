/* Where an earlier agent left off with a box, from the segments that it left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/segment_row.h"
#include "tacho_read.h"

/* The records of the last stretch of each stream say what was open at its end. */
static int take_states(struct tacho__row *row, struct tacho_reader *reader)
{
	struct tacho__records r = {0};
	uint32_t count = tacho__stretch_count(reader);
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		const struct tacho__stretch *s = tacho__stretch_at(reader, i);
		const struct tacho__stretch *next = tacho__stretch_at(reader, i + 1);
		struct tacho__delivery *at;

		if (next && next->thread == s->thread && next->stream == s->stream)
			continue;
		at = tacho__streams_find(&row->streams, s->thread, s->stream, false);
		err = at ? tacho__stretch_load(reader, i, &r) : 0;
		if (at && !err && r.head.prior_records + r.head.count == at->delivered)
			tacho__stream_advance(at, &r);
		if (err == -EBADMSG)
			err = 0;
	}
	tacho__records_free(&r);
	return err;
}

static int take_segment(struct tacho__row *row, const char *name)
{
	struct tacho__folder *f = &row->segments->folder;
	int fd = openat(f->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct tacho__segment_facts facts;
	struct tacho_reader *reader;
	char path[4096];
	int err = fd < 0 ? -errno : tacho__segment_examine(&facts, fd);

	if (fd >= 0)
		close(fd);
	if (err)
		return err;
	tacho__streams_free(&row->streams);
	row->streams = facts.streams;
	facts.streams = (struct tacho__streams){0};
	row->past = facts.past;
	row->gap_ns = facts.gap_ns;
	/* What is missing by now was there when the newest of these was stored, or came later. */
	for (uint32_t i = 0; i < row->streams.count; i++)
		if (row->streams.items[i].head.last_ns > row->gap_ns)
			row->gap_ns = row->streams.items[i].head.last_ns;
	row->drained_ns = row->gap_ns;
	tacho__segment_facts_free(&facts);
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	if (!tacho_read_open(&reader, path, NULL, NULL, 0)) {
		row->crashes = tacho_read_crash_count(reader);
		err = take_states(row, reader);
		tacho_read_close(reader);
	}
	return err;
}

int tacho__row_know(struct tacho__row *row, const struct tacho_reader *reader)
{
	const struct tacho_process *p = tacho_read_process(reader, 0);
	char name[TACHO__SEGMENT_NAME_MAX];
	uint64_t number;
	int err;

	if (row->known)
		return 0;
	row->clock = p->clock;
	row->identity = (struct tacho__identity){
		.pid = p->pid,
		.start_time = p->start_time,
		.created_mono_ns = p->created_mono_ns,
	};
	memcpy(row->identity.boot_id, p->boot_id, sizeof(p->boot_id));
	err = tacho__folder_newest(&row->segments->folder, &row->identity, name, &number);
	if (!err) {
		err = take_segment(row, name);
		if (!err) {
			row->number = number;
			memcpy(row->before, name, sizeof(row->before));
		}
	} else if (err == -ENOENT) {
		err = 0;
	}
	row->known = !err;
	return err;
}
