/*
 * The pool of chunks.
 *
 * Slots are used in a circle. A hand points to the slot that was given out the
 * longest time ago; taking a slot means: look at the slot under the hand, move
 * the hand on, and take it unless a thread still stores into it. While the box
 * has not reached its size, the circle grows by a fresh slot instead. So the
 * oldest records make room first, whichever thread stored them, and all threads
 * have the same window.
 *
 * A chunk that a quiet thread held for long and gave back recently is younger
 * than its place in the circle says, and so is a small chunk in a slot that was
 * split long ago: the slot is marked as spare, and the hand passes it over once.
 *
 * Small chunks are parts of a split slot. A slot is free to be taken whole again
 * when none of its parts belongs to a thread. In a slot in which some parts do,
 * the hand clears the finished ones, and small chunks are taken from there next:
 * long-lived quiet threads cost a small chunk each and not a slot.
 *
 * Everything that decides is in one word a slot and changes by compare and
 * exchange; a thread that stops anywhere in here holds up nobody.
 */
#include "core/pool.h"

#include "base/sys.h"
#include "core/box.h"
#include "core/room.h"
#include "core/testpoint.h"

#define RATE_KNOWN_NS 2000000u
#define SPARE (1ull << 2)
#define OPEN_SHIFT 8
#define TAKEN_SHIFT 24
#define COUNT_SHIFT 40
#define PARTS 0xffffull
#define OPEN(s) ((s) >> OPEN_SHIFT & PARTS)
#define TAKEN(s) ((s) >> TAKEN_SHIFT & PARTS)

static uint64_t slot_word(unsigned shape, uint64_t open, uint64_t taken, uint64_t count)
{
	return shape | open << OPEN_SHIFT | taken << TAKEN_SHIFT | count << COUNT_SHIFT;
}

