/* Tables of what the trace itself is: processes, threads, and what is missing. */
#include <string.h>

#include "explain/at_end.h"
#include "query/fill.h"
#include "text/names.h"

static uint64_t pointer(const char *text)
{
	return (uint64_t)(uintptr_t)text;
}

/* ---------------------------------------------------------------- processes */

enum {
	R_PARENT = 1,
	R_UID,
	R_COMM,
	R_EXE,
	R_COMMAND_LINE,
	R_SERVICE,
	R_HOST,
	R_STATE,
	R_REASON,
	R_WHY,
	R_CREATED,
	R_CREATED_REAL,
	R_TAKEN,
	R_END_HOW,
	R_END_EXITED,
	R_END_KILLED,
	R_END_STATUS,
	R_END_SIGNAL,
	R_END_NS,
	R_END_CORE,
	R_END_MEMORY
};

/* clang-format off */
static const struct tacho__sql_column process_columns[] = {
	PROCESS_COLUMNS,
	{"parent_pid", SQL_OPTIONAL, R_PARENT, 0, "process that it was forked from, or its parent when it was first seen"},
	{"uid", SQL_NUMBER, R_UID, 0, "its user"},
	{"comm", SQL_POINTER, R_COMM, 0, "its name"},
	{"exe", SQL_POINTER, R_EXE, 0, "its program"},
	{"command_line", SQL_POINTER, R_COMMAND_LINE, 0, "its arguments, with spaces between"},
	{"service", SQL_POINTER, R_SERVICE, 0, "name that was given to the recording"},
	{"host", SQL_POINTER, R_HOST, 0, "machine"},
	{"state", SQL_POINTER, R_STATE, 0, "how recording stood when the trace was taken"},
	{"reason", SQL_POINTER, R_REASON, 0, "why it is off or degraded; NULL: all well"},
	{"why", SQL_POINTER, R_WHY, 0, "what the trace was taken for; NULL: its end, or asked"},
	{"begin_ns", SQL_OPTIONAL, R_CREATED, 0, "recording began"},
	{"begin_real_ns", SQL_OPTIONAL, R_CREATED_REAL, 0, "the same in wall time, since 1970"},
	{"taken_ns", SQL_OPTIONAL, R_TAKEN, 0, "the trace was taken"},
	{"end_how", SQL_POINTER, R_END_HOW, 0, "exited, killed, gone (how is not known), running, exec; NULL: not told"},
	{"end_ns", SQL_OPTIONAL, R_END_NS, 0, "when it ended or was last seen alive"},
	{"exit_status", SQL_IF, R_END_STATUS, R_END_EXITED, "of one that exited"},
	{"end_signal", SQL_IF, R_END_SIGNAL, R_END_KILLED, "number of the signal that killed it"},
	{"core_dumped", SQL_IF, R_END_CORE, R_END_KILLED, "1: the signal made it dump core"},
	{"out_of_memory", SQL_IF, R_END_MEMORY, R_END_KILLED, "1: the out-of-memory killer was at work then"},
};
/* clang-format on */

static int fill_processes(struct tacho__sql_filling *f)
{
	for (uint32_t i = 0; i < tacho_read_process_count(f->source->reader); i++) {
		const struct tacho_process *p = tacho_read_process(f->source->reader, i);
		uint64_t v[SQL_FIELDS] = {0};

		if (!p)
			continue;
		v[SQL_PROCESS] = i;
		v[R_PARENT] = p->parent_pid;
		v[R_UID] = p->uid;
		v[R_COMM] = pointer(p->comm);
		v[R_COMMAND_LINE] = pointer(p->command_line);
		v[R_EXE] = pointer(p->exe);
		v[R_SERVICE] = pointer(p->service);
		v[R_HOST] = pointer(p->host);
		v[R_STATE] = pointer(name_state(p->state));
		v[R_REASON] = pointer(p->reason);
		v[R_WHY] = pointer(p->why);
		v[R_CREATED] = p->created_mono_ns;
		v[R_CREATED_REAL] = p->created_real_ns;
		v[R_TAKEN] = p->taken_mono_ns;
		v[R_END_HOW] = pointer(p->end_how ? name_end(p->end_how) : "");
		v[R_END_EXITED] = p->end_how == TACHO_END_EXITED;
		v[R_END_KILLED] = p->end_how == TACHO_END_KILLED;
		v[R_END_STATUS] = v[R_END_SIGNAL] = p->end_status;
		v[R_END_NS] = p->end_ns;
		v[R_END_CORE] = (p->end_flags & TACHO_END_CORE) != 0;
		v[R_END_MEMORY] = (p->end_flags & TACHO_END_NO_MEMORY) != 0;
		tacho__sql_put(f, v);
	}
	return f->error;
}

