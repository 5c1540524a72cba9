/* One generation of a Go trace after the other (go.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/go_read.h"
#include "read/memory.h"

#define BATCH_MAX 65536u
#define GENERATION_MAX (2ull << 30) /* bytes: what is larger is no second of a program */
#define STRING_MAX 1024u

enum header { END_OF_FILE, BATCH, GENERATION_ENDS, DAMAGED };

static void clear(struct go_generation *g)
{
	g->number = g->frequency = g->min_time = 0;
	g->snapshot_time = g->snapshot_mono = g->snapshot_wall = 0;
	g->bytes.size = g->texts.size = 0;
	g->batch_count = g->string_count = g->stack_count = g->sample_count = 0;
	go_map_clear(&g->string_map);
	go_map_clear(&g->stack_map);
}

void go_generation_free(struct go_generation *g)
{
	tacho__bytes_free(&g->bytes);
	tacho__bytes_free(&g->texts);
	free(g->batches);
	free(g->strings);
	free(g->stacks);
	free(g->samples);
	go_map_free(&g->string_map);
	go_map_free(&g->stack_map);
}

/* ------------------------------------------------------------------ tables */

/* All return 0 when what follows is not what it should be, or -ENOMEM; else 1. */

static int add_string(struct go_generation *g, uint64_t id, const uint8_t *text, uint64_t size)
{
	static const char end;

	if (!id || go_map_find(&g->string_map, id) != GO_MAP_NO)
		return 1;
	if (TACHO__GROW(g->strings, g->string_capacity, g->string_count + 1))
		return -ENOMEM;
	g->strings[g->string_count] = g->texts.size;
	if (tacho__bytes_put(&g->texts, text, size) || tacho__bytes_put(&g->texts, &end, 1) ||
	    go_map_put(&g->string_map, id, g->string_count))
		return -ENOMEM;
	g->string_count++;
	return 1;
}

static int add_strings(struct go_generation *g, const uint8_t *at, const uint8_t *end)
{
	uint64_t id, size;
	int ok = 1;

	while (ok > 0 && at < end) {
		if (*at++ != GO_STRING || !go_number(&at, end, &id) ||
		    !go_number(&at, end, &size) || size > STRING_MAX || size > (uint64_t)(end - at))
			return 0;
		ok = add_string(g, id, at, size);
		at += size;
	}
	return ok;
}

static int add_stack(struct go_generation *g, uint64_t id, const struct go_stack *stack)
{
	if (!id || go_map_find(&g->stack_map, id) != GO_MAP_NO)
		return 1;
	if (TACHO__GROW(g->stacks, g->stack_capacity, g->stack_count + 1) ||
	    go_map_put(&g->stack_map, id, g->stack_count))
		return -ENOMEM;
	g->stacks[g->stack_count++] = *stack;
	return 1;
}

static int add_stacks(struct go_generation *g, const uint8_t *at, const uint8_t *end)
{
	uint64_t id, frames, skipped;
	int ok = 1;

	while (ok > 0 && at < end) {
		struct go_stack stack;

		if (*at++ != GO_STACK || !go_number(&at, end, &id) ||
		    !go_number(&at, end, &frames) || frames > GO_FRAMES)
			return 0;
		stack = (struct go_stack){.at = (size_t)(at - g->bytes.data),
					  .frames = (uint32_t)frames};
		for (uint64_t i = 0; i < 4 * frames; i++)
			if (!go_number(&at, end, &skipped))
				return 0;
		stack.end = (uint32_t)((size_t)(at - g->bytes.data) - stack.at);
		ok = add_stack(g, id, &stack);
	}
	return ok;
}

static int add_samples(struct go_generation *g, const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		struct go_sample s;

		if (*at++ != GO_CPU_SAMPLE || !go_number(&at, end, &s.time) ||
		    !go_number(&at, end, &s.m) || !go_number(&at, end, &s.p) ||
		    !go_number(&at, end, &s.g) || !go_number(&at, end, &s.stack))
			return 0;
		if (TACHO__GROW(g->samples, g->sample_capacity, g->sample_count + 1))
			return -ENOMEM;
		g->samples[g->sample_count++] = s;
	}
	return 1;
}

static int add_sync(struct go_generation *g, uint64_t base, const uint8_t *at, const uint8_t *end)
{
	uint64_t ticks, mono, seconds, ns;

	while (at < end) {
		unsigned type = *at++;

		if (type == GO_FREQUENCY) {
			if (!go_number(&at, end, &g->frequency))
				return 0;
			continue;
		}
		if (type != GO_CLOCK_SNAPSHOT || !go_number(&at, end, &ticks) ||
		    !go_number(&at, end, &mono) || !go_number(&at, end, &seconds) ||
		    !go_number(&at, end, &ns) || seconds > UINT64_MAX / 2000000000u)
			return 0;
		g->snapshot_time = base + ticks;
		g->snapshot_mono = mono;
		g->snapshot_wall = seconds * 1000000000u + ns % 1000000000u;
	}
	return 1;
}

