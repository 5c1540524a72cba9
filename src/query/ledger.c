/* The table of the ledger: who had the time of each thread, and what waited meanwhile. */
#include <string.h>

#include "explain/ledger.h"
#include "query/fill.h"

enum {
	E_OWNER = F_NEXT,
	E_KEY,
	E_FUNCTION,
	E_FILE,
	E_LINE,
	E_NS,
	E_COUNT,
	E_LONGEST,
	E_WAITING,
	E_ESTIMATED,
	E_POOL
};

/* clang-format off */
static const struct tacho__sql_column ledger_columns[] = {
	AT_COLUMNS,
	{"pool", SQL_NUMBER, E_POOL, 0, "1: the thread is one of a pool"},
	{"owner", SQL_POINTER, E_OWNER, 0, "idle, late, code, call, lock, descheduled, throttled, stopped, faulting, recorder or not observed"},
	{"name", SQL_POINTER, E_KEY, 0, "function or callback, call, lock with its holder, or why"},
	{"function", SQL_POINTER, E_FUNCTION, 0, "where it is: innermost function of the program"},
	{"file", SQL_POINTER, E_FILE, 0, "its file"},
	{"line", SQL_OPTIONAL, E_LINE, 0, "its line"},
	{"first_ns", SQL_KEY, F_BEGIN, 0, "first that is known of the thread"},
	{"last_ns", SQL_KEY, F_END, 0, "last that is: its rows add up to the time between"},
	{"ns", SQL_NUMBER, E_NS, 0, "time of the thread that the owner had"},
	{"count", SQL_NUMBER, E_COUNT, 0, "in how many pieces; of a function, those of its callback"},
	{"longest_ns", SQL_NUMBER, E_LONGEST, 0, "the longest of these"},
	{"waiting_ns", SQL_NUMBER, E_WAITING, 0, "cost: how long things waited meanwhile, in all"},
	{"estimated_ns", SQL_NUMBER, E_ESTIMATED, 0, "of waiting_ns: estimated"},
};
/* clang-format on */

static uint64_t keep(struct tacho__sql_filling *f, const char *text)
{
	return text[0] ? (uint64_t)(uintptr_t)tacho__sql_keep(f, text, strlen(text)) : 0;
}

static void put(struct tacho__sql_filling *f, const struct tacho__ledger *l,
		const struct tacho__ledger_line *line)
{
	const struct tacho__ledger_thread *t = &l->threads[line->thread];
	uint64_t v[SQL_FIELDS] = {0};
	struct tacho__place place;
	char key[256];

	v[F_PROCESS] = t->process;
	v[F_THREAD] = t->thread;
	v[F_LOOP] = t->loop;
	v[F_BEGIN] = t->first_ns;
	v[F_END] = t->last_ns;
	v[E_POOL] = t->is_pool;
	v[E_OWNER] = keep(f, tacho__owns_name(line->owns));
	v[E_KEY] = keep(f, tacho__ledger_key(l, line, key, sizeof(key)));
	if (tacho__ledger_place(l, line, &place)) {
		v[E_FUNCTION] = keep(f, place.function);
		v[E_FILE] = keep(f, place.file);
		v[E_LINE] = place.line;
	}
	v[E_NS] = line->ns;
	v[E_COUNT] = line->count;
	v[E_LONGEST] = line->longest_ns;
	v[E_WAITING] = line->waiting_ns;
	v[E_ESTIMATED] = line->estimated_ns;
	tacho__sql_put(f, v);
}

static int fill_ledger(struct tacho__sql_filling *f)
{
	int error;
	struct tacho__ledger *l = tacho__ledger_make(f->source->reader, &error);

	for (uint32_t i = 0; l && i < l->line_count; i++) {
		const struct tacho__ledger_thread *t = &l->threads[l->lines[i].thread];

		if (tacho__is_of_interest(t))
			put(f, l, &l->lines[i]);
	}
	tacho__ledger_free(l);
	return error < 0 ? error : f->error;
}

const struct tacho__sql_table tacho__sql_ledger =
	SQL_TABLE("ledger", "what an owner had of a thread's time, and what waited meanwhile",
		  ledger_columns, .fill = fill_ledger);
