/*
 * tacho stats: numbers of a trace: how long callbacks take, how late wakes are served, how busy
 * loops are, which locks and calls are waited for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "text/json.h"
#include "cli/parse.h"
#include "cli/stats_ledger.h"
#include "text/text.h"
#include "explain/explain.h"
#include "model/place.h"
#include "model/summary.h"
#include "read/memory.h"

#define TOP_DEFAULT 10u
#define NAME_WIDTH 44u
#define NUMBERS_WIDTH 49u /* of a line */

struct asked {
	bool json;
	uint64_t top;
	const struct tacho_reader *reader;
	const struct tacho__summary *sum;
	const struct tacho__ledger *ledger;
	struct json j;
};

/* One line of a table: what it is called, and its durations. */
struct row {
	char name[160];
	char distinct[160]; /* of a loop: told apart from others of its name */
	char more[64];	    /* what stands behind the numbers, for people */
	const struct tacho__hist *hist;
	uint64_t rank;
	/* For programs. */
	uint32_t process, id;
	const char *extra_name[5];
	double extra[5];
	uint32_t extras;
};

struct rows {
	struct row *at;
	uint32_t count, capacity;
};

static struct row *row_add(struct rows *rows, const struct tacho__hist *hist, uint64_t rank,
			   uint32_t process, uint32_t id)
{
	if (TACHO__GROW(rows->at, rows->capacity, rows->count + 1))
		return NULL;
	memset(&rows->at[rows->count], 0, sizeof(rows->at[0]));
	rows->at[rows->count].hist = hist;
	rows->at[rows->count].rank = rank;
	rows->at[rows->count].process = process;
	rows->at[rows->count].id = id;
	return &rows->at[rows->count++];
}

/* One that has nothing but durations and a name, if there are any durations. */
static void row_named(struct rows *rows, const struct tacho__hist *hist, uint32_t process,
		      uint32_t id, const char name[160])
{
	struct row *r = hist->count ? row_add(rows, hist, hist->sum, process, id) : NULL;

	if (r)
		memcpy(r->name, name, sizeof(r->name));
}

static void row_extra(struct row *r, const char *name, double value)
{
	if (r->extras < 5) {
		r->extra_name[r->extras] = name;
		r->extra[r->extras++] = value;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->rank < y->rank) - (x->rank > y->rank);
}

/* -------------------------------------------------------------------- names */

static void name_id(const struct asked *a, char *out, size_t size, uint32_t process, uint32_t id)
{
	tacho__name_of(out, size, a->reader, process, id, a->sum->last_ns);
	if (!out[0])
		snprintf(out, size, "(not known)");
}

/* The innermost function of the program in a stack or place. */
static void name_place(const struct asked *a, char *out, size_t size, uint32_t process, uint32_t id)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(a->reader, process, id, a->sum->last_ns, places,
					 TACHO__PLACES_MAX);
	const struct tacho__place p = tacho__places_best(places, n);

	out[0] = 0;
	if (p.function[0] && p.file[0])
		snprintf(out, size, "%s (%s:%" PRIu32 ")", p.function, tacho__place_file(&p),
			 p.line);
	else if (n)
		tacho__place_name(out, size, &p);
}

/* ------------------------------------------------------------------- output */

static void put_hist_json(struct json *j, const struct tacho__hist *h)
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

static void put_rows_json(struct asked *a, const char *title, const struct rows *rows)
{
	json_put_array(&a->j, title);
	for (uint32_t i = 0; i < rows->count && i < a->top; i++) {
		const struct row *r = &rows->at[i];

		json_object(&a->j);
		json_put_string(&a->j, "name", r->name);
		if (r->distinct[0])
			json_put_string(&a->j, "distinct_name", r->distinct);
		json_put_u64(&a->j, "process", r->process);
		json_put_u64(&a->j, "id", r->id);
		put_hist_json(&a->j, r->hist);
		for (uint32_t k = 0; k < r->extras; k++) {
			json_put_f64(&a->j, r->extra_name[k], r->extra[k]);
		}
		json_object_end(&a->j);
	}
	json_array_end(&a->j);
}

static void put_row(const struct asked *a, const struct row *r, size_t width)
{
	const struct tacho_process *p = tacho_read_process(a->reader, r->process);
	const char *plain = r->distinct[0] ? r->distinct : r->name;
	char text[5][TACHO__TEXT], name[sizeof(r->distinct) + sizeof(r->name)];

	/* Of several processes, which. */
	snprintf(name, sizeof(name), "%s", plain);
	if (p && a->sum->processes > 1)
		snprintf(name, sizeof(name), "%" PRIu32 ": %s", p->pid, plain);
	cli_table_name(name, width);
	printf(" %8" PRIu64 " %7s %7s %7s %7s %7s", r->hist->count,
	       tacho__ns_text(text[0], (double)r->hist->sum),
	       tacho__ns_text(text[1], (double)tacho__hist_at(r->hist, 0.5)),
	       tacho__ns_text(text[2], (double)tacho__hist_at(r->hist, 0.99)),
	       tacho__ns_text(text[3], (double)tacho__hist_at(r->hist, 0.999)),
	       tacho__ns_text(text[4], (double)r->hist->most));
	cli_table_remark(r->more, width + NUMBERS_WIDTH);
}

