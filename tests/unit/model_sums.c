/* Tables, histograms, and sums over a trace against a recount of its events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/summary.h"
#include "model_help.h"
#include "tacho.h"

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 17;
}

/* ------------------------------------------------------------------ tables */

struct item {
	struct tacho__entry entry;
	uint64_t value;
};

/* Against an array, with keys that come, go and come back. */
static void a_table_holds_what_was_put_into_it(void **state)
{
	enum { KEYS = 700, STEPS = 60000, MOST = 500 };
	static uint64_t values[KEYS]; /* 0: not there */
	uint64_t seed = 5;
	uint32_t there = 0, missed = 0;
	struct tacho__table t;
	int error = 0;

	(void)state;
	tacho__table_init(&t, sizeof(struct item), MOST);
	assert_null(tacho__table_find(&t, 0, 0));
	for (uint32_t i = 0; i < STEPS; i++) {
		uint64_t k = next_random(&seed) % KEYS, a = k % 3, b = k << 20;
		struct item *found = tacho__table_find(&t, a, b);

		assert_int_equal(found ? found->value : 0, values[k]);
		if (found && next_random(&seed) % 2) {
			assert_ptr_equal(tacho__table_at(&t, found->entry.index), found);
			tacho__table_remove(&t, found);
			values[k] = 0;
			there--;
		} else if (!found) {
			found = tacho__table_get(&t, a, b, &error);
			assert_int_equal(found != NULL, there < MOST);
			missed += !found;
			if (found) {
				assert_int_equal(found->value, 0);
				found->value = values[k] = i + 1;
				there++;
			}
		}
		assert_int_equal(t.count, there);
	}
	assert_int_equal(error, 0);
	assert_true(missed > 0);
	assert_int_equal(t.missed, missed);
	for (uint32_t i = 0; i < t.used; i++)
		there -= tacho__table_at(&t, i) != NULL;
	assert_int_equal(there, 0);
	tacho__table_free(&t);
}

/* -------------------------------------------------------------- histograms */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void percentiles_are_those_of_the_sorted_values(void **state)
{
	enum { COUNT = 20000 };
	static uint64_t values[COUNT];
	static const double shares[] = {0.001, 0.1, 0.5, 0.9, 0.99, 0.999};
	struct tacho__hist h = {0}, half = {0};
	uint64_t seed = 7, sum = 0, powers[64], in_powers = 0;

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++) {
		values[i] = next_random(&seed) >> next_random(&seed) % 47;
		sum += values[i];
		assert_int_equal(tacho__hist_add(i % 2 ? &h : &half, values[i]), 0);
	}
	assert_int_equal(tacho__hist_merge(&h, &half), 0);
	qsort(values, COUNT, sizeof(values[0]), by_value);
	assert_int_equal(h.count, COUNT);
	assert_int_equal(h.sum, sum);
	assert_int_equal(h.least, values[0]);
	assert_int_equal(h.most, values[COUNT - 1]);
	assert_int_equal(tacho__hist_at(&h, 1), values[COUNT - 1]);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		uint64_t exact = values[(uint32_t)(shares[i] * COUNT + 0.999999) - 1];
		uint64_t got = tacho__hist_at(&h, shares[i]);
		uint32_t above = 0;

		assert_in_range(got, exact, exact + exact / 32);
		for (uint32_t k = 0; k < COUNT; k++)
			above += values[k] > got;
		assert_int_equal(tacho__hist_above(&h, got), above);
	}
	tacho__hist_powers(&h, powers);
	for (uint32_t p = 0; p < 64; p++) {
		uint64_t n = 0;

		for (uint32_t k = 0; k < COUNT; k++)
			n += (values[k] ? 63 - (uint32_t)__builtin_clzll(values[k]) : 0) == p;
		assert_int_equal(powers[p], n);
		in_powers += n;
	}
	assert_int_equal(in_powers, COUNT);
	tacho__hist_free(&h);
	tacho__hist_free(&half);
}

