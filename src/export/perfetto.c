#include "export/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "model/place.h"

#define THREADS_MAX (1u << 15)
#define TRACKS_MAX (1u << 18)
#define LANES_MAX (1u << 16)
#define CLOCK_REALTIME_ID 1u
#define CLOCK_MONOTONIC_ID 3u

enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum {
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_STACK = 4,
	SAMPLE_MODE = 5,
	SAMPLE_TIMEBASE = 6,
	MODE_KERNEL = 1,
	MODE_USER = 2,
};

/* -------------------------------------------------------------------- events */

/* Begins the body of an event in p->event. Tables of names have room for it afterwards. */
static int begin_named(struct tacho__perfetto *p, const char *category, const char *name)
{
	if (tacho__pf_is_full(p)) {
		for (struct tacho__pf_thread *t = NULL; (t = tacho__table_next(&p->threads, t));)
			tacho__pf_flush(p, t);
		tacho__pf_clear(p);
	}
	p->event.size = 0;
	if (p->error)
		return 0;
	tacho__proto_u64(&p->event, PF_EVENT_CATEGORY, tacho__pf_text(p, PF_CATEGORIES, category));
	tacho__proto_u64(&p->event, PF_EVENT_NAME,
			 tacho__pf_text(p, PF_NAMES, name[0] ? name : "(not known)"));
	return 1;
}

static int begin_id(struct tacho__perfetto *p, const char *category, uint32_t process, uint32_t id,
		    uint64_t ns)
{
	char name[TACHO__CLEAN_MAX];

	tacho__name_of(name, sizeof(name), p->reader, process, id, ns);
	return begin_named(p, category, name);
}

static size_t annotate(struct tacho__perfetto *p, const char *name)
{
	size_t begin = tacho__proto_begin(&p->event, PF_EVENT_ANNOTATION);

	tacho__proto_u64(&p->event, PF_ANNOTATION_NAME,
			 tacho__pf_text(p, PF_ANNOTATION_NAMES, name));
	return begin;
}

static void annotate_u64(struct tacho__perfetto *p, const char *name, uint64_t value)
{
	size_t begin = annotate(p, name);

	tacho__proto_u64(&p->event, PF_ANNOTATION_U64, value);
	tacho__proto_end(&p->event, begin);
}

/* Absent is not zero. */
static void annotate_some(struct tacho__perfetto *p, const char *name, uint64_t value)
{
	if (value)
		annotate_u64(p, name, value);
}

static void annotate_text(struct tacho__perfetto *p, const char *name, const char *text)
{
	size_t begin;

	if (!text[0])
		return;
	begin = annotate(p, name);
	tacho__proto_text(&p->event, PF_ANNOTATION_TEXT, text);
	tacho__proto_end(&p->event, begin);
}

static void annotate_cut(struct tacho__perfetto *p, unsigned cut)
{
	if (cut & TACHO__CUT_BEGIN)
		annotate_text(p, "cut", "it began before what was recorded");
	if (cut & TACHO__CUT_END)
		annotate_text(p, "cut", "it went on where the records end");
	if (cut & TACHO__CUT_HOLE)
		annotate_text(p, "cut", "records in between are missing");
}

static void put_stack(struct tacho__perfetto *p, uint32_t process, uint32_t id, uint64_t ns)
{
	struct tacho__stack stack;
	uint64_t number;

	if (!tacho__stack_of_id(p->reader, process, id, ns, &stack))
		return;
	number = tacho__pf_stack(p, &stack);
	if (number)
		tacho__proto_u64(&p->event, PF_EVENT_CALLSTACK, number);
}

static void flow(struct tacho__perfetto *p, enum tacho__pf_event field, uint64_t a, uint64_t b,
		 uint64_t c)
{
	tacho__proto_fixed64(&p->event, field, tacho__hash_words(a, b, c) | 1);
}

static struct tacho__pf_thread *thread_of(struct tacho__perfetto *p, uint32_t process,
					  uint32_t thread)
{
	struct tacho__pf_thread *t = tacho__table_get(&p->threads, process, thread, &p->error);

	if (t && !t->track)
		t->track = tacho__pf_thread_track(p, process, thread);
	return t;
}

