/* All about one thing: what the model knows of it, in words, its stack, and what was recorded of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "answer/describe.h"
#include "answer/event.h"
#include "engine.h"
#include "explain/explain.h"
#include "model/place.h"
#include "text/names.h"
#include "text/text.h"
#include "known.h"
#include "things.h"

#define RECORDS 100u	     /* that are shown */
#define RECORDS_READ 200000u /* that are looked through for them */
#define NAME 512u

/* ---------------------------------------------------------------------- look for it */

/* The fact is that of the thing: a track may have cut its begin, never its end. */
static int is_it(const struct known *t, enum tacho__track_type type, const struct tacho__at *at,
		 uint64_t begin_ns, uint64_t end_ns)
{
	return t->type == type && at->process == t->process &&
	       (!t->thread || at->thread == t->thread) && begin_ns <= t->from_ns &&
	       end_ns == t->to_ns;
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_POLLS, &p->at, p->begin_ns, p->end_ns) && p->kind == t->what) {
		t->fact.poll = *p;
		t->found = 1;
	}
}

static void on_lock(void *arg, const struct tacho__lock *l)
{
	struct known *t = arg;

	if (is_it(t, l->is_signal ? TACHO__TRACK_SIGNALS : TACHO__TRACK_LOCKS, &l->at, l->begin_ns,
		  l->end_ns)) {
		t->fact.lock = *l;
		t->found = 1;
	}
}

static void on_call(void *arg, const struct tacho__call *c)
{
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_CALLS, &c->at, c->begin_ns, c->end_ns) && c->name == t->what) {
		t->fact.call = *c;
		t->found = 1;
	}
}

static void on_work(void *arg, const struct tacho__work *w)
{
	struct tacho__at at = {.process = w->process, .thread = w->worker};
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_WORK, &at, w->begin_ns, w->end_ns)) {
		t->fact.work = *w;
		t->found = 1;
	}
}

static void on_span(void *arg, const struct tacho__span *s)
{
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_SPANS, &s->at, s->begin_ns, s->end_ns) && s->name == t->what) {
		t->fact.span = *s;
		t->found = 1;
	}
}

static void on_sample(void *arg, const struct tacho__sample *s)
{
	struct known *t = arg;

	if (!is_it(t, TACHO__TRACK_SAMPLES, &s->at, s->ns, s->ns))
		return;
	t->fact.sample = *s;
	t->found = 1;
	/* Its frames are gone when this returns. */
	t->fact.sample.count = s->count < KNOWN_FRAMES ? s->count : KNOWN_FRAMES;
	if (s->frames)
		memcpy(t->frames, s->frames, t->fact.sample.count * sizeof(*t->frames));
	t->fact.sample.frames = t->frames;
}

static void on_off_cpu(void *arg, const struct tacho__switch *s)
{
	struct known *t = arg;

	if (is_it(t, s->runnable ? TACHO__TRACK_RUNNABLE : TACHO__TRACK_OFF, &s->at, s->begin_ns,
		  s->end_ns)) {
		t->fact.off = *s;
		t->found = 1;
	}
}

static void on_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__at at = {.process = h->process, .thread = h->thread};
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_HOLES, &at, h->from_ns, h->to_ns)) {
		t->fact.hole = *h;
		t->found = 1;
	}
}

/* Of a wait, and of the part of it that was late, the turn that follows tells. */
static void on_turn(void *arg, const struct tacho__turn *u)
{
	struct tacho__at at = {.process = u->process, .thread = u->thread};
	struct known *t = arg;

	if (is_it(t, TACHO__TRACK_PARKS, &at, t->from_ns, u->begin_ns) ||
	    is_it(t, TACHO__TRACK_LATE, &at, t->from_ns, u->begin_ns)) {
		t->fact.turn = *u;
		t->found = 1;
	}
}

static void on_task(void *arg, const struct tacho__task *k)
{
	struct known *t = arg;
	struct tacho__at at = {.process = k->process};
	uint64_t begin = k->spawn_ns ? k->spawn_ns : k->first_ns;

	if (is_it(t, TACHO__TRACK_TASKS, &at, begin, k->end_ns ? k->end_ns : t->to_ns) &&
	    begin == t->from_ns && k->kind == t->what) {
		t->fact.task = *k;
		t->task = k->task;
		t->found = 1;
	}
}