static void a_histogram_takes_every_number(void **state)
{
	static const uint64_t edges[] = {0,  1,	 31,	     32,	 33,
					 63, 64, UINT32_MAX, 1ull << 63, UINT64_MAX};
	struct tacho__hist h = {0};

	(void)state;
	assert_int_equal(tacho__hist_at(&h, 0.5), 0);
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		assert_int_equal(tacho__hist_add(&h, edges[i]), 0);
		assert_int_equal(h.most, edges[i]);
		assert_int_equal(tacho__hist_at(&h, 1), edges[i]);
		assert_int_equal(tacho__hist_above(&h, edges[i]), 0);
	}
	assert_int_equal(tacho__hist_at(&h, 0), 0);
	tacho__hist_free(&h);
	assert_int_equal(tacho__hist_add_many(&h, 100, 1ull << 40), 0);
	assert_int_equal(tacho__hist_add_many(&h, 100, 5), 0);
	assert_int_equal(h.count, (1ull << 40) + 5);
	assert_int_equal(tacho__hist_at(&h, 0.5), 100);
	tacho__hist_free(&h);
}

/* ------------------------------------------------------- sums of a recording */

static struct tacho_name loops[] = {TACHO_LOOP("one"), TACHO_LOOP("two")};
static struct tacho_name kinds[] = {TACHO_KIND("a"), TACHO_KIND("b"), TACHO_KIND("c")};
static struct tacho_name a_span = TACHO_SPAN_NAME("span");
static struct tacho_name a_counter = TACHO_COUNTER("counter", "");

/* More than fits, so that streams begin with something open. */
static void *worker(void *arg)
{
	uint64_t which = (uint64_t)(uintptr_t)arg, seed = which;

	for (uint32_t i = 0; i < 60000; i++) {
		uint64_t task = 1 + next_random(&seed) % 50, r = next_random(&seed);

		tacho_park(&loops[which]);
		tacho_unpark(&loops[which], (uint32_t)r % 4);
		tacho_poll_begin(&kinds[r % 3], task);
		if (r % 5 == 0)
			tacho_wake(1 + r % 50);
		if (r % 7 == 0) {
			tacho_poll_begin(&kinds[2], task + 100);
			tacho_poll_end(TACHO_PENDING);
		}
		if (r % 11 == 0) {
			tacho_span_begin(&a_span);
			tacho_span_end(&a_span);
		}
		if (r % 13 == 0) {
			tacho_lock_wait(&seed, NULL);
			tacho_lock_waited(&seed, r % 2);
		}
		if (r % 17 == 0)
			tacho_counter(&a_counter, (int64_t)i);
		if (r % 3 == 0)
			tacho_poll_switch(&kinds[r % 2], task);
		tacho_poll_end(r % 19 ? TACHO_PENDING : TACHO_DONE);
	}
	return NULL;
}

static void record_into(int fd)
{
	struct tacho_options options = TACHO_OPTIONS_INIT;
	pthread_t threads[2];

	options.max_bytes = 4 << 20;
	if (tacho_start(&options))
		_exit(1);
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)i))
			_exit(2);
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	tacho_poll_begin(&kinds[0], 1); /* open at the end */
	if (tacho_snapshot(fd))
		_exit(3);
	tacho_stop();
	_exit(0);
}

static void *recording(size_t *size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC), status = 0;
	struct stat st;
	pid_t child;
	void *data;

	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		record_into(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	data = malloc(*size);
	assert_int_equal(pread(fd, data, *size, 0), (ssize_t)*size);
	close(fd);
	return data;
}

/* What a reader of the events counts without a model. A stack of what is open for each thread. */
struct open {
	uint64_t begin;
	uint32_t id;
	int is_span, is_cut;
};

struct counted_thread {
	struct open open[8];
	uint32_t depth;
	int in_turn;
	uint64_t lock_ns;
};

/* More than modules, names and ids that two threads took for one name at the same time. */
#define IDS 64u

struct recount {
	uint64_t events, wakes, spans, locks, gave_up, counters, turns;
	uint64_t polls[IDS], polls_ns[IDS], cut, longest, lock_ns;
	double last_counter;
	struct counted_thread threads[8];
};

static void recount_begin(struct counted_thread *t, uint64_t ns, uint32_t id, int is_span, int cut)
{
	assert_in_range(t->depth, 0, 7);
	assert_in_range(id, 1, IDS - 1);
	t->open[t->depth++] = (struct open){ns, id, is_span, cut};
}

/* The innermost poll ends, with the spans inside of it. */
static void recount_end(struct recount *c, struct counted_thread *t, uint64_t ns, int cut)
{
	const struct open *o = NULL;

	while (t->depth && (!o || o->is_span))
		o = &t->open[--t->depth];
	if (!o || o->is_span)
		return;
	if (cut || o->is_cut) {
		c->cut++;
		return;
	}
	ns -= o->begin;
	c->polls[o->id]++;
	c->polls_ns[o->id] += ns;
	if (ns > c->longest)
		c->longest = ns;
}

