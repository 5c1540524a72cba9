/* What the blocks of a trace file say, once it is known where they are. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "read/trace.h"

static int take_build_id(struct tacho_reader *r, struct tacho_process *p,
			 const struct tacho__meta *e)
{
	uint8_t *copy = tacho__arena_get(&r->arena, e->bytes);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, e->value, e->bytes);
	p->build_id = copy;
	p->build_id_size = e->bytes;
	return 0;
}

#define NAMES_WHY_MAX 440u /* bytes of the reason that are told */

struct meta {
	struct tacho_process p;
	uint32_t identity; /* bits: pid, start time, boot id, created */
	uint64_t unread_chunks;
};

/* Where in struct tacho_process the values go that are copied as they are. */
#define NUMBER(field) \
	offsetof(struct tacho_process, field), sizeof(((struct tacho_process *)0)->field)
#define TEXT(field) offsetof(struct tacho_process, field), 0
static const struct {
	uint16_t key;
	size_t to, size; /* 0: a text */
} meta_fields[] = {
	{TACHO_META_PID, NUMBER(pid)},
	{TACHO_META_UID, NUMBER(uid)},
	{TACHO_META_START_TIME, NUMBER(start_time)},
	{TACHO_META_CREATED_MONO, NUMBER(created_mono_ns)},
	{TACHO_META_EXE, TEXT(exe)},
	{TACHO_META_COMM, TEXT(comm)},
	{TACHO_META_SERVICE, TEXT(service)},
	{TACHO_META_REASON, TEXT(reason)},
	{TACHO_META_HOST, TEXT(host)},
	{TACHO_META_VERSION, TEXT(version)},
	{TACHO_META_CLOCK, NUMBER(clock)},
	{TACHO_META_MAX_BYTES, NUMBER(max_bytes)},
	{TACHO_META_MIN_AGE, NUMBER(min_age_ns)},
	{TACHO_META_POLL_THRESHOLD, NUMBER(poll_threshold_ns)},
	{TACHO_META_STATE, NUMBER(state)},
	{TACHO_META_PARENT_PID, NUMBER(parent_pid)},
	{TACHO_META_ARCH, NUMBER(arch)},
	{TACHO_META_CREATED_REAL, NUMBER(created_real_ns)},
	{TACHO_META_TAKEN_MONO, NUMBER(taken_mono_ns)},
	{TACHO_META_TAKEN_REAL, NUMBER(taken_real_ns)},
	{TACHO_META_TAKEN_BY, NUMBER(taken_by)},
	{TACHO_META_THREADS_SEEN, NUMBER(threads_seen)},
	{TACHO_META_WHY, TEXT(why)},
	{TACHO_META_WHY_MONO, NUMBER(why_mono_ns)},
	{TACHO_META_SEGMENT, NUMBER(segment)},
	{TACHO_META_RECORDING, NUMBER(recording)},
	{TACHO_META_AGENT_CPU, NUMBER(agent_cpu_ns)},
	{TACHO_META_END_HOW, NUMBER(end_how)},
	{TACHO_META_END_STATUS, NUMBER(end_status)},
	{TACHO_META_END_MONO, NUMBER(end_ns)},
	{TACHO_META_END_FLAGS, NUMBER(end_flags)},
	{TACHO_META_COMMAND_LINE, TEXT(command_line)},
	{TACHO_META_IMPORTED, TEXT(imported)},
};

static int take_field(struct tacho_reader *r, struct tacho_process *p, const struct tacho__meta *e)
{
	for (size_t i = 0; i < sizeof(meta_fields) / sizeof(meta_fields[0]); i++) {
		void *to = (char *)p + meta_fields[i].to;

		if (meta_fields[i].key != e->key)
			continue;
		if (meta_fields[i].size == sizeof(uint64_t)) {
			*(uint64_t *)to = e->number;
		} else if (meta_fields[i].size) {
			*(uint32_t *)to = (uint32_t)e->number;
		} else {
			*(const char **)to = tacho__arena_text(&r->arena, e->value, e->bytes);
			return *(const char **)to ? 0 : -ENOMEM;
		}
	}
	return 0;
}

/* Names are asked for last, and at most once for each part. */
static void tell_names(struct tacho__trace *t, const struct tacho__meta *e)
{
	tacho__problem(
		t->reader, t->source, "no-names", 0, 0, "some code addresses have no names: %.*s",
		(int)(e->bytes < NAMES_WHY_MAX ? e->bytes : NAMES_WHY_MAX), (const char *)e->value);
}

