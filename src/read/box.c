/*
 * A box, by the rule at the head of format/box.h. What it says is hostile, and may
 * change while it is read: each part is copied first and then looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/definition.h"
#include "read/reader.h"

#define COPY_TRIES 4
#define DEFINITIONS_AT_ONCE 1024u

struct box {
	struct tacho_reader *reader;
	uint32_t source;
	struct tacho__input *in;
	struct tacho_box_super super;
	struct tacho__parts parts;
	uint8_t *slot;	 /* one slot, copied */
	uint32_t torn;	 /* chunks overwritten while they were copied */
	uint64_t newest; /* generation: younger chunks were made after we began */
};

int tacho__is_box(struct tacho__input *in)
{
	char magic[8];

	return !tacho__input_read(in, 0, magic, sizeof(magic)) &&
	       !memcmp(magic, TACHO_BOX_MAGIC, sizeof(magic));
}

/* Entries of a region that can be read: at most `wanted`, 0 if it is not what it should be.
   Every version of a box has entries of one size. */
static uint32_t region(struct box *b, enum tacho_region which, uint32_t entry, uint32_t wanted)
{
	struct tacho_box_region *g = &b->super.regions[which];
	uint64_t fit;

	if (which >= b->super.region_count)
		return 0;
	if (g->offset < TACHO_BOX_SUPER_SIZE || g->offset > b->in->size || g->offset % 8 ||
	    g->entry_size != entry) {
		tacho__problem(b->reader, b->source, "bad-region", g->offset, g->size,
			       "region %u of the box lies outside the file or has entries of the "
			       "wrong size; what it held is lost",
			       (unsigned)which);
		/* Said once, and then empty. */
		*g = (struct tacho_box_region){TACHO_BOX_SUPER_SIZE, 0, entry, 0};
		return 0;
	}
	fit = (b->in->size - g->offset) / g->entry_size;
	if (wanted > g->count)
		wanted = g->count;
	return fit < wanted ? (uint32_t)fit : wanted;
}

static int read_entry(struct box *b, enum tacho_region which, uint32_t index, void *to, size_t size)
{
	const struct tacho_box_region *g = &b->super.regions[which];

	return tacho__input_read(b->in, g->offset + (uint64_t)index * g->entry_size, to, size);
}

/* ------------------------------------------------------------------ chunks */

/* The valid part of the slot buffer becomes a stretch. */
static int keep_chunk(struct box *b, uint64_t offset, uint32_t size)
{
	struct tacho__source *source = &b->reader->sources[b->source];
	struct tacho__stretch_info s = {.source = b->source, .kind = TACHO__STRETCH_COPY};
	struct tacho__chunk_facts facts;
	struct tacho_chunk head;
	int err = tacho__chunk_walk(b->slot, size, &facts, &b->parts);

	if (err == -ENOMEM)
		return err;
	if (err) {
		tacho__problem(b->reader, b->source, "bad-chunk", offset, size,
			       "a chunk of the box has a damaged header; its records are lost");
		return 0;
	}
	memcpy(&head, b->slot, sizeof(head));
	if (facts.bad)
		tacho__problem(b->reader, b->source, "bad-record", offset + facts.valid,
			       size - facts.valid,
			       "what follows in this chunk is no record and was left out");
	tacho__chunk_describe(b->slot, &facts, &s);
	s.offset = offset;
	s.size = facts.valid;
	/* Only what is valid: a sparse file cannot make us hold zeros. */
	s.copy = malloc(facts.valid);
	if (!s.copy)
		return -ENOMEM;
	memcpy(s.copy, b->slot, facts.valid);
	/* What the walk found counts, not what the header said before. */
	head.commit = facts.valid;
	if (facts.bad)
		head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	memcpy(s.copy, &head, sizeof(head));
	err = tacho__timebase_add(&source->timebase, head.anchor.ticks, head.anchor.mono_ns, 1);
	if (!err)
		err = tacho__stretch_add(b->reader, &s);
	if (err)
		free(s.copy);
	return err;
}

/* Loads the slot's state; 0 when it cannot be read. */
static uint64_t slot_state(struct box *b, uint32_t slot)
{
	struct tacho_box_slot s;

	return read_entry(b, TACHO_REGION_SLOTS, slot, &s, sizeof(s)) ? 0 : s.state;
}