/* ------------------------------------------------------------------ threads */

enum { H_TID = 1, H_NAME, H_START, H_LIVE, H_AT_END };

/* clang-format off */
static const struct tacho__sql_column thread_columns[] = {
	PROCESS_COLUMNS,
	{"tid", SQL_KEY, H_TID, 0, "its tid"},
	{"name", SQL_POINTER, H_NAME, 0, "its name"},
	{"begin_ns", SQL_OPTIONAL, H_START, 0, "first record; NULL: not known"},
	{"live", SQL_NUMBER, H_LIVE, 0, "1: it ran when the trace was taken"},
	{"at_end", SQL_POINTER, H_AT_END, 0, "what it was in when its process ended, or was last seen alive; NULL: not known"},
};
/* clang-format on */

/* NULL: the trace does not say. */
static const char *text_at_end(struct tacho__sql_filling *f, const struct tacho__at_ends *list,
			       const struct tacho_thread *t)
{
	char text[TACHO__AT_END_TEXT];

	for (uint32_t i = 0; i < list->count; i++)
		if (list->at[i].process == t->process && list->at[i].thread == t->number) {
			tacho__at_end_text(text, list->reader, &list->at[i]);
			return tacho__sql_keep(f, text, strlen(text));
		}
	return NULL;
}

