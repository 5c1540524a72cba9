#include "answer/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/describe.h"
#include "explain/explain.h"
#include "model/place.h"
#include "read/memory.h"

enum { LOOPS, POLLS, WAKES, TIMERS, LOCKS, CALLS, POOL_WAITS, POOL_RUNS, SPANS };
static const struct stats_table tables[STATS_TABLES] = {
	[LOOPS] = {.title = "turns of loops", .key = "loops"},
	[POLLS] = {.title = "callbacks and polls", .key = "polls"},
	[WAKES] = {.title = "from wake to poll", .key = "wakes"},
	[TIMERS] = {.title = "lateness of timers", .key = "timers"},
	[LOCKS] = {.title = "waits for locks", .key = "locks"},
	[CALLS] = {.title = "blocking calls", .key = "calls"},
	[POOL_WAITS] = {.title = "work waiting for the pool", .key = "pool_waits"},
	[POOL_RUNS] = {.title = "work run by the pool", .key = "pool_runs"},
	[SPANS] = {.title = "spans", .key = "spans"},
};

/* NULL: no memory, which is the error of all. */
static struct stats_row *row_add(struct stats *s, uint32_t table, const struct tacho__hist *hist,
				 uint64_t rank, uint32_t process, uint32_t id)
{
	struct stats_table *t = &s->tables[table];

	if (TACHO__GROW(t->rows, t->capacity, t->count + 1)) {
		s->error = -ENOMEM;
		return NULL;
	}
	memset(&t->rows[t->count], 0, sizeof(t->rows[0]));
	t->rows[t->count].hist = hist;
	t->rows[t->count].rank = rank;
	t->rows[t->count].process = process;
	t->rows[t->count].id = id;
	t->rows[t->count].order = t->count;
	return &t->rows[t->count++];
}

/* One that has nothing but durations and a name, if there are any durations. */
static void row_named(struct stats *s, uint32_t table, const struct tacho__hist *hist,
		      uint32_t process, uint32_t id, const char name[160])
{
	struct stats_row *r = hist->count ? row_add(s, table, hist, hist->sum, process, id) : NULL;

	if (r)
		memcpy(r->name, name, sizeof(r->name));
}

static void row_extra(struct stats_row *r, const char *name, double value)
{
	if (r->extras < 5) {
		r->extra_name[r->extras] = name;
		r->extra[r->extras++] = value;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct stats_row *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? 1 : -1;
	return x->order < y->order ? -1 : 1;
}

/* -------------------------------------------------------------------- names */

static void name_id(const struct stats *s, char *out, size_t size, uint32_t process, uint32_t id)
{
	tacho__name_of(out, size, s->reader, process, id, s->sum->last_ns);
	if (!out[0])
		snprintf(out, size, "(not known)");
}

/* The innermost function of the program in a stack or place. */
static void name_place(const struct stats *s, char *out, size_t size, uint32_t process, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(s->reader, process, id, s->sum->last_ns, places,
					 TACHO__PLACES_MAX);
	const struct tacho__place p = tacho__places_best(places, n);

	out[0] = 0;
	if (p.function[0] && p.file[0])
		snprintf(out, size, "%s (%s:%" PRIu32 ")", p.function, tacho__place_file(&p),
			 p.line);
	else if (n)
		tacho__place_name(out, size, &p);
}

/* ------------------------------------------------------------- of the ledger */

void stats_add_up(const struct tacho__ledger *l, uint32_t thread, uint64_t ns[TACHO__OWNS_COUNT])
{
	for (uint32_t i = 0; i < TACHO__OWNS_COUNT; i++)
		ns[i] = 0;
	for (uint32_t i = 0; i < l->line_count; i++)
		if (l->lines[i].thread == thread)
			ns[l->lines[i].owns] += l->lines[i].ns;
}

static const struct tacho__ledger_thread *thread_of(const struct tacho__ledger *l, uint32_t process,
						    uint32_t thread)
{
	for (uint32_t i = 0; i < l->thread_count; i++)
		if (l->threads[i].process == process && l->threads[i].thread == thread)
			return &l->threads[i];
	return NULL;
}

/* The part of its time in which it did not wait for work, 0..1. */
static double busy_of(const struct tacho__ledger_thread *t)
{
	uint64_t all = t ? t->last_ns - t->first_ns : 0;

	return all ? 1 - (double)t->idle_ns / (double)all : 0;
}

/* ---------------------------------------------------------------- locks and calls */

/* The waits for a lock that are none for work; NULL: all are. `ns`: what threads of interest lost. */
static const struct tacho__hist *lock_waits(const struct tacho_reader *reader,
					    const struct tacho__ledger *l,
					    const struct tacho__lock_sum *k, uint64_t *ns)
{
	const struct tacho__lock *worst = k->worst_any.count ? &k->worst_any.at[0] : NULL;
	int is_signal = k->is_signal || (worst && tacho__idles(reader, worst));
	uint32_t place = k->worst.count ? k->worst.at[0].place : 0;

	*ns = 0;
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->owns == TACHO__OWNS_LOCK && o->process == k->process &&
		    (o->is_signal ? is_signal && o->entry.key[1] == place : o->lock == k->lock))
			*ns += o->ns;
	/* What threads hand each other is waited for where there is nothing to do. */
	if (is_signal)
		return *ns && k->inside.count ? &k->inside : NULL;
	return &k->ns;
}

