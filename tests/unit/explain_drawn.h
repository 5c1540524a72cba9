/*
 * Findings as a drawing, and what becomes of them (explain/group.c, explain/fold.c). Include after
 * cmocka.h. A line is a finding of a process:
 *
 *   0 critical blocking-call at fetch:12 waiting 30 cost 40 longest 10 count 4 stalls 3 thread 2
 *
 * Times are ms. Processes come in order, from 0. Each has a window of a second and one worker, unless
 * `workers` says how many there are.
 */
#ifndef TESTS_EXPLAIN_DRAWN_H
#define TESTS_EXPLAIN_DRAWN_H

#include <stdio.h>
#include <stdlib.h>

#include "explain/rules.h"
#include "explain_help.h"

#define DRAWN 64u

struct drawing {
	struct explained x; /* for its reader */
	struct tacho__explanation e;
	struct tacho__ledger ledger;
	struct tacho__ledger_thread workers[8 * DRAWN];
	struct tacho__explained processes[8 * DRAWN];
	char names[DRAWN][32];
	char text[DRAWN * 200];
};

static inline enum tacho__severity drawn_severity(const char *name)
{
	enum tacho__severity s = TACHO__SEVERITY_NONE;

	while (s <= TACHO__SEVERITY_CRITICAL && strcmp(tacho__severity_name(s), name) != 0)
		s++;
	return s <= TACHO__SEVERITY_CRITICAL ? s : TACHO__SEVERITY_NONE;
}

static inline enum tacho__rule_id drawn_rule(const char *id)
{
	enum tacho__rule_id r = 0;

	while (r < TACHO__RULE_COUNT && strcmp(tacho__rules[r].id, id) != 0)
		r++;
	assert_int_not_equal(r, TACHO__RULE_COUNT);
	return r;
}

static inline void drawn_place(struct drawing *d, struct tacho__finding *f, const char *place)
{
	char *name = d->names[f->cause];
	char *colon;

	/* A colon is for the line. */
	snprintf(name, sizeof(d->names[0]), "%s%s", strncmp(place, "JS", 2) == 0 ? "JS:" : "",
		 place + (strncmp(place, "JS", 2) == 0 ? 2 : 0));
	colon = strncmp(place, "JS", 2) == 0 ? NULL : strchr(name, ':');
	if (colon)
		*colon = 0;
	f->where[0] = (struct tacho__place){.function = name,
					    .file = "server.c",
					    .module = "/bin/server",
					    .line = colon ? (uint32_t)atoi(colon + 1) : 0};
	f->where_count = 1;
}

static inline void drawn_value(struct drawing *d, struct tacho__finding *f, const char *key,
			       const char *text)
{
	double value = atof(text);

	if (strcmp(key, "at") == 0)
		drawn_place(d, f, text);
	else if (strcmp(key, "waiting") == 0)
		f->waiting_ns = value * 1e6;
	else if (strcmp(key, "served") == 0)
		f->served_ns = value * 1e6;
	else if (strcmp(key, "cost") == 0)
		f->cost_ns = value * 1e6;
	else if (strcmp(key, "longest") == 0)
		f->measure.longest_ns = (uint64_t)(value * 1e6);
	else if (strcmp(key, "count") == 0)
		f->measure.count = (uint64_t)value;
	else if (strcmp(key, "stalls") == 0)
		f->stalls = (uint64_t)value;
	else if (strcmp(key, "loop") == 0)
		f->loop = (uint32_t)value;
	else if (strcmp(key, "kind") == 0)
		f->kind = (uint32_t)value;
	else if (strcmp(key, "thread") == 0)
		f->thread = (uint32_t)value;
	else if (strcmp(key, "threads") == 0)
		f->measure.threads = (uint32_t)value;
	else if (strcmp(key, "pool") == 0)
		f->pool = (uint32_t)value;
	else if (strcmp(key, "subject") == 0)
		f->subject = (uint64_t)value;
	else if (strcmp(key, "sampled") == 0)
		f->where_sampled = 1;
	else if (strcmp(key, "many") == 0)
		snprintf(f->many, sizeof(f->many), "%s blocks %c", text, TACHO__WHO);
	else
		fail_msg("no such key: %s", key);
}