/* What p->event holds becomes a slice, or an instant, of a thread. */
static void keep(struct tacho__perfetto *p, uint32_t process, uint32_t thread, uint64_t begin_ns,
		 uint64_t end_ns, int instant)
{
	struct tacho__pf_thread *t = thread_of(p, process, thread);

	if (t && !p->error)
		tacho__pf_keep(p, t, begin_ns, end_ns, instant);
}

static void flush(struct tacho__perfetto *p, uint32_t process, uint32_t thread)
{
	struct tacho__pf_thread *t = thread_of(p, process, thread);

	if (t)
		tacho__pf_flush(p, t);
}

/* ----------------------------------------------------------- polls and turns */

static void annotate_spent(struct tacho__perfetto *p, const struct tacho__spent *s)
{
	annotate_some(p, "lock_ns", s->lock_ns);
	annotate_some(p, "call_ns", s->call_ns);
	annotate_some(p, "sampled_cpu_ns", s->sample_ns);
	annotate_some(p, "off_cpu_ns", s->off_cpu_ns);
	if (s->sched) {
		annotate_u64(p, "runnable_ns", s->delay_ns);
		annotate_u64(p, "involuntary_switches", s->involuntary);
	}
}

/* A turn of a loop whose callbacks are not seen stands on its loop's track. */
static void take_poll(void *arg, const struct tacho__poll *k)
{
	static const char *const results[] = {
		[TACHO_UNKNOWN] = "", [TACHO_PENDING] = "pending", [TACHO_DONE] = "done"};
	struct tacho__perfetto *p = arg;
	const struct tacho__at *at = &k->at;
	int turn = !k->kind && !k->task && k->turn_ns == k->begin_ns;

	p->last_ns = k->end_ns;
	if (!(turn ? begin_named(p, "turn", "turn")
		   : begin_id(p, "poll", at->process, k->kind, k->end_ns)))
		return;
	if (k->task)
		annotate_u64(p, "task", k->task);
	annotate_text(p, "result", k->result <= TACHO_DONE ? results[k->result] : "");
	if (k->wake_ns) {
		annotate_u64(p, "wake_to_run_ns", k->begin_ns - k->wake_ns);
		flow(p, PF_EVENT_FLOW_ENDS, at->process, k->task, k->wake_ns);
	}
	annotate_some(p, "late_ns", k->late_ns);
	annotate_spent(p, &k->spent);
	annotate_cut(p, k->cut);
	if (turn && at->loop) {
		tacho__pf_slice(p, tacho__pf_loop_track(p, at->process, at->thread, at->loop),
				k->begin_ns, k->end_ns);
		flush(p, at->process, at->thread);
		return;
	}
	keep(p, at->process, at->thread, k->begin_ns, k->end_ns, 0);
	if (!k->depth)
		flush(p, at->process, at->thread);
}

static void take_turn(void *arg, const struct tacho__turn *t)
{
	struct tacho__perfetto *p = arg;
	const struct tacho_definition *d = tacho_read_definition(p->reader, t->process, t->loop);

	p->last_ns = t->end_ns;
	/* It comes again as a poll, with what it spent its time on. */
	if (d && d->level == TACHO_LEVEL_WAITS && !t->polls)
		return;
	if (t->loop && begin_named(p, "turn", "turn")) {
		annotate_u64(p, "ready", t->ready);
		annotate_some(p, "parked_before_ns", t->parked_ns);
		annotate_u64(p, "polls", t->polls);
		annotate_cut(p, t->cut);
		tacho__pf_slice(p, tacho__pf_loop_track(p, t->process, t->thread, t->loop),
				t->begin_ns, t->end_ns);
	}
	flush(p, t->process, t->thread);
}

static void take_wake(void *arg, const struct tacho__wake *w)
{
	struct tacho__perfetto *p = arg;

	if (!begin_named(p, "wake", "wake"))
		return;
	annotate_u64(p, "task", w->task);
	annotate_some(p, "again", w->again);
	if (w->begin_ns)
		flow(p, PF_EVENT_FLOW, w->at.process, w->task, w->ns);
	keep(p, w->at.process, w->at.thread, w->ns, w->ns, 1);
}

/* --------------------------------------------------------------------- waits */

