/*
 * A hash table from 64-bit keys to entries of one size, with a bound on how many there may be.
 * Entries keep their place until they are removed; pointers to them do not outlive an insertion.
 */
#ifndef TACHO_MODEL_TABLE_H
#define TACHO_MODEL_TABLE_H

#include <stdint.h>

/* A part of the key's hash beside the entry keeps most others from being looked at. */
struct tacho__slot {
	uint32_t entry; /* index + 1; 0 free */
	uint32_t hash;
};

struct tacho__table {
	struct tacho__slot *slots;
	uint32_t slot_count; /* a power of two, or 0 */
	uint32_t shift;	     /* 32 less the bits of an index of them */
	uint8_t *entries;    /* each begins with its struct tacho__entry */
	uint32_t count;	     /* in use */
	uint32_t used;	     /* entries [0, used) are or were in use */
	uint32_t capacity;
	uint32_t free_list; /* index + 1 */
	uint32_t entry_size;
	uint32_t most;	 /* entries at most */
	uint64_t missed; /* that found no room */
};

struct tacho__entry {
	uint64_t key[2];
	uint32_t index; /* its own; of a free one: that of the next free one, + 1 */
	uint32_t live;
};

void tacho__table_init(struct tacho__table *t, uint32_t entry_size, uint32_t most);
void tacho__table_free(struct tacho__table *t);

/* NULL: not there. */
void *tacho__table_find(const struct tacho__table *t, uint64_t a, uint64_t b);
/* The entry, zeroed but for its head if it is new. NULL: the table is full (counted in missed)
   or there is no memory (*error is -ENOMEM then). */
void *tacho__table_get(struct tacho__table *t, uint64_t a, uint64_t b, int *error);
void tacho__table_remove(struct tacho__table *t, void *entry);
/* Entry `index` below t->used, NULL if that is free. */
void *tacho__table_at(const struct tacho__table *t, uint32_t index);
/* The entry behind that one, or the first behind NULL; NULL: there is no more. Nothing may be
   inserted in between. */
void *tacho__table_next(const struct tacho__table *t, const void *entry);

#endif