int known_at(struct known *t, uint32_t lane, uint32_t row, uint32_t index)
{
	const struct tacho__lane *l =
		lane < page.view.lanes.used ? tacho__table_at(&page.view.lanes, lane) : NULL;
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	struct tacho__thing thing;

	memset(t, 0, sizeof(*t));
	if (!l || !r || index >= r->track.count)
		return 0;
	thing = tacho__track_at(&r->track, index);
	t->type = r->type;
	t->process = l->process;
	t->thread = l->thread;
	t->what = thing.what;
	t->name = r->name;
	if (t->type == TACHO__TRACK_HELD)
		t->holder = thing.task;
	else
		t->task = tacho__view_task(&page.view, thing.task);
	t->from_ns = thing.begin_ns;
	t->to_ns = thing.begin_ns + thing.ns;
	return 1;
}

/* From one thing to the next, on the average. */
static double each_ns(void)
{
	return (since(page.last_ns) + 1) / (double)(page.view.things + 1);
}

uint64_t known_before_ns(uint64_t most_ns)
{
	double enough = KNOWN_READ * each_ns();

	return (double)most_ns > enough ? (uint64_t)enough : most_ns;
}

int known_is_short(const struct known *t)
{
	return (double)(t->to_ns - t->from_ns) < KNOWN_LONG * each_ns();
}

int known_look(struct known *t)
{
	const struct tacho__facts facts = {
		.arg = t,
		.poll = on_poll,
		.lock = on_lock,
		.call = on_call,
		.work = on_work,
		.span = on_span,
		.sample = on_sample,
		.off_cpu = on_off_cpu,
		.hole = on_hole,
		.task = on_task,
		.turn = on_turn,
	};
	uint64_t before = known_before_ns(KNOWN_BEFORE_NS);
	struct tacho_reader *reader;

	if (!known_is_short(t))
		return 0;
	reader = page_again(t->from_ns > before ? t->from_ns - before : 0,
			    t->to_ns + TACHO__BLAME_AFTER_NS);

	return reader ? tacho__model_run(reader, &facts, NULL, NULL, NULL) : -ENOMEM;
}

/* ------------------------------------------------------------------------- in words */

__attribute__((format(printf, 3, 4))) static void field(struct json *j, const char *name,
							const char *format, ...)
{
	char text[NAME];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	json_object(j);
	json_put_string(j, "name", name);
	json_put_string(j, "text", text);
	json_object_end(j);
}

/* One that leads to another thread and time. */
static void field_at(struct json *j, const char *name, const char *text, uint32_t thread,
		     uint64_t ns)
{
	json_object(j);
	json_put_string(j, "name", name);
	json_put_string(j, "text", text);
	json_put_u64(j, "thread", thread);
	json_put_f64(j, "at", since(ns));
	json_object_end(j);
}

static void field_id(struct json *j, const struct known *t, const char *name, uint32_t id)
{
	char text[NAME];

	tacho__name_of(text, sizeof(text), page.reader, t->process, id, t->to_ns);
	if (text[0])
		field(j, name, "%s", text);
}

static void field_ns(struct json *j, const char *name, uint64_t ns)
{
	char text[TACHO__TEXT];

	if (ns)
		field(j, name, "%s", tacho__ns_text(text, (double)ns));
}

static void field_cut(struct json *j, uint8_t cut)
{
	if (cut & TACHO__CUT_BEGIN)
		field(j, "cut", "it began before what was recorded");
	if (cut & TACHO__CUT_END)
		field(j, "cut", "it had not ended where the records end");
	if (cut & TACHO__CUT_HOLE)
		field(j, "cut", "records in the middle of it are missing");
}

static const char *thread_text(const struct known *t, uint32_t thread, char out[NAME])
{
	const struct tacho_thread *d = tacho_read_thread_by_number(page.reader, t->process, thread);

	snprintf(out, NAME, "%.200s (%" PRIu32 ")", d && d->name[0] ? d->name : "thread",
		 d ? d->tid : thread);
	return out;
}

