#include "explain/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain/rules.h"
#include "read/memory.h"
#include "read/records.h"

#define FINDINGS_MAX 256u /* of one process */

double tacho__limit(const struct tacho__explaining *x, const char *name)
{
	for (uint32_t i = 0; i < TACHO__LIMIT_COUNT; i++)
		if (strcmp(tacho__thresholds[i].name, name) == 0)
			return tacho__limit_of(x, i);
	abort(); /* no such threshold: not a matter of input */
}

double tacho__seconds(const struct tacho__explaining *x)
{
	double window = tacho__window_ns(x), least = TACHO__LIMIT(x, NOT_ENOUGH_DATA_NS);

	return (window > least ? window : least) / 1e9;
}

enum tacho__severity tacho__severity_of_waiting(const struct tacho__explaining *x,
						double waiting_ns)
{
	return 100 * waiting_ns / tacho__window_ns(x) >=
			       tacho__critical_times * TACHO__LIMIT(x, WAITING_SHARE)
		       ? TACHO__SEVERITY_CRITICAL
		       : TACHO__SEVERITY_WARNING;
}

const char *tacho__severity_name(enum tacho__severity severity)
{
	static const char *const names[] = {"", "info", "warning", "critical"};

	return names[severity];
}

/* ----------------------------------------------------------------- findings */

struct tacho__finding *tacho__find(struct tacho__explaining *x, enum tacho__rule_id rule,
				   enum tacho__severity severity, uint32_t process, double cost_ns)
{
	struct tacho__explanation *e = x->out;
	struct tacho__finding *f = &x->unkept;

	if (TACHO__GROW(e->findings, x->capacity, e->count + 1))
		x->error = -ENOMEM;
	else if (e->count < x->room)
		f = &e->findings[e->count++];
	memset(f, 0, sizeof(*f));
	f->rule = rule;
	f->severity = severity;
	f->process = process;
	f->cost_ns = cost_ns;
	f->folded_into = -1;
	tacho__say_advice(f, "%s", tacho__rules[rule].advice);
	return f;
}

void tacho__say_summary(struct tacho__finding *f, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(f->summary, sizeof(f->summary), format, list);
	va_end(list);
}

void tacho__say_many(struct tacho__finding *f, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(f->many, sizeof(f->many), format, list);
	va_end(list);
}

void tacho__say_advice(struct tacho__finding *f, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(f->advice, sizeof(f->advice), format, list);
	va_end(list);
}

void tacho__say_evidence(struct tacho__finding *f, uint32_t thread, uint64_t from_ns,
			 uint64_t to_ns, double value, const char *unit, const char *format, ...)
{
	struct tacho__evidence *e;
	va_list list;

	if (f->evidence_count == TACHO__EVIDENCE)
		return;
	e = &f->evidence[f->evidence_count++];
	e->process = f->process;
	e->thread = thread;
	e->from_ns = from_ns;
	e->to_ns = to_ns;
	e->value = value;
	snprintf(e->unit, sizeof(e->unit), "%s", unit);
	va_start(list, format);
	vsnprintf(e->text, sizeof(e->text), format, list);
	va_end(list);
}

const char *tacho__process_text(const struct tacho_reader *reader, char out[TACHO__TEXT],
				uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(reader, process);

	const char *name = p && p->comm[0] ? p->comm : "?";

	/* An import may not know it. */
	if (p && !p->pid && p->imported[0])
		snprintf(out, TACHO__TEXT, "%s", name);
	else
		snprintf(out, TACHO__TEXT, "%s (%" PRIu32 ")", name, p ? p->pid : 0);
	return out;
}

/* -------------------------------------------------------------------- words */

