/*
 * tacho report: what is wrong, with the cause first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "cli/about.h"
#include "cli/importing.h"
#include "cli/cli.h"
#include "cli/parse.h"
#include "cli/report_considered.h"
#include "cli/report_finding.h"
#include "cli/report_ledger.h"
#include "text/end.h"
#include "text/text.h"
#include "explain/explain.h"

#define FAIL_MAX 32u
#define HISTOGRAM_WIDTH 40u
#define OTHERS_SHOWN 8u /* processes that the verdict is not about */

struct fail_on {
	enum tacho__rule_id rule; /* TACHO__RULE_COUNT: any */
	enum tacho__severity severity;
};

struct asked {
	bool json, all, list, ledger;
	struct parse_instant since, until;
	double *thresholds;
	struct fail_on fail[FAIL_MAX];
	uint32_t fail_count;
};

/* ------------------------------------------------------------------- options */

static bool find_rule(const char *name, size_t size, enum tacho__rule_id *rule)
{
	*rule = 0;
	while (*rule < TACHO__RULE_COUNT && (strlen(tacho__rules[*rule].id) != size ||
					     strncmp(tacho__rules[*rule].id, name, size) != 0))
		++*rule;
	return *rule < TACHO__RULE_COUNT || (size == 3 && strncmp(name, "any", 3) == 0);
}

/* RULE or RULE:SEVERITY; "any" is every rule. */
static bool take_fail_on(void *arg, const char *option, const char *text)
{
	struct asked *a = arg;
	const char *colon = strchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : strlen(text);
	struct fail_on *f = &a->fail[a->fail_count];

	if (a->fail_count == FAIL_MAX) {
		cli_usage("%s can be given %u times at most.", option, FAIL_MAX);
		return false;
	}
	f->severity = TACHO__SEVERITY_WARNING;
	if (!find_rule(text, size, &f->rule)) {
		cli_usage("--fail-on: there is no rule '%.*s'; 'tacho report --rules' lists them.",
			  (int)size, text);
		return false;
	}
	if (colon) {
		f->severity = TACHO__SEVERITY_INFO;
		while (f->severity <= TACHO__SEVERITY_CRITICAL &&
		       strcmp(colon + 1, tacho__severity_name(f->severity)) != 0)
			f->severity++;
	}
	if (f->severity > TACHO__SEVERITY_CRITICAL) {
		cli_usage("--fail-on: '%s' is no severity; there are info, warning and critical.",
			  colon + 1);
		return false;
	}
	a->fail_count++;
	return true;
}

/* A plain number, or a time where the threshold is one. */
static bool take_threshold(void *arg, const char *option, const char *text)
{
	const struct asked *a = arg;
	const char *equals = strchr(text, '=');
	size_t size = equals ? (size_t)(equals - text) : strlen(text);
	char *end;
	uint64_t ns;

	for (uint32_t i = 0; equals && i < TACHO__LIMIT_COUNT; i++) {
		const struct tacho__threshold *t = &tacho__thresholds[i];

		if (strlen(t->name) != size || strncmp(t->name, text, size) != 0)
			continue;
		if (t->unit == TACHO__UNIT_NS) {
			if (!parse_duration(option, equals + 1, &ns))
				return false;
			a->thresholds[i] = (double)ns;
			return true;
		}
		a->thresholds[i] = strtod(equals + 1, &end);
		if (end != equals + 1 && !*end && a->thresholds[i] >= 0)
			return true;
		cli_usage("--threshold: '%s' is no number.", equals + 1);
		return false;
	}
	cli_usage(
		"--threshold: '%.*s' is no threshold; 'tacho report --rules' lists them with their "
		"values, as NAME=VALUE.",
		(int)size, text);
	return false;
}

/* "; needs: wakes, spans" */
static void put_inputs(const char *what, uint32_t set)
{
	const char *before = what;

	for (uint32_t i = 0; i < TACHO__INPUT_COUNT; i++)
		if (set >> i & 1) {
			printf(before == what ? "; %s: %s" : "%s%s", before, tacho__input_names[i]);
			before = ", ";
		}
}

