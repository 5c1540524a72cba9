#include "export/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/text.h"
#include "read/memory.h"

#define NAMES_MAX (1u << 18)
#define TEXT_MAX_BYTES (64u << 20)

int tacho__stacks_init(struct tacho__stacks *s)
{
	int error = 0;

	memset(s, 0, sizeof(*s));
	tacho__table_init(&s->nodes, sizeof(struct tacho__tree_node), TACHO__NODES_MAX);
	tacho__table_init(&s->names, sizeof(struct tacho__name_entry), NAMES_MAX);
	/* No child has this key: names are numbered from 1. */
	tacho__table_get(&s->nodes, 0, 0, &error);
	return error;
}

void tacho__stacks_free(struct tacho__stacks *s)
{
	tacho__table_free(&s->nodes);
	tacho__table_free(&s->names);
	free(s->text);
	s->text = NULL;
}

/* ------------------------------------------------------------------ the tree */

static uint32_t index_of(const struct tacho__table *t, const void *entry)
{
	return (uint32_t)((size_t)((const uint8_t *)entry - t->entries) / t->entry_size);
}

static int store_text(struct tacho__stacks *s, struct tacho__name_entry *n, const char *text)
{
	size_t size = strlen(text) + 1;

	if (s->text_size + size > TEXT_MAX_BYTES)
		return -ENOSPC;
	if (TACHO__GROW(s->text, s->text_room, (uint32_t)(s->text_size + size)))
		return -ENOMEM;
	n->at = s->text_size;
	memcpy(s->text + n->at, text, size);
	s->text_size += size;
	return 0;
}

/* A semicolon ends a frame in what we write, so none may stand inside of one. */
static uint32_t name_id(struct tacho__stacks *s, const char *text, int *error)
{
	char clean[TACHO__CLEAN_MAX];
	struct tacho__name_entry *n;
	size_t size;
	int result;

	tacho__clean(clean, sizeof(clean), text);
	for (char *c = clean; *c; c++)
		if (*c == ';')
			*c = ':';
	size = strlen(clean);
	n = tacho__table_get(&s->names, tacho__hash_bytes(clean, size, 1),
			     tacho__hash_bytes(clean, size, 2), error);
	if (!n || n->id)
		return n ? n->id : 0;
	result = store_text(s, n, clean);
	if (result < 0) {
		if (result == -ENOMEM)
			*error = result;
		tacho__table_remove(&s->names, n);
		return 0;
	}
	n->id = index_of(&s->names, n) + 1;
	return n->id;
}

uint32_t tacho__stacks_child(struct tacho__stacks *s, uint32_t parent, const char *name, int *error)
{
	uint32_t id = name_id(s, name, error);
	struct tacho__tree_node *n = id ? tacho__table_get(&s->nodes, parent, id, error) : NULL;

	if (!n)
		return parent;
	n->parent = parent;
	n->name = id;
	return index_of(&s->nodes, n);
}

void tacho__stacks_add(struct tacho__stacks *s, uint32_t node, uint64_t value)
{
	struct tacho__tree_node *n = tacho__table_at(&s->nodes, node);

	if (!n)
		return;
	n->self += value;
	s->total += value;
	s->stacks++;
}

const struct tacho__tree_node *tacho__stacks_node(const struct tacho__stacks *s, uint32_t index)
{
	return tacho__table_at(&s->nodes, index);
}

const char *tacho__stacks_name(const struct tacho__stacks *s, uint32_t name)
{
	const struct tacho__name_entry *n = name ? tacho__table_at(&s->names, name - 1) : NULL;

	return n ? s->text + n->at : "";
}

/* ------------------------------------------------------------------ collapsed */

static int write_stack(const struct tacho__stacks *s, uint32_t index,
		       const struct tacho__sink *sink)
{
	uint32_t path[TACHO__STACK_MAX * 2], depth = 0;
	const struct tacho__tree_node *n = tacho__stacks_node(s, index);
	char number[32];
	uint64_t value = n->self;
	int error = 0, size;

	for (; index && depth < TACHO__STACK_MAX * 2; index = n->parent) {
		n = tacho__stacks_node(s, index);
		path[depth++] = n->name;
	}
	while (depth-- && !error) {
		const char *name = tacho__stacks_name(s, path[depth]);

		error = sink->write(sink->arg, name, strlen(name));
		if (!error && depth)
			error = sink->write(sink->arg, ";", 1);
	}
	size = snprintf(number, sizeof(number), " %" PRIu64 "\n", value);
	return error ? error : sink->write(sink->arg, number, (size_t)size);
}

int tacho__stacks_write(const struct tacho__stacks *s, const struct tacho__sink *sink)
{
	int error = 0;

	for (uint32_t i = 1; i < s->nodes.used && !error; i++) {
		const struct tacho__tree_node *n = tacho__stacks_node(s, i);

		if (n && n->self)
			error = write_stack(s, i, sink);
	}
	return error;
}
