/*
 * What is known of libuv's timers and asyncs, by address.
 *
 * Buckets of eight entries; a key is in the one bucket that its hash says, of the first
 * level that had room. A full bucket makes the next level, with four times the buckets.
 * Entries never move, and levels never go away: so a key is found, put and removed
 * without a lock while other threads do the same with other keys. An entry is
 * claimed by storing the key with a compare-and-swap, and given back by storing 0.
 *
 * It works in a child after fork: the memory is private, and no thread holds anything.
 */
#include "base/hash.h"
#include "hooks/uv.h"

#include <sys/mman.h>

#include "base/sys.h"

#define WAYS 8u
#define FIRST_BITS 9u /* 512 buckets, 4096 entries, 128 KiB if they are all touched */
#define LEVEL_BITS 2u
#define LEVELS 8u /* the last has 64 M entries */

struct bucket {
	uint64_t key[WAYS];
	struct tacho__uv_entry entry[WAYS];
} __attribute__((aligned(64)));

static struct bucket first[1u << FIRST_BITS];
static struct bucket *levels[LEVELS] = {first};

/* 0: no key. Handles hold pointers, so they are aligned. */
static uint64_t key_of(const void *handle)
{
	uintptr_t at = (uintptr_t)handle;

	return at & 7 ? 0 : at;
}

static struct bucket *bucket_in(uint32_t level, struct bucket *buckets, uint64_t key)
{
	uint32_t bits = FIRST_BITS + LEVEL_BITS * level;

	return &buckets[tacho__mix(key) >> (64 - bits)];
}

/* Where in its bucket a key is put if there is room: most are found there at once. */
static uint32_t way_of(uint64_t key)
{
	return (uint32_t)(tacho__mix(key) >> 32) % WAYS;
}

static struct bucket *level_at(uint32_t level)
{
	return __atomic_load_n(&levels[level], __ATOMIC_ACQUIRE);
}

static struct bucket *level_make(uint32_t level)
{
	return tacho__map_once((void **)&levels[level],
			       sizeof(struct bucket) << (FIRST_BITS + LEVEL_BITS * level));
}

static __attribute__((noinline)) struct tacho__uv_entry *search(uint64_t key, uint64_t **where)
{
	for (uint32_t level = 0; level < LEVELS; level++) {
		struct bucket *b = level_at(level);

		if (!b)
			return NULL;
		b = bucket_in(level, b, key);
		for (uint32_t i = 0; i < WAYS; i++)
			if (tacho__load(&b->key[i]) == key) {
				*where = &b->key[i];
				return &b->entry[i];
			}
	}
	return NULL;
}

static inline struct tacho__uv_entry *find(uint64_t key, uint64_t **where)
{
	struct bucket *b = bucket_in(0, first, key);
	uint32_t i = way_of(key);

	if (tacho__unlikely(tacho__load(&b->key[i]) != key))
		return search(key, where);
	*where = &b->key[i];
	return &b->entry[i];
}

static struct tacho__uv_entry *claim(struct bucket *b, uint64_t key)
{
	for (uint32_t n = 0; n < WAYS; n++) {
		uint32_t i = (way_of(key) + n) % WAYS;
		uint64_t none = 0;

		if (tacho__load(&b->key[i]))
			continue;
		/* Acquire: whoever gave the entry back has read it. */
		if (__atomic_compare_exchange_n(&b->key[i], &none, key, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return &b->entry[i];
	}
	return NULL;
}

struct tacho__uv_entry *tacho__uv_find(const void *handle)
{
	uint64_t key = key_of(handle);
	uint64_t *where;

	return key ? find(key, &where) : NULL;
}

struct tacho__uv_entry *tacho__uv_put(const void *handle, struct tacho__uv *uv)
{
	uint64_t key = key_of(handle);
	uint64_t *where;
	struct tacho__uv_entry *e = key ? find(key, &where) : NULL;

	for (uint32_t level = 0; key && level < LEVELS && !e; level++) {
		struct bucket *b = level_at(level);

		if (!b)
			b = level_make(level);
		if (!b)
			return NULL;
		e = claim(bucket_in(level, b, key), key);
		if (e)
			e->due = e->due_before = UINT64_MAX;
	}
	if (e)
		e->uv = uv;
	return e;
}

void tacho__uv_remove(const void *handle)
{
	uint64_t key = key_of(handle);
	uint64_t *where;

	/* Release: what was in it has been read. */
	if (key && find(key, &where))
		__atomic_store_n(where, 0, __ATOMIC_RELEASE);
}
