/*
 * What carries a stack: CPU samples, switches, task dumps, allocations.
 *
 * dial9 appends the names of all addresses of a segment to its end, so that these events wait until
 * all has been read.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "import/dial9_making.h"

#define FRAMES_MAX 256u /* of a stack, with inlined ones */
#define DEFAULT_HZ 99u	/* dial9's own default */
#define KERNEL_FROM (UINT64_C(1) << 63)

/* ------------------------------------------------------------------ symbols */

/* The function at an address that is `depth` deep in those it was inlined into: index + 1; 0: none. */
static uint32_t symbol_at(const struct tacho__dial9 *d, uint64_t address, uint32_t depth)
{
	uint32_t n = tacho__map_get(&d->symbol_at, address);

	for (unsigned tries = 0; n && tries < FRAMES_MAX; tries++, n = d->symbols[n - 1].next)
		if (d->symbols[n - 1].depth == depth)
			return n;
	return 0;
}

static void put_symbol(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		       struct tacho__dial9_known *k)
{
	uint64_t address = tacho__dial9_number(e, k, 0, 0);
	uint32_t depth = (uint32_t)tacho__dial9_number(e, k, 2, 0);
	const struct tacho__dial9_value *name = tacho__dial9_get(e, k, 1);
	const struct tacho__dial9_value *file = tacho__dial9_get(e, k, 3);
	struct tacho__dial9_symbol *s;

	if (d->look || !name || symbol_at(d, address, depth))
		return;
	s = TACHO__DIAL9_ROOM(d, symbols, symbol_count, symbol_capacity);
	if (!s)
		return;
	*s = (struct tacho__dial9_symbol){
		.address = address,
		.depth = depth,
		.line = (uint32_t)tacho__dial9_number(e, k, 4, 0),
		.next = tacho__map_get(&d->symbol_at, address),
		.function = tacho__arena_text(&d->arena, name->bytes, name->size),
		.file = tacho__arena_text(&d->arena, file ? file->bytes : (const uint8_t *)"",
					  file ? file->size : 0),
	};
	if (!s->function || !s->file || tacho__map_put(&d->symbol_at, address, d->symbol_count))
		d->error = -ENOMEM;
}

/* The frames of an address, innermost first; at least one, at most `room`. */
static uint32_t frames_of(struct tacho__dial9 *d, uint64_t address, uint64_t *frames, uint32_t room)
{
	uint32_t depth = 0, count = 0;
	char name[32];

	while (depth < room && symbol_at(d, address, depth))
		depth++;
	while (depth) {
		const struct tacho__dial9_symbol *s =
			&d->symbols[symbol_at(d, address, --depth) - 1];

		frames[count++] = tacho__made_frame(d->made, s->function, s->file, s->line);
	}
	if (count)
		return count;
	snprintf(name, sizeof(name), "%s0x%" PRIx64, address >= KERNEL_FROM ? "[kernel] " : "",
		 address);
	frames[0] = tacho__made_frame(d->made, name, NULL, 0);
	return 1;
}

/* -------------------------------------------------------------------- stacks */

static struct tacho__dial9_stacked *keep(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
					 const struct tacho__dial9_value *stack, uint32_t what)
{
	uint32_t count = stack && (stack->type == TACHO__DIAL9_STACK ||
				   stack->type == TACHO__DIAL9_POOLED_STACK)
				 ? stack->size
				 : 0;
	struct tacho__dial9_stacked *s;
	uint64_t *words;

	if (count > FRAMES_MAX)
		count = FRAMES_MAX;
	words = tacho__dial9_words(d, count);
	s = TACHO__DIAL9_ROOM(d, stacked, stacked_count, stacked_capacity);
	if (!words || !s)
		return NULL;
	if (count)
		memcpy(words, stack->bytes, count * sizeof(*words));
	*s = (struct tacho__dial9_stacked){
		.ns = e->ns, .stack = (uint32_t)(words - d->words), .count = count, .what = what};
	return s;
}

/* Only before batches said their threads are the workers of samples to be believed. */
static uint32_t sampled_thread(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			       struct tacho__dial9_known *k)
{
	uint64_t worker = tacho__dial9_number(e, k, 4, TACHO__DIAL9_UNKNOWN);
	const struct tacho__dial9_worker *w = d->has_tids || worker >= TACHO__DIAL9_BLOCKING
						      ? NULL
						      : tacho__dial9_worker(d, worker);

	if (w && w->on[0])
		return d->threads[w->on[0] - 1].thread;
	return tacho__dial9_by_tid(d, (uint32_t)tacho__dial9_number(e, k, 0, 0));
}

static void put_sample(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		       struct tacho__dial9_known *k)
{
	const struct tacho__dial9_value *name = tacho__dial9_get(e, k, 2);
	struct tacho__dial9_stacked *s;
	char text[32];

	if (d->look)
		return;
	s = keep(d, e, tacho__dial9_get(e, k, 3),
		 tacho__dial9_number(e, k, 1, 0) == 1 ? TACHO__DIAL9_SWITCH : TACHO__DIAL9_CPU);
	if (!s)
		return;
	s->thread = sampled_thread(d, e, k);
	if (name && d->has_tids) {
		tacho__dial9_text(&d->wire, name, text, sizeof(text));
		tacho__made_thread_name(d->made, s->thread, text);
	}
}

static void put_dump(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k)
{
	struct tacho__dial9_stacked *s =
		d->look ? NULL : keep(d, e, tacho__dial9_get(e, k, 1), TACHO__DIAL9_DUMP);

	if (!s)
		return;
	s->thread = tacho__dial9_here(d);
	s->number[0] = tacho__dial9_number(e, k, 0, 0);
}

