/* Rows by the value of a field. */
#include <errno.h>
#include <stdlib.h>

#include "query/table.h"

/* A search costs less than an order, ten of them do not. */
#define SEARCHES 4u

struct sorting {
	const struct tacho__sql_rows *rows;
	uint32_t field;
};

static int by_field(const void *a, const void *b, void *arg)
{
	const struct sorting *s = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int64_t x = (int64_t)tacho__sql_value(s->rows, s->field, i);
	int64_t y = (int64_t)tacho__sql_value(s->rows, s->field, k);

	if (x != y)
		return x < y ? -1 : 1;
	return i < k ? -1 : i > k;
}

static int make_order(struct tacho__sql_rows *rows, uint32_t field)
{
	struct sorting sorting = {rows, field};
	uint32_t *order = malloc(((size_t)rows->count + 1) * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows->count; i++)
		order[i] = i;
	qsort_r(order, rows->count, sizeof(*order), by_field, &sorting);
	rows->field[field].order = order;
	return 0;
}

/* First in the order of the field whose value is not below (or, `above`: is above) this. */
static uint32_t bound(const struct tacho__sql_rows *rows, uint32_t field, const uint32_t *order,
		      int64_t value, bool above)
{
	uint32_t from = 0, to = rows->count;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		int64_t x = (int64_t)tacho__sql_value(rows, field, order ? order[mid] : mid);

		if (x < value || (above && x == value))
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

int tacho__sql_search(struct tacho__sql_rows *rows, uint32_t field, int64_t low, int64_t high,
		      struct tacho__sql_range *range)
{
	struct tacho__sql_field *f = &rows->field[field];

	*range = (struct tacho__sql_range){.end = rows->count};
	if (f->unsorted && !f->order) {
		if (f->asked++ < SEARCHES) {
			range->check = true;
			return 0;
		}
		if (make_order(rows, field))
			return -ENOMEM;
	}
	range->order = f->order;
	range->at = bound(rows, field, f->order, low, false);
	range->end = bound(rows, field, f->order, high, true);
	return 0;
}
