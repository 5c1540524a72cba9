/* From numbers to numbers other than 0. What collides with a thousand others, as only a hostile
   file has it, is not kept. */
#ifndef TACHO_IMPORT_DIAL9_MAP_H
#define TACHO_IMPORT_DIAL9_MAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define TACHO__MAP_PROBES 1024u

struct tacho__map {
	struct tacho__map_entry {
		uint64_t key;
		uint32_t value, round; /* of another round: it is free */
	} * entries;
	uint32_t capacity, used; /* capacity: a power of two, or 0 */
	uint32_t round;
};

static inline void tacho__map_free(struct tacho__map *m)
{
	free(m->entries);
	memset(m, 0, sizeof(*m));
}

/* Forgets all, and keeps the memory. */
static inline void tacho__map_clear(struct tacho__map *m)
{
	m->used = 0;
	if (++m->round)
		return;
	if (m->entries)
		memset(m->entries, 0, m->capacity * sizeof(*m->entries));
	m->round = 1;
}

/* Where `key` is or could be; NULL: nowhere. */
static inline struct tacho__map_entry *tacho__map_find(const struct tacho__map *m, uint64_t key)
{
	uint32_t mask = m->capacity - 1, i;

	if (!m->capacity)
		return NULL;
	i = (uint32_t)tacho__hash_words(key, 0, 0) & mask;
	for (uint32_t n = 0; n < TACHO__MAP_PROBES; n++, i = (i + 1) & mask)
		if (m->entries[i].round != m->round || m->entries[i].key == key)
			return &m->entries[i];
	return NULL;
}

static inline uint32_t tacho__map_get(const struct tacho__map *m, uint64_t key)
{
	const struct tacho__map_entry *e = tacho__map_find(m, key);

	return e && e->round == m->round ? e->value : 0;
}

static inline int tacho__map_grow(struct tacho__map *m)
{
	struct tacho__map more = {.capacity = m->capacity ? 2 * m->capacity : 64, .round = 1};

	if (m->capacity > UINT32_MAX / 4)
		return -ENOMEM;
	more.entries = calloc(more.capacity, sizeof(*more.entries));
	if (!more.entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->capacity; i++) {
		struct tacho__map_entry *to;

		if (m->entries[i].round != m->round)
			continue;
		to = tacho__map_find(&more, m->entries[i].key);
		if (!to)
			continue;
		*to = m->entries[i];
		to->round = 1;
		more.used++;
	}
	free(m->entries);
	*m = more;
	return 0;
}

/* 0, also when there was no place for it, or -ENOMEM. */
static inline int tacho__map_put(struct tacho__map *m, uint64_t key, uint32_t value)
{
	struct tacho__map_entry *e;

	if (!m->round)
		m->round = 1;
	if (m->used >= m->capacity / 2 && tacho__map_grow(m))
		return -ENOMEM;
	e = tacho__map_find(m, key);
	if (!e)
		return 0;
	if (e->round != m->round)
		m->used++;
	*e = (struct tacho__map_entry){key, value, m->round};
	return 0;
}

#endif
