#include "import/making.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "write/trace_parts.h"

#define ARENA_MAX (1ull << 32) /* names of frames, in bytes */
#define FRAMES_MAX (1u << 22)

struct tacho__made *tacho__made_new(void)
{
	struct tacho__made *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->arena.limit = ARENA_MAX;
	m->process.taken_by = TACHO_TAKEN_IMPORT;
	m->process.alive = TACHO_ALIVE_UNKNOWN;
	m->process.clock = TACHO_CLOCK_MONOTONIC;
	m->definition_count = 1;
	tacho__made_name(m, TACHO_DEF_TEXT, TACHO_ID_FULL_TEXT);
	return m;
}

void tacho__made_free(struct tacho__made *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->thread_count; i++)
		tacho__records_free(&m->threads[i].records);
	tacho__arena_free(&m->arena);
	tacho__bytes_free(&m->definitions);
	free(m->threads);
	free(m->gaps);
	free(m->definition_at);
	free(m->definition_table.at);
	free(m->frames);
	free(m->frame_table.at);
	free(m);
}

void tacho__made_for_once(struct tacho__made *m)
{
	m->once = 1;
}

int tacho__made_error(const struct tacho__made *m)
{
	return m->error;
}

uint64_t tacho__made_events(const struct tacho__made *m)
{
	return m->events;
}

int tacho__made_no_memory(struct tacho__made *m)
{
	return m->error = -ENOMEM;
}

/* ------------------------------------------------------------------- about */

static void keep(struct tacho__made *m, const char **to, const char *text, size_t most)
{
	if (!text || !*text)
		return;
	*to = tacho__arena_text(&m->arena, text, strnlen(text, most));
	if (!*to)
		tacho__made_no_memory(m);
}

void tacho__made_about(struct tacho__made *m, const struct tacho__made_about *about)
{
	struct tacho_process *p = &m->process;

	if (about->pid)
		p->pid = about->pid;
	keep(m, &p->imported, about->imported, TACHO_NAME_MAX);
	keep(m, &p->comm, about->name, 15);
	keep(m, &p->command_line, about->command_line, TACHO_COMMAND_LINE_MAX - 1);
	keep(m, &p->exe, about->exe, 511);
	keep(m, &p->service, about->service, 63);
	keep(m, &p->host, about->host, 255);
}

void tacho__made_anchor(struct tacho__made *m, uint64_t mono_ns, uint64_t real_ns)
{
	const struct tacho_anchor a = {mono_ns, mono_ns, real_ns};

	if (!real_ns)
		return;
	if (!m->first.real_ns || mono_ns < m->first.mono_ns)
		m->first = a;
	if (!m->last.real_ns || mono_ns > m->last.mono_ns)
		m->last = a;
}

void tacho__made_source(struct tacho__made *m, uint32_t source)
{
	if (source < TACHO_SOURCE_MAX)
		m->sources[source].state = TACHO_SOURCE_ON;
}

void tacho__made_say(struct tacho__made *m, const char *format, ...)
{
	char text[TACHO__MADE_SAID / 2];
	size_t used = strlen(m->said);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n <= 0 || strstr(m->said, text) || strlen(text) + 3 > sizeof(m->said) - used)
		return;
	snprintf(m->said + used, sizeof(m->said) - used, "%s%s", used ? "; " : "", text);
}

void tacho__made_lost(struct tacho__made *m, uint64_t from_ns, uint64_t to_ns, uint64_t events)
{
	if (m->gap_count >= TACHO__MADE_GAPS) {
		struct tacho_trace_gap *last = &m->gaps[m->gap_count - 1];

		last->records += events;
		if (to_ns > last->to_ns)
			last->to_ns = to_ns;
		return;
	}
	if (TACHO__GROW(m->gaps, m->gap_capacity, m->gap_count + 1)) {
		tacho__made_no_memory(m);
		return;
	}
	m->gaps[m->gap_count++] = (struct tacho_trace_gap){
		.from_ns = from_ns,
		.to_ns = to_ns > from_ns ? to_ns : from_ns,
		.records = events,
		.reason = TACHO_GAP_IMPORT,
	};
}

/* ------------------------------------------------------------------ tables */