static void put_alloc(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		      struct tacho__dial9_known *k)
{
	struct tacho__dial9_stacked *s =
		d->look ? NULL : keep(d, e, tacho__dial9_get(e, k, 3), TACHO__DIAL9_ALLOC);

	if (!s)
		return;
	s->thread = tacho__dial9_by_tid(d, (uint32_t)tacho__dial9_number(e, k, 0, 0));
	s->number[0] = tacho__dial9_number(e, k, 1, 0);
	s->number[1] = tacho__dial9_number(e, k, 2, 0);
}

const struct tacho__dial9_kind tacho__dial9_stacks[] = {
	{"SymbolTableEntry",
	 put_symbol,
	 {"addr", "symbol_name", "inline_depth", "source_file", "source_line"}},
	{"CpuSampleEvent", put_sample, {"tid", "source", "thread_name", "callchain", "worker_id"}},
	{"TaskDumpEvent", put_dump, {"task_id", "callchain"}},
	{"AllocEvent", put_alloc, {"tid", "size", "addr", "callchain"}},
	{NULL, NULL, {NULL}},
};

/* ----------------------------------------------------------------------- end */

/* All frames of a stack; how many, and whether there are more. */
static uint32_t all_frames(struct tacho__dial9 *d, const struct tacho__dial9_stacked *s,
			   uint64_t *frames, int *cut)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->count && count < FRAMES_MAX; i++)
		count += frames_of(d, d->words[s->stack + i], frames + count, FRAMES_MAX - count);
	*cut = s->count == FRAMES_MAX || count == FRAMES_MAX;
	return count;
}

/* The names of a stack in one line, innermost first. */
static void stack_text(const struct tacho__dial9 *d, const struct tacho__dial9_stacked *s,
		       char *text, size_t size)
{
	struct tacho__text t;
	char number[24];

	tacho__text_init(&t, text, size);
	for (uint32_t i = 0; i < s->count && !t.cut; i++) {
		uint64_t address = d->words[s->stack + i];
		uint32_t depth = 0, n;

		/* Code without frame pointers gives the same address over and over. */
		if (i && address == d->words[s->stack + i - 1])
			continue;
		while (depth < FRAMES_MAX && symbol_at(d, address, depth))
			depth++;
		snprintf(number, sizeof(number), "0x%" PRIx64, address);
		do {
			n = depth ? symbol_at(d, address, --depth) : 0;
			tacho__text_put(&t, t.size ? " < " : "");
			tacho__text_put(&t, n ? d->symbols[n - 1].function : number);
		} while (depth && !t.cut);
	}
}

/* An event with some numbers and the text of a stack, for which the format has no record. */
static void put_event(struct tacho__dial9 *d, const struct tacho__dial9_stacked *s,
		      const char *name, const struct tacho_field *fields, uint32_t count)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS] = {0};
	char text[TACHO_TEXT_MAX + 2];
	uint32_t n = 1;
	uint32_t id = tacho__made_define(d->made,
					 &(struct tacho_definition){.def_class = TACHO_DEF_SCHEMA,
								    .name = name,
								    .fields = fields,
								    .count = count});

	words[0] = ((UINT64_C(1) << count) - 1) << 16;
	for (uint32_t i = 0; i + 1 < count; i++)
		words[n++] = s->number[i];
	stack_text(d, s, text, sizeof(text));
	n += tacho__made_pack(words + n, text, strlen(text));
	tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_EVENT, id, words, n);
}

static void put_stacked(struct tacho__dial9 *d, const struct tacho__dial9_stacked *s)
{
	static const struct tacho_field switch_fields[] = {{"stack", TACHO_FIELD_STRING, 0}};
	static const struct tacho_field alloc_fields[] = {{"size", TACHO_FIELD_U64, 0},
							  {"address", TACHO_FIELD_U64, 0},
							  {"stack", TACHO_FIELD_STRING, 0}};
	uint64_t frames[FRAMES_MAX], words[3] = {0};
	uint32_t count, stack;
	int cut;

	if (s->what == TACHO__DIAL9_SWITCH) {
		put_event(d, s, "left its CPU", switch_fields, 1);
		return;
	}
	if (s->what == TACHO__DIAL9_ALLOC) {
		put_event(d, s, "sampled allocation", alloc_fields, 3);
		return;
	}
	count = all_frames(d, s, frames, &cut);
	stack = tacho__made_stack(d->made, frames, count, cut);
	if (s->what == TACHO__DIAL9_CPU) {
		tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_SAMPLE, stack, &d->sample_ns,
				1);
		return;
	}
	words[0] = (uint64_t)stack << 16;
	words[1] = s->number[0];
	tacho__made_put(d->made, s->thread, s->ns, TACHO_REC_TASK_WAITS, 0, words, 3);
}

void tacho__dial9_stacks_end(struct tacho__dial9 *d)
{
	uint32_t samples = 0;

	for (uint32_t i = 0; i < d->stacked_count; i++)
		samples += d->stacked[i].what == TACHO__DIAL9_CPU;
	if (samples)
		tacho__made_source(d->made, TACHO_SOURCE_CPU_SAMPLES);
	if (samples && !d->sample_ns) {
		d->sample_ns = 1000000000u / DEFAULT_HZ;
		tacho__made_say(d->made,
				"it does not say how often the CPU was sampled: %u times a second, "
				"dial9's default, is assumed",
				DEFAULT_HZ);
	}
	for (uint32_t i = 0; i < d->stacked_count && !d->error; i++)
		put_stacked(d, &d->stacked[i]);
}
