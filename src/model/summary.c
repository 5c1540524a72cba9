#include "model/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/summing.h"

#define KINDS 4096u
#define LOOPS 4096u
#define LOCKS 2048u
#define CALLS 4096u
#define WORKS 1024u
#define TASKS 2048u
#define COUNTERS 1024u
#define READY 65536u
#define SPANS 2048u

/* ------------------------------------------------------------------ helpers */

void *tacho__sum_look_up(struct tacho__summing *g, struct tacho__table *t, uint64_t a, uint64_t b,
			 struct tacho__looked_up *l)
{
	int err = 0;
	struct tacho__entry *e = tacho__table_get(t, a, b, &err);

	if (err)
		g->error = err;
	if (e)
		*l = (struct tacho__looked_up){t, a, b, e->index};
	return e;
}

uint32_t tacho__sum_step(struct tacho__summing *g, uint64_t ns)
{
	uint64_t at;

	if (ns >= g->step_from && ns - g->step_from < g->step_ns)
		return g->step_at;
	if (ns <= g->sum->first_ns)
		return 0;
	at = (ns - g->sum->first_ns) / g->step_ns;
	/* The last one takes what is left. */
	if (at >= TACHO__SERIES)
		return TACHO__SERIES - 1;
	g->step_at = (uint32_t)at;
	g->step_from = g->sum->first_ns + at * g->step_ns;
	return g->step_at;
}

void tacho__sum_range(struct tacho__summing *g, struct tacho__series *s, uint64_t from, uint64_t to)
{
	uint32_t step, last;

	if (from < g->sum->first_ns)
		from = g->sum->first_ns;
	if (to <= from)
		return;
	last = tacho__sum_step(g, to);
	step = tacho__sum_step(g, from);
	for (; step < last; step++) {
		uint64_t edge = g->sum->first_ns + (step + 1) * g->step_ns;

		s->at[step] += edge > from ? edge - from : 0;
		from = edge;
	}
	s->at[step] += to > from ? to - from : 0;
}

struct tacho__process_sum *tacho__sum_process(const struct tacho__summing *g, uint32_t process)
{
	return process < g->sum->processes ? &g->sum->process[process] : NULL;
}

uint64_t tacho__summary_step_ns(const struct tacho__summary *s)
{
	uint64_t step = s->last_ns > s->first_ns ? (s->last_ns - s->first_ns) / TACHO__SERIES : 0;

	return step ? step : 1;
}

uint32_t tacho__summary_step(const struct tacho__summary *s, uint64_t ns)
{
	uint64_t at = ns > s->first_ns ? (ns - s->first_ns) / tacho__summary_step_ns(s) : 0;

	return at < TACHO__SERIES ? (uint32_t)at : TACHO__SERIES - 1;
}

/* ---------------------------------------------------------------- processes */

static void sum_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__summing *g = arg;
	struct tacho__process_sum *p = tacho__sum_process(g, s->at.process);

	if (p)
		p->samples++;
}

static void sum_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__summing *g = arg;
	struct tacho__process_sum *p = tacho__sum_process(g, h->process);

	if (!p)
		return;
	p->missing += h->missing;
	p->dropped += h->dropped;
	if (h->to_ns > p->hole_ns)
		p->hole_ns = h->to_ns;
}

/* --------------------------------------------------------------------- life */

static void init_tables(struct tacho__summary *s)
{
	tacho__table_init(&s->kinds, sizeof(struct tacho__kind_sum), KINDS);
	tacho__table_init(&s->loops, sizeof(struct tacho__loop_sum), LOOPS);
	tacho__table_init(&s->locks, sizeof(struct tacho__lock_sum), LOCKS);
	tacho__table_init(&s->calls, sizeof(struct tacho__call_sum), CALLS);
	tacho__table_init(&s->works, sizeof(struct tacho__work_sum), WORKS);
	tacho__table_init(&s->tasks, sizeof(struct tacho__task_sum), TASKS);
	tacho__table_init(&s->task_waits, sizeof(struct tacho__task_wait_sum), TASKS);
	tacho__table_init(&s->counters, sizeof(struct tacho__counter_sum), COUNTERS);
	tacho__table_init(&s->ready, sizeof(struct tacho__ready_sum), READY);
	tacho__table_init(&s->spans, sizeof(struct tacho__span_sum), SPANS);
}