static void put_around(struct json *j, const struct known *t, const struct tacho__at *at)
{
	char task[TEXT_SMALL];

	field_id(j, t, "loop", at->loop);
	if (at->poll_ns) {
		char name[NAME];

		tacho__name_of(name, sizeof(name), page.reader, t->process, at->kind, t->to_ns);
		field_at(j, "inside of", name[0] ? name : "a turn of the loop", at->thread,
			 at->poll_ns);
	}
	if (at->task && t->type != TACHO__TRACK_POLLS)
		field(j, "task", "%s", text_id(task, at->task));
}

static void put_poll(struct json *j, const struct known *t, const struct tacho__poll *p)
{
	char text[2][TACHO__TEXT], name[NAME], line[2 * NAME];

	put_around(j, t, &p->at);
	if (p->task)
		field(j, "task", "%s%s", text_id(text[0], p->task),
		      p->first ? ", its first poll" : "");
	if (p->wake_ns && p->wake_ns <= p->begin_ns) {
		snprintf(line, sizeof(line), "%s before, by %s",
			 tacho__ns_text(text[0], (double)(p->begin_ns - p->wake_ns)),
			 thread_text(t, p->waker, name));
		field_at(j, "woken", line, p->waker, p->wake_ns);
	}
	field_ns(j, "its timer was late by", p->late_ns);
	if (p->result && name_result(p->result)[0])
		field(j, "result", "%s", name_result(p->result));
	field_ns(j, "in polls inside of it", p->inner_ns);
	if (p->spent.calls)
		field(j, "in blocking calls", "%s in %" PRIu32,
		      tacho__ns_text(text[0], (double)p->spent.call_ns), p->spent.calls);
	if (p->spent.locks)
		field(j, "waiting for locks", "%s in %" PRIu32,
		      tacho__ns_text(text[0], (double)p->spent.lock_ns), p->spent.locks);
	if (p->spent.samples)
		field(j, "CPU samples", "%" PRIu32 ", %s", p->spent.samples,
		      tacho__ns_text(text[0], (double)p->spent.sample_ns));
	field_ns(j, "runnable, not running", p->spent.delay_ns);
	if (p->spent.major_faults)
		field(j, "page faults", "%" PRIu32 " with a disk", p->spent.major_faults);
	field_cut(j, p->cut);
}

static void put_lock(struct json *j, const struct known *t, const struct tacho__lock *l)
{
	char name[NAME], line[2 * NAME], place[2 * TACHO__TEXT];
	struct tacho__place where[TACHO__PLACES_MAX];
	uint32_t n;

	put_around(j, t, &l->at);
	field(j, l->is_signal ? "condition or semaphore" : "lock", "0x%" PRIx64, l->lock);
	if (!l->got && !(l->cut & TACHO__CUT_END))
		field(j, "result", "gave up waiting");
	if (l->release_ns) {
		n = tacho__places_of_id(page.reader, t->process, l->release_place, l->release_ns,
					where, TACHO__PLACES_MAX);
		const struct tacho__place best = tacho__places_best(where, n);

		snprintf(line, sizeof(line), "%s%s%s", thread_text(t, l->releaser.thread, name),
			 n ? " in " : "", n ? tacho__place_text(place, &best) : "");
		field_at(j, l->is_signal ? "signalled by" : "released by", line, l->releaser.thread,
			 l->release_ns);
	} else if (l->owner) {
		field(j, "held by", "thread %" PRIu32, l->owner);
	}
	field_cut(j, l->cut);
}

static void put_call(struct json *j, const struct known *t, const struct tacho__call *c)
{
	const char *kind = name_descriptor(c->fd_kind);

	put_around(j, t, &c->at);
	field_id(j, t, "on", c->path);
	if (c->fd >= 0)
		field(j, "descriptor", "%" PRId64 "%s%s%s", c->fd, kind && kind[0] ? " (" : "",
		      kind ? kind : "", kind && kind[0] ? ")" : "");
	if (c->error)
		field(j, "error", "%s", strerror(c->error));
	if (c->cut)
		field(j, "cut",
		      c->untimed ? "it has not returned, and may have begun later"
				 : "it has not returned");
}