static int add_events(struct go_generation *g, const struct go_batch *b)
{
	if (TACHO__GROW(g->batches, g->batch_capacity, g->batch_count + 1))
		return -ENOMEM;
	g->batches[g->batch_count++] = *b;
	if (!g->min_time || b->time < g->min_time)
		g->min_time = b->time;
	return 1;
}

/* A batch whose bytes are the last of the generation. */
static int add_batch(struct go *go, const struct go_batch *b)
{
	struct go_generation *g = &go->now;
	const uint8_t *at = g->bytes.data + b->at, *end = at + b->size;

	if (!b->size)
		return 1;
	switch (*at) {
	case GO_STRINGS:
		return add_strings(g, at + 1, end);
	case GO_STACKS:
		return add_stacks(g, at + 1, end);
	case GO_CPU_SAMPLES:
		return add_samples(g, at + 1, end);
	case GO_FREQUENCY:
		return go->version < 25 ? add_sync(g, b->time, at, end) : 0;
	case GO_SYNC:
		return go->version >= 25 ? add_sync(g, b->time, at + 1, end) : 0;
	default:
		return add_events(g, b);
	}
}

/* ----------------------------------------------------------------- batches */

static int read_number(struct go *go, uint64_t *out)
{
	uint8_t bytes[10];
	const uint8_t *at = bytes;
	unsigned n = 0;

	do {
		if (n == sizeof(bytes) || tacho__stream_read(go->stream, &bytes[n], 1) != 1)
			return 0;
	} while (bytes[n++] & 0x80);
	return go_number(&at, bytes + n, out);
}

static enum header read_header(struct go *go, struct go_batch *b, uint64_t *generation,
			       uint8_t *experimental)
{
	uint64_t size;
	uint8_t type;

	if (tacho__stream_read(go->stream, &type, 1) != 1)
		return tacho__stream_problem(go->stream) ? DAMAGED : END_OF_FILE;
	if (type == GO_END_OF_GENERATION && go->version >= 26)
		return GENERATION_ENDS;
	*experimental = type == GO_EXPERIMENTAL_BATCH && go->version >= 23;
	if (type != GO_EVENT_BATCH && !*experimental)
		return DAMAGED;
	if (*experimental && tacho__stream_read(go->stream, &type, 1) != 1)
		return DAMAGED;
	if (!read_number(go, generation) || !read_number(go, &b->m) || !read_number(go, &b->time) ||
	    !read_number(go, &size) || !*generation || size > BATCH_MAX)
		return DAMAGED;
	b->size = (uint32_t)size;
	return BATCH;
}

/* 1, or 0 when the file ends before, or -ENOMEM. */
static int take(struct go *go, struct go_batch *b, int experimental, const uint8_t *data)
{
	struct tacho__bytes *bytes = &go->now.bytes;
	int ok;

	b->at = bytes->size;
	if (b->at + b->size > GENERATION_MAX)
		return 0;
	if (tacho__bytes_put(bytes, data, b->size))
		return -ENOMEM;
	ok = experimental ? 1 : add_batch(go, b);
	if (!ok)
		go->unread++;
	return ok < 0 ? ok : 1;
}

/* The first batch of the next generation, which is how one ends before Go 1.26. */
static void spill(struct go *go, const struct go_batch *b, uint64_t generation, int experimental)
{
	go->spilled.number = generation;
	go->spilled.batch = *b;
	go->spilled.experimental = (uint8_t)experimental;
}

static int read_batches(struct go *go)
{
	struct go_batch b;
	uint64_t generation;
	uint8_t experimental;

	for (;;) {
		enum header h = read_header(go, &b, &generation, &experimental);
		int ok;

		if (h == GENERATION_ENDS && !go->now.number)
			continue;
		if (h == GENERATION_ENDS)
			return 1;
		if (h == END_OF_FILE) {
			go->ended = 1;
			go->cut |= go->version >= 26 && go->now.number;
			return 1;
		}
		if (h == BATCH &&
		    tacho__stream_read(go->stream, go->spilled.data, b.size) != b.size)
			h = DAMAGED;
		if (h == DAMAGED) {
			go->ended = go->cut = 1;
			return 1;
		}
		if (!go->now.number)
			go->now.number = generation;
		if (generation != go->now.number) {
			/* From 1.26 on a generation that has no end is one that was cut. */
			go->cut |= go->version >= 26;
			spill(go, &b, generation, experimental);
			return 1;
		}
		ok = take(go, &b, experimental, go->spilled.data);
		if (ok < 0)
			return ok;
		go->ended |= !ok;
		go->cut |= !ok;
		if (!ok)
			return 1;
	}
}

int go_read_generation(struct go *go)
{
	int ok = 1;

	clear(&go->now);
	go->cut = 0;
	if (go->ended)
		return 0;
	if (!go->spilled.data) {
		go->spilled.data = malloc(BATCH_MAX);
		if (!go->spilled.data)
			return -ENOMEM;
	}
	if (go->spilled.number) {
		go->now.number = go->spilled.number;
		go->spilled.number = 0;
		ok = take(go, &go->spilled.batch, go->spilled.experimental, go->spilled.data);
	}
	if (ok > 0)
		ok = read_batches(go);
	return ok < 0 ? ok : go->now.number != 0;
}
