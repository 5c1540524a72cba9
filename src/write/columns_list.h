/* The lists of the DICT and MATE transforms (format/trace.h), as a writer needs them. */
#ifndef TACHO_WRITE_COLUMNS_LIST_H
#define TACHO_WRITE_COLUMNS_LIST_H

#include <stdint.h>

#include "read/recency.h"

#define TACHO__NO_MATE 0xffffffffu

struct tacho__list {
	struct tacho__recency recency;
	uint32_t distinct;
	uint64_t *value; /* by item, in the order of first appearance */
	uint32_t *position;
	uint32_t *mate; /* argument that the item had last, or TACHO__NO_MATE */
	uint32_t item_capacity;
	uint32_t *map; /* hash table: item + 1 */
	uint32_t map_capacity, map_mask;
};

/* Makes the list empty, with room for `uses` uses; -ENOMEM. */
int tacho__list_reset(struct tacho__list *l, uint32_t uses);
/* What DICT stores for `value`; *item is which it is. */
uint64_t tacho__list_use(struct tacho__list *l, uint64_t value, uint32_t *item);
/* What MATE stores for an argument that comes with the item; *first: the item had none. */
uint64_t tacho__list_mate(struct tacho__list *l, uint32_t item, uint32_t arg, int *first);
void tacho__list_free(struct tacho__list *l);

#endif