static void take_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__perfetto *p = arg;
	uint64_t waiter = (uint64_t)l->at.thread << 32 | l->at.process;
	char place[TACHO__CLEAN_MAX];

	if (!begin_named(p, "lock", l->is_signal ? "condition wait" : "lock wait"))
		return;
	annotate_u64(p, "lock", l->lock);
	annotate_text(p, "got", l->got ? "yes" : "no");
	tacho__name_of(place, sizeof(place), p->reader, l->at.process, l->stack ? 0 : l->place,
		       l->end_ns);
	annotate_text(p, "at", place);
	annotate_cut(p, l->cut);
	put_stack(p, l->at.process, l->stack ? l->stack : l->place, l->end_ns);
	keep(p, l->at.process, l->at.thread, l->begin_ns, l->end_ns, 0);
	if (!l->release_ns)
		return;
	if (!begin_named(p, "lock", l->is_signal ? "signalled" : "lock released"))
		return;
	annotate_u64(p, "lock", l->lock);
	put_stack(p, l->releaser.process, l->release_place, l->release_ns);
	flow(p, PF_EVENT_FLOW, waiter, l->lock, l->end_ns);
	keep(p, l->releaser.process, l->releaser.thread, l->release_ns, l->release_ns, 1);
	if (!begin_named(p, "lock", l->is_signal ? "got the signal" : "lock taken"))
		return;
	flow(p, PF_EVENT_FLOW_ENDS, waiter, l->lock, l->end_ns);
	keep(p, l->at.process, l->at.thread, l->end_ns, l->end_ns, 1);
}

static void take_call(void *arg, const struct tacho__call *c)
{
	struct tacho__perfetto *p = arg;
	char path[TACHO__CLEAN_MAX];

	if (!begin_id(p, "call", c->at.process, c->name, c->end_ns))
		return;
	if (c->fd >= 0)
		annotate_u64(p, "fd", (uint64_t)c->fd);
	tacho__name_of(path, sizeof(path), p->reader, c->at.process, c->path, c->end_ns);
	annotate_text(p, "path", path);
	annotate_some(p, "errno", (uint64_t)c->error);
	put_stack(p, c->at.process, c->stack, c->end_ns);
	keep(p, c->at.process, c->at.thread, c->begin_ns, c->end_ns, 0);
}

static void take_work(void *arg, const struct tacho__work *w)
{
	struct tacho__perfetto *p = arg;
	int both = w->submit_ns && w->begin_ns;

	if (w->submit_ns && begin_named(p, "work", "submit work")) {
		annotate_u64(p, "work", w->work);
		annotate_u64(p, "waiting", w->waiting);
		if (both)
			flow(p, PF_EVENT_FLOW, w->process, w->work, w->submit_ns);
		keep(p, w->process, w->submitter, w->submit_ns, w->submit_ns, 1);
	}
	if (!w->begin_ns || !begin_id(p, "work", w->process, w->kind, w->begin_ns))
		return;
	annotate_u64(p, "work", w->work);
	if (both) {
		annotate_u64(p, "waited_ns", w->begin_ns - w->submit_ns);
		flow(p, PF_EVENT_FLOW_ENDS, w->process, w->work, w->submit_ns);
	}
	annotate_cut(p, w->end_ns ? 0 : TACHO__CUT_END);
	keep(p, w->process, w->worker, w->begin_ns, w->end_ns ? w->end_ns : p->last_ns, 0);
}

static void take_off_cpu(void *arg, const struct tacho__switch *s)
{
	struct tacho__perfetto *p = arg;

	if (!begin_named(p, "off-cpu",
			 s->runnable ? "preempted"
			 : s->parked ? "parked"
				     : "waiting"))
		return;
	annotate_cut(p, s->cut);
	tacho__pf_slice(p, tacho__pf_side_track(p, PF_TRACK_OFF_CPU, s->at.process, s->at.thread),
			s->begin_ns, s->end_ns);
}

static void take_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__perfetto *p = arg;

	if (!begin_named(p, "missing", "records missing"))
		return;
	annotate_u64(p, "overwritten", h->missing);
	annotate_u64(p, "dropped", h->dropped);
	tacho__pf_slice(p, tacho__pf_side_track(p, PF_TRACK_HOLES, h->process, h->thread),
			h->from_ns ? h->from_ns : h->to_ns, h->to_ns);
}

/* ------------------------------------------------------ spans, counters, rest */

