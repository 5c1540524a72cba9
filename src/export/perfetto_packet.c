#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "export/perfetto.h"

#define SEQUENCE 1u
#define STATE_CLEARED 1u
#define NEEDS_STATE 2u
#define CLOCK_MONOTONIC_ID 3u
#define COUNTER_SW_CPU_CLOCK 1u

#define TEXTS_MAX (1u << 17)
#define STACKS_MAX (1u << 16)

enum { INTERNED_ID = 1, INTERNED_TEXT = 2 };
enum { DEFAULTS_SAMPLE = 12, DEFAULTS_CLOCK = 58, SAMPLE_TIMEBASE = 1, TIMEBASE_COUNTER = 4 };
enum { FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_PC = 4, FRAME_SOURCE = 5, FRAME_LINE = 6 };
enum {
	MAPPING_BUILD_ID = 2,
	MAPPING_OFFSET = 3,
	MAPPING_START = 4,
	MAPPING_END = 5,
	MAPPING_PATH = 7,
	MAPPING_EXACT_OFFSET = 8,
};

/* key of texts: the field and a hash of the text; of the others: what they are made of */
struct numbered {
	struct tacho__entry entry;
	uint64_t id;
};

static void send(struct tacho__perfetto *p)
{
	uint8_t head[16] = {PF_PACKET << 3 | 2};
	size_t size = p->packet.size, n = 1;

	if (p->packet.bad || p->interned.bad || p->event.bad || p->built.bad)
		p->error = -ENOMEM;
	if (p->error)
		return;
	for (; size >= 0x80; size >>= 7)
		head[n++] = (uint8_t)(size | 0x80);
	head[n++] = (uint8_t)size;
	p->error = p->options->sink.write(p->options->sink.arg, head, n);
	if (!p->error)
		p->error = p->options->sink.write(p->options->sink.arg, p->packet.data,
						  p->packet.size);
	p->exported->packets++;
}

/* What packets of the sequence have where they do not say otherwise. */
static void put_defaults(struct tacho__perfetto *p)
{
	size_t begin = tacho__proto_begin(&p->packet, PF_DEFAULTS), sample, timebase;

	tacho__proto_u64(&p->packet, DEFAULTS_CLOCK, CLOCK_MONOTONIC_ID);
	sample = tacho__proto_begin(&p->packet, DEFAULTS_SAMPLE);
	timebase = tacho__proto_begin(&p->packet, SAMPLE_TIMEBASE);
	tacho__proto_u64(&p->packet, TIMEBASE_COUNTER, COUNTER_SW_CPU_CLOCK);
	tacho__proto_end(&p->packet, timebase);
	tacho__proto_end(&p->packet, sample);
	tacho__proto_end(&p->packet, begin);
}

void tacho__pf_put(struct tacho__perfetto *p, uint32_t field, uint64_t ns,
		   const struct tacho__proto *body)
{
	struct tacho__proto *k = &p->packet;

	k->size = 0;
	if (field != PF_TRACK_DESCRIPTOR)
		tacho__proto_u64(k, PF_TIMESTAMP, ns);
	tacho__proto_u64(k, PF_SEQUENCE, SEQUENCE);
	tacho__proto_u64(k, PF_SEQUENCE_FLAGS, NEEDS_STATE | (p->cleared ? STATE_CLEARED : 0));
	if (p->cleared)
		put_defaults(p);
	p->cleared = 0;
	if (p->interned.size) {
		tacho__proto_bytes(k, PF_INTERNED_DATA, p->interned.data, p->interned.size);
		p->interned.size = 0;
	}
	tacho__proto_bytes(k, field, body->data, body->size);
	if (body->bad)
		p->error = -ENOMEM;
	send(p);
}

/* ------------------------------------------------------------------ interning */

int tacho__pf_is_full(const struct tacho__perfetto *p)
{
	/* One packet may add a whole stack. */
	return p->texts.count + 4 * TACHO__STACK_MAX > TEXTS_MAX ||
	       p->stacks.count + 8 > STACKS_MAX ||
	       p->codes.table.count + 2 * TACHO__STACK_MAX > TACHO__CODES_MAX;
}

void tacho__pf_clear(struct tacho__perfetto *p)
{
	tacho__table_free(&p->texts);
	tacho__table_free(&p->stacks);
	tacho__table_free(&p->mappings);
	tacho__table_init(&p->texts, sizeof(struct numbered), TEXTS_MAX);
	tacho__table_init(&p->stacks, sizeof(struct numbered), STACKS_MAX);
	tacho__table_init(&p->mappings, sizeof(struct numbered), STACKS_MAX);
	tacho__codes_clear(&p->codes);
	p->interned.size = 0;
	p->cleared = 1;
}

static uint64_t intern_bytes(struct tacho__perfetto *p, enum tacho__pf_interned what,
			     const void *data, size_t size, int is_text)
{
	struct numbered *n =
		tacho__table_get(&p->texts, tacho__hash_bytes(data, size, what),
				 tacho__hash_bytes(data, size, what + 100u), &p->error);
	size_t begin;

	if (!n)
		return 0;
	if (!n->id) {
		n->id = p->texts.count;
		begin = tacho__proto_begin(&p->interned, what);
		tacho__proto_u64(&p->interned, INTERNED_ID, n->id);
		if (is_text)
			tacho__proto_text(&p->interned, INTERNED_TEXT, data);
		else
			tacho__proto_bytes(&p->interned, INTERNED_TEXT, data, size);
		tacho__proto_end(&p->interned, begin);
	}
	return n->id;
}

