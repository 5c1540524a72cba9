/*
 * From facts to stacks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/stacks.h"
#include "export/text.h"
#include "model/place.h"

#define THREADS_MAX (1u << 15)
#define KINDS_MAX (1u << 16)
#define SWITCHES 32u /* of one thread that may still belong to a wait */

struct gather {
	struct tacho_reader *reader;
	const struct tacho__stacks_options *options;
	struct tacho__stacks *stacks;
	struct tacho__codes codes;
	struct tacho__samplers samplers;
	struct tacho__table threads; /* struct switches */
	struct tacho__table answers; /* struct answer */
	int error;
};

/* Whether a definition has the name that was asked for. */
struct answer {
	struct tacho__entry entry; /* key: process << 32 | thread, id */
	uint32_t known, matches;
};

/* Times off the CPU that no wait has taken for itself yet. */
struct switches {
	struct tacho__entry entry; /* key: process, thread */
	uint32_t count;
	struct tacho__switch off[SWITCHES];
};

/* ------------------------------------------------------------------- filters */

/* Whether it is the name by which `tacho stats` tells a loop from others (tacho__loop_name). */
static int is_distinct_name(const struct gather *g, const struct tacho__at *at, const char *plain,
			    const char *wanted)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(g->reader, at->process, at->thread);
	const char *more = strstr(wanted, ", listens on ");
	size_t size = more ? (size_t)(more - wanted) : strlen(wanted);
	char number[16], name[2][TACHO__CLEAN_MAX];

	if (!t)
		return 0;
	snprintf(name[0], sizeof(name[0]), "%s, thread %s", plain, t->name);
	snprintf(number, sizeof(number), "%s%" PRIu32, t->name[0] ? " " : "", t->tid);
	snprintf(name[1], sizeof(name[1]), "%s, thread %s%s", plain, t->name, number);
	return (strlen(name[0]) == size && strncmp(name[0], wanted, size) == 0) ||
	       (strlen(name[1]) == size && strncmp(name[1], wanted, size) == 0);
}

static int name_matches(const struct gather *g, const struct tacho__at *at, uint32_t id,
			uint64_t ns, const char *wanted)
{
	uint32_t process = at->process;
	const struct tacho_definition *d =
		id ? tacho_read_definition(g->reader, process, id) : NULL;
	struct tacho__place place;
	char number[24];

	if (!d)
		return 0;
	if (strcmp(d->name, wanted) == 0)
		return 1;
	if (d->def_class == TACHO_DEF_LOOP) {
		snprintf(number, sizeof(number), "#%" PRIu32, id);
		return strcmp(number, wanted) == 0 || is_distinct_name(g, at, d->name, wanted);
	}
	return tacho__places_of_id(g->reader, process, id, ns, &place, 1) &&
	       strcmp(place.function, wanted) == 0;
}

static int id_matches(struct gather *g, const struct tacho__at *at, uint32_t id, uint64_t ns,
		      const char *wanted)
{
	struct answer *a;

	if (!id)
		return 0;
	a = tacho__table_get(&g->answers, (uint64_t)at->process << 32 | at->thread, id, &g->error);
	if (!a)
		return name_matches(g, at, id, ns, wanted);
	if (!a->known) {
		a->known = 1;
		a->matches = (uint32_t)name_matches(g, at, id, ns, wanted);
	}
	return (int)a->matches;
}

static int wanted(struct gather *g, const struct tacho__at *at, uint64_t ns)
{
	const struct tacho__stacks_options *o = g->options;

	return !g->error && (!o->task || at->task == *o->task) &&
	       (!o->kind || id_matches(g, at, at->kind, ns, o->kind)) &&
	       (!o->loop || id_matches(g, at, at->loop, ns, o->loop));
}

/* -------------------------------------------------------------------- frames */

static uint32_t child(struct gather *g, uint32_t node, const char *name, int *cut)
{
	uint32_t next = tacho__stacks_child(g->stacks, node, name, &g->error);

	*cut |= next == node;
	return next;
}

static uint32_t code_children(struct gather *g, uint32_t node, const struct tacho__code *code,
			      int *cut)
{
	char name[TACHO__CLEAN_MAX];

	if (!code)
		return child(g, node, "[more]", cut);
	for (uint32_t i = code->count; i-- > 0 && !*cut;) {
		const struct tacho__code_line *l = tacho__code_line(&g->codes, code, i);

		snprintf(name, sizeof(name), "%s%s", l->function, code->kernel ? "_[k]" : "");
		node = child(g, node, name, cut);
	}
	if (!code->count && !code->tachos) {
		snprintf(name, sizeof(name), "[%s]",
			 code->kernel	? "kernel"
			 : code->module ? tacho__base_name(code->module->name)
					: "not known");
		node = child(g, node, name, cut);
	}
	return node;
}

