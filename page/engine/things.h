/* Things of the view by what is known of them elsewhere, and how the page is told of them. */
#ifndef TACHO_PAGE_THINGS_H
#define TACHO_PAGE_THINGS_H

#include <stdbool.h>

#include "engine.h"

struct thing {
	uint32_t lane, row, index;
	uint64_t begin_ns, ns;
};

/* The thing of that type that began then on that thread. */
bool thing_of(struct thing *out, uint32_t process, uint32_t thread, enum tacho__track_type type,
	      uint64_t begin_ns);
/* An object with lane, row, index, begin and ns; null for NULL. */
void put_thing(struct json *j, const struct thing *t);
/* {process, task, kind, ...}: a task in a list of them. */
void put_task_line(struct json *j, const struct tacho__view_task *t);
/* "on_guess" and kin; out has 4 * TACHO__TEXT bytes. */
#define NAME_BYTES (4 * TACHO__TEXT)
const char *name_of(char *out, uint32_t process, uint32_t id);
/* "function (file:12)" where an id stands for code; "" where nothing is known of it. */
const char *place_of(char *out, uint32_t process, uint32_t id);

/* Its name; stacks and places without one are called by their code. */
const char *called(char *out, uint32_t process, uint32_t id);

#endif
