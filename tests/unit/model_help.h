/*
 * Traces for the tests of the model, made record by record, and the facts that come of them. Include
 * after cmocka.h.
 */
#ifndef TESTS_MODEL_HELP_H
#define TESTS_MODEL_HELP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "events_builder.h"
#include "model/model.h"
#include "read_help.h"

/* Definitions of every such trace. */
enum {
	KIND_A = 1,
	KIND_B = 2,
	LOOP_1 = 3, /* of level 1 */
	LOOP_2 = 4,
	LOOP_3 = 5,
	SPAN = 6,
	COUNTER = 7,
	GAUGE = 8, /* of floats */
	NAME = 9,
	PLACE = 10,
	IDS = 11,
};

#define MS 1000000ull
#define T0 (1000 * MS) /* where all of them begin */
#define STREAMS 80u

struct trace {
	struct tb t;
	struct eb e;
	int open; /* there is a stretch */
	uint32_t thread;
	uint16_t stream;
	/* By thread and stream: what the next stretch says of those before. */
	uint32_t sequence[STREAMS][16];
	uint64_t prior[STREAMS][16];
};

static inline void trace_definitions(struct trace *m)
{
	static const uint8_t classes[IDS] = {
		0,
		TACHO_DEF_KIND,
		TACHO_DEF_KIND,
		TACHO_DEF_LOOP,
		TACHO_DEF_LOOP,
		TACHO_DEF_LOOP,
		TACHO_DEF_SPAN,
		TACHO_DEF_COUNTER,
		TACHO_DEF_GAUGE,
		TACHO_DEF_TEXT,
		TACHO_DEF_PLACE,
	};
	static const char *const names[IDS] = {"",	  "kind a", "kind b", "loop 1",
					       "loop 2",  "loop 3", "span",   "count",
					       "a gauge", "read",   "here"};
	static const uint8_t details[IDS] = {0, 0, 0, 1, 2, 3, 0, 1, 2, 0, 0};
	uint8_t payload[256];
	struct tb p = {0};

	for (uint32_t id = 1; id < IDS; id++)
		tb_definition(&p, id, classes[id], payload,
			      bb_name(payload, names[id], "", 0, 0, details[id], ""));
	tb_plain(&m->t, TACHO_BLOCK_DEFINITIONS, p.data, p.size);
	free(p.data);
}

static inline void trace_begin(struct trace *m)
{
	memset(m, 0, sizeof(*m));
	tb_init(&m->t);
	tb_meta(&m->t, 1, 2);
	trace_definitions(m);
}

/* What the table of threads says: of threads that are not in it, nothing is known. */
static inline void trace_threads(struct trace *m, const struct tacho_box_thread *threads,
				 uint32_t count)
{
	tb_array(&m->t, TACHO_BLOCK_THREADS, threads, sizeof(*threads), count);
}

static inline void trace_close(struct trace *m)
{
	if (!m->open)
		return;
	m->prior[m->thread][m->stream] += m->e.r.head.count;
	m->sequence[m->thread][m->stream]++;
	eb_done(&m->e, &m->t);
	m->open = 0;
}

/* What follows is recorded by this stream. */
static inline void trace_stream(struct trace *m, uint32_t thread, uint16_t stream)
{
	trace_close(m);
	assert(thread < STREAMS && stream < 16);
	m->thread = thread;
	m->stream = stream;
	eb_init(&m->e, thread, m->sequence[thread][stream], m->prior[thread][stream]);
	m->e.r.head.stream = stream;
	m->open = 1;
}

/* The same after `missing` records that are not there. */
static inline void trace_hole(struct trace *m, uint32_t thread, uint16_t stream, uint64_t missing)
{
	trace_close(m);
	m->prior[thread][stream] += missing;
	m->sequence[thread][stream]++;
	trace_stream(m, thread, stream);
}

/* The stretch begins with this open. */
static inline void trace_open(struct trace *m, uint32_t what, uint32_t id, uint64_t task,
			      uint64_t since)
{
	struct tacho_trace_events *h = &m->e.r.head;

	if (h->open_listed < TACHO_OPEN_MAX)
		m->e.r.open[h->open_listed++] = (struct tacho_open){id, what, task, since};
	h->open_count++;
}

static inline void trace_put(struct trace *m, uint64_t at, unsigned type, uint32_t arg,
			     const uint64_t *words, uint32_t n)
{
	uint64_t copy[TACHO_RECORD_MAX_WORDS];

	if (n)
		memcpy(copy, words, n * sizeof(copy[0]));
	if (TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE)
		copy[0] = copy[0] << 16 | n;
	eb_record(&m->e, T0 + at, type, arg, copy, n);
}

