/*
 * tacho diff: what changed between two traces.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/cli.h"
#include "cli/parse.h"
#include "text/text.h"
#include "explain/diff.h"
#include "explain/explain.h"
#include "model/judgement.h"
#include "text/json.h"

#define NAME_WIDTH 40u
#define NUMBERS_WIDTH 57u /* of a line */
#define LOAD_FACTOR 1.5	  /* from which on the load is said to differ */
#define TOP_DEFAULT 20u

enum fail_on { FAIL_NEVER, FAIL_SLOWER, FAIL_CHANGE };

struct asked {
	bool json;
	uint64_t top;
	enum fail_on fail;
	struct tacho__diff_options options;
};

static bool take_fail_on(void *arg, const char *option, const char *text)
{
	enum fail_on *out = arg;

	if (strcmp(text, "slower") == 0)
		*out = FAIL_SLOWER;
	else if (strcmp(text, "change") == 0)
		*out = FAIL_CHANGE;
	else
		return cli_usage("%s: '%s' is neither 'slower' nor 'change'.", option, text), false;
	return true;
}

/* Percent, above 0 and below 10000. */
static bool take_least(void *arg, const char *option, const char *text)
{
	double *out = arg;
	char *end;
	double value = strtod(text, &end);

	if (end == text || (*end && strcmp(end, "%") != 0) || !(value > 0) || value >= 10000)
		return cli_usage("%s: '%s' is no percentage; give one such as 10%%.", option, text),
		       false;
	*out = value / 100;
	return true;
}

/* ------------------------------------------------------------------- output */

static const char *change_text(enum tacho__change change)
{
	return change == TACHO__CHANGE_NONE	 ? "no more than chance"
	       : change == TACHO__CHANGE_TOO_FEW ? "too few to tell"
	       : change == TACHO__CHANGE_NEW	 ? "only in B"
	       : change == TACHO__CHANGE_GONE	 ? "only in A"
						 : tacho__change_name(change);
}

/* An empty text where there is nothing: absent is not 0. */
static const char *percentile(char *out, const struct tacho__diff_side *s, double share)
{
	out[0] = 0;
	return s->ns.count ? tacho__ns_text(out, (double)tacho__hist_at(&s->ns, share)) : out;
}

static void put_row(const struct tacho__diff_row *r, size_t width)
{
	char text[4][TACHO__TEXT], change[32] = "";
	enum cli_colour colour = r->change == TACHO__CHANGE_SLOWER   ? CLI_RED
				 : r->change == TACHO__CHANGE_FASTER ? CLI_GREEN
								     : CLI_PLAIN;

	if (r->ratio > 0)
		snprintf(change, sizeof(change), "%+.1f %%", 100 * (r->ratio - 1));
	printf("%s", cli_colour(stdout, colour));
	cli_table_name(r->name, width);
	printf(" %7.0f %7.0f %7s %7s %8s %7s %7s", r->a.per_second, r->b.per_second,
	       percentile(text[0], &r->a, 0.5), percentile(text[1], &r->b, 0.5), change,
	       percentile(text[2], &r->a, 0.99), percentile(text[3], &r->b, 0.99));
	cli_table_remark(change_text(r->change), width + NUMBERS_WIDTH);
}

static double per_second(uint64_t count, uint64_t ns)
{
	return ns ? (double)count * 1e9 / (double)ns : 0;
}

static void put_note(const char *text)
{
	text_put_broken(stdout, text, 0, 0, cli_columns(stdout));
	putchar('\n');
}

/* What a reader of the table must know. */
static void put_notes(const struct asked *a, const struct tacho__diff *d)
{
	double a_rate = per_second(d->a_count, d->a_ns), b_rate = per_second(d->b_count, d->b_ns);
	char text[CLI_MESSAGE];

	if (d->common < 0.97 || d->common > 1.03) {
		snprintf(text, sizeof(text),
			 "most differ by %+.0f %%: that is the machine or the load, and counts as "
			 "a change only with --absolute.",
			 100 * (d->common - 1));
		put_note(text);
	}
	if (d->compared && d->compared < tacho__diff_rows && !a->options.absolute)
		put_note("fewer than three kinds have enough callbacks, so the machine's part "
			 "cannot be told from the program's.");
	if (a_rate > 0 && b_rate > 0 &&
	    (a_rate > LOAD_FACTOR * b_rate || b_rate > LOAD_FACTOR * a_rate))
		printf("the load differs: %.0f callbacks a second in A, %.0f in B.\n", a_rate,
		       b_rate);
	if (d->missed)
		printf("%" PRIu64 " kinds or spans beyond the first 4096 were not compared.\n",
		       d->missed);
}