static inline void drawn_line(struct drawing *d, char *line)
{
	struct tacho__finding *f = &d->e.findings[d->e.count];
	char *at, *word = strtok_r(line, " ", &at), *value;

	assert_true(d->e.count < DRAWN);
	f->cause = d->e.count++;
	f->folded_into = -1;
	f->process = (uint32_t)atoi(word);
	f->severity = drawn_severity(strtok_r(NULL, " ", &at));
	f->rule = drawn_rule(strtok_r(NULL, " ", &at));
	while ((word = strtok_r(NULL, " ", &at)) && (value = strtok_r(NULL, " ", &at)))
		drawn_value(d, f, word, value);
	f->measure.total_ns = (uint64_t)f->cost_ns;
	if (f->process >= d->e.process_count)
		d->e.process_count = f->process + 1;
}

static inline void drawn_findings(struct drawing *d, const char *lines)
{
	char *copy = strdup(lines), *at, *line = strtok_r(copy, "\n", &at);

	d->e.findings = calloc(DRAWN, sizeof(*d->e.findings));
	for (; line; line = strtok_r(NULL, "\n", &at))
		if (strspn(line, " \t") != strlen(line))
			drawn_line(d, line + strspn(line, " \t"));
	free(copy);
}

static inline void drawn_workers(struct drawing *d, uint32_t workers)
{
	if (workers > d->e.process_count)
		d->e.process_count = workers;
	for (uint32_t i = 0; i < d->e.process_count; i++) {
		d->processes[i] =
			(struct tacho__explained){.events = 1, .loops = 1, .last_ns = 1000 * MS};
		d->workers[i] =
			(struct tacho__ledger_thread){.process = i, .thread = 1, .is_loop = 1};
	}
	d->ledger.threads = d->workers;
	d->ledger.thread_count = d->e.process_count;
	d->e.ledger = &d->ledger;
	d->e.processes = d->processes;
}

static inline void drawn_text(struct drawing *d)
{
	size_t n = 0;

	for (uint32_t i = 0; i < d->e.count; i++) {
		const struct tacho__finding *f = &d->e.findings[i];

		n += (size_t)snprintf(d->text + n, sizeof(d->text) - n, "%s %s%s%s in %u of %u%s%s",
				      tacho__severity_name(f->severity), tacho__rules[f->rule].id,
				      f->where_count ? " at " : "",
				      f->where_count ? f->where[0].function : "",
				      f->spread.processes, f->spread.processes_in_all,
				      tacho__is_condition(f) ? ", a condition" : "",
				      f->folded_into >= 0 ? ", explained by " : "");
		if (f->folded_into >= 0)
			n += (size_t)snprintf(d->text + n, sizeof(d->text) - n, "%d",
					      f->folded_into);
		n += (size_t)snprintf(d->text + n, sizeof(d->text) - n, "\n");
	}
	print_message("%s", d->text);
}

/* What is found in the end, a line for each; valid until undraw. `workers` 0: as many as have findings. */
static inline struct drawing *draw(const char *lines, uint32_t workers)
{
	struct drawing *d = calloc(1, sizeof(*d));
	struct tacho__explaining x = {.out = &d->e};

	assert_non_null(d);
	begin(&d->x.m, 2);
	d->x.reader = trace_reader(&d->x.m);
	x.reader = x.reading = d->x.reader;
	drawn_findings(d, lines);
	drawn_workers(d, workers);
	assert_int_equal(tacho__fold(&x), 0);
	drawn_text(d);
	return d;
}

static inline void undraw(struct drawing *d)
{
	free(d->e.findings);
	free(d->e.instances);
	tacho_read_close(d->x.reader);
	tb_free(&d->x.m.t);
	free(d);
}

static inline void becomes(const char *lines, const char *text)
{
	struct drawing *d = draw(lines, 0);

	assert_string_equal(d->text, text);
	undraw(d);
}

#endif
