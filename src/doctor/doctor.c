#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct tacho__check *tacho__check_add(struct tacho__checks *c, const char *name,
				      enum tacho__check_state state)
{
	static struct tacho__check lost;
	struct tacho__check *at = &lost;

	if (c->count == c->capacity) {
		size_t capacity = c->capacity ? 2 * c->capacity : 32;
		struct tacho__check *more = realloc(c->items, capacity * sizeof(*more));

		c->failed |= !more;
		if (more) {
			c->items = more;
			c->capacity = capacity;
		}
	}
	if (c->count < c->capacity)
		at = &c->items[c->count++];
	*at = (struct tacho__check){.name = name, .state = state};
	return at;
}

void tacho__check_value(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->value, sizeof(c->value), format, args);
	va_end(args);
}

void tacho__check_number(struct tacho__check *c, uint64_t number)
{
	c->is_number = true;
	c->number = number;
}

void tacho__check_bytes(struct tacho__check *c, uint64_t bytes)
{
	tacho__check_number(c, bytes);
	c->is_bytes = true;
}

void tacho__check_means(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->means, sizeof(c->means), format, args);
	va_end(args);
}

void tacho__check_todo(struct tacho__check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->todo, sizeof(c->todo), format, args);
	va_end(args);
}

void tacho__checks_free(struct tacho__checks *c)
{
	free(c->items);
	*c = (struct tacho__checks){0};
}
