/* Tables of tasks, loops, and of what the program says itself: spans, counters, logs, events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"
#include "model/summary.h"
#include "query/fill.h"
#include "text/json.h"

/* -------------------------------------------------------------------- spans */

enum { S_NAME = F_NEXT, S_ASYNC, S_ID, S_PARENT, S_HIGH, S_LOW, S_CUT };

/* clang-format off */
static const struct tacho__sql_column span_columns[] = {
	AT_COLUMNS,
	{"name", SQL_ID_NAME, S_NAME, 0, "its name"},
	IN_COLUMNS,
	TIME_COLUMNS,
	CUT_COLUMN(S_CUT),
	{"async", SQL_NUMBER, S_ASYNC, 0, "1: it may begin and end on different threads"},
	{"id", SQL_OPTIONAL, S_ID, 0, "number that the program gave it, if async"},
	{"parent", SQL_OPTIONAL, S_PARENT, 0, "id of the span around it"},
	{"trace_id", SQL_TRACE_ID, S_HIGH, S_LOW, "trace id of the program's tracing, 32 hexadecimal digits"},
};
/* clang-format on */

static void on_span(void *arg, const struct tacho__span *p)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &p->at, p->begin_ns, p->end_ns);
	v[S_NAME] = p->name;
	v[S_ASYNC] = p->async;
	v[S_ID] = p->id;
	v[S_PARENT] = p->parent;
	v[S_HIGH] = p->trace_high;
	v[S_LOW] = p->trace_low;
	v[S_CUT] = p->cut;
	tacho__sql_put(arg, v);
}

/* -------------------------------------------------------------------- tasks */

enum {
	T_PARENT = F_NEXT,
	T_PLACE,
	T_FIRST,
	T_LAST,
	T_POLLS,
	T_BUSY,
	T_WAKES,
	T_SELF,
	T_WOKEN,
	T_WAITED,
	T_FOR,
	T_STACK,
	T_RUNNING
};

/* clang-format off */
static const struct tacho__sql_column task_columns[] = {
	PROCESS_COLUMNS,
	KIND_COLUMNS,
	{"task", SQL_KEY, F_TASK, 0, "its number, or the address of its handle"},
	{"parent", SQL_OPTIONAL, T_PARENT, 0, "task that spawned it"},
	{"begin_ns", SQL_OPTIONAL, F_BEGIN, 0, "when it was spawned; NULL: before the records"},
	{"end_ns", SQL_OPTIONAL, F_END, 0, "when it ended; NULL: not in this trace"},
	{"ns", SQL_DIFFERENCE, F_END, F_BEGIN, "how long it lived"},
	{"spawn_function", SQL_ID_FUNCTION, T_PLACE, 0, "where it was spawned"},
	{"spawn_file", SQL_ID_FILE, T_PLACE, 0, "file of that"},
	{"spawn_line", SQL_ID_LINE, T_PLACE, 0, "line of that"},
	{"first_ns", SQL_OPTIONAL, T_FIRST, 0, "begin of its first poll"},
	{"last_ns", SQL_OPTIONAL, T_LAST, 0, "end of its last poll"},
	{"polls", SQL_NUMBER, T_POLLS, 0, "how many"},
	{"busy_ns", SQL_NUMBER, T_BUSY, 0, "how long they took together"},
	{"wakes", SQL_NUMBER, T_WAKES, 0, "how often it was woken"},
	{"self_wakes", SQL_NUMBER, T_SELF, 0, "of these: by itself"},
	{"woken_ns", SQL_OPTIONAL, T_WOKEN, 0, "a wake that had no poll until the end"},
	{"waited_ns", SQL_NUMBER, T_WAITED, 0, "sum of the times from wake to poll"},
	{"waits_for", SQL_ID_NAME, T_FOR, 0, "what it said last that it waits for"},
	{"waits_stack", SQL_OPTIONAL, T_STACK, 0, "where it went idle: frames.stack"},
	{"running", SQL_NUMBER, T_RUNNING, 0, "1: a poll of it was running at the end"},
};
/* clang-format on */