static int take_meta(struct tacho__trace *t, struct meta *m, const struct tacho__meta *e)
{
	struct tacho_reader *r = t->reader;
	struct tacho_process *p = &m->p;

	switch (e->key) {
	case TACHO_META_PID:
		m->identity |= 1;
		break;
	case TACHO_META_START_TIME:
		m->identity |= 2;
		break;
	case TACHO_META_BOOT_ID:
		memcpy(p->boot_id, e->value, e->bytes < 16 ? e->bytes : 16);
		m->identity |= 4;
		break;
	case TACHO_META_CREATED_MONO:
		m->identity |= 8;
		break;
	case TACHO_META_BUILD_ID:
		return take_build_id(r, p, e);
	case TACHO_META_ALIVE:
		p->alive = e->number ? TACHO_ALIVE_YES : TACHO_ALIVE_NO;
		break;
	case TACHO_META_UNREAD_CHUNKS:
		m->unread_chunks = e->number;
		break;
	case TACHO_META_NAMES:
		tell_names(t, e);
		break;
	default:
		break;
	}
	return take_field(r, p, e);
}

/* Entries up to the first that does not fit. */
static int parse_meta(struct tacho__trace *t, struct meta *m, const uint8_t *data, uint32_t size)
{
	struct tacho__meta e = {.data = data, .size = size};
	int more, err = 0;

	while (!err && (more = tacho__meta_next(&e)) != 0) {
		if (more < 0) {
			tacho__problem(t->reader, t->source, "bad-meta", 0, 0,
				       "an entry of the META block does not fit it; it and those "
				       "after it are lost");
			break;
		}
		err = take_meta(t, m, &e);
	}
	return err;
}

/* CLOCK. Without `process` for the ticks of this file; else for the wall clock of the process, which
   is known by then. */
static int read_anchors(struct tacho__trace *t, struct tacho__process *process, const uint8_t *data,
			uint32_t size)
{
	struct tacho__timebase *ticks = &t->reader->sources[t->source].timebase;
	uint64_t known = process ? process->wall_count : ticks->count;
	struct tacho__array array;
	struct tacho_anchor a;
	int err = 0;

	if (tacho__array_open(&array, data, size, sizeof(a)) ||
	    known + array.count > t->reader->arena.limit / 64)
		return 0;
	for (uint32_t i = 0; !err && i < array.count; i++) {
		tacho__array_get(&array, i, &a, sizeof(a));
		err = process ? tacho__process_wall(process, a.mono_ns, a.real_ns)
			      : tacho__timebase_add(ticks, a.ticks, a.mono_ns, 0);
	}
	return err;
}

/* An EVENTS block with more events than its bytes can hold, once what is free is used up (records.h). A
   chunk has one for each eight bytes of at most 64 KiB, which is few enough. */
static int is_dense(struct tacho__trace *t, const struct tacho_trace_index *b, uint64_t events)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	uint64_t plausible = (uint64_t)b->size * TACHO__EVENTS_PER_BYTE;
	uint64_t excess = events > plausible ? events - plausible : 0;

	if (excess <= TACHO__EVENTS_FREE - t->reader->events_excess) {
		t->reader->events_excess += excess;
		return 0;
	}
	s->dense_blocks++;
	s->dense_events += events;
	return 1;
}

static int read_chunk(struct tacho__trace *t, const struct tacho_trace_index *b,
		      struct tacho__parts *parts, const uint8_t *data, uint32_t size)
{
	struct tacho__stretch_info s = {.source = t->source, .kind = TACHO__STRETCH_CHUNK};
	struct tacho__source *source = &t->reader->sources[t->source];
	struct tacho__chunk_facts facts;
	struct tacho_chunk head;
	int err = -EBADMSG;

	if (size <= TACHO_SLOT_SIZE)
		err = tacho__chunk_walk(data, size, &facts, parts);

	if (err == -EBADMSG) {
		tacho__problem(t->reader, t->source, "bad-chunk", b->offset, b->size,
			       "a CHUNK block does not hold a chunk; its records are lost");
		return 0;
	}
	if (err)
		return err;
	if (facts.bad)
		tacho__problem(t->reader, t->source, "bad-record", b->offset + 32u + facts.valid, 0,
			       "what follows in this chunk is no record; %u bytes are lost",
			       size - facts.valid);
	memcpy(&head, data, sizeof(head));
	s.offset = b->offset;
	s.size = b->size;
	tacho__chunk_describe(data, &facts, &s);
	err = tacho__timebase_add(&source->timebase, head.anchor.ticks, head.anchor.mono_ns, 1);
	return err ? err : tacho__stretch_add(t->reader, &s);
}