/* Room for one more at half load; `hash_of` gives those that move their places anew. */
static int table_grow(struct tacho__made *m, struct tacho__made_table *t,
		      uint64_t (*hash_of)(const struct tacho__made *m, uint32_t n))
{
	uint32_t capacity = t->capacity ? 2 * t->capacity : 1024;
	uint32_t *at;

	if (t->used < t->capacity / 2)
		return 0;
	at = calloc(capacity, sizeof(*at));
	if (!at)
		return tacho__made_no_memory(m);
	for (uint32_t i = 0; i < t->capacity; i++) {
		uint32_t k;

		if (!t->at[i])
			continue;
		k = (uint32_t)hash_of(m, t->at[i]) & (capacity - 1);
		while (at[k])
			k = (k + 1) & (capacity - 1);
		at[k] = t->at[i];
	}
	free(t->at);
	t->at = at;
	t->capacity = capacity;
	return 0;
}

/* ------------------------------------------------------------- definitions */

static uint64_t entry_hash(const uint8_t *entry)
{
	struct tacho_trace_def head;

	memcpy(&head, entry, sizeof(head));
	return tacho__hash_bytes(entry + sizeof(head), head.size,
				 (uint64_t)head.class << 8 | head.flags);
}

static uint64_t definition_hash(const struct tacho__made *m, uint32_t id)
{
	return entry_hash(m->definitions.data + m->definition_at[id]);
}

static int same_entry(const uint8_t *a, const uint8_t *b)
{
	struct tacho_trace_def x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x.size == y.size && x.class == y.class && x.flags == y.flags &&
	       !memcmp(a + sizeof(x), b + sizeof(y), x.size);
}

/* The definition that was put last at `at` of m->definitions: another's id if it is the same. */
static uint32_t settle(struct tacho__made *m, size_t at, uint32_t id)
{
	struct tacho__made_table *t = &m->definition_table;
	const uint8_t *entry = m->definitions.data + at;
	uint32_t k = (uint32_t)entry_hash(entry) & (t->capacity - 1);

	for (; t->at[k]; k = (k + 1) & (t->capacity - 1)) {
		if (!same_entry(entry, m->definitions.data + m->definition_at[t->at[k]]))
			continue;
		m->definitions.size = at;
		return t->at[k];
	}
	if (id > TACHO_ARG_MAX) {
		m->definitions.size = at;
		m->losses[TACHO_LOSS_DEFS_FULL]++;
		return 1;
	}
	t->at[k] = id;
	t->used++;
	m->definition_at[id] = at;
	m->definition_count++;
	return id;
}

uint32_t tacho__made_define(struct tacho__made *m, const struct tacho_definition *d)
{
	struct tacho_definition whole = *d;
	size_t at = m->definitions.size;
	struct tacho_trace_def head;

	whole.id = m->definition_count;
	whole.name = d->name ?: "";
	whole.file = d->file ?: "";
	whole.unit = d->unit ?: "";
	if (m->error ||
	    TACHO__GROW(m->definition_at, m->definition_capacity, m->definition_count + 1) ||
	    table_grow(m, &m->definition_table, definition_hash)) {
		tacho__made_no_memory(m);
		return 0;
	}
	tacho__definition_put(&m->definitions, &whole);
	if (m->definitions.error) {
		tacho__made_no_memory(m);
		return 0;
	}
	if (m->definitions.size == at)
		return 0;
	memcpy(&head, m->definitions.data + at, sizeof(head));
	if (head.flags & TACHO_DEF_CUT)
		m->losses[d->def_class == TACHO_DEF_STACK ? TACHO_LOSS_STACK_CUT
							  : TACHO_LOSS_TEXT_CUT]++;
	return settle(m, at, whole.id);
}

uint32_t tacho__made_name(struct tacho__made *m, enum tacho_definition_class class,
			  const char *name)
{
	return tacho__made_place(m, class, name, NULL, 0);
}

uint32_t tacho__made_place(struct tacho__made *m, enum tacho_definition_class class,
			   const char *name, const char *file, uint32_t line)
{
	return tacho__made_define(
		m, &(struct tacho_definition){
			   .def_class = (uint8_t) class, .name = name, .file = file, .line = line});
}

/* ------------------------------------------------------------------ stacks */

static uint64_t texts_hash(const char *function, const char *file, uint32_t line)
{
	return tacho__hash_bytes(function, strlen(function),
				 tacho__hash_bytes(file, strlen(file), line));
}

static uint64_t frame_hash(const struct tacho__made *m, uint32_t n)
{
	const struct tacho__made_frame *f = &m->frames[n - 1];

	return texts_hash(f->function, f->file, f->line);
}

