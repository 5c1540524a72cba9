/*
 * tacho stats: numbers of a trace: how long callbacks take, how late wakes are served, how busy
 * loops are, which locks and calls are waited for.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer/stats.h"
#include "cli/cli.h"
#include "cli/importing.h"
#include "cli/parse.h"
#include "explain/explain.h"
#include "text/json.h"
#include "text/text.h"

#define TOP_DEFAULT 10u
#define NAME_WIDTH 44u
#define NUMBERS_WIDTH 49u /* of a line */

struct asked {
	struct parse_instant from, to;
	bool json;
	uint64_t top;
};

/* Behind a table. */
static void put_more(uint64_t all, uint64_t shown)
{
	if (all > shown)
		printf("%s... %" PRIu64 " more, see --top%s\n", cli_colour(stdout, CLI_DIM),
		       all - shown, cli_colour(stdout, CLI_PLAIN));
	putchar('\n');
}

static void put_thread(const struct tacho_reader *reader, const struct tacho__ledger *l,
		       uint32_t index, size_t width)
{
	const struct tacho__ledger_thread *t = &l->threads[index];
	const struct tacho_thread *d = tacho_read_thread_by_number(reader, t->process, t->thread);
	uint64_t ns[TACHO__OWNS_COUNT], blocked, kernel;
	char text[6][TACHO__TEXT], name[2 * TACHO__TEXT], process[TACHO__TEXT], more[TACHO__TEXT];

	stats_add_up(l, index, ns);
	blocked = ns[TACHO__OWNS_CALL] + ns[TACHO__OWNS_LOCK];
	kernel = ns[TACHO__OWNS_LATE] + ns[TACHO__OWNS_DESCHEDULED] + ns[TACHO__OWNS_THROTTLED] +
		 ns[TACHO__OWNS_STOPPED] + ns[TACHO__OWNS_FAULTING];
	process[0] = 0;
	if (tacho_read_process_count(reader) > 1)
		tacho__process_text(reader, process, t->process);
	snprintf(name, sizeof(name), "%s%s%s (%" PRIu32 ")", process, process[0] ? ": " : "",
		 d && d->name[0] ? d->name : "thread", d ? d->tid : t->thread);
	cli_table_name(name, width);
	printf(" %8s %7s %7s %7s %7s %7s",
	       tacho__ns_text(text[0], (double)(t->last_ns - t->first_ns)),
	       tacho__ns_text(text[1], (double)ns[TACHO__OWNS_IDLE]),
	       tacho__ns_text(text[2], (double)ns[TACHO__OWNS_CODE]),
	       tacho__ns_text(text[3], (double)blocked), tacho__ns_text(text[4], (double)kernel),
	       tacho__ns_text(text[5], (double)t->waiting_ns));
	more[0] = 0;
	if (ns[TACHO__OWNS_NOT_OBSERVED])
		snprintf(more, sizeof(more), "%s not observed",
			 tacho__ns_text(text[0], (double)ns[TACHO__OWNS_NOT_OBSERVED]));
	cli_table_remark(more, width + NUMBERS_WIDTH);
}

static void put_threads(const struct tacho_reader *reader, const struct tacho__ledger *l,
			uint64_t top)
{
	size_t width = cli_table_names(NAME_WIDTH, NUMBERS_WIDTH);
	uint64_t shown = 0, all = 0;

	for (uint32_t i = 0; i < l->thread_count; i++)
		all += (uint64_t)tacho__is_of_interest(&l->threads[i]);
	if (!all)
		return;
	printf("%s%-*s%s %8s %7s %7s %7s %7s %7s\n", cli_colour(stdout, CLI_BOLD), (int)width,
	       "time of threads", cli_colour(stdout, CLI_PLAIN), "all", "idle", "code", "blocked",
	       "kernel", "waiting");
	for (uint32_t i = 0; i < l->thread_count && shown < top; i++)
		if (tacho__is_of_interest(&l->threads[i])) {
			put_thread(reader, l, i, width);
			shown++;
		}
	put_more(all, shown);
}

static void put_row(const struct stats *s, const struct stats_row *r, size_t width)
{
	const struct tacho_process *p = tacho_read_process(s->reader, r->process);
	const char *plain = r->distinct[0] ? r->distinct : r->name;
	char text[5][TACHO__TEXT], name[sizeof(r->distinct) + sizeof(r->name)];

	/* Of several processes, which. */
	snprintf(name, sizeof(name), "%s", plain);
	if (p && s->sum->processes > 1)
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

static void put_table(const struct stats *s, const struct stats_table *t, uint64_t top)
{
	size_t width = cli_table_names(NAME_WIDTH, NUMBERS_WIDTH);

	if (!t->count)
		return;
	printf("%s%-*s%s %8s %7s %7s %7s %7s %7s\n", cli_colour(stdout, CLI_BOLD), (int)width,
	       t->title, cli_colour(stdout, CLI_PLAIN), "count", "total", "p50", "p99", "p99.9",
	       "max");
	for (uint32_t i = 0; i < t->count && i < top; i++)
		put_row(s, &t->rows[i], width);
	put_more(t->count, top);
}

static void put_all(const struct asked *a, const struct stats *s)
{
	char window[TEXT_SMALL];
	struct json j;

	if (a->json) {
		json_begin(&j, stdout, true);
		answer_stats(&j, s, a->top);
		json_end_line(&j);
		return;
	}
	printf("%" PRIu64 " events in %s\n\n", s->sum->events,
	       text_duration(window, s->sum->last_ns - s->sum->first_ns));
	put_threads(s->reader, s->ledger, a->top);
	for (uint32_t i = 0; i < STATS_TABLES; i++)
		put_table(s, &s->tables[i], a->top);
}

/* --------------------------------------------------------------------- run */

static int stats(void *arg, const char *path)
{
	struct asked *a = arg;
	struct tacho_reader *reader = NULL;
	struct cli_progress progress;
	struct stats s;
	int error;

	cli_progress_begin(&progress, "adding up");
	if (cli_open_whole(&reader, path, &progress) < 0)
		return CLI_FAILED;
	if (cli_limit(reader, &a->from, &a->to) < 0) {
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	error = stats_read(&s, reader, cli_progress_at, &progress);
	cli_progress_end(&progress);
	if (!error) {
		cli_warn_problems(reader, 5);
		cli_warn_missed(&s.sum->missed);
		put_all(a, &s);
	} else {
		cli_error("cannot add up %s: %s.", importing_name(path), strerror(-error));
	}
	stats_free(&s);
	tacho_read_close(reader);
	return cli_finish(error ? CLI_FAILED : CLI_OK);
}

static int run(int argc, char **argv)
{
	struct asked a = {.top = TOP_DEFAULT};
	const struct cli_row options[] = {
		{"from", .instant = &a.from}, {"to", .instant = &a.to}, {"json", .flag = &a.json},
		{"top", .count = &a.top},     CLI_NARROW_ROWS,		{0},
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
		"  --from TIME    begin here: 1.5s is from the first event, -1s from the last\n"
		"  --to TIME      end here, counted in the same way\n"
		"  --top N        rows of each table (default 10)\n"
		"  --json         for programs\n"
		"  --pid PID      only this process\n"
		"  --process NAME only processes of this name\n\n"
		"Example:\n"
		"  tacho stats slow.tacho --top 5\n",
	.run = run,
};
