/*
 * Tables of CPU samples, of the stacks that these and others name, and of times off the CPU.
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

static uint32_t stack_of_sample(struct tacho__sql_filling *f, const struct tacho__sample *m)
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

/* ------------------------------------------------------------------ samples */

enum { M_CPU = F_NEXT, M_STACK, M_PERF, M_ADDRESS };

/* clang-format off */
static const struct tacho__sql_column sample_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	{"ns", SQL_KEY, F_BEGIN, 0, "when"},
	{"cpu_ns", SQL_NUMBER, M_CPU, 0, "CPU time of the thread since the sample before"},
	{"stack", SQL_OPTIONAL, M_STACK, 0, "frames.stack; from 16777216 on numbered by tacho sql"},
	{"in_function", SQL_ID_FUNCTION, M_STACK, 0, "innermost function of the program's own"},
	{"in_file", SQL_ID_FILE, M_STACK, 0, "its file"},
	{"in_line", SQL_ID_LINE, M_STACK, 0, "its line"},
	{"perf", SQL_NUMBER, M_PERF, 0, "1: from perf, 0: from a timer of the thread; where a thread has both they tell the same time twice"},
	{"address", SQL_OPTIONAL, M_ADDRESS, 0, "instruction that was interrupted"},
};
/* clang-format on */

static void on_sample(void *arg, const struct tacho__sample *m)
{
	struct tacho__sql_filling *f = arg;
	struct tacho__stack stack;
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &m->at, m->ns, 0);
	v[M_CPU] = m->cpu_ns;
	v[M_PERF] = m->perf;
	if (f->rows->has >> M_STACK & 1)
		v[M_STACK] = stack_of_sample(f, m);
	if (tacho__stack_of_sample(f->source->reader, m, &stack))
		v[M_ADDRESS] = stack.frames[0];
	tacho__sql_put(f, v);
}

/* ------------------------------------------------------------------- frames */

enum { R_STACK = 1, R_DEPTH, R_FUNCTION, R_FILE, R_LINE, R_MODULE, R_ADDRESS, R_INLINED, R_KERNEL };

/* clang-format off */
static const struct tacho__sql_column frame_columns[] = {
	PROCESS_COLUMNS,
	{"stack", SQL_KEY, R_STACK, 0, "number of the stack in its process"},
	{"depth", SQL_NUMBER, R_DEPTH, 0, "0: innermost"},
	{"function", SQL_POINTER, R_FUNCTION, 0, "NULL: not known"},
	{"file", SQL_POINTER, R_FILE, 0, "NULL: not known"},
	{"line", SQL_OPTIONAL, R_LINE, 0, "NULL: not known"},
	{"module", SQL_POINTER, R_MODULE, 0, "path of the program or library"},
	{"address", SQL_KEY, R_ADDRESS, 0, "in memory; behind the call but for the innermost"},
	{"inlined", SQL_NUMBER, R_INLINED, 0, "1: its code is part of the function of the next depth"},
	{"kernel", SQL_NUMBER, R_KERNEL, 0, "1: code of the kernel"},
};
/* clang-format on */

static void put_frames(struct tacho__sql_filling *f, uint32_t process, uint32_t number)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t kernel, n = tacho__sql_stack_places(f->source, process, number, places,
						     TACHO__PLACES_MAX, &kernel);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t v[SQL_FIELDS] = {0};

		v[SQL_PROCESS] = process;
		v[R_STACK] = number;
		v[R_DEPTH] = i;
		v[R_FUNCTION] = (uint64_t)(uintptr_t)places[i].function;
		v[R_FILE] = (uint64_t)(uintptr_t)places[i].file;
		v[R_LINE] = places[i].line;
		v[R_MODULE] = (uint64_t)(uintptr_t)places[i].module;
		v[R_ADDRESS] = places[i].address;
		v[R_INLINED] = places[i].inlined;
		v[R_KERNEL] = i < kernel;
		tacho__sql_put(f, v);
	}
}

static void number_sample(void *arg, const struct tacho__sample *m)
{
	stack_of_sample(arg, m);
}

static int fill_frames(struct tacho__sql_filling *f)
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

/* ----------------------------------------------------------------- switches */

enum { O_RUNNABLE = F_NEXT, O_PARKED, O_CPU, O_CUT };

/* clang-format off */
static const struct tacho__sql_column switch_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	TIME_COLUMNS,
	CUT_COLUMN(O_CUT),
	{"runnable", SQL_NUMBER, O_RUNNABLE, 0, "1: others were let run, 0: the thread waited"},
	{"parked", SQL_NUMBER, O_PARKED, 0, "1: it waited for events"},
	{"cpu", SQL_NUMBER, O_CPU, 0, "CPU that it went on with"},
};
/* clang-format on */

static void on_off(void *arg, const struct tacho__switch *o)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &o->at, o->begin_ns, o->end_ns);
	v[O_RUNNABLE] = o->runnable;
	v[O_PARKED] = o->parked;
	v[O_CPU] = o->cpu;
	v[O_CUT] = o->cut;
	tacho__sql_put(arg, v);
}

const struct tacho__sql_table tacho__sql_samples =
	SQL_TABLE("samples", "a CPU sample", sample_columns, .facts = {.sample = on_sample});
const struct tacho__sql_table tacho__sql_frames =
	SQL_TABLE("frames", "a function of a stack that samples, calls, locks and tasks name",
		  frame_columns, .fill = fill_frames);
const struct tacho__sql_table tacho__sql_switches =
	SQL_TABLE("switches", "a time off the CPU", switch_columns, .facts = {.off_cpu = on_off});
