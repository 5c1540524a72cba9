/* What the blocks of a trace file say, once it is known where they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/trace.h"

static uint64_t meta_number(const uint8_t *value, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, value, size < sizeof(v) ? size : sizeof(v));
	return v;
}

static int meta_text(struct tacho_reader *r, const char **to, const uint8_t *value, uint32_t size)
{
	*to = tacho__arena_text(&r->arena, value, size);
	return *to ? 0 : -ENOMEM;
}

static int take_build_id(struct tacho_reader *r, struct tacho_process *p, const uint8_t *value,
			 uint32_t size)
{
	uint8_t *copy = tacho__arena_get(&r->arena, size);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, value, size);
	p->build_id = copy;
	p->build_id_size = size;
	return 0;
}

struct meta {
	struct tacho_process p;
	uint32_t identity; /* bits: pid, start time, boot id, created */
	uint64_t unread_chunks;
};

static int take_meta(struct tacho_reader *r, struct meta *m, unsigned key, const uint8_t *value,
		     uint32_t size)
{
	struct tacho_process *p = &m->p;
	uint64_t n = meta_number(value, size);

	switch (key) {
	case TACHO_META_PID:
		p->pid = (uint32_t)n;
		m->identity |= 1;
		break;
	case TACHO_META_UID:
		p->uid = (uint32_t)n;
		break;
	case TACHO_META_START_TIME:
		p->start_time = n;
		m->identity |= 2;
		break;
	case TACHO_META_BOOT_ID:
		memcpy(p->boot_id, value, size < 16 ? size : 16);
		m->identity |= 4;
		break;
	case TACHO_META_CREATED_MONO:
		p->created_mono_ns = n;
		m->identity |= 8;
		break;
	case TACHO_META_EXE:
		return meta_text(r, &p->exe, value, size);
	case TACHO_META_COMM:
		return meta_text(r, &p->comm, value, size);
	case TACHO_META_BUILD_ID:
		return take_build_id(r, p, value, size);
	case TACHO_META_SERVICE:
		return meta_text(r, &p->service, value, size);
	case TACHO_META_REASON:
		return meta_text(r, &p->reason, value, size);
	case TACHO_META_HOST:
		return meta_text(r, &p->host, value, size);
	case TACHO_META_VERSION:
		return meta_text(r, &p->version, value, size);
	case TACHO_META_CLOCK:
		p->clock = (uint32_t)n;
		break;
	case TACHO_META_MAX_BYTES:
		p->max_bytes = n;
		break;
	case TACHO_META_MIN_AGE:
		p->min_age_ns = n;
		break;
	case TACHO_META_POLL_THRESHOLD:
		p->poll_threshold_ns = n;
		break;
	case TACHO_META_STATE:
		p->state = (uint32_t)n;
		break;
	case TACHO_META_PARENT_PID:
		p->parent_pid = (uint32_t)n;
		break;
	case TACHO_META_ARCH:
		p->arch = (uint32_t)n;
		break;
	case TACHO_META_CREATED_REAL:
		p->created_real_ns = n;
		break;
	case TACHO_META_TAKEN_MONO:
		p->taken_mono_ns = n;
		break;
	case TACHO_META_TAKEN_REAL:
		p->taken_real_ns = n;
		break;
	case TACHO_META_TAKEN_BY:
		p->taken_by = (uint32_t)n;
		break;
	case TACHO_META_ALIVE:
		p->alive = n ? TACHO_ALIVE_YES : TACHO_ALIVE_NO;
		break;
	case TACHO_META_UNREAD_CHUNKS:
		m->unread_chunks = n;
		break;
	case TACHO_META_THREADS_SEEN:
		p->threads_seen = (uint32_t)n;
		break;
	case TACHO_META_WHY:
		return meta_text(r, &p->why, value, size);
	case TACHO_META_WHY_MONO:
		p->why_mono_ns = n;
		break;
	case TACHO_META_SEGMENT:
		p->segment = n;
		break;
	case TACHO_META_RECORDING:
		p->recording = n;
		break;
	case TACHO_META_AGENT_CPU:
		p->agent_cpu_ns = n;
		break;
	default:
		break;
	}
	return 0;
}

