#include "agent/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/resolve.h"
#include "format/record.h"
#include "tacho_read.h"

#define ADDRESSES_MAX (1u << 20) /* more are not looked up */
#define INLINED_MAX 16u
#define BLOCK_BYTES (256u << 10) /* small enough that one damaged block does not take them all */
#define TEXT_MAX 4096u		 /* of a name; templates have no bounds */

/* ---------------------------------------------------------------- addresses */

static int compare(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? -1 : a > b;
}

static void make_unique(struct tacho__addresses *a)
{
	size_t kept = 0;

	if (a->count)
		qsort(a->at, a->count, sizeof(a->at[0]), compare);
	for (size_t i = 0; i < a->count; i++)
		if (!kept || a->at[kept - 1] != a->at[i])
			a->at[kept++] = a->at[i];
	a->count = kept;
}

static int add(struct tacho__addresses *a, uint64_t address)
{
	size_t capacity = a->capacity ? 2 * a->capacity : 4096;
	uint64_t *p;

	if (!address)
		return 0;
	if (a->count == a->capacity) {
		/* The same few come again and again. */
		make_unique(a);
		if (a->count > ADDRESSES_MAX)
			a->count = ADDRESSES_MAX;
		if (a->count > a->capacity / 2 || !a->capacity) {
			p = realloc(a->at, capacity * sizeof(*p));
			if (!p)
				return -ENOMEM;
			a->at = p;
			a->capacity = capacity;
		}
	}
	a->at[a->count++] = address;
	return 0;
}

/* `exact`: the first was interrupted, and is not where a call returns to. */
static int add_stack(struct tacho__addresses *a, const uint64_t *frames, uint32_t count, int exact)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++)
		err = add(a, i == 0 && exact ? frames[i] : frames[i] - 1);
	return err;
}

int tacho__addresses_of_facts(struct tacho__addresses *a, const struct tacho_reader *reader,
			      uint32_t process)
{
	uint32_t limit = tacho_read_definition_limit(reader, process);
	uint32_t crashes = tacho_read_crash_count(reader);
	int err = 0;

	for (uint32_t id = 1; !err && id < limit; id++) {
		const struct tacho_definition *d = tacho_read_definition(reader, process, id);

		if (d && d->def_class == TACHO_DEF_STACK)
			err = add_stack(a, d->frames, d->count, (int)d->exact);
		else if (d && d->def_class == TACHO_DEF_KIND)
			err = add(a, d->value);
		else if (d && d->def_class == TACHO_DEF_PLACE && d->value)
			err = add(a, d->value - 1);
	}
	for (uint32_t i = 0; !err && i < crashes; i++) {
		const struct tacho_crash_info *c = tacho_read_crash(reader, i);

		if (c && c->process == process)
			err = add_stack(a, c->frames, c->frame_count, 1);
	}
	return err;
}

int tacho__addresses_of_records(struct tacho__addresses *a, const struct tacho__records *r)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < r->head.count; i++) {
		uint32_t words = r->word_at[i + 1] - r->word_at[i];
		const uint64_t *frames = r->words + r->word_at[i] + 2;
		unsigned type = tacho_record_type(r->type_arg[i]);
		uint32_t kernel = tacho_record_arg(r->type_arg[i]);

		if (words <= 2)
			continue;
		if (type == TACHO_REC_SAMPLE_FRAMES)
			err = add_stack(a, frames, words - 2, 1);
		if (type != TACHO_REC_KERNEL_SAMPLE)
			continue;
		/* Two stacks: each begins where something was interrupted. */
		kernel = kernel < words - 2 ? kernel : words - 2;
		err = add_stack(a, frames, kernel, 1);
		if (!err)
			err = add_stack(a, frames + kernel, words - 2 - kernel, 1);
	}
	return err;
}

void tacho__addresses_free(struct tacho__addresses *a)
{
	free(a->at);
	*a = (struct tacho__addresses){0};
}

/* -------------------------------------------------------------------- block */

/* One SYMBOLS block being put together. */
struct block {
	struct tacho_trace_symbols head;
	struct tacho__bytes entries, frames, texts;
	uint32_t *table; /* offset of a text + 1, by its hash; 0: none */
	uint32_t capacity, used;
};

static uint32_t hash_of(const char *text, size_t size)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (uint8_t)text[i]) * 16777619u;
	return h;
}

static int grow_table(struct block *b)
{
	uint32_t capacity = b->capacity ? 2 * b->capacity : 1024;
	uint32_t *old = b->table;
	uint32_t *table;

	if (b->used < b->capacity / 2)
		return 0;
	table = calloc(capacity, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->capacity; i++) {
		const char *text = (const char *)b->texts.data + b->table[i] - 1;
		uint32_t at;

		if (!b->table[i])
			continue;
		at = hash_of(text, strlen(text)) & (capacity - 1);
		while (table[at])
			at = (at + 1) & (capacity - 1);
		table[at] = b->table[i];
	}
	b->table = table;
	b->capacity = capacity;
	free(old);
	return 0;
}