static void take_span(void *arg, const struct tacho__span *s)
{
	struct tacho__perfetto *p = arg;
	char trace[33];

	if (!begin_id(p, "span", s->at.process, s->name, s->end_ns))
		return;
	if (s->trace_high || s->trace_low) {
		snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, s->trace_high,
			 s->trace_low);
		annotate_text(p, "trace_id", trace);
	}
	annotate_cut(p, s->cut);
	if (!s->async) {
		keep(p, s->at.process, s->at.thread, s->begin_ns, s->end_ns, 0);
		return;
	}
	annotate_u64(p, "span_id", s->id);
	annotate_some(p, "parent", s->parent);
	tacho__pf_slice(p, tacho__pf_lane(p, s), s->begin_ns, s->end_ns);
}

static void take_counter(void *arg, const struct tacho__counter *c)
{
	struct tacho__perfetto *p = arg;
	const struct tacho_definition *d = tacho_read_definition(p->reader, c->at.process, c->name);
	uint64_t track = tacho__pf_counter_track(p, c);
	double value;

	p->event.size = 0;
	tacho__proto_u64(&p->event, PF_EVENT_TYPE, PF_COUNTER);
	tacho__proto_u64(&p->event, PF_EVENT_TRACK, track);
	if (!c->depth && d && d->value_type == TACHO_VALUE_F64) {
		memcpy(&value, &c->value, sizeof(value));
		tacho__proto_double(&p->event, PF_EVENT_DOUBLE, value);
	} else {
		tacho__proto_u64(&p->event, PF_EVENT_COUNTER, c->value);
	}
	tacho__pf_put(p, PF_TRACK_EVENT, c->ns, &p->event);
	p->event.size = 0;
}

static void take_sample(void *arg, const struct tacho__sample *s)
{
	struct tacho__perfetto *p = arg;
	const struct tacho_process *k = tacho_read_process(p->reader, s->at.process);
	struct tacho__stack stack;
	uint64_t number = 0;

	if (!tacho__sample_counts(&p->samplers, s, &p->error) ||
	    !begin_named(p, "sample", "sample"))
		return;
	tacho__pf_thread_track(p, s->at.process, s->at.thread);
	p->exported->samples++;
	p->cpu_ns += s->cpu_ns;
	if (tacho__stack_of_sample(p->reader, s, &stack))
		number = tacho__pf_stack(p, &stack);
	p->event.size = 0;
	tacho__proto_u64(&p->event, SAMPLE_PID, k ? k->pid : 0);
	tacho__proto_u64(&p->event, SAMPLE_TID, tacho__pf_tid(p, s->at.process, s->at.thread));
	if (number)
		tacho__proto_u64(&p->event, SAMPLE_STACK, number);
	tacho__proto_u64(&p->event, SAMPLE_MODE, s->kernel ? MODE_KERNEL : MODE_USER);
	tacho__proto_u64(&p->event, SAMPLE_TIMEBASE, p->cpu_ns);
	tacho__pf_put(p, PF_PERF_SAMPLE, s->ns, &p->event);
	p->event.size = 0;
}

static void annotate_field(struct tacho__perfetto *p, const struct tacho_event *e, uint32_t index,
			   const char *name)
{
	struct tacho_field_value v = {.size = sizeof(v)};
	char text[TACHO__CLEAN_MAX];
	size_t begin;

	if (tacho_read_field(p->reader, e, index, &v) != 1)
		return;
	if (v.type == TACHO_FIELD_STRING) {
		tacho__clean_n(text, sizeof(text), v.text, v.text_size);
		annotate_text(p, name, text);
		return;
	}
	begin = annotate(p, name);
	if (v.type == TACHO_FIELD_F64)
		tacho__proto_double(&p->event, PF_ANNOTATION_DOUBLE, v.number.f64);
	else
		tacho__proto_u64(&p->event,
				 v.type == TACHO_FIELD_BOOL  ? PF_ANNOTATION_BOOL
				 : v.type == TACHO_FIELD_I64 ? PF_ANNOTATION_I64
							     : PF_ANNOTATION_U64,
				 v.number.u64);
	tacho__proto_end(&p->event, begin);
}

