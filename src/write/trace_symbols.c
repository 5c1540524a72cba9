#include "write/trace_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbols/resolve.h"
#include "tacho_read.h"

#define INLINED_MAX 16u
#define BLOCK_BYTES (256u << 10) /* small enough that one damaged block does not take them all */
#define TEXT_MAX 4096u		 /* of a name; templates have no bounds */

/* -------------------------------------------------------------------- block */

/* One SYMBOLS block being put together. */
struct block {
	struct tacho_trace_symbols head;
	struct tacho__bytes entries, frames, texts;
	uint32_t *table; /* offset of a text + 1, by its hash; 0: none */
	uint32_t capacity, used;
};

static void grow_table(struct block *b)
{
	uint32_t capacity = b->capacity ? 2 * b->capacity : 1024;
	uint32_t *old = b->table;
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
	b->table = table;
	b->capacity = capacity;
	free(old);
}

/* The offset of `text` among the texts, into which it is put if it is new. */
static uint32_t put_text(struct block *b, const char *text)
{
	static const char end;
	size_t size = text ? strnlen(text, TEXT_MAX) : 0;
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

static void put_entry(struct block *b, const struct tacho_definition *module, uint64_t address,
		      const struct tacho__resolved *found, uint32_t count)
{
	struct tacho_trace_symbol entry = {
		.address = address,
		.module = module ? module->id : 0,
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

static void empty_block(struct block *b)
{
	b->head = (struct tacho_trace_symbols){0};
	b->entries.size = b->frames.size = b->texts.size = 0;
	if (b->table)
		memset(b->table, 0, b->capacity * sizeof(b->table[0]));
	b->used = 0;
}

static void no_memory(struct tacho__output *o)
{
	tacho__output_fail(o, -ENOMEM,
			   "cannot write the symbols of the trace: out of memory; "
			   "free some and try again, or do without (--no-symbols)");
}

static void write_block(struct tacho__output *o, struct block *b)
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
		no_memory(o);
	tacho__output_bytes(o, TACHO_BLOCK_SYMBOLS, &all);
	empty_block(b);
}

/* ------------------------------------------------------------------ writing */

/* What a trace that is written anew says already. */
static uint32_t known(const struct tacho_reader *reader, uint32_t process, uint64_t address,
		      uint64_t ns, struct tacho__resolved *out)
{
	const struct tacho_symbol *s;
	uint32_t n = 0;

	for (; n < INLINED_MAX && (s = tacho_read_symbol(reader, process, address, ns, n)); n++)
		out[n] = (struct tacho__resolved){s->function, s->file, s->line};
	return n;
}

/* Every module that ever held the address; or none did. */
static void put_address(struct tacho__output *o, struct block *b, struct tacho__resolver *r,
			const struct tacho_reader *reader, uint32_t process, uint64_t address)
{
	struct tacho__resolved found[INLINED_MAX];
	const struct tacho_definition *m;
	uint64_t ns = UINT64_MAX;

	do {
		uint32_t count = known(reader, process, address, ns, found);

		m = tacho_read_module_at(reader, process, address, ns);
		if (!count)
			count = tacho__resolve(r, m, address, found, INLINED_MAX);
		if (count)
			put_entry(b, m, address, found, count);
		if (b->entries.size + b->frames.size + b->texts.size >= BLOCK_BYTES)
			write_block(o, b);
		/* Then the one before it at this place: a later module replaces an earlier one. */
		ns = m && m->since_ns ? m->since_ns - 1 : 0;
	} while (!o->error && ns && tacho_read_module_at(reader, process, address, ns));
}

int tacho__put_symbols(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process,
		       struct tacho__addresses *a)
{
	struct tacho__resolver *r = tacho__resolver_new(tacho_read_process(reader, process));
	struct block b = {.used = 0};

	if (!r)
		no_memory(o);
	tacho__addresses_sort(a);
	for (size_t i = 0; !o->error && i < a->count && i < TACHO__ADDRESSES_MAX; i++)
		put_address(o, &b, r, reader, process, a->at[i]);
	if (b.head.entries)
		write_block(o, &b);
	free(b.table);
	tacho__bytes_free(&b.entries);
	tacho__bytes_free(&b.frames);
	tacho__bytes_free(&b.texts);
	tacho__resolver_free(r);
	return o->error;
}