static void put_work(struct json *j, const struct known *t, const struct tacho__work *w)
{
	char text[TACHO__TEXT], name[NAME], line[2 * NAME];

	if (w->submit_ns && w->submit_ns <= w->begin_ns) {
		snprintf(line, sizeof(line), "%s before it began, by %s",
			 tacho__ns_text(text, (double)(w->begin_ns - w->submit_ns)),
			 thread_text(t, w->submitter, name));
		field_at(j, "submitted", line, w->submitter, w->submit_ns);
		field_id(j, t, "by", w->submit_kind);
		field(j, "ahead of it then", "%" PRIu32 " waiting, %" PRIu32 " in all", w->waiting,
		      w->ahead);
	}
}

static void put_span(struct json *j, const struct known *t, const struct tacho__span *s)
{
	char text[TEXT_SMALL];

	put_around(j, t, &s->at);
	if (s->async)
		field(j, "span", "%s", text_id(text, s->id));
	if (s->parent)
		field(j, "parent", "%s", text_id(text, s->parent));
	if (s->trace_high || s->trace_low)
		field(j, "trace id", "%016" PRIx64 "%016" PRIx64, s->trace_high, s->trace_low);
	field_cut(j, s->cut);
}

static void put_task(struct json *j, const struct known *t, const struct tacho__task *k)
{
	char text[TEXT_SMALL], place[NAME];

	field(j, "task", "%s", text_id(text, k->task));
	if (place_of(place, t->process, k->place)[0])
		field(j, "spawned in", "%s", place);
	if (k->parent)
		field(j, "by task", "%s", text_id(text, k->parent));
	field(j, "polls", "%" PRIu64, k->polls);
	field_ns(j, "running", k->busy_ns);
	field(j, "wakes", "%" PRIu64 ", %" PRIu64 " of them by itself", k->wakes, k->self_wakes);
	field_ns(j, "woken, not running", k->waited_ns);
	field_id(j, t, "waits for", k->waits_for);
	if (!k->end_ns)
		field(j, "end", "it had not ended where the records end");
}

static void put_fields(struct json *j, const struct known *t)
{
	char name[NAME];

	json_put_array(j, "fields");
	if (t->type == TACHO__TRACK_HELD)
		field_at(j, "held by", thread_text(t, t->holder, name), t->holder, t->to_ns);
	if (!t->found) {
		json_array_end(j);
		return;
	}
	switch (t->type) {
	case TACHO__TRACK_POLLS:
		put_poll(j, t, &t->fact.poll);
		break;
	case TACHO__TRACK_LOCKS:
	case TACHO__TRACK_SIGNALS:
		put_lock(j, t, &t->fact.lock);
		break;
	case TACHO__TRACK_CALLS:
		put_call(j, t, &t->fact.call);
		break;
	case TACHO__TRACK_WORK:
		put_work(j, t, &t->fact.work);
		break;
	case TACHO__TRACK_SPANS:
		put_span(j, t, &t->fact.span);
		break;
	case TACHO__TRACK_SAMPLES:
		put_around(j, t, &t->fact.sample.at);
		field_ns(j, "CPU time", t->fact.sample.cpu_ns);
		field(j, "taken by", "%s",
		      t->fact.sample.perf ? "the kernel" : "a timer of the thread");
		break;
	case TACHO__TRACK_RUNNABLE:
	case TACHO__TRACK_OFF:
		put_around(j, t, &t->fact.off.at);
		field(j, "went on with CPU", "%" PRIu32, t->fact.off.cpu);
		field_cut(j, t->fact.off.cut);
		break;
	case TACHO__TRACK_PARKS:
	case TACHO__TRACK_LATE:
		field_id(j, t, "loop", t->fact.turn.loop);
		field(j, "ready then", "%" PRIu32, t->fact.turn.ready);
		field_ns(j, "waited in all", t->fact.turn.parked_ns);
		field_ns(j, "of that, runnable and not running", t->fact.turn.delay_ns);
		field_ns(j, "the turn after it", t->fact.turn.end_ns - t->fact.turn.begin_ns);
		break;
	case TACHO__TRACK_TASKS:
		put_task(j, t, &t->fact.task);
		break;
	case TACHO__TRACK_HOLES:
		field(j, "records", "%" PRIu64 " missing, %" PRIu64 " dropped",
		      t->fact.hole.missing, t->fact.hole.dropped);
		break;
	default:
		break;
	}
	json_array_end(j);
}