static int list_rules(const struct asked *a)
{
	puts("rules:");
	for (uint32_t i = 0; i < TACHO__RULE_COUNT; i++) {
		const struct tacho__rule *r = &tacho__rules[i];

		printf("  %-24s %s", r->id, r->finds);
		put_inputs("needs", r->needs);
		put_inputs("better with", r->helps);
		putchar('\n');
	}
	puts("\nthresholds (--threshold NAME=VALUE):");
	for (uint32_t i = 0; i < TACHO__LIMIT_COUNT; i++) {
		const struct tacho__threshold *t = &tacho__thresholds[i];
		char value[TEXT_SMALL];

		if (t->unit == TACHO__UNIT_NS)
			text_duration(value, (uint64_t)a->thresholds[i]);
		else
			snprintf(value, sizeof(value), "%g%s", a->thresholds[i],
				 tacho__unit_text(t->unit));
		printf("  %-30s %10s  %s\n", t->name, value, t->text);
	}
	return CLI_OK;
}

/* -------------------------------------------------------------------- text */

/* Of the first finding that names no function: how its report would. */
static void put_nameless(const struct asked *a, const struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];
		const char *module =
			f->where_count && !f->where[0].function[0] ? f->where[0].module : "";
		const char *slash = strrchr(module, '/');

		if (!module[0] || f->folded_into >= 0 ||
		    (f->severity < TACHO__SEVERITY_WARNING && !a->all))
			continue;
		printf("\n%sno names of functions: ", cli_colour(stdout, CLI_DIM));
		text_put(stdout, slash && slash[1] ? slash + 1 : module);
		printf(" has no symbols for them. Record with its debug symbols installed "
		       "(Debian: a package -dbgsym), or with --debuginfod.%s",
		       cli_colour(stdout, CLI_PLAIN));
		return;
	}
}

/* Who was not recorded, and could not be: nothing above is about them. */
static void put_absent(const struct tacho_reader *reader)
{
	for (uint32_t i = 0; i < tacho_read_absent_count(reader); i++) {
		const struct tacho_absent *a = tacho_read_absent(reader, i);

		if (!a->hindered)
			continue;
		printf("\n%snot recorded: ", cli_colour(stdout, CLI_DIM));
		about_absentee(a);
		fputs(cli_colour(stdout, CLI_PLAIN), stdout);
	}
}

/* The lengths of all callbacks, as bars; only where somebody looks. */
static void put_histogram(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	uint64_t powers[64], most = 0;
	uint32_t first = 64, last = 0;
	char text[TACHO__TEXT];

	if (!e->process_count)
		return;
	tacho__hist_powers(&e->processes[e->process].callbacks, powers);
	for (uint32_t i = 0; i < 64; i++)
		if (powers[i]) {
			first = i < first ? i : first;
			last = i;
			most = powers[i] > most ? powers[i] : most;
		}
	if (first == 64)
		return;
	fputs(e->process_count > 1 ? "\ncallbacks of " : "\ncallbacks", stdout);
	if (e->process_count > 1)
		text_put(stdout, tacho__process_text(reader, text, e->process));
	puts(" by length:");
	for (uint32_t i = first; i <= last; i++) {
		uint32_t width = (uint32_t)(powers[i] * HISTOGRAM_WIDTH / most);

		/* A long empty stretch is shown as one line of dots. */
		if (!powers[i] && !powers[i - 1] && !powers[i + 1]) {
			if (powers[i - 2])
				puts("         ...");
			continue;
		}
		printf("  %10s  ", tacho__ns_text(text, (double)(UINT64_C(1) << i)));
		for (uint32_t w = 0; w < width || (w == 0 && powers[i]); w++)
			putchar('#');
		printf(" %" PRIu64 "\n", powers[i]);
	}
}

/* The process that the first line is about, and the others. */
static void put_processes(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	const struct tacho_process *p = tacho_read_process(reader, e->process);
	const struct tacho__explained *x = &e->processes[e->process];
	char text[TACHO__TEXT], window[TEXT_SMALL];
	uint32_t shown = 0;

	fputs(cli_colour(stdout, CLI_DIM), stdout);
	text_put(stdout, tacho__process_text(reader, text, e->process));
	printf(", %" PRIu64 " events in %s", x->events,
	       text_duration(window, x->last_ns - x->first_ns));
	if (e->process_count > 1)
		printf(", one of %" PRIu32 " processes", e->process_count);
	if (p && p->why && p->why[0]) {
		fputs("; taken because of ", stdout);
		text_put(stdout, p->why);
	}
	if (p && p->imported[0]) {
		fputs("; imported from ", stdout);
		text_put(stdout, p->imported);
	}
	if (p && p->imported[0] && p->reason[0]) {
		fputs(": ", stdout);
		text_put(stdout, p->reason);
	}
	for (uint32_t i = 0; i < e->process_count; i++) {
		if (i == e->process || shown == OTHERS_SHOWN)
			continue;
		fputs(shown++ ? ", " : "\nalso, with events: ", stdout);
		text_put(stdout, tacho__process_text(reader, text, i));
		printf(" %" PRIu64, e->processes[i].events);
	}
	if (e->process_count > shown + 1)
		printf(" and %" PRIu32 " more processes", e->process_count - shown - 1);
	printf("%s\n", cli_colour(stdout, CLI_PLAIN));
}

