#include "write/symbol_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define BLOCK_BYTES (256u << 10) /* small enough that one damaged block does not take them all */

void tacho__symbols_no_memory(struct tacho__output *o)
{
	tacho__output_fail(o, -ENOMEM,
			   "cannot write the symbols of the trace: out of memory; "
			   "free some and try again, or do without (--no-symbols)");
}

static void grow_table(struct tacho__symbol_block *b)
{
	uint32_t capacity = b->capacity ? 2 * b->capacity : 1024;
	uint32_t *table;

	if (b->used < b->capacity / 2)
		return;
	table = calloc(capacity, sizeof(*table));
	if (!table) {
		b->texts.error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < b->capacity; i++) {
		const char *text = (const char *)b->texts.data + b->table[i] - 1;
		uint32_t at;

		if (!b->table[i])
			continue;
		at = tacho__fnv1a(text, strlen(text), 0) & (capacity - 1);
		while (table[at])
			at = (at + 1) & (capacity - 1);
		table[at] = b->table[i];
	}
	free(b->table);
	b->table = table;
	b->capacity = capacity;
}

/* The offset of `text` among the texts, into which it is put if it is new. */
static uint32_t put_text(struct tacho__symbol_block *b, const char *text)
{
	static const char end;
	size_t size = text ? strnlen(text, TACHO__SYMBOL_TEXT_MAX) : 0;
	uint32_t at, offset;

	if (!b->texts.size)
		tacho__bytes_put(&b->texts, &end, 1);
	if (size)
		grow_table(b);
	if (!size || b->texts.error)
		return 0;
	at = tacho__fnv1a(text, size, 0) & (b->capacity - 1);
	for (; b->table[at]; at = (at + 1) & (b->capacity - 1)) {
		const char *other = (const char *)b->texts.data + b->table[at] - 1;

		if (!strncmp(other, text, size) && !other[size])
			return b->table[at] - 1;
	}
	offset = (uint32_t)b->texts.size;
	b->table[at] = offset + 1;
	b->used++;
	tacho__bytes_put(&b->texts, text, size);
	tacho__bytes_put(&b->texts, &end, 1);
	return offset;
}

static void put_entry(struct tacho__symbol_block *b, uint32_t module, uint64_t address,
		      const struct tacho__resolved *found, uint32_t count)
{
	struct tacho_trace_symbol entry = {
		.address = address,
		.module = module,
		.first = b->head.frames,
		.frames = count,
	};

	for (uint32_t i = 0; i < count; i++) {
		struct tacho_trace_frame frame = {
			.function = put_text(b, found[i].function),
			.file = put_text(b, found[i].file),
			.line = found[i].line,
		};

		tacho__bytes_put(&b->frames, &frame, sizeof(frame));
	}
	tacho__bytes_put(&b->entries, &entry, sizeof(entry));
	b->head.frames += count;
	b->head.entries++;
}

static void empty_block(struct tacho__symbol_block *b)
{
	b->head = (struct tacho_trace_symbols){0};
	b->entries.size = b->frames.size = b->texts.size = 0;
	for (uint32_t i = 0; i < b->capacity; i++)
		b->table[i] = 0;
	b->used = 0;
}

static void write_block(struct tacho__output *o, struct tacho__symbol_block *b)
{
	struct tacho__bytes all = {0};

	b->head.size = sizeof(b->head);
	b->head.entry_size = sizeof(struct tacho_trace_symbol);
	b->head.frame_size = sizeof(struct tacho_trace_frame);
	b->head.text_bytes = (uint32_t)b->texts.size;
	tacho__bytes_put(&all, &b->head, sizeof(b->head));
	tacho__bytes_put(&all, b->entries.data, b->entries.size);
	tacho__bytes_put(&all, b->frames.data, b->frames.size);
	tacho__bytes_put(&all, b->texts.data, b->texts.size);
	if (all.error || b->entries.error || b->frames.error || b->texts.error)
		tacho__symbols_no_memory(o);
	tacho__output_bytes(o, TACHO_BLOCK_SYMBOLS, &all);
	empty_block(b);
}

void tacho__symbols_put(struct tacho__output *o, struct tacho__symbol_block *b, uint32_t module,
			uint64_t address, const struct tacho__resolved *found, uint32_t count)
{
	if (count)
		put_entry(b, module, address, found, count);
	if (b->entries.size + b->frames.size + b->texts.size >= BLOCK_BYTES)
		write_block(o, b);
}

int tacho__symbols_end(struct tacho__output *o, struct tacho__symbol_block *b)
{
	if (b->head.entries && !o->error)
		write_block(o, b);
	free(b->table);
	tacho__bytes_free(&b->entries);
	tacho__bytes_free(&b->frames);
	tacho__bytes_free(&b->texts);
	return o->error;
}