/* Whether the call is where threads wait for work. */
static int is_work_place(const struct tacho__ledger *l, const struct tacho__call_sum *k)
{
	uint64_t idle = 0, ns = 0;

	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));)
		if (o->owns == TACHO__OWNS_CALL && o->process == k->process && o->name == k->name &&
		    o->place == k->stack) {
			idle += o->work_place_ns;
			ns += o->ns;
		}
	return idle > ns;
}
/* ------------------------------------------------------------------- tables */

static void add_kinds(struct stats *s)
{
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&s->sum->kinds, k));) {
		char name[160];
		struct stats_row *r;

		if (k->kind) {
			name_id(s, name, sizeof(name), k->process, k->kind);
		} else {
			char loop[120];

			name_id(s, loop, sizeof(loop), k->process, k->loop);
			snprintf(name, sizeof(name), "turns of %s", loop);
		}
		r = k->ns.count || k->cut
			    ? row_add(s, POLLS, &k->ns, k->ns.sum, k->process, k->kind)
			    : NULL;
		if (r) {
			memcpy(r->name, name, sizeof(name));
			row_extra(r, "cut", (double)k->cut);
			if (k->cut)
				snprintf(r->more, sizeof(r->more),
					 "and %" PRIu64 " cut by the edge of what was recorded",
					 k->cut);
		}
		row_named(s, WAKES, &k->wake, k->process, k->kind, name);
		row_named(s, TIMERS, &k->late, k->process, k->kind, name);
	}
}

static void add_loops(struct stats *s)
{
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&s->sum->loops, l));) {
		struct stats_row *r =
			l->loop ? row_add(s, LOOPS, &l->ns, l->busy_ns, l->process, l->loop) : NULL;
		const struct tacho__ledger_thread *t;
		double busy;

		if (!r)
			continue;
		t = thread_of(s->ledger, l->process, l->thread);
		busy = 100 * busy_of(t);
		name_id(s, r->name, sizeof(r->name), l->process, l->loop);
		tacho__loop_name(r->distinct, sizeof(r->distinct), s->reader, l);
		snprintf(r->more, sizeof(r->more), "%.1f %% busy%s", busy,
			 l->level == TACHO_LEVEL_WAITS ? "; its callbacks are not seen" : "");
		row_extra(r, "utilisation", busy / 100);
		row_extra(r, "level", l->level);
		row_extra(r, "parked_ns", (double)l->parked_ns);
		row_extra(r, "idle_ns", t ? (double)t->idle_ns : 0);
		row_extra(r, "futile", (double)l->no_ready);
	}
}

static void add_locks(struct stats *s)
{
	for (const struct tacho__lock_sum *k = NULL; (k = tacho__table_next(&s->sum->locks, k));) {
		uint64_t ns;
		const struct tacho__hist *h = lock_waits(s->reader, s->ledger, k, &ns);
		struct stats_row *r =
			h && h->count ? row_add(s, LOCKS, h, h->sum, k->process, 0) : NULL;
		char place[120];

		if (!r)
			continue;
		name_place(s, place, sizeof(place), k->process,
			   k->worst_any.count ? k->worst_any.at[0].place : 0);
		snprintf(r->name, sizeof(r->name), "0x%" PRIx64 " %s", k->lock, place);
		row_extra(r, "inside_ns", (double)ns);
		row_extra(r, "gave_up", (double)k->gave_up);
		if (k->inside.count)
			snprintf(r->more, sizeof(r->more), "%" PRIu64 " of them on loops",
				 k->inside.count);
	}
}

static void add_calls(struct stats *s)
{
	for (const struct tacho__call_sum *k = NULL; (k = tacho__table_next(&s->sum->calls, k));) {
		struct stats_row *r =
			is_work_place(s->ledger, k)
				? NULL
				: row_add(s, CALLS, &k->ns, k->ns.sum, k->process, k->name);
		char name[64], place[90];

		if (!r)
			continue;
		name_id(s, name, sizeof(name), k->process, k->name);
		name_place(s, place, sizeof(place), k->process, k->stack);
		snprintf(r->name, sizeof(r->name), "%s%s%s", name, place[0] ? " by " : "", place);
		row_extra(r, "errors", (double)k->errors);
	}
}

static void add_works(struct stats *s)
{
	for (const struct tacho__work_sum *k = NULL; (k = tacho__table_next(&s->sum->works, k));) {
		char name[160];

		name_id(s, name, sizeof(name), k->process, k->kind);
		row_named(s, POOL_WAITS, &k->wait, k->process, k->kind, name);
		row_named(s, POOL_RUNS, &k->run, k->process, k->kind, name);
	}
}