static int is_still_open(const struct counted_thread *t, const struct tacho_resume_info *r)
{
	if (!t->depth || r->open_count != t->depth || r->open_listed != t->depth)
		return 0;
	for (uint32_t i = 0; i < t->depth; i++)
		if (r->open[i].since_ns != t->open[i].begin || r->open[i].id != t->open[i].id)
			return 0;
	return 1;
}

static void recount_resume(struct recount *c, struct counted_thread *t, const struct tacho_event *e)
{
	const struct tacho_resume_info *r = e->resume;

	t->lock_ns = 0;
	if (is_still_open(t, r))
		return;
	c->turns += (uint64_t)t->in_turn;
	t->in_turn = 0;
	while (t->depth)
		recount_end(c, t, e->ns, 1);
	for (uint32_t i = 0; i < r->open_listed; i++) {
		c->spans += r->open[i].what == TACHO_EV_SPAN_BEGIN;
		recount_begin(t, r->open[i].since_ns ? r->open[i].since_ns : e->ns, r->open[i].id,
			      r->open[i].what == TACHO_EV_SPAN_BEGIN, !r->open[i].since_ns);
	}
}

static void recount_lock(struct recount *c, struct counted_thread *t, const struct tacho_event *e)
{
	if (!t->lock_ns)
		return;
	c->locks++;
	c->gave_up += !e->arg;
	c->lock_ns += e->ns - t->lock_ns;
	t->lock_ns = 0;
}

static void recount_event(struct recount *c, const struct tacho_event *e)
{
	struct counted_thread *t = &c->threads[e->thread];

	assert_true(e->thread < 8 && e->stream == TACHO_STREAM_NORMAL);
	c->events += e->type != TACHO_EV_RESUME;
	switch (e->type) {
	case TACHO_EV_RESUME:
		recount_resume(c, t, e);
		break;
	case TACHO_EV_POLL_SWITCH:
		recount_end(c, t, e->ns, 0);
		recount_begin(t, e->ns, e->arg, 0, 0);
		break;
	case TACHO_EV_POLL_BEGIN:
		recount_begin(t, e->ns, e->arg, 0, 0);
		break;
	case TACHO_EV_POLL_END:
		recount_end(c, t, e->ns, 0);
		break;
	case TACHO_EV_SPAN_BEGIN:
		c->spans++;
		recount_begin(t, e->ns, e->arg, 1, 0);
		break;
	case TACHO_EV_SPAN_END:
		t->depth -= t->depth && t->open[t->depth - 1].is_span;
		break;
	case TACHO_EV_PARK:
		c->turns += (uint64_t)t->in_turn;
		t->in_turn = 0;
		break;
	case TACHO_EV_UNPARK:
		t->in_turn = 1;
		break;
	case TACHO_EV_WAKE:
		c->wakes++;
		break;
	case TACHO_EV_LOCK_WAIT:
		t->lock_ns = e->ns;
		break;
	case TACHO_EV_LOCK_WAITED:
		recount_lock(c, t, e);
		break;
	case TACHO_EV_COUNTER:
		c->counters++;
		c->last_counter = (double)(int64_t)e->word[0];
		break;
	default:
		break;
	}
}

/* What is open at the end is cut there. */
static void recount_rest(struct recount *c, uint64_t ns)
{
	for (uint32_t i = 0; i < 8; i++) {
		c->turns += (uint64_t)c->threads[i].in_turn;
		while (c->threads[i].depth)
			recount_end(c, &c->threads[i], ns, 1);
	}
}

static void compare_kinds(const struct tacho__summary *s, const struct recount *c)
{
	uint64_t cut = 0, longest = 0;

	for (uint32_t i = 0; i < s->kinds.used; i++) {
		const struct tacho__kind_sum *k = tacho__table_at(&s->kinds, i);

		assert_in_range(k->kind, 1, IDS - 1);
		assert_int_equal(k->ns.count, c->polls[k->kind]);
		assert_int_equal(k->ns.sum, c->polls_ns[k->kind]);
		assert_int_equal(k->worst.at[0].end_ns - k->worst.at[0].begin_ns, k->ns.most);
		for (uint32_t w = 1; w < k->worst.count; w++)
			assert_true(k->worst.at[w].end_ns - k->worst.at[w].begin_ns <=
				    k->worst.at[w - 1].end_ns - k->worst.at[w - 1].begin_ns);
		cut += k->cut;
		longest = k->ns.most > longest ? k->ns.most : longest;
	}
	assert_int_equal(cut, c->cut);
	assert_int_equal(longest, c->longest);
}