uint64_t tacho__pf_text(struct tacho__perfetto *p, enum tacho__pf_interned what, const char *text)
{
	return intern_bytes(p, what, text, strlen(text), 1);
}

/* -------------------------------------------------------------------- stacks */

/* A frame without a mapping is none for the trace processor. */
static uint64_t mapping_id(struct tacho__perfetto *p, const struct tacho__code *code)
{
	const struct tacho_definition *d = code->module;
	uint64_t key = d ? d->id : code->kernel ? 1ull << 32 : 1ull << 33;
	struct numbered *n = tacho__table_get(&p->mappings, code->process, key, &p->error);
	uint64_t path, build_id = 0;
	size_t begin;

	if (!n)
		return 0;
	if (n->id)
		return n->id;
	n->id = p->mappings.count;
	path = tacho__pf_text(p, PF_PATHS, d ? d->name : code->kernel ? "[kernel]" : "[not known]");
	if (d && d->build_id_size)
		build_id = intern_bytes(p, PF_BUILD_IDS, d->build_id, d->build_id_size, 0);
	begin = tacho__proto_begin(&p->interned, PF_MAPPINGS);
	tacho__proto_u64(&p->interned, INTERNED_ID, n->id);
	if (build_id)
		tacho__proto_u64(&p->interned, MAPPING_BUILD_ID, build_id);
	if (d) {
		tacho__proto_u64(&p->interned, MAPPING_OFFSET, d->offset);
		tacho__proto_u64(&p->interned, MAPPING_EXACT_OFFSET, d->offset);
		tacho__proto_u64(&p->interned, MAPPING_START, d->start);
		tacho__proto_u64(&p->interned, MAPPING_END, d->end);
	}
	tacho__proto_u64(&p->interned, MAPPING_PATH, path);
	tacho__proto_end(&p->interned, begin);
	return n->id;
}

/* Frames of one address have numbers of their own: its place and the line's. */
#define LINES_OF_CODE 32u
static uint64_t frame_number(const struct tacho__code *code, uint32_t line)
{
	return (uint64_t)code->id * LINES_OF_CODE + line;
}

static void put_frames(struct tacho__perfetto *p, struct tacho__code *code)
{
	const struct tacho_definition *d = code->module;
	uint64_t mapping = mapping_id(p, code);
	uint64_t pc = d ? code->address - d->start + d->offset : code->address;
	uint32_t count = code->count ? code->count : 1;

	for (uint32_t i = 0; i < count && i < LINES_OF_CODE; i++) {
		const struct tacho__code_line *l =
			code->count ? tacho__code_line(&p->codes, code, i) : NULL;
		uint64_t function = l ? tacho__pf_text(p, PF_FUNCTIONS, l->function) : 0;
		uint64_t source = l && l->file[0] ? tacho__pf_text(p, PF_SOURCES, l->file) : 0;
		size_t begin = tacho__proto_begin(&p->interned, PF_FRAMES);

		tacho__proto_u64(&p->interned, INTERNED_ID, frame_number(code, i));
		if (function)
			tacho__proto_u64(&p->interned, FRAME_FUNCTION, function);
		tacho__proto_u64(&p->interned, FRAME_MAPPING, mapping);
		tacho__proto_u64(&p->interned, FRAME_PC, pc);
		if (source)
			tacho__proto_u64(&p->interned, FRAME_SOURCE, source);
		if (l && l->line)
			tacho__proto_u64(&p->interned, FRAME_LINE, l->line);
		tacho__proto_end(&p->interned, begin);
	}
	code->mark = 1;
}

uint64_t tacho__pf_stack(struct tacho__perfetto *p, const struct tacho__stack *stack)
{
	struct tacho__proto ids = {0};
	struct numbered *n;
	uint64_t hash[2];
	size_t begin;

	if (!stack->count)
		return 0;
	tacho__stack_hash(stack, hash);
	n = tacho__table_get(&p->stacks, hash[0], hash[1], &p->error);
	if (!n || n->id)
		return n ? n->id : 0;
	n->id = p->stacks.count;
	tacho__proto_u64(&ids, INTERNED_ID, n->id);
	/* The outermost comes first. */
	for (uint32_t i = stack->count; i-- > 0 && !p->error;) {
		struct tacho__code *code = tacho__code_of(&p->codes, stack, i, &p->error);

		if (!code) {
			p->exported->left_out++;
			continue;
		}
		if (code->tachos)
			continue;
		if (!code->mark)
			put_frames(p, code);
		for (uint32_t k = code->count ? code->count : 1; k-- > 0;)
			if (k < LINES_OF_CODE)
				tacho__proto_u64(&ids, INTERNED_TEXT, frame_number(code, k));
	}
	begin = tacho__proto_begin(&p->interned, PF_CALLSTACKS);
	tacho__proto_raw(&p->interned, ids.data, ids.size);
	tacho__proto_end(&p->interned, begin);
	p->interned.bad |= ids.bad;
	tacho__proto_free(&ids);
	return n->id;
}
