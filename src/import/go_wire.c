/* Numbers, batches and tables of a Go trace (go.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/go.h"
#include "read/memory.h"

/* --------------------------------------------------------------------- map */

#define REMOVED UINT32_MAX

uint32_t go_map_find(const struct go_map *m, uint64_t key)
{
	if (!m->used)
		return GO_MAP_NO;
	for (uint32_t i = (uint32_t)(tacho__mix(key) >> 32) & (m->capacity - 1); m->value[i];
	     i = (i + 1) & (m->capacity - 1))
		if (m->key[i] == key && m->value[i] != REMOVED)
			return m->value[i] - 1;
	return GO_MAP_NO;
}

static void place(struct go_map *m, uint64_t key, uint32_t value)
{
	uint32_t i = (uint32_t)(tacho__mix(key) >> 32) & (m->capacity - 1);

	while (m->value[i])
		i = (i + 1) & (m->capacity - 1);
	m->key[i] = key;
	m->value[i] = value;
	m->used++;
}

/* Twice the room, or the same without what was removed. */
static int rebuild(struct go_map *m)
{
	struct go_map old = *m;
	uint32_t live = 0;

	for (uint32_t i = 0; i < old.capacity; i++)
		live += old.value[i] && old.value[i] != REMOVED;
	m->capacity = 64;
	while (m->capacity < 4 * (live + 1))
		m->capacity *= 2;
	m->key = calloc(m->capacity, sizeof(*m->key));
	m->value = calloc(m->capacity, sizeof(*m->value));
	m->used = 0;
	if (!m->key || !m->value) {
		free(m->key);
		free(m->value);
		*m = old;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < old.capacity; i++)
		if (old.value[i] && old.value[i] != REMOVED)
			place(m, old.key[i], old.value[i]);
	free(old.key);
	free(old.value);
	return 0;
}

int go_map_put(struct go_map *m, uint64_t key, uint32_t value)
{
	if (m->used >= m->capacity / 2 && rebuild(m))
		return -ENOMEM;
	place(m, key, value + 1);
	return 0;
}

void go_map_remove(struct go_map *m, uint64_t key)
{
	if (!m->used)
		return;
	for (uint32_t i = (uint32_t)(tacho__mix(key) >> 32) & (m->capacity - 1); m->value[i];
	     i = (i + 1) & (m->capacity - 1))
		if (m->key[i] == key && m->value[i] != REMOVED) {
			m->value[i] = REMOVED;
			return;
		}
}

void go_map_clear(struct go_map *m)
{
	if (m->capacity)
		memset(m->value, 0, m->capacity * sizeof(*m->value));
	m->used = 0;
}

void go_map_free(struct go_map *m)
{
	free(m->key);
	free(m->value);
	*m = (struct go_map){0};
}

/* ----------------------------------------------------------------- numbers */

int go_number(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
	const uint8_t *p = *at;
	uint64_t value = 0;

	for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
		uint8_t b = *p++;

		/* The tenth byte has one bit that fits. */
		if (shift == 63 && b > 1)
			return 0;
		value |= (uint64_t)(b & 0x7f) << (shift < 64 ? shift : 0);
		if (b & 0x80)
			continue;
		*at = p;
		*out = value;
		return 1;
	}
	return 0;
}

unsigned go_arguments(unsigned version, unsigned type)
{
	static const uint8_t counts[] = {
		[GO_PROCS_CHANGE] = 3,	 [GO_PROC_START] = 3,
		[GO_PROC_STOP] = 1,	 [GO_PROC_STEAL] = 4,
		[GO_PROC_STATUS] = 3,	 [GO_CREATE] = 4,
		[GO_CREATE_SYSCALL] = 2, [GO_START] = 3,
		[GO_DESTROY] = 1,	 [GO_DESTROY_SYSCALL] = 1,
		[GO_STOP] = 3,		 [GO_BLOCK] = 3,
		[GO_UNBLOCK] = 4,	 [GO_SYSCALL_BEGIN] = 3,
		[GO_SYSCALL_END] = 1,	 [GO_SYSCALL_END_BLOCKED] = 1,
		[GO_STATUS] = 4,	 [GO_STW_BEGIN] = 3,
		[GO_STW_END] = 1,	 [GO_GC_ACTIVE] = 2,
		[GO_GC_BEGIN] = 3,	 [GO_GC_END] = 2,
		[GO_SWEEP_ACTIVE] = 2,	 [GO_SWEEP_BEGIN] = 2,
		[GO_SWEEP_END] = 3,	 [GO_ASSIST_ACTIVE] = 2,
		[GO_ASSIST_BEGIN] = 2,	 [GO_ASSIST_END] = 1,
		[GO_HEAP_ALLOC] = 2,	 [GO_HEAP_GOAL] = 2,
		[GO_LABEL] = 2,		 [GO_TASK_BEGIN] = 5,
		[GO_TASK_END] = 3,	 [GO_REGION_BEGIN] = 4,
		[GO_REGION_END] = 4,	 [GO_LOG] = 5,
		[GO_SWITCH] = 3,	 [GO_SWITCH_DESTROY] = 3,
		[GO_CREATE_BLOCKED] = 4, [GO_STATUS_STACK] = 5,
	};
	/* Of the experiment with memory: their numbers are read, and left out. */
	static const uint8_t memory[] = {4, 4, 2, 3, 3, 2, 3, 3, 2};

	if (type >= 128 && version >= 23)
		return type - 128 < sizeof(memory) ? memory[type - 128] : 0;
	if (type > (version >= 23 ? GO_STATUS_STACK : GO_LOG))
		return 0;
	return counts[type];
}

/* ------------------------------------------------------------------ tables */

const char *go_string(const struct go_generation *g, uint64_t id)
{
	uint32_t i = id ? go_map_find(&g->string_map, id) : GO_MAP_NO;

	return i == GO_MAP_NO ? "" : (const char *)g->texts.data + g->strings[i];
}

uint32_t go_frames(const struct go_generation *g, uint64_t stack, struct go_frame out[GO_FRAMES])
{
	uint32_t i = stack ? go_map_find(&g->stack_map, stack) : GO_MAP_NO, n = 0;
	const uint8_t *at, *end;
	uint64_t pc, function, file, line;

	if (i == GO_MAP_NO)
		return 0;
	at = g->bytes.data + g->stacks[i].at;
	end = at + g->stacks[i].end;
	for (; n < g->stacks[i].frames && n < GO_FRAMES; n++) {
		if (!go_number(&at, end, &pc) || !go_number(&at, end, &function) ||
		    !go_number(&at, end, &file) || !go_number(&at, end, &line))
			break;
		out[n] = (struct go_frame){go_string(g, function), go_string(g, file),
					   line <= INT32_MAX ? (uint32_t)line : 0};
	}
	return n;
}