static void add_spans(struct stats *s)
{
	for (const struct tacho__span_sum *k = NULL; (k = tacho__table_next(&s->sum->spans, k));) {
		struct stats_row *r = row_add(s, SPANS, &k->ns, k->ns.sum, k->process, k->name);

		if (!r)
			continue;
		name_id(s, r->name, sizeof(r->name), k->process, k->name);
		row_extra(r, "cut", (double)k->cut);
		row_extra(r, "async", k->async);
	}
}

static int read_all(struct stats *s, struct tacho_reader *reader,
		    void (*progress)(void *arg, uint64_t ns), void *arg)
{
	int one = tacho_read_process_count(reader) < 2, error = -ENOMEM;
	struct tacho__facts facts;

	/* Of several processes each has a window of its own. */
	s->ledger = one ? tacho__ledger_new(reader) : NULL;
	if (one && !s->ledger)
		return -ENOMEM;
	if (one)
		facts = tacho__ledger_facts(s->ledger);
	s->sum = tacho__summary_make(reader, one ? &facts : NULL, (uint32_t)one, progress, arg,
				     &error);
	if (!s->sum)
		return error;
	if (one)
		error = tacho__ledger_turn_page(s->ledger);
	if (one && !error)
		error = tacho__ledger_close(s->ledger);
	if (!one)
		s->ledger = tacho__ledger_make(reader, &error);
	return error;
}

int stats_read(struct stats *s, struct tacho_reader *reader,
	       void (*progress)(void *arg, uint64_t ns), void *arg)
{
	int error;

	*s = (struct stats){.reader = reader};
	memcpy(s->tables, tables, sizeof(tables));
	error = read_all(s, reader, progress, arg);
	if (error)
		return error;
	add_loops(s);
	add_kinds(s);
	add_locks(s);
	add_calls(s);
	add_works(s);
	add_spans(s);
	for (uint32_t i = 0; i < STATS_TABLES; i++)
		TACHO__SORT(s->tables[i].rows, s->tables[i].count, by_rank);
	return s->error;
}

void stats_free(struct stats *s)
{
	for (uint32_t i = 0; i < STATS_TABLES; i++)
		free(s->tables[i].rows);
	tacho__summary_free(s->sum);
	tacho__ledger_free(s->ledger);
}

/* --------------------------------------------------------------------- JSON */

static void put_hist(struct json *j, const struct tacho__hist *h)
{
	static const struct {
		const char *name;
		double share;
	} at[] = {{"p50_ns", 0.5}, {"p90_ns", 0.9}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};

	json_put_u64(j, "count", h->count);
	json_put_u64(j, "total_ns", h->sum);
	for (uint32_t i = 0; i < 4; i++)
		json_put_u64(j, at[i].name, tacho__hist_at(h, at[i].share));
	json_put_u64(j, "max_ns", h->most);
}

static void put_threads(struct json *j, const struct tacho_reader *reader,
			const struct tacho__ledger *l)
{
	json_put_array(j, "threads");
	for (uint32_t i = 0; i < l->thread_count; i++) {
		const struct tacho__ledger_thread *t = &l->threads[i];
		const struct tacho_process *p = tacho_read_process(reader, t->process);
		uint64_t ns[TACHO__OWNS_COUNT];

		if (!tacho__is_of_interest(t))
			continue;
		stats_add_up(l, i, ns);
		json_object(j);
		json_put_u64(j, "pid", p ? p->pid : 0);
		describe_thread_json(j, "tid",
				     tacho_read_thread_by_number(reader, t->process, t->thread));
		json_put_u64(j, "from_ns", t->first_ns);
		json_put_u64(j, "to_ns", t->last_ns);
		json_put_u64(j, "waiting_ns", t->waiting_ns);
		json_put_object(j, "owners");
		for (uint32_t k = 1; k < TACHO__OWNS_COUNT; k++)
			json_put_u64(j, tacho__owns_name((enum tacho__owns)k), ns[k]);
		json_object_end(j);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_table(struct json *j, const struct stats_table *t, uint64_t top)
{
	json_put_array(j, t->key);
	for (uint32_t i = 0; i < t->count && i < top; i++) {
		const struct stats_row *r = &t->rows[i];

		json_object(j);
		json_put_string(j, "name", r->name);
		if (r->distinct[0])
			json_put_string(j, "distinct_name", r->distinct);
		json_put_u64(j, "process", r->process);
		json_put_u64(j, "id", r->id);
		put_hist(j, r->hist);
		for (uint32_t k = 0; k < r->extras; k++)
			json_put_f64(j, r->extra_name[k], r->extra[k]);
		json_object_end(j);
	}
	json_array_end(j);
}

void answer_stats(struct json *j, const struct stats *s, uint64_t top)
{
	json_object(j);
	json_put_u64(j, "version", 1);
	json_put_u64(j, "events", s->sum->events);
	json_put_u64(j, "from_ns", s->sum->first_ns);
	json_put_u64(j, "to_ns", s->sum->last_ns);
	put_threads(j, s->reader, s->ledger);
	for (uint32_t i = 0; i < STATS_TABLES; i++)
		put_table(j, &s->tables[i], top);
	json_object_end(j);
}
