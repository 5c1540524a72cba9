#include "view/view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "read/memory.h"

#define LANES (1u << 16)
#define TASKS (1u << 20)
#define BUDGET (1400u << 20) /* bytes: a page in a browser has 4 GB at most */
#define COLUMNS 16384u	     /* of the widest screen, and some more */

/* -------------------------------------------------------------------- lanes */

static struct tacho__lane *lane_of(struct tacho__view *v, uint32_t process, uint32_t thread)
{
	struct tacho__lane *l =
		tacho__table_get(&v->lanes, (uint64_t)process << 32 | thread, 0, &v->error);

	if (l) {
		l->process = process;
		l->thread = thread;
	} else {
		v->dropped++;
	}
	return l;
}

static struct tacho__row *row_of(struct tacho__view *v, struct tacho__lane *l,
				 enum tacho__track_type type, uint32_t row, uint32_t name)
{
	for (uint32_t i = 0; i < l->row_count; i++)
		if (l->rows[i].type == type && l->rows[i].row == row && l->rows[i].name == name)
			return &l->rows[i];
	if (TACHO__GROW(l->rows, l->row_capacity, l->row_count + 1)) {
		v->error = -ENOMEM;
		return NULL;
	}
	memset(&l->rows[l->row_count], 0, sizeof(l->rows[0]));
	l->rows[l->row_count].type = type;
	l->rows[l->row_count].row = row;
	l->rows[l->row_count].name = name;
	return &l->rows[l->row_count++];
}

/* NULL without memory, or there are too many. */
static struct tacho__curve *curve_of(struct tacho__view *v, struct tacho__lane *l,
				     enum tacho__track_type type, uint32_t row, uint32_t name)
{
	struct tacho__row *r = NULL;

	if (l && l->row_count < TACHO__VIEW_COUNTERS)
		r = row_of(v, l, type, row, name);
	else
		v->dropped++;
	if (r && !r->curve) {
		r->curve = malloc(sizeof(*r->curve));
		if (r->curve)
			tacho__curve_init(r->curve, v->first_ns, v->last_ns);
		else
			v->error = -ENOMEM;
	}
	return r ? r->curve : NULL;
}

static void add_to(struct tacho__view *v, struct tacho__row *row, uint64_t begin_ns,
		   uint64_t end_ns, uint32_t what, uint32_t task)
{
	struct tacho__thing thing = {begin_ns, end_ns - begin_ns, what, task};
	size_t before;

	if (!row)
		return;
	if (v->bytes > v->budget && thing.ns < v->thin_ns) {
		v->thinned++;
		return;
	}
	before = row->track.bytes;
	if (tacho__track_add(&row->track, &thing))
		v->error = -ENOMEM;
	v->bytes += row->track.bytes - before;
	v->things++;
}

static void add(struct tacho__view *v, const struct tacho__at *at, enum tacho__track_type type,
		uint64_t begin_ns, uint64_t end_ns, uint32_t what)
{
	struct tacho__lane *l = lane_of(v, at->process, at->thread);

	if (l)
		add_to(v, row_of(v, l, type, 0, 0), begin_ns, end_ns, what, 0);
}

/* In the first row in which nothing else is at that time. They come in the order of their ends. */
static void add_beside(struct tacho__view *v, struct tacho__lane *l, enum tacho__track_type type,
		       uint64_t begin_ns, uint64_t end_ns, uint32_t what, uint32_t task)
{
	for (uint32_t i = 0; l && i < TACHO__VIEW_ROWS; i++) {
		struct tacho__row *row = row_of(v, l, type, i, 0);

		if (!row)
			return;
		if (!row->track.count || row->track.last_ns <= begin_ns) {
			add_to(v, row, begin_ns, end_ns, what, task);
			return;
		}
	}
	/* Many tasks are alive at once: that is no loss, their polls are there. */
	if (type == TACHO__TRACK_TASKS)
		v->crowded++;
	else
		v->dropped++;
}