/* The chunk's place still has the shape that `state` says, and its part is in use. */
static int same_shape(struct box *b, uint32_t slot, uint64_t state)
{
	uint64_t now = slot_state(b, slot);

	return TACHO_SLOT_SHAPE(now) == TACHO_SLOT_SHAPE(state) &&
	       TACHO_SLOT_SHAPE_COUNT(now) == TACHO_SLOT_SHAPE_COUNT(state);
}

/*
 * One try: 1 and *size bytes in the buffer, 0 nothing is here, -EAGAIN it changed while it
 * was copied.
 */
static int copy_chunk(struct box *b, uint32_t slot, uint64_t state, uint64_t offset, uint32_t room,
		      uint32_t *size)
{
	struct tacho_chunk head, again;
	uint64_t commit;

	/* A size that does not fit the place is what was here before its shape changed. */
	if (tacho__input_read(b->in, offset, &head, sizeof(head)) || !head.generation ||
	    head.size != room || (b->newest && head.generation > b->newest))
		return 0;
	commit = head.commit < room ? head.commit : room;
	if (commit < TACHO_CHUNK_HEAD)
		commit = TACHO_CHUNK_HEAD;
	if (tacho__input_read(b->in, offset, b->slot, (size_t)commit) ||
	    tacho__input_read(b->in, offset, &again, sizeof(again)))
		return 0;
	if (again.generation != head.generation || !same_shape(b, slot, state))
		return -EAGAIN;
	if (again.commit < commit)
		commit = again.commit;
	/* The copied header is whole; but counts from before the copied records. */
	memcpy(b->slot, &again, sizeof(again));
	if (commit < again.commit) {
		/* More was stored since: not sealed as far as our copy goes. */
		((struct tacho_chunk *)b->slot)->flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	}
	*size = (uint32_t)commit;
	return 1;
}

/* Part `part` of the slot, or the whole of it. Fresh loads of the state tell whether there
   is still something to copy. */
static int take_chunk(struct box *b, uint32_t slot, uint32_t part, unsigned shape)
{
	uint32_t small = b->super.small_size;
	uint32_t room = shape == TACHO_SLOT_WHOLE ? b->super.slot_size : small;
	uint64_t offset = b->super.regions[TACHO_REGION_POOL].offset +
			  (uint64_t)slot * b->super.slot_size + (uint64_t)part * small;
	uint32_t size;

	for (int i = 0; i < COPY_TRIES; i++) {
		uint64_t state = slot_state(b, slot);
		int result;

		if (TACHO_SLOT_SHAPE(state) != shape ||
		    (shape == TACHO_SLOT_SPLIT && !(state >> (24 + part) & 1)))
			return 0;
		result = copy_chunk(b, slot, state, offset, room, &size);
		if (result == 1)
			return keep_chunk(b, offset, size);
		if (result == 0)
			return 0;
		/* Whatever comes now is newer than the window that was asked for; the chunk that
		   was there is lost to this reader. */
		if (i == 0)
			b->torn++;
	}
	return 0;
}

static int read_chunks(struct box *b)
{
	uint32_t slots, in_pool;
	int err = 0;

	slots = region(b, TACHO_REGION_SLOTS, sizeof(struct tacho_box_slot), b->super.slots_used);
	if (!slots)
		return 0;
	if (b->super.slot_size != TACHO_SLOT_SIZE || b->super.small_size != TACHO_SMALL_SIZE) {
		tacho__problem(b->reader, b->source, "bad-region", 0, 0,
			       "the box gives sizes of chunks that no box has; no record of it can "
			       "be read");
		return 0;
	}
	in_pool = region(b, TACHO_REGION_POOL, b->super.slot_size, slots);
	if (in_pool < slots)
		tacho__problem(b->reader, b->source, "cut", b->in->size, 0,
			       "the box is shorter than it says: %u of %u slots of records are not "
			       "there",
			       slots - in_pool, slots);
	b->slot = malloc(b->super.slot_size);
	if (!b->slot)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < in_pool; i++) {
		unsigned shape = TACHO_SLOT_SHAPE(slot_state(b, i));
		uint32_t parts = b->super.slot_size / b->super.small_size;

		if (shape == TACHO_SLOT_WHOLE)
			err = take_chunk(b, i, 0, shape);
		for (uint32_t k = 0; !err && shape == TACHO_SLOT_SPLIT && k < parts; k++)
			err = take_chunk(b, i, k, shape);
		tacho__progress(b->reader, (uint64_t)i * b->super.slot_size,
				(uint64_t)in_pool * b->super.slot_size);
	}
	free(b->slot);
	if (b->torn)
		tacho__problem(b->reader, b->source, "overwritten-while-read", 0, 0,
			       "%u chunks were overwritten with newer records while they were "
			       "copied, as happens in a busy process; the window begins a little "
			       "later",
			       b->torn);
	return err;
}

