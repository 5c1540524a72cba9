/*
 * What came again and again, and comes no more: tasks that were woken, a timer, a descriptor.
 *
 * It came steadily and has been silent since for far longer than it ever was before, to the end of the
 * window, while the process went on. That is no chance; but it may be meant:
 *
 *   tasks        that only wait to be woken are not meant to be forgotten. A warning, unless whoever woke
 *                them waits itself for somebody to give it more.
 *   timers       may have been stopped: a note.
 *   descriptors  are ready when a peer wants something, which may want nothing any more: a note, where
 *                others still do.
 *
 * A client that goes away makes all quiet that was done for it. So nothing is said where all descriptors
 * were ready for the last time when it stopped, nor of tasks that loops wake for descriptors, nor of those
 * that are woken by others that stopped as well.
 */
#include <stdio.h>

#include "explain/rules.h"

/* When the process was used last: by peers; and that it went on. */
struct others {
	struct tacho__own_wakers wakers;
	uint64_t peers_ns; /* a descriptor was ready, other than for its end; 0: none was ever */
	uint64_t turns_ns; /* a loop came back, or something ran */
	uint64_t end_ns;   /* of the window */
};

static void take_last(uint64_t *last, uint64_t ns)
{
	if (ns > *last)
		*last = ns;
}

static struct others others_of(const struct tacho__explaining *x)
{
	struct others o = {.end_ns = x->sum->process[x->process].end_ns};

	tacho__find_own_wakers(x, &o.wakers);
	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));)
		if (!tacho__is_own_waker(&o.wakers, r->what) && r->rhythm.beats > 1)
			take_last(&o.peers_ns, r->rhythm.before_ns);
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		take_last(&o.turns_ns, l->rhythm.before_ns);
	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));)
		take_last(&o.turns_ns, k->rhythm.before_ns);
	return o;
}

/* What a rhythm was, and for how long there has been nothing. */
struct silence {
	struct tacho__rhythm r;
	double ns;
};

/* Silent for so long that what comes like that would have come. */
static int is_long(const struct tacho__rhythm *r, double ns)
{
	return ns >= tacho__silent_times * (double)r->longest_ns;
}

/* It had a rhythm, and has it no more. */
static int has_stopped(const struct tacho__explaining *x, const struct silence *s)
{
	const struct tacho__rhythm *r = &s->r;

	/* Where records are missing, it may be among them. */
	return r->beats >= tacho__rhythm_beats && tacho__rhythm_is_steady(r) && is_long(r, s->ns) &&
	       r->last_ns - r->first_ns >= tacho__rhythm_ns &&
	       s->ns >= TACHO__LIMIT(x, RHYTHM_STOPPED_NS) &&
	       x->sum->process[x->process].hole_ns <= r->last_ns;
}

/* Something else made it silent; NULL: nothing that is known. */
static const char *excuse(const struct others *o, const struct silence *s)
{
	const struct tacho__rhythm *r = &s->r;

	if ((double)o->turns_ns < (double)r->last_ns + s->ns / 2)
		return "nothing else of the process went on";
	if (o->peers_ns &&
	    (o->peers_ns < r->last_ns || !is_long(r, (double)(o->peers_ns - r->last_ns))))
		return "its peers wanted nothing any more";
	return NULL;
}

static struct silence silence_of(const struct others *o, struct tacho__rhythm r)
{
	return (struct silence){r, o->end_ns > r.last_ns ? (double)(o->end_ns - r.last_ns) : 0};
}

static struct tacho__finding *find(struct tacho__explaining *x, enum tacho__severity severity,
				   const struct others *o, const struct silence *s)
{
	struct tacho__finding *f =
		tacho__find(x, TACHO__RULE_RHYTHM_STOPPED, severity, x->process, 0);
	char ns[TACHO__TEXT], most[TACHO__TEXT];

	tacho__say_evidence(f, 0, s->r.last_ns, o->end_ns, s->ns, "ns",
			    "nothing for %s; it was never silent for longer than %s before",
			    tacho__ns_text(ns, s->ns),
			    tacho__ns_text(most, (double)s->r.longest_ns));
	tacho__say_evidence(f, 0, s->r.first_ns, s->r.last_ns, (double)s->r.beats, "times",
			    "it came %llu times, every %s", (unsigned long long)s->r.beats,
			    tacho__ns_text(ns, tacho__rhythm_pace(&s->r)));
	return f;
}