/* 0: none, or there are too many. */
static uint32_t number_of(struct tacho__view *v, uint32_t process, uint64_t task)
{
	const struct tacho__view_task *t =
		task ? tacho__table_get(&v->tasks, task, process, &v->error) : NULL;

	return t ? t->entry.index + 1 : 0;
}

/* -------------------------------------------------------------------- facts */

/* That long ago it could have begun. */
static void lag(struct tacho__view *v, struct tacho__lane *l, uint64_t ns, uint64_t late_ns)
{
	struct tacho__curve *c = curve_of(v, l, TACHO__TRACK_LAG, 0, 0);

	if (c && tacho__curve_peak(c, ns, (float)late_ns))
		v->error = -ENOMEM;
}

static void on_poll(void *arg, const struct tacho__poll *p)
{
	struct tacho__view *v = arg;
	struct tacho__lane *l = lane_of(v, p->at.process, p->at.thread);

	if (!l)
		return;
	if (p->at.loop)
		l->loop = p->at.loop;
	add_to(v, row_of(v, l, TACHO__TRACK_POLLS, p->depth, 0), p->begin_ns, p->end_ns, p->kind,
	       number_of(v, p->at.process, p->task));
	if (p->wake_ns && p->wake_ns < p->begin_ns)
		lag(v, l, p->begin_ns, p->begin_ns - p->wake_ns);
	else if (p->late_ns && p->kind)
		lag(v, l, p->begin_ns, p->late_ns);
}

static void on_turn(void *arg, const struct tacho__turn *t)
{
	struct tacho__view *v = arg;
	struct tacho__lane *l;

	if (!t->delay_ns && !t->parked_ns)
		return;
	l = lane_of(v, t->process, t->thread);
	if (!l)
		return;
	if (t->parked_ns && !l->has_parks) {
		row_of(v, l, TACHO__TRACK_BUSY, 0, 0);
		l->has_parks = 1;
	}
	if (t->parked_ns)
		add_to(v, row_of(v, l, TACHO__TRACK_PARKS, 0, 0),
		       t->begin_ns - (t->parked_ns < t->begin_ns ? t->parked_ns : t->begin_ns),
		       t->begin_ns, 0, 0);
	if (t->delay_ns)
		add_to(v, row_of(v, l, TACHO__TRACK_LATE, 0, 0),
		       t->begin_ns - (t->delay_ns < t->begin_ns ? t->delay_ns : t->begin_ns),
		       t->begin_ns, 0, 0);
}

/* While others waited for a lock, somebody held it. */
static void held(struct tacho__view *v, const struct tacho__lock *k)
{
	const struct tacho__entry *e =
		tacho__table_get(&v->locks, k->lock, k->at.process, &v->error);
	struct tacho__lane *l = e ? lane_of(v, k->at.process, 0) : NULL;

	if (l)
		add_to(v, row_of(v, l, TACHO__TRACK_HELD, 0, e->index + 1), k->begin_ns,
		       k->release_ns, k->release_place, k->releaser.thread);
}

static void on_lock(void *arg, const struct tacho__lock *k)
{
	int is_signal = k->is_signal || k->for_signal;

	add(arg, &k->at, is_signal ? TACHO__TRACK_SIGNALS : TACHO__TRACK_LOCKS, k->begin_ns,
	    k->end_ns, k->place);
	if (!is_signal && k->release_ns > k->begin_ns)
		held(arg, k);
}

static void on_call(void *arg, const struct tacho__call *c)
{
	struct tacho__view *v = arg;

	/* One may be made inside of another. */
	add_beside(v, lane_of(v, c->at.process, c->at.thread), TACHO__TRACK_CALLS, c->begin_ns,
		   c->end_ns, c->name, 0);
}

static void on_work(void *arg, const struct tacho__work *w)
{
	struct tacho__at at = {.process = w->process, .thread = w->worker};

	if (w->worker && w->begin_ns && w->end_ns >= w->begin_ns)
		add(arg, &at, TACHO__TRACK_WORK, w->begin_ns, w->end_ns, w->kind);
}