static void compare_waits(const struct tacho__summary *s, const struct recount *c)
{
	const struct tacho__wake_sum *w = &s->process[0].wakes;
	uint64_t locks = 0, ns = 0, gave_up = 0, turns = 0, whole = 0, in_series = 0, spans = 0;

	assert_int_equal(w->count + w->again, c->wakes);
	for (uint32_t i = 0; i < s->locks.used; i++) {
		const struct tacho__lock_sum *k = tacho__table_at(&s->locks, i);

		locks += k->ns.count;
		ns += k->ns.sum;
		gave_up += k->gave_up;
	}
	assert_int_equal(locks, c->locks);
	assert_int_equal(ns, c->lock_ns);
	assert_int_equal(gave_up, c->gave_up);
	for (uint32_t i = 0; i < s->spans.used; i++) {
		const struct tacho__span_sum *k = tacho__table_at(&s->spans, i);

		spans += k->ns.count + k->cut;
	}
	assert_int_equal(spans, c->spans);
	for (uint32_t i = 0; i < s->loops.used; i++) {
		const struct tacho__loop_sum *l = tacho__table_at(&s->loops, i);

		turns += l->turns;
		whole += l->busy_ns + l->short_waits_ns; /* nobody lacks a CPU */
		for (uint32_t k = 0; k < TACHO__SERIES; k++)
			in_series += l->busy.at[k];
	}
	assert_int_equal(turns, c->turns);
	assert_int_equal(in_series, whole);
}

static void sums_are_those_of_the_events(void **state)
{
	struct recount *c = calloc(1, sizeof(*c));
	const struct tacho__counter_sum *counter;
	uint64_t last_ns = 0;
	struct tacho__summary *s;
	struct tacho_reader *r;
	const struct tacho_event *e;
	size_t size;
	int error;
	void *data = recording(&size);

	(void)state;
	assert_non_null(c);
	r = open_bytes(data, size, NULL);
	while (tacho_read_next(r, &e) > 0) {
		recount_event(c, e);
		last_ns = e->ns;
	}
	recount_rest(c, last_ns);
	assert_true(c->wakes > 1000 && c->polls_ns[IDS - 1] == 0 && c->cut > 0);

	assert_int_equal(tacho_read_seek(r, 0), 0);
	s = tacho__summary_make(r, NULL, 0, NULL, NULL, &error);
	assert_non_null(s);
	assert_int_equal(s->events, c->events);
	assert_int_equal(s->process[0].events, c->events);
	compare_kinds(s, c);
	compare_waits(s, c);
	assert_int_equal(s->counters.count, 1);
	counter = tacho__table_at(&s->counters, 0);
	assert_int_equal(counter->count, c->counters);
	assert_true(counter->last == c->last_counter);
	tacho__summary_free(s);
	tacho_read_close(r);
	free(data);
	free(c);
}

struct told {
	uint64_t polls, wakes, counters;
};

static void told_poll(void *arg, const struct tacho__poll *poll)
{
	((struct told *)arg)->polls += poll->end_ns;
}

static void told_wake(void *arg, const struct tacho__wake *wake)
{
	((struct told *)arg)->wakes += wake->ns;
}

static void told_counter(void *arg, const struct tacho__counter *counter)
{
	((struct told *)arg)->counters += counter->ns;
}