/* ------------------------------------------------------------- tasks, timers */

/* Tasks of a kind, wherever they were spawned. */
struct waiting {
	uint64_t seen, idle, ended, spawned;
	uint64_t polls, ns; /* of those that wait: between the first and the last */
	uint32_t stack;	    /* where one of them waits; 0 */
};

static struct waiting waiting_of(const struct tacho__explaining *x, uint32_t kind)
{
	struct waiting w = {0};

	for (const struct tacho__task_sum *k = NULL; (k = tacho__table_next(&x->sum->tasks, k));) {
		if (k->process != x->process || k->kind != kind)
			continue;
		w.seen += k->seen;
		w.idle += k->idle_at_end;
		w.ended += k->ended;
		w.spawned += k->spawned;
		w.polls += k->idle_polls;
		w.ns += k->idle_ns;
		if (k->idle_at_end && !w.stack)
			w.stack = k->stuck.waits_stack;
	}
	return w;
}

/* Most of them are there and wait; each ran now and then, other than what is busy for a while. */
static int are_forgotten(const struct waiting *w)
{
	return 2 * w->idle > w->seen && w->ns / tacho__kept_waiting_ns >= w->polls;
}

/* Loops say what is ready for them, or they do not. */
static int are_loops_open(const struct tacho__explaining *x)
{
	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		if (l->reports)
			return 1;
	return 0;
}

/* What wakes them is not of the program, but a peer that may want nothing any more. */
static int are_woken_from_outside(const struct tacho__explaining *x, const struct tacho__wakers *w)
{
	uint64_t outside = are_loops_open(x) ? w->for_ready : w->by_loop;

	return (double)outside > tacho__by_loop_share * (double)w->count;
}

/* About when it stopped: as far away as it may have been silent before. */
static int is_then(const struct tacho__rhythm *r, uint64_t ns)
{
	return !is_long(r, ns > r->last_ns ? (double)(ns - r->last_ns) : (double)(r->last_ns - ns));
}

/* It ended in order: what it woke, or what was woken together with it, has ended then. */
static int ended_with_others(const struct tacho__explaining *x, const struct tacho__kind_sum *k)
{
	const struct tacho__at *by = &k->wakers.last.at;

	for (const struct tacho__kind_sum *o = NULL; (o = tacho__table_next(&x->sum->kinds, o));) {
		const struct tacho__at *at = &o->wakers.last.at;
		struct waiting w;

		if (o == k || o->process != k->process || !o->wakers.last.ns ||
		    (at->kind != k->kind && (at->kind != by->kind || at->thread != by->thread)) ||
		    !is_then(&k->rhythm, o->rhythm.last_ns))
			continue;
		w = waiting_of(x, o->kind);
		if (2 * w.ended > w.seen)
			return 1;
	}
	return 0;
}

/* Who woke them last was woken no more itself. */
static int stopped_as_well(const struct tacho__explaining *x, const struct tacho__wakers *w,
			   const struct tacho__rhythm *r)
{
	const struct tacho__at *at = &w->last.at;
	const struct tacho__kind_sum *by =
		at->kind ? tacho__table_find(&x->sum->kinds, (uint64_t)at->process << 32 | at->kind,
					     0)
			 : NULL;

	return by && (by->rhythm.last_ns < r->last_ns ||
		      !is_long(r, (double)(by->rhythm.last_ns - r->last_ns)));
}

/* Whether the thread that woke them last waited most of the time since for others to give it something. */
static const struct tacho__long_wait *waits_itself(const struct tacho__explaining *x,
						   uint32_t thread, const struct silence *s)
{
	const struct tacho__long_wait *w =
		tacho__table_find(&x->gathered.long_waits, x->process, thread);
	uint64_t from = w && w->begin_ns > s->r.last_ns ? w->begin_ns : s->r.last_ns;

	return w && w->end_ns > from && (double)(w->end_ns - from) >= s->ns / 2 &&
			       !tacho__is_join(x, w->call)
		       ? w
		       : NULL;
}

