/*
 * Names that tell loops apart. Loops of a library are called what the library is called, and a
 * server has one for each of its threads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/definition.h"
#include "model/place.h"
#include "model/summing.h"

int tacho__serves_one(const struct tacho_definition *loop)
{
	return loop && loop->level == TACHO_LEVEL_WAITS && !loop->value &&
	       strcmp(loop->name, TACHO_CLIENTS) == 0;
}

/* How many have a name, or what a loop listens to. */
struct known {
	struct tacho__entry entry;
	uint32_t count, id;
};

static const char *plain_name(const struct tacho_reader *reader, const struct tacho__loop_sum *l)
{
	const struct tacho_definition *d = tacho_read_definition(reader, l->process, l->loop);

	return d ? d->name : "";
}

static uint64_t hash_of(const char *text, uint64_t seed)
{
	return tacho__hash_bytes(text, strlen(text), seed);
}

/* The loop's name, and its name with that of its thread. */
static void hash_names(const struct tacho_reader *reader, const struct tacho__loop_sum *l,
		       uint64_t hash[2])
{
	const struct tacho_thread *t = tacho_read_thread_by_number(reader, l->process, l->thread);

	hash[0] = hash_of(plain_name(reader, l), l->process);
	hash[1] = hash_of(t ? t->name : "", hash[0]);
}

static void find_listeners(struct tacho__summing *g, struct tacho__table *listeners)
{
	for (uint32_t p = 0; p < g->sum->processes; p++) {
		uint32_t limit = tacho_read_definition_limit(g->reader, p);

		for (uint32_t id = 1; id < limit; id++) {
			const struct tacho_definition *d = tacho_read_definition(g->reader, p, id);
			struct known *k =
				d && d->def_class == TACHO_DEF_TEXT && d->value
					? tacho__table_get(listeners, p, d->value, &g->error)
					: NULL;

			if (k && !k->count++)
				k->id = id;
		}
	}
}

static void count_names(struct tacho__summing *g, struct tacho__table *names)
{
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&g->sum->loops, l));) {
		uint64_t hash[2];

		hash_names(g->reader, l, hash);
		for (uint32_t k = 0; k < 2; k++) {
			struct known *name = tacho__table_get(names, hash[k], k, &g->error);

			if (name)
				name->count++;
		}
	}
}

static int is_shared(const struct tacho__table *names, uint64_t hash, uint32_t k)
{
	const struct known *name = tacho__table_find(names, hash, k);

	return name && name->count > 1;
}

void tacho__sum_loop_names(struct tacho__summing *g)
{
	struct tacho__table names, listeners;

	tacho__table_init(&names, sizeof(struct known), 2 * g->sum->loops.used + 1);
	tacho__table_init(&listeners, sizeof(struct known), TACHO__LISTENERS);
	count_names(g, &names);
	find_listeners(g, &listeners);
	for (struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&g->sum->loops, l));) {
		const struct known *at = tacho__table_find(&listeners, l->process, l->loop);
		uint64_t hash[2];

		hash_names(g->reader, l, hash);
		l->listens = at ? at->id : 0;
		l->shares_name = is_shared(&names, hash[0], 0);
		l->shares_thread_name = is_shared(&names, hash[1], 1);
	}
	tacho__table_free(&names);
	tacho__table_free(&listeners);
}

const char *tacho__loop_name(char *out, size_t size, const struct tacho_reader *reader,
			     const struct tacho__loop_sum *l)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(reader, l->process, l->thread);
	const struct tacho_definition *at =
		l->listens ? tacho_read_definition(reader, l->process, l->listens) : NULL;
	int named = t && t->name[0];
	char number[16] = "";

	tacho__name_of(out, size, reader, l->process, l->loop, 0);
	if (!l->shares_name)
		return out;
	if (!named || l->shares_thread_name)
		snprintf(number, sizeof(number), "%s%" PRIu32, named ? " " : "",
			 t ? t->tid : l->thread);
	snprintf(out + strlen(out), size - strlen(out), ", thread %s%s%s%s", named ? t->name : "",
		 number, at ? ", listens on " : "", at ? at->name : "");
	return out;
}
