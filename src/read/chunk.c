#include <errno.h>
#include <string.h>

#include "read/reader.h"

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

int tacho__record_is_bad(unsigned type, uint32_t words)
{
	return type == TACHO_REC_NONE || type == TACHO_REC_TIME || type == TACHO_REC_RESUME ||
	       words < tacho_record_least_words(type);
}

void tacho__chunk_begin(struct tacho__chunk_cursor *c, const uint8_t *chunk, uint32_t size)
{
	struct tacho_chunk head;

	memcpy(&head, chunk, sizeof(head));
	c->data = chunk;
	c->at = TACHO_CHUNK_HEAD;
	c->end = size & ~7u;
	c->ticks = head.anchor.ticks;
	c->item = c->items = c->park = 0;
}

static void set_record(struct tacho__raw_record *r, unsigned type, uint32_t arg, uint64_t word)
{
	r->type = type;
	r->arg = arg;
	r->words = TACHO_REC_CLASS(type);
	r->word[0] = word;
}

/* The first of the records that a packed one, at c->at, stands for. Those with more leave in the
   cursor what comes next. */
static void unpack(struct tacho__chunk_cursor *c, uint64_t header, struct tacho__raw_record *r)
{
	uint32_t arg = tacho_record_arg(header);

	switch (tacho_record_type(header)) {
	case TACHO_REC_WAKE_SMALL:
		set_record(r, TACHO_REC_WAKE, 0, arg);
		break;
	case TACHO_REC_TASK_END_SMALL:
		set_record(r, TACHO_REC_TASK_END, 0, arg);
		break;
	case TACHO_REC_POLL_BEGIN_SMALL:
		set_record(r, TACHO_REC_POLL_BEGIN,
			   (uint32_t)(header >> 8) & ((1u << TACHO_SMALL_KIND_BITS) - 1),
			   header >> TACHO_SMALL_TASK_AT & ((1u << TACHO_SMALL_TASK_BITS) - 1));
		break;
	case TACHO_REC_END_PARK:
		set_record(r, TACHO_REC_POLL_END, arg >> TACHO_END_PARK_LOOP_BITS, 0);
		c->park = 1 + (arg & ((1u << TACHO_END_PARK_LOOP_BITS) - 1));
		break;
	case TACHO_REC_UNPARK_READY:
	case TACHO_REC_UNPARK_LIST:
		c->item = c->at + (tacho_record_type(header) == TACHO_REC_UNPARK_LIST ? 16 : 8);
		c->items = c->at + 8 + 8 * r->words;
		set_record(r, TACHO_REC_UNPARK, arg, 0);
		break;
	default:
		break;
	}
}

static int is_packed(unsigned type)
{
	switch (type) {
#define PACKED(name, ...) case TACHO_REC_##name:
		TACHO_PACKED(PACKED)
#undef PACKED
		return 1;
	default:
		return 0;
	}
}

/* 1: the next record of a packed one. Its ticks are those of the first. */
static int next_unpacked(struct tacho__chunk_cursor *c, struct tacho__raw_record *r)
{
	uint64_t item;

	if (c->park) {
		set_record(r, TACHO_REC_PARK, c->park - 1, 0);
		c->park = 0;
	} else if (c->item < c->items) {
		item = get64(c->data + c->item);
		set_record(r, TACHO_REC_READY, tacho_item_events(item), tacho_item_word(item));
		c->item += 8;
	} else {
		return 0;
	}
	r->ticks = c->ticks;
	return 1;
}

