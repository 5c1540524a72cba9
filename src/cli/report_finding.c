#include "cli/report_finding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "text/text.h"

#define INDENT 13u	   /* of what a finding says */
#define INSTANCES_SHOWN 6u /* processes that a finding is in */

static enum cli_colour colour_of(enum tacho__severity severity)
{
	return severity == TACHO__SEVERITY_CRITICAL  ? CLI_RED
	       : severity == TACHO__SEVERITY_WARNING ? CLI_YELLOW
						     : CLI_DIM;
}

/* Times are those since the first event of all. */
static const char *since(const struct tacho__explanation *e, char *out, uint64_t ns)
{
	uint64_t first = tacho__explained_window(e, NULL);

	return text_duration(out, ns > first ? ns - first : 0);
}

/* A part of a finding: what it is, and text that may be long. */
static void put_part(const char *label, const char *text)
{
	printf("     %-*s", (int)(INDENT - 5), label);
	text_put_broken(stdout, text, INDENT, INDENT, cli_columns(stdout));
	putchar('\n');
}

static void put_where(const struct tacho__finding *f, uint32_t index)
{
	const struct tacho__place *p = &f->where[index];
	const char *slash = strrchr(p->module, '/');
	char name[CLI_MESSAGE / 2], line[16] = "", text[CLI_MESSAGE];

	if (p->line)
		snprintf(line, sizeof(line), ":%" PRIu32, p->line);
	snprintf(text, sizeof(text), "%s%s%s%s%s",
		 !index			       ? ""
		 : f->where_other >> index & 1 ? "and "
					       : "called by ",
		 tacho__place_name(name, sizeof(name), p),
		 p->file[0]			  ? "  "
		 : p->function[0] && p->module[0] ? "  in "
						  : "",
		 p->file[0]	   ? p->file
		 : !p->function[0] ? ""
		 : slash	   ? slash + 1
				   : p->module,
		 p->file[0] ? line : "");
	put_part(index ? "" : "where:", text);
}

static void put_evidence(const struct tacho__explanation *e, const struct tacho__finding *f)
{
	for (uint32_t i = 0; i < f->evidence_count; i++) {
		const struct tacho__evidence *v = &f->evidence[i];
		char from[TEXT_SMALL], to[TEXT_SMALL], text[sizeof(v->text) + 2 * TEXT_SMALL + 16];

		if (v->to_ns > v->from_ns)
			snprintf(text, sizeof(text), "+%s to +%s  %s", since(e, from, v->from_ns),
				 since(e, to, v->to_ns), v->text);
		else
			snprintf(text, sizeof(text), "+%s  %s", since(e, from, v->from_ns),
				 v->text);
		put_part(i ? "" : "seen:", text);
	}
}

/* "26 times, 1.21 s in all, longest 149 ms, 1.38 s of waiting" */
static void put_sizes(char *out, size_t size, const struct tacho__instance *n)
{
	char ns[TACHO__TEXT], longest[TACHO__TEXT], waiting[TACHO__TEXT];
	size_t used = 0;

	out[0] = 0;
	if (n->count == 1)
		used += (size_t)snprintf(out, size, ": once, %s", tacho__ns_text(ns, n->cost_ns));
	else if (n->count)
		used += (size_t)snprintf(out, size, ": %" PRIu64 " times, %s in all, longest %s",
					 n->count, tacho__ns_text(ns, n->cost_ns),
					 tacho__ns_text(longest, (double)n->longest_ns));
	if (n->waiting_ns > 0)
		snprintf(out + used, size - used, "%s%s of waiting", used ? ", " : ": ",
			 tacho__ns_text(waiting, n->waiting_ns));
}

