/* Tokio's own events: workers, parks, polls, wakes, tasks. What is in a batch happened on its
   thread: so who wakes is known, though dial9 calls that worker the target. */
#include <inttypes.h>
#include <stdio.h>

#include "import/dial9_making.h"

#define WAIT_TOLD_NS 100000u /* runnable but not running: less is kept for the next time */
#define CPU_TOLD_NS 10000000u
#define QUEUE_TOLD_NS 1000000u

/* ------------------------------------------------------------------ threads */

uint32_t tacho__dial9_thread(struct tacho__dial9 *d, uint32_t tid)
{
	uint32_t n = tid ? tacho__map_get(&d->by_tid, tid) : 0;
	struct tacho__dial9_thread *t;

	if (n)
		return n;
	t = TACHO__DIAL9_ROOM(d, threads, thread_count, thread_capacity);
	if (!t || (tid && tacho__map_put(&d->by_tid, tid, d->thread_count))) {
		d->error = -ENOMEM;
		return 0;
	}
	*t = (struct tacho__dial9_thread){.tid = tid, .next_ns = UINT64_MAX};
	t->thread = tacho__made_thread(d->made, tid, NULL);
	return d->thread_count;
}

static struct tacho__dial9_thread *thread_at(struct tacho__dial9 *d, uint32_t n)
{
	return n ? &d->threads[n - 1] : NULL;
}

uint32_t tacho__dial9_by_tid(struct tacho__dial9 *d, uint32_t tid)
{
	struct tacho__dial9_thread *t = thread_at(d, tacho__dial9_thread(d, tid));

	return t ? t->thread : TACHO__MADE_NO_THREAD;
}

uint32_t tacho__dial9_here(struct tacho__dial9 *d)
{
	if (d->owner && d->threads)
		return d->threads[d->owner - 1].thread;
	if (!d->others)
		d->others = tacho__made_thread(d->made, 0, "other threads");
	return d->others;
}

/* ------------------------------------------------------------------ workers */

struct tacho__dial9_worker *tacho__dial9_worker(struct tacho__dial9 *d, uint64_t number)
{
	uint32_t n = tacho__map_get(&d->worker_at, number);
	struct tacho__dial9_worker *w;

	if (n)
		return &d->workers[n - 1];
	w = TACHO__DIAL9_ROOM(d, workers, worker_count, worker_capacity);
	if (!w)
		return NULL;
	*w = (struct tacho__dial9_worker){.number = number};
	if (tacho__map_put(&d->worker_at, number, d->worker_count))
		d->error = -ENOMEM;
	return w;
}

static int is_none(const struct tacho__dial9_worker *w)
{
	return !w->listed &&
	       (w->number == TACHO__DIAL9_BLOCKING || w->number == TACHO__DIAL9_UNKNOWN);
}

static uint32_t loop_of(struct tacho__dial9 *d, struct tacho__dial9_worker *w)
{
	char name[96];

	if (is_none(w))
		return 0;
	if (!w->loop) {
		snprintf(name, sizeof(name), "%s worker %" PRIu64,
			 w->runtime[0] ? w->runtime : "tokio", w->number);
		w->loop = tacho__made_define(
			d->made,
			&(struct tacho_definition){
				.def_class = TACHO_DEF_LOOP,
				.name = name,
				.value = w->number + 1,
				/* Tasks that are not polled through dial9 run unseen. */
				.level = d->spawns_only ? TACHO_LEVEL_WAITS : TACHO_LEVEL_API});
	}
	return w->loop;
}

static void bind(struct tacho__dial9 *d, struct tacho__dial9_worker *w, uint32_t thread,
		 uint64_t ns)
{
	struct tacho__dial9_seen *s = TACHO__DIAL9_ROOM(d, seen, seen_count, seen_capacity);

	if (w->thread && w->thread != thread)
		w->moves = 1;
	w->thread = thread;
	if (s)
		*s = (struct tacho__dial9_seen){ns, (uint32_t)(w - d->workers), thread - 1};
}

/* The thread that an event of a worker is of. `tid`: the event says so itself. */
static struct tacho__dial9_thread *thread_of(struct tacho__dial9 *d, struct tacho__dial9_worker *w,
					     uint32_t tid, uint64_t ns)
{
	uint32_t n = tid ? tacho__dial9_thread(d, tid) : d->owner;
	struct tacho__dial9_thread *t = thread_at(d, n);
	char name[32];

	if (!t)
		return NULL;
	if (tid || !d->owner_seen)
		bind(d, w, n, ns);
	d->owner_seen = 1;
	if (!t->named && !is_none(w)) {
		t->named = 1;
		snprintf(name, sizeof(name), "worker %" PRIu64, w->number);
		tacho__made_thread_name(d->made, t->thread, name);
	}
	return t;
}