static void put_verdict(const struct tacho__diff *d)
{
	if (!d->count)
		puts("nothing to compare: neither trace has complete callbacks, turns or spans.");
	else if (!d->compared)
		puts("not enough data: nothing happened often enough in both traces.");
	else if (!d->changed)
		puts("no change: the differences are no larger than chance makes them.");
	for (uint32_t i = 0; i < d->count && i < d->changed; i++) {
		printf("%s%s: ", cli_colour(stdout, CLI_BOLD),
		       tacho__change_name(d->rows[i].change));
		text_put(stdout, d->rows[i].name);
		printf(", %+.0f %%%s\n", 100 * (d->rows[i].ratio / d->common - 1),
		       cli_colour(stdout, CLI_PLAIN));
	}
}

static void put_text(const struct asked *a, const struct tacho__diff *d)
{
	size_t width = cli_table_names(NAME_WIDTH, NUMBERS_WIDTH);

	put_verdict(d);
	put_notes(a, d);
	if (d->count)
		printf("\n%-*s %7s %7s %7s %7s %8s %7s %7s\n", (int)width, "", "A/s", "B/s",
		       "A p50", "B p50", "change", "A p99", "B p99");
	for (uint32_t i = 0; i < d->count && i < a->top; i++)
		put_row(&d->rows[i], width);
	if (d->count > a->top)
		printf("... %" PRIu64 " more, see --top\n", d->count - a->top);
}

static void put_json(const struct tacho__diff *d)
{
	struct json j;

	json_begin(&j, stdout, true);
	answer_diff(&j, d);
	json_end_line(&j);
}

/* --------------------------------------------------------------------- run */

static int judge(const struct asked *a, const struct tacho__diff *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		enum tacho__change c = d->rows[i].change;

		if (a->fail != FAIL_NEVER &&
		    (c == TACHO__CHANGE_SLOWER ||
		     (c == TACHO__CHANGE_FASTER && a->fail == FAIL_CHANGE)))
			return CLI_FAILED;
	}
	return CLI_OK;
}

static struct tacho_reader *open_one(const char *argument)
{
	struct cli_progress progress;
	struct tacho_reader *reader = NULL;
	char *path = cli_resolve_trace(argument);

	if (!path)
		return NULL;
	cli_progress_begin(&progress, "reading");
	if (cli_open_whole(&reader, path, &progress) < 0)
		reader = NULL;
	cli_progress_end(&progress);
	free(path);
	return reader;
}

static int diff(const struct asked *a, char **argv)
{
	struct tacho_reader *first = open_one(argv[0]);
	struct tacho_reader *second = first ? open_one(argv[1]) : NULL;
	struct tacho__diff *d = NULL;
	int error = 0, status = CLI_FAILED;

	if (first && second) {
		d = tacho__diff_make(first, second, &a->options, &error);
		if (!d)
			cli_error("cannot compare: %s.", strerror(-error));
	}
	if (d) {
		cli_warn_problems(first, 5);
		cli_warn_problems(second, 5);
		if (a->json)
			put_json(d);
		else
			put_text(a, d);
		status = judge(a, d);
	}
	tacho__diff_free(d);
	tacho_read_close(first);
	tacho_read_close(second);
	return cli_finish(status);
}

static int run(int argc, char **argv)
{
	struct asked a = {.top = TOP_DEFAULT};
	const struct cli_row options[] = {
		{"json", .flag = &a.json},
		{"top", .count = &a.top},
		{"fail-on", .call = take_fail_on, .arg = &a.fail},
		{"least", .call = take_least, .arg = &a.options.least},
		{"absolute", .flag = &a.options.absolute},
		CLI_NARROW_ROWS,
		{0},
	};
	int status = cli_take_options(argc, argv, &cli_diff, options);

	if (status != CLI_TAKEN)
		return status;
	if (argc - optind != 2)
		return cli_usage("give two traces: the one before and the one after (%d given).",
				 argc - optind);
	return diff(&a, argv + optind);
}

const struct cli_command cli_diff = {
	.name = "diff",
	.summary = "what changed between two traces",
	.help = "Usage: tacho diff A B [OPTIONS]\n\n"
		"Compares how long callbacks and spans of the same name take in two traces, and\n"
		"says which differences are larger than chance makes. Each is a trace file, a\n"
		"folder of them, a box or a PID. What is slower for most is the machine or the\n"
		"load, and is taken out first.\n\n"
		"  --fail-on slower|change  exit with 1 when there is such a difference\n"
		"  --least PERCENT          smaller differences do not count (default 10%)\n"
		"  --absolute               count also what most of them have in common\n"
		"  --top N                  rows of the table (default 20)\n"
		"  --json                   for programs\n"
		"  --pid PID                only this process\n"
		"  --process NAME           only processes of this name\n\n"
		"Example:\n"
		"  tacho diff before.tacho after.tacho --fail-on slower\n",
	.run = run,
};
