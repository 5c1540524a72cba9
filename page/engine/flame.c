/* Flame graphs: stacks of a range added up, as `tacho flame` does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "export/stacks.h"

#define SHOWN 20000u /* frames: narrower ones are left out */

/* What is shown of the tree. */
struct shown {
	const struct tacho__stacks *stacks;
	uint64_t *value;  /* of each node, with all that it called */
	uint32_t *number; /* as the page counts: from 1; 0: it is not shown */
	uint32_t used, shown;
};

static int add_up(struct shown *s)
{
	s->used = s->stacks->nodes.used;
	s->value = calloc(s->used, sizeof(*s->value));
	s->number = calloc(s->used, sizeof(*s->number));
	if (!s->value || !s->number)
		return -ENOMEM;
	/* A child comes after its parent. */
	for (uint32_t i = s->used; i-- > 0;) {
		const struct tacho__tree_node *n = tacho__stacks_node(s->stacks, i);

		if (!n)
			continue;
		s->value[i] += n->self;
		if (i)
			s->value[n->parent] += s->value[i];
	}
	return 0;
}

static uint32_t wider_than(const struct shown *s, uint64_t least)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->used; i++)
		count += s->value[i] >= least && s->value[i];
	return count;
}

/* Those that are wide enough for all of them to be few enough. */
static void choose(struct shown *s)
{
	uint64_t least = 1;

	while (wider_than(s, least) > SHOWN)
		least *= 2;
	for (uint32_t i = 0; i < s->used; i++)
		if (s->value[i] >= least)
			s->number[i] = ++s->shown;
}

static void put_numbers(struct json *j, const char *key, const struct shown *s,
			uint64_t (*get)(const struct shown *s, uint32_t index))
{
	json_put_array(j, key);
	for (uint32_t i = 0; i < s->used; i++)
		if (s->number[i])
			json_u64(j, get(s, i));
	json_array_end(j);
}

static uint64_t parent_of(const struct shown *s, uint32_t i)
{
	return i ? s->number[tacho__stacks_node(s->stacks, i)->parent] - 1 : 0;
}

static uint64_t value_of(const struct shown *s, uint32_t i)
{
	return s->value[i];
}

static uint64_t self_of(const struct shown *s, uint32_t i)
{
	return tacho__stacks_node(s->stacks, i)->self;
}

/* Columns: the first is the root, and each comes after its parent. */
static const char *answer_tree(const struct tacho__stacks *stacks, struct shown *s, int in_ns)
{
	struct json j;

	choose(s);
	answer_begin(&j);
	json_object(&j);
	json_put_string(&j, "unit", in_ns ? "ns" : "samples");
	json_put_u64(&j, "total", stacks->total);
	json_put_u64(&j, "stacks", stacks->stacks);
	json_put_u64(&j, "hidden", wider_than(s, 1) - s->shown);
	json_put_known(&j, "advice", stacks->advice);
	put_numbers(&j, "parent", s, parent_of);
	put_numbers(&j, "value", s, value_of);
	put_numbers(&j, "self", s, self_of);
	json_put_array(&j, "name");
	for (uint32_t i = 0; i < s->used; i++)
		if (s->number[i])
			json_string(&j, i ? tacho__stacks_name(stacks,
							       tacho__stacks_node(stacks, i)->name)
					  : "all");
	json_array_end(&j);
	json_object_end(&j);
	return answer_end(&j);
}

/*
 * Of what lies between two times; both 0: of all. `kind` and `task` are texts, "": all of them; `by`
 * is enum tacho__stacks_by.
 */
EXPORT(page_flame)
const char *page_flame(double from, double to, uint32_t off_cpu, uint32_t by, const char *kind,
		       const char *task)
{
	uint64_t number = strtoull(task, NULL, 0);
	struct tacho__stacks_options options = {
		.by = (enum tacho__stacks_by)by,
		.off_cpu = off_cpu != 0,
		.ns = off_cpu != 0,
		.kind = kind[0] ? kind : NULL,
		.task = task[0] ? &number : NULL,
	};
	struct tacho_reader *reader =
		to > from ? page_again(at_time(from), at_time(to)) : page_again(0, 0);
	struct tacho__stacks stacks;
	struct shown shown = {.stacks = &stacks};
	int error = reader ? tacho__stacks_read(&stacks, reader, &options) : -ENOMEM;
	const char *answer;

	if (error)
		return answer_failed(error);
	error = add_up(&shown);
	answer = error ? answer_failed(error) : answer_tree(&stacks, &shown, options.ns);
	free(shown.value);
	free(shown.number);
	tacho__stacks_free(&stacks);
	return answer;
}