/* Of a finding that is in several processes: these. */
static void put_instances(const struct tacho_reader *reader, const struct tacho__spread *s)
{
	uint32_t shown = s->count < INSTANCES_SHOWN ? s->count : INSTANCES_SHOWN;
	char text[CLI_MESSAGE], name[TACHO__TEXT], sizes[4 * TACHO__TEXT];

	if (s->processes < 2)
		return;
	for (uint32_t i = 0; i < shown; i++) {
		put_sizes(sizes, sizeof(sizes), &s->at[i]);
		snprintf(text, sizeof(text), "%s%s",
			 tacho__process_text(reader, name, s->at[i].process), sizes);
		put_part(i ? "" : "in:", text);
	}
	if (s->processes == shown)
		return;
	snprintf(text, sizeof(text), "and %" PRIu32 " more", s->processes - shown);
	put_part("", text);
}

/* Who waits, for whom, and what that one did. */
static void put_chain(const struct tacho_reader *reader, const struct tacho__finding *f)
{
	for (uint32_t i = 0; i < f->part_count; i++) {
		char text[CLI_MESSAGE];

		put_part(i ? "" : "chain:",
			 tacho__part_text(text, sizeof(text), reader, f->process, &f->parts[i]));
	}
}

/* "in 6 of 6 processes", or of which process it is, where there are several. */
static void put_whose(const struct tacho_reader *reader, const struct tacho__explanation *e,
		      const struct tacho__finding *f)
{
	char name[TACHO__TEXT];

	if (e->process_count < 2)
		return;
	fputs("  in ", stdout);
	if (f->spread.processes > 1)
		printf("%" PRIu32 " of %" PRIu32 " processes", f->spread.processes,
		       f->spread.processes_in_all);
	else
		text_put(stdout, tacho__process_text(reader, name, f->process));
}

/* Conditions have a part of their own, behind those of their severity that something waited for. */
static void put_conditions(const struct tacho__explanation *e, uint32_t index)
{
	if (!tacho__is_condition(&e->findings[index]) ||
	    (index && tacho__is_condition(&e->findings[index - 1])))
		return;
	printf("\n%sconditions%s, because of which nobody was seen to wait:\n",
	       cli_colour(stdout, CLI_BOLD), cli_colour(stdout, CLI_PLAIN));
}

void report_finding(const struct tacho_reader *reader, const struct tacho__explanation *e,
		    uint32_t index)
{
	const struct tacho__finding *f = &e->findings[index];
	char number[16] = " - ";

	put_conditions(e, index);
	/* What has no rank has no number. */
	if (!tacho__is_condition(f))
		snprintf(number, sizeof(number), "%2" PRIu32 ".", index + 1);
	printf("\n%s%s %s%s  %s%s%s", cli_colour(stdout, colour_of(f->severity)), number,
	       tacho__severity_name(f->severity), cli_colour(stdout, CLI_PLAIN),
	       cli_colour(stdout, CLI_BOLD), tacho__rules[f->rule].id,
	       cli_colour(stdout, CLI_PLAIN));
	put_whose(reader, e, f);
	putchar('\n');
	/* What the first line says is not said again. */
	if (strcmp(f->summary, e->verdict.summary) != 0 || f->process != e->process) {
		fputs("     ", stdout);
		text_put_broken(stdout, f->summary, 5, 5, cli_columns(stdout));
		putchar('\n');
	}
	for (uint32_t i = 0; i < f->where_count; i++)
		put_where(f, i);
	if (f->shares_loop_name)
		put_part("loop:", f->loop_name);
	put_chain(reader, f);
	put_instances(reader, &f->spread);
	put_evidence(e, f);
	put_part("do:", f->advice);
	if (f->names[0])
		put_part("names:", f->names);
	for (uint32_t i = 0; i < e->count; i++)
		if (e->findings[i].folded_into == (int32_t)index) {
			char text[sizeof(f->summary) + 64];

			snprintf(text, sizeof(text), "%s: %s", tacho__rules[e->findings[i].rule].id,
				 e->findings[i].summary);
			put_part("and so:", text);
		}
}
