#include "export/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/place.h"
#include "read/memory.h"

#define INLINED_MAX 32u
#define THREADS_MAX (1u << 15)

void tacho__codes_init(struct tacho__codes *c, const struct tacho_reader *reader)
{
	memset(c, 0, sizeof(*c));
	c->reader = reader;
	tacho__table_init(&c->table, sizeof(struct tacho__code), TACHO__CODES_MAX);
}

void tacho__codes_clear(struct tacho__codes *c)
{
	tacho__table_free(&c->table);
	c->line_count = 0;
}

void tacho__codes_free(struct tacho__codes *c)
{
	tacho__codes_clear(c);
	free(c->lines);
	c->lines = NULL;
	c->line_room = 0;
}

static int add_lines(struct tacho__codes *c, struct tacho__code *code,
		     const struct tacho__place *places, uint32_t count)
{
	if (TACHO__GROW(c->lines, c->line_room, c->line_count + count))
		return -ENOMEM;
	code->first = c->line_count;
	for (uint32_t i = 0; i < count; i++) {
		if (!places[i].function[0])
			continue;
		c->lines[c->line_count++] = (struct tacho__code_line){
			places[i].function, places[i].file, places[i].line};
		code->count++;
	}
	return 0;
}

struct tacho__code *tacho__code_of(struct tacho__codes *c, const struct tacho__stack *stack,
				   uint32_t index, int *error)
{
	int kernel = index < stack->kernel;
	int is_return = index > 0 ? index != stack->kernel : !stack->exact;
	uint64_t frame = stack->frames[index];
	struct tacho__place places[INLINED_MAX];
	struct tacho__code *code;
	uint32_t n;

	code = tacho__table_get(&c->table,
				(uint64_t)stack->process << 2 | (uint64_t)kernel << 1 |
					(uint64_t)is_return,
				frame, error);
	if (!code || code->id)
		return code;
	code->id = c->table.count;
	code->process = stack->process;
	code->kernel = (uint32_t)kernel;
	code->address = frame - (is_return && frame ? 1 : 0);
	if (!kernel)
		code->module =
			tacho_read_module_at(c->reader, stack->process, code->address, stack->ns);
	n = tacho__places_of_frames(c->reader, stack->process, &code->address, 1, 1, stack->ns,
				    places, INLINED_MAX);
	code->tachos = !n;
	for (uint32_t i = 0; i < n; i++)
		c->scripts |= tacho__place_is_script(&places[i]);
	if (!c->advice[0])
		tacho__language_advice(c->advice, places, n);
	if (add_lines(c, code, places, n) < 0) {
		*error = -ENOMEM;
		return NULL;
	}
	return code;
}

const struct tacho__code_line *tacho__code_line(const struct tacho__codes *c,
						const struct tacho__code *code, uint32_t index)
{
	return &c->lines[code->first + index];
}

/* ------------------------------------------------------------------- stacks */

int tacho__stack_of_id(const struct tacho_reader *reader, uint32_t process, uint32_t id,
		       uint64_t ns, struct tacho__stack *stack)
{
	const struct tacho_definition *d = id ? tacho_read_definition(reader, process, id) : NULL;

	memset(stack, 0, sizeof(*stack));
	stack->process = process;
	stack->ns = ns;
	if (!d)
		return 0;
	if (d->def_class == TACHO_DEF_STACK) {
		stack->frames = d->frames;
		stack->count = d->count < TACHO__STACK_MAX ? d->count : TACHO__STACK_MAX;
		stack->exact = d->exact != 0;
	} else if (d->value &&
		   (d->def_class == TACHO_DEF_PLACE || d->def_class == TACHO_DEF_KIND)) {
		stack->frames = &d->value;
		stack->count = 1;
		stack->exact = d->def_class == TACHO_DEF_KIND;
	}
	return stack->count > 0;
}

int tacho__stack_of_sample(const struct tacho_reader *reader, const struct tacho__sample *s,
			   struct tacho__stack *stack)
{
	if (s->stack)
		return tacho__stack_of_id(reader, s->at.process, s->stack, s->ns, stack);
	*stack = (struct tacho__stack){
		.process = s->at.process,
		.frames = s->frames,
		.count = s->count < TACHO__STACK_MAX ? s->count : TACHO__STACK_MAX,
		.kernel = s->kernel,
		.exact = 1,
		.ns = s->ns,
	};
	return stack->count > 0;
}

void tacho__stack_hash(const struct tacho__stack *stack, uint64_t hash[2])
{
	uint64_t head =
		(uint64_t)stack->process << 32 | stack->kernel << 1 | (uint64_t)(stack->exact != 0);
	size_t size = stack->count * sizeof(stack->frames[0]);

	for (unsigned i = 0; i < 2; i++)
		hash[i] = tacho__hash_words(tacho__hash_bytes(stack->frames, size, i + 1), head, i);
}

/* ----------------------------------------------------------------- samplers */

void tacho__samplers_init(struct tacho__samplers *s)
{
	tacho__table_init(&s->threads, sizeof(struct tacho__entry), THREADS_MAX);
}

void tacho__samplers_free(struct tacho__samplers *s)
{
	tacho__table_free(&s->threads);
}

int tacho__sample_counts(struct tacho__samplers *s, const struct tacho__sample *sample, int *error)
{
	if (sample->perf) {
		tacho__table_get(&s->threads, sample->at.process, sample->at.thread, error);
		return 1;
	}
	return !tacho__table_find(&s->threads, sample->at.process, sample->at.thread);
}