/* What was looked for only in some processes is of interest to who wants all. */
static void put_coverage(const struct asked *a, const struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < TACHO__RULE_COUNT; i++) {
		const struct tacho__coverage *c = &e->coverage[i];

		if (!c->is_known || (c->checked && !(a->all && c->is_partial)))
			continue;
		printf("\n%s%s: %s: ", cli_colour(stdout, CLI_DIM),
		       c->checked ? "looked for" : "not looked for", tacho__rules[i].id);
		text_put(stdout, c->why);
		fputs(cli_colour(stdout, CLI_PLAIN), stdout);
	}
}

static void put_verdict(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	bool bad = e->count && e->findings[0].severity >= TACHO__SEVERITY_WARNING &&
		   strcmp(e->verdict.category, "none") != 0;
	char text[sizeof(e->verdict.summary) + TACHO__TEXT + 2], name[TACHO__TEXT];
	bool of_one;

	/* What is wrong with the recording is not wrong with the program. */
	printf("%s%s%s: ",
	       cli_colour(stdout, !bad						  ? CLI_GREEN
				  : strcmp(e->verdict.category, "recording") == 0 ? CLI_YELLOW
										  : CLI_RED),
	       e->verdict.category, cli_colour(stdout, CLI_PLAIN));
	/* What is in several processes says in how many. */
	of_one = bad && e->process_count > 1 && e->findings[0].spread.processes < 2;
	snprintf(text, sizeof(text), "%s%s%s",
		 of_one ? tacho__process_text(reader, name, e->process) : "", of_one ? ": " : "",
		 e->verdict.summary);
	text_put_broken(stdout, text, strlen(e->verdict.category) + 2, 2, cli_columns(stdout));
	putchar('\n');
}

/* Before all else that a file which is not whole says: how much of it can be read. */
static void put_head(const struct tacho_reader *reader, const struct tacho__explanation *e)
{
	const char *readable = e->readable.text;
	bool is_verdict = readable[0] && strcmp(readable, e->verdict.summary) == 0;

	if (is_verdict) {
		put_verdict(reader, e);
	} else if (readable[0]) {
		printf("%srecording%s: ", cli_colour(stdout, CLI_YELLOW),
		       cli_colour(stdout, CLI_PLAIN));
		text_put_broken(stdout, readable, strlen("recording: "), 2, cli_columns(stdout));
		putchar('\n');
	}
	text_put_end(stdout, tacho_read_process(reader, e->process));
	if (!is_verdict)
		put_verdict(reader, e);
	put_processes(reader, e);
}

static void put_text(const struct asked *a, const struct tacho_reader *reader,
		     const struct tacho__explanation *e)
{
	uint32_t shown = 0, hidden = 0;

	put_head(reader, e);
	for (uint32_t i = 0; i < e->count; i++) {
		const struct tacho__finding *f = &e->findings[i];

		if (f->folded_into >= 0)
			continue;
		if (f->severity < TACHO__SEVERITY_WARNING && !a->all) {
			hidden++;
			continue;
		}
		report_finding(reader, e, i);
		shown++;
	}
	if (e->process_count && e->processes[e->process].ended_badly)
		about_at_end_short(&e->at_ends, e->process);
	if (shown || a->all)
		put_histogram(reader, e);
	put_nameless(a, e);
	if (a->all)
		report_considered(reader, e);
	put_coverage(a, e);
	put_absent(reader);
	if (hidden)
		printf("\n%u more of severity info: --all shows them.", hidden);
	putchar('\n');
}

/* --------------------------------------------------------------------- run */