static void take_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__perfetto *p = arg;
	const struct tacho_definition *d;
	char text[TACHO__CLEAN_MAX];
	const char *log;
	size_t size;
	int cut;

	switch (e->type) {
	case TACHO_EV_LOG:
		if (tacho_read_text(e, &log, &size, &cut) < 0 || !begin_named(p, "log", "log"))
			return;
		tacho__clean_n(text, sizeof(text), log, size);
		annotate_text(p, "text", text);
		annotate_u64(p, "level", e->arg);
		break;
	case TACHO_EV_EVENT:
		d = tacho_read_definition(p->reader, e->process, e->arg);
		if (!begin_id(p, "event", e->process, e->arg, e->ns))
			return;
		for (uint32_t i = 0; d && d->def_class == TACHO_DEF_SCHEMA && i < d->count; i++)
			annotate_field(p, e, i, d->fields[i].name);
		break;
	case TACHO_EV_TRIGGER:
		if (!begin_named(p, "trigger", "trigger"))
			return;
		tacho__name_of(text, sizeof(text), p->reader, e->process, e->arg, e->ns);
		annotate_text(p, "reason", text);
		break;
	default:
		return;
	}
	keep(p, at->process, at->thread, e->ns, e->ns, 1);
}

/* ----------------------------------------------------------------------- all */

static void put_clocks(struct tacho__perfetto *p)
{
	struct tacho__proto body = {0};
	uint64_t first = 0, last = 0, times[2];
	static const uint32_t ids[2] = {CLOCK_MONOTONIC_ID, CLOCK_REALTIME_ID};

	if (tacho_read_window(p->reader, &first, &last) < 0)
		return;
	times[0] = p->last_ns = first;
	times[1] = tacho_read_real_ns(p->reader, 0, first);
	for (unsigned i = 0; i < 2 && times[i]; i++) {
		size_t begin = tacho__proto_begin(&body, SNAPSHOT_CLOCK);

		tacho__proto_u64(&body, CLOCK_ID, ids[i]);
		tacho__proto_u64(&body, CLOCK_TIME, times[i]);
		tacho__proto_end(&body, begin);
	}
	tacho__proto_u64(&body, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
	tacho__pf_put(p, PF_CLOCK_SNAPSHOT, first, &body);
	tacho__proto_free(&body);
}

static int export(struct tacho__perfetto *p)
{
	struct tacho__facts facts = {
		.arg = p,
		.error = &p->error,
		.poll = take_poll,
		.turn = take_turn,
		.wake = take_wake,
		.lock = take_lock,
		.call = take_call,
		.work = take_work,
		.span = take_span,
		.sample = take_sample,
		.off_cpu = take_off_cpu,
		.counter = take_counter,
		.hole = take_hole,
		.other = take_other,
	};

	tacho__pf_clear(p);
	put_clocks(p);
	p->error = tacho__model_run(p->reader, &facts, p->options->stop, p->options->stop_arg,
				    &p->exported->missed);
	for (struct tacho__pf_thread *t = NULL; (t = tacho__table_next(&p->threads, t));) {
		if (!p->error)
			tacho__pf_flush(p, t);
		free(t->slices);
		tacho__proto_free(&t->bodies);
	}
	return p->error;
}

int tacho__export_perfetto(struct tacho_reader *reader, const struct tacho__export_options *options,
			   struct tacho__exported *exported)
{
	struct tacho__perfetto p = {.reader = reader, .options = options, .exported = exported};
	int error;

	memset(exported, 0, sizeof(*exported));
	tacho__codes_init(&p.codes, reader);
	tacho__samplers_init(&p.samplers);
	tacho__table_init(&p.threads, sizeof(struct tacho__pf_thread), THREADS_MAX);
	tacho__table_init(&p.tracks, sizeof(struct tacho__entry), TRACKS_MAX);
	tacho__table_init(&p.lanes, sizeof(struct tacho__pf_lane_entry), LANES_MAX);
	error = export(&p);
	tacho__codes_free(&p.codes);
	tacho__samplers_free(&p.samplers);
	tacho__table_free(&p.texts);
	tacho__table_free(&p.stacks);
	tacho__table_free(&p.mappings);
	tacho__table_free(&p.threads);
	tacho__table_free(&p.tracks);
	tacho__table_free(&p.lanes);
	tacho__proto_free(&p.packet);
	tacho__proto_free(&p.interned);
	tacho__proto_free(&p.event);
	tacho__proto_free(&p.built);
	return error;
}
