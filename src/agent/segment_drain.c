/*
 * From a box into the segment of its row: which chunks are wanted, what of them is new, what is
 * missing before it.
 *
 * The position of a stream is moved on only after the block that holds the records was written.
 * So whatever fails, and whenever this process ends, the next attempt begins behind the last
 * whole block.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/end.h"
#include "agent/segment_row.h"
#include "base/clock.h"
#include "read/news.h"
#include "tacho_read.h"

/* A record is stored a moment after its time was taken: a segment that begins with a thread's
   state says that of a moment before. */
#define STATE_NS 100000000u

struct drain {
	struct tacho__row *row;
	enum tacho__drain how;
	uint64_t now_ns; /* when it began */
	struct tacho_reader *reader;
	uint32_t *order; /* stretches by stream and sequence */
	uint32_t count;
	struct tacho__records records;
	uint64_t chunks; /* in the box ... */
	uint64_t sealed; /* ... and records in those that are sealed */
	bool no_memory;
};

/* ------------------------------------------------------------ what is wanted */

static int skip_chunk(void *arg, const struct tacho_chunk *head)
{
	struct drain *d = arg;
	struct tacho__delivery *at =
		tacho__streams_find(&d->row->streams, head->thread, head->stream, true);
	bool known;

	if (!at) {
		d->no_memory = true;
		return 1;
	}
	at->present = true;
	d->chunks++;
	if (head->flags & TACHO_CHUNK_SEALED) {
		d->sealed += head->records;
	} else {
		at->unsealed = true;
		at->prior = head->prior_records;
	}
	if (d->how == TACHO__DRAIN_END)
		return 0;
	/* The number of records is stored just before the flag. */
	if (head->flags & TACHO_CHUNK_SEALED)
		return head->records && head->prior_records + head->records <= at->delivered;
	if (d->how == TACHO__DRAIN_SEALED) {
		at->held = true;
		at->hold = head->sequence;
		return 1;
	}
	known = at->generation == head->generation && at->commit == head->commit;
	at->generation = head->generation;
	at->commit = head->commit;
	return known;
}

/* A segment that begins now gets all of them anyway. */
static int skip_definition(void *arg, uint32_t id)
{
	const struct drain *d = arg;

	return !d->row->segment.open || tacho__row_defines(d->row, id);
}

/* ------------------------------------------------------------------ segments */

/* What a thread is in at the end may have begun long before: the segment does not reach back for
   that. */
static void begin_late(const struct drain *d, struct tacho__records *r)
{
	uint64_t from = d->row->drained_ns > STATE_NS ? d->row->drained_ns - STATE_NS : 0;

	for (uint32_t i = 0; i < r->head.count; i++) {
		unsigned type = tacho_record_type(r->type_arg[i]);

		if ((type == TACHO_REC_CALL_OPEN || type == TACHO_REC_LOCK_OWNER) &&
		    r->ns[i] < from)
			r->ns[i] = from;
	}
}

/* Records of the stretch that are not delivered; its times do not run back. */
static int load_new(struct drain *d, uint32_t index, struct tacho__delivery **out)
{
	struct tacho__records *r = &d->records;
	int err = tacho__stretch_load(d->reader, index, r);
	struct tacho__delivery *at;

	*out = NULL;
	if (err)
		return err == -EBADMSG ? 0 : err;
	at = tacho__streams_find(&d->row->streams, r->head.thread, r->head.stream, false);
	if (!at)
		return 0;
	if (at->held && r->head.sequence > at->hold)
		return 0;
	if (r->head.prior_records < at->delivered) {
		uint64_t old = at->delivered - r->head.prior_records;

		if (old >= r->head.count)
			return 0;
		tacho__records_skip(r, (uint32_t)old);
		r->head.flags &= ~TACHO_EVENTS_CUT;
	}
	if (!r->head.count)
		return 0;
	for (uint32_t i = 0; i < r->head.count && r->ns[i] < at->head.last_ns; i++)
		r->ns[i] = at->head.last_ns;
	begin_late(d, r);
	*out = at;
	return 0;
}

