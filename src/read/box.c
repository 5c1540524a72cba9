/*
 * A box, by the rule at the head of format/box.h. What it says is hostile, and may
 * change while it is read: each part is copied first and then looked at.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/definition.h"
#include "read/box.h"

#define HIST_TRIES 4
#define DEFINITIONS_AT_ONCE 1024u
/* Anchors this far apart give the rate to a part in a million. */
#define BASELINE_NS 100000000u

int tacho__is_box(struct tacho__input *in)
{
	char magic[8];

	return !tacho__input_read(in, 0, magic, sizeof(magic)) &&
	       !memcmp(magic, TACHO_BOX_MAGIC, sizeof(magic));
}

uint32_t tacho__box_region(struct tacho__box *b, enum tacho_region which, uint32_t entry,
			   uint32_t wanted)
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

static int get_entry(struct tacho__box *b, enum tacho_region which, uint32_t index, void *to,
		     size_t size)
{
	const struct tacho_box_region *g = &b->super.regions[which];

	return tacho__input_read(b->in, g->offset + (uint64_t)index * g->entry_size, to, size);
}

/* ------------------------------------------------------------------ tables */

/* All entries of a region into an array of `size` bytes each. */
static int read_table(struct tacho__box *b, enum tacho_region which, uint32_t used, size_t size,
		      void **out, uint32_t *count)
{
	uint32_t n = tacho__box_region(b, which, (uint32_t)size, used);
	uint8_t *items;

	/* Sparse parts of the file hold nothing but cost as much. */
	if (n > 65536 && (uint64_t)n * size > b->in->backed)
		n = 65536;
	*count = 0;
	items = calloc((size_t)n + 1, size);
	if (!items)
		return -ENOMEM;
	if (get_entry(b, which, 0, items, n * size))
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

/* What was just changing is not under way for this reader: two looks at it differ. */
static int read_underway(struct tacho__box *b)
{
	struct tacho__parts *p = &b->parts;
	int err = read_table(b, TACHO_REGION_UNDERWAY, b->super.threads_used,
			     sizeof(struct tacho_box_underway), (void **)&p->underway,
			     &p->underway_count);

	for (uint32_t i = 0; !err && i < p->underway_count; i++) {
		struct tacho_box_underway *u = &p->underway[i], again;

		if ((u->call_since || u->wait_since) &&
		    (get_entry(b, TACHO_REGION_UNDERWAY, i, &again, sizeof(again)) ||
		     memcmp(u, &again, sizeof(again)) != 0))
			memset(u, 0, sizeof(*u));
	}
	return err;
}

/* A histogram whose owner was just recording or clearing it is read again. */
static int read_hists(struct tacho__box *b)
{
	struct tacho__parts *p = &b->parts;
	int err = read_table(b, TACHO_REGION_HISTOGRAMS, b->super.hists_used,
			     sizeof(struct tacho_box_hist), (void **)&p->hists, &p->hist_count);

	for (uint32_t i = 0; !err && i < p->hist_count; i++) {
		struct tacho_box_hist again;
		int tries = HIST_TRIES;

		while (tries-- > 0 && p->hists[i].kind &&
		       !get_entry(b, TACHO_REGION_HISTOGRAMS, i, &again, sizeof(again)) &&
		       (again.kind != p->hists[i].kind || again.since != p->hists[i].since))
			p->hists[i] = again;
	}
	return err;
}

/* A trigger that was just being stored the first time is left out. */
static int read_triggers(struct tacho__box *b)
{
	struct tacho_box_trigger *t = NULL, *again = NULL;
	uint32_t n = 0, m = 0;
	int err = read_table(b, TACHO_REGION_TRIGGERS, 4096, sizeof(*t), (void **)&t, &n);

	if (!err)
		err = read_table(b, TACHO_REGION_TRIGGERS, n, sizeof(*t), (void **)&again, &m);
	for (uint32_t i = 0; !err && i < m; i++)
		if (again[i].number == t[i].number)
			err = tacho__parts_trigger(b->reader, b->source, &t[i]);
	free(t);
	free(again);
	return err;
}

static int read_crashes(struct tacho__box *b)
{
	struct tacho_box_crash *c = NULL;
	char said[TACHO_ABORTED_MAX] = "";
	uint32_t n = 0;
	int err = read_table(b, TACHO_REGION_CRASHES, 64, sizeof(*c), (void **)&c, &n);

	/* It may be younger than the superblock's copy. */
	(void)tacho__input_read(b->in, offsetof(struct tacho_box_super, aborted), said,
				sizeof(said));
	for (uint32_t i = 0; !err && i < n; i++) {
		struct tacho_trace_crash crash = {.crash = c[i]};

		if (c[i].signal == 6 /* SIGABRT */)
			memcpy(crash.said, said, sizeof(said));
		err = tacho__parts_crash(b->reader, b->source, &crash);
	}
	free(c);
	return err;
}

static void read_losses(struct tacho__box *b)
{
	struct tacho__process *p = b->reader->processes[b->reader->sources[b->source].process];
	uint32_t n = tacho__box_region(b, TACHO_REGION_LOSSES, sizeof(uint64_t), TACHO_LOSS_MAX);

	if (get_entry(b, TACHO_REGION_LOSSES, 0, p->losses, n * sizeof(p->losses[0])))
		memset(p->losses, 0, sizeof(p->losses));
	memcpy(p->sources, b->super.sources, sizeof(p->sources));
}

/* An agent wrote this part, and boxes of older recorders have less of it. */
static void read_control(struct tacho__box *b)
{
	struct tacho__process *p = b->reader->processes[b->reader->sources[b->source].process];
	const struct tacho_box_region *g = &b->super.regions[TACHO_REGION_CONTROL];
	struct tacho_box_control control = {0};
	size_t size = g->entry_size < sizeof(control) ? g->entry_size : sizeof(control);

	if (!tacho__box_region(b, TACHO_REGION_CONTROL, g->entry_size ? g->entry_size : 1, 1) ||
	    get_entry(b, TACHO_REGION_CONTROL, 0, &control, size))
		return;
	p->pub.agent_pid = control.agent_pid;
	memcpy(p->limits, control.limit, sizeof(p->limits));
}

static int read_definition(struct tacho__box *b, uint32_t id, const struct tacho_box_def *d)
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

static int read_definitions(struct tacho__box *b)
{
	const struct tacho__news *news = b->reader->news;
	struct tacho__source *s = &b->reader->sources[b->source];
	struct tacho_box_def some[DEFINITIONS_AT_ONCE];
	uint32_t limit = b->super.next_def < TACHO_ARG_MAX ? b->super.next_def : TACHO_ARG_MAX + 1;
	uint32_t n = tacho__box_region(b, TACHO_REGION_DEF_DIR, sizeof(some[0]), limit);

	tacho__box_region(b, TACHO_REGION_DEF_DATA, 1, 0);
	for (uint32_t i = 0; i < n;) {
		uint32_t count = n - i < DEFINITIONS_AT_ONCE ? n - i : DEFINITIONS_AT_ONCE;

		if (get_entry(b, TACHO_REGION_DEF_DIR, i, some, count * sizeof(some[0])))
			break;
		for (uint32_t k = 0; k < count; k++, i++) {
			int err = 0;

			if (i && some[k].offset && !(news && news->skip_definition(news->arg, i)))
				err = read_definition(b, i, &some[k]);
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

/* Nobody tells how the process of a box ended; its crash records may, see facts.c. */
static void describe_end(struct tacho_process *p, const struct tacho__host *host)
{
	if (host->alive == TACHO_ALIVE_YES) {
		p->end_how = TACHO_END_RUNNING;
		p->end_ns = p->taken_mono_ns;
	} else if (host->alive == TACHO_ALIVE_NO) {
		p->end_how = TACHO_END_GONE;
		p->end_flags = host->earlier ? TACHO_END_EARLIER_BOOT : 0;
	}
}

static int describe(struct tacho__box *b, const struct tacho__host *host)
{
	struct tacho__source *s = &b->reader->sources[b->source];
	const struct tacho_box_super *u = &b->super;
	struct tacho_process p = {
		.pid = u->pid,
		/* What it says of its owner may change at any time. */
		.uid = host ? b->in->uid : u->uid,
		.parent_pid = u->parent_pid,
		.start_time = u->start_time,
		.clock = u->clock,
		.state = u->state,
		.alive = host ? host->alive : TACHO_ALIVE_UNKNOWN,
		.max_bytes = u->box_size,
		.min_age_ns = u->min_age_ns,
		.poll_threshold_ns = u->poll_threshold_ns,
		.used_bytes = b->in->backed,
		.created_mono_ns = u->created.mono_ns,
		.created_real_ns = u->created.real_ns,
		.threads_seen = u->threads_seen,
		.recording = u->recording,
	};
	uint8_t *build_id = tacho__arena_get(&b->reader->arena, sizeof(u->build_id));
	int err;

	p.exe = super_text(b->reader, u->exe, sizeof(u->exe));
	p.comm = super_text(b->reader, u->comm, sizeof(u->comm));
	p.service = super_text(b->reader, u->service, sizeof(u->service));
	p.reason = super_text(b->reader, u->reason, sizeof(u->reason));
	p.command_line =
		host && host->command_line[0]
			? super_text(b->reader, host->command_line, sizeof(host->command_line))
			: super_text(b->reader, u->command_line, sizeof(u->command_line));
	if (!build_id || !p.exe || !p.comm || !p.service || !p.reason || !p.command_line)
		return -ENOMEM;
	memcpy(p.boot_id, u->boot_id, sizeof(p.boot_id));
	memcpy(build_id, u->build_id, sizeof(u->build_id));
	p.build_id = build_id;
	p.build_id_size = u->build_id_size <= sizeof(u->build_id) ? u->build_id_size : 0;
	if (host && !p.parent_pid)
		p.parent_pid = host->parent_pid;
	if (host && host->same_boot) {
		p.arch = host->arch;
		p.taken_mono_ns = host->now.mono_ns;
		p.taken_real_ns = host->now.real_ns;
	}
	if (host)
		describe_end(&p, host);
	err = tacho__process_add(b->reader, &p, 1, &s->process);
	if (!err)
		err = tacho__process_wall(b->reader->processes[s->process], u->created.mono_ns,
					  u->created.real_ns);
	if (!err && host && host->same_boot)
		err = tacho__process_wall(b->reader->processes[s->process], host->now.mono_ns,
					  host->now.real_ns);
	return err;
}

static int check_super(struct tacho__box *b, char *message, size_t message_size)
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
	if (s->state == TACHO_STATE_OFF) {
		tacho__say(message, message_size, "process %u (%.*s) does not record: %.*s", s->pid,
			   (int)strnlen(s->comm, sizeof(s->comm)), s->comm,
			   (int)strnlen(s->reason, sizeof(s->reason)), s->reason);
		return -ENODATA;
	}
	if (s->state == TACHO_STATE_NEVER) {
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

/* How far apart the first and last anchor are. */
static uint64_t baseline(const struct tacho__timebase *t)
{
	return t->count ? t->points[t->count - 1].ns - t->points[0].ns : 0;
}

static int settle_clock(struct tacho__box *b, const struct tacho__host *host)
{
	struct tacho__timebase *t = &b->reader->sources[b->source].timebase;
	const struct tacho__news *news = b->reader->news;
	int use_host = host && host->same_boot;
	int state = tacho__timebase_add(t, b->super.created.ticks, b->super.created.mono_ns, 0);

	t->kind = b->super.clock;
	for (uint32_t i = 0; !state && news && i < news->anchor_count; i++)
		state = tacho__timebase_add(t, news->anchors[i].ticks, news->anchors[i].mono_ns, 0);
	if (!state && use_host && host->alive == TACHO_ALIVE_YES)
		state = tacho__timebase_add(t, host->now.ticks, host->now.mono_ns, 0);
	if (!state)
		state = tacho__timebase_settle(t);
	/* A dead box reads the same each time, unless only our own clock makes sense of it. */
	if (state >= 0 && use_host && host->alive != TACHO_ALIVE_YES && baseline(t) < BASELINE_NS) {
		state = tacho__timebase_add(t, host->now.ticks, host->now.mono_ns, 0);
		if (!state)
			state = tacho__timebase_settle(t);
	}
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
static int read_rest(struct tacho__box *b, const struct tacho_box_thread *before,
		     uint32_t before_count, uint32_t first)
{
	struct tacho__parts *p = &b->parts;
	int err;

	/* Names of records that were copied may be younger than the superblock's copy. */
	if (tacho__input_read(b->in, 0, &b->super, offsetof(struct tacho_box_super, regions)))
		return -EBADMSG;
	err = read_definitions(b);
	read_losses(b);
	read_control(b);
	if (!err)
		err = read_triggers(b);
	if (!err)
		err = read_crashes(b);
	if (!err)
		err = read_table(b, TACHO_REGION_THREADS, b->super.threads_used,
				 sizeof(struct tacho_box_thread), (void **)&p->threads,
				 &p->thread_count);
	if (!err)
		err = read_hists(b);
	if (!err)
		err = read_underway(b);
	if (err)
		return err;
	keep_lasting_polls(p, before, before_count);
	err = tacho__parts_threads(b->reader, b->source, p);
	if (b->reader->news && !b->reader->news->last)
		return err;
	return err ? err : tacho__parts_tails(b->reader, b->source, p, first);
}

int tacho__box_add(struct tacho_reader *r, uint32_t source, const struct tacho__host *host,
		   char *message, size_t message_size)
{
	struct tacho__box b = {.reader = r,
			       .source = source,
			       .in = r->sources[source].input,
			       .parts = {.limit = r->arena.limit / 64}};
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
		err = tacho__box_chunks(&b);
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