static int judge(const struct asked *a, const struct tacho__explanation *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		for (uint32_t k = 0; k < a->fail_count; k++)
			if (e->findings[i].severity >= a->fail[k].severity &&
			    (a->fail[k].rule == TACHO__RULE_COUNT ||
			     a->fail[k].rule == e->findings[i].rule))
				return CLI_FAILED;
	return CLI_OK;
}

static int report(void *arg, const char *const *paths, uint32_t count)
{
	const struct asked *a = arg;
	struct cli_progress progress;
	struct tacho__explain_options options = {.thresholds = a->thresholds,
						 .progress = cli_progress_at,
						 .progress_arg = &progress};
	struct tacho_reader *reader = NULL;
	struct tacho__explanation *e;
	struct json j;
	int error, status;

	if (cli_open_between(&reader, paths, count, &a->since, &a->until) < 0)
		return CLI_FAILED;
	cli_progress_begin(&progress, "looking for the cause");
	e = tacho__explain(reader, &options, &error);
	cli_progress_end(&progress);
	if (!e) {
		cli_error("cannot report on %s: %s.", importing_name(paths[0]), strerror(-error));
		tacho_read_close(reader);
		return CLI_FAILED;
	}
	cli_warn_problems(reader, 5);
	cli_warn_missed(&e->missed);
	if (a->json) {
		json_begin(&j, stdout, true);
		answer_report(&j, reader, e, a->ledger);
		json_end_line(&j);
	} else if (a->ledger)
		report_ledger(reader, e->ledger);
	else
		put_text(a, reader, e);
	status = judge(a, e);
	tacho__explanation_free(e);
	tacho_read_close(reader);
	return cli_finish(status);
}

static int run(int argc, char **argv)
{
	static double thresholds[TACHO__LIMIT_COUNT];
	struct asked a = {.thresholds = thresholds};
	const struct cli_row options[] = {
		{"json", .flag = &a.json},
		{"all", .flag = &a.all},
		{"rules", .flag = &a.list},
		{"ledger", .flag = &a.ledger},
		{"fail-on", .call = take_fail_on, .arg = &a},
		{"threshold", .call = take_threshold, .arg = &a},
		{"since", .instant = &a.since},
		{"until", .instant = &a.until},
		CLI_NARROW_ROWS,
		{0},
	};
	int status;

	for (uint32_t i = 0; i < TACHO__LIMIT_COUNT; i++)
		thresholds[i] = tacho__thresholds[i].value;
	status = cli_take_options(argc, argv, &cli_report, options);
	if (status != CLI_TAKEN)
		return status;
	if (a.list && (a.json || optind < argc))
		return cli_usage("--rules lists rules and thresholds as text, and reads no trace; "
				 "leave out %s.",
				 a.json ? "--json" : argv[optind]);
	if (a.list)
		return list_rules(&a);
	return cli_with_traces(argc, argv, report, &a);
}

const struct cli_command cli_report = {
	.name = "report",
	.summary = "what is wrong, the cause first",
	.help = "Usage: tacho report FILE|FOLDER|BOX|PID ... [OPTIONS]\n\n"
		"Looks for the cause of trouble: one line that says what kind of trouble it is,\n"
		"then findings, the most costly first, each with its place in the code, evidence\n"
		"and what to do. Each process is judged by itself; several traces are read as\n"
		"one.\n\n"
		"  --json                 for programs\n"
		"  --all                  also findings of severity info, and what was "
		"considered\n"
		"                         and dropped, with the reason\n"
		"  --ledger               who had the time of each thread, and what waited "
		"meanwhile;\n"
		"                         with --json, beside the findings\n"
		"  --since TIME           begin here: 1.5s is from the first event,\n"
		"                         -1s from the last\n"
		"  --until TIME           end here, counted in the same way\n"
		"  --fail-on RULE[:SEVERITY]  exit with 1 when this is found (any: every rule;\n"
		"                         severities: info, warning, critical; default warning)\n"
		"  --threshold NAME=VALUE change a number that a rule compares with\n"
		"  --rules                list rules and thresholds\n"
		"  --pid PID              only this process\n"
		"  --process NAME         only processes of this name\n\n"
		"Examples:\n"
		"  tacho report slow.tacho\n"
		"  tacho report 1234 --fail-on any:critical\n",
	.run = run,
};