/* ------------------------------------------------------------------ tables */

/* All entries of a region into an array of `size` bytes each. */
static int read_table(struct box *b, enum tacho_region which, uint32_t used, size_t size,
		      void **out, uint32_t *count)
{
	uint32_t n = region(b, which, (uint32_t)size, used);
	uint8_t *items;

	/* Sparse parts of the file hold nothing but cost as much. */
	if (n > 65536 && (uint64_t)n * size > b->in->backed)
		n = 65536;
	*count = 0;
	items = calloc((size_t)n + 1, size);
	if (!items)
		return -ENOMEM;
	if (read_entry(b, which, 0, items, n * size))
		n = 0;
	*out = items;
	*count = n;
	return 0;
}

/*
 * A poll is pending for this reader if it was when copying began and still is: then the
 * records that were copied are all that came before it.
 */
static void keep_lasting_polls(struct tacho__parts *p, const struct tacho_box_thread *before,
			       uint32_t count)
{
	for (uint32_t i = 0; i < p->thread_count; i++) {
		struct tacho_box_thread *t = &p->threads[i];

		if (i >= count || before[i].number != t->number ||
		    before[i].pending_kind != t->pending_kind ||
		    before[i].pending_ticks != t->pending_ticks ||
		    before[i].pending_task != t->pending_task)
			t->pending_kind = 0;
	}
}

/* A histogram whose owner was just recording or clearing it is read again. */
static int read_hists(struct box *b)
{
	struct tacho__parts *p = &b->parts;
	int err = read_table(b, TACHO_REGION_HISTOGRAMS, b->super.hists_used,
			     sizeof(struct tacho_box_hist), (void **)&p->hists, &p->hist_count);

	for (uint32_t i = 0; !err && i < p->hist_count; i++) {
		struct tacho_box_hist again;
		int tries = COPY_TRIES;

		while (tries-- > 0 && p->hists[i].kind &&
		       !read_entry(b, TACHO_REGION_HISTOGRAMS, i, &again, sizeof(again)) &&
		       (again.kind != p->hists[i].kind || again.since != p->hists[i].since))
			p->hists[i] = again;
	}
	return err;
}

static int read_incidents(struct box *b)
{
	uint32_t n = region(b, TACHO_REGION_TRIGGERS, sizeof(struct tacho_box_trigger), 4096);
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		struct tacho_box_trigger t, again;

		if (read_entry(b, TACHO_REGION_TRIGGERS, i, &t, sizeof(t)) ||
		    read_entry(b, TACHO_REGION_TRIGGERS, i, &again, sizeof(again)) ||
		    again.number != t.number)
			continue;
		err = tacho__parts_trigger(b->reader, b->source, &t);
	}
	n = region(b, TACHO_REGION_CRASHES, sizeof(struct tacho_box_crash), 64);
	for (uint32_t i = 0; !err && i < n; i++) {
		struct tacho_box_crash c;

		if (!read_entry(b, TACHO_REGION_CRASHES, i, &c, sizeof(c)))
			err = tacho__parts_crash(b->reader, b->source, &c);
	}
	return err;
}

static void read_losses(struct box *b)
{
	struct tacho__process *p = b->reader->processes[b->reader->sources[b->source].process];
	uint32_t n = region(b, TACHO_REGION_LOSSES, sizeof(uint64_t), TACHO_LOSS_MAX);

	for (uint32_t i = 0; i < n; i++)
		if (read_entry(b, TACHO_REGION_LOSSES, i, &p->losses[i], sizeof(p->losses[i])))
			p->losses[i] = 0;
	memcpy(p->sources, b->super.sources, sizeof(p->sources));
}

