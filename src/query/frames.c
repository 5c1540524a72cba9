/*
 * The table of stacks that samples and others name.
 *
 * A sample may carry its stack instead of the number of one. Such a stack gets a number here, the
 * same for the same addresses, in the order of their first samples.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/code.h"
#include "query/fill.h"
#include "read/memory.h"

#define STACKS_MAX (1u << 20)
#define FRAMES_MAX (1u << 26) /* of all of them together */

struct stack {
	struct tacho__entry entry; /* key: two hashes */
	uint32_t number;	   /* from 1; 0: new */
};

struct stored {
	uint64_t ns;
	uint32_t process, first, count, kernel;
};

struct tacho__sql_stacks {
	struct tacho__table by_hash;
	struct stored *stored; /* by number - 1 */
	uint32_t count, capacity;
	uint64_t *frames;
	uint32_t frame_count, frame_capacity;
};

/* ------------------------------------------------------------------- stacks */

static int store(struct tacho__sql_stacks *k, struct stack *entry, const struct tacho__stack *stack)
{
	if (TACHO__GROW(k->stored, k->capacity, k->count + 1) ||
	    TACHO__GROW(k->frames, k->frame_capacity, k->frame_count + stack->count))
		return -ENOMEM;
	memcpy(k->frames + k->frame_count, stack->frames, stack->count * sizeof(*k->frames));
	k->stored[k->count++] = (struct stored){stack->ns, stack->process, k->frame_count,
						stack->count, stack->kernel};
	k->frame_count += stack->count;
	entry->number = k->count;
	return 0;
}

uint32_t tacho__sql_stack(struct tacho__sql_filling *f, const struct tacho__sample *m)
{
	struct tacho__sql_stacks *k = f->source->stacks;
	struct tacho__stack stack;
	struct stack *entry;
	uint64_t hash[2];

	if (m->stack || !tacho__stack_of_sample(f->source->reader, m, &stack))
		return m->stack;
	if (!k) {
		k = f->source->stacks = calloc(1, sizeof(*k));
		if (!k) {
			f->error = -ENOMEM;
			return 0;
		}
		tacho__table_init(&k->by_hash, sizeof(struct stack), STACKS_MAX);
	}
	tacho__stack_hash(&stack, hash);
	entry = tacho__table_get(&k->by_hash, hash[0], hash[1], &f->error);
	if (!entry)
		return 0;
	if (!entry->number) {
		int error = k->frame_count > FRAMES_MAX ? 1 : store(k, entry, &stack);

		if (error) {
			f->error = error < 0 ? error : f->error;
			tacho__table_remove(&k->by_hash, entry);
			return 0;
		}
	}
	return SQL_STACKS_FROM + entry->number - 1;
}

uint32_t tacho__sql_stack_places(const struct tacho__sql_source *s, uint32_t process,
				 uint32_t number, struct tacho__place *out, uint32_t most,
				 uint32_t *kernel)
{
	const struct tacho__sql_stacks *k = s->stacks;
	const struct stored *t;
	const uint64_t *frames;

	*kernel = 0;
	if (number < SQL_STACKS_FROM)
		return tacho__places_of_id(s->reader, process, number, UINT64_MAX, out, most);
	if (!k || number - SQL_STACKS_FROM >= k->count)
		return 0;
	t = &k->stored[number - SQL_STACKS_FROM];
	frames = k->frames + t->first;
	*kernel = tacho__places_of_frames(s->reader, t->process, frames, t->kernel, 1, t->ns, out,
					  most);
	return *kernel + tacho__places_of_frames(s->reader, t->process, frames + t->kernel,
						 t->count - t->kernel, 1, t->ns, out + *kernel,
						 most - *kernel);
}

void tacho__sql_stacks_free(struct tacho__sql_source *s)
{
	if (!s->stacks)
		return;
	tacho__table_free(&s->stacks->by_hash);
	free(s->stacks->stored);
	free(s->stacks->frames);
	free(s->stacks);
	s->stacks = NULL;
}

uint64_t tacho__sql_address(struct tacho__sql_filling *f, const struct tacho__sample *m)
{
	struct tacho__stack stack;

	return tacho__stack_of_sample(f->source->reader, m, &stack) ? stack.frames[0] : 0;
}

/* ------------------------------------------------------------------- frames */

static void put_frames(struct tacho__sql_filling *f, uint32_t process, uint32_t number)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t kernel, n = tacho__sql_stack_places(f->source, process, number, places,
						     TACHO__PLACES_MAX, &kernel);

	for (uint32_t i = 0; i < n; i++) {
		struct tacho__sql_frame row = {process, number, i, &places[i], i < kernel};

		tacho__sql_put_frame(f, &row);
	}
}

static void number_sample(void *arg, const struct tacho__sample *m)
{
	tacho__sql_stack(arg, m);
}

int tacho__sql_fill_frame(struct tacho__sql_filling *f)
{
	const struct tacho__facts facts = {.sample = number_sample};
	struct tacho_reader *reader = f->source->reader;
	const struct tacho__sql_stacks *stacks;
	int error = tacho__sql_run(f, &facts);

	if (error)
		return error;
	for (uint32_t p = 0; p < tacho_read_process_count(reader); p++)
		for (uint32_t id = 1; id < tacho_read_definition_limit(reader, p); id++) {
			const struct tacho_definition *d = tacho_read_definition(reader, p, id);

			if (d && d->def_class == TACHO_DEF_STACK)
				put_frames(f, p, id);
		}
	stacks = f->source->stacks;
	for (uint32_t i = 0; stacks && i < stacks->count; i++)
		put_frames(f, stacks->stored[i].process, SQL_STACKS_FROM + i);
	return f->error;
}