static void on_span(void *arg, const struct tacho__span *s)
{
	struct tacho__view *v = arg;

	add_beside(v, lane_of(v, s->at.process, s->async ? 0 : s->at.thread), TACHO__TRACK_SPANS,
		   s->begin_ns, s->end_ns, s->name, 0);
}

static void on_sample(void *arg, const struct tacho__sample *s)
{
	add(arg, &s->at, TACHO__TRACK_SAMPLES, s->ns, s->ns, s->stack);
}

static void on_off_cpu(void *arg, const struct tacho__switch *s)
{
	add(arg, &s->at, s->runnable ? TACHO__TRACK_RUNNABLE : TACHO__TRACK_OFF, s->begin_ns,
	    s->end_ns, s->cpu);
}

static void on_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__at at = {.process = h->process, .thread = h->thread};

	add(arg, &at, TACHO__TRACK_HOLES, h->from_ns, h->to_ns, 0);
}

static void on_task(void *arg, const struct tacho__task *t)
{
	struct tacho__view *v = arg;
	uint64_t begin = t->spawn_ns ? t->spawn_ns : t->first_ns;
	uint64_t end = t->end_ns ? t->end_ns : v->last_ns;
	struct tacho__view_task *k =
		t->task ? tacho__table_get(&v->tasks, t->task, t->process, &v->error) : NULL;

	if (k) {
		k->kind = t->kind;
		k->place = t->place;
		k->spawn_ns = k->spawn_ns ? k->spawn_ns : t->spawn_ns;
		k->end_ns = t->end_ns;
		k->polls += t->polls;
		k->busy_ns += t->busy_ns;
		k->waited_ns += t->waited_ns;
		k->wakes += t->wakes;
	}
	if (begin && end >= begin)
		add_beside(v, lane_of(v, t->process, 0), TACHO__TRACK_TASKS, begin, end, t->kind,
			   k ? k->entry.index + 1 : 0);
}

static float value_of(const struct tacho__view *v, const struct tacho__counter *k)
{
	const struct tacho_definition *d =
		k->depth ? NULL : tacho_read_definition(v->reader, k->at.process, k->name);
	double number;

	if (!d || d->value_type != TACHO_VALUE_F64)
		return k->depth ? (float)k->value : (float)(int64_t)k->value;
	memcpy(&number, &k->value, sizeof(number));
	/* What is no number would spoil the picture. */
	return fabs(number) < 1e38 ? (float)number : 0;
}

static void on_counter(void *arg, const struct tacho__counter *k)
{
	struct tacho__view *v = arg;
	struct tacho__curve *c =
		curve_of(v, lane_of(v, k->at.process, 0), TACHO__TRACK_COUNTERS, k->depth, k->name);

	if (c && tacho__curve_set(c, k->ns, value_of(v, k)))
		v->error = -ENOMEM;
}

static void on_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__at all = {.process = at->process};

	if (e->type == TACHO_EV_STOPPED && TACHO_GET(e, STOPPED, until_ns) > e->ns)
		add(arg, &all, TACHO__TRACK_STOPPED, e->ns, TACHO_GET(e, STOPPED, until_ns), 0);
}

/* ------------------------------------------------------------------ what waits */

static struct tacho__curve *waiting_of(struct tacho__view *v, struct tacho__lane *l)
{
	return l ? curve_of(v, l, TACHO__TRACK_WAITING, 0, 0) : NULL;
}

static void set_waiting(struct tacho__view *v, struct tacho__lane *l, uint64_t ns)
{
	struct tacho__curve *c = waiting_of(v, l);

	if (c && tacho__curve_set(c, ns, (float)(l->queue + l->own)))
		v->error = -ENOMEM;
}

static void on_queue(void *arg, uint32_t process, uint32_t thread, uint64_t ns, uint32_t waiting)
{
	struct tacho__lane *l = lane_of(arg, process, thread);

	if (l)
		l->queue = waiting;
	set_waiting(arg, l, ns);
}