/* Entries up to the first that does not fit. */
static int parse_meta(struct tacho__trace *t, struct meta *m, const uint8_t *data, uint32_t size)
{
	uint32_t at = 0;

	while (size - at >= 8) {
		uint16_t key;
		uint32_t bytes;
		int err;

		memcpy(&key, data + at, sizeof(key));
		memcpy(&bytes, data + at + 4, sizeof(bytes));
		at += 8;
		if (bytes > size - at) {
			tacho__problem(t->reader, t->source, "bad-meta", 0, 0,
				       "an entry of the META block does not fit it; it and those "
				       "after it are lost");
			break;
		}
		err = take_meta(t->reader, m, key, data + at, bytes);
		if (err)
			return err;
		bytes = (bytes + 7u) & ~7u;
		at = bytes < size - at ? at + bytes : size;
	}
	return 0;
}

static int read_clock(struct tacho__trace *t, const uint8_t *data, uint32_t size)
{
	struct tacho__source *s = &t->reader->sources[t->source];
	struct tacho_trace_array array;
	struct tacho_anchor a;

	if (size < sizeof(array))
		return 0;
	memcpy(&array, data, sizeof(array));
	if (array.entry_size < sizeof(a) || array.count > (size - sizeof(array)) / array.entry_size)
		return 0;
	if (s->timebase.count + (uint64_t)array.count > t->reader->arena.limit / 64)
		return 0;
	for (uint32_t i = 0; i < array.count; i++) {
		memcpy(&a, data + sizeof(array) + (size_t)i * array.entry_size, sizeof(a));
		if (tacho__timebase_add(&s->timebase, a.ticks, a.mono_ns, 0))
			return -ENOMEM;
	}
	return 0;
}