static void put_rows_text(const struct asked *a, const char *title, const struct rows *rows)
{
	size_t width = cli_table_names(NAME_WIDTH, NUMBERS_WIDTH);

	if (!rows->count)
		return;
	printf("%s%-*s%s %8s %7s %7s %7s %7s %7s\n", cli_colour(stdout, CLI_BOLD), (int)width,
	       title, cli_colour(stdout, CLI_PLAIN), "count", "total", "p50", "p99", "p99.9",
	       "max");
	for (uint32_t i = 0; i < rows->count && i < a->top; i++)
		put_row(a, &rows->at[i], width);
	if (rows->count > a->top)
		printf("%s... %" PRIu64 " more, see --top%s\n", cli_colour(stdout, CLI_DIM),
		       rows->count - a->top, cli_colour(stdout, CLI_PLAIN));
	putchar('\n');
}

static void put_rows(struct asked *a, const char *title, const char *key, struct rows *rows)
{
	TACHO__SORT(rows->at, rows->count, by_rank);
	if (a->json)
		put_rows_json(a, key, rows);
	else
		put_rows_text(a, title, rows);
	free(rows->at);
}

/* ------------------------------------------------------------------- tables */

static void put_kinds(struct asked *a)
{
	struct rows rows = {0}, wakes = {0}, late = {0};

	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&a->sum->kinds, k));) {
		char name[160];
		struct row *r;

		if (k->kind) {
			name_id(a, name, sizeof(name), k->process, k->kind);
		} else {
			char loop[120];

			name_id(a, loop, sizeof(loop), k->process, k->loop);
			snprintf(name, sizeof(name), "turns of %s", loop);
		}
		r = k->ns.count || k->cut ? row_add(&rows, &k->ns, k->ns.sum, k->process, k->kind)
					  : NULL;
		if (r) {
			memcpy(r->name, name, sizeof(name));
			row_extra(r, "cut", (double)k->cut);
			if (k->cut)
				snprintf(r->more, sizeof(r->more),
					 "and %" PRIu64 " cut by the edge of what was recorded",
					 k->cut);
		}
		row_named(&wakes, &k->wake, k->process, k->kind, name);
		row_named(&late, &k->late, k->process, k->kind, name);
	}
	put_rows(a, "callbacks and polls", "polls", &rows);
	put_rows(a, "from wake to poll", "wakes", &wakes);
	put_rows(a, "lateness of timers", "timers", &late);
}

static void put_loops(struct asked *a)
{
	struct rows rows = {0};

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&a->sum->loops, l));) {
		struct row *r =
			l->loop ? row_add(&rows, &l->ns, l->busy_ns, l->process, l->loop) : NULL;
		const struct tacho__ledger_thread *t;
		double busy;

		if (!r)
			continue;
		t = stats_thread(a->ledger, l->process, l->thread);
		busy = 100 * stats_busy(t);
		name_id(a, r->name, sizeof(r->name), l->process, l->loop);
		tacho__loop_name(r->distinct, sizeof(r->distinct), a->reader, l);
		snprintf(r->more, sizeof(r->more), "%.1f %% busy%s", busy,
			 l->level == TACHO_LEVEL_WAITS ? "; its callbacks are not seen" : "");
		row_extra(r, "utilisation", busy / 100);
		row_extra(r, "level", l->level);
		row_extra(r, "parked_ns", (double)l->parked_ns);
		row_extra(r, "idle_ns", t ? (double)t->idle_ns : 0);
		row_extra(r, "futile", (double)l->no_ready);
	}
	put_rows(a, "turns of loops", "loops", &rows);
}

static void put_locks(struct asked *a)
{
	struct rows rows = {0};

	for (const struct tacho__lock_sum *k = NULL; (k = tacho__table_next(&a->sum->locks, k));) {
		uint64_t ns;
		const struct tacho__hist *h = stats_lock(a->reader, a->ledger, k, &ns);
		struct row *r = h && h->count ? row_add(&rows, h, h->sum, k->process, 0) : NULL;
		char place[120];

		if (!r)
			continue;
		name_place(a, place, sizeof(place), k->process,
			   k->worst_any.count ? k->worst_any.at[0].place : 0);
		snprintf(r->name, sizeof(r->name), "0x%" PRIx64 " %s", k->lock, place);
		row_extra(r, "inside_ns", (double)ns);
		row_extra(r, "gave_up", (double)k->gave_up);
		if (k->inside.count)
			snprintf(r->more, sizeof(r->more), "%" PRIu64 " of them on loops",
				 k->inside.count);
	}
	put_rows(a, "waits for locks", "locks", &rows);
}

