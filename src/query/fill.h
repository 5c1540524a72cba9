/* What the files that fill the tables of `tacho sql` share. */
#ifndef TACHO_QUERY_FILL_H
#define TACHO_QUERY_FILL_H

#include "explain/at_end.h"
#include "explain/ledger.h"
#include "model/place.h"
#include "model/summary.h"
#include "query/table.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Rows of tables that are not of facts: `x` in tables.def. */
struct tacho__sql_process {
	uint32_t process;
	const struct tacho_process *p;
};
struct tacho__sql_thread {
	const struct tacho_thread *t;
	const struct tacho__at_ends *at_ends;
};
struct tacho__sql_said {
	const struct tacho__at *at;
	const struct tacho_event *e;
	const char *text; /* of a log */
	size_t size;
	int cut;
};
struct tacho__sql_frame {
	uint32_t process, stack, depth;
	const struct tacho__place *place;
	bool kernel;
};
struct tacho__sql_loss {
	uint32_t process;
	struct tacho_loss_info info;
};
struct tacho__sql_gap {
	uint32_t thread; /* 0: all */
	struct tacho_gap g;
};
struct tacho__sql_ledger {
	const struct tacho__ledger_line *line;
	const struct tacho__ledger_thread *t;
	const char *name;
	struct tacho__place place;
};

/* Fields of tables: V_poll_begin_ns. That of the process is SQL_PROCESS. */
/* clang-format off */
#define FACT(fact, ...) enum { V_##fact##_process,
#define FIELD(fact, role, column, ...) V_##fact##_##column,
#define FIELD_IF FIELD
#define SQL_FIELD FIELD
#define VALUE(fact, value, get) V_##fact##_##value,
#define END(fact) \
	V_##fact##_END }; \
	_Static_assert((int)V_##fact##_END <= (int)SQL_FIELDS, "all fields of a " #fact " fit");
#include "query/tables.def"
/* clang-format on */

/* What puts a row of each table; `arg` is the filling. */
#define FACT(fact, name, type, ...) void tacho__sql_put_##fact(void *arg, const struct type *x);
#include "query/tables.def"

/* What fills a table that is not of facts. */
int tacho__sql_fill_process(struct tacho__sql_filling *f);
int tacho__sql_fill_thread(struct tacho__sql_filling *f);
int tacho__sql_fill_loop(struct tacho__sql_filling *f);
int tacho__sql_fill_frame(struct tacho__sql_filling *f);
int tacho__sql_fill_loss(struct tacho__sql_filling *f);
int tacho__sql_fill_gap(struct tacho__sql_filling *f);
int tacho__sql_fill_absent(struct tacho__sql_filling *f);
int tacho__sql_fill_problem(struct tacho__sql_filling *f);
int tacho__sql_fill_ledger(struct tacho__sql_filling *f);
void tacho__sql_take_log(void *arg, const struct tacho__at *at, const struct tacho_event *e);
void tacho__sql_take_event(void *arg, const struct tacho__at *at, const struct tacho_event *e);

/* Values that have to be made, and are only where a query asks for them. */
uint32_t tacho__sql_stack(struct tacho__sql_filling *f, const struct tacho__sample *m);
uint64_t tacho__sql_address(struct tacho__sql_filling *f, const struct tacho__sample *m);
const char *tacho__sql_loop_name(struct tacho__sql_filling *f, const struct tacho__loop_sum *l);
const char *tacho__sql_at_end(struct tacho__sql_filling *f, const struct tacho__sql_thread *t);
const char *tacho__sql_fields(struct tacho__sql_filling *f, const struct tacho_event *e);

/* A row; `values` has SQL_FIELDS entries, of which those in rows->has are kept. */
void tacho__sql_put(struct tacho__sql_filling *f, const uint64_t *values);
/* Hands the facts of the whole trace to functions whose argument is `f`. */
int tacho__sql_run(struct tacho__sql_filling *f, const struct tacho__facts *facts);

/* frames.c: stacks of samples get numbers above those of all definitions. */
#define SQL_STACKS_FROM (1u << 24)
/* The functions of a stack, innermost first; *kernel: so many of them are the kernel's. */
uint32_t tacho__sql_stack_places(const struct tacho__sql_source *s, uint32_t process,
				 uint32_t stack, struct tacho__place *out, uint32_t most,
				 uint32_t *kernel);
void tacho__sql_stacks_free(struct tacho__sql_source *s);

#endif
