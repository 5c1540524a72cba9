/* Execution traces of Go into a trace that is made (go.h). */
#include "import/go.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/go_read.h"
#include "read/memory.h"

#define HEADER_BYTES 16u
#define OLDEST 22u
#define NEWEST 26u
#define GS_MAX (1u << 22)
#define PS_MAX 32768u
#define MS_MAX (1u << 20)

/* "go 1.NN trace" and three zeros: NN, or 0. */
static unsigned version_of(const uint8_t *head, size_t size)
{
	unsigned version = 0;
	size_t at = 5;

	if (size < HEADER_BYTES || memcmp(head, "go 1.", 5))
		return 0;
	for (; at < 8 && head[at] >= '0' && head[at] <= '9'; at++)
		version = version * 10 + head[at] - '0';
	return at > 5 && !memcmp(head + at, " trace\0\0", 8) ? version : 0;
}

static int recognises(const uint8_t *head, size_t size)
{
	return version_of(head, size) != 0;
}

/* ------------------------------------------------------------------- state */

struct go_m *go_m(struct go *go, uint64_t id)
{
	uint32_t i = go_map_find(&go->m_map, id);

	if (i != GO_MAP_NO)
		return &go->ms[i];
	if (go->m_count >= MS_MAX)
		return NULL;
	if (TACHO__GROW(go->ms, go->m_capacity, go->m_count + 1) ||
	    go_map_put(&go->m_map, id, go->m_count)) {
		tacho__made_no_memory(go->made);
		return NULL;
	}
	go->ms[go->m_count] = (struct go_m){.id = id, .p = GO_NONE, .g = GO_NONE};
	return &go->ms[go->m_count++];
}

struct go_p *go_p(struct go *go, uint64_t id)
{
	uint32_t i = id == GO_NONE ? GO_MAP_NO : go_map_find(&go->p_map, id);

	if (i != GO_MAP_NO)
		return &go->ps[i];
	if (id == GO_NONE || go->p_count >= PS_MAX)
		return NULL;
	if (TACHO__GROW(go->ps, go->p_capacity, go->p_count + 1) ||
	    go_map_put(&go->p_map, id, go->p_count)) {
		tacho__made_no_memory(go->made);
		return NULL;
	}
	go->ps[go->p_count] = (struct go_p){.id = id, .polled = GO_NONE};
	return &go->ps[go->p_count++];
}

struct go_g *go_g_find(struct go *go, uint64_t id)
{
	uint32_t i = id == GO_NONE ? GO_MAP_NO : go_map_find(&go->g_map, id);

	return i == GO_MAP_NO ? NULL : &go->gs[i];
}

struct go_g *go_g(struct go *go, uint64_t id)
{
	struct go_g *g = go_g_find(go, id);
	uint32_t i = go->g_free ? go->g_free - 1 : go->g_count;

	if (g || id == GO_NONE || !id)
		return g;
	if (!go->g_free && go->g_count >= GS_MAX)
		return NULL;
	if ((!go->g_free && TACHO__GROW(go->gs, go->g_capacity, go->g_count + 1)) ||
	    go_map_put(&go->g_map, id, i)) {
		tacho__made_no_memory(go->made);
		return NULL;
	}
	if (go->g_free)
		go->g_free = go->gs[i].next_free;
	else
		go->g_count++;
	go->gs[i] = (struct go_g){.id = id};
	return &go->gs[i];
}

void go_g_remove(struct go *go, struct go_g *g)
{
	go_map_remove(&go->g_map, g->id);
	g->next_free = go->g_free;
	go->g_free = (uint32_t)(g - go->gs) + 1;
}

static void free_state(struct go *go)
{
	go_generation_free(&go->now);
	free(go->spilled.data);
	free(go->ms);
	free(go->ps);
	free(go->gs);
	go_map_free(&go->m_map);
	go_map_free(&go->p_map);
	go_map_free(&go->g_map);
	go_map_free(&go->task_map);
}

/* ----------------------------------------------------------------- reading */

/* A generation that was cut is of use if it has the tables that name things. */
static int is_usable(const struct go_generation *g, int cut)
{
	return g->frequency && (!cut || g->string_count);
}