/* "clock (41)", "ticker on worker (42)" */
static void waker_text(const struct tacho__explaining *x, char *out, size_t size,
		       const struct tacho__at *at)
{
	char thread[TACHO__TEXT], kind[TACHO__TEXT];

	tacho__thread_text(x, thread, at->process, at->thread);
	if (at->kind)
		snprintf(out, size, "%s on %s", tacho__id_text(x, kind, at->process, at->kind),
			 thread);
	else
		snprintf(out, size, "%s%s", thread, at->loop ? ", for a timer" : "");
}

static void say_tasks(struct tacho__explaining *x, const struct tacho__kind_sum *k,
		      const struct waiting *w, const struct others *o, const struct silence *s)
{
	const struct tacho__wake *last = &k->wakers.last;
	const struct tacho__long_wait *own =
		last->at.kind ? NULL : waits_itself(x, last->at.thread, s);
	/* Handles are no tasks that the program tells of. */
	int may_be_meant = own || !w->spawned;
	struct tacho__finding *f =
		find(x, may_be_meant ? TACHO__SEVERITY_INFO : TACHO__SEVERITY_WARNING, o, s);
	char name[TACHO__TEXT], by[3 * TACHO__TEXT], pace[TACHO__TEXT], ns[TACHO__TEXT];

	f->waiting_ns = s->ns; /* at least: that of one */
	f->kind = k->kind;
	if (last->stack)
		tacho__where_id(x, f, last->stack, last->ns);
	if (last->at.kind)
		tacho__where_id(x, f, last->at.kind, last->ns);
	if (w->stack)
		tacho__where_id(x, f, w->stack, last->ns);
	tacho__where_id(x, f, k->kind, last->ns);
	waker_text(x, by, sizeof(by), &last->at);
	tacho__say_summary(f,
			   "%s was woken every %s and has not been for %s: %llu %s, and %s, which "
			   "woke %s last, does so no more",
			   tacho__id_text(x, name, k->process, k->kind),
			   tacho__ns_text(pace, tacho__rhythm_pace(&s->r)),
			   tacho__ns_text(ns, s->ns), (unsigned long long)w->idle,
			   w->idle == 1 ? "task waits" : "tasks wait", by,
			   w->idle == 1 ? "it" : "them");
	tacho__say_evidence(f, last->at.thread, last->ns, last->begin_ns, 0, "",
			    "last woken by %s: task %llu", by, (unsigned long long)last->task);
	tacho__evidence_task(f, last->task);
	if (own)
		tacho__say_evidence(f, last->at.thread, own->begin_ns, own->end_ns,
				    (double)(own->end_ns - own->begin_ns), "ns",
				    "that thread waited itself meanwhile, %s%s",
				    own->call ? "in " : "for a condition",
				    own->call ? tacho__id_text(x, name, x->process, own->call)
					      : "");
}

static void say_timer(struct tacho__explaining *x, const struct tacho__kind_sum *k,
		      const struct others *o, const struct silence *s)
{
	struct tacho__finding *f = find(x, TACHO__SEVERITY_INFO, o, s);
	char name[TACHO__TEXT], pace[TACHO__TEXT], ns[TACHO__TEXT];

	f->kind = k->kind;
	tacho__where_id(x, f, k->kind, s->r.last_ns);
	tacho__say_summary(f, "the timer %s fired every %s and has not for %s",
			   tacho__id_text(x, name, k->process, k->kind),
			   tacho__ns_text(pace, tacho__rhythm_pace(&s->r)),
			   tacho__ns_text(ns, s->ns));
	tacho__say_advice(f, "If it was not stopped on purpose, look for a path of its callback "
			     "that does not start it again.");
}

