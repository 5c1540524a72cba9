/*
 * The newest chunks are copied first. A process that stores faster than we copy overwrites
 * the oldest meanwhile; so what it takes from us is the beginning of the window, and what
 * is left has no holes. Chunks that it makes meanwhile are not wanted: one of them here
 * and there would be holes again, at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/copy.h"
#include "read/box.h"
#include "read/memory.h"

struct found {
	uint64_t generation;
	uint64_t state; /* of the slot */
	uint32_t slot, part;
	uint32_t size; /* of the copy */
	uint8_t *copy;
};

struct finds {
	struct tacho_box_bytes bytes;
	struct found *items;
	uint32_t count, capacity;
};

static int read_bytes(void *arg, uint64_t offset, void *to, size_t size)
{
	return tacho__input_read(arg, offset, to, size);
}

/* 0, or -ENOMEM. */
static int find_chunk(struct tacho__box *b, struct finds *f, uint32_t slot, uint64_t state,
		      uint32_t part)
{
	struct tacho_copy c = {.slot = slot, .part = part, .state = state};
	const struct tacho__news *news = b->reader->news;

	if (tacho_copy_begin(&c, &f->bytes) <= 0 || (b->newest && c.head.generation > b->newest))
		return 0;
	if (news && news->skip_chunk(news->arg, &c.head))
		return 0;
	if (TACHO__GROW(f->items, f->capacity, f->count + 1))
		return -ENOMEM;
	f->items[f->count++] = (struct found){c.head.generation, state, slot, part, 0, NULL};
	return 0;
}

static int find_chunks(struct tacho__box *b, struct finds *f, uint32_t slots)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < slots; i++) {
		struct tacho_box_slot slot;
		uint32_t parts;

		if (tacho_copy_slot(&f->bytes, i, &slot))
			break;
		parts = tacho_slot_parts(slot.state);
		for (uint32_t k = 0; !err && parts >> k; k++)
			err = find_chunk(b, f, i, slot.state, k);
	}
	return err;
}

static int newest_first(const void *va, const void *vb)
{
	const struct found *a = va, *b = vb;

	if (a->generation != b->generation)
		return a->generation > b->generation ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return a->part < b->part ? -1 : a->part > b->part;
}

/* 1: there is a copy, 0: it is gone, -ENOMEM. */
static int copy_chunk(const struct finds *all, struct found *f)
{
	struct tacho_copy c = {.slot = f->slot, .part = f->part, .state = f->state};

	if (tacho_copy_begin(&c, &all->bytes) <= 0 || c.head.generation != f->generation)
		return 0;
	f->copy = malloc(c.size);
	if (!f->copy)
		return -ENOMEM;
	if (tacho_copy_end(&c, &all->bytes, f->copy) <= 0) {
		free(f->copy);
		f->copy = NULL;
		return 0;
	}
	f->size = c.size;
	return 1;
}

/* Takes the copy over as a stretch, or frees it. */
static int keep_chunk(struct tacho__box *b, const struct finds *all, struct found *f)
{
	struct tacho__source *source = &b->reader->sources[b->source];
	struct tacho__stretch_info s = {.source = b->source, .kind = TACHO__STRETCH_COPY};
	struct tacho__chunk_facts facts;
	struct tacho_chunk head;
	uint64_t offset = tacho_copy_offset(&all->bytes, f->slot, f->part);
	uint8_t *copy = f->copy;
	int err = tacho__chunk_walk(copy, f->size, &facts, &b->parts);

	f->copy = NULL;
	if (err) {
		free(copy);
		if (err == -EBADMSG)
			tacho__problem(b->reader, b->source, "bad-chunk", offset, f->size,
				       "a chunk of the box has a damaged header; its records are "
				       "lost");
		return err == -EBADMSG ? 0 : err;
	}
	memcpy(&head, copy, sizeof(head));
	if (facts.bad) {
		tacho__problem(b->reader, b->source, "bad-record", offset + facts.valid,
			       f->size - facts.valid,
			       "what follows in this chunk is no record and was left out");
		head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	}
	/* What the walk found counts, and no more is held: a sparse file cannot make us
	   hold zeros. */
	head.commit = facts.valid;
	memcpy(copy, &head, sizeof(head));
	if (facts.valid < f->size) {
		uint8_t *smaller = realloc(copy, facts.valid);

		if (smaller)
			copy = smaller;
	}
	tacho__chunk_describe(copy, &facts, &s);
	s.offset = offset;
	s.size = facts.valid;
	s.copy = copy;
	err = tacho__timebase_add(&source->timebase, head.anchor.ticks, head.anchor.mono_ns, 1);
	if (!err)
		err = tacho__stretch_add(b->reader, &s);
	if (err)
		free(copy);
	return err;
}

/* Copying comes first and looking at the copies later, for the process does not wait;
   unless there is more to copy than anybody can have stored. */
static int copy_chunks(struct tacho__box *b, struct finds *f)
{
	uint64_t held = 0;
	uint32_t torn = 0;
	int err = 0;

	for (uint32_t i = 0; err >= 0 && i < f->count; i++) {
		err = copy_chunk(f, &f->items[i]);
		torn += err == 0;
		held += f->items[i].size;
		if (err > 0 && held > b->in->backed)
			err = keep_chunk(b, f, &f->items[i]);
		tacho__progress(b->reader, held, b->in->backed > held ? b->in->backed : held);
	}
	for (uint32_t i = 0; err >= 0 && i < f->count; i++)
		if (f->items[i].copy)
			err = keep_chunk(b, f, &f->items[i]);
	for (uint32_t i = 0; i < f->count; i++)
		free(f->items[i].copy);
	if (torn)
		tacho__problem(b->reader, b->source, "overwritten-while-read", 0, 0,
			       "%u of %u chunks were overwritten with newer records while the box "
			       "was copied, as happens in a busy process; the window begins later",
			       torn, f->count);
	return err < 0 ? err : 0;
}

int tacho__box_chunks(struct tacho__box *b)
{
	struct finds f = {0};
	uint32_t slots, in_pool;
	int err;

	slots = tacho__box_region(b, TACHO_REGION_SLOTS, sizeof(struct tacho_box_slot),
				  b->super.slots_used);
	if (!slots)
		return 0;
	if (b->super.slot_size != TACHO_SLOT_SIZE || b->super.small_size != TACHO_SMALL_SIZE) {
		tacho__problem(b->reader, b->source, "bad-region", 0, 0,
			       "the box gives sizes of chunks that no box has; no record of it can "
			       "be read");
		return 0;
	}
	in_pool = tacho__box_region(b, TACHO_REGION_POOL, TACHO_SLOT_SIZE, slots);
	if (in_pool < slots)
		tacho__problem(b->reader, b->source, "cut", b->in->size, 0,
			       "the box is shorter than it says: %u of %u slots of records are not "
			       "there",
			       slots - in_pool, slots);
	f.bytes = (struct tacho_box_bytes){read_bytes, b->in,
					   b->super.regions[TACHO_REGION_SLOTS].offset,
					   b->super.regions[TACHO_REGION_POOL].offset};
	err = find_chunks(b, &f, in_pool);
	TACHO__SORT(f.items, f.count, newest_first);
	if (!err)
		err = copy_chunks(b, &f);
	free(f.items);
	return err;
}