static int fill_threads(struct tacho__sql_filling *f)
{
	bool wanted = f->rows->has >> H_AT_END & 1;
	struct tacho__at_ends list = {0};
	int error = wanted ? tacho__at_end_list(f->source->reader, &list) : 0;

	for (uint32_t i = 0; i < tacho_read_thread_count(f->source->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(f->source->reader, i);
		uint64_t v[SQL_FIELDS] = {0};

		if (!t)
			continue;
		v[SQL_PROCESS] = t->process;
		v[H_TID] = t->tid;
		v[H_NAME] = pointer(t->name);
		v[H_START] = t->start_ns;
		v[H_LIVE] = t->live != 0;
		v[H_AT_END] = pointer(t->live ? text_at_end(f, &list, t) : NULL);
		tacho__sql_put(f, v);
	}
	tacho__at_end_free(&list);
	return error < 0 ? error : f->error;
}

/* ------------------------------------------------------------------- losses */

enum { X_NAME = 1, X_TEXT, X_COUNT, X_LOSSY };

/* clang-format off */
static const struct tacho__sql_column loss_columns[] = {
	PROCESS_COLUMNS,
	{"name", SQL_POINTER, X_NAME, 0, "what was counted"},
	{"count", SQL_NUMBER, X_COUNT, 0, "how often; 0: it was looked for and did not happen"},
	{"lossy", SQL_NUMBER, X_LOSSY, 0, "1: events or names are missing because of it"},
	{"text", SQL_POINTER, X_TEXT, 0, "what it means"},
};
/* clang-format on */

static int fill_losses(struct tacho__sql_filling *f)
{
	struct tacho_loss_info info = {.size = sizeof(info)};

	for (uint32_t p = 0; p < tacho_read_process_count(f->source->reader); p++)
		for (uint32_t i = 0; i < tacho_read_loss_count(f->source->reader); i++) {
			uint64_t v[SQL_FIELDS] = {0};

			if (tacho_read_loss(f->source->reader, p, i, &info) < 0)
				continue;
			v[SQL_PROCESS] = p;
			v[X_NAME] = pointer(info.name);
			v[X_TEXT] = pointer(info.text);
			v[X_COUNT] = info.count;
			v[X_LOSSY] = info.lossy != 0;
			tacho__sql_put(f, v);
		}
	return f->error;
}

/* --------------------------------------------------------------------- gaps */

enum { G_THREAD = 1, G_FROM, G_TO, G_RECORDS, G_REASON, G_TEXT, G_ERROR };

/* clang-format off */
static const struct tacho__sql_column gap_columns[] = {
	PROCESS_COLUMNS,
	{"tid", SQL_TID, G_THREAD, 0, "thread whose records are missing; NULL: all"},
	{"begin_ns", SQL_KEY, G_FROM, 0, "from when"},
	{"end_ns", SQL_KEY, G_TO, 0, "until when"},
	{"ns", SQL_DIFFERENCE, G_TO, G_FROM, "how long"},
	{"records", SQL_OPTIONAL, G_RECORDS, 0, "how many are missing; NULL: not known"},
	{"reason", SQL_POINTER, G_REASON, 0, "hole (overwritten, damaged or without room), no-agent, no-space, unwritable, too-fast or kernel"},
	{"errno", SQL_OPTIONAL, G_ERROR, 0, "error of the agent; NULL: none"},
	{"text", SQL_POINTER, G_TEXT, 0, "what happened"},
};
/* clang-format on */

static void on_hole(void *arg, const struct tacho__hole *h)
{
	uint64_t v[SQL_FIELDS] = {0};

	v[SQL_PROCESS] = h->process;
	v[G_THREAD] = h->thread;
	v[G_FROM] = h->from_ns;
	v[G_TO] = h->to_ns;
	v[G_RECORDS] = h->missing + h->dropped;
	v[G_REASON] = pointer("hole");
	tacho__sql_put(arg, v);
}

static int fill_gaps(struct tacho__sql_filling *f)
{
	const struct tacho__facts facts = {.hole = on_hole};
	int error = tacho__sql_run(f, &facts);

	for (uint32_t i = 0; !error && i < tacho_read_gap_count(f->source->reader); i++) {
		const struct tacho_gap *g = tacho_read_gap(f->source->reader, i);
		uint64_t v[SQL_FIELDS] = {0};

		if (!g)
			continue;
		v[SQL_PROCESS] = g->process;
		v[G_FROM] = g->from_ns;
		v[G_TO] = g->to_ns;
		v[G_RECORDS] = g->records;
		v[G_REASON] = pointer(g->reason);
		v[G_TEXT] = pointer(g->text);
		v[G_ERROR] = (uint64_t)(int64_t)g->error;
		tacho__sql_put(f, v);
	}
	return error ? error : f->error;
}

/* ------------------------------------------------------------- not recorded */

enum { N_PID = 1, N_PARENT, N_COMM, N_EXE, N_SEEN, N_REASON, N_TEXT, N_SAID, N_ERROR, N_HINDERED };

/* clang-format off */
static const struct tacho__sql_column absent_columns[] = {
	{"pid", SQL_NUMBER, N_PID, 0, "its pid"},
	{"parent_pid", SQL_OPTIONAL, N_PARENT, 0, "that of its parent when it was seen; NULL: not known"},
	{"comm", SQL_POINTER, N_COMM, 0, "its name"},
	{"exe", SQL_POINTER, N_EXE, 0, "path of its program; NULL: not known"},
	{"seen_ns", SQL_KEY, N_SEEN, 0, "when it was seen first"},
	{"reason", SQL_POINTER, N_REASON, 0, "rights, static, machine, libc, environment, library, excluded, idle, refused or hidden"},
	{"hindered", SQL_NUMBER, N_HINDERED, 0, "1: it could not be recorded; 0: it was not to be, or had nothing to record"},
	{"text", SQL_POINTER, N_TEXT, 0, "the reason in words"},
	{"said", SQL_POINTER, N_SAID, 0, "what its recorder said; NULL: nothing"},
	{"errno", SQL_OPTIONAL, N_ERROR, 0, "NULL: none"},
};
/* clang-format on */

/* NULL for none. */
static uint64_t pointer_known(const char *text)
{
	return text[0] ? pointer(text) : 0;
}

static int fill_absent(struct tacho__sql_filling *f)
{
	const struct tacho_reader *r = f->source->reader;

	for (uint32_t i = 0; i < tacho_read_absent_count(r); i++) {
		const struct tacho_absent *a = tacho_read_absent(r, i);
		uint64_t v[SQL_FIELDS] = {0};

		v[N_PID] = a->pid;
		v[N_PARENT] = a->parent_pid;
		v[N_COMM] = pointer(a->comm);
		v[N_EXE] = pointer_known(a->exe);
		v[N_SEEN] = a->seen_ns;
		v[N_REASON] = pointer(a->reason);
		v[N_TEXT] = pointer(a->text);
		v[N_SAID] = pointer_known(a->said);
		v[N_ERROR] = (uint64_t)(int64_t)a->error;
		v[N_HINDERED] = a->hindered != 0;
		tacho__sql_put(f, v);
	}
	return f->error;
}

/* ----------------------------------------------------------------- problems */

enum { B_NAME = 1, B_TEXT, B_PATH, B_OFFSET, B_SIZE };

/* clang-format off */
static const struct tacho__sql_column problem_columns[] = {
	{"name", SQL_POINTER, B_NAME, 0, "damaged-block, cut and so on"},
	{"text", SQL_POINTER, B_TEXT, 0, "what is wrong"},
	{"path", SQL_POINTER, B_PATH, 0, "file"},
	{"offset", SQL_IF, B_OFFSET, B_SIZE, "where in the file; NULL: not about a place"},
	{"size", SQL_OPTIONAL, B_SIZE, 0, "bytes; NULL: not about a place"},
};
/* clang-format on */

/* Some problems are only found when the events are read. */
static int fill_problems(struct tacho__sql_filling *f)
{
	const struct tacho__facts facts = {0};
	int error = tacho__sql_run(f, &facts);

	for (uint32_t i = 0; !error && i < tacho_read_problem_count(f->source->reader); i++) {
		const struct tacho_problem *p = tacho_read_problem(f->source->reader, i);
		uint64_t v[SQL_FIELDS] = {0};

		if (!p)
			continue;
		v[B_NAME] = pointer(p->name);
		v[B_TEXT] = pointer(p->text);
		v[B_PATH] = pointer(p->path);
		v[B_OFFSET] = p->offset;
		v[B_SIZE] = p->size;
		tacho__sql_put(f, v);
	}
	return error ? error : f->error;
}

const struct tacho__sql_table tacho__sql_processes =
	SQL_TABLE("processes", "a recorded process", process_columns, .fill = fill_processes);
const struct tacho__sql_table tacho__sql_threads =
	SQL_TABLE("threads", "a thread", thread_columns, .fill = fill_threads);
const struct tacho__sql_table tacho__sql_losses = SQL_TABLE(
	"losses", "something that the recorder counts as lost", loss_columns, .fill = fill_losses);
const struct tacho__sql_table tacho__sql_gaps = SQL_TABLE(
	"gaps", "a stretch of time of which records are missing", gap_columns, .fill = fill_gaps);
const struct tacho__sql_table tacho__sql_absent =
	SQL_TABLE("absent", "a process of the same run that was not recorded", absent_columns,
		  .fill = fill_absent);
const struct tacho__sql_table tacho__sql_problems =
	SQL_TABLE("problems", "something that is wrong with the file", problem_columns,
		  .fill = fill_problems);