static int init(struct tacho__summing *g, struct tacho_reader *reader)
{
	struct tacho__summary *s = calloc(1, sizeof(*s));

	g->sum = s;
	g->reader = reader;
	if (!s)
		return -ENOMEM;
	init_tables(s);
	s->processes = tacho_read_process_count(reader);
	s->process = calloc(s->processes + 1, sizeof(*s->process));
	if (!s->process)
		return -ENOMEM;
	/* Without events both stay 0. */
	tacho_read_window(reader, &s->first_ns, &s->last_ns);
	/* Limits may leave nothing between them. */
	if (s->last_ns < s->first_ns)
		s->last_ns = s->first_ns;
	g->step_ns = tacho__summary_step_ns(s);
	g->step_from = s->first_ns;
	return 0;
}

struct tacho__summing *tacho__summing_new(struct tacho_reader *reader,
					  const struct tacho__facts *more, uint32_t count)
{
	struct tacho__summing *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->facts[0] = (struct tacho__facts){
		.arg = g,
		.error = &g->error,
		.poll = tacho__sum_poll,
		.turn = tacho__sum_turn,
		.wake = tacho__sum_wake,
		.lock = tacho__sum_lock,
		.call = tacho__sum_call,
		.work = tacho__sum_work,
		.span = tacho__sum_span,
		.sample = sum_sample,
		.task = tacho__sum_task,
		.task_wait = tacho__sum_task_wait,
		.counter = tacho__sum_counter,
		.ready = tacho__sum_ready,
		.hole = sum_hole,
		.other = tacho__sum_short_polls,
	};
	for (uint32_t i = 0; i < count; i++)
		g->facts[1 + i] = more[i];
	if (!init(g, reader))
		g->tracker = tacho__tracker_new(reader, g->facts, 1 + count);
	if (!g->tracker) {
		tacho__summary_free(tacho__summing_end(g));
		return NULL;
	}
	return g;
}

static void finish(struct tacho__summing *g)
{
	struct tacho__summary *s = g->sum;

	for (uint32_t i = 0; i < s->processes; i++) {
		s->process[i].events = tacho__tracker_events(g->tracker, i);
		s->process[i].end_ns = tacho__tracker_end(g->tracker, i);
		s->events += s->process[i].events;
	}
	s->missed = tacho__tracker_missed(g->tracker);
	tacho__sum_loop_names(g);
}

int tacho__summing_some(struct tacho__summing *g, uint32_t most, uint64_t *ns)
{
	int result = tacho__tracker_some(g->tracker, most, ns);

	if (!result) {
		finish(g);
		result = g->error;
	}
	return result;
}

struct tacho__summary *tacho__summing_end(struct tacho__summing *g)
{
	struct tacho__summary *s = g->sum;

	tacho__tracker_free(g->tracker);
	free(g);
	return s;
}

struct tacho__summary *tacho__summary_make(struct tacho_reader *reader,
					   const struct tacho__facts *more, uint32_t count,
					   void (*progress)(void *arg, uint64_t ns), void *arg,
					   int *error)
{
	struct tacho__summing *g = tacho__summing_new(reader, more, count);
	struct tacho__summary *s;
	uint64_t ns = 0;

	*error = -ENOMEM;
	if (!g)
		return NULL;
	while ((*error = tacho__summing_some(g, 4096, &ns)) > 0)
		if (progress)
			progress(arg, ns);
	s = tacho__summing_end(g);
	if (*error < 0) {
		tacho__summary_free(s);
		return NULL;
	}
	return s;
}

#define FREE_HISTS(table, type, ...)                                             \
	for (uint32_t i = 0; i < (table).used; i++) {                            \
		struct type *x = tacho__table_at(&(table), i);                   \
		struct tacho__hist *all[] = {__VA_ARGS__};                       \
                                                                                 \
		for (uint32_t h = 0; x && h < sizeof(all) / sizeof(all[0]); h++) \
			tacho__hist_free(all[h]);                                \
	}                                                                        \
	tacho__table_free(&(table))

void tacho__summary_free(struct tacho__summary *s)
{
	if (!s)
		return;
	FREE_HISTS(s->kinds, tacho__kind_sum, &x->ns, &x->wake, &x->late);
	FREE_HISTS(s->loops, tacho__loop_sum, &x->ns);
	FREE_HISTS(s->locks, tacho__lock_sum, &x->ns, &x->inside);
	FREE_HISTS(s->calls, tacho__call_sum, &x->ns);
	FREE_HISTS(s->works, tacho__work_sum, &x->wait, &x->run, &x->at_once, &x->crowded);
	FREE_HISTS(s->tasks, tacho__task_sum, &x->life, &x->busy);
	FREE_HISTS(s->spans, tacho__span_sum, &x->ns);
	tacho__table_free(&s->task_waits);
	tacho__table_free(&s->counters);
	tacho__table_free(&s->ready);
	for (uint32_t i = 0; s->process && i < s->processes; i++)
		tacho__hist_free(&s->process[i].wakes.latency);
	free(s->process);
	free(s);
}
