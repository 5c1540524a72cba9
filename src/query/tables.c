/* All tables, made of tables.def: fields, columns, and what puts a row of each. */
#include "query/fill.h"
#include "text/names.h"

/* clang-format off */

/* How the roles of fields are seen. */
#define VIEW_NUMBER SQL_NUMBER
#define VIEW_NUMBER_OR_NONE SQL_OPTIONAL
#define VIEW_NS SQL_NUMBER
#define VIEW_NS_OR_NONE SQL_OPTIONAL
#define VIEW_FLAG SQL_NUMBER
#define VIEW_TIME SQL_KEY
#define VIEW_TIME_OR_NONE SQL_OPTIONAL
#define VIEW_KEY SQL_KEY
#define VIEW_KEY_OR_NONE SQL_OPTIONAL
#define VIEW_NOT_NEGATIVE SQL_NOT_NEGATIVE
#define VIEW_TID SQL_TID
#define VIEW_NAME SQL_ID_NAME
#define VIEW_TEXT SQL_POINTER
#define VIEW_CUT SQL_NUMBER
#define VIEW_RESULT SQL_RESULT
#define VIEW_FD_KIND SQL_DESCRIPTOR

#define FACT(fact, ...) static const struct tacho__sql_column columns_##fact[] = {
#define FIELD(fact, role, column, member, get, what) \
	{#column, VIEW_##role, V_##fact##_##column, 0, what},
#define FIELD_IF(fact, role, column, member, given, get, what) \
	{#column, SQL_IF, V_##fact##_##column, V_##fact##_##given, what},
#define SQL_FIELD(fact, role, column, get, what) \
	{#column, VIEW_##role, V_##fact##_##column, 0, what},
#define COLUMN(fact, view, column, value, what) \
	{#column, SQL_##view, V_##fact##_##value, 0, what},
#define COLUMN2(fact, view, column, value, other, what) \
	{#column, SQL_##view, V_##fact##_##value, V_##fact##_##other, what},
#define END(fact) };
#include "query/tables.def"

/* Of pointers to text, their bits. */
#define BITS(get)                                                                     \
	(uint64_t) _Generic((get), char *: (uintptr_t)(get), const char *: (uintptr_t)(get), \
			    default: (get))
#define PUT(fact, value, get)                    \
	if (f->rows->has >> V_##fact##_##value & 1) \
		v[V_##fact##_##value] = BITS(get);

#define FACT(fact, name, type, table, process, ns, what) \
	void tacho__sql_put_##fact(void *arg, const struct type *x) \
	{ \
		struct tacho__sql_filling *f = arg; \
		uint64_t v[SQL_FIELDS]; \
		v[SQL_PROCESS] = process;
#define FIELD(fact, role, column, member, get, what) PUT(fact, column, get)
#define FIELD_IF(fact, role, column, member, given, get, what) PUT(fact, column, get)
#define SQL_FIELD(fact, role, column, get, what) PUT(fact, column, get)
#define VALUE(fact, value, get) PUT(fact, value, get)
#define END(fact) \
		tacho__sql_put(f, v); \
	}
#include "query/tables.def"

#define FACT(fact, name, type, table, process, ns, what) \
	static const char name_##fact[] = #table, what_##fact[] = what;
#include "query/tables.def"

/* clang-format on */

const struct tacho__sql_table *tacho__sql_table_at(uint32_t index)
{
#define TABLE(fact, ...)                                                                     \
	{                                                                                    \
		name_##fact, what_##fact, columns_##fact, COUNT(columns_##fact), __VA_ARGS__ \
	}
#define FILLED(fact) TABLE(fact, .fill = tacho__sql_fill_##fact)
#define OF_FACTS(fact) TABLE(fact, .facts = {.fact = tacho__sql_put_##fact})
	/* In this order they are listed. */
	static const struct tacho__sql_table tables[] = {
		FILLED(process),
		FILLED(thread),
		FILLED(loop),
		OF_FACTS(turn),
		OF_FACTS(task),
		OF_FACTS(poll),
		OF_FACTS(wake),
		OF_FACTS(lock),
		OF_FACTS(call),
		OF_FACTS(work),
		OF_FACTS(span),
		OF_FACTS(counter),
		TABLE(log, .facts = {.other = tacho__sql_take_log}),
		TABLE(event, .facts = {.other = tacho__sql_take_event}),
		OF_FACTS(sample),
		FILLED(frame),
		OF_FACTS(off_cpu),
		FILLED(loss),
		FILLED(gap),
		FILLED(absent),
		FILLED(problem),
		FILLED(ledger),
	};
	_Static_assert(COUNT(tables) == SQL_TABLES, "all of them");

	return &tables[index];
}