static void all_subscribers_are_told_what_they_want(void **state)
{
	struct told alone = {0}, first = {0}, last = {0}, more = {0};
	const struct tacho__facts all = {
		.arg = &alone, .poll = told_poll, .wake = told_wake, .counter = told_counter};
	const struct tacho__facts several[] = {
		{.arg = &first, .poll = told_poll, .counter = told_counter},
		{.arg = NULL},
		{.arg = &last, .poll = told_poll, .wake = told_wake},
	};
	struct tacho__facts beside = all;
	struct tacho__tracker *t;
	struct tacho__summary *s;
	struct tacho_reader *r;
	size_t size;
	int error;
	void *data = recording(&size);

	(void)state;
	r = open_bytes(data, size, NULL);
	assert_int_equal(tacho__model_run(r, &all, NULL, NULL, NULL), 0);
	assert_true(alone.polls && alone.wakes && alone.counters);

	assert_int_equal(tacho_read_seek(r, 0), 0);
	t = tacho__tracker_new(r, several, 3);
	assert_non_null(t);
	assert_int_equal(tacho__tracker_run(t, NULL, NULL), 0);
	tacho__tracker_free(t);
	assert_memory_equal(&first, (&(struct told){alone.polls, 0, alone.counters}),
			    sizeof(first));
	assert_memory_equal(&last, (&(struct told){alone.polls, alone.wakes, 0}), sizeof(last));

	assert_int_equal(tacho_read_seek(r, 0), 0);
	beside.arg = &more;
	s = tacho__summary_make(r, &beside, 1, NULL, NULL, &error);
	assert_non_null(s);
	assert_memory_equal(&more, &alone, sizeof(more));
	tacho__summary_free(s);
	tacho_read_close(r);
	free(data);
}

/* --------------------------------------------------------- what counts as long */

static struct tacho__summary *summary_of(struct trace *m, struct tacho_reader **r)
{
	struct tacho__summary *s;
	int error;

	*r = trace_reader(m);
	s = tacho__summary_make(*r, NULL, 0, NULL, NULL, &error);
	assert_non_null(s);
	return s;
}

static void summary_end(struct trace *m, struct tacho_reader *r, struct tacho__summary *s)
{
	tacho__summary_free(s);
	tacho_read_close(r);
	tb_free(&m->t);
}

static void what_is_cut_is_never_long(void **state)
{
	const struct tacho__kind_sum *k;
	struct tacho__summary *s;
	struct tacho_reader *r;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	trace_open(&m, TACHO_REC_POLL_BEGIN, KIND_A, 1, 0);
	PUT(&m, 100 * MS, POLL_END, 1);
	PUT(&m, 200 * MS, POLL_BEGIN, KIND_A, 2);
	PUT(&m, 201 * MS, POLL_END, 1);
	PUT(&m, 300 * MS, POLL_BEGIN, KIND_A, 3);
	trace_stream(&m, 2, 0);
	PUT(&m, 0, LOOP, LOOP_3);
	PUT(&m, 900 * MS, LOOP, LOOP_3);
	s = summary_of(&m, &r);
	assert_int_equal(s->kinds.count, 1);
	k = tacho__table_at(&s->kinds, 0);
	assert_int_equal(k->ns.count, 1);
	assert_int_equal(k->ns.most, MS);
	assert_int_equal(k->worst.count, 1);
	assert_int_equal(k->cut, 2);
	summary_end(&m, r, s);
}

static void short_polls_that_were_counted_are_in_the_sum(void **state)
{
	const struct tacho__kind_sum *k;
	struct tacho__summary *s;
	struct tacho_reader *r;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 10, POLL_BEGIN, KIND_A, 1);
	PUT(&m, 50010, POLL_END, 1);
	PUT(&m, 50020, POLL_HIST, KIND_A, LOOP_3, 0, T0, 9000, 10ull << 48 | 3, 11ull << 48 | 2);
	s = summary_of(&m, &r);
	k = tacho__table_at(&s->kinds, 0);
	assert_int_equal(k->kind, KIND_A);
	assert_int_equal(k->ns.count, 6);
	assert_int_equal(k->ns.sum, 50000 + 9000);
	assert_in_range(tacho__hist_at(&k->ns, 0.5), 1024, 2047);
	assert_int_equal(k->ns.most, 50000);
	summary_end(&m, r, s);
}

static void tasks_that_are_left_say_what_they_wait_for(void **state)
{
	const struct tacho__task_sum *k;
	struct tacho__summary *s;
	struct tacho_reader *r;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	for (uint64_t task = 1; task <= 4; task++)
		PUT(&m, task, SPAWN, KIND_A, PLACE, task, 0);
	for (uint64_t task = 1; task <= 4; task++) {
		PUT(&m, 10 * task, POLL_BEGIN, KIND_A, task);
		PUT(&m, 10 * task + 5, POLL_END, task == 1 ? 2 : 1);
	}
	PUT(&m, 100, WAKE, 0, 2);
	PUT(&m, 200, POLL_BEGIN, KIND_A, 3);
	s = summary_of(&m, &r);
	assert_int_equal(s->tasks.count, 1);
	k = tacho__table_at(&s->tasks, 0);
	assert_int_equal(k->seen, 4);
	assert_int_equal(k->spawned, 4);
	assert_int_equal(k->ended, 1);
	assert_int_equal(k->woken_at_end, 1);
	assert_int_equal(k->woken.task, 2);
	/* 3 was running when the trace ends, which is not idle. */
	assert_int_equal(k->idle_at_end, 1);
	assert_int_equal(k->stuck.task, 4);
	assert_int_equal(k->life.count, 1);
	assert_int_equal(k->life.sum, 14);
	summary_end(&m, r, s);
}