/* ---------------------------------------------------------------------------- stack */

void put_places(struct json *j, const char *key, const struct tacho__place *places, uint32_t count,
		uint32_t kernel)
{
	json_put_array(j, key);
	for (uint32_t i = 0; i < count; i++) {
		json_object(j);
		describe_place_json(j, &places[i]);
		json_put_bool(j, "own", i >= kernel && tacho__place_is_own(&places[i]));
		json_put_bool(j, "kernel", i < kernel);
		json_object_end(j);
	}
	json_array_end(j);
}

/* Of a sample its frames, those of the kernel first; of the rest what it says where it was. */
static void put_stack(struct json *j, const struct known *t)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	const struct tacho__sample *s = &t->fact.sample;
	uint32_t ids[2] = {0, 0}, n = 0, kernel = 0;

	if (t->type == TACHO__TRACK_POLLS || t->type == TACHO__TRACK_WORK ||
	    t->type == TACHO__TRACK_HELD)
		ids[0] = t->what;
	if (t->found && t->type == TACHO__TRACK_CALLS)
		ids[0] = t->fact.call.stack;
	if (t->found && (t->type == TACHO__TRACK_LOCKS || t->type == TACHO__TRACK_SIGNALS)) {
		ids[0] = t->fact.lock.stack;
		ids[1] = t->fact.lock.place;
	}
	if (t->found && t->type == TACHO__TRACK_SAMPLES) {
		ids[0] = s->stack;
		n = kernel = tacho__places_of_frames(page.reader, t->process, s->frames,
						     s->kernel < s->count ? s->kernel : s->count, 1,
						     t->to_ns, places, TACHO__PLACES_MAX);
		if (s->count > s->kernel)
			n += tacho__places_of_frames(page.reader, t->process, s->frames + s->kernel,
						     s->count - s->kernel, 1, t->to_ns, places + n,
						     TACHO__PLACES_MAX - n);
	}
	for (uint32_t i = 0; i < 2 && !n; i++)
		n = tacho__places_of_id(page.reader, t->process, ids[i], t->to_ns, places,
					TACHO__PLACES_MAX);
	put_places(j, "stack", places, n, kernel);
}

/* -------------------------------------------------------------------------- records */

static void put_record(struct json *j, const struct tacho_event *e)
{
	const char *type = name_type(e->type);

	json_object(j);
	json_put_f64(j, "at", since(e->ns));
	json_put_string(j, "type", type ? type : "unknown");
	json_put_object(j, "fields");
	event_put_json(j, page.again, e);
	json_object_end(j);
	json_object_end(j);
}

/* What the thread recorded from its begin to its end, as `tacho cat --json` has it. */
static void put_records(struct json *j, const struct known *t)
{
	struct tacho_reader *reader = page_again(t->from_ns, t->to_ns);
	uint32_t thread = t->holder ? t->holder : t->thread;
	const struct tacho_event *e;
	uint32_t read = 0, count = 0;

	json_put_array(j, "records");
	for (; reader && read < RECORDS_READ && tacho_read_next(reader, &e) > 0; read++) {
		if (e->type == TACHO_EV_RESUME || e->process != t->process ||
		    (thread && e->thread != thread))
			continue;
		if (count++ < RECORDS)
			put_record(j, e);
	}
	json_array_end(j);
	json_put_u64(j, "record_count", count);
	json_put_bool(j, "all_counted", read < RECORDS_READ);
}

EXPORT(page_thing) const char *page_thing(uint32_t lane, uint32_t row, uint32_t index)
{
	static struct known t;
	struct json j;
	int error = known_at(&t, lane, row, index) ? known_look(&t) : -EINVAL;

	if (error)
		return answer_failed(error);
	answer_begin(&j);
	json_object(&j);
	json_put_u64(&j, "real_ns", tacho_read_real_ns(page.reader, t.process, t.from_ns));
	json_put_u64(&j, "task", t.task);
	json_put_f64_if(&j, "woken", t.found && t.type == TACHO__TRACK_POLLS && t.fact.poll.wake_ns,
			since(t.fact.poll.wake_ns));
	put_fields(&j, &t);
	put_stack(&j, &t);
	put_records(&j, &t);
	json_object_end(&j);
	return answer_end(&j);
}