static void on_own(void *arg, uint32_t process, uint32_t thread, uint64_t ns, uint32_t waiting)
{
	struct tacho__lane *l = lane_of(arg, process, thread);

	if (l)
		l->own = waiting;
	set_waiting(arg, l, ns);
}

static void on_more(void *arg, uint32_t process, uint32_t thread, uint64_t from_ns, uint64_t to_ns,
		    double before, double after)
{
	struct tacho__view *v = arg;
	struct tacho__curve *c = waiting_of(v, lane_of(v, process, thread));

	if (c && tacho__curve_add(c, from_ns, to_ns, (float)before, (float)after))
		v->error = -ENOMEM;
}

struct tacho__waits tacho__view_waits(struct tacho__view *v)
{
	return (struct tacho__waits){v, on_queue, on_own, on_more};
}

/* ------------------------------------------------------------------------ life */

void tacho__view_init(struct tacho__view *v, struct tacho_reader *reader)
{
	memset(v, 0, sizeof(*v));
	v->reader = reader;
	/* Without events there is no window. */
	if (tacho_read_window(reader, &v->first_ns, &v->last_ns) < 0)
		v->first_ns = v->last_ns = 0;
	tacho__table_init(&v->lanes, sizeof(struct tacho__lane), LANES);
	tacho__table_init(&v->tasks, sizeof(struct tacho__view_task), TASKS);
	tacho__table_init(&v->locks, sizeof(struct tacho__entry), TACHO__VIEW_LOCKS);
	v->budget = BUDGET;
	v->thin_ns = (v->last_ns - v->first_ns) / COLUMNS + 1;
}

static void free_row(struct tacho__row *r)
{
	tacho__track_free(&r->track);
	if (r->curve)
		tacho__curve_free(r->curve);
	free(r->curve);
}

void tacho__view_free(struct tacho__view *v)
{
	for (struct tacho__lane *l = NULL; (l = tacho__table_next(&v->lanes, l));) {
		for (uint32_t i = 0; i < l->row_count; i++)
			free_row(&l->rows[i]);
		free(l->rows);
	}
	tacho__table_free(&v->lanes);
	tacho__table_free(&v->tasks);
	tacho__table_free(&v->locks);
}

struct tacho__facts tacho__view_facts(struct tacho__view *v)
{
	return (struct tacho__facts){
		.arg = v,
		.error = &v->error,
		.poll = on_poll,
		.turn = on_turn,
		.lock = on_lock,
		.call = on_call,
		.work = on_work,
		.span = on_span,
		.sample = on_sample,
		.off_cpu = on_off_cpu,
		.task = on_task,
		.counter = on_counter,
		.hole = on_hole,
		.other = on_other,
	};
}

void tacho__view_end(struct tacho__view *v)
{
	for (const struct tacho__lane *l = NULL; (l = tacho__table_next(&v->lanes, l));)
		for (uint32_t i = 0; i < l->row_count; i++) {
			struct tacho__curve *c = l->rows[i].curve;

			if (l->rows[i].type == TACHO__TRACK_COUNTERS && c &&
			    tacho__curve_set(c, v->last_ns, c->value))
				v->error = -ENOMEM;
		}
}

uint64_t tacho__view_task(const struct tacho__view *v, uint32_t number)
{
	const struct tacho__view_task *t =
		number && number <= v->tasks.used ? tacho__table_at(&v->tasks, number - 1) : NULL;

	return t ? t->entry.key[0] : 0;
}

uint64_t tacho__view_lock(const struct tacho__view *v, uint32_t number)
{
	const struct tacho__entry *e =
		number && number <= v->locks.used ? tacho__table_at(&v->locks, number - 1) : NULL;

	return e ? e->key[0] : 0;
}

const struct tacho__row *tacho__view_row(const struct tacho__view *v, uint32_t lane, uint32_t row)
{
	const struct tacho__lane *l =
		lane < v->lanes.used ? tacho__table_at(&v->lanes, lane) : NULL;

	return l && row < l->row_count ? &l->rows[row] : NULL;
}
