/* SYMBOLS blocks: what code addresses are called (format/trace.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

/* The parts of one block, all within its payload. */
struct block {
	struct tacho_trace_symbols head;
	const uint8_t *entries, *frames;
	const char *texts; /* copied, and ended by a zero */
};

static int take_apart(struct tacho_reader *r, struct block *b, const uint8_t *data, uint32_t size)
{
	uint64_t entries, frames;

	if (size < sizeof(b->head))
		return -EBADMSG;
	memcpy(&b->head, data, sizeof(b->head));
	if (b->head.size < sizeof(b->head) || b->head.size > size ||
	    b->head.entry_size < sizeof(struct tacho_trace_symbol) ||
	    b->head.frame_size < sizeof(struct tacho_trace_frame))
		return -EBADMSG;
	entries = (uint64_t)b->head.entry_size * b->head.entries;
	frames = (uint64_t)b->head.frame_size * b->head.frames;
	if (entries > size || frames > size ||
	    b->head.size + entries + frames + b->head.text_bytes > size || !b->head.text_bytes)
		return -EBADMSG;
	b->entries = data + b->head.size;
	b->frames = b->entries + entries;
	b->texts = tacho__arena_text(&r->arena, b->frames + frames, b->head.text_bytes);
	return b->texts ? 0 : -ENOMEM;
}

static struct tacho_symbol *take_frames(struct tacho_reader *r, const struct block *b)
{
	struct tacho_symbol *all =
		tacho__arena_get(&r->arena, (b->head.frames + 1ul) * sizeof(*all));

	for (uint32_t i = 0; all && i < b->head.frames; i++) {
		struct tacho_trace_frame f;

		memcpy(&f, b->frames + (size_t)i * b->head.frame_size, sizeof(f));
		all[i].function = f.function < b->head.text_bytes ? b->texts + f.function : "";
		all[i].file = f.file < b->head.text_bytes ? b->texts + f.file : "";
		all[i].line = f.line;
	}
	return all;
}

int tacho__symbols_add(struct tacho_reader *r, struct tacho__process *p, const uint8_t *data,
		       uint32_t size)
{
	const struct tacho_symbol *frames;
	struct block b;
	int err = take_apart(r, &b, data, size);

	if (err)
		return err;
	frames = take_frames(r, &b);
	if (!frames)
		return -ENOMEM;
	/* A file may blow up to many times its size. */
	if ((uint64_t)p->symbol_count + b.head.entries > r->arena.limit / sizeof(*p->symbols))
		return -EBADMSG;
	if (TACHO__GROW(p->symbols, p->symbol_capacity, p->symbol_count + b.head.entries))
		return -ENOMEM;
	for (uint32_t i = 0; i < b.head.entries; i++) {
		struct tacho_trace_symbol e;

		memcpy(&e, b.entries + (size_t)i * b.head.entry_size, sizeof(e));
		if (e.first > b.head.frames || e.frames > b.head.frames - e.first)
			return -EBADMSG;
		p->symbols[p->symbol_count++] = (struct tacho__symbol){
			.address = e.address,
			.module = e.module,
			.count = e.frames,
			.frames = frames + e.first,
		};
	}
	return 0;
}

static int compare(const void *va, const void *vb)
{
	const struct tacho__symbol *a = va, *b = vb;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->module < b->module ? -1 : a->module > b->module;
}

void tacho__symbols_settle(struct tacho__process *p)
{
	TACHO__SORT(p->symbols, p->symbol_count, compare);
}

const struct tacho_symbol *tacho_read_symbol(const struct tacho_reader *reader, uint32_t process,
					     uint64_t address, uint64_t ns, uint32_t index)
{
	const struct tacho__process *p;
	const struct tacho_definition *m;
	const struct tacho__symbol *found;
	struct tacho__symbol key = {.address = address};

	if (process >= reader->process_count || !reader->processes[process]->symbol_count)
		return NULL;
	p = reader->processes[process];
	m = tacho__definitions_module(&p->definitions, address, ns);
	key.module = m ? m->id : 0;
	found = bsearch(&key, p->symbols, p->symbol_count, sizeof(*p->symbols), compare);
	return found && index < found->count ? &found->frames[index] : NULL;
}
