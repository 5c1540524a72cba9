#include "write/columns_list.h"

#include "base/hash.h"

int tacho__list_reset(struct tacho__list *l, uint32_t uses)
{
	uint32_t slots = 64;

	while (slots < uses * 2)
		slots *= 2;
	if (slots > l->map_capacity) {
		free(l->map);
		l->map = malloc((size_t)slots * sizeof(*l->map));
		l->map_capacity = l->map ? slots : 0;
	}
	if (uses > l->item_capacity) {
		free(l->value);
		free(l->position);
		free(l->mate);
		l->value = malloc((size_t)uses * sizeof(*l->value));
		l->position = malloc((size_t)uses * sizeof(*l->position));
		l->mate = malloc((size_t)uses * sizeof(*l->mate));
		l->item_capacity = l->value && l->position && l->mate ? uses : 0;
	}
	if (!l->map_capacity || uses > l->item_capacity || tacho__recency_reset(&l->recency, uses))
		return -ENOMEM;
	memset(l->map, 0, (size_t)slots * sizeof(*l->map));
	l->map_mask = slots - 1;
	l->distinct = 0;
	return 0;
}

uint64_t tacho__list_use(struct tacho__list *l, uint64_t value, uint32_t *item)
{
	uint32_t at = (uint32_t)(tacho__mix(value) >> 40) & l->map_mask;
	uint64_t code = 0;

	while (l->map[at] && l->value[l->map[at] - 1] != value)
		at = (at + 1) & l->map_mask;
	if (l->map[at]) {
		*item = l->map[at] - 1;
		code = tacho__recency_place(&l->recency, l->position[*item]) + 1ull;
		tacho__recency_take(&l->recency, l->position[*item]);
	} else {
		*item = l->distinct++;
		l->map[at] = *item + 1;
		l->value[*item] = value;
		l->mate[*item] = TACHO__NO_MATE;
	}
	l->position[*item] = tacho__recency_push(&l->recency);
	return code;
}

uint64_t tacho__list_mate(struct tacho__list *l, uint32_t item, uint32_t arg, int *first)
{
	uint32_t before = l->mate[item];

	*first = before == TACHO__NO_MATE;
	l->mate[item] = arg;
	return *first ? arg : arg == before ? 0 : arg + 1ull;
}

void tacho__list_free(struct tacho__list *l)
{
	tacho__recency_free(&l->recency);
	free(l->map);
	free(l->value);
	free(l->position);
	free(l->mate);
	*l = (struct tacho__list){0};
}
