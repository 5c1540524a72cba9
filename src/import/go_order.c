/* The events of a generation of a Go trace in their order, and what they do to the state (go.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/go.h"
#include "read/memory.h"

/* Ms whose next events are looked at when the earliest does not fit: more are not had by programs,
   and each look sorts them. */
#define FRONTIER_MAX 2048u

struct cursor {
	uint64_t m;
	uint32_t batch, batch_end; /* those of the M that are left */
	const uint8_t *at, *end;   /* of the batch before `batch` */
	uint64_t ticks;
	struct go_event event;
};

struct ordering {
	struct go *go;
	struct cursor *cursors;
	struct cursor **heap; /* by the time of the next event */
	uint32_t count;
	uint32_t sample;
	uint64_t multiply; /* ns of a tick; 0: it is no whole number */
};

static uint64_t to_ns(const struct ordering *o, uint64_t ticks)
{
	unsigned __int128 ns;

	if (o->multiply && ticks <= INT64_MAX / o->multiply)
		return ticks * o->multiply;
	ns = (unsigned __int128)ticks * 1000000000u / o->go->now.frequency;
	/* A time that no clock had must leave room for those after it. */
	return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

/* ----------------------------------------------------------------- cursors */

static int read_event(const struct ordering *o, struct cursor *c)
{
	struct go_event *e = &c->event;
	unsigned type = *c->at++, count = go_arguments(o->go->version, type);
	uint64_t ticks;

	if (!count || !go_number(&c->at, c->end, &ticks))
		return 0;
	for (unsigned i = 0; i + 1 < count; i++)
		if (!go_number(&c->at, c->end, &e->args[i]))
			return 0;
	c->ticks += ticks;
	e->type = (uint8_t)type;
	e->ns = to_ns(o, c->ticks);
	return 1;
}

/* 0: the M has no more. */
static int next_event(const struct ordering *o, struct cursor *c)
{
	const struct go_generation *g = &o->go->now;

	for (;;) {
		while (c->at == c->end) {
			if (c->batch == c->batch_end)
				return 0;
			c->at = g->bytes.data + g->batches[c->batch].at;
			c->end = c->at + g->batches[c->batch].size;
			c->ticks = g->batches[c->batch].time;
			c->batch++;
		}
		if (read_event(o, c))
			return 1;
		/* Events have no length: what follows in the batch cannot be made out. */
		o->go->unread++;
		c->at = c->end;
	}
}

static int earlier(const struct cursor *a, const struct cursor *b)
{
	return a->event.ns < b->event.ns;
}

static void sift_down(struct ordering *o, uint32_t i)
{
	for (;;) {
		uint32_t least = i, left = 2 * i + 1;
		struct cursor *swap = o->heap[i];

		for (uint32_t k = left; k < o->count && k < left + 2; k++)
			if (earlier(o->heap[k], o->heap[least]))
				least = k;
		if (least == i)
			return;
		o->heap[i] = o->heap[least];
		o->heap[least] = swap;
		i = least;
	}
}

static void sift_up(struct ordering *o, uint32_t i)
{
	while (i && earlier(o->heap[i], o->heap[(i - 1) / 2])) {
		struct cursor *swap = o->heap[i];

		o->heap[i] = o->heap[(i - 1) / 2];
		i = (i - 1) / 2;
		o->heap[i] = swap;
	}
}

static int compare_cursors(const void *va, const void *vb)
{
	const struct cursor *const *a = va, *const *b = vb;

	return earlier(*a, *b) ? -1 : earlier(*b, *a);
}

static int compare_batches(const void *va, const void *vb)
{
	const struct go_batch *a = va, *b = vb;

	return a->m < b->m ? -1 : a->m > b->m;
}

static int compare_samples(const void *va, const void *vb)
{
	const struct go_sample *a = va, *b = vb;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* A cursor for each M, whose batches stand one after the other then. */
static int begin(struct ordering *o)
{
	struct go_generation *g = &o->go->now;
	uint32_t ms = 0;

	TACHO__SORT(g->batches, g->batch_count, compare_batches);
	TACHO__SORT(g->samples, g->sample_count, compare_samples);
	o->cursors = calloc((size_t)g->batch_count + 1, sizeof(*o->cursors));
	o->heap = calloc((size_t)g->batch_count + 1, sizeof(*o->heap));
	if (!o->cursors || !o->heap)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->batch_count; i++) {
		struct cursor *c;

		if (!i || g->batches[i].m != g->batches[i - 1].m)
			o->cursors[ms++] =
				(struct cursor){.m = g->batches[i].m, .batch = i, .batch_end = i};
		c = &o->cursors[ms - 1];
		c->batch_end++;
	}
	for (uint32_t i = 0; i < ms; i++)
		if (next_event(o, &o->cursors[i])) {
			o->heap[o->count++] = &o->cursors[i];
			sift_up(o, o->count - 1);
		}
	return 0;
}

/* ------------------------------------------------------------------ states */

/* One event of one M. What does not fit waits, unless it is `forced`. */
struct step {
	struct go *go;
	struct go_m *m;
	const struct go_event *e;
	int forced;
};

/* Both return whether the step may go on: what should be so is not. */
static int must(struct step *s, int fits)
{
	if (!fits)
		s->go->forced++;
	return 1;
}

static int waits(const struct step *s, int fits)
{
	return !fits && !s->forced;
}

static int follows(const struct step *s, uint64_t generation, uint64_t seq, uint64_t next)
{
	return generation == s->go->now.number && next == seq + 1;
}

static struct go_p *p_of(const struct step *s)
{
	return s->m->p == GO_NONE ? NULL : go_p(s->go, s->m->p);
}

static struct go_g *g_of(const struct step *s)
{
	return go_g_find(s->go, s->m->g);
}

/* The M has the P, and nobody else. */
static void bind_p(struct step *s, struct go_p *p)
{
	if (s->m->p != GO_NONE && s->m->p != p->id) {
		struct go_p *old = p_of(s);

		if (old && must(s, 0)) {
			old->status = GO_P_IDLE;
			go_tell_park(s->go, old, s->e->ns);
		}
	}
	s->m->p = p->id;
}

static int proc_status(struct step *s)
{
	struct go_p *p = go_p(s->go, s->e->args[0]);
	uint64_t status = s->e->args[1];

	if (!p || status < GO_P_RUNNING || status > GO_P_ABANDONED)
		return must(s, 0);
	if (!(status == GO_P_ABANDONED && p->status >= GO_P_SYSCALL)) {
		must(s, !p->status || p->status == status);
		p->status = (uint8_t)status;
	}
	p->generation = s->go->now.number;
	p->seq = 0;
	if (status == GO_P_RUNNING || status == GO_P_SYSCALL)
		bind_p(s, p);
	go_tell_proc(s->go, p, s->e->ns);
	return 1;
}

static int proc_start(struct step *s)
{
	struct go_p *p = go_p(s->go, s->e->args[0]);

	if (!p)
		return must(s, 0);
	if (waits(s, p->status == GO_P_IDLE && s->m->p == GO_NONE &&
			     follows(s, p->generation, p->seq, s->e->args[1])))
		return 0;
	bind_p(s, p);
	p->status = GO_P_RUNNING;
	p->generation = s->go->now.number;
	p->seq = s->e->args[1];
	go_tell_unpark(s->go, p, s->e->ns);
	return 1;
}

static int proc_stop(struct step *s)
{
	struct go_p *p = p_of(s);

	if (!p)
		return must(s, 0);
	must(s, p->status == GO_P_RUNNING || p->status == GO_P_SYSCALL);
	p->status = GO_P_IDLE;
	s->m->p = GO_NONE;
	go_tell_park(s->go, p, s->e->ns);
	return 1;
}

static int proc_steal(struct step *s)
{
	struct go_p *p = go_p(s->go, s->e->args[0]);
	uint64_t self = s->m->id;
	struct go_m *victim;
	uint8_t was;

	if (!p)
		return must(s, 0);
	was = p->status;
	if (waits(s, (was == GO_P_SYSCALL || was == GO_P_ABANDONED) &&
			     follows(s, p->generation, p->seq, s->e->args[1])))
		return 0;
	p->status = GO_P_IDLE;
	p->generation = s->go->now.number;
	p->seq = s->e->args[1];
	go_tell_park(s->go, p, s->e->ns);
	if (was == GO_P_ABANDONED)
		return 1;
	victim = go_m(s->go, s->e->args[2]);
	s->m = go_m(s->go, self);
	if (victim && must(s, victim->p == p->id) && victim->p == p->id)
		victim->p = GO_NONE;
	return 1;
}

/* A goroutine that sits in a system call on another M, whose state this may be the first to tell. */
static void bind_syscall(struct step *s, struct go_g *g, uint64_t m)
{
	uint64_t self = s->m->id;
	struct go_m *other = m == GO_NONE ? NULL : go_m(s->go, m);

	s->m = go_m(s->go, self);
	if (other && other->g != g->id) {
		must(s, other->g == GO_NONE);
		other->g = g->id;
	}
}

static int go_status(struct step *s)
{
	struct go_g *g = go_g(s->go, s->e->args[0]);
	uint64_t status = s->e->args[2];
	uint64_t stack = s->e->type == GO_STATUS_STACK ? s->e->args[3] : 0;
	int is_new;

	if (!g || status < GO_G_RUNNABLE || status > GO_G_WAITING)
		return must(s, 0);
	is_new = !g->status;
	must(s, is_new ? s->go->now.number == s->go->first_generation : g->status == status);
	g->status = (uint8_t)status;
	g->generation = s->go->now.number;
	g->seq = 0;
	if (status == GO_G_RUNNING) {
		s->m->g = g->id;
		if (is_new)
			go_tell_running(s->go, p_of(s), g, s->e->ns);
	} else if (status == GO_G_SYSCALL) {
		bind_syscall(s, g, s->e->args[1]);
		if (is_new && s->m->g == g->id)
			go_tell_running(s->go, p_of(s), g, s->e->ns);
	}
	if (is_new || stack)
		go_tell_waiting(s->go, p_of(s), g, s->e->ns, stack);
	return 1;
}

static int go_create(struct step *s)
{
	struct go_g *g = go_g(s->go, s->e->args[0]);

	if (!g)
		return must(s, 0);
	must(s, !g->status && s->m->p != GO_NONE);
	g->status = s->e->type == GO_CREATE_BLOCKED ? GO_G_WAITING : GO_G_RUNNABLE;
	g->generation = s->go->now.number;
	g->seq = 0;
	go_tell_create(s->go, p_of(s), s->e, g, s->m->g);
	return 1;
}

static int go_create_syscall(struct step *s)
{
	struct go_g *g = go_g(s->go, s->e->args[0]);

	if (!g)
		return must(s, 0);
	must(s, !g->status && s->m->g == GO_NONE);
	g->status = GO_G_SYSCALL;
	g->generation = s->go->now.number;
	g->seq = 0;
	s->m->g = g->id;
	return 1;
}

static int go_start(struct step *s)
{
	struct go_g *g = go_g(s->go, s->e->args[0]);

	if (!g)
		return must(s, 0);
	if (waits(s,
		  g->status == GO_G_RUNNABLE && follows(s, g->generation, g->seq, s->e->args[1])))
		return 0;
	must(s, s->m->g == GO_NONE && s->m->p != GO_NONE);
	g->status = GO_G_RUNNING;
	g->generation = s->go->now.number;
	g->seq = s->e->args[1];
	s->m->g = g->id;
	go_tell_start(s->go, p_of(s), g, s->e->ns);
	return 1;
}

static int go_leave(struct step *s)
{
	struct go_g *g = g_of(s);
	struct go_p *p = p_of(s);

	if (!g)
		return must(s, 0);
	must(s, p && g->status == GO_G_RUNNING);
	s->m->g = GO_NONE;
	switch (s->e->type) {
	case GO_DESTROY:
		go_tell_destroy(s->go, p, g, s->e->ns);
		go_g_remove(s->go, g);
		break;
	case GO_STOP:
		g->status = GO_G_RUNNABLE;
		go_tell_stop(s->go, p, g, s->e);
		break;
	default:
		g->status = GO_G_WAITING;
		go_tell_block(s->go, p, g, s->e->ns, go_string(&s->go->now, s->e->args[0]),
			      s->e->args[1]);
		break;
	}
	return 1;
}

static int go_unblock(struct step *s)
{
	struct go_g *g = go_g(s->go, s->e->args[0]);

	if (!g)
		return must(s, 0);
	if (waits(s, g->status == GO_G_WAITING && follows(s, g->generation, g->seq, s->e->args[1])))
		return 0;
	g->status = GO_G_RUNNABLE;
	g->generation = s->go->now.number;
	g->seq = s->e->args[1];
	go_tell_wake(s->go, p_of(s), g, s->e->ns, s->e->args[2]);
	return 1;
}

/* Three in one: the next is woken, this one waits or ends, and the next runs here. */
static int go_switch(struct step *s)
{
	struct go_g *next = go_g(s->go, s->e->args[0]), *g = g_of(s);
	struct go_p *p = p_of(s);

	if (!next)
		return must(s, 0);
	if (waits(s, next->status == GO_G_WAITING &&
			     follows(s, next->generation, next->seq, s->e->args[1])))
		return 0;
	must(s, g && p && g->status == GO_G_RUNNING);
	next->status = GO_G_RUNNING;
	next->generation = s->go->now.number;
	next->seq = s->e->args[1];
	go_tell_wake(s->go, p, next, s->e->ns, 0);
	if (g && g != next && s->e->type == GO_SWITCH) {
		g->status = GO_G_WAITING;
		go_tell_block(s->go, p, g, s->e->ns, "coroutine switch", 0);
	} else if (g && g != next) {
		go_tell_destroy(s->go, p, g, s->e->ns);
		go_g_remove(s->go, g);
	}
	s->m->g = next->id;
	go_tell_start(s->go, p, next, s->e->ns);
	return 1;
}

static int go_syscall_begin(struct step *s)
{
	struct go_g *g = g_of(s);
	struct go_p *p = p_of(s);

	if (!g || !p)
		return must(s, 0);
	must(s, g->status == GO_G_RUNNING && follows(s, p->generation, p->seq, s->e->args[0]));
	g->status = GO_G_SYSCALL;
	p->status = GO_P_SYSCALL;
	p->generation = s->go->now.number;
	p->seq = s->e->args[0];
	go_tell_syscall(s->go, p, g, s->e);
	return 1;
}

static int go_syscall_end(struct step *s)
{
	struct go_g *g = g_of(s);
	struct go_p *p = p_of(s);

	if (!g || !p)
		return must(s, 0);
	must(s, g->status == GO_G_SYSCALL && p->status == GO_P_SYSCALL);
	g->status = GO_G_RUNNING;
	p->status = GO_P_RUNNING;
	go_tell_syscall_end(s->go, p, g, s->e->ns);
	return 1;
}

static int go_syscall_end_blocked(struct step *s)
{
	struct go_g *g = g_of(s);
	struct go_p *p = p_of(s);

	if (waits(s, !p || p->status != GO_P_SYSCALL))
		return 0;
	if (!g)
		return must(s, 0);
	must(s, g->status == GO_G_SYSCALL);
	g->status = GO_G_RUNNABLE;
	g->syscall_ns = 0;
	s->m->g = GO_NONE;
	go_tell_wake(s->go, p, g, s->e->ns, 0);
	return 1;
}

static int go_destroy_syscall(struct step *s)
{
	struct go_g *g = g_of(s);
	struct go_p *p = p_of(s);

	if (!g)
		return must(s, 0);
	must(s, g->status == GO_G_SYSCALL);
	go_tell_destroy(s->go, p, g, s->e->ns);
	go_g_remove(s->go, g);
	s->m->g = GO_NONE;
	if (p) {
		p->status = GO_P_ABANDONED;
		s->m->p = GO_NONE;
		go_tell_park(s->go, p, s->e->ns);
	}
	return 1;
}

static int gc(struct step *s)
{
	struct go *go = s->go;
	uint64_t seq = s->e->args[0];

	if (waits(s, !go->gc_state || seq == go->gc_seq + 1))
		return 0;
	go->gc_seq = seq;
	go->gc_state = s->e->type == GO_GC_END ? 2 : 1;
	go_tell_other(go, p_of(s), g_of(s), s->e);
	return 1;
}

static int other(struct step *s)
{
	go_tell_other(s->go, p_of(s), g_of(s), s->e);
	return 1;
}

static int advance(struct step *s)
{
	switch (s->e->type) {
	case GO_PROC_STATUS:
		return proc_status(s);
	case GO_PROC_START:
		return proc_start(s);
	case GO_PROC_STOP:
		return proc_stop(s);
	case GO_PROC_STEAL:
		return proc_steal(s);
	case GO_STATUS:
	case GO_STATUS_STACK:
		return go_status(s);
	case GO_CREATE:
	case GO_CREATE_BLOCKED:
		return go_create(s);
	case GO_CREATE_SYSCALL:
		return go_create_syscall(s);
	case GO_START:
		return go_start(s);
	case GO_DESTROY:
	case GO_STOP:
	case GO_BLOCK:
		return go_leave(s);
	case GO_UNBLOCK:
		return go_unblock(s);
	case GO_SWITCH:
	case GO_SWITCH_DESTROY:
		return go_switch(s);
	case GO_SYSCALL_BEGIN:
		return go_syscall_begin(s);
	case GO_SYSCALL_END:
		return go_syscall_end(s);
	case GO_SYSCALL_END_BLOCKED:
		return go_syscall_end_blocked(s);
	case GO_DESTROY_SYSCALL:
		return go_destroy_syscall(s);
	case GO_GC_ACTIVE:
	case GO_GC_BEGIN:
	case GO_GC_END:
		return gc(s);
	default:
		return other(s);
	}
}

/* ------------------------------------------------------------------- order */

/* Tells the next event of the M at `i` of the heap: 1, or 0 when it does not fit; -ENOMEM. */
static int try_at(struct ordering *o, uint32_t i, int forced)
{
	struct cursor *c = o->heap[i];
	struct go *go = o->go;
	/* The reader of Go itself lets no two events have one time. */
	struct go_event e = c->event;
	struct step s = {.go = go, .m = go_m(go, c->m), .e = &e, .forced = forced};

	if (!s.m)
		return -ENOMEM;
	if (e.ns <= go->last_ns)
		e.ns = go->last_ns + 1;
	if (!advance(&s))
		return 0;
	go->last_ns = e.ns;
	go->counts[e.type]++;
	if (next_event(o, c)) {
		sift_down(o, i);
		sift_up(o, i);
	} else {
		o->heap[i] = o->heap[--o->count];
		if (i < o->count) {
			sift_down(o, i);
			sift_up(o, i);
		}
	}
	return 1;
}

/* The earliest that fits; where none does, the earliest. */
static int tell_next(struct ordering *o)
{
	int done = try_at(o, 0, 0);

	if (done || o->count > FRONTIER_MAX) {
		o->go->forced += !done;
		return done ? done : try_at(o, 0, 1);
	}
	TACHO__SORT(o->heap, o->count, compare_cursors);
	for (uint32_t i = 1; !done && i < o->count; i++)
		done = try_at(o, i, 0);
	if (done)
		return done;
	o->go->forced++;
	return try_at(o, 0, 1);
}

static void tell_sample(struct ordering *o)
{
	struct go *go = o->go;
	const struct go_sample *s = &go->now.samples[o->sample++];
	uint64_t ns = to_ns(o, s->time);

	if (ns <= go->last_ns)
		ns = go->last_ns + 1;
	go->last_ns = ns;
	go->counts[GO_CPU_SAMPLE]++;
	go_tell_sample(go, s, ns);
}

int go_order(struct go *go)
{
	struct ordering o = {.go = go};
	int err;

	if (1000000000u % go->now.frequency == 0)
		o.multiply = 1000000000u / go->now.frequency;
	err = begin(&o);
	while (err >= 0 && !tacho__made_error(go->made) &&
	       (o.count || o.sample < go->now.sample_count)) {
		if (o.sample < go->now.sample_count &&
		    (!o.count || to_ns(&o, go->now.samples[o.sample].time) < o.heap[0]->event.ns))
			tell_sample(&o);
		else
			err = tell_next(&o);
	}
	free(o.cursors);
	free(o.heap);
	return err < 0 ? err : 0;
}