static void on_task(void *arg, const struct tacho__task *t)
{
	uint64_t v[SQL_FIELDS] = {0};

	v[F_PROCESS] = t->process;
	v[F_KIND] = t->kind;
	v[F_TASK] = t->task;
	v[F_BEGIN] = t->spawn_ns;
	v[F_END] = t->end_ns;
	v[T_PARENT] = t->parent;
	v[T_PLACE] = t->place;
	v[T_FIRST] = t->first_ns;
	v[T_LAST] = t->last_ns;
	v[T_POLLS] = t->polls;
	v[T_BUSY] = t->busy_ns;
	v[T_WAKES] = t->wakes;
	v[T_SELF] = t->self_wakes;
	v[T_WOKEN] = t->woken_ns;
	v[T_WAITED] = t->waited_ns;
	v[T_FOR] = t->waits_for;
	v[T_STACK] = t->waits_stack;
	v[T_RUNNING] = t->running;
	tacho__sql_put(arg, v);
}

/* ----------------------------------------------------------------- counters */

enum { N_NAME = F_NEXT, N_VALUE, N_DEPTH };

/* clang-format off */
static const struct tacho__sql_column counter_columns[] = {
	AT_COLUMNS,
	{"name", SQL_ID_NAME, N_NAME, 0, "of the counter or gauge; of a queue depth, of the loop"},
	{"ns", SQL_KEY, F_BEGIN, 0, "when"},
	{"value", SQL_VALUE, N_VALUE, N_NAME, "an integer or a real number, as it was defined"},
	{"unit", SQL_ID_UNIT, N_NAME, 0, "of the value"},
	{"depth", SQL_NUMBER, N_DEPTH, 0, "1: depth of a loop's queue"},
};
/* clang-format on */

static void on_counter(void *arg, const struct tacho__counter *c)
{
	uint64_t v[SQL_FIELDS] = {0};

	tacho__sql_put_at(v, &c->at, c->ns, 0);
	v[N_NAME] = c->name;
	v[N_DEPTH] = c->depth;
	v[N_VALUE] = c->value;
	tacho__sql_put(arg, v);
}

/* ---------------------------------------------------------- logs and events */

enum { G_LEVEL = F_NEXT, G_TEXT, G_CUT, G_NAME };

/* clang-format off */
static const struct tacho__sql_column log_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	{"ns", SQL_KEY, F_BEGIN, 0, "when"},
	{"level", SQL_NUMBER, G_LEVEL, 0, "as the program gave it"},
	{"text", SQL_POINTER, G_TEXT, 0, "the message"},
	{"cut", SQL_NUMBER, G_CUT, 0, "1: it was longer"},
};

static const struct tacho__sql_column event_columns[] = {
	AT_COLUMNS,
	IN_COLUMNS,
	{"ns", SQL_KEY, F_BEGIN, 0, "when"},
	{"name", SQL_ID_NAME, G_NAME, 0, "its name"},
	{"fields", SQL_POINTER, G_TEXT, 0, "its fields as JSON: fields ->> 'status'"},
};
/* clang-format on */

static uint64_t keep(struct tacho__sql_filling *f, const char *text, size_t size)
{
	if (!(f->rows->has >> G_TEXT & 1))
		return 0;
	return (uint64_t)(uintptr_t)tacho__sql_keep(f, text, size);
}

static void on_log(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__sql_filling *f = arg;
	uint64_t v[SQL_FIELDS] = {0};
	const char *text;
	size_t size;
	int cut;

	if (e->type != TACHO_EV_LOG || tacho_read_text(e, &text, &size, &cut) < 0)
		return;
	tacho__sql_put_at(v, at, e->ns, 0);
	v[G_LEVEL] = e->arg;
	v[G_CUT] = cut != 0;
	v[G_TEXT] = keep(f, text, size);
	tacho__sql_put(f, v);
}

static void put_fields(struct json *j, const struct tacho_reader *reader,
		       const struct tacho_event *e)
{
	const struct tacho_definition *d = tacho_read_definition(reader, e->process, e->arg);

	json_object(j);
	for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++) {
		struct tacho_field_value value = {.size = sizeof(value)};

		if (tacho_read_field(reader, e, i, &value) <= 0)
			continue;
		json_key(j, d->fields[i].name);
		json_field_value(j, &value);
	}
	json_object_end(j);
}

