/* Memory of a reader: an arena for what lives until it is closed, and arrays that grow. */
#ifndef TACHO_READ_MEMORY_H
#define TACHO_READ_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct tacho__arena_block;

struct tacho__arena {
	struct tacho__arena_block *blocks;
	size_t used, room; /* of the newest block */
	uint64_t total;	   /* handed out */
	uint64_t limit;	   /* of total */
};

/* Zeroed and aligned to eight bytes. NULL: no memory, or beyond the limit. */
void *tacho__arena_get(struct tacho__arena *a, size_t size);
/* A zero-terminated copy. */
char *tacho__arena_text(struct tacho__arena *a, const void *text, size_t size);
void tacho__arena_free(struct tacho__arena *a);

/* Makes *array (of elements of `size` bytes) hold at least `need`; 0 or -ENOMEM. */
int tacho__grow(void **array, uint32_t *capacity, uint32_t need, size_t size);
#define TACHO__GROW(array, capacity, need) \
	tacho__grow((void **)&(array), &(capacity), (need), sizeof(*(array)))
/* As qsort(3), but what compares equal keeps its order: with every C library the same. With no
   memory for a copy of a half it is qsort(3). */
void tacho__sort(void *array, size_t count, size_t size,
		 int (*compare)(const void *, const void *));
#define TACHO__SORT(array, count, compare) \
	tacho__sort((array), (count), sizeof(*(array)), (compare))

#endif
