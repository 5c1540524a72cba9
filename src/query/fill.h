/* What the files that fill the tables of `tacho sql` share. */
#ifndef TACHO_QUERY_FILL_H
#define TACHO_QUERY_FILL_H

#include "model/place.h"
#include "query/table.h"

/* A row; `values` has SQL_FIELDS entries, of which those in rows->has are kept. */
void tacho__sql_put(struct tacho__sql_filling *f, const uint64_t *values);
/* Hands the facts of the whole trace to functions whose argument is `f`. */
int tacho__sql_run(struct tacho__sql_filling *f, const struct tacho__facts *facts);

/* The fields that all tables about something at a place begin with. */
enum { F_PROCESS, F_THREAD, F_LOOP, F_KIND, F_TASK, F_IN_POLL, F_BEGIN, F_END, F_NEXT };
/* `end_ns` is 0 for what has no duration. */
void tacho__sql_put_at(uint64_t *v, const struct tacho__at *at, uint64_t begin_ns, uint64_t end_ns);

/* clang-format off */
#define PROCESS_COLUMNS \
	{"process", SQL_NUMBER, F_PROCESS, 0, "number of the process in this trace, from 0"}, \
	{"pid", SQL_PID, F_PROCESS, 0, "its pid"}
#define AT_COLUMNS \
	PROCESS_COLUMNS, \
	{"tid", SQL_TID, F_THREAD, 0, "thread"}, \
	{"thread", SQL_THREAD_NAME, F_THREAD, 0, "its name"}, \
	{"loop", SQL_ID_NAME, F_LOOP, 0, "loop that the thread ran; NULL: none"}
/* Of the poll that was running. */
#define IN_COLUMNS \
	{"kind", SQL_ID_NAME, F_KIND, 0, "kind of the poll that was running; NULL: none"}, \
	{"function", SQL_ID_FUNCTION, F_KIND, 0, "function of that kind"}, \
	{"file", SQL_ID_FILE, F_KIND, 0, "its file"}, \
	{"line", SQL_ID_LINE, F_KIND, 0, "its line"}, \
	{"task", SQL_OPTIONAL, F_TASK, 0, "task of that poll"}, \
	{"in_poll_ns", SQL_OPTIONAL, F_IN_POLL, 0, "when that poll began: polls.begin_ns; NULL: none"}
/* Of what the row is about. */
#define KIND_COLUMNS \
	{"kind", SQL_ID_NAME, F_KIND, 0, "its kind; NULL: code between two waits of a loop"}, \
	{"function", SQL_ID_FUNCTION, F_KIND, 0, "function of the kind"}, \
	{"file", SQL_ID_FILE, F_KIND, 0, "its file"}, \
	{"line", SQL_ID_LINE, F_KIND, 0, "its line"}, \
	{"kind_id", SQL_OPTIONAL, F_KIND, 0, "number of the kind; two may have one name"}
#define TIME_COLUMNS \
	{"begin_ns", SQL_KEY, F_BEGIN, 0, "when it began"}, \
	{"end_ns", SQL_KEY, F_END, 0, "when it ended"}, \
	{"ns", SQL_DIFFERENCE, F_END, F_BEGIN, "how long it took"}
#define CUT_COLUMN(field) \
	{"cut", SQL_NUMBER, field, 0, \
	 "0: whole; sum of 1: began before the records, 2: went on after them, 4: a hole inside"}
/* clang-format on */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* How it is filled stands last: .fill or .facts. */
#define SQL_TABLE(name, text, columns, ...)                      \
	{                                                        \
		name, text, columns, COUNT(columns), __VA_ARGS__ \
	}

/* frames.c: stacks of samples get numbers above those of all definitions. */
#define SQL_STACKS_FROM (1u << 24)
/* The functions of a stack, innermost first; *kernel: so many of them are the kernel's. */
uint32_t tacho__sql_stack_places(const struct tacho__sql_source *s, uint32_t process,
				 uint32_t stack, struct tacho__place *out, uint32_t most,
				 uint32_t *kernel);
void tacho__sql_stacks_free(struct tacho__sql_source *s);

/* polls.c */
extern const struct tacho__sql_table tacho__sql_turns, tacho__sql_polls, tacho__sql_wakes,
	tacho__sql_locks, tacho__sql_calls, tacho__sql_pool;
/* others.c */
extern const struct tacho__sql_table tacho__sql_spans, tacho__sql_tasks, tacho__sql_loops,
	tacho__sql_counters, tacho__sql_logs, tacho__sql_events;
/* frames.c */
extern const struct tacho__sql_table tacho__sql_samples, tacho__sql_frames, tacho__sql_switches;
/* ledger.c */
extern const struct tacho__sql_table tacho__sql_ledger;
/* trace.c */
extern const struct tacho__sql_table tacho__sql_processes, tacho__sql_threads, tacho__sql_losses,
	tacho__sql_gaps, tacho__sql_absent, tacho__sql_problems;

#endif