static void on_event(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__sql_filling *f = arg;
	uint64_t v[SQL_FIELDS] = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *stream;
	struct json j;

	if (e->type != TACHO_EV_EVENT || f->error)
		return;
	tacho__sql_put_at(v, at, e->ns, 0);
	v[G_NAME] = e->arg;
	if (f->rows->has >> G_TEXT & 1) {
		stream = open_memstream(&text, &size);
		if (!stream) {
			f->error = -ENOMEM;
			return;
		}
		json_begin(&j, stream, false);
		put_fields(&j, f->source->reader, e);
		if (fclose(stream) == 0)
			v[G_TEXT] = keep(f, text, size);
		else
			f->error = -ENOMEM;
		free(text);
	}
	tacho__sql_put(f, v);
}

/* -------------------------------------------------------------------- loops */

enum { O_LEVEL = F_NEXT, O_TURNS, O_POLLS, O_BUSY, O_PARKED, O_FUTILE, O_NAME };

/* clang-format off */
static const struct tacho__sql_column loop_columns[] = {
	AT_COLUMNS,
	{"loop_id", SQL_KEY, F_LOOP, 0, "number of the loop; two may have one name"},
	{"distinct_name", SQL_POINTER, O_NAME, 0, "its name; where several have it, with what tells it apart"},
	{"level", SQL_LEVEL, O_LEVEL, 0, "how closely it was observed: waits, callbacks or api"},
	{"begin_ns", SQL_KEY, F_BEGIN, 0, "first that was seen of it"},
	{"end_ns", SQL_KEY, F_END, 0, "last that was seen of it"},
	{"turns", SQL_NUMBER, O_TURNS, 0, "how many"},
	{"polls", SQL_NUMBER, O_POLLS, 0, "how many"},
	{"busy_ns", SQL_NUMBER, O_BUSY, 0, "time in turns"},
	{"parked_ns", SQL_NUMBER, O_PARKED, 0, "time in waits"},
	{"futile", SQL_NUMBER, O_FUTILE, 0, "waits that ended with nothing ready"},
};
/* clang-format on */

static int fill_loops(struct tacho__sql_filling *f)
{
	struct tacho__summary *sum;
	int error = tacho_read_seek(f->source->reader, 0);

	if (error < 0)
		return error;
	sum = tacho__summary_make(f->source->reader, NULL, 0, NULL, NULL, &error);
	for (const struct tacho__loop_sum *l = NULL;
	     sum && (l = tacho__table_next(&sum->loops, l));) {
		uint64_t v[SQL_FIELDS] = {0};
		char name[TACHO__CLEAN_MAX];

		v[F_PROCESS] = l->process;
		v[F_THREAD] = l->thread;
		v[F_LOOP] = l->loop;
		tacho__loop_name(name, sizeof(name), f->source->reader, l);
		v[O_NAME] = (uintptr_t)tacho__sql_keep(f, name, strlen(name));
		v[F_BEGIN] = l->first_ns;
		v[F_END] = l->last_ns;
		v[O_LEVEL] = l->level;
		v[O_TURNS] = l->turns;
		v[O_POLLS] = l->polls;
		v[O_BUSY] = l->busy_ns;
		v[O_PARKED] = l->parked_ns;
		v[O_FUTILE] = l->no_ready;
		tacho__sql_put(f, v);
	}
	tacho__summary_free(sum);
	return error < 0 ? error : f->error;
}

const struct tacho__sql_table tacho__sql_loops =
	SQL_TABLE("loops", "a loop and the thread that ran it", loop_columns, .fill = fill_loops);
const struct tacho__sql_table tacho__sql_tasks = SQL_TABLE(
	"tasks", "a task, with sums over its polls", task_columns, .facts = {.task = on_task});
const struct tacho__sql_table tacho__sql_spans =
	SQL_TABLE("spans", "a span", span_columns, .facts = {.span = on_span});
const struct tacho__sql_table tacho__sql_counters =
	SQL_TABLE("counters", "a value of a counter, gauge or queue", counter_columns,
		  .facts = {.counter = on_counter});
const struct tacho__sql_table tacho__sql_logs =
	SQL_TABLE("logs", "a log message", log_columns, .facts = {.other = on_log});
const struct tacho__sql_table tacho__sql_events = SQL_TABLE(
	"events", "an event of the program's own", event_columns, .facts = {.other = on_event});