static int slot_cas(uint32_t slot, uint64_t *old, uint64_t wanted)
{
	return __atomic_compare_exchange_n(&tacho__rec->slots[slot].state, old, wanted, 0,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static struct tacho_chunk *chunk_at(uint32_t slot, unsigned part)
{
	return (struct tacho_chunk *)(tacho__rec->pool + (uint64_t)slot * TACHO_SLOT_SIZE +
				      part * TACHO_SMALL_SIZE);
}

uint64_t tacho__ticks_of_ns(uint64_t ns)
{
	const struct tacho_anchor *first = &tacho__first_anchor;
	uint64_t ticks, mono_ns;

	if (tacho__clock_kind == TACHO_CLOCK_MONOTONIC)
		return ns;
	tacho__clock_pair(1, &ticks, &mono_ns);
	if (mono_ns - first->mono_ns < RATE_KNOWN_NS)
		return UINT64_MAX;
	return (uint64_t)((unsigned __int128)ns * (ticks - first->ticks) /
			  (mono_ns - first->mono_ns));
}

uint64_t tacho__ns_of_ticks(uint64_t ticks)
{
	const struct tacho_anchor *first = &tacho__first_anchor;
	uint64_t now, mono_ns;

	if (tacho__clock_kind == TACHO_CLOCK_MONOTONIC)
		return ticks;
	tacho__clock_pair(1, &now, &mono_ns);
	if (now <= first->ticks)
		return 0;
	return (uint64_t)((unsigned __int128)ticks * (mono_ns - first->mono_ns) /
			  (now - first->ticks));
}

/* What a chunk that is about to be used again held is gone: count it. */
static void count_overwritten(const struct tacho_chunk *c)
{
	uint64_t age = tacho__rec->super->min_age_ns;

	if (!tacho__load(&c->generation))
		return;
	tacho__count(TACHO_LOSS_OVERWRITTEN_CHUNKS, 1);
	tacho__count(TACHO_LOSS_OVERWRITTEN_RECORDS, tacho__load(&c->records));
	if (age && tacho__ticks() - tacho__load(&c->last_ticks) < tacho__ticks_of_ns(age))
		tacho__count(TACHO_LOSS_MIN_AGE, 1);
}

/* Memory behind parts [first, first + n) of the slot, or -errno. */
static int slot_fill(uint32_t slot, unsigned first, unsigned n)
{
	struct tacho_box_slot *s = &tacho__rec->slots[slot];
	uint32_t mask = ((1u << n) - 1) << first;
	int err;

	if ((__atomic_load_n(&s->pages, __ATOMIC_ACQUIRE) & mask) == mask)
		return 0;
	err = tacho__box_populate((uint8_t *)chunk_at(slot, first), (uint64_t)n * TACHO_SMALL_SIZE);
	if (err)
		return err;
	__atomic_fetch_or(&s->pages, mask, __ATOMIC_RELEASE);
	return 0;
}

/* Part `part` could not be had: the slot is as if it had never been taken. */
static void give_up(uint32_t slot, unsigned part)
{
	uint64_t s = __atomic_load_n(&tacho__rec->slots[slot].state, __ATOMIC_ACQUIRE);

	while (!slot_cas(slot, &s, s & ~(1ull << (OPEN_SHIFT + part))))
		;
}

static int has_memory(uint32_t slot, unsigned part)
{
	return __atomic_load_n(&tacho__rec->slots[slot].pages, __ATOMIC_ACQUIRE) >> part & 1;
}

/* Slots that the circle has or will have. A box that was refused more stays as it is for now. */
static uint32_t circle(void)
{
	struct tacho__recorder *r = tacho__rec;

	return tacho__load(&r->full) || tacho__load(&r->refused_ns)
		       ? tacho__load(&r->super->slots_used)
		       : r->slot_count;
}

/* The oldest records are older than what is wanted: no more memory is needed. */
static int old_enough(uint32_t slot)
{
	uint64_t age = tacho__rec->super->min_age_ns;
	uint64_t last;

	if (!age || !has_memory(slot, 0))
		return 0;
	last = tacho__load(&chunk_at(slot, 0)->last_ticks);
	return last && tacho__ticks() - last > tacho__ticks_of_ns(age);
}

/*
 * The slot to look at next, in *slot. 1: it is a fresh one, nobody else's; 0: it was
 * under the hand; -1: there is none at all.
 */
static int next_slot(uint32_t *slot)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t used = __atomic_load_n(&r->super->slots_used, __ATOMIC_ACQUIRE);
	uint32_t hand = tacho__load(&r->hand);

	while (used < r->slot_count && (!used || !old_enough(hand < used ? hand : 0)) &&
	       tacho__room_for(used ? TACHO_SLOT_SIZE : TACHO_SMALL_SIZE)) {
		if (__atomic_compare_exchange_n(&r->super->slots_used, &used, used + 1, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			*slot = used;
			return 1;
		}
	}
	if (!used)
		return -1;
	for (;;) {
		uint32_t at = hand < used ? hand : 0;

		if (__atomic_compare_exchange_n(&r->hand, &hand, at + 1, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			*slot = at;
			return 0;
		}
	}
}

/* Takes the slot whole: 1, or 0 when it is spared this time, or -1 when a thread stores into
   it. */
static int take_whole(uint32_t slot)
{
	uint64_t s = __atomic_load_n(&tacho__rec->slots[slot].state, __ATOMIC_ACQUIRE);

	for (;;) {
		uint64_t count = s >> COUNT_SHIFT;

		if (s & SPARE) {
			slot_cas(slot, &s, s & ~SPARE);
			return 0;
		}
		if (OPEN(s))
			return -1;
		if (TACHO_SLOT_SHAPE(s) != TACHO_SLOT_WHOLE)
			count++;
		if (!slot_cas(slot, &s, slot_word(TACHO_SLOT_WHOLE, 1, 0, count)))
			continue;
		TACHO_TESTPOINT("pool-whole-taken");
		if (TACHO_SLOT_SHAPE(s) == TACHO_SLOT_SPLIT) {
			for (unsigned i = 0; i < TACHO_SMALL_PER_SLOT; i++) {
				if (!has_memory(slot, i))
					continue;
				count_overwritten(chunk_at(slot, i));
				tacho__store(&chunk_at(slot, i)->generation, 0);
			}
		}
		if (slot_fill(slot, 0, TACHO_SMALL_PER_SLOT)) {
			give_up(slot, 0);
			return 0;
		}
		if (TACHO_SLOT_SHAPE(s) == TACHO_SLOT_WHOLE)
			count_overwritten(chunk_at(slot, 0));
		__atomic_fetch_add(&tacho__rec->whole_open, 1, __ATOMIC_RELAXED);
		return 1;
	}
}

/*
 * Makes small chunks of the slot ready: splits it if it is free, or clears what its
 * finished parts hold. 0 when all its parts belong to threads.
 *
 * The parts are held as if they belonged to a thread until they are cleared, so
 * that nobody takes one and has it cleared under it.
 */
static int split(uint32_t slot)
{
	struct tacho_box_slot *entry = &tacho__rec->slots[slot];
	uint64_t s = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	uint64_t free_parts, count;
	unsigned shape;

	do {
		shape = TACHO_SLOT_SHAPE(s);
		free_parts = PARTS & ~OPEN(s);
		count = (s >> COUNT_SHIFT) + (shape != TACHO_SLOT_SPLIT);
		if (shape == TACHO_SLOT_SPLIT ? !free_parts : OPEN(s) != 0)
			return 0;
		if (s & SPARE) {
			slot_cas(slot, &s, s & ~SPARE);
			return 0;
		}
	} while (!slot_cas(slot, &s, slot_word(TACHO_SLOT_SPLIT, PARTS, PARTS, count)));
	/* Who sees a part emptied sees the new count of shapes as well. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TACHO_TESTPOINT("pool-split");
	for (unsigned i = 0; i < TACHO_SMALL_PER_SLOT; i++) {
		if (!(free_parts >> i & 1) || !has_memory(slot, i))
			continue;
		/* Of a whole chunk only the first part has a header. */
		if (shape == TACHO_SLOT_SPLIT || i == 0)
			count_overwritten(chunk_at(slot, i));
		tacho__store(&chunk_at(slot, i)->generation, 0);
	}
	TACHO_TESTPOINT("pool-cleared");
	__atomic_fetch_and(&entry->state, ~(free_parts << OPEN_SHIFT | free_parts << TAKEN_SHIFT),
			   __ATOMIC_RELEASE);
	return 1;
}

/* A part of a split slot that was not given out since the split; TACHO_NO_CHUNK if none. */
static uint32_t take_part(uint32_t slot)
{
	uint64_t s = __atomic_load_n(&tacho__rec->slots[slot].state, __ATOMIC_ACQUIRE);

	while (TACHO_SLOT_SHAPE(s) == TACHO_SLOT_SPLIT && (TAKEN(s) | OPEN(s)) != PARTS) {
		unsigned i = (unsigned)__builtin_ctzll(~(TAKEN(s) | OPEN(s)));
		uint64_t bit = 1ull << i;

		if (!slot_cas(slot, &s, s | bit << OPEN_SHIFT | bit << TAKEN_SHIFT))
			continue;
		TACHO_TESTPOINT("pool-part-taken");
		if (slot_fill(slot, i, 1)) {
			give_up(slot, i);
			return TACHO_NO_CHUNK;
		}
		return slot * TACHO_SMALL_PER_SLOT + i;
	}
	return TACHO_NO_CHUNK;
}

static uint32_t take_small(void)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t tries = 2 * r->slot_count + 2;

	for (uint32_t i = 0; i < tries; i++) {
		uint32_t current = tacho__load(&r->split_slot);
		uint32_t slot, chunk;

		if (current) {
			chunk = take_part(current - 1);
			if (chunk != TACHO_NO_CHUNK)
				return chunk;
		}
		if (next_slot(&slot) < 0)
			break;
		if (!split(slot))
			continue;
		chunk = take_part(slot);
		/* Whoever comes last wins; the parts of the other slot wait for the hand. */
		tacho__store(&r->split_slot, slot + 1);
		if (chunk != TACHO_NO_CHUNK)
			return chunk;
	}
	return TACHO_NO_CHUNK;
}

uint32_t tacho__pool_take(int whole, uint32_t *size)
{
	struct tacho__recorder *r = tacho__rec;

	/* Half of the slots at most are held whole, so that threads always find something
	   and finished chunks are kept for a while. */
	if (whole && tacho__load(&r->whole_open) < circle() / 2) {
		uint32_t tries = 2 * r->slot_count + 2;
		uint32_t slot;

		*size = TACHO_SLOT_SIZE;
		for (uint32_t i = 0; i < tries && next_slot(&slot) >= 0; i++) {
			int taken = take_whole(slot);

			if (taken > 0)
				return slot * TACHO_SMALL_PER_SLOT;
			/* What its finished parts hold is as old as what else the hand passes. */
			if (taken < 0 && split(slot))
				tacho__store(&r->split_slot, slot + 1);
		}
	}
	*size = TACHO_SMALL_SIZE;
	return take_small();
}

/* The generation of the slot's oldest chunk, which tells its place in the circle. */
static uint64_t oldest_generation(uint32_t slot, uint64_t state)
{
	uint64_t oldest = 0;

	if (TACHO_SLOT_SHAPE(state) == TACHO_SLOT_WHOLE)
		return tacho__load(&chunk_at(slot, 0)->generation);
	for (unsigned i = 0; i < TACHO_SMALL_PER_SLOT; i++) {
		uint64_t g = 0;

		if (TAKEN(state) >> i & 1 && has_memory(slot, i))
			g = tacho__load(&chunk_at(slot, i)->generation);
		if (g && (!oldest || g < oldest))
			oldest = g;
	}
	return oldest;
}

void tacho__pool_release(uint32_t chunk)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t slot = chunk / TACHO_SMALL_PER_SLOT;
	unsigned part = chunk % TACHO_SMALL_PER_SLOT;
	uint64_t s = __atomic_load_n(&r->slots[slot].state, __ATOMIC_ACQUIRE);
	uint64_t given = oldest_generation(slot, s);
	uint64_t now = tacho__load(&r->super->generation);
	uint64_t spare = 0;

	if (given && now - given > circle() / 2)
		spare = SPARE;
	if (TACHO_SLOT_SHAPE(s) == TACHO_SLOT_WHOLE)
		__atomic_fetch_sub(&r->whole_open, 1, __ATOMIC_RELAXED);
	while (!slot_cas(slot, &s, (s | spare) & ~(1ull << (OPEN_SHIFT + part))))
		;
	TACHO_TESTPOINT("pool-released");
}
