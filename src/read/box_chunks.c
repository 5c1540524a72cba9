/*
 * The newest chunks are copied first. A process that stores faster than we copy overwrites
 * the oldest meanwhile; so what it takes from us is the beginning of the window, and what
 * is left has no holes. Chunks that it makes meanwhile are not wanted: one of them here
 * and there would be holes again, at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/box.h"

struct found {
	uint64_t generation;
	uint64_t state; /* of the slot */
	uint64_t offset;
	uint32_t slot;
	uint32_t room;
	uint32_t size; /* of the copy */
	uint8_t *copy;
};

struct finds {
	struct found *items;
	uint32_t count, capacity;
};

/* 0, or -ENOMEM. Nothing is here when the header is being made, and when its size does not
   fit: then it is what was here before the slot changed its shape. */
static int find_chunk(struct tacho__box *b, struct finds *f, uint32_t slot, uint64_t state,
		      uint32_t part)
{
	struct found at = {.state = state, .slot = slot};
	struct tacho_chunk head;

	at.room = TACHO_SLOT_SHAPE(state) == TACHO_SLOT_WHOLE ? TACHO_SLOT_SIZE : TACHO_SMALL_SIZE;
	at.offset = b->super.regions[TACHO_REGION_POOL].offset + (uint64_t)slot * TACHO_SLOT_SIZE +
		    (uint64_t)part * TACHO_SMALL_SIZE;
	if (tacho__input_read(b->in, at.offset, &head, sizeof(head)) || !head.generation ||
	    head.size != at.room || (b->newest && head.generation > b->newest))
		return 0;
	if (b->reader->news && b->reader->news->skip_chunk(b->reader->news->arg, &head))
		return 0;
	at.generation = head.generation;
	if (TACHO__GROW(f->items, f->capacity, f->count + 1))
		return -ENOMEM;
	f->items[f->count++] = at;
	return 0;
}

static int find_chunks(struct tacho__box *b, struct finds *f, uint32_t slots)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < slots; i++) {
		struct tacho_box_slot slot;
		unsigned shape;

		if (tacho__box_entry(b, TACHO_REGION_SLOTS, i, &slot, sizeof(slot)))
			break;
		shape = TACHO_SLOT_SHAPE(slot.state);
		if (shape == TACHO_SLOT_WHOLE)
			err = find_chunk(b, f, i, slot.state, 0);
		for (uint32_t k = 0; !err && shape == TACHO_SLOT_SPLIT && k < TACHO_SMALL_PER_SLOT;
		     k++)
			if (slot.state >> (24 + k) & 1)
				err = find_chunk(b, f, i, slot.state, k);
	}
	return err;
}

static int newest_first(const void *va, const void *vb)
{
	const struct found *a = va, *b = vb;

	if (a->generation != b->generation)
		return a->generation > b->generation ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Steps 2 to 4 of the rule in format/box.h. 1: there is a copy, 0: it is gone, -ENOMEM. */
static int copy_chunk(struct tacho__box *b, struct found *f)
{
	struct tacho_chunk head, again;
	struct tacho_box_slot slot;
	uint64_t commit;

	if (tacho__input_read(b->in, f->offset, &head, sizeof(head)) ||
	    head.generation != f->generation)
		return 0;
	commit = head.commit < f->room ? head.commit : f->room;
	if (commit < TACHO_CHUNK_HEAD)
		commit = TACHO_CHUNK_HEAD;
	f->copy = malloc((size_t)commit);
	if (!f->copy)
		return -ENOMEM;
	if (tacho__input_read(b->in, f->offset, f->copy, (size_t)commit) ||
	    tacho__input_read(b->in, f->offset, &again, sizeof(again)) ||
	    tacho__box_entry(b, TACHO_REGION_SLOTS, f->slot, &slot, sizeof(slot)) ||
	    again.generation != f->generation ||
	    TACHO_SLOT_SHAPE_COUNT(slot.state) != TACHO_SLOT_SHAPE_COUNT(f->state)) {
		free(f->copy);
		f->copy = NULL;
		return 0;
	}
	if (again.commit < commit)
		commit = again.commit < TACHO_CHUNK_HEAD ? TACHO_CHUNK_HEAD : again.commit;
	/* The header of the copy may be older than its records. More records than were copied:
	   it is not sealed as far as the copy goes. */
	if (again.commit > commit)
		again.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	memcpy(f->copy, &again, sizeof(again));
	f->size = (uint32_t)commit;
	return 1;
}

/* Takes the copy over as a stretch, or frees it. */
static int keep_chunk(struct tacho__box *b, struct found *f)
{
	struct tacho__source *source = &b->reader->sources[b->source];
	struct tacho__stretch_info s = {.source = b->source, .kind = TACHO__STRETCH_COPY};
	struct tacho__chunk_facts facts;
	struct tacho_chunk head;
	uint8_t *copy = f->copy;
	int err = tacho__chunk_walk(copy, f->size, &facts, &b->parts);

	f->copy = NULL;
	if (err) {
		free(copy);
		if (err == -EBADMSG)
			tacho__problem(b->reader, b->source, "bad-chunk", f->offset, f->size,
				       "a chunk of the box has a damaged header; its records are "
				       "lost");
		return err == -EBADMSG ? 0 : err;
	}
	memcpy(&head, copy, sizeof(head));
	if (facts.bad) {
		tacho__problem(b->reader, b->source, "bad-record", f->offset + facts.valid,
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
	s.offset = f->offset;
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
		err = copy_chunk(b, &f->items[i]);
		torn += err == 0;
		held += f->items[i].size;
		if (err > 0 && held > b->in->backed)
			err = keep_chunk(b, &f->items[i]);
		tacho__progress(b->reader, held, b->in->backed > held ? b->in->backed : held);
	}
	for (uint32_t i = 0; err >= 0 && i < f->count; i++)
		if (f->items[i].copy)
			err = keep_chunk(b, &f->items[i]);
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
	err = find_chunks(b, &f, in_pool);
	if (f.count)
		qsort(f.items, f.count, sizeof(*f.items), newest_first);
	if (!err)
		err = copy_chunks(b, &f);
	free(f.items);
	return err;
}