/* When the state of each stream is told of: not after its next record. */
static int state_times(struct drain *d, uint32_t from, uint64_t *ns)
{
	const struct tacho__streams *s = &d->row->streams;
	const struct tacho__stretch *done = NULL; /* of the stream that was last looked at */
	struct tacho__delivery *at;

	for (uint32_t i = 0; i < s->count; i++) {
		uint64_t last = s->items[i].head.last_ns;

		ns[i] = d->now_ns > STATE_NS ? d->now_ns - STATE_NS : 0;
		if (ns[i] < last)
			ns[i] = last;
	}
	for (uint32_t i = from; i < d->count; i++) {
		const struct tacho__stretch *p = tacho__stretch_at(d->reader, d->order[i]);
		int err;

		if (done && done->thread == p->thread && done->stream == p->stream)
			continue;
		err = load_new(d, d->order[i], &at);
		if (err)
			return err;
		if (!at)
			continue;
		if (d->records.ns[0] < ns[at - s->items])
			ns[at - s->items] = d->records.ns[0];
		done = p;
	}
	return 0;
}

static int begin_segment(struct drain *d, uint32_t from)
{
	struct tacho__row *row = d->row;
	struct tacho__trace_options options;
	struct tacho_reader *facts = NULL;
	uint64_t *ns = calloc((size_t)row->streams.count + 1, sizeof(*ns));
	struct tacho__past past = {&row->streams, ns, row->past};
	int err = ns ? state_times(d, from, ns) : -ENOMEM;

	if (!err)
		err = tacho__row_facts(row, &facts);
	if (!err) {
		row->number++;
		options = tacho__row_options(row);
		err = tacho__segment_begin(&row->segment, &row->segments->folder, facts, &past,
					   &options);
		if (err)
			row->number--;
	}
	if (!err) {
		if (row->defined_words)
			memset(row->defined, 0, row->defined_words * sizeof(*row->defined));
		row->crashes = tacho_read_crash_count(facts);
		for (uint32_t i = 0; i < row->streams.count; i++)
			row->streams.items[i].begun = row->streams.items[i].delivered;
		err = tacho__row_define(row, facts);
	}
	tacho_read_close(facts);
	free(ns);
	return err;
}

int tacho__row_begin(struct tacho__row *row)
{
	struct drain d = {.row = row, .now_ns = tacho__clock_ns(CLOCK_MONOTONIC)};

	return row->known ? begin_segment(&d, 0) : -ENODATA;
}

/* New names come before the records that use them. */
static int add_definitions(struct drain *d)
{
	uint32_t limit = tacho_read_definition_limit(d->reader, 0);
	bool any = false;
	int err;

	for (uint32_t id = 1; !any && id < limit; id++)
		any = tacho_read_definition(d->reader, 0, id) && !tacho__row_defines(d->row, id);
	if (!any)
		return 0;
	err = tacho__segment_definitions(&d->row->segment, d->reader);
	return err ? err : tacho__row_define(d->row, d->reader);
}

static int ready_segment(struct drain *d, uint32_t from)
{
	int err = 0;

	if (!d->row->segment.open)
		err = begin_segment(d, from);
	return err ? err : add_definitions(d);
}

/* ------------------------------------------------------------------- records */

/* Of what was lost before this agent had taken anything. */
static uint32_t reason_before(const struct tacho__row *row)
{
	bool older = row->identity.created_mono_ns < row->segments->opened_ns;

	return older ? TACHO_GAP_NO_AGENT : TACHO_GAP_TOO_FAST;
}

static uint32_t reason_now(const struct tacho__row *row)
{
	if (row->reason)
		return row->reason;
	return row->taken ? TACHO_GAP_TOO_FAST : reason_before(row);
}

static void note_hole(struct drain *d, const struct tacho__delivery *at, uint64_t to_ns,
		      uint64_t records)
{
	struct tacho__row *row = d->row;
	struct tacho_trace_gap *gap = &row->gap;
	uint64_t from_ns = at->head.last_ns;

	if (!records)
		return;
	if (!at->head.size)
		from_ns = row->drained_ns ? row->drained_ns : row->identity.created_mono_ns;
	if (!gap->records) {
		*gap = (struct tacho_trace_gap){.from_ns = from_ns, .to_ns = to_ns};
		gap->reason = reason_now(row);
		gap->error = row->reason ? row->error : 0;
	}
	gap->records += records;
	if (from_ns < gap->from_ns)
		gap->from_ns = from_ns;
	if (to_ns > gap->to_ns)
		gap->to_ns = to_ns;
}