static void put_calls(struct asked *a)
{
	struct rows rows = {0};

	for (const struct tacho__call_sum *k = NULL; (k = tacho__table_next(&a->sum->calls, k));) {
		struct row *r = stats_is_work_place(a->ledger, k)
					? NULL
					: row_add(&rows, &k->ns, k->ns.sum, k->process, k->name);
		char name[64], place[90];

		if (!r)
			continue;
		name_id(a, name, sizeof(name), k->process, k->name);
		name_place(a, place, sizeof(place), k->process, k->stack);
		snprintf(r->name, sizeof(r->name), "%s%s%s", name, place[0] ? " by " : "", place);
		row_extra(r, "errors", (double)k->errors);
	}
	put_rows(a, "blocking calls", "calls", &rows);
}

static void put_works(struct asked *a)
{
	struct rows wait = {0}, run = {0};

	for (const struct tacho__work_sum *k = NULL; (k = tacho__table_next(&a->sum->works, k));) {
		char name[160];

		name_id(a, name, sizeof(name), k->process, k->kind);
		row_named(&wait, &k->wait, k->process, k->kind, name);
		row_named(&run, &k->run, k->process, k->kind, name);
	}
	put_rows(a, "work waiting for the pool", "pool_waits", &wait);
	put_rows(a, "work run by the pool", "pool_runs", &run);
}

static void put_spans(struct asked *a)
{
	struct rows rows = {0};

	for (const struct tacho__span_sum *k = NULL; (k = tacho__table_next(&a->sum->spans, k));) {
		struct row *r = row_add(&rows, &k->ns, k->ns.sum, k->process, k->name);

		if (!r)
			continue;
		name_id(a, r->name, sizeof(r->name), k->process, k->name);
		row_extra(r, "cut", (double)k->cut);
		row_extra(r, "async", k->async);
	}
	put_rows(a, "spans", "spans", &rows);
}

static void put_all(struct asked *a)
{
	char window[TEXT_SMALL];

	if (a->json) {
		json_begin(&a->j, stdout, true);
		json_object(&a->j);
		json_put_u64(&a->j, "version", 1);
		json_put_u64(&a->j, "events", a->sum->events);
		json_put_u64(&a->j, "from_ns", a->sum->first_ns);
		json_put_u64(&a->j, "to_ns", a->sum->last_ns);
	} else {
		printf("%" PRIu64 " events in %s\n\n", a->sum->events,
		       text_duration(window, a->sum->last_ns - a->sum->first_ns));
	}
	if (a->json)
		stats_threads_json(&a->j, a->reader, a->ledger);
	else
		stats_threads(a->reader, a->ledger, a->top);
	put_loops(a);
	put_kinds(a);
	put_locks(a);
	put_calls(a);
	put_works(a);
	put_spans(a);
	if (a->json) {
		json_object_end(&a->j);
		json_end_line(&a->j);
	}
}

/* --------------------------------------------------------------------- run */

static int stats(void *arg, const char *path)
{
	struct asked *a = arg;
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	struct tacho__summary *sum = NULL;
	struct tacho__ledger *ledger = NULL;
	int error = 0;

	cli_progress_begin(&progress, "adding up");
	if (cli_open_whole(&reader, path, &progress) < 0)
		return CLI_FAILED;
	error = stats_read(reader, cli_progress_at, &progress, &sum, &ledger);
	cli_progress_end(&progress);
	if (!error) {
		cli_warn_problems(reader, 5);
		cli_warn_missed(&sum->missed);
		a->reader = reader;
		a->sum = sum;
		a->ledger = ledger;
		put_all(a);
	} else {
		cli_error("cannot add up %s: %s.", path, strerror(-error));
	}
	tacho__summary_free(sum);
	tacho__ledger_free(ledger);
	tacho_read_close(reader);
	return cli_finish(error ? CLI_FAILED : CLI_OK);
}

static int run(int argc, char **argv)
{
	struct asked a = {.top = TOP_DEFAULT};
	const struct cli_row options[] = {
		{"json", .flag = &a.json},
		{"top", .count = &a.top},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_stats, options);

	if (status != CLI_TAKEN)
		return status;
	return cli_with_trace(argc, argv, stats, &a);
}

const struct cli_command cli_stats = {
	.name = "stats",
	.summary = "how long callbacks, waits and turns take",
	.help = "Usage: tacho stats FILE|FOLDER|BOX|PID [OPTIONS]\n\n"
		"Time of threads by who had it, and percentiles of all that takes time: turns of\n"
		"loops with their utilisation, callbacks by kind, wake to poll, lateness of "
		"timers,\n"
		"waits for locks, blocking calls, work of pools, spans. Largest total first.\n"
		"Percentiles are within 3 %.\n\n"
		"  --top N        rows of each table (default 10)\n"
		"  --json         for programs\n"
		"  --pid PID      only this process\n"
		"  --process NAME only processes of this name\n\n"
		"Example:\n"
		"  tacho stats slow.tacho --top 5\n",
	.run = run,
};