/* Its number among the frames, from 1; 0: there is no room for it. */
static uint32_t frame_of(struct tacho__made *m, const struct tacho__made_frame *f)
{
	struct tacho__made_table *t = &m->frame_table;
	struct tacho__made_frame kept = *f;
	uint32_t k;

	if (m->error || table_grow(m, t, frame_hash))
		return 0;
	k = (uint32_t)texts_hash(f->function, f->file, f->line) & (t->capacity - 1);
	for (; t->at[k]; k = (k + 1) & (t->capacity - 1)) {
		const struct tacho__made_frame *other = &m->frames[t->at[k] - 1];

		if (other->line == f->line && other->module == f->module &&
		    !strcmp(other->function, f->function) && !strcmp(other->file, f->file))
			return t->at[k];
	}
	if (m->frame_count >= FRAMES_MAX) {
		m->losses[TACHO_LOSS_DEFS_FULL]++;
		return 0;
	}
	kept.function = tacho__arena_text(&m->arena, f->function, strlen(f->function));
	kept.file = tacho__arena_text(&m->arena, f->file, strlen(f->file));
	if (!kept.function || !kept.file ||
	    TACHO__GROW(m->frames, m->frame_capacity, m->frame_count + 1)) {
		tacho__made_no_memory(m);
		return 0;
	}
	m->frames[m->frame_count++] = kept;
	t->used++;
	return t->at[k] = m->frame_count;
}

static uint64_t frame_address(struct tacho__made *m, const struct tacho__made_frame *f)
{
	uint32_t n = frame_of(m, f);

	return n ? tacho__made_address(f, n) + 1 : 0;
}

uint64_t tacho__made_frame(struct tacho__made *m, const char *function, const char *file,
			   uint32_t line)
{
	return frame_address(m, &(struct tacho__made_frame){.function = function ?: "",
							    .file = file ?: "",
							    .line = line});
}

uint64_t tacho__made_library_frame(struct tacho__made *m, const char *function, const char *file,
				   uint32_t line)
{
	if (!m->library)
		m->library = tacho__made_define(
			m, &(struct tacho_definition){.def_class = TACHO_DEF_MODULE,
						      .name = TACHO__LIBRARY_MODULE,
						      .start = TACHO__MADE_LIBRARY_BASE,
						      .end = TACHO__MADE_LIBRARY_END});
	return frame_address(m, &(struct tacho__made_frame){.function = function ?: "",
							    .file = file ?: "",
							    .line = line,
							    .module = m->library});
}

uint32_t tacho__made_stack(struct tacho__made *m, const uint64_t *frames, uint32_t count, int cut)
{
	int more = count > TACHO_STACK_MAX;

	if (!count)
		return 0;
	return tacho__made_define(
		m, &(struct tacho_definition){.def_class = TACHO_DEF_STACK,
					      .cut = (uint8_t)(cut || more),
					      .frames = frames,
					      .count = more ? TACHO_STACK_MAX : count});
}

/* ------------------------------------------------------------------ events */

uint32_t tacho__made_thread(struct tacho__made *m, uint32_t tid, const char *name)
{
	struct tacho__made_thread *t;

	if (m->thread_count >= TACHO__MADE_THREADS_MAX)
		return TACHO__MADE_NO_THREAD;
	if (TACHO__GROW(m->threads, m->thread_capacity, m->thread_count + 1)) {
		tacho__made_no_memory(m);
		return TACHO__MADE_NO_THREAD;
	}
	t = &m->threads[m->thread_count++];
	*t = (struct tacho__made_thread){.tid = tid};
	tacho__made_thread_name(m, m->thread_count, name);
	return m->thread_count;
}

void tacho__made_thread_name(struct tacho__made *m, uint32_t thread, const char *name)
{
	if (thread && thread <= m->thread_count && name)
		snprintf(m->threads[thread - 1].name, sizeof(m->threads[0].name), "%s", name);
}

static struct tacho__made_thread *thread_of(struct tacho__made *m, uint32_t thread)
{
	return thread && thread <= m->thread_count ? &m->threads[thread - 1] : NULL;
}

void tacho__made_ran(struct tacho__made *m, uint32_t thread, uint32_t loop, int parked)
{
	struct tacho__made_thread *t = thread_of(m, thread);

	if (t)
		t->at_first = (struct tacho_underway){.loop = loop, .parked = parked != 0};
}

void tacho__made_polled(struct tacho__made *m, uint32_t thread, uint32_t kind, uint64_t task)
{
	struct tacho__made_thread *t = thread_of(m, thread);

	if (t)
		tacho_underway_push(&t->at_first, TACHO_REC_POLL_BEGIN, kind, task, 0);
}

