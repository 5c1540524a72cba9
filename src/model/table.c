#include "model/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Hostile keys collide: no more slots than this are looked at. Where one is put they are fewer than
   where it is looked for, as a table that grows moves them. */
#define PUT_PROBES 1024u
#define FIND_PROBES (8 * PUT_PROBES)
#define NO_SLOT UINT32_MAX

/*
 * Numbers in a row lie beside each other, eight to a cache line: tasks that are busy together were
 * often made together. Lines are chosen by the highest bits of a product with the golden
 * section, which keeps the lines of numbers in a row apart.
 */
static uint32_t hash(uint64_t a, uint64_t b)
{
	uint64_t h = tacho__mix(a * 0xc4ceb9fe1a85ec53ull + (b >> 3));

	/* Of addresses the lowest bits are all the same. */
	return ((uint32_t)(h >> 32) & ~7u) | (uint32_t)((b ^ b >> 4) & 7);
}

/* Where a slot for the hash is looked for first. */
static uint32_t home(const struct tacho__table *t, uint32_t h)
{
	return (h >> t->shift & ~7u) | (h & 7);
}

static struct tacho__entry *entry_at(const struct tacho__table *t, uint32_t index)
{
	return (struct tacho__entry *)(void *)(t->entries + (size_t)index * t->entry_size);
}

void tacho__table_init(struct tacho__table *t, uint32_t entry_size, uint32_t most)
{
	memset(t, 0, sizeof(*t));
	t->entry_size = entry_size;
	t->most = most;
}

void tacho__table_free(struct tacho__table *t)
{
	free(t->slots);
	free(t->entries);
	tacho__table_init(t, t->entry_size, t->most);
}

/* The slot where the key is, or the free one where it would be; NO_SLOT: too far away. */
static uint32_t slot_of(const struct tacho__table *t, uint64_t a, uint64_t b, uint32_t h)
{
	uint32_t mask = t->slot_count - 1;
	uint32_t at = home(t, h);

	for (uint32_t i = 0; i < FIND_PROBES; i++, at = (at + 1) & mask) {
		const struct tacho__entry *e;

		if (!t->slots[at].entry)
			return at;
		if (t->slots[at].hash != h)
			continue;
		e = entry_at(t, t->slots[at].entry - 1);
		if (e->key[0] == a && e->key[1] == b)
			return at;
	}
	return NO_SLOT;
}

/* The first free slot for a hash. There is always one. */
static uint32_t free_slot(const struct tacho__table *t, uint32_t h)
{
	uint32_t mask = t->slot_count - 1;
	uint32_t at = home(t, h);

	while (t->slots[at].entry)
		at = (at + 1) & mask;
	return at;
}

void *tacho__table_find(const struct tacho__table *t, uint64_t a, uint64_t b)
{
	uint32_t at;

	if (!t->count)
		return NULL;
	at = slot_of(t, a, b, hash(a, b));
	return at != NO_SLOT && t->slots[at].entry ? entry_at(t, t->slots[at].entry - 1) : NULL;
}

/* Twice as many slots as entries, at least. */
static int grow(struct tacho__table *t)
{
	uint32_t capacity = t->capacity ? t->capacity * 2 : 64;
	uint8_t *entries;
	struct tacho__slot *slots;

	if (capacity > t->most)
		capacity = t->most;
	entries = realloc(t->entries, (size_t)capacity * t->entry_size);
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	if (t->slot_count < 2 * capacity) {
		uint32_t count = 128;

		while (count < 2 * capacity)
			count *= 2;
		slots = calloc(count, sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		free(t->slots);
		t->slots = slots;
		t->slot_count = count;
		t->shift = (uint32_t)__builtin_clz(count) + 1;
		for (uint32_t i = 0; i < t->used; i++) {
			const struct tacho__entry *e = entry_at(t, i);

			if (e->live) {
				uint32_t h = hash(e->key[0], e->key[1]);

				slots[free_slot(t, h)] = (struct tacho__slot){i + 1, h};
			}
		}
	}
	t->capacity = capacity;
	return 0;
}

void *tacho__table_get(struct tacho__table *t, uint64_t a, uint64_t b, int *error)
{
	uint32_t h = hash(a, b), index, at = 0, far = 0;
	struct tacho__entry *e;

	if (t->slot_count) {
		at = slot_of(t, a, b, h);
		if (at != NO_SLOT && t->slots[at].entry)
			return entry_at(t, t->slots[at].entry - 1);
		far = at == NO_SLOT || ((at - home(t, h)) & (t->slot_count - 1)) >= PUT_PROBES;
	}
	if (t->count >= t->most || far) {
		t->missed++;
		return NULL;
	}
	if (!t->free_list && t->used == t->capacity) {
		int err = grow(t);

		if (err) {
			*error = err;
			return NULL;
		}
	}
	if (t->free_list) {
		index = t->free_list - 1;
		t->free_list = entry_at(t, index)->index;
	} else {
		index = t->used++;
	}
	e = entry_at(t, index);
	memset(e, 0, t->entry_size);
	e->key[0] = a;
	e->key[1] = b;
	e->index = index;
	e->live = 1;
	t->slots[free_slot(t, h)] = (struct tacho__slot){index + 1, h};
	t->count++;
	return e;
}

/* Slots behind the freed one that would not be found any more move forward. */
void tacho__table_remove(struct tacho__table *t, void *entry)
{
	struct tacho__entry *e = entry;
	uint32_t mask = t->slot_count - 1, next = t->free_list;
	uint32_t hole = home(t, hash(e->key[0], e->key[1]));

	while (t->slots[hole].entry != e->index + 1)
		hole = (hole + 1) & mask;
	t->free_list = e->index + 1;
	e->index = next;
	e->live = 0;
	t->count--;
	for (uint32_t at = (hole + 1) & mask; t->slots[at].entry; at = (at + 1) & mask) {
		if (((at - home(t, t->slots[at].hash)) & mask) < ((at - hole) & mask))
			continue;
		t->slots[hole] = t->slots[at];
		hole = at;
	}
	t->slots[hole] = (struct tacho__slot){0, 0};
}

void *tacho__table_at(const struct tacho__table *t, uint32_t index)
{
	struct tacho__entry *e = index < t->used ? entry_at(t, index) : NULL;

	return e && e->live ? e : NULL;
}

void *tacho__table_next(const struct tacho__table *t, const void *entry)
{
	size_t i = entry ? (size_t)((const uint8_t *)entry - t->entries) / t->entry_size + 1 : 0;

	for (; i < t->used; i++)
		if (entry_at(t, (uint32_t)i)->live)
			return entry_at(t, (uint32_t)i);
	return NULL;
}