/* The anchors again, now that the process is known to which their wall clock belongs. */
static int read_walls(struct tacho__trace *t, const uint8_t *data, uint32_t size)
{
	struct tacho__process *p = t->reader->processes[t->reader->sources[t->source].process];
	struct tacho_trace_array array;
	struct tacho_anchor a;

	if (size < sizeof(array))
		return 0;
	memcpy(&array, data, sizeof(array));
	if (array.entry_size < sizeof(a) || array.count > (size - sizeof(array)) / array.entry_size)
		return 0;
	if (p->wall_count + (uint64_t)array.count > t->reader->arena.limit / 64)
		return 0;
	for (uint32_t i = 0; i < array.count; i++) {
		memcpy(&a, data + sizeof(array) + (size_t)i * array.entry_size, sizeof(a));
		if (tacho__process_wall(p, a.mono_ns, a.real_ns))
			return -ENOMEM;
	}
	return 0;
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

/*
 * Appends the entries of an array block, shorter or longer ones fitted to `size` bytes: a
 * table may take several blocks. -EBADMSG: the block does not hold what it says, or the
 * file blows up to many times its size.
 */
static int copy_array(const struct tacho_reader *r, const uint8_t *data, uint32_t bytes, void **out,
		      uint32_t *count, size_t size)
{
	struct tacho_trace_array array;
	uint8_t *items;
	size_t part;

	if (bytes < sizeof(array))
		return -EBADMSG;
	memcpy(&array, data, sizeof(array));
	if (array.entry_size < size / 2 || array.entry_size == 0 ||
	    array.count > (bytes - sizeof(array)) / array.entry_size ||
	    (uint64_t)*count + array.count > r->arena.limit / size)
		return -EBADMSG;
	items = realloc(*out, ((size_t)*count + array.count + 1) * size);
	if (!items)
		return -ENOMEM;
	*out = items;
	items += *count * size;
	memset(items, 0, array.count * size);
	part = array.entry_size < size ? array.entry_size : size;
	for (uint32_t i = 0; i < array.count; i++)
		memcpy(items + i * size, data + sizeof(array) + (size_t)i * array.entry_size, part);
	*count += array.count;
	return 0;
}

static int read_incidents(struct tacho__trace *t, uint16_t type, const uint8_t *data, uint32_t size)
{
	struct tacho__process *p;
	void *items = NULL;
	uint32_t count = 0;
	int err;

	p = t->reader->processes[t->reader->sources[t->source].process];
	if (type == TACHO_BLOCK_TRIGGERS) {
		err = copy_array(t->reader, data, size, &items, &count,
				 sizeof(struct tacho_box_trigger));
		for (uint32_t i = 0; !err && i < count; i++)
			err = tacho__parts_trigger(t->reader, t->source,
						   (struct tacho_box_trigger *)items + i);
	} else if (type == TACHO_BLOCK_CRASHES) {
		err = copy_array(t->reader, data, size, &items, &count,
				 sizeof(struct tacho_box_crash));
		for (uint32_t i = 0; !err && i < count; i++)
			err = tacho__parts_crash(t->reader, t->source,
						 (struct tacho_box_crash *)items + i);
	} else if (type == TACHO_BLOCK_SOURCES) {
		err = copy_array(t->reader, data, size, &items, &count,
				 sizeof(struct tacho_box_source));
		for (uint32_t i = 0; !err && i < count && i < TACHO_SOURCE_MAX; i++)
			p->sources[i] = ((struct tacho_box_source *)items)[i];
	} else if (type == TACHO_BLOCK_GAPS) {
		err = copy_array(t->reader, data, size, &items, &count,
				 sizeof(struct tacho_trace_gap));
		if (!err)
			err = tacho__gaps_add(t->reader, t->source, items, count);
	} else {
		err = copy_array(t->reader, data, size, &items, &count, sizeof(uint64_t));
		/* Counters only grow: of two files of one process, the newer has the larger. */
		for (uint32_t i = 0; !err && i < count && i < TACHO_LOSS_MAX; i++)
			if (((uint64_t *)items)[i] > p->losses[i])
				p->losses[i] = ((uint64_t *)items)[i];
	}
	free(items);
	return err;
}

/* One block of the second round. */
static int read_block(struct tacho__trace *t, uint16_t type, struct tacho__parts *parts,
		      const uint8_t *data, uint32_t size)
{
	switch (type) {
	case TACHO_BLOCK_CLOCK:
		return read_walls(t, data, size);
	case TACHO_BLOCK_DEFINITIONS:
		return read_definitions(t, data, size);
	case TACHO_BLOCK_SYMBOLS:
		return tacho__symbols_add(
			t->reader, t->reader->processes[t->reader->sources[t->source].process],
			data, size);
	case TACHO_BLOCK_THREADS:
		return copy_array(t->reader, data, size, (void **)&parts->threads,
				  &parts->thread_count, sizeof(*parts->threads));
	case TACHO_BLOCK_HISTOGRAMS:
		return copy_array(t->reader, data, size, (void **)&parts->hists, &parts->hist_count,
				  sizeof(*parts->hists));
	case TACHO_BLOCK_TRIGGERS:
	case TACHO_BLOCK_CRASHES:
	case TACHO_BLOCK_SOURCES:
	case TACHO_BLOCK_LOSSES:
	case TACHO_BLOCK_GAPS:
		return read_incidents(t, type, data, size);
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
			err = read_clock(t, data, size);
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

int tacho__trace_contents(struct tacho__trace *t)
{
	struct meta m = {.p = {.alive = TACHO_ALIVE_UNKNOWN}};
	struct tacho__parts parts = {.limit = t->reader->arena.limit / 64};
	uint32_t first = t->reader->stretch_count;
	uint32_t good = 0;
	int err = first_round(t, &m, &parts, &good);

	t->reader->sources[t->source].segment = m.p.segment;
	if (!err)
		err = settle_process(t, &m);
	/* Chunks were there before it was known whose they are. */
	for (uint32_t i = first; !err && i < t->reader->stretch_count; i++)
		t->reader->stretches[i].pub.process = t->reader->sources[t->source].process;
	if (!err)
		err = settle_clock(t, m.p.clock, t->reader->stretch_count > first);
	if (!err) {
		tacho__chunk_times(t->reader, t->source, first);
		err = second_round(t, &parts, &good);
	}
	if (!err)
		err = tacho__parts_threads(t->reader, t->source, &parts);
	if (!err)
		err = tacho__parts_tails(t->reader, t->source, &parts, first);
	if (!err && t->reader->sources[t->source].bad_definitions)
		tacho__problem(t->reader, t->source, "bad-definition", 0, 0,
			       "%u definitions are not well-formed and were left out",
			       t->reader->sources[t->source].bad_definitions);
	tacho__parts_free(&parts);
	if (!err && !good)
		err = -EBADMSG;
	return err;
}
