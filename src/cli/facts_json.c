#include "cli/facts_json.h"

#include <inttypes.h>
#include <stdbool.h>

#include "answer/describe.h"
#include "answer/event.h"
#include "text/json.h"
#include "text/names.h"
#include "export/text.h"
#include "model/place.h"

struct facts {
	const struct tacho_reader *reader;
	FILE *out;
	struct json j;
};

/* -------------------------------------------------------------------- members */

static void put_thread(struct facts *f, const char *key, uint32_t process, uint32_t thread)
{
	describe_thread_json(&f->j, key, tacho_read_thread_by_number(f->reader, process, thread));
}

/* Of a thread that may have had no part in it. */
static void put_thread_if(struct facts *f, const char *key, bool given, uint32_t process,
			  uint32_t thread)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(f->reader, process, thread);

	json_put_u64_if(&f->j, key, given, t ? t->tid : 0);
}

static void begin(struct facts *f, const char *fact, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(f->reader, process);

	json_begin(&f->j, f->out, false);
	json_object(&f->j);
	json_put_string(&f->j, "fact", fact);
	json_put_u64(&f->j, "pid", p ? p->pid : 0);
}

static void end(struct facts *f)
{
	json_object_end(&f->j);
	json_end_line(&f->j);
}

static void put_id(struct facts *f, const char *key, uint32_t process, uint32_t id, uint64_t ns)
{
	json_key(&f->j, key);
	describe_id_json(&f->j, f->reader, process, id, ns);
}

/* What is said with every fact is said in short. */
static void put_name(struct facts *f, const char *key, uint32_t process, uint32_t id, uint64_t ns)
{
	char name[TACHO__CLEAN_MAX];

	tacho__name_of(name, sizeof(name), f->reader, process, id, ns);
	json_put_known(&f->j, key, name);
}

/* The thread, its loop, and the poll that was running there. */
static void put_at(struct facts *f, const struct tacho__at *at, uint64_t ns)
{
	const struct tacho_thread *t =
		tacho_read_thread_by_number(f->reader, at->process, at->thread);

	put_thread(f, "tid", at->process, at->thread);
	json_put_known(&f->j, "thread_name", t ? t->name : "");
	put_name(f, "loop", at->process, at->loop, ns);
	json_key(&f->j, "in");
	if (!at->poll_ns) {
		json_null(&f->j);
		return;
	}
	json_object(&f->j);
	put_name(f, "kind", at->process, at->kind, ns);
	json_put_not_zero(&f->j, "task", at->task);
	json_put_u64(&f->j, "from_ns", at->poll_ns);
	json_object_end(&f->j);
}

static void put_times(struct facts *f, uint64_t from, uint64_t to)
{
	json_put_u64(&f->j, "from_ns", from);
	json_put_u64(&f->j, "to_ns", to);
}

static void put_cut(struct facts *f, unsigned cut)
{
	json_put_array(&f->j, "cut");
	if (cut & TACHO__CUT_BEGIN)
		json_string(&f->j, "begin");
	if (cut & TACHO__CUT_END)
		json_string(&f->j, "end");
	if (cut & TACHO__CUT_HOLE)
		json_string(&f->j, "hole");
	json_array_end(&f->j);
}

static void put_spent(struct facts *f, const struct tacho__spent *s)
{
	json_put_object(&f->j, "spent");
	json_put_u64(&f->j, "lock_ns", s->lock_ns);
	json_put_u64(&f->j, "call_ns", s->call_ns);
	json_put_u64(&f->j, "sample_ns", s->sample_ns);
	json_put_u64(&f->j, "off_cpu_ns", s->off_cpu_ns);
	json_put_u64(&f->j, "preempted_ns", s->preempted_ns);
	json_put_u64(&f->j, "calls", s->calls);
	json_put_u64(&f->j, "locks", s->locks);
	json_put_u64(&f->j, "samples", s->samples);
	if (s->sched) {
		json_put_u64(&f->j, "runnable_ns", s->delay_ns);
		json_put_u64(&f->j, "involuntary_switches", s->involuntary);
		json_put_u64(&f->j, "minor_faults", s->minor_faults);
		json_put_u64(&f->j, "major_faults", s->major_faults);
	}
	json_object_end(&f->j);
}

/* ---------------------------------------------------------------------- facts */

static void take_poll(void *arg, const struct tacho__poll *p)
{
	struct facts *f = arg;

	begin(f, "poll", p->at.process);
	put_at(f, &p->at, p->end_ns);
	put_times(f, p->begin_ns, p->end_ns);
	put_id(f, "kind", p->at.process, p->kind, p->end_ns);
	json_put_not_zero(&f->j, "task", p->task);
	json_put_known(&f->j, "result", name_result(p->result));
	json_put_u64(&f->j, "depth", p->depth);
	json_put_u64(&f->j, "inner_ns", p->inner_ns);
	json_put_not_zero(&f->j, "wake_ns", p->wake_ns);
	json_put_u64(&f->j, "wakes", p->wakes);
	put_thread_if(f, "waker_tid", p->wake_ns, p->at.process, p->waker);
	json_put_not_zero(&f->j, "late_ns", p->late_ns);
	put_spent(f, &p->spent);
	put_cut(f, p->cut);
	end(f);
}