static void look_at(struct tacho__dial9_batch *b, const struct tacho__dial9_event *e,
		    uint64_t worker, uint32_t tid)
{
	if (!b->events++ || e->ns < b->first_ns)
		b->first_ns = e->ns;
	if (e->ns > b->last_ns)
		b->last_ns = e->ns;
	if (b->events == 1 || tid)
		b->worker = worker;
	if (tid)
		b->tid = tid;
}

/* An event of a worker: it and its thread; 0: there is none. */
static int at_worker(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k, unsigned tid_slot,
		     struct tacho__dial9_worker **w, struct tacho__dial9_thread **t)
{
	uint32_t tid = tid_slot ? (uint32_t)tacho__dial9_number(e, k, tid_slot, 0) : 0;
	uint64_t number = tacho__dial9_number(e, k, 0, TACHO__DIAL9_UNKNOWN);

	if (d->look) {
		look_at(d->look, e, number, tid);
		return 0;
	}
	*w = tacho__dial9_worker(d, number);
	*t = *w ? thread_of(d, *w, tid, e->ns) : NULL;
	return *t != NULL;
}

static void run_loop(struct tacho__dial9 *d, struct tacho__dial9_thread *t, uint32_t loop,
		     uint64_t ns)
{
	if (t->loop == loop)
		return;
	t->loop = loop;
	tacho__made_put(d->made, t->thread, ns, TACHO_REC_LOOP, loop, NULL, 0);
}

/* Its peaks, and else once in a while. */
static void tell_queue(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		       struct tacho__dial9_known *k, struct tacho__dial9_worker *w,
		       struct tacho__dial9_thread *t)
{
	uint64_t depth = tacho__dial9_number(e, k, 1, UINT64_MAX);

	if (depth > UINT32_MAX - 1 || d->no_queue || w->queue == depth + 1 || !loop_of(d, w) ||
	    (depth + 1 < w->queue && e->ns - w->queue_ns < QUEUE_TOLD_NS))
		return;
	w->queue = (uint32_t)depth + 1;
	w->queue_ns = e->ns;
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_QUEUE_DEPTH, w->loop, &depth, 1);
}

/* CPU time of the thread, which grows. */
static void tell_cpu(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k, struct tacho__dial9_worker *w,
		     struct tacho__dial9_thread *t)
{
	uint64_t cpu_ns = tacho__dial9_number(e, k, 2, 0);
	char name[64];

	if (!cpu_ns || (t->cpu_ns && e->ns < t->cpu_ns + CPU_TOLD_NS))
		return;
	t->cpu_ns = e->ns;
	if (!w->cpu) {
		snprintf(name, sizeof(name), "CPU time of worker %" PRIu64, w->number);
		w->cpu = tacho__made_define(
			d->made, &(struct tacho_definition){.def_class = TACHO_DEF_COUNTER,
							    .value_type = TACHO_VALUE_I64,
							    .name = name,
							    .unit = "ns"});
	}
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_COUNTER, w->cpu, &cpu_ns, 1);
}

static void put_park(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k)
{
	struct tacho__dial9_worker *w;
	struct tacho__dial9_thread *t;

	if (!at_worker(d, e, k, 3, &w, &t))
		return;
	/* A worker parks in no poll: those that are open ended somewhere before, unseen. */
	for (; t->depth; t->depth--) {
		tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_POLL_END, TACHO_UNKNOWN, NULL,
				0);
		d->unended++;
	}
	t->lost = 0;
	tell_queue(d, e, k, w, t);
	tell_cpu(d, e, k, w, t);
	t->loop = loop_of(d, w);
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_PARK, t->loop, NULL, 0);
	t->park_ns = e->ns;
}

static void put_sched(struct tacho__dial9 *d, const struct tacho__dial9_thread *t, uint64_t wait_ns,
		      uint64_t begin_ns, uint64_t ns)
{
	uint64_t words[4] = {TACHO_SCHED_WAIT << 16, wait_ns, begin_ns, 0};

	tacho__made_put(d->made, t->thread, ns, TACHO_REC_SCHED_INTERVAL, 0, words, 4);
}