const char *tacho__ns_text(char out[TACHO__TEXT], double ns)
{
	const char *unit = "ns";
	double value = ns;
	int decimals = 0;

	if (ns >= 0.9995e9) {
		value = ns / 1e9;
		unit = "s";
	} else if (ns >= 0.9995e6) {
		value = ns / 1e6;
		unit = "ms";
	} else if (ns >= 0.9995e3) {
		value = ns / 1e3;
		unit = "us";
	}
	/* Three digits, but no parts of a nanosecond. */
	if (ns >= 0.9995e3)
		decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	snprintf(out, TACHO__TEXT, "%.*f %s", decimals, value, unit);
	return out;
}

const char *tacho__place_text(char out[2 * TACHO__TEXT], const struct tacho__place *p)
{
	char name[TACHO__TEXT + TACHO__TEXT / 2];

	if (p->function[0] && p->file[0])
		snprintf(out, 2 * TACHO__TEXT, "%s (%s:%u)",
			 tacho__short_name(name, sizeof(name), p->function), tacho__place_file(p),
			 p->line);
	else
		tacho__place_name(out, 2 * TACHO__TEXT, p);
	return out;
}

const char *tacho__where_text(char out[2 * TACHO__TEXT], const struct tacho__finding *f)
{
	uint32_t i = 1;
	size_t n;

	tacho__place_text(out, &f->where[0]);
	/* Without a name, what called it says more. */
	while (!f->where[0].function[0] && i < f->where_count && !(f->where_other >> i & 1) &&
	       !f->where[i].function[0])
		i++;
	n = strlen(out);
	if (!f->where[0].function[0] && i < f->where_count && !(f->where_other >> i & 1))
		snprintf(out + n, 2 * TACHO__TEXT - n, " under %s", f->where[i].function);
	return out;
}

const char *tacho__id_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			   uint32_t process, uint32_t id)
{
	const struct tacho_definition *d =
		id ? tacho_read_definition(x->reader, process, id) : NULL;
	struct tacho__place place;
	char name[TACHO__TEXT];

	if (!d) {
		snprintf(out, TACHO__TEXT, "(not known)");
	} else if (tacho__place_of_kind(x->reader, process, id, x->sum->last_ns, &place) &&
		   place.function[0]) {
		snprintf(out, TACHO__TEXT, "%s", place.function);
	} else if (tacho__place_of_kind(x->reader, process, id, x->sum->last_ns, &place) &&
		   place.module[0]) {
		snprintf(out, TACHO__TEXT, "%s at %s", d->name,
			 tacho__place_name(name, sizeof(name), &place));
	} else {
		snprintf(out, TACHO__TEXT, "%s", d->name[0] ? d->name : "(no name)");
	}
	return out;
}

const char *tacho__loop_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			     const struct tacho__loop_sum *l)
{
	return tacho__loop_name(out, TACHO__TEXT, x->reader, l);
}

const char *tacho__thread_text(const struct tacho__explaining *x, char out[TACHO__TEXT],
			       uint32_t process, uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(x->reader, process, thread);

	if (t && t->name[0])
		snprintf(out, TACHO__TEXT, "%s (%u)", t->name, t->tid);
	else
		snprintf(out, TACHO__TEXT, "thread %u", t ? t->tid : thread);
	return out;
}

int tacho__source_is_on(const struct tacho__explaining *x, uint32_t process, const char *name)
{
	struct tacho_source_info info = {.size = sizeof(info)};

	for (uint32_t i = 0; i < tacho_read_source_count(x->reader); i++)
		if (tacho_read_source(x->reader, process, i, &info) >= 0 &&
		    strcmp(info.name, name) == 0)
			return info.state == TACHO_SOURCE_ON;
	return 0;
}

double tacho__counted(const struct tacho__explaining *x, uint32_t process, const char *name)
{
	struct tacho_loss_info info = {.size = sizeof(info)};

	for (uint32_t i = 0; i < tacho_read_loss_count(x->reader); i++)
		if (tacho_read_loss(x->reader, process, i, &info) >= 0 &&
		    strcmp(info.name, name) == 0)
			return (double)info.count;
	return 0;
}