/* What cannot be used ends where its batches begin last. */
static void leave_out(struct go *go)
{
	const struct go_generation *g = &go->now;
	uint64_t frequency = g->frequency ? g->frequency : 15625000u, last = 0;

	for (uint32_t i = 0; i < g->batch_count; i++)
		if (g->batches[i].time > last)
			last = g->batches[i].time;
	last = (uint64_t)((unsigned __int128)last * 1000000000u / frequency);
	tacho__made_lost(go->made, go->last_ns ? go->last_ns : last, last, 0);
}

static int import_generation(struct go *go)
{
	struct go_generation *g = &go->now;
	const char *problem = tacho__stream_problem(go->stream);
	uint64_t done, total;

	if (go->cut)
		tacho__made_say(go->made,
				"the file %s after generation %llu, so its end is missing",
				problem	    ? "cannot be unpacked"
				: go->ended ? "is cut or damaged"
					    : "has no end of a generation",
				(unsigned long long)g->number);
	if (!is_usable(g, go->cut)) {
		tacho__made_say(go->made, "generation %llu is left out: it lacks its %s",
				(unsigned long long)g->number, g->frequency ? "names" : "clock");
		leave_out(go);
		return 0;
	}
	if (!go->first_generation)
		go->first_generation = g->number;
	if (g->snapshot_mono)
		tacho__made_anchor(go->made,
				   (uint64_t)((unsigned __int128)g->snapshot_time * 1000000000u /
					      g->frequency),
				   g->snapshot_wall);
	tacho__stream_progress(go->stream, &done, &total);
	if (go->importing->progress)
		go->importing->progress(go->importing->progress_arg, done, total);
	return go_order(go);
}

/* What the trace says of itself besides its events. */
static void conclude(struct go *go)
{
	if (go->unread)
		tacho__made_say(go->made, "%llu batches could not be read to their end",
				(unsigned long long)go->unread);
	if (go->forced)
		tacho__made_say(
			go->made,
			"%llu events contradict what came before them: something is missing",
			(unsigned long long)go->forced);
	if (go->left_out)
		tacho__made_say(go->made, "%llu events are left out: regions nest too deeply",
				(unsigned long long)go->left_out);
	tacho__made_source(go->made, TACHO_SOURCE_API);
	tacho__made_source(go->made, TACHO_SOURCE_LOCKS);
	/* Not of calls: that says what a thread is in that does not run, and this does not. */
	if (go->counts[GO_CPU_SAMPLE])
		tacho__made_source(go->made, TACHO_SOURCE_CPU_SAMPLES);
}

static int read_all(struct go *go)
{
	char imported[64];
	int err;

	snprintf(imported, sizeof(imported), "a Go 1.%u execution trace", go->version);
	tacho__made_about(go->made,
			  &(struct tacho__made_about){.imported = imported, .name = "go program"});
	while ((err = go_read_generation(go)) > 0) {
		err = import_generation(go);
		if (err < 0)
			break;
	}
	if (!err && !go->first_generation) {
		snprintf(go->importing->message, go->importing->message_size,
			 "it begins as a Go 1.%u execution trace, and no whole generation follows",
			 go->version);
		err = -EBADMSG;
	}
	conclude(go);
	return err;
}

static int import_go(struct tacho__importing *i)
{
	struct go go = {.importing = i, .made = i->made};
	uint8_t head[HEADER_BYTES];
	size_t size;
	int err;

	go.stream = tacho__stream_open(i->paths[0], &err);
	if (!go.stream)
		return err;
	tacho__made_bytes(i->made, tacho__stream_size(go.stream));
	size = tacho__stream_read(go.stream, head, sizeof(head));
	go.version = version_of(head, size);
	if (go.version < OLDEST || go.version > NEWEST) {
		snprintf(i->message, i->message_size,
			 "it is an execution trace of Go 1.%u, and tacho reads those of Go 1.%u to "
			 "1.%u; record it again with such a Go",
			 go.version, OLDEST, NEWEST);
		err = -ENOTSUP;
	} else {
		err = read_all(&go);
	}
	tacho__stream_close(go.stream);
	free_state(&go);
	return err;
}

const struct tacho__importer tacho__import_go = {
	.recognises = recognises,
	.import = import_go,
};