/* By its size; where threads are many, the head alone may take much of it. */
static bool is_full(const struct tacho__row *row)
{
	const struct tacho__segment *g = &row->segment;
	uint64_t limit = tacho__row_limit(row->segments);

	return g->open && g->whole >= limit && g->whole - g->head >= limit / 2;
}

/* One stretch of records. */
static int deliver(struct drain *d, uint32_t from)
{
	struct tacho__row *row = d->row;
	struct tacho__records *r = &d->records;
	struct tacho__delivery *at;
	int err = load_new(d, d->order[from], &at);

	if (err || !at)
		return err;
	err = ready_segment(d, from);
	/* That may have loaded others. */
	if (!err)
		err = load_new(d, d->order[from], &at);
	if (err || !at)
		return err;
	err = tacho__segment_events(&row->segment, r);
	if (err && err != -EINVAL)
		return err;
	note_hole(d, at, r->ns[0], r->head.prior_records - at->delivered);
	if (err)
		note_hole(d, at, r->ns[r->head.count - 1], r->head.count);
	tacho__stream_advance(at, r);
	tacho__segments_fit(row->segments);
	return is_full(row) ? tacho__row_finish(row) : 0;
}

static int by_sequence(const void *va, const void *vb, void *arg)
{
	const struct tacho_reader *reader = arg;
	const struct tacho__stretch *a = tacho__stretch_at(reader, *(const uint32_t *)va);
	const struct tacho__stretch *b = tacho__stretch_at(reader, *(const uint32_t *)vb);

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static int deliver_all(struct drain *d)
{
	int err = 0;

	d->count = tacho__stretch_count(d->reader);
	d->order = calloc((size_t)d->count + 1, sizeof(*d->order));
	if (!d->order || d->no_memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->count; i++) {
		const struct tacho__stretch *p = tacho__stretch_at(d->reader, i);

		d->order[i] = i;
		/* From here on none is added, so that they stay where they are. */
		if (!tacho__streams_find(&d->row->streams, p->thread, p->stream, true))
			return -ENOMEM;
	}
	qsort_r(d->order, d->count, sizeof(*d->order), by_sequence, d->reader);
	for (uint32_t i = 0; !err && i < d->count; i++)
		err = deliver(d, i);
	if (!err && d->row->segment.open)
		err = tacho__row_gap(d->row);
	return err;
}

/* --------------------------------------------------------------------- unseen */

static uint64_t loss(const struct tacho_reader *reader, uint32_t which)
{
	struct tacho_loss_info info = {.size = sizeof(info)};

	return tacho_read_loss(reader, 0, which, &info) ? 0 : info.count;
}

/*
 * The last chunks of a thread that ended may be overwritten before anybody saw them, and no
 * later one tells how many records there were. But all records of a box are either in it or
 * were counted when they were overwritten. That is exact once the process is gone.
 */
static int count_unseen(struct drain *d)
{
	struct tacho__row *row = d->row;
	uint64_t stored = loss(d->reader, TACHO_LOSS_OVERWRITTEN_RECORDS) + d->sealed;
	uint64_t chunks = loss(d->reader, TACHO_LOSS_OVERWRITTEN_CHUNKS) + d->chunks;
	uint64_t seen = row->past, last_ns = row->identity.created_mono_ns;
	struct tacho_box_super super;
	int err = 0;

	for (uint32_t i = 0; i < row->streams.count; i++) {
		const struct tacho__delivery *at = &row->streams.items[i];

		seen += at->delivered;
		if (at->unsealed)
			stored += at->delivered - at->prior;
		if (at->head.last_ns > last_ns)
			last_ns = at->head.last_ns;
	}
	/* Killed just when it had counted a chunk, and not yet begun to overwrite it. */
	if (pread(row->fd, &super, sizeof(super), 0) != sizeof(super) || chunks > super.generation)
		return 0;
	if (stored <= seen)
		return 0;
	if (!row->segment.open)
		err = begin_segment(d, d->count);
	if (!err)
		err = tacho__segment_past(&row->segment, row->past + (stored - seen));
	if (err)
		return err;
	row->gap = (struct tacho_trace_gap){
		.from_ns = row->identity.created_mono_ns,
		.to_ns = last_ns,
		.records = stored - seen,
		.reason = row->reason ? row->reason : reason_before(row),
		.error = row->error,
	};
	row->past += stored - seen;
	return tacho__row_gap(row);
}

/* ------------------------------------------------------------------ the drain */

/*
 * Threads that ended, and of which the box holds nothing, never come again. But chunks are looked
 * at before threads are: one that ended in between may have left some.
 */
static bool is_needed(void *arg, struct tacho__delivery *at)
{
	const struct drain *d = arg;
	const struct tacho_thread *t = tacho_read_thread_by_number(d->reader, 0, at->thread);
	bool gone = !at->present && (!t || !t->live);
	bool needed = !gone || !at->gone;

	at->gone = gone;
	return needed;
}

/* A file that somebody deleted has to be written again, as far as the box has it. */
static void check_segment(struct tacho__row *row)
{
	if (!row->segment.open || tacho__segment_exists(&row->segment))
		return;
	for (uint32_t i = 0; i < row->streams.count; i++) {
		struct tacho__delivery *at = &row->streams.items[i];

		at->delivered = at->begun;
		at->generation = 0;
		at->head.open_count = 0;
		at->head.open_listed = at->head.flags = 0;
	}
	row->finish = false;
	tacho__segment_close(&row->segment);
}

static void begin_drain(struct drain *d)
{
	struct tacho__streams *s = &d->row->streams;

	d->now_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	for (uint32_t i = 0; i < s->count; i++)
		s->items[i].present = s->items[i].held = s->items[i].unsealed = false;
	check_segment(d->row);
	tacho__row_compare(d->row);
}

static bool tells_end(const struct tacho__row *row)
{
	return row->number && !row->ended && row->end.how && row->end.how != TACHO_END_GONE;
}

static int end_drain(struct drain *d)
{
	struct tacho__row *row = d->row;
	int err = 0;

	row->taken = true;
	row->drained_ns = d->now_ns;
	row->past += tacho__streams_keep(&row->streams, is_needed, d);
	if (d->how == TACHO__DRAIN_END) {
		err = count_unseen(d);
		/* A row that ended while nothing was recorded has a segment for its end alone. */
		if (!err && !row->segment.open &&
		    (tacho_read_crash_count(d->reader) > row->crashes || tells_end(row)))
			err = begin_segment(d, d->count);
		if (!err)
			err = tacho__row_finish(row);
		row->ended = !err;
	} else if (tacho__row_is_due(row, d->now_ns)) {
		err = tacho__row_finish(row);
	}
	tacho__segments_fit(row->segments);
	return err;
}

int tacho__row_drain(struct tacho__row *row, enum tacho__drain how, int *wrong)
{
	struct drain d = {.row = row, .how = how};
	struct tacho__news news = {
		.skip_chunk = skip_chunk,
		.skip_definition = skip_definition,
		.arg = &d,
		.last = how == TACHO__DRAIN_END,
	};
	int err = tacho__row_open(row);

	*wrong = 0;
	if (err)
		return err;
	begin_drain(&d);
	/* Positions are known before chunks are left out by them. */
	if (!row->known) {
		err = tacho__row_facts(row, &d.reader);
		if (!err)
			*wrong = tacho__row_know(row, d.reader);
		tacho_read_close(d.reader);
		d.reader = NULL;
		if (!err && !*wrong)
			tacho__row_compare(row);
	}
	if (!err && !*wrong && row->finish)
		*wrong = tacho__row_finish(row);
	if (!err && !*wrong)
		err = tacho__row_read(row, &news, &d.reader);
	if (!err && !*wrong && how == TACHO__DRAIN_END)
		tacho__end_settle(&row->end, tacho_read_process(d.reader, 0));
	if (!err && !*wrong)
		*wrong = deliver_all(&d);
	if (!err && !*wrong)
		*wrong = end_drain(&d);
	/* What was copied and could not be written is copied again. */
	for (uint32_t i = 0; *wrong && i < row->streams.count; i++)
		row->streams.items[i].generation = 0;
	tacho_read_close(d.reader);
	tacho__records_free(&d.records);
	free(d.order);
	return err;
}