int tacho__chunk_next(struct tacho__chunk_cursor *c, struct tacho__raw_record *record)
{
	if (next_unpacked(c, record))
		return 1;
	while (c->at < c->end) {
		uint64_t header = get64(c->data + c->at);
		uint32_t left = (c->end - c->at) / 8 - 1;
		unsigned type = tacho_record_type(header);
		uint64_t first = left ? get64(c->data + c->at + 8) : 0;
		uint32_t words = tacho_record_words(type, first);
		uint64_t delta = type == TACHO_REC_POLL_BEGIN_SMALL ? header >> TACHO_SMALL_DELTA_AT
								    : tacho_record_delta(header);

		if (words > left || (TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE && !words))
			return -EBADMSG;
		if (type == TACHO_REC_TIME) {
			if (first > c->ticks)
				c->ticks = first;
			c->at += 16;
			continue;
		}
		if (tacho__record_is_bad(type, words))
			return -EBADMSG;
		if (__builtin_add_overflow(c->ticks, delta, &c->ticks))
			c->ticks = UINT64_MAX;
		record->type = type;
		record->arg = tacho_record_arg(header);
		record->words = words;
		record->ticks = c->ticks;
		if (is_packed(type))
			unpack(c, header, record);
		else if (words)
			memcpy(record->word, c->data + c->at + 8, 8 * (size_t)words);
		c->at += 8 + 8 * words;
		return 1;
	}
	return 0;
}

static int see_hist(struct tacho__parts *p, uint32_t thread, const struct tacho__raw_record *record)
{
	if (p->seen_count >= p->limit)
		return 0;
	if (TACHO__GROW(p->seen, p->seen_capacity, p->seen_count + 1))
		return -ENOMEM;
	p->seen[p->seen_count].thread = thread;
	p->seen[p->seen_count].kind = record->arg;
	p->seen[p->seen_count].loop = (uint32_t)(record->word[0] >> 16);
	p->seen[p->seen_count++].since = record->word[2];
	return 0;
}

static int see_poll(struct tacho__parts *p, const struct tacho__seen_poll *poll)
{
	if (p->poll_count >= p->limit)
		return 0;
	if (TACHO__GROW(p->polls, p->poll_capacity, p->poll_count + 1))
		return -ENOMEM;
	p->polls[p->poll_count++] = *poll;
	return 0;
}

int tacho__chunk_walk(const uint8_t *chunk, uint32_t size, struct tacho__chunk_facts *facts,
		      struct tacho__parts *p)
{
	struct tacho__raw_record record;
	struct tacho__seen_poll poll = {0};
	struct tacho__chunk_cursor c;
	struct tacho_chunk head;
	int more;

	*facts = (struct tacho__chunk_facts){0};
	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, chunk, sizeof(head));
	if ((head.magic != TACHO_CHUNK_MAGIC && head.magic != TACHO_CHUNK_MAGIC_1) ||
	    head.generation == 0 || head.commit < TACHO_CHUNK_HEAD)
		return -EBADMSG;
	if (size > head.commit)
		size = (uint32_t)head.commit;
	tacho__chunk_begin(&c, chunk, size);
	facts->first_ticks = facts->last_ticks = c.ticks;
	while ((more = tacho__chunk_next(&c, &record)) > 0) {
		if (!facts->records++)
			facts->first_ticks = record.ticks;
		facts->words += record.words;
		facts->last_ticks = record.ticks;
		if (p && record.type == TACHO_REC_POLL_HIST && see_hist(p, head.thread, &record))
			return -ENOMEM;
		/* Histograms are recorded while a poll is pending, nothing else is. */
		if (record.type != TACHO_REC_POLL_HIST)
			poll.last_ticks = record.ticks;
		if (record.type == TACHO_REC_POLL_BEGIN) {
			poll.kind = record.arg;
			poll.task = record.word[0];
			poll.ticks = record.ticks;
		}
	}
	facts->valid = c.at;
	facts->bad = more < 0;
	poll.thread = head.thread;
	return p && facts->records && !head.stream ? see_poll(p, &poll) : 0;
}

static void make_head(const uint8_t *chunk, const struct tacho__timebase *t,
		      struct tacho__records *out)
{
	struct tacho_trace_events *h = &out->head;
	struct tacho_chunk c;
	uint32_t hint = 0;