static int read_definition(struct box *b, uint32_t id, const struct tacho_box_def *d)
{
	struct tacho__source *s = &b->reader->sources[b->source];
	struct tacho__process *p = b->reader->processes[s->process];
	const struct tacho_box_region *data = &b->super.regions[TACHO_REGION_DEF_DATA];
	uint8_t payload[TACHO_DEF_PAYLOAD_MAX];
	uint64_t at = ((uint64_t)d->offset - 1) * 8;
	struct tacho__raw_definition raw = {id, d->class, d->flags, d->size, payload};
	int err = -EBADMSG;

	if (d->size <= sizeof(payload) && at <= data->size && d->size <= data->size - at &&
	    data->offset <= b->in->size &&
	    !tacho__input_read(b->in, data->offset + at, payload, d->size))
		err = tacho__definitions_add(&p->definitions, &b->reader->arena, &s->timebase,
					     &raw);
	if (err == -EBADMSG) {
		s->bad_definitions++;
		err = 0;
	}
	return err < 0 ? err : 0;
}

static int read_definitions(struct box *b)
{
	struct tacho__source *s = &b->reader->sources[b->source];
	struct tacho_box_def some[DEFINITIONS_AT_ONCE];
	uint32_t limit = b->super.next_def < TACHO_ARG_MAX ? b->super.next_def : TACHO_ARG_MAX + 1;
	uint32_t n = region(b, TACHO_REGION_DEF_DIR, sizeof(some[0]), limit);

	region(b, TACHO_REGION_DEF_DATA, 1, 0);
	for (uint32_t i = 0; i < n;) {
		uint32_t count = n - i < DEFINITIONS_AT_ONCE ? n - i : DEFINITIONS_AT_ONCE;

		if (read_entry(b, TACHO_REGION_DEF_DIR, i, some, count * sizeof(some[0])))
			break;
		for (uint32_t k = 0; k < count; k++, i++) {
			int err = i && some[k].offset ? read_definition(b, i, &some[k]) : 0;

			if (err)
				return err;
		}
	}
	if (s->bad_definitions)
		tacho__problem(b->reader, b->source, "bad-definition", 0, 0,
			       "%u definitions are not well-formed and were left out",
			       s->bad_definitions);
	return 0;
}

/* --------------------------------------------------------------- superblock */

static const char *super_text(struct tacho_reader *r, const char *text, size_t size)
{
	return tacho__arena_text(&r->arena, text, strnlen(text, size));
}

static int describe(struct box *b, const struct tacho__host *host)
{
	struct tacho__source *s = &b->reader->sources[b->source];
	const struct tacho_box_super *u = &b->super;
	struct tacho_process p = {
		.pid = u->pid,
		.uid = u->uid,
		.parent_pid = u->parent_pid,
		.start_time = u->start_time,
		.clock = u->clock,
		.state = u->state,
		.alive = host ? host->alive : -1,
		.max_bytes = u->box_size,
		.min_age_ns = u->min_age_ns,
		.poll_threshold_ns = u->poll_threshold_ns,
		.used_bytes = b->in->backed,
		.created_mono_ns = u->created.mono_ns,
		.created_real_ns = u->created.real_ns,
		.threads_seen = u->threads_seen,
	};
	uint8_t *build_id = tacho__arena_get(&b->reader->arena, sizeof(u->build_id));
	int err;

	p.exe = super_text(b->reader, u->exe, sizeof(u->exe));
	p.comm = super_text(b->reader, u->comm, sizeof(u->comm));
	p.service = super_text(b->reader, u->service, sizeof(u->service));
	p.reason = super_text(b->reader, u->reason, sizeof(u->reason));
	if (!build_id || !p.exe || !p.comm || !p.service || !p.reason)
		return -ENOMEM;
	memcpy(p.boot_id, u->boot_id, sizeof(p.boot_id));
	memcpy(build_id, u->build_id, sizeof(u->build_id));
	p.build_id = build_id;
	p.build_id_size = u->build_id_size <= sizeof(u->build_id) ? u->build_id_size : 0;
	if (host && host->same_boot) {
		p.arch = host->arch;
		p.taken_mono_ns = host->now.mono_ns;
		p.taken_real_ns = host->now.real_ns;
	}
	err = tacho__process_add(b->reader, &p, 1, &s->process);
	if (!err)
		err = tacho__process_wall(b->reader->processes[s->process], u->created.mono_ns,
					  u->created.real_ns);
	if (!err && host && host->same_boot)
		err = tacho__process_wall(b->reader->processes[s->process], host->now.mono_ns,
					  host->now.real_ns);
	return err;
}