/* A record `at` ns after the beginning. Of variable types the first word is `data`. */
#define PUT(m, at, type, arg, ...)                                                   \
	do {                                                                         \
		const uint64_t put_words[] = {0, ##__VA_ARGS__};                     \
		trace_put(m, at, TACHO_REC_##type, arg, put_words + 1,               \
			  (uint32_t)(sizeof(put_words) / sizeof(put_words[0])) - 1); \
	} while (0)

/* ------------------------------------------------------------------- facts */

#define FACTS 64u

struct facts {
	struct tacho__poll polls[FACTS];
	struct tacho__turn turns[FACTS];
	struct tacho__wake wakes[FACTS];
	struct tacho__lock locks[FACTS];
	struct tacho__call calls[FACTS];
	struct tacho__work works[FACTS];
	struct tacho__span spans[FACTS];
	struct tacho__sample samples[FACTS];
	struct tacho__switch offs[FACTS];
	struct tacho__task tasks[FACTS];
	struct tacho__counter counters[FACTS];
	struct tacho__ready readies[FACTS];
	struct tacho__hole holes[FACTS];
	uint32_t poll_count, turn_count, wake_count, lock_count, call_count, work_count, span_count,
		sample_count, off_count, task_count, counter_count, ready_count, hole_count,
		other_count;
	struct tacho__tracker_limits missed;
};

#define TAKE(name, type, list, count)                               \
	static inline void name(void *arg, const struct type *fact) \
	{                                                           \
		struct facts *f = arg;                              \
                                                                    \
		assert_true(f->count < FACTS);                      \
		f->list[f->count++] = *fact;                        \
	}
TAKE(take_poll, tacho__poll, polls, poll_count)
TAKE(take_turn, tacho__turn, turns, turn_count)
TAKE(take_wake, tacho__wake, wakes, wake_count)
TAKE(take_lock, tacho__lock, locks, lock_count)
TAKE(take_call, tacho__call, calls, call_count)
TAKE(take_work, tacho__work, works, work_count)
TAKE(take_span, tacho__span, spans, span_count)
TAKE(take_sample, tacho__sample, samples, sample_count)
TAKE(take_off, tacho__switch, offs, off_count)
TAKE(take_task, tacho__task, tasks, task_count)
TAKE(take_counter, tacho__counter, counters, counter_count)
TAKE(take_ready, tacho__ready, readies, ready_count)
TAKE(take_hole, tacho__hole, holes, hole_count)
#undef TAKE

static inline void take_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct facts *f = arg;

	f->other_count += at->thread == e->thread;
}

/* Ends the trace and reads it; the reader's bytes go with trace_free. */
static inline struct tacho_reader *trace_reader(struct trace *m)
{
	trace_close(m);
	tb_end(&m->t, 1);
	return open_bytes(m->t.data, m->t.size, NULL);
}

static inline struct facts *trace_facts(struct trace *m)
{
	struct facts *f = calloc(1, sizeof(*f));
	const struct tacho__facts want = {
		.arg = f,
		.poll = take_poll,
		.turn = take_turn,
		.wake = take_wake,
		.lock = take_lock,
		.call = take_call,
		.work = take_work,
		.span = take_span,
		.sample = take_sample,
		.off_cpu = take_off,
		.task = take_task,
		.counter = take_counter,
		.ready = take_ready,
		.hole = take_hole,
		.other = take_other,
	};
	struct tacho_reader *r = trace_reader(m);

	assert_non_null(f);
	assert_int_equal(tacho__model_run(r, &want, NULL, NULL, &f->missed), 0);
	assert_int_equal(tacho_read_problem_count(r), 0);
	tacho_read_close(r);
	tb_free(&m->t);
	return f;
}

/* The poll from `begin` to `end` (ns after the beginning), which must be there. */
static inline const struct tacho__poll *poll_at(const struct facts *f, uint64_t begin, uint64_t end)
{
	for (uint32_t i = 0; i < f->poll_count; i++)
		if (f->polls[i].begin_ns == T0 + begin && f->polls[i].end_ns == T0 + end)
			return &f->polls[i];
	for (uint32_t i = 0; i < f->poll_count; i++)
		print_message("poll %d..%d kind %u\n", (int)(f->polls[i].begin_ns - T0),
			      (int)(f->polls[i].end_ns - T0), f->polls[i].kind);
	fail_msg("no poll from %d to %d", (int)begin, (int)end);
	return NULL;
}

static inline const struct tacho__task *task_of(const struct facts *f, uint64_t task)
{
	const struct tacho__task *found = NULL;

	for (uint32_t i = 0; i < f->task_count; i++)
		if (f->tasks[i].task == task) {
			assert_null(found);
			found = &f->tasks[i];
		}
	assert_non_null(found);
	return found;
}

#endif