static void name_thread(const struct gather *g, const struct tacho__at *at, char *out, size_t size)
{
	const struct tacho_process *p = tacho_read_process(g->reader, at->process);

	if (tacho_read_process_count(g->reader) > 1 && p)
		snprintf(out, size, "%s/%" PRIu32,
			 tacho__thread_name(g->reader, at->process, at->thread), p->pid);
	else
		snprintf(out, size, "%s", tacho__thread_name(g->reader, at->process, at->thread));
}

static void name_root(const struct gather *g, const struct tacho__at *at, uint64_t ns, char *out,
		      size_t size)
{
	char kind[TACHO__CLEAN_MAX - 32];

	if (g->options->by == TACHO__STACKS_BY_THREAD) {
		name_thread(g, at, out, size);
		return;
	}
	tacho__name_of(kind, sizeof(kind), g->reader, at->process, at->kind, ns);
	if (g->options->by == TACHO__STACKS_BY_KIND)
		snprintf(out, size, "%s", kind[0] ? kind : "outside of callbacks");
	else if (at->task)
		snprintf(out, size,
			 at->task >> 32 ? "task 0x%" PRIx64 " %s" : "task %" PRIu64 " %s", at->task,
			 kind);
	else
		snprintf(out, size, "outside of tasks");
}

/* The node of a stack, with what it is by as its root. */
static uint32_t stack_node(struct gather *g, const struct tacho__at *at,
			   const struct tacho__stack *stack, int *cut)
{
	char name[TACHO__CLEAN_MAX];
	uint32_t node, i;

	name_root(g, at, stack->ns, name, sizeof(name));
	node = child(g, 0, name, cut);
	for (i = stack->count; i-- > 0 && !*cut && !g->error;)
		node = code_children(g, node, tacho__code_of(&g->codes, stack, i, &g->error), cut);
	return node;
}

static void add(struct gather *g, uint32_t node, uint64_t value, int cut)
{
	tacho__stacks_add(g->stacks, node, value);
	g->stacks->cut += cut != 0;
}

/* -------------------------------------------------------------------- on CPU */

static void take_sample(void *arg, const struct tacho__sample *s)
{
	struct gather *g = arg;
	struct tacho__stack stack;
	uint32_t node;
	int cut = 0;

	if (!tacho__sample_counts(&g->samplers, s, &g->error) || !wanted(g, &s->at, s->ns))
		return;
	tacho__stack_of_sample(g->reader, s, &stack);
	node = stack_node(g, &s->at, &stack, &cut);
	if (!stack.count)
		node = child(g, node, "[no stack]", &cut);
	add(g, node, g->options->ns ? s->cpu_ns : 1, cut);
}

/* ------------------------------------------------------------------- off CPU */

/* A wait: its stack, else where it was said to be, else the callback that was running. */
static void add_wait(struct gather *g, const struct tacho__at *at, uint32_t stack_id,
		     uint32_t place, const char *leaf, uint64_t begin_ns, uint64_t end_ns)
{
	struct tacho__stack stack;
	char name[TACHO__CLEAN_MAX] = "";
	uint32_t node;
	int cut = 0;

	if (!wanted(g, at, end_ns))
		return;
	if (!tacho__stack_of_id(g->reader, at->process, stack_id, end_ns, &stack) &&
	    !tacho__stack_of_id(g->reader, at->process, place, end_ns, &stack))
		tacho__name_of(name, sizeof(name), g->reader, at->process, place ? place : at->kind,
			       end_ns);
	node = stack_node(g, at, &stack, &cut);
	if (name[0])
		node = child(g, node, name, &cut);
	node = child(g, node, leaf, &cut);
	add(g, node, end_ns > begin_ns ? end_ns - begin_ns : 0, cut);
}

static struct switches *switches_of(struct gather *g, uint32_t process, uint32_t thread)
{
	return tacho__table_get(&g->threads, process, thread, &g->error);
}

static void settle(struct gather *g, struct switches *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct tacho__switch *off = &s->off[i];

		add_wait(g, &off->at, 0, off->at.kind,
			 off->runnable ? "[preempted]" : "[switched out]", off->begin_ns,
			 off->end_ns);
	}
	s->count = 0;
}

