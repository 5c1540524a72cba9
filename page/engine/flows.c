/*
 * Flows: what led to a thing, and what it led to. Wakes and the polls that they led to, locks that were
 * released and the waits that ended with it, work that was handed to a pool, events that were ready
 * before their callback ran. The view does not keep them: the time around the thing is read again.
 */
#include <string.h>

#include "things.h"

#define FLOWS 64u
#define BEFORE_NS UINT64_C(2000000000) /* most wakes and releases are not longer ago */
#define AFTER_NS UINT64_C(2000000000)

struct point {
	uint32_t thread;
	uint64_t ns;
	bool has_thing;
	struct thing thing;
};

struct flow {
	const char *what;
	bool leads_here;
	uint32_t name; /* of what it comes from or goes to; 0 */
	struct point from, to;
};

struct flows {
	uint32_t process, thread;
	enum tacho__track_type type;
	struct thing of;
	uint64_t until_ns;
	struct flow at[FLOWS];
	uint32_t count;
	uint64_t more;
	bool found_cause;
};

/* The innermost poll of a thread at a time, or the work of a pool that it does. */
static bool around(struct thing *out, uint32_t process, uint32_t thread, uint64_t ns)
{
	const struct tacho__lane *l =
		tacho__table_find(&page.view.lanes, (uint64_t)process << 32 | thread, 0);
	bool found = false;

	for (uint32_t r = 0; l && r < l->row_count; r++) {
		const struct tacho__track *track = &l->rows[r].track;
		bool runs = l->rows[r].type == TACHO__TRACK_POLLS ||
			    l->rows[r].type == TACHO__TRACK_WORK;
		uint32_t i = runs ? tacho__track_after(track, ns) : track->count;
		struct tacho__thing t;

		if (i == track->count)
			continue;
		t = tacho__track_at(track, i);
		if (t.begin_ns > ns || (found && t.ns > out->ns))
			continue;
		*out = (struct thing){l->entry.index, r, i, t.begin_ns, t.ns};
		found = true;
	}
	return found;
}

static struct point running(const struct flows *f, uint32_t thread, uint64_t ns)
{
	struct point p = {.thread = thread, .ns = ns};

	p.has_thing = around(&p.thing, f->process, thread, ns);
	return p;
}

static struct point thing_there(const struct flows *f, uint32_t thread, uint64_t ns,
				enum tacho__track_type type, uint64_t begin_ns)
{
	struct point p = {.thread = thread, .ns = ns};

	p.has_thing = thing_of(&p.thing, f->process, thread, type, begin_ns);
	return p;
}

static void add(struct flows *f, const struct flow *flow)
{
	f->found_cause = f->found_cause || flow->leads_here;
	if (f->count < FLOWS)
		f->at[f->count++] = *flow;
	else
		f->more++;
}

static bool is_in(const struct flows *f, uint32_t process, uint32_t thread, uint64_t ns)
{
	return process == f->process && thread == f->thread && ns >= f->of.begin_ns &&
	       ns <= f->of.begin_ns + f->of.ns;
}

static bool is_it(const struct flows *f, uint32_t process, uint32_t thread, uint64_t begin_ns)
{
	return process == f->process && thread == f->thread && begin_ns == f->of.begin_ns;
}

/* -------------------------------------------------------------------- facts */

static void on_wake(void *arg, const struct tacho__wake *w)
{
	struct flows *f = arg;
	bool here = is_it(f, w->at.process, w->thread, w->begin_ns);
	struct flow flow = {.what = "wake", .leads_here = here};

	if (f->type != TACHO__TRACK_POLLS || !w->begin_ns || w->at.process != f->process ||
	    (!here && !is_in(f, w->at.process, w->at.thread, w->ns)))
		return;
	flow.name = here ? w->at.kind : w->kind;
	flow.from = running(f, w->at.thread, w->ns);
	flow.to = thing_there(f, w->thread, w->begin_ns, TACHO__TRACK_POLLS, w->begin_ns);
	add(f, &flow);
}

static void on_lock(void *arg, const struct tacho__lock *k)
{
	struct flows *f = arg;
	enum tacho__track_type type = k->is_signal ? TACHO__TRACK_SIGNALS : TACHO__TRACK_LOCKS;
	bool it = f->type == type && is_it(f, k->at.process, k->at.thread, k->begin_ns);
	/* The waits inside of a poll are part of what it waited for. */
	bool inside =
		f->type == TACHO__TRACK_POLLS && is_in(f, k->at.process, k->at.thread, k->begin_ns);
	bool out = f->type == TACHO__TRACK_POLLS &&
		   is_in(f, k->releaser.process, k->releaser.thread, k->release_ns);
	struct flow flow = {.what = k->is_signal ? "signal" : "release",
			    .leads_here = it || inside};

	if (!k->release_ns || k->at.process != f->process || (!it && !inside && !out))
		return;
	flow.name = it || inside ? k->release_place : k->place;
	flow.from = running(f, k->releaser.thread, k->release_ns);
	flow.to = thing_there(f, k->at.thread, k->end_ns, type, k->begin_ns);
	add(f, &flow);
}

