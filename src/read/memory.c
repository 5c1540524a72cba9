#include "read/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536u

struct tacho__arena_block {
	struct tacho__arena_block *next;
	uint64_t data[];
};

void *tacho__arena_get(struct tacho__arena *a, size_t size)
{
	struct tacho__arena_block *b;
	uint8_t *at;

	if (size > (SIZE_MAX >> 1))
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (a->total > a->limit || size > a->limit - a->total)
		return NULL;
	if (!a->blocks || size > a->room - a->used) {
		size_t room = size > BLOCK / 4 ? size : BLOCK;

		b = calloc(1, sizeof(*b) + room);
		if (!b)
			return NULL;
		b->next = a->blocks;
		a->blocks = b;
		a->used = 0;
		a->room = room;
	}
	at = (uint8_t *)a->blocks->data + a->used;
	a->used += size;
	a->total += size;
	return at;
}

char *tacho__arena_text(struct tacho__arena *a, const void *text, size_t size)
{
	char *copy = tacho__arena_get(a, size + 1);

	if (copy && size)
		memcpy(copy, text, size);
	return copy;
}

void tacho__arena_free(struct tacho__arena *a)
{
	while (a->blocks) {
		struct tacho__arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
	a->used = a->room = 0;
}

int tacho__grow(void **array, uint32_t *capacity, uint32_t need, size_t size)
{
	uint64_t wanted = *capacity ? *capacity : 16;
	void *p;

	if (need <= *capacity)
		return 0;
	while (wanted < need)
		wanted *= 2;
	if (wanted > UINT32_MAX || wanted > SIZE_MAX / size)
		return -ENOMEM;
	p = realloc(*array, (size_t)wanted * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*capacity = (uint32_t)wanted;
	return 0;
}

typedef int comparison(const void *, const void *);

/* `copy` has room for half of it. What is in order already costs a comparison for each element. */
static void merge_sort(uint8_t *at, size_t count, size_t size, comparison *compare, uint8_t *copy)
{
	size_t half = count / 2 * size;
	const uint8_t *left = copy, *right = at + half, *end = at + count * size;

	if (count < 2)
		return;
	merge_sort(at, count / 2, size, compare, copy);
	merge_sort(at + half, count - count / 2, size, compare, copy);
	if (compare(right - size, right) <= 0)
		return;
	memcpy(copy, at, half);
	for (; left < copy + half; at += size) {
		const uint8_t **next = right < end && compare(left, right) > 0 ? &right : &left;

		memcpy(at, *next, size);
		*next += size;
	}
}

void tacho__sort(void *array, size_t count, size_t size, comparison *compare)
{
	uint8_t *copy = count > 1 ? malloc(count / 2 * size) : NULL;

	if (copy)
		merge_sort(array, count, size, compare, copy);
	else if (count > 1)
		qsort(array, count, size, compare);
	free(copy);
}