static int is_found(const struct tacho__explaining *x, uint32_t kind)
{
	for (uint32_t i = 0; i < x->out->count; i++)
		if (x->out->findings[i].process == x->process && x->out->findings[i].kind == kind &&
		    x->out->findings[i].rule == TACHO__RULE_STUCK_TASK)
			return 1;
	return 0;
}

/* The same of tasks; "": they are none that are missed, of which nothing need be said. */
static const char *excuse_of_tasks(const struct tacho__explaining *x,
				   const struct tacho__kind_sum *k, const struct waiting *w,
				   const struct others *o, const struct silence *s)
{
	const char *why = excuse(o, s);

	/* The last must be one of those wakes. */
	if (!k->wakers.last.ns || k->wakers.last.begin_ns < k->rhythm.beat_ns ||
	    !are_forgotten(w) || is_found(x, k->kind) || are_woken_from_outside(x, &k->wakers))
		return "";
	if (!why && stopped_as_well(x, &k->wakers, &s->r))
		why = "what woke it stopped as well";
	if (!why && ended_with_others(x, k))
		why = "what it worked with has ended then";
	return why;
}

static void find_kind(struct tacho__explaining *x, const struct tacho__kind_sum *k,
		      const struct others *o)
{
	const struct silence s = silence_of(o, k->rhythm);
	int is_timer = tacho__is_timer(x, k);
	char name[TACHO__TEXT];
	struct waiting w;
	const char *why;

	if (k->counted || !has_stopped(x, &s))
		return;
	w = waiting_of(x, k->kind);
	/* Timers that were closed have ended. */
	why = !is_timer ? excuse_of_tasks(x, k, &w, o, &s) : w.idle ? excuse(o, &s) : "";
	if (!why && is_timer)
		say_timer(x, k, o, &s);
	else if (!why)
		say_tasks(x, k, &w, o, &s);
	else if (why[0])
		tacho__consider(x, TACHO__RULE_RHYTHM_STOPPED,
				tacho__id_text(x, name, k->process, k->kind), s.ns, 0, "%s", why);
}

/* -------------------------------------------------------------- descriptors */

/* Of those that stopped, the one that came most often. */
static void find_descriptor(struct tacho__explaining *x, const struct others *o)
{
	const struct tacho__ready_sum *most = NULL;
	char name[TACHO__TEXT], pace[TACHO__TEXT], ns[TACHO__TEXT];
	struct silence worst = {0};
	struct tacho__finding *f;
	uint32_t count = 0;

	for (const struct tacho__ready_sum *r = NULL; (r = tacho__table_next(&x->sum->ready, r));) {
		const struct silence s = silence_of(o, tacho__rhythm_without_end(&r->rhythm));

		if (tacho__is_own_waker(&o->wakers, r->what) || !has_stopped(x, &s) ||
		    excuse(o, &s))
			continue;
		count++;
		if (!most || s.r.beats > worst.r.beats) {
			most = r;
			worst = s;
		}
	}
	if (!most)
		return;
	f = find(x, TACHO__SEVERITY_INFO, o, &worst);
	f->loop = most->loop;
	snprintf(name, sizeof(name), most->what >> 63 ? "0x%llx in the epoll data" : "%llu",
		 (unsigned long long)(most->what << 1 >> 1));
	tacho__say_summary(f,
			   "descriptor %s was ready every %s and has not been for %s, while others "
			   "still are",
			   name, tacho__ns_text(pace, tacho__rhythm_pace(&worst.r)),
			   tacho__ns_text(ns, worst.ns));
	tacho__say_advice(f, "Its peer sends nothing any more: if it should, look there; and give "
			     "the connection a time-out, so that the program notices.");
	if (count > 1)
		tacho__say_evidence(f, 0, worst.r.last_ns, o->end_ns, count, "descriptors",
				    "%u descriptors became silent like that", count);
}

void tacho__rules_rhythm(struct tacho__explaining *x)
{
	const struct others o = others_of(x);

	for (const struct tacho__kind_sum *k = NULL; (k = tacho__table_next(&x->sum->kinds, k));)
		if (k->kind && k->process == x->process)
			find_kind(x, k, &o);
	find_descriptor(x, &o);
}