uint32_t tacho__made_index(const struct tacho__made *m, uint32_t thread)
{
	return thread && thread <= m->thread_count ? m->threads[thread - 1].records.head.count : 0;
}

void tacho__made_learn(struct tacho__made *m, uint32_t thread, uint32_t index, uint32_t kind)
{
	struct tacho__made_thread *t = thread_of(m, thread);

	if (t && index == TACHO__MADE_POLLED && t->at_first.depth)
		t->at_first.open[0].id = kind;
	else if (t && index < t->records.head.count)
		t->records.type_arg[index] =
			(t->records.type_arg[index] & 0xff) | (kind & TACHO_ARG_MAX) << 8;
}

void tacho__made_thread_ends(struct tacho__made *m, uint32_t thread)
{
	if (thread && thread <= m->thread_count)
		m->threads[thread - 1].ends = 1;
}

static int is_record(unsigned type, uint32_t count)
{
	unsigned class = TACHO_REC_CLASS(type);

	if (type > 0xff || type == TACHO_REC_NONE || type == TACHO_REC_TIME ||
	    type == TACHO_REC_RESUME)
		return 0;
	return class == TACHO_REC_CLASS_VARIABLE ? count && count <= TACHO_RECORD_MAX_WORDS
						 : count == class;
}

static int reserve(struct tacho__records *r, uint32_t words)
{
	uint32_t count = r->head.count + 1, all = (r->word_at ? r->word_at[r->head.count] : 0);

	if (words > UINT32_MAX - all)
		return -ENOMEM;
	all += words;
	if (r->word_at && count <= r->capacity && all <= r->words_capacity)
		return 0;
	if (count > r->capacity)
		count = r->capacity > UINT32_MAX / 2 ? UINT32_MAX : 2 * r->capacity + 64;
	if (all > r->words_capacity)
		all = all > UINT32_MAX / 2 ? UINT32_MAX : 2 * all + 64;
	return tacho__records_reserve(r, count, all);
}

void tacho__made_bytes(struct tacho__made *m, uint64_t bytes)
{
	/* A file of this size allows all. */
	m->bytes += bytes < TACHO__MADE_EVENTS_MAX ? bytes : TACHO__MADE_EVENTS_MAX;
}

static int is_full(struct tacho__made *m)
{
	uint64_t most = TACHO__EVENTS_FREE + TACHO__EVENTS_PER_BYTE * m->bytes;

	if (m->events < most && m->events < TACHO__MADE_EVENTS_MAX)
		return 0;
	if (!m->full && m->events == most)
		tacho__made_say(m,
				"it claims more than %u events for each of its bytes, as no "
				"recording has: those after the first %llu are left out",
				TACHO__EVENTS_PER_BYTE, (unsigned long long)m->events);
	return m->full = 1;
}

void tacho__made_put(struct tacho__made *m, uint32_t thread, uint64_t ns, unsigned type,
		     uint32_t arg, const uint64_t *words, uint32_t count)
{
	struct tacho__made_thread *t;
	struct tacho__records *r;

	if (m->error)
		return;
	if (!thread || thread > m->thread_count || !is_record(type, count) || arg > TACHO_ARG_MAX ||
	    is_full(m)) {
		m->lost++;
		return;
	}
	t = &m->threads[thread - 1];
	r = &t->records;
	if (reserve(r, count)) {
		tacho__made_no_memory(m);
		return;
	}
	if (r->head.count && ns < r->ns[r->head.count - 1])
		t->unsorted = 1;
	tacho__records_put(r, ns, type | arg << 8, words, count);
	if (TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE) {
		uint64_t *first = &r->words[r->word_at[r->head.count - 1]];

		*first = (*first & ~0xffffull) | count;
	}
	m->events++;
}

uint32_t tacho__made_pack(uint64_t *words, const char *text, size_t size)
{
	size_t kept = size < TACHO_TEXT_MAX ? size : TACHO_TEXT_MAX;
	uint32_t n = 1 + (uint32_t)((kept + 7) / 8);

	words[0] = kept | (kept < size ? 1u << 15 : 0);
	words[n - 1] = n > 1 ? 0 : words[0];
	if (kept)
		memcpy(words + 1, text, kept);
	return n;
}

void tacho__made_log(struct tacho__made *m, uint32_t thread, uint64_t ns, uint32_t level,
		     const char *text)
{
	uint64_t words[TACHO__MADE_TEXT_WORDS];
	uint32_t n = tacho__made_pack(words, text, strlen(text));

	words[0] <<= 16;
	tacho__made_put(m, thread, ns, TACHO_REC_LOG, level, words, n);
}