/* Runnable but not running, from the park to the unpark at `ns`. */
static void tell_wait(struct tacho__dial9 *d, struct tacho__dial9_thread *t, uint64_t wait_ns,
		      uint64_t ns)
{
	if (wait_ns >= WAIT_TOLD_NS) {
		put_sched(d, t, wait_ns, t->park_ns, ns);
		return;
	}
	if (!t->wait_ns)
		t->wait_since_ns = t->park_ns;
	t->wait_ns += wait_ns;
	if (t->wait_ns >= WAIT_TOLD_NS) {
		put_sched(d, t, t->wait_ns, t->wait_since_ns, ns);
		t->wait_ns = 0;
	}
}

static void put_unpark(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		       struct tacho__dial9_known *k)
{
	struct tacho__dial9_worker *w;
	struct tacho__dial9_thread *t;

	if (!at_worker(d, e, k, 3, &w, &t))
		return;
	run_loop(d, t, loop_of(d, w), e->ns);
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_UNPARK, 0, NULL, 0);
	tell_wait(d, t, tacho__dial9_number(e, k, 4, 0), e->ns);
	tell_queue(d, e, k, w, t);
}

/* -------------------------------------------------------------------- tasks */

/* "src/main.rs:75:21": where its file ends, and its line. */
static size_t take_place(const char *text, uint32_t *line)
{
	size_t end = strlen(text);

	*line = 0;
	for (int part = 0; part < 2; part++) {
		size_t at = end;

		while (at && text[at - 1] >= '0' && text[at - 1] <= '9')
			at--;
		if (at == end || !at || text[at - 1] != ':')
			break;
		*line = (uint32_t)strtoul(text + at, NULL, 10);
		end = at - 1;
	}
	return end;
}

/* The last two parts of a path. */
static const char *short_path(const char *path)
{
	const char *at = path + strlen(path);

	for (int slashes = 0; at > path; at--)
		if (at[-1] == '/' && ++slashes == 2)
			break;
	return at;
}

/* The kind of tasks that are spawned there. */
static uint32_t kind_of(struct tacho__dial9 *d, const struct tacho__dial9_value *v)
{
	char text[512], name[TACHO_NAME_MAX + 1];
	uint32_t line, kind;
	const char *path;

	if (!v || !v->size)
		return tacho__made_name(d->made, TACHO_DEF_KIND, "task");
	if (v->pooled && v->pooled->user[0])
		return v->pooled->user[0];
	tacho__dial9_text(&d->wire, v, text, sizeof(text));
	text[take_place(text, &line)] = 0;
	path = short_path(text);
	snprintf(name, sizeof(name), "%.240s:%u", path, line);
	/* Where the name is the place, it is not said twice. */
	kind = path == text ? tacho__made_name(d->made, TACHO_DEF_KIND, name)
			    : tacho__made_place(d->made, TACHO_DEF_KIND, name, text, line);
	if (v->pooled)
		v->pooled->user[0] = kind;
	return kind;
}

static uint32_t place_of(struct tacho__dial9 *d, const struct tacho__dial9_value *v)
{
	char text[512];
	uint32_t line, place;

	if (!v || !v->size)
		return 0;
	if (v->pooled && v->pooled->user[1])
		return v->pooled->user[1];
	tacho__dial9_text(&d->wire, v, text, sizeof(text));
	text[take_place(text, &line)] = 0;
	place = tacho__made_place(d->made, TACHO_DEF_PLACE, "spawn", text, line);
	if (v->pooled)
		v->pooled->user[1] = place;
	return place;
}

static void put_poll(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k)
{
	uint64_t task = tacho__dial9_number(e, k, 2, 0);
	struct tacho__dial9_worker *w;
	struct tacho__dial9_thread *t;

	if (!at_worker(d, e, k, 0, &w, &t))
		return;
	run_loop(d, t, loop_of(d, w), e->ns);
	tell_queue(d, e, k, w, t);
	if (t->depth < TACHO__DIAL9_POLLS)
		t->open[t->depth++] = task;
	else
		t->lost++;
	t->ended = 0;
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_POLL_BEGIN,
			kind_of(d, tacho__dial9_get(e, k, 3)), &task, 1);
}