static void take_turn(void *arg, const struct tacho__turn *t)
{
	struct facts *f = arg;

	begin(f, "turn", t->process);
	put_thread(f, "tid", t->process, t->thread);
	put_name(f, "loop", t->process, t->loop, t->end_ns);
	put_times(f, t->begin_ns, t->end_ns);
	json_put_u64(&f->j, "ready", t->ready);
	json_put_not_zero(&f->j, "parked_ns", t->parked_ns);
	json_put_u64(&f->j, "polls", t->polls);
	json_put_u64(&f->j, "polls_ns", t->polls_ns);
	put_cut(f, t->cut);
	end(f);
}

static void take_wake(void *arg, const struct tacho__wake *w)
{
	struct facts *f = arg;

	begin(f, "wake", w->at.process);
	put_at(f, &w->at, w->ns);
	json_put_u64(&f->j, "ns", w->ns);
	json_put_u64(&f->j, "task", w->task);
	json_put_not_zero(&f->j, "poll_ns", w->begin_ns);
	put_thread_if(f, "poll_tid", w->begin_ns, w->at.process, w->thread);
	put_id(f, "poll_kind", w->at.process, w->kind, w->ns);
	json_put_u64(&f->j, "again", w->again);
	json_put_bool(&f->j, "self", w->self);
	json_put_bool(&f->j, "lost", w->lost);
	end(f);
}

static void take_lock(void *arg, const struct tacho__lock *l)
{
	struct facts *f = arg;

	begin(f, "lock", l->at.process);
	put_at(f, &l->at, l->end_ns);
	put_times(f, l->begin_ns, l->end_ns);
	json_put_u64(&f->j, "lock", l->lock);
	json_put_bool(&f->j, "signal", l->is_signal);
	json_put_bool(&f->j, "taken", l->got);
	put_id(f, "at", l->at.process, l->stack ? l->stack : l->place, l->end_ns);
	json_key(&f->j, "released");
	if (l->release_ns) {
		json_object(&f->j);
		put_at(f, &l->releaser, l->release_ns);
		json_put_u64(&f->j, "ns", l->release_ns);
		put_id(f, "at", l->releaser.process, l->release_place, l->release_ns);
		json_object_end(&f->j);
	} else {
		json_null(&f->j);
	}
	put_cut(f, l->cut);
	end(f);
}

static void take_call(void *arg, const struct tacho__call *c)
{
	struct facts *f = arg;
	const char *kind = name_descriptor(c->fd_kind);

	begin(f, "call", c->at.process);
	put_at(f, &c->at, c->end_ns);
	put_times(f, c->begin_ns, c->end_ns);
	put_id(f, "call", c->at.process, c->name, c->end_ns);
	json_put_u64_if(&f->j, "on", c->fd >= 0, (uint64_t)c->fd);
	json_put_known(&f->j, "fd_kind", kind ? kind : "");
	put_id(f, "path", c->at.process, c->path, c->end_ns);
	json_put_not_zero(&f->j, "errno", (uint64_t)c->error);
	put_id(f, "at", c->at.process, c->stack, c->end_ns);
	end(f);
}

static void take_work(void *arg, const struct tacho__work *w)
{
	struct facts *f = arg;

	begin(f, "work", w->process);
	json_put_u64(&f->j, "work", w->work);
	put_id(f, "kind", w->process, w->kind, w->begin_ns);
	put_thread(f, "submitter_tid", w->process, w->submitter);
	put_id(f, "submitter_kind", w->process, w->submit_kind, w->submit_ns);
	put_thread(f, "worker_tid", w->process, w->worker);
	json_put_not_zero(&f->j, "submit_ns", w->submit_ns);
	json_put_not_zero(&f->j, "begin_ns", w->begin_ns);
	json_put_not_zero(&f->j, "end_ns", w->end_ns);
	json_put_u64(&f->j, "waiting", w->waiting);
	end(f);
}

static void take_span(void *arg, const struct tacho__span *s)
{
	struct facts *f = arg;
	char trace[33] = "";

	begin(f, "span", s->at.process);
	put_at(f, &s->at, s->end_ns);
	put_times(f, s->begin_ns, s->end_ns);
	put_id(f, "span", s->at.process, s->name, s->end_ns);
	json_put_bool(&f->j, "async", s->async);
	json_put_not_zero(&f->j, "span_id", s->id);
	json_put_not_zero(&f->j, "parent", s->parent);
	if (s->trace_high || s->trace_low)
		snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, s->trace_high,
			 s->trace_low);
	json_put_known(&f->j, "trace_id", trace);
	put_cut(f, s->cut);
	end(f);
}