/* The offset of `text` among the texts, into which it is put if it is new. */
static int put_text(struct block *b, const char *text, uint32_t *offset)
{
	static const char end;
	size_t size = text ? strnlen(text, TEXT_MAX) : 0;
	uint32_t at;
	int err = 0;

	if (!b->texts.size)
		err = tacho__bytes_put(&b->texts, &end, 1);
	*offset = 0;
	if (err || !size)
		return err;
	err = grow_table(b);
	if (err)
		return err;
	at = hash_of(text, size) & (b->capacity - 1);
	for (; b->table[at]; at = (at + 1) & (b->capacity - 1)) {
		const char *other = (const char *)b->texts.data + b->table[at] - 1;

		if (!strncmp(other, text, size) && !other[size]) {
			*offset = b->table[at] - 1;
			return 0;
		}
	}
	*offset = (uint32_t)b->texts.size;
	b->table[at] = *offset + 1;
	b->used++;
	err = tacho__bytes_put(&b->texts, text, size);
	return err ? err : tacho__bytes_put(&b->texts, &end, 1);
}

static int put_entry(struct block *b, const struct tacho_definition *module, uint64_t address,
		     const struct tacho__resolved *found, uint32_t count)
{
	struct tacho_trace_symbol entry = {
		.address = address,
		.module = module ? module->id : 0,
		.first = b->head.frames,
		.frames = count,
	};
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		struct tacho_trace_frame frame = {.line = found[i].line};

		err = put_text(b, found[i].function, &frame.function);
		if (!err)
			err = put_text(b, found[i].file, &frame.file);
		if (!err)
			err = tacho__bytes_put(&b->frames, &frame, sizeof(frame));
	}
	if (!err)
		err = tacho__bytes_put(&b->entries, &entry, sizeof(entry));
	b->head.frames += count;
	b->head.entries++;
	return err;
}

static void empty_block(struct block *b)
{
	b->head = (struct tacho_trace_symbols){0};
	b->entries.size = b->frames.size = b->texts.size = 0;
	if (b->table)
		memset(b->table, 0, b->capacity * sizeof(b->table[0]));
	b->used = 0;
}

static int write_block(struct tacho__output *o, struct block *b)
{
	struct tacho__bytes all = {0};
	int err;

	b->head.size = sizeof(b->head);
	b->head.entry_size = sizeof(struct tacho_trace_symbol);
	b->head.frame_size = sizeof(struct tacho_trace_frame);
	b->head.text_bytes = (uint32_t)b->texts.size;
	err = tacho__bytes_put(&all, &b->head, sizeof(b->head));
	if (!err)
		err = tacho__bytes_put(&all, b->entries.data, b->entries.size);
	if (!err)
		err = tacho__bytes_put(&all, b->frames.data, b->frames.size);
	if (!err)
		err = tacho__bytes_put(&all, b->texts.data, b->texts.size);
	if (!err)
		err = tacho__output_block(o, TACHO_BLOCK_SYMBOLS, all.data, all.size, NULL, NULL);
	tacho__bytes_free(&all);
	empty_block(b);
	return err;
}

/* ------------------------------------------------------------------ writing */

/* What a trace that is written anew says already. */
static uint32_t known(const struct tacho_reader *reader, uint32_t process, uint64_t address,
		      uint64_t ns, struct tacho__resolved *out)
{
	struct tacho_symbol s;
	uint32_t n = 0;

	for (; n < INLINED_MAX && tacho_read_symbol(reader, process, address, ns, n, &s); n++)
		out[n] = (struct tacho__resolved){s.function, s.file, s.line};
	return n;
}

/* Every module that ever held the address; or none did. */
static int put_address(struct tacho__output *o, struct block *b, struct tacho__resolver *r,
		       const struct tacho_reader *reader, uint32_t process, uint64_t address)
{
	struct tacho__resolved found[INLINED_MAX];
	const struct tacho_definition *m;
	uint64_t ns = UINT64_MAX;
	int err = 0;

	do {
		uint32_t count = known(reader, process, address, ns, found);

		m = tacho_read_module_at(reader, process, address, ns);
		if (!count)
			count = tacho__resolve(r, m, address, found, INLINED_MAX);
		if (count)
			err = put_entry(b, m, address, found, count);
		if (!err && b->entries.size + b->frames.size + b->texts.size >= BLOCK_BYTES)
			err = write_block(o, b);
		/* Then the one before it at this place: a later module replaces an earlier one. */
		ns = m && m->since_ns ? m->since_ns - 1 : 0;
	} while (!err && ns && tacho_read_module_at(reader, process, address, ns));
	return err;
}

int tacho__put_symbols(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process,
		       struct tacho__addresses *a)
{
	struct tacho__resolver *r = tacho__resolver_new(tacho_read_process(reader, process));
	struct block b = {.used = 0};
	int err = r ? 0 : -ENOMEM;

	make_unique(a);
	for (size_t i = 0; !err && i < a->count && i < ADDRESSES_MAX; i++)
		err = put_address(o, &b, r, reader, process, a->at[i]);
	if (!err && b.head.entries)
		err = write_block(o, &b);
	if (err == -ENOMEM)
		err = tacho__output_fail(o, err,
					 "cannot write the symbols of the trace: out of memory; "
					 "free some and try again, or do without (--no-symbols)");
	free(b.table);
	tacho__bytes_free(&b.entries);
	tacho__bytes_free(&b.frames);
	tacho__bytes_free(&b.texts);
	tacho__resolver_free(r);
	return err;
}