static void put_poll_end(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			 struct tacho__dial9_known *k)
{
	struct tacho__dial9_worker *w;
	struct tacho__dial9_thread *t;
	uint32_t result = d->tracked ? TACHO_PENDING : TACHO_UNKNOWN;

	if (!at_worker(d, e, k, 0, &w, &t))
		return;
	if (t->ended || !t->depth)
		result = t->ended ? TACHO_DONE : TACHO_UNKNOWN;
	if (t->lost)
		t->lost--;
	else if (t->depth)
		t->depth--;
	tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_POLL_END, result, NULL, 0);
	if (t->ended)
		tacho__made_put(d->made, t->thread, e->ns, TACHO_REC_TASK_END, 0, &t->ended, 1);
	t->ended = 0;
}

static void put_wake(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		     struct tacho__dial9_known *k)
{
	uint64_t task = tacho__dial9_number(e, k, 0, 0);

	if (!d->look)
		tacho__made_put(d->made, tacho__dial9_here(d), e->ns, TACHO_REC_WAKE, 0, &task, 1);
}

static void put_spawn(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		      struct tacho__dial9_known *k)
{
	const struct tacho__dial9_value *at = tacho__dial9_get(e, k, 1);
	const struct tacho__dial9_thread *t = d->look ? NULL : thread_at(d, d->owner);
	uint64_t words[3] = {0, tacho__dial9_number(e, k, 0, 0), 0};

	if (d->look)
		return;
	d->tracked = 1;
	d->spawned++;
	if (!tacho__dial9_number(e, k, 2, 1))
		d->bare++;
	words[0] = (uint64_t)place_of(d, at) << 16;
	words[2] = t && t->depth ? t->open[t->depth - 1] : 0;
	tacho__made_put(d->made, tacho__dial9_here(d), e->ns, TACHO_REC_SPAWN, kind_of(d, at),
			words, 3);
}

/* Tokio says the end of a task in its last poll, before that ends. */
static void put_terminate(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			  struct tacho__dial9_known *k)
{
	uint64_t task = tacho__dial9_number(e, k, 0, 0);
	struct tacho__dial9_thread *t = d->look ? NULL : thread_at(d, d->owner);

	if (d->look)
		return;
	d->tracked = 1;
	if (t && t->depth && t->open[t->depth - 1] == task && task)
		t->ended = task;
	else
		tacho__made_put(d->made, tacho__dial9_here(d), e->ns, TACHO_REC_TASK_END, 0, &task,
				1);
}

const struct tacho__dial9_kind tacho__dial9_tokio[] = {
	{"PollStartEvent", put_poll, {"worker_id", "local_queue", "task_id", "spawn_loc"}},
	{"PollEndEvent", put_poll_end, {"worker_id"}},
	{"WorkerParkEvent", put_park, {"worker_id", "local_queue", "cpu_time_ns", "tid"}},
	{"WorkerUnparkEvent",
	 put_unpark,
	 {"worker_id", "local_queue", "cpu_time_ns", "tid", "sched_wait_ns"}},
	{"WakeEventEvent", put_wake, {"woken_task_id"}},
	{"TaskSpawnEvent", put_spawn, {"task_id", "spawn_loc", "instrumented"}},
	{"TaskTerminateEvent", put_terminate, {"task_id"}},
	{NULL, NULL, {NULL}},
};

/* ---------------------------------------------------------------------- end */

static int by_worker_and_time(const void *a, const void *b)
{
	const struct tacho__dial9_seen *x = a, *y = b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* block_in_place moves a worker to another thread: the one before runs no loop from then on, and of
   one that never gets a worker again no more is known. */
void tacho__dial9_tokio_end(struct tacho__dial9 *d)
{
	int moves = 0;

	for (uint32_t i = 0; i < d->worker_count; i++)
		moves |= d->workers[i].moves != 0;
	if (!moves)
		return;
	TACHO__SORT(d->seen, d->seen_count, by_worker_and_time);
	for (uint32_t i = 0; i < d->seen_count; i++)
		if (d->seen[i].ns > d->threads[d->seen[i].thread].seen_ns)
			d->threads[d->seen[i].thread].seen_ns = d->seen[i].ns;
	for (uint32_t i = 1; i < d->seen_count; i++) {
		const struct tacho__dial9_seen *before = &d->seen[i - 1], *s = &d->seen[i];

		if (before->worker != s->worker || before->thread == s->thread)
			continue;
		d->moved++;
		tacho__made_put(d->made, d->threads[before->thread].thread, s->ns, TACHO_REC_LOOP,
				0, NULL, 0);
		if (d->threads[before->thread].seen_ns < s->ns)
			tacho__made_thread_ends(d->made, d->threads[before->thread].thread);
	}
}