static int check_super(struct box *b, char *message, size_t message_size)
{
	const char *path = b->in->path;
	struct tacho_box_super *s = &b->super;

	if (tacho__input_read(b->in, 0, s, sizeof(*s)) || b->in->size > TACHO_BOX_MAX_BYTES) {
		tacho__say(message, message_size,
			   "cannot read %s: it begins like a box but has a size that no box has",
			   path);
		return -EBADMSG;
	}
	if (s->version > TACHO_BOX_VERSION) {
		tacho__say(
			message, message_size,
			"cannot read %s: it is a box of version %u and this tacho knows up to %u; "
			"use a newer tacho",
			path, s->version, TACHO_BOX_VERSION);
		return -ENOTSUP;
	}
	if (s->version == 0 || s->super_size != TACHO_BOX_SUPER_SIZE ||
	    s->region_count > sizeof(s->regions) / sizeof(s->regions[0])) {
		tacho__say(message, message_size, "cannot read %s: its superblock is damaged",
			   path);
		return -EBADMSG;
	}
	if (s->state == TACHO_BOX_OFF) {
		tacho__say(message, message_size, "process %u (%.*s) does not record: %.*s", s->pid,
			   (int)strnlen(s->comm, sizeof(s->comm)), s->comm,
			   (int)strnlen(s->reason, sizeof(s->reason)), s->reason);
		return -ENODATA;
	}
	if (s->state == TACHO_BOX_NONE) {
		tacho__say(
			message, message_size,
			"cannot read %s: process %u was making this box and has not finished; try "
			"again if it still runs",
			path, s->pid);
		return -EBADMSG;
	}
	b->newest = s->generation;
	return 0;
}

static int settle_clock(struct box *b, const struct tacho__host *host)
{
	struct tacho__timebase *t = &b->reader->sources[b->source].timebase;
	int state = tacho__timebase_add(t, b->super.created.ticks, b->super.created.mono_ns, 0);

	if (!state && host && host->same_boot)
		state = tacho__timebase_add(t, host->now.ticks, host->now.mono_ns, 0);
	if (state)
		return state;
	t->kind = b->super.clock;
	state = tacho__timebase_settle(t);
	if (state < 0)
		return state;
	if (state == TACHO__TIMEBASE_UNKNOWN)
		tacho__problem(b->reader, b->source, "clock-unknown", 0, 0,
			       "nothing says how long a tick of the clock is; times are in ticks");
	else if (state == TACHO__TIMEBASE_ROUGH)
		tacho__problem(b->reader, b->source, "clock-rough", 0, 0,
			       "the clock was compared only once or twice; durations may be off");
	return 0;
}

/* Everything but chunks, in the order that format/box.h asks for. */
static int read_rest(struct box *b, const struct tacho_box_thread *before, uint32_t before_count,
		     uint32_t first)
{
	struct tacho__parts *p = &b->parts;
	int err;

	/* Names of records that were copied may be younger than the superblock's copy. */
	if (tacho__input_read(b->in, 0, &b->super, offsetof(struct tacho_box_super, regions)))
		return -EBADMSG;
	err = read_definitions(b);
	read_losses(b);
	if (!err)
		err = read_incidents(b);
	if (!err)
		err = read_table(b, TACHO_REGION_THREADS, b->super.threads_used,
				 sizeof(struct tacho_box_thread), (void **)&p->threads,
				 &p->thread_count);
	if (!err)
		err = read_hists(b);
	if (err)
		return err;
	keep_lasting_polls(p, before, before_count);
	err = tacho__parts_threads(b->reader, b->source, p);
	return err ? err : tacho__parts_tails(b->reader, b->source, p, first);
}

int tacho__box_add(struct tacho_reader *r, uint32_t source, const struct tacho__host *host,
		   char *message, size_t message_size)
{
	struct box b = {.reader = r, .source = source, .in = r->sources[source].input};
	struct tacho_box_thread *before = NULL;
	uint32_t first = r->stretch_count;
	uint32_t before_count = 0;
	int err = check_super(&b, message, message_size);

	if (!err)
		err = describe(&b, host);
	if (!err)
		err = read_table(&b, TACHO_REGION_THREADS, b.super.threads_used, sizeof(*before),
				 (void **)&before, &before_count);
	if (!err)
		err = read_chunks(&b);
	if (!err)
		err = settle_clock(&b, host);
	if (!err) {
		tacho__chunk_times(r, source, first);
		err = read_rest(&b, before, before_count, first);
	}
	free(before);
	tacho__parts_free(&b.parts);
	return err;
}