	memcpy(&c, chunk, sizeof(c));
	*h = (struct tacho_trace_events){
		.size = sizeof(*h),
		.thread = c.thread,
		.tid = c.tid,
		.stream = c.stream,
		.open_count = c.open_count,
		.open_listed = c.open_count < TACHO_OPEN_MAX ? c.open_count : TACHO_OPEN_MAX,
		.sequence = c.sequence,
		.flags = c.flags & (TACHO_CHUNK_SEALED | TACHO_CHUNK_PARKED),
		.loop = c.loop,
		.drops = c.drops,
		.prior_records = c.prior_records,
	};
	memcpy(h->name, c.name, sizeof(h->name) - 1);
	if (h->flags & TACHO_CHUNK_PARKED)
		h->park_ns = tacho__timebase_ns(t, c.park_ticks, &hint);
	for (uint32_t i = 0; i < h->open_listed; i++) {
		out->open[i] = c.open[i];
		if (out->open[i].since)
			out->open[i].since = tacho__timebase_ns(t, c.open[i].since, &hint);
	}
}

static int has_ticks(unsigned type)
{
	return type == TACHO_REC_POLL_HIST || type == TACHO_REC_SCHED_INTERVAL;
}

/* Payloads hold ns, but for these: their times must be those of other records, to the ns. */
static void ticks_to_ns(const struct tacho__timebase *t, struct tacho__raw_record *record)
{
	uint32_t hint = 0;

	if (record->type == TACHO_REC_POLL_HIST) {
		record->word[2] = tacho__timebase_ns(t, record->word[2], &hint);
		record->word[3] = tacho__timebase_span(t, record->word[3]);
	} else if (record->word[2]) {
		record->word[2] = tacho__timebase_ns(t, record->word[2], &hint);
	}
}

int tacho__chunk_decode(const uint8_t *chunk, uint32_t size, const struct tacho__timebase *t,
			uint32_t extra_records, uint32_t extra_words, struct tacho__records *out)
{
	struct tacho__chunk_facts facts;
	struct tacho__raw_record record;
	struct tacho__chunk_cursor c;
	uint32_t hint = 0;
	int err = tacho__chunk_walk(chunk, size, &facts, NULL);

	if (err)
		return err;
	if (tacho__records_reserve(out, facts.records + extra_records, facts.words + extra_words))
		return -ENOMEM;
	make_head(chunk, t, out);
	/* What came after a bad record is missing, like what was never copied. */
	if (facts.bad)
		out->head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	out->word_at[0] = 0;
	tacho__chunk_begin(&c, chunk, facts.valid);
	out->head.first_ns = out->head.last_ns = tacho__timebase_ns(t, facts.first_ticks, &hint);
	while (tacho__chunk_next(&c, &record) > 0) {
		uint64_t ns = tacho__timebase_ns(t, record.ticks, &hint);

		if (has_ticks(record.type))
			ticks_to_ns(t, &record);
		tacho__records_put(out, ns, tacho_record_head(record.type, record.arg), record.word,
				   record.words);
		out->head.last_ns = ns;
	}
	return 0;
}

void tacho__chunk_describe(const uint8_t *chunk, const struct tacho__chunk_facts *facts,
			   struct tacho__stretch_info *s)
{
	struct tacho_chunk head;

	memcpy(&head, chunk, sizeof(head));
	s->pub.thread = head.thread;
	s->pub.stream = head.stream;
	s->pub.sequence = head.sequence;
	s->pub.first_ns = facts->first_ticks;
	s->pub.last_ns = facts->last_ticks;
	s->count = facts->records;
	s->prior = head.prior_records;
	s->tid = head.tid;
	memcpy(s->name, head.name, sizeof(s->name));
	s->known = 1;
}

void tacho__chunk_times(struct tacho_reader *r, uint32_t source, uint32_t first)
{
	const struct tacho__timebase *t = &r->sources[source].timebase;
	uint32_t hint = 0;

	for (uint32_t i = first; i < r->stretch_count; i++) {
		struct tacho__stretch_info *s = &r->stretches[i];

		if (s->kind != TACHO__STRETCH_CHUNK && s->kind != TACHO__STRETCH_COPY)
			continue;
		/* CHUNK blocks were added before META said whose they are. */
		s->pub.process = r->sources[source].process;
		s->pub.first_ns = tacho__timebase_ns(t, s->pub.first_ns, &hint);
		s->pub.last_ns = tacho__timebase_ns(t, s->pub.last_ns, &hint);
	}
}