/* The whole block is decoded to learn whose it is: only where there is no index. */
static int read_events(struct tacho__trace *t, const struct tacho_trace_index *b,
		       const uint8_t *data, uint32_t size)
{
	struct tacho__stretch_info s = {.source = t->source, .kind = TACHO__STRETCH_EVENTS};
	struct tacho_trace_events head;

	if (size >= sizeof(head))
		memcpy(&head, data, sizeof(head));
	if (size < sizeof(head) || head.size < sizeof(head) || head.first_ns > head.last_ns) {
		tacho__problem(t->reader, t->source, "damaged-block", b->offset, b->size,
			       "an EVENTS block is not well-formed; its records are lost");
		return 0;
	}
	if (is_dense(t, b, head.count))
		return 0;
	s.offset = b->offset;
	s.size = b->size;
	s.pub.thread = head.thread;
	s.pub.stream = head.stream;
	s.pub.sequence = head.sequence;
	s.pub.first_ns = head.first_ns;
	s.pub.last_ns = head.last_ns;
	s.count = head.count;
	s.prior = head.prior_records;
	s.tid = head.tid;
	memcpy(s.name, head.name, sizeof(s.name));
	s.known = 1;
	return tacho__stretch_add(t->reader, &s);
}

static int list_events(struct tacho__trace *t, const struct tacho_trace_index *b)
{
	struct tacho__stretch_info s = {.source = t->source, .kind = TACHO__STRETCH_EVENTS};

	if (is_dense(t, b, b->count))
		return 0;
	s.listed = 1;
	s.offset = b->offset;
	s.size = b->size;
	s.pub.thread = b->thread;
	s.pub.stream = b->stream;
	s.pub.first_ns = b->first_ns;
	s.pub.last_ns = b->last_ns;
	s.count = b->count;
	return tacho__stretch_add(t->reader, &s);
}

static int read_definitions(struct tacho__trace *t, const uint8_t *data, uint32_t size)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	struct tacho__process *p = t->reader->processes[s->process];
	uint32_t at = 0;

	while (size - at >= sizeof(struct tacho_trace_def)) {
		struct tacho_trace_def def;
		struct tacho__raw_definition raw;
		uint32_t bytes;
		int err;

		memcpy(&def, data + at, sizeof(def));
		at += (uint32_t)sizeof(def);
		if (def.size > size - at) {
			s->bad_definitions++;
			break;
		}
		raw = (struct tacho__raw_definition){def.id, def.class, def.flags, def.size,
						     data + at};
		err = tacho__definitions_add(&p->definitions, &t->reader->arena, &s->timebase,
					     &raw);
		if (err == -ENOMEM)
			return err;
		if (err < 0)
			s->bad_definitions++;
		bytes = (def.size + 7u) & ~7u;
		at = bytes < size - at ? at + bytes : size;
	}
	return 0;
}

/* Entries, and fields at their ends, may be of another version. -EBADMSG: the block does not hold
   what it says, or the file blows up to many times its size. */
static int open_array(const struct tacho_reader *r, struct tacho__array *a, const uint8_t *data,
		      uint32_t bytes, uint32_t before, size_t size)
{
	int err = tacho__array_open(a, data, bytes, size / 2);

	if (!err && (uint64_t)before + a->count > r->arena.limit / size) {
		*a = (struct tacho__array){0};
		err = -EBADMSG;
	}
	return err;
}

/* Appends the entries: a table may take several blocks. */
static int copy_array(const struct tacho_reader *r, const uint8_t *data, uint32_t bytes, void **out,
		      uint32_t *count, size_t size)
{
	struct tacho__array a;
	uint8_t *items;
	int err = open_array(r, &a, data, bytes, *count, size);

	if (err)
		return err;
	items = realloc(*out, ((size_t)*count + a.count + 1) * size);
	if (!items)
		return -ENOMEM;
	*out = items;
	for (uint32_t i = 0; i < a.count; i++)
		tacho__array_get(&a, i, items + (*count + i) * size, size);
	*count += a.count;
	return 0;
}

static int read_triggers(struct tacho__trace *t, const struct tacho__array *a)
{
	struct tacho_box_trigger trigger;
	int err = 0;

	for (uint32_t i = 0; !err && i < a->count; i++) {
		tacho__array_get(a, i, &trigger, sizeof(trigger));
		err = tacho__parts_trigger(t->reader, t->source, &trigger);
	}
	return err;
}

static int read_crashes(struct tacho__trace *t, const struct tacho__array *a)
{
	struct tacho_trace_crash crash;
	int err = 0;

	for (uint32_t i = 0; !err && i < a->count; i++) {
		tacho__array_get(a, i, &crash, sizeof(crash));
		if (a->entry_size < sizeof(crash))
			memset(crash.said, 0, sizeof(crash.said));
		err = tacho__parts_crash(t->reader, t->source, &crash);
	}
	return err;
}

