#include "write/trace_parts.h"

#include <stdlib.h>

#include "read/input.h"
#include "read/memory.h"
#include "read/records.h"
#include "symbols/child.h"
#include "tacho_read.h"
#include "write/symbol_block.h"

/* What a trace that is written anew says already. */
static uint32_t known(const struct tacho_reader *reader, uint32_t process,
		      const struct tacho__asked *a, uint64_t ns, struct tacho__resolved *out)
{
	const struct tacho_symbol *s;
	uint32_t n = 0;

	for (;
	     n < TACHO__INLINED_MAX && (s = tacho_read_symbol(reader, process, a->address, ns, n));
	     n++)
		out[n] = (struct tacho__resolved){s->function, s->file, s->line};
	return n;
}

/* Addresses to be looked up, and what is put of those that are known. */
struct lookup {
	struct tacho__output *o;
	const struct tacho_reader *reader;
	uint32_t process;
	struct tacho__symbol_block block;
	struct tacho__asked *asked;
	uint32_t count, capacity;
};

static void put(struct lookup *l, const struct tacho__asked *a, const struct tacho__resolved *found,
		uint32_t count)
{
	tacho__symbols_put(l->o, &l->block, a->module ? a->module->id : 0, a->address, found,
			   count);
}

/* Every module that ever held the address; or none did. */
static void ask(struct lookup *l, uint64_t address)
{
	struct tacho__resolved found[TACHO__INLINED_MAX];
	uint64_t ns = UINT64_MAX;

	do {
		struct tacho__asked a = {tacho_read_module_at(l->reader, l->process, address, ns),
					 address};
		uint32_t count = known(l->reader, l->process, &a, ns, found);

		if (count)
			put(l, &a, found, count);
		else if (TACHO__GROW(l->asked, l->capacity, l->count + 1))
			tacho__symbols_no_memory(l->o);
		else
			l->asked[l->count++] = a;
		/* Then the one before it at this place: a later module replaces an earlier one. */
		ns = a.module && a.module->since_ns ? a.module->since_ns - 1 : 0;
	} while (!l->o->error && ns && tacho_read_module_at(l->reader, l->process, address, ns));
}

static void look_up(struct lookup *l)
{
	struct tacho__resolved found[TACHO__INLINED_MAX];
	const char *box;
	struct tacho__rights rights = tacho__read_rights(l->reader, l->process, &box);
	struct tacho__child *c;

	/* Once more: it may have given them up just before it wrote what was read. */
	if (box)
		tacho__rights_of_box(&rights, box);
	c = tacho__child_new(tacho_read_process(l->reader, l->process), &rights, l->asked,
			     l->count);
	if (!c)
		tacho__symbols_no_memory(l->o);
	for (uint32_t i = 0; c && !l->o->error && i < l->count; i++)
		put(l, &l->asked[i], found, tacho__child_next(c, found));
	if (c && tacho__child_why(c)[0])
		tacho__put_meta_names(l->o, tacho__child_why(c));
	tacho__child_free(c);
}

int tacho__put_symbols(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process,
		       struct tacho__addresses *a)
{
	struct lookup l = {.o = o, .reader = reader, .process = process};

	tacho__addresses_sort(a);
	for (size_t i = 0; !o->error && i < a->count && i < TACHO__ADDRESSES_MAX; i++)
		ask(&l, a->at[i]);
	if (!o->error && l.count)
		look_up(&l);
	tacho__symbols_end(o, &l.block);
	free(l.asked);
	return o->error;
}
