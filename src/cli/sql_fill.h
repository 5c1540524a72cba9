/* What the files that fill the tables of `tacho sql` share. */
#ifndef TACHO_CLI_SQL_FILL_H
#define TACHO_CLI_SQL_FILL_H

#include "cli/sql_table.h"
#include "model/model.h"
#include "model/place.h"

struct sql_filling {
	struct sql_source *source;
	struct sql_rows *rows;
	int error;
};

void sql_put(struct sql_filling *f, const uint64_t *values);
/* Hands the facts of the whole trace to functions whose argument is `f`. */
int sql_run(struct sql_filling *f, const struct tacho__facts *facts);
/* The same for a table that needs nothing else. */
int sql_fill(struct sql_source *s, struct sql_rows *rows, const struct tacho__facts *facts);

/* The fields that all tables about something at a place begin with. */
enum { F_PROCESS, F_THREAD, F_LOOP, F_KIND, F_TASK, F_IN_POLL, F_BEGIN, F_END, F_NEXT };
void sql_put_at(uint64_t *v, const struct tacho__at *at);

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

#define SQL_TABLE(name, text, columns, fill)              \
	{                                                 \
		name, text, columns, COUNT(columns), fill \
	}

/* sql_frames.c: stacks of samples get numbers above those of all definitions. */
#define SQL_STACKS_FROM (1u << 24)
/* The number of the stack of a sample, 0: it has none; there is room for so many. */
uint32_t sql_stack_of_sample(struct sql_filling *f, const struct tacho__sample *m);
/* The functions of a stack, innermost first; *kernel: so many of them are the kernel's. */
uint32_t sql_stack_places(const struct sql_source *s, uint32_t process, uint32_t stack,
			  struct tacho__place *out, uint32_t most, uint32_t *kernel);
void sql_stacks_free(struct sql_source *s);

/* sql_polls.c */
extern const struct sql_table sql_turns, sql_polls, sql_wakes, sql_locks, sql_calls, sql_pool;
/* sql_others.c */
extern const struct sql_table sql_spans, sql_tasks, sql_loops, sql_counters, sql_logs, sql_events;
/* sql_frames.c */
extern const struct sql_table sql_samples, sql_frames, sql_switches;
/* sql_trace.c */
extern const struct sql_table sql_processes, sql_threads, sql_losses, sql_gaps, sql_problems;

#endif