/* Counters only grow: of two files of one process, the newer has the larger. */
static void read_losses(struct tacho__process *p, const struct tacho__array *a)
{
	for (uint32_t i = 0; i < a->count && i < TACHO_LOSS_MAX; i++) {
		uint64_t n;

		tacho__array_get(a, i, &n, sizeof(n));
		if (n > p->losses[i])
			p->losses[i] = n;
	}
}

static void read_sources(struct tacho__process *p, const struct tacho__array *a)
{
	for (uint32_t i = 0; i < a->count && i < TACHO_SOURCE_MAX; i++)
		tacho__array_get(a, i, &p->sources[i], sizeof(p->sources[i]));
}

/* One block of the second round. */
static int read_block(struct tacho__trace *t, uint16_t type, struct tacho__parts *parts,
		      const uint8_t *data, uint32_t size)
{
	struct tacho_reader *r = t->reader;
	struct tacho__process *p = r->processes[r->sources[t->source].process];
	struct tacho__array a;
	int err;

	switch (type) {
	case TACHO_BLOCK_CLOCK:
		return read_anchors(t, p, data, size);
	case TACHO_BLOCK_DEFINITIONS:
		return read_definitions(t, data, size);
	case TACHO_BLOCK_SYMBOLS:
		return tacho__symbols_add(r, p, data, size);
	case TACHO_BLOCK_THREADS:
		return copy_array(r, data, size, (void **)&parts->threads, &parts->thread_count,
				  sizeof(*parts->threads));
	case TACHO_BLOCK_UNDERWAY:
		return copy_array(r, data, size, (void **)&parts->underway, &parts->underway_count,
				  sizeof(*parts->underway));
	case TACHO_BLOCK_HISTOGRAMS:
		return copy_array(r, data, size, (void **)&parts->hists, &parts->hist_count,
				  sizeof(*parts->hists));
	case TACHO_BLOCK_TRIGGERS:
		err = open_array(r, &a, data, size, 0, sizeof(struct tacho_box_trigger));
		return err ? err : read_triggers(t, &a);
	case TACHO_BLOCK_CRASHES:
		err = open_array(r, &a, data, size, 0, sizeof(struct tacho_trace_crash));
		return err ? err : read_crashes(t, &a);
	case TACHO_BLOCK_GAPS:
		err = open_array(r, &a, data, size, 0, sizeof(struct tacho_trace_gap));
		return err ? err : tacho__gaps_add(r, t->source, &a);
	case TACHO_BLOCK_ABSENT:
		err = open_array(r, &a, data, size, 0, sizeof(struct tacho_trace_absent));
		return err ? err : tacho__absent_add(r, &a);
	case TACHO_BLOCK_SOURCES:
		err = open_array(r, &a, data, size, 0, sizeof(struct tacho_box_source));
		read_sources(p, &a);
		return err;
	case TACHO_BLOCK_LOSSES:
		err = open_array(r, &a, data, size, 0, sizeof(uint64_t));
		read_losses(p, &a);
		return err;
	default:
		return 0;
	}
}

/*
 * META, CLOCK and CHUNK blocks: what the others need. Blocks that turn out to be damaged
 * get type 0, so that they are reported once.
 */
static int first_round(struct tacho__trace *t, struct meta *m, struct tacho__parts *parts,
		       uint32_t *good)
{
	for (uint32_t i = 0; i < t->block_count; i++) {
		struct tacho_trace_index *b = &t->blocks[i];
		const uint8_t *data;
		uint32_t size;
		int err;

		if (b->type != TACHO_BLOCK_META && b->type != TACHO_BLOCK_CLOCK &&
		    b->type != TACHO_BLOCK_CHUNK)
			continue;
		err = tacho__block_load(t->reader, t->source, b->offset, b->size, b->type, &data,
					&size);
		if (err == -EBADMSG) {
			b->type = 0;
			continue;
		}
		++*good;
		if (!err && b->type == TACHO_BLOCK_META)
			err = parse_meta(t, m, data, size);
		else if (!err && b->type == TACHO_BLOCK_CLOCK)
			err = read_anchors(t, NULL, data, size);
		else if (!err)
			err = read_chunk(t, b, parts, data, size);
		if (err)
			return err;
		tacho__progress(t->reader, b->offset, t->in->size);
	}
	return 0;
}

