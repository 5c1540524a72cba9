#include "explain/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define WORKERS (1u << 20)

/* A class of workers; key: program, loop. Those of all loops are one, too, with a loop of 0, and those of a
   process, with a program of its own. */
struct class
{
	struct tacho__entry entry;
	uint32_t processes, threads;
	uint32_t last; /* process that was counted, + 1 */
};

/* Key: process, thread. */
struct worker {
	struct tacho__entry entry;
	uint64_t loop; /* its class */
};

uint64_t tacho__program_class(const struct tacho_reader *reader, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(reader, process);
	const char *name = !p ? "" : p->exe[0] ? p->exe : p->comm;

	return tacho__hash_bytes(name, strlen(name), 0);
}

uint64_t tacho__loop_class(const struct tacho_reader *reader, uint32_t process, uint32_t loop)
{
	const struct tacho_definition *d =
		loop ? tacho_read_definition(reader, process, loop) : NULL;
	uint64_t hash = 1;

	for (const char *s = d ? d->name : ""; *s; s++)
		if (*s < '0' || *s > '9')
			hash = tacho__hash_words(hash, (uint8_t)*s, 0);
	return hash;
}

static uint64_t of_process(uint64_t program, uint32_t process)
{
	return tacho__hash_words(program, process, 1);
}

static void count(struct tacho__grouping *g, uint64_t program, uint64_t loop, uint32_t process,
		  int *error)
{
	const uint64_t programs[] = {program, of_process(program, process)};

	for (uint32_t i = 0; i < 2; i++) {
		struct class *c = tacho__table_get(&g->workers, programs[i], loop, error);

		if (!c)
			return;
		c->threads++;
		c->processes += c->last != process + 1;
		c->last = process + 1;
	}
}

int tacho__workers_make(const struct tacho__explaining *x, struct tacho__grouping *g)
{
	const struct tacho__ledger *l = x->out->ledger;
	int error = 0;

	tacho__table_init(&g->workers, sizeof(struct class), WORKERS);
	tacho__table_init(&g->threads, sizeof(struct worker), WORKERS);
	/* Threads of a process stand beside each other. */
	for (uint32_t i = 0; i < l->thread_count && !error; i++) {
		const struct tacho__ledger_thread *t = &l->threads[i];
		uint64_t program = tacho__program_class(x->reader, t->process);
		struct worker *w;

		if (!t->is_loop && (!t->is_pool || tacho__is_asked(t)))
			continue;
		w = tacho__table_get(&g->threads, t->process, t->thread, &error);
		if (!w)
			continue;
		w->loop = tacho__loop_class(x->reader, t->process, t->is_loop ? t->loop : 0);
		count(g, program, w->loop, t->process, &error);
		count(g, program, 0, t->process, &error);
	}
	return error;
}

void tacho__workers_free(struct tacho__grouping *g)
{
	tacho__table_free(&g->workers);
	tacho__table_free(&g->threads);
}

void tacho__workers_count(const struct tacho__explaining *x, const struct tacho__grouping *g,
			  struct tacho__finding *f)
{
	const struct worker *w = tacho__table_find(&g->threads, f->process, f->thread);
	uint64_t program = tacho__program_class(x->reader, f->process), loop = w ? w->loop : 0;
	const struct class *all = tacho__table_find(&g->workers, program, loop);
	const struct class *own =
		tacho__table_find(&g->workers, of_process(program, f->process), loop);
	struct tacho__spread *s = &f->spread;
	uint32_t threads = s->processes > 1 ? all ? all->threads : 0 : own ? own->threads : 0;

	s->processes_in_all = all && all->processes > s->processes ? all->processes : s->processes;
	s->threads_in_all = threads > s->threads ? threads : s->threads;
}

/* ------------------------------------------------------------------- in words */

/* "6 of 6 workers" */
static void who_text(char out[TACHO__TEXT], const struct tacho__spread *s)
{
	if (s->processes > 1)
		snprintf(out, TACHO__TEXT, "%" PRIu32 " of %" PRIu32 " workers", s->processes,
			 s->processes_in_all);
	else
		snprintf(out, TACHO__TEXT, "%" PRIu32 " of %" PRIu32 " workers", s->threads,
			 s->threads_in_all);
}

void tacho__workers_say(struct tacho__finding *f)
{
	const struct tacho__spread *s = &f->spread;
	const struct tacho__measure *m = &f->measure;
	const char *at = strchr(f->many, TACHO__WHO);
	char who[TACHO__TEXT], ns[TACHO__TEXT], sums[2 * TACHO__TEXT] = "",
							 text[sizeof(f->summary)];

	who_text(who, s);
	if (m->count > 1)
		snprintf(sums, sizeof(sums), "; %" PRIu64 " times, %s in all", m->count,
			 tacho__ns_text(ns, (double)m->total_ns));
	if (at && (s->processes > 1 || s->threads > 1))
		snprintf(text, sizeof(text), "%.*s%s%s%s", (int)(at - f->many), f->many, who,
			 at + 1, sums);
	else if (s->processes > 1)
		snprintf(text, sizeof(text), "in %" PRIu32 " of %" PRIu32 " processes: %.280s",
			 s->processes, s->processes_in_all, f->summary);
	else
		return;
	memcpy(f->summary, text, sizeof(text));
}
