/*
 * Copying a chunk out of a box whose process stores on: the rule at the head of box.h, for whoever
 * reads a box, from wherever. Nothing is allocated: the crash handler runs it too.
 *
 *   struct tacho_copy c = {slot, part, state};        the slot's state: step 1
 *   tacho_copy_begin(&c, box) > 0                     step 2: c.size bytes can be copied
 *   tacho_copy_end(&c, box, to) > 0                   steps 3 and 4: and are
 *
 * Who knows the beginning of the chunk already sets c.from in between.
 */
#ifndef TACHO_FORMAT_COPY_H
#define TACHO_FORMAT_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/box.h"

/* How the bytes of a box are got at. All offsets and sizes that are asked for are multiples of 8. */
struct tacho_box_bytes {
	/* All of [offset, offset + size) into `to`; 0 or a negative errno. */
	int (*read)(void *arg, uint64_t offset, void *to, size_t size);
	void *arg;
	uint64_t slots, pool; /* offsets of these regions */
};

struct tacho_copy {
	uint32_t slot, part;
	uint64_t state; /* of the slot */
	uint32_t from;	/* bytes at the beginning of the chunk that are not copied; 0: none */
	uint32_t size;	/* bytes of the chunk up to which is copied */
	struct tacho_chunk head;
};

static inline int tacho_copy_slot(const struct tacho_box_bytes *b, uint32_t slot,
				  struct tacho_box_slot *out)
{
	int err = b->read(b->arg, b->slots + (uint64_t)slot * sizeof(*out), out, sizeof(*out));

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return err;
}

static inline uint64_t tacho_copy_offset(const struct tacho_box_bytes *b, uint32_t slot,
					 uint32_t part)
{
	return b->pool + (uint64_t)slot * TACHO_SLOT_SIZE + (uint64_t)part * TACHO_SMALL_SIZE;
}

/* The parts of a slot at which chunks begin, as bits. */
static inline uint32_t tacho_slot_parts(uint64_t state)
{
	unsigned shape = TACHO_SLOT_SHAPE(state);

	if (shape == TACHO_SLOT_SPLIT)
		return (uint32_t)(state >> 24) & 0xffffu;
	return shape == TACHO_SLOT_WHOLE;
}

/* Of a commit that may be torn or damaged. */
static inline uint32_t tacho_copy_bound(const struct tacho_copy *c, uint64_t commit)
{
	uint64_t bytes = commit > TACHO_CHUNK_HEAD ? commit & ~7ull : TACHO_CHUNK_HEAD;

	return bytes < c->head.size ? (uint32_t)bytes : c->head.size;
}

/* 1: there is a chunk, c->head is its header; 0: there is none; or what reading says. A header of
   another size is what was here before the slot changed its shape. */
static inline int tacho_copy_begin(struct tacho_copy *c, const struct tacho_box_bytes *b)
{
	uint32_t room =
		TACHO_SLOT_SHAPE(c->state) == TACHO_SLOT_WHOLE ? TACHO_SLOT_SIZE : TACHO_SMALL_SIZE;
	int err;

	if (!(tacho_slot_parts(c->state) >> c->part & 1))
		return 0;
	err = b->read(b->arg, tacho_copy_offset(b, c->slot, c->part), &c->head, sizeof(c->head));
	/* Records that this commit covers were stored before it. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (err)
		return err;
	if (!c->head.generation || c->head.size != room)
		return 0;
	c->size = tacho_copy_bound(c, c->head.commit);
	c->from = 0;
	return 1;
}

/*
 * Bytes [c->from, c->size) of the chunk to `to`. 1: they hold, up to c->size, which may be less by
 * now, and so does c->head, which says no more than that, as does the one in `to`; 0: the chunk
 * changed meanwhile, and what is in `to` is nothing; or what reading says.
 */
static inline int tacho_copy_end(struct tacho_copy *c, const struct tacho_box_bytes *b, void *to)
{
	uint64_t at = tacho_copy_offset(b, c->slot, c->part);
	struct {
		uint64_t generation, commit;
	} again;
	struct tacho_box_slot slot;
	int err = b->read(b->arg, at + c->from, to, c->size - c->from);

	/* If anything of it was of another chunk, what follows is not older than that. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!err)
		err = b->read(b->arg, at, &again, sizeof(again));
	if (!err)
		err = tacho_copy_slot(b, c->slot, &slot);
	if (err)
		return err;
	if (again.generation != c->head.generation ||
	    TACHO_SLOT_SHAPE_COUNT(slot.state) != TACHO_SLOT_SHAPE_COUNT(c->state))
		return 0;
	if (tacho_copy_bound(c, again.commit) < c->size)
		c->size = tacho_copy_bound(c, again.commit);
	if (c->size < c->from)
		return 0;
	if (!c->from)
		memcpy(&c->head, to, sizeof(c->head));
	/* Sealed, perhaps, but not as far as the copy goes. */
	if (again.commit > c->size)
		c->head.flags &= ~(uint32_t)TACHO_CHUNK_SEALED;
	c->head.commit = again.commit < c->size ? again.commit : c->size;
	if (!c->from)
		memcpy(to, &c->head, sizeof(c->head));
	return 1;
}

_Static_assert(offsetof(struct tacho_chunk, generation) == 0, "generation is the first word");
_Static_assert(offsetof(struct tacho_chunk, commit) == 8, "commit is the second");

#endif