static void on_work(void *arg, const struct tacho__work *w)
{
	struct flows *f = arg;
	bool it = f->type == TACHO__TRACK_WORK && is_it(f, w->process, w->worker, w->begin_ns);
	bool out =
		f->type == TACHO__TRACK_POLLS && is_in(f, w->process, w->submitter, w->submit_ns);
	struct flow flow = {.what = "submit", .leads_here = it};

	if (!w->submit_ns || !w->begin_ns || !w->worker || !w->submitter || (!it && !out))
		return;
	flow.name = it ? w->submit_kind : w->kind;
	flow.from = running(f, w->submitter, w->submit_ns);
	flow.to = thing_there(f, w->worker, w->begin_ns, TACHO__TRACK_WORK, w->begin_ns);
	add(f, &flow);
}

/* What a wait reported was ready when it ended, if not before. */
static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct flows *f = arg;
	struct flow flow = {.what = "ready", .leads_here = true};

	if (f->type != TACHO__TRACK_POLLS || !is_it(f, p->at.process, p->at.thread, p->begin_ns) ||
	    p->wake_ns || !p->turn_ns || p->turn_ns >= p->begin_ns || f->found_cause)
		return;
	flow.from = (struct point){.thread = p->at.thread, .ns = p->turn_ns};
	flow.to = thing_there(f, p->at.thread, p->begin_ns, TACHO__TRACK_POLLS, p->begin_ns);
	add(f, &flow);
}

static int is_over(void *arg, uint64_t ns)
{
	const struct flows *f = arg;

	return ns > f->until_ns;
}

static void read_from(struct flows *f, uint64_t ns)
{
	struct tacho__facts facts = {
		.arg = f, .poll = on_poll, .wake = on_wake, .lock = on_lock, .work = on_work};

	f->count = 0;
	f->more = 0;
	f->found_cause = false;
	if (tacho_read_seek(page.reader, ns) >= 0)
		tacho__model_run(page.reader, &facts, is_over, f, NULL);
}

/* A thread that is late: from when it could run to what it ran then. */
static void take_late(struct flows *f)
{
	uint64_t end = f->of.begin_ns + f->of.ns;
	struct flow flow = {.what = "ready"};

	flow.from = (struct point){
		.thread = f->thread, .ns = f->of.begin_ns, .has_thing = true, .thing = f->of};
	flow.to = running(f, f->thread, end);
	add(f, &flow);
}

/* ------------------------------------------------------------------- answer */

static void put_point(struct json *j, const char *key, const struct flows *f, const struct point *p)
{
	const struct tacho__lane *l =
		tacho__table_find(&page.view.lanes, (uint64_t)f->process << 32 | p->thread, 0);
	const struct tacho_thread *t =
		tacho_read_thread_by_number(page.reader, f->process, p->thread);

	json_put_object(j, key);
	json_put_u64(j, "tid", t ? t->tid : 0);
	json_put_known(j, "thread", t ? t->name : "");
	json_put_u64_if(j, "lane", l != NULL, l ? l->entry.index : 0);
	json_put_f64(j, "at", since(p->ns));
	json_key(j, "thing");
	put_thing(j, p->has_thing ? &p->thing : NULL);
	json_object_end(j);
}

static void put_flow(struct json *j, const struct flows *f, const struct flow *flow)
{
	char text[NAME_BYTES], place[NAME_BYTES];

	const struct tacho_definition *d =
		tacho_read_definition(page.reader, f->process, flow->name);

	name_of(text, f->process, d && d->name[0] ? flow->name : 0);
	place_of(place, f->process, flow->name);
	json_object(j);
	json_put_string(j, "what", flow->what);
	json_put_bool(j, "leads_here", flow->leads_here);
	json_put_known(j, "name", text);
	json_put_known(j, "place", place);
	put_point(j, "from", f, &flow->from);
	put_point(j, "to", f, &flow->to);
	json_object_end(j);
}

/* What led to a thing and what it led to, as arrows from a moment of a thread to another. */
EXPORT(page_flows) const char *page_flows(uint32_t lane, uint32_t row, uint32_t index)
{
	static struct flows f;
	const struct tacho__row *r = tacho__view_row(&page.view, lane, row);
	const struct tacho__lane *l = r ? tacho__table_at(&page.view.lanes, lane) : NULL;
	struct json j;

	memset(&f, 0, sizeof(f));
	if (l && index < r->track.count) {
		struct tacho__thing t = tacho__track_at(&r->track, index);

		f.process = l->process;
		f.thread = l->thread;
		f.type = r->type;
		f.of = (struct thing){lane, row, index, t.begin_ns, t.ns};
		f.until_ns = t.begin_ns + t.ns + AFTER_NS;
		if (f.type == TACHO__TRACK_LATE) {
			take_late(&f);
		} else if (f.type == TACHO__TRACK_POLLS || f.type == TACHO__TRACK_LOCKS ||
			   f.type == TACHO__TRACK_SIGNALS || f.type == TACHO__TRACK_WORK) {
			uint64_t from =
				t.begin_ns - page.first_ns > BEFORE_NS ? t.begin_ns - BEFORE_NS : 0;

			read_from(&f, from);
			if (from && !f.found_cause)
				read_from(&f, 0);
		}
	}
	answer_begin(&j);
	json_object(&j);
	json_put_array(&j, "flows");
	for (uint32_t i = 0; i < f.count; i++)
		put_flow(&j, &f, &f.at[i]);
	json_array_end(&j);
	json_put_u64(&j, "more", f.more);
	json_object_end(&j);
	return answer_end(&j);
}
