#include "agent/segment_streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/segment_blocks.h"
#include "read/memory.h"
#include "read/news.h"
#include "write/trace_output.h"

static int compare(const struct tacho__delivery *a, uint32_t thread, uint16_t stream)
{
	if (a->thread != thread)
		return a->thread < thread ? -1 : 1;
	return (int)a->stream - (int)stream;
}

struct tacho__delivery *tacho__streams_find(struct tacho__streams *s, uint32_t thread,
					    uint16_t stream, bool add)
{
	uint32_t low = 0, high = s->count;
	struct tacho__delivery *at;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (compare(&s->items[mid], thread, stream) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->count && !compare(&s->items[low], thread, stream))
		return &s->items[low];
	if (!add)
		return NULL;
	if (TACHO__GROW(s->items, s->capacity, s->count + 1))
		return NULL;
	at = &s->items[low];
	memmove(at + 1, at, (s->count - low) * sizeof(*at));
	*at = (struct tacho__delivery){.thread = thread, .stream = stream};
	s->count++;
	return at;
}

void tacho__stream_advance(struct tacho__delivery *at, struct tacho__records *r)
{
	at->delivered = r->head.prior_records + r->head.count;
	tacho__records_skip(r, r->head.count);
	at->head = r->head;
	/* Drops were told with the records before; nothing was left out. */
	at->head.drops = 0;
	at->head.flags &= ~TACHO_EVENTS_CUT;
	memcpy(at->open, r->open, sizeof(at->open));
}

uint64_t tacho__streams_keep(struct tacho__streams *s,
			     bool (*keep)(void *arg, struct tacho__delivery *at), void *arg)
{
	uint64_t records = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		if (keep(arg, &s->items[i]))
			s->items[kept++] = s->items[i];
		else
			records += s->items[i].delivered;
	}
	s->count = kept;
	return records;
}

void tacho__streams_free(struct tacho__streams *s)
{
	free(s->items);
	*s = (struct tacho__streams){0};
}

/* --------------------------------------------------------- what a file tells */

static int note_block(struct tacho__segment_facts *f, const struct tacho__blocks *b,
		      const struct tacho_trace_events *events)
{
	if (TACHO__GROW(f->index, f->capacity, f->blocks + 1))
		return -ENOMEM;
	f->index[f->blocks++] = tacho__index_entry(b->offset, (uint32_t)(b->next - b->offset),
						   b->head.type, events);
	return 0;
}

/* The kernel's streams have no positions in a box. */
static int note_events(struct tacho__segment_facts *f, const struct tacho_trace_events *h)
{
	struct tacho__delivery *at;

	if (h->stream == TACHO_STREAM_KERNEL)
		return 0;
	at = tacho__streams_find(&f->streams, h->thread, h->stream, true);
	if (!at)
		return -ENOMEM;
	/* A block without records at the head of a file says how far the stream had come. */
	if (!at->head.size && !h->count)
		at->delivered = h->prior_records;
	if (h->prior_records > at->delivered) {
		uint64_t from = at->head.size ? at->head.last_ns : h->first_ns;

		if (!f->missing || from < f->missing_from_ns)
			f->missing_from_ns = from;
		if (h->first_ns > f->missing_to_ns)
			f->missing_to_ns = h->first_ns;
		f->missing += h->prior_records - at->delivered;
	}
	if (h->prior_records + h->count >= at->delivered)
		at->delivered = h->prior_records + h->count;
	at->head = *h;
	/* What is open there is known once the records were read. */
	at->head.prior_records = at->delivered;
	at->head.open_count = 0;
	at->head.count = at->head.open_listed = at->head.drops = at->head.flags = 0;
	return 0;
}

static void note_gaps(struct tacho__segment_facts *f, const uint8_t *data, uint32_t size)
{
	struct tacho__array gaps;
	struct tacho_trace_gap gap;

	if (tacho__array_open(&gaps, data, size, sizeof(gap)))
		return;
	for (uint32_t i = 0; i < gaps.count; i++) {
		tacho__array_get(&gaps, i, &gap, sizeof(gap));
		if (gap.reason == TACHO_GAP_KERNEL)
			continue;
		f->counted += gap.records;
		if (gap.from_ns > f->gap_ns)
			f->gap_ns = gap.from_ns;
	}
}

/* The block that says whose it is comes last in the head; one with PAST alone may come before. */
static void note_meta(struct tacho__segment_facts *f, const uint8_t *data, uint32_t size)
{
	struct tacho__identity identity = {0};

	tacho__identity_parse(&identity, data, size);
	f->known |= identity.taken_by != 0;
	if (!identity.past_known)
		return;
	if (f->past_known && identity.past > f->past)
		f->missing += identity.past - f->past;
	f->past = identity.past;
	f->past_known = true;
}

static int note(struct tacho__segment_facts *f, const struct tacho__blocks *b, const uint8_t *data,
		uint32_t size)
{
	struct tacho_trace_events events;
	int err;

	if (b->head.type == TACHO_BLOCK_META)
		note_meta(f, data, size);
	if (b->head.type == TACHO_BLOCK_GAPS)
		note_gaps(f, data, size);
	if (b->head.type != TACHO_BLOCK_EVENTS || size < sizeof(events))
		return note_block(f, b, NULL);
	memcpy(&events, data, sizeof(events));
	err = note_events(f, &events);
	return err ? err : note_block(f, b, &events);
}

int tacho__segment_examine(struct tacho__segment_facts *facts, int fd)
{
	struct tacho__blocks b;
	int more = tacho__blocks_open(&b, fd);

	*facts = (struct tacho__segment_facts){.size = b.next, .tag = b.tag};
	while (!more && (more = tacho__blocks_next(&b)) > 0) {
		uint32_t wanted = 0, size;
		const uint8_t *data;

		if (b.head.type == TACHO_BLOCK_EVENTS)
			wanted = sizeof(struct tacho_trace_events);
		else if (b.head.type == TACHO_BLOCK_GAPS || b.head.type == TACHO_BLOCK_META)
			wanted = UINT32_MAX;
		more = tacho__blocks_load(&b, wanted, &data, &size);
		/* A damaged block is kept if a good one follows. */
		if (more == -EBADMSG) {
			more = note_block(facts, &b, NULL);
			continue;
		}
		if (!more)
			more = note(facts, &b, data, size);
		if (!more)
			facts->size = b.next;
	}
	while (facts->blocks && facts->index[facts->blocks - 1].offset >= facts->size)
		facts->blocks--;
	facts->ended = b.ended;
	tacho__blocks_free(&b);
	if (more)
		tacho__segment_facts_free(facts);
	return more;
}

void tacho__segment_facts_free(struct tacho__segment_facts *facts)
{
	tacho__streams_free(&facts->streams);
	free(facts->index);
	facts->index = NULL;
	facts->blocks = facts->capacity = 0;
}