uint64_t tacho__explained_window(const struct tacho__explanation *e, uint64_t *last)
{
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < e->process_count; i++) {
		const struct tacho__explained *p = &e->processes[i];

		if (p->events && p->first_ns < first)
			first = p->first_ns;
		if (p->events && p->last_ns > end)
			end = p->last_ns;
	}
	if (last)
		*last = end;
	return first == UINT64_MAX ? 0 : first;
}

/* --------------------------------------------------------------------- life */

void tacho__explanation_free(struct tacho__explanation *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; e->processes && i < e->process_count; i++)
		tacho__hist_free(&e->processes[i].callbacks);
	tacho__at_end_free(&e->at_ends);
	tacho__ledger_free(e->ledger);
	free(e->processes);
	free(e->findings);
	free(e->instances);
	free(e);
}

/* What is kept of a summary. 0 or -ENOMEM. */
static int keep(struct tacho__explanation *e, const struct tacho__summary *s, uint32_t process)
{
	struct tacho__explained *to = &e->processes[process];
	int error = 0;

	to->events = s->process[process].events;
	to->missing = s->process[process].missing;
	to->dropped = s->process[process].dropped;
	to->first_ns = s->first_ns;
	to->last_ns = s->last_ns;
	for (uint32_t i = 0; i < s->kinds.used; i++) {
		const struct tacho__kind_sum *k = tacho__table_at(&s->kinds, i);

		if (k && !error)
			error = tacho__hist_merge(&to->callbacks, &k->ns);
	}
	e->missed.tasks += s->missed.tasks;
	e->missed.locks += s->missed.locks;
	e->missed.works += s->missed.works;
	e->missed.spans += s->missed.spans;
	e->missed.threads += s->missed.threads;
	e->missed.depth += s->missed.depth;
	return error;
}

/* While the summary is there: what the loops of its findings are called. */
static void name_loops(struct tacho__explaining *x)
{
	for (uint32_t i = 0; i < x->out->count; i++) {
		struct tacho__finding *f = &x->out->findings[i];
		const struct tacho__loop_sum *l =
			f->loop && f->process == x->process
				? tacho__table_find(&x->sum->loops,
						    (uint64_t)f->process << 32 | f->loop, f->thread)
				: NULL;

		if (!l)
			continue;
		tacho__loop_name(f->loop_name, sizeof(f->loop_name), x->reader, l);
		f->shares_loop_name = l->shares_name;
	}
}

/* ------------------------------------------------------------- one process */

static int begin_process(struct tacho__explaining *x)
{
	struct tacho__facts facts[TACHO__SUMMARY_MORE];

	tacho__read_only(x->reading, x->process);
	x->room = x->out->count + FINDINGS_MAX;
	tacho__gather_init(&x->gathered, x->reading, (uint64_t)TACHO__LIMIT(x, WAKE_LATENCY_WARN));
	x->gathered.at_ends = &x->out->at_ends;
	facts[0] = tacho__gather_facts(&x->gathered);
	facts[1] = tacho__ledger_facts(x->out->ledger);
	if (x->watcher)
		facts[2] = *x->watcher;
	x->summing = tacho__summing_new(x->reading, facts, x->watcher ? 3 : 2);
	if (!x->summing)
		tacho__gather_free(&x->gathered);
	return x->summing ? 0 : -ENOMEM;
}