/* The kernel's clock and the program's differ by some microseconds, so most of it is enough. */
static int is_within(const struct tacho__switch *off, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t from = off->begin_ns > begin_ns ? off->begin_ns : begin_ns;
	uint64_t to = off->end_ns < end_ns ? off->end_ns : end_ns;

	return to > from && to - from >= (off->end_ns - off->begin_ns) / 2;
}

/* A wait that was recorded as such says more than the switches that it was made of. */
static void take_over(struct gather *g, const struct tacho__at *at, uint64_t begin_ns,
		      uint64_t end_ns)
{
	struct switches *s = switches_of(g, at->process, at->thread);
	uint32_t kept = 0;

	for (uint32_t i = 0; s && i < s->count; i++)
		if (!is_within(&s->off[i], begin_ns, end_ns))
			s->off[kept++] = s->off[i];
	if (s)
		s->count = kept;
}

static void take_switch(void *arg, const struct tacho__switch *off)
{
	struct gather *g = arg;
	struct switches *s;

	/* What a loop waits for events with is no trouble of its callbacks. */
	if (off->parked || (off->cut & TACHO__CUT_END) || (!off->at.loop && !off->at.poll_ns))
		return;
	s = switches_of(g, off->at.process, off->at.thread);
	if (!s)
		return;
	if (s->count == SWITCHES)
		settle(g, s);
	s->off[s->count++] = *off;
}

/* A thread that is on no loop and in no callback waits for signals when it has nothing to do. Of
   a wait that has not ended it is not known what it is for. */
static int is_idle(const struct tacho__lock *l)
{
	return !l->at.loop && !l->at.poll_ns && (l->is_signal || (l->cut & TACHO__CUT_END));
}

static void take_lock(void *arg, const struct tacho__lock *l)
{
	struct gather *g = arg;

	take_over(g, &l->at, l->begin_ns, l->end_ns);
	if (!is_idle(l))
		add_wait(g, &l->at, l->stack, l->place, l->is_signal ? "[condition]" : "[lock]",
			 l->begin_ns, l->end_ns);
}

static void take_call(void *arg, const struct tacho__call *c)
{
	struct gather *g = arg;
	char name[TACHO__CLEAN_MAX - 2], leaf[TACHO__CLEAN_MAX];

	tacho__name_of(name, sizeof(name), g->reader, c->at.process, c->name, c->end_ns);
	snprintf(leaf, sizeof(leaf), "[%s]", name[0] ? name : "call");
	take_over(g, &c->at, c->begin_ns, c->end_ns);
	add_wait(g, &c->at, c->stack, 0, leaf, c->begin_ns, c->end_ns);
}

/* What belongs to a turn has been handed out before the turn. */
static void take_turn(void *arg, const struct tacho__turn *t)
{
	struct gather *g = arg;
	struct switches *s = tacho__table_find(&g->threads, t->process, t->thread);

	if (s)
		settle(g, s);
}

/* ----------------------------------------------------------------------- all */

static int gather(struct gather *g)
{
	struct tacho__facts facts = {.arg = g, .error = &g->error};

	if (g->options->off_cpu) {
		facts.off_cpu = take_switch;
		facts.lock = take_lock;
		facts.call = take_call;
		facts.turn = take_turn;
	} else {
		facts.sample = take_sample;
	}
	g->error = tacho__model_run(g->reader, &facts, g->options->stop, g->options->stop_arg,
				    &g->stacks->missed);
	for (struct switches *s = NULL; !g->error && (s = tacho__table_next(&g->threads, s));)
		settle(g, s);
	return g->error;
}

int tacho__stacks_read(struct tacho__stacks *s, struct tacho_reader *reader,
		       const struct tacho__stacks_options *options)
{
	struct gather g = {.reader = reader, .options = options, .stacks = s};
	int error = tacho__stacks_init(s);

	tacho__codes_init(&g.codes, reader);
	tacho__samplers_init(&g.samplers);
	tacho__table_init(&g.threads, sizeof(struct switches), THREADS_MAX);
	tacho__table_init(&g.answers, sizeof(struct answer), KINDS_MAX);
	if (!error)
		error = gather(&g);
	if (!error && !g.codes.scripts)
		memcpy(s->advice, g.codes.advice, sizeof(s->advice));
	tacho__codes_free(&g.codes);
	tacho__samplers_free(&g.samplers);
	tacho__table_free(&g.threads);
	tacho__table_free(&g.answers);
	if (error)
		tacho__stacks_free(s);
	return error;
}