/* They may have run or ended in the hole. */
static void tasks_last_seen_before_a_hole_do_not_wait(void **state)
{
	const struct tacho__task_sum *k;
	struct tacho__summary *s;
	struct tacho_reader *r;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	for (uint64_t task = 1; task <= 3; task++)
		PUT(&m, task, SPAWN, KIND_A, PLACE, task, 0);
	PUT(&m, 100, WAKE, 0, 2);
	trace_hole(&m, 1, 0, 9);
	PUT(&m, 200, WAKE, 0, 3);
	PUT(&m, 300, LOOP, LOOP_3);
	s = summary_of(&m, &r);
	k = tacho__table_at(&s->tasks, 0);
	assert_int_equal(k->seen, 3);
	assert_int_equal(k->idle_at_end, 0);
	assert_int_equal(k->woken_at_end, 1);
	assert_int_equal(k->woken.task, 3);
	assert_int_equal(s->process[0].missing, 9);
	summary_end(&m, r, s);
}

/* Twelve waits, wakes and calls, each in a poll: those of 1 to 12 ms, in this order. */
static void the_worst_are_the_longest_and_come_first(void **state)
{
	static const uint64_t ms[12] = {3, 12, 1, 7, 9, 2, 11, 4, 8, 10, 5, 6};
	const struct tacho__lock_sum *l;
	const struct tacho__call_sum *c;
	struct tacho__summary *s;
	struct tacho_reader *r;
	struct trace m;

	(void)state;
	trace_begin(&m);
	trace_stream(&m, 1, 0);
	PUT(&m, 0, PARK, LOOP_3);
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t at = (100 * i + 10) * MS;

		PUT(&m, at, UNPARK, 1);
		PUT(&m, at, WAKE, 0, 7);
		PUT(&m, at + ms[i] * MS, POLL_BEGIN, KIND_A, 7);
		PUT(&m, at + 20 * MS, LOCK_WAIT, PLACE, 0x1000);
		PUT(&m, at + (20 + ms[i]) * MS, LOCK_WAITED, 1, 0x1000);
		PUT(&m, at + 50 * MS, CALL, NAME, 0, ms[i] * MS, 5, 0);
		PUT(&m, at + 60 * MS, POLL_END, 1);
		PUT(&m, at + 61 * MS, PARK, LOOP_3);
	}
	s = summary_of(&m, &r);
	l = tacho__table_next(&s->locks, NULL);
	c = tacho__table_next(&s->calls, NULL);
	assert_true(l->worst.count == 8 && l->worst_any.count == 8 && c->worst.count == 8 &&
		    s->process[0].wakes.worst.count == 8);
	for (uint32_t i = 0; i < 8; i++) {
		const struct tacho__wake *w = &s->process[0].wakes.worst.at[i];
		uint64_t ns = (12 - i) * MS;

		assert_int_equal(l->worst.at[i].end_ns - l->worst.at[i].begin_ns, ns);
		assert_int_equal(l->worst_any.at[i].end_ns - l->worst_any.at[i].begin_ns, ns);
		assert_int_equal(c->worst.at[i].end_ns - c->worst.at[i].begin_ns, ns);
		assert_int_equal(w->begin_ns - w->ns, ns);
	}
	summary_end(&m, r, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_holds_what_was_put_into_it),
		cmocka_unit_test(percentiles_are_those_of_the_sorted_values),
		cmocka_unit_test(a_histogram_takes_every_number),
		cmocka_unit_test(sums_are_those_of_the_events),
		cmocka_unit_test(all_subscribers_are_told_what_they_want),
		cmocka_unit_test(what_is_cut_is_never_long),
		cmocka_unit_test(short_polls_that_were_counted_are_in_the_sum),
		cmocka_unit_test(tasks_that_are_left_say_what_they_wait_for),
		cmocka_unit_test(tasks_last_seen_before_a_hole_do_not_wait),
		cmocka_unit_test(the_worst_are_the_longest_and_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