static void take_sample(void *arg, const struct tacho__sample *s)
{
	struct facts *f = arg;
	struct describe_stack stack = {s->frames, s->count, true, false};

	begin(f, "sample", s->at.process);
	put_at(f, &s->at, s->ns);
	json_put_u64(&f->j, "ns", s->ns);
	json_put_u64(&f->j, "cpu_ns", s->cpu_ns);
	json_put_bool(&f->j, "perf", s->perf);
	json_put_u64(&f->j, "kernel_frames", s->kernel);
	if (s->stack)
		put_id(f, "at", s->at.process, s->stack, s->ns);
	else
		describe_stack_json(&f->j, f->reader, s->at.process, &stack, s->ns);
	end(f);
}

static void take_off_cpu(void *arg, const struct tacho__switch *s)
{
	struct facts *f = arg;

	begin(f, "off-cpu", s->at.process);
	put_at(f, &s->at, s->end_ns);
	put_times(f, s->begin_ns, s->end_ns);
	json_put_bool(&f->j, "runnable", s->runnable);
	json_put_bool(&f->j, "parked", s->parked);
	put_cut(f, s->cut);
	end(f);
}

static void take_task(void *arg, const struct tacho__task *t)
{
	struct facts *f = arg;

	begin(f, "task", t->process);
	json_put_u64(&f->j, "task", t->task);
	json_put_not_zero(&f->j, "parent", t->parent);
	put_id(f, "kind", t->process, t->kind, t->last_ns);
	put_id(f, "spawned_at", t->process, t->place, t->spawn_ns);
	json_put_not_zero(&f->j, "spawn_ns", t->spawn_ns);
	json_put_not_zero(&f->j, "first_ns", t->first_ns);
	json_put_not_zero(&f->j, "last_ns", t->last_ns);
	json_put_not_zero(&f->j, "end_ns", t->end_ns);
	json_put_u64(&f->j, "polls", t->polls);
	json_put_u64(&f->j, "busy_ns", t->busy_ns);
	json_put_u64(&f->j, "wakes", t->wakes);
	json_put_u64(&f->j, "self_wakes", t->self_wakes);
	json_put_u64(&f->j, "waited_ns", t->waited_ns);
	json_put_not_zero(&f->j, "woken_ns", t->woken_ns);
	put_id(f, "waits_for", t->process, t->waits_for, t->last_ns);
	json_put_bool(&f->j, "running", t->running);
	end(f);
}

static void take_counter(void *arg, const struct tacho__counter *c)
{
	struct facts *f = arg;
	const struct tacho_definition *d = tacho_read_definition(f->reader, c->at.process, c->name);
	union {
		uint64_t u;
		int64_t i;
		double d;
	} value = {.u = c->value};

	begin(f, c->depth ? "queue-depth" : "counter", c->at.process);
	put_at(f, &c->at, c->ns);
	json_put_u64(&f->j, "ns", c->ns);
	put_id(f, c->depth ? "queue" : "counter", c->at.process, c->name, c->ns);
	json_key(&f->j, "value");
	if (c->depth || !d)
		json_u64(&f->j, value.u);
	else if (d->value_type == TACHO_VALUE_F64)
		json_f64(&f->j, value.d);
	else
		json_i64(&f->j, value.i);
	end(f);
}

static void take_ready(void *arg, const struct tacho__ready *r)
{
	struct facts *f = arg;

	begin(f, "ready", r->at.process);
	put_at(f, &r->at, r->ns);
	json_put_u64(&f->j, "ns", r->ns);
	json_put_u64(&f->j, r->what >> 63 ? "data" : "fd", r->what & ~(1ull << 63));
	json_put_u64(&f->j, "events", r->events);
	end(f);
}

static void take_hole(void *arg, const struct tacho__hole *h)
{
	struct facts *f = arg;

	begin(f, "hole", h->process);
	put_thread(f, "tid", h->process, h->thread);
	put_times(f, h->from_ns, h->to_ns);
	json_put_u64(&f->j, "missing", h->missing);
	json_put_u64(&f->j, "dropped", h->dropped);
	end(f);
}

/* As `tacho cat --json` has them. */
static void take_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct facts *f = arg;
	const char *type = name_type(e->type);

	begin(f, type ? type : "unknown", e->process);
	put_at(f, at, e->ns);
	json_put_u64(&f->j, "ns", e->ns);
	event_put_json(&f->j, f->reader, e);
	end(f);
}

int facts_put_json(FILE *out, struct tacho_reader *reader, struct tacho__tracker_limits *missed)
{
	struct facts f = {.reader = reader, .out = out};
	const struct tacho__facts facts = {
		.arg = &f,
		.poll = take_poll,
		.turn = take_turn,
		.wake = take_wake,
		.lock = take_lock,
		.call = take_call,
		.work = take_work,
		.span = take_span,
		.sample = take_sample,
		.off_cpu = take_off_cpu,
		.task = take_task,
		.counter = take_counter,
		.ready = take_ready,
		.hole = take_hole,
		.other = take_other,
	};

	return tacho__model_run(reader, &facts, NULL, NULL, missed);
}