static int second_round(struct tacho__trace *t, struct tacho__parts *parts, uint32_t *good)
{
	for (uint32_t i = 0; i < t->block_count; i++) {
		struct tacho_trace_index *b = &t->blocks[i];
		const uint8_t *data;
		uint32_t size;
		int err;

		if (b->type == 0 || b->type == TACHO_BLOCK_META || b->type == TACHO_BLOCK_CHUNK ||
		    (b->type == TACHO_BLOCK_INDEX && t->index_checked))
			continue;
		if (b->type == TACHO_BLOCK_EVENTS && t->listed) {
			++*good;
			err = list_events(t, b);
			if (err)
				return err;
			continue;
		}
		err = tacho__block_load(t->reader, t->source, b->offset, b->size, b->type, &data,
					&size);
		if (err == -EBADMSG)
			continue;
		++*good;
		if (!err && b->type == TACHO_BLOCK_EVENTS)
			err = read_events(t, b, data, size);
		else if (!err)
			err = read_block(t, b->type, parts, data, size);
		if (err == -EBADMSG)
			tacho__problem(t->reader, t->source, "damaged-block", b->offset, b->size,
				       "a block does not hold what it says; it is lost");
		else if (err)
			return err;
		tacho__progress(t->reader, b->offset, t->in->size);
	}
	return 0;
}

static int settle_process(struct tacho__trace *t, struct meta *m)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	struct tacho__process *p;
	int err = tacho__process_add(t->reader, &m->p, m->identity == 15, &s->process);

	if (err)
		return err;
	p = t->reader->processes[s->process];
	err = tacho__process_wall(p, m->p.created_mono_ns, m->p.created_real_ns);
	if (!err)
		err = tacho__process_wall(p, m->p.taken_mono_ns, m->p.taken_real_ns);
	if (m->identity == 0)
		tacho__problem(t->reader, t->source, "no-meta", 0, 0,
			       "the block that says of which process this is, is not there");
	if (m->unread_chunks)
		tacho__problem(t->reader, t->source, "overwritten-while-read", 0, 0,
			       "%llu chunks were overwritten or damaged while this trace was taken "
			       "from its box",
			       (unsigned long long)m->unread_chunks);
	return err;
}

static int settle_clock(struct tacho__trace *t, uint32_t clock, int used)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	int state;

	s->timebase.kind = clock;
	state = tacho__timebase_settle(&s->timebase);
	if (state < 0)
		return state;
	if (state == TACHO__TIMEBASE_UNKNOWN && used)
		tacho__problem(t->reader, t->source, "clock-unknown", 0, 0,
			       "nothing says how long a tick of the clock is; times are in ticks");
	else if (state == TACHO__TIMEBASE_ROUGH && used)
		tacho__problem(t->reader, t->source, "clock-rough", 0, 0,
			       "the clock was compared only once or twice; durations may be off");
	return 0;
}

static int read_all(struct tacho__trace *t, struct tacho__parts *parts)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	struct meta m = {.p = {.alive = TACHO_ALIVE_UNKNOWN}};
	uint32_t first = t->reader->stretch_count, good = 0;
	int err = first_round(t, &m, parts, &good);

	s->segment = m.p.segment;
	if (!err && !tacho__reader_wants(t->reader, &m.p)) {
		t->reader->stretch_count = first;
		/* Of whom it is could not be told: then it is not another's matter. */
		if (m.identity & 1)
			t->reader->problem_count = t->problems;
		return 0;
	}
	if (!err)
		err = settle_process(t, &m);
	if (!err)
		err = settle_clock(t, m.p.clock, t->reader->stretch_count > first);
	if (err)
		return err;
	tacho__chunk_times(t->reader, t->source, first);
	err = second_round(t, parts, &good);
	if (!err)
		err = tacho__parts_threads(t->reader, t->source, parts);
	if (!err)
		err = tacho__parts_tails(t->reader, t->source, parts, first);
	if (err)
		return err;
	if (s->bad_definitions)
		tacho__problem(t->reader, t->source, "bad-definition", 0, 0,
			       "%u definitions are not well-formed and were left out",
			       s->bad_definitions);
	if (s->dense_blocks)
		tacho__problem(t->reader, t->source, "too-dense", 0, 0,
			       "%u blocks claim %llu events, more than %u for each byte that they "
			       "take: no recording is like that, and they were left out",
			       s->dense_blocks, (unsigned long long)s->dense_events,
			       TACHO__EVENTS_PER_BYTE);
	return good ? 0 : -EBADMSG;
}

int tacho__trace_contents(struct tacho__trace *t)
{
	struct tacho__parts parts = {.limit = t->reader->arena.limit / 64};
	int err = read_all(t, &parts);

	tacho__parts_free(&parts);
	return err;
}