static int judge_process(struct tacho__explaining *x)
{
	int error = tacho__ledger_turn_page(x->out->ledger);
	uint32_t first = x->out->count;

	if (error)
		return error;
	x->seen_ns = 0;
	tacho__know_losses(x);
	x->covered = 0;
	tacho__rules_leak(x);
	tacho__cover_rules(x);
	tacho__rules_process(x);
	tacho__rules_ledger(x);
	tacho__rules_locks(x);
	tacho__rules_runtime(x);
	tacho__rules_stuck(x);
	tacho__rules_end(x);
	tacho__rules_async(x); /* which knows all that was woken at once */
	tacho__rules_wait(x);
	tacho__rules_pool(x);
	tacho__rules_io(x);
	tacho__rules_rhythm(x);
	tacho__finish(x, first);
	tacho__withhold(x, first);
	name_loops(x);
	tacho__cover_threads(x);
	error = keep(x->out, x->sum, x->process);
	if (x->seen_ns > x->sum->last_ns)
		x->out->processes[x->process].last_ns = x->seen_ns;
	tacho__at_end_finish(&x->out->at_ends, x->process);
	if (!error)
		error = x->error;
	return error ? error : x->out->at_ends.error;
}

/* Its events have been read, or it is given up. */
static void end_process(struct tacho__explaining *x)
{
	tacho__gather_free(&x->gathered);
	if (x->summing)
		x->sum = tacho__summing_end(x->summing);
	tacho__summary_free(x->sum);
	x->summing = NULL;
	x->sum = NULL;
}

/* ---------------------------------------------------------------- all of them */

struct tacho__explaining *tacho__explain_begin(struct tacho_reader *reader,
					       const struct tacho__explain_options *options)
{
	struct tacho__explaining *x = calloc(1, sizeof(*x));
	struct tacho__explanation *e = calloc(1, sizeof(*e));

	if (!x || !e) {
		free(x);
		free(e);
		return NULL;
	}
	x->reader = x->reading = reader;
	x->thresholds = options ? options->thresholds : NULL;
	x->watcher = options ? options->watcher : NULL;
	x->out = e;
	e->process_count = tacho_read_process_count(reader);
	e->processes = calloc(e->process_count + 1, sizeof(*e->processes));
	e->ledger = tacho__ledger_new(reader);
	tacho__at_end_init(&e->at_ends, reader);
	if (!e->processes || !e->ledger) {
		tacho__explain_end(x);
		return NULL;
	}
	if (options)
		tacho__ledger_watch(e->ledger, options->waits);
	return x;
}

static int finish(struct tacho__explaining *x)
{
	int error;

	tacho__read_only(x->reading, UINT32_MAX);
	error = tacho__ledger_close(x->out->ledger);
	if (error)
		return error;
	tacho__name_scripts(x);
	tacho__sum_losses(x);
	error = tacho__fold(x);
	x->done = !error;
	return error;
}

int tacho__explain_some(struct tacho__explaining *x, uint32_t most, uint32_t *process, uint64_t *ns)
{
	int result;

	if (x->process == x->out->process_count)
		return finish(x);
	if (!x->summing) {
		result = begin_process(x);
		if (result < 0)
			return result;
	}
	*process = x->process;
	result = tacho__summing_some(x->summing, most, ns);
	if (result)
		return result;
	x->sum = tacho__summing_end(x->summing);
	x->summing = NULL;
	result = judge_process(x);
	end_process(x);
	x->process++;
	return result < 0 ? result : 1;
}

struct tacho__explanation *tacho__explain_end(struct tacho__explaining *x)
{
	struct tacho__explanation *e = x->out;

	if (!x->done) {
		tacho__read_only(x->reading, UINT32_MAX);
		if (x->summing)
			end_process(x);
		tacho__explanation_free(e);
		e = NULL;
	}
	free(x);
	return e;
}

struct tacho__explanation *tacho__explain(struct tacho_reader *reader,
					  const struct tacho__explain_options *options, int *error)
{
	struct tacho__explaining *x = tacho__explain_begin(reader, options);
	uint32_t process = 0;
	uint64_t ns = 0;

	*error = -ENOMEM;
	if (!x)
		return NULL;
	while ((*error = tacho__explain_some(x, 4096, &process, &ns)) > 0)
		if (options && options->progress)
			options->progress(options->progress_arg, ns);
	return tacho__explain_end(x);
}
