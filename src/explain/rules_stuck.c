/* What has not come back when the records end: loops, and threads that wait for each other. */
#include <string.h>

#include "explain/chain.h"

/* Of threads by the kernel's number: the one that ran last; 0: none is known. */
static uint32_t thread_of_tid(const struct tacho__explaining *x, uint32_t process, uint32_t tid)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < tacho_read_thread_count(x->reader); i++) {
		const struct tacho_thread *t = tacho_read_thread(x->reader, i);

		if (t->process == process && t->tid == tid && t->number > number)
			number = t->number;
	}
	return number;
}

/* What the thread waits for, if it is known who has that. */
static const struct tacho__lock *stuck_at(const struct tacho__explaining *x, uint32_t process,
					  uint32_t thread)
{
	const struct tacho__gathered *g = &x->gathered;

	for (uint32_t i = 0; i < g->stuck_count; i++)
		if (g->stuck[i].at.process == process && g->stuck[i].at.thread == thread)
			return &g->stuck[i];
	return NULL;
}

static void say_owner(struct tacho__explaining *x, struct tacho__finding *f,
		      const struct tacho__lock *l)
{
	uint32_t owner = l->owner ? thread_of_tid(x, l->at.process, l->owner) : 0;
	char name[TACHO__TEXT];

	if (owner)
		tacho__say_evidence(f, owner, l->begin_ns, l->end_ns, 0, "",
				    "the lock was held by %s",
				    tacho__thread_text(x, name, l->at.process, owner));
	else if (l->owner)
		tacho__say_evidence(f, 0, l->begin_ns, l->end_ns, 0, "",
				    "the lock was held by thread %u, which recorded nothing",
				    l->owner);
}

/* ---------------------------------------------------------------- deadlocks */

#define CYCLE_MAX 16u

/*
 * The waits that lead from `first` by way of who has what is waited for back to it; how many, 0: they
 * do not. A cycle is found once, from the one of its threads with the lowest number.
 */
static uint32_t cycle_of(const struct tacho__explaining *x, const struct tacho__lock *first,
			 const struct tacho__lock *cycle[CYCLE_MAX])
{
	const struct tacho__lock *l = first;

	for (uint32_t n = 0; n < CYCLE_MAX; n++) {
		uint32_t owner = thread_of_tid(x, l->at.process, l->owner);

		cycle[n] = l;
		if (owner == first->at.thread)
			return n + 1;
		l = owner ? stuck_at(x, l->at.process, owner) : NULL;
		if (!l || l->at.thread < first->at.thread)
			return 0;
	}
	return 0;
}

static void find_deadlock(struct tacho__explaining *x, const struct tacho__lock *first)
{
	const struct tacho__lock *cycle[CYCLE_MAX], *last = first;
	uint32_t n = cycle_of(x, first, cycle), begin = 0;
	char one[TACHO__TEXT], other[TACHO__TEXT], ns[TACHO__TEXT];
	struct tacho__finding *f;
	double waited;

	/* The wait that closed the circle. */
	for (uint32_t i = 0; i < n; i++)
		if (cycle[i]->begin_ns > last->begin_ns)
			last = cycle[i];
	waited = (double)(last->end_ns - last->begin_ns);
	if (!n || tacho__below(x, TACHO__RULE_DEADLOCK, "threads wait for each other", waited,
			       waited, TACHO__LIMIT_DEADLOCK_NS))
		return;
	f = tacho__find(x, TACHO__RULE_DEADLOCK, TACHO__SEVERITY_CRITICAL, first->at.process,
			waited);
	/* What users miss is a loop. */
	while (begin + 1 < n && !cycle[begin]->at.loop)
		begin++;
	begin = cycle[begin]->at.loop ? begin : 0;
	first = cycle[begin];
	f->lock = first->lock;
	f->thread = first->at.thread;
	f->loop = first->at.loop;
	tacho__thread_text(x, one, first->at.process, first->at.thread);
	tacho__ns_text(ns, waited);
	if (n == 1)
		tacho__say_summary(f, "thread %s has waited for %s for a lock that it holds itself",
				   one, ns);
	else
		tacho__say_summary(f,
				   "thread %s and %s wait for each other's locks, for %s: neither "
				   "will ever go on",
				   one,
				   n > 2 ? "others"
					 : tacho__thread_text(x, other, first->at.process,
							      cycle[(begin + 1) % n]->at.thread),
				   ns);
	if (n == 1)
		tacho__say_advice(
			f, "Make the mutex recursive, or do not lock it again where it is held.");
	for (uint32_t i = 0; i < n; i++) {
		const struct tacho__lock *l = cycle[(begin + i) % n];
		uint32_t before = f->where_count;

		/* One place of each thread. */
		tacho__where_id(x, f, l->stack ? l->stack : l->place, l->end_ns);
		if (f->where_count > before + 1)
			f->where_count = before + 1;
		tacho__say_evidence(f, l->at.thread, l->begin_ns, l->end_ns,
				    (double)(l->end_ns - l->begin_ns), "ns",
				    "thread %s waits for lock 0x%llx, held by thread %u",
				    tacho__thread_text(x, one, l->at.process, l->at.thread),
				    (unsigned long long)l->lock, l->owner);
	}
}

/* -------------------------------------------------------------- open polls */

/* A thread that waits for the end of another has left its loop. */
int tacho__is_join(const struct tacho__explaining *x, uint32_t call)
{
	char name[TACHO__TEXT];

	return call && strstr(tacho__id_text(x, name, x->process, call), "join") != NULL;
}

/* Of all threads that share the loop: one of many has few of its own. */
static uint64_t turns_of(const struct tacho__explaining *x, const struct tacho__loop_sum *of)
{
	uint64_t turns = 0;

	for (const struct tacho__loop_sum *l = NULL; (l = tacho__table_next(&x->sum->loops, l));)
		turns += l->process == of->process && l->loop == of->loop ? l->turns : 0;
	return turns;
}

/*
 * Whether a thread that is in no wait has left its loop and does something else: it was a loop
 * only briefly, or it idles. Only asked where callbacks are not seen, as callbacks belong to a loop.
 */
static int has_left_loop(const struct tacho__explaining *x, const struct tacho__open_poll *o,
			 double ns)
{
	const struct tacho__poll *p = &o->poll;
	const struct tacho__loop_sum *l = tacho__table_find(
		&x->sum->loops, (uint64_t)p->at.process << 32 | p->at.loop, p->at.thread);
	const struct tacho__lock_sum *k =
		o->lock.cut ? tacho__table_find(&x->sum->locks, p->at.process, o->lock.lock) : NULL;

	if (p->kind)
		return 0;
	/* What keeps one client may take as long as that likes. */
	if ((l && l->serves_one) || (k && k->is_signal) ||
	    (o->lock.cut && tacho__idles(x->reader, &o->lock)) ||
	    (o->call.cut && tacho__is_join(x, o->call.name)))
		return 1;
	return !l || turns_of(x, l) < tacho__loop_turns ||
	       ns < tacho__far_times * (double)l->ns.most;
}

/* By what the process was stopped for most of this time, until the end or shortly before; NULL: it
   was not. */
static const char *is_stopped(const struct tacho__explaining *x, uint64_t from, uint64_t to)
{
	const struct tacho__ledger_stops *s = &x->out->ledger->stops[x->process];
	uint64_t begin = s->from_ns > from ? s->from_ns : from, end = s->to_ns < to ? s->to_ns : to;

	return s->count && end > begin && end - begin >= (to - from) / 2
		       ? tacho__stopped_by(s->reason)
		       : NULL;
}

/* The place of who has the lock is to blame; that of who waits for it stands behind. NULL: what that one is
   in is not known. */
static const struct tacho__at_end *
find_holder(struct tacho__explaining *x, struct tacho__finding *f, const struct tacho__lock *l)
{
	const struct tacho__at_end *e = tacho__chain_open(x, f, l);
	const struct tacho__place *did = &f->parts[f->part_count - 1].place;

	if (e && e->in == TACHO__IN_LOCK)
		e = NULL;
	if (e && (did->function[0] || did->address))
		f->where[f->where_count++] = *did;
	tacho__where_id(x, f, l->stack ? l->stack : l->place, l->end_ns);
	return e;
}

static void say_held(struct tacho__explaining *x, struct tacho__finding *f,
		     const struct tacho__at_end *holder, const char *callback, double ns)
{
	const struct tacho__part *did = &f->parts[f->part_count - 1];
	char text[TACHO__TEXT], thread[TACHO__TEXT], where[2 * TACHO__TEXT] = "";

	if (did->place.function[0] || did->place.address)
		tacho__place_text(where, &did->place);
	tacho__say_summary(f,
			   "%s has not come back for %s: it waits for a lock that %s holds, %s%s%s",
			   callback, tacho__ns_text(text, ns),
			   tacho__thread_text(x, thread, f->process, holder->thread), did->what,
			   where[0] ? " at " : "", where);
	tacho__say_advice(
		f, "The holder is %s%s%s: give that a time-out, or release the lock before it.",
		did->what, where[0] ? " at " : "", where);
}

/* A poll that does not end, of a process that has not ended in order. */
static void find_open(struct tacho__explaining *x, const struct tacho__open_poll *o)
{
	const struct tacho__poll *p = &o->poll;
	const struct tacho_process *process = tacho_read_process(x->reader, p->at.process);
	uint64_t end_ns = p->end_ns;
	char text[TACHO__TEXT], name[TACHO__TEXT], call[TACHO__TEXT], where[2 * TACHO__TEXT];
	const struct tacho__at_end *holder = NULL;
	struct tacho__hottest h;
	const char *stopped;
	struct tacho__finding *f;
	int waits = o->lock.begin_ns && o->lock.cut, calls = o->call.cut && !waits, runs, sampled;
	double ns;

	/* One that exited had come back, or out of its loop. */
	if (!process || process->state == TACHO_STATE_STOPPED ||
	    process->end_how == TACHO_END_EXITED ||
	    p->end_ns < x->sum->process[p->at.process].end_ns)
		return;
	/* A process that hangs records nothing: it did so until the window was taken from it. */
	if (process->end_how == TACHO_END_UNTOLD && process->alive == TACHO_ALIVE_YES &&
	    process->taken_mono_ns > end_ns)
		end_ns = process->taken_mono_ns;
	ns = (double)(end_ns - p->begin_ns);
	sampled = tacho__find_hottest(x, p->at.process, &o->samples, p->end_ns, p->kind != 0, &h);
	stopped = is_stopped(x, p->begin_ns, end_ns);
	waits &= !stopped;
	calls &= !stopped;
	runs = sampled && !stopped && !waits && !calls &&
	       (double)p->spent.sample_ns >= tacho__seen_share * ns;
	tacho__callback_text(x, name, p);
	if (tacho__below(x, runs ? TACHO__RULE_NEVER_YIELDS : TACHO__RULE_HANG, name, ns, ns,
			 runs ? TACHO__LIMIT_NEVER_YIELDS_NS : TACHO__LIMIT_HANG_NS))
		return;
	if (has_left_loop(x, o, ns)) {
		tacho__consider(x, runs ? TACHO__RULE_NEVER_YIELDS : TACHO__RULE_HANG, name, ns, 0,
				"its thread seems to have left the loop");
		return;
	}
	f = tacho__find(x, runs ? TACHO__RULE_NEVER_YIELDS : TACHO__RULE_HANG,
			TACHO__SEVERITY_CRITICAL, p->at.process, ns);
	x->seen_ns = end_ns > x->seen_ns ? end_ns : x->seen_ns;
	f->loop = p->at.loop;
	f->kind = p->kind;
	f->thread = p->at.thread;
	if (waits)
		holder = find_holder(x, f, &o->lock);
	else if (calls)
		tacho__where_code(x, f, o->call.code, p->end_ns);
	else if (sampled)
		tacho__where_hottest(x, f, &h, p->end_ns);
	if (!f->where_count && p->kind)
		tacho__where_id(x, f, p->kind, p->end_ns);
	tacho__say_summary(f, "%s has not come back for %s: %s%s%s%s%s%s",
			   tacho__callback_text(x, name, p), tacho__ns_text(text, ns),
			   stopped ? "the process was stopped by " : "it ",
			   stopped ? stopped
			   : waits ? "waits for a lock"
			   : runs  ? "still runs"
				   : "is blocked",
			   calls ? " in " : "",
			   calls ? tacho__id_text(x, call, p->at.process, o->call.name) : "",
			   !f->where_count ? ""
			   : calls	   ? ", called in "
					   : " in ",
			   f->where_count ? tacho__where_text(where, f) : "");
	if (stopped)
		tacho__say_advice(f, "It was not continued: look for who stopped it.");
	else if (holder)
		say_held(x, f, holder, name, ns);
	else if (waits)
		tacho__say_advice(f, "Find who holds this lock; two threads that take the same two "
				     "locks in different order wait for each other for ever.");
	else if (calls)
		tacho__say_advice(f, "Give it a time-out, or make the descriptor non-blocking and "
				     "let the loop wait for it.");
	else if (!runs && !p->kind)
		tacho__say_advice(f, "%s A thread that has left its loop for good looks the same.",
				  tacho__rules[TACHO__RULE_HANG].advice);
	tacho__say_evidence(f, p->at.thread, p->begin_ns, end_ns, ns, "ns",
			    "no return to the loop since then");
	if (waits)
		say_owner(x, f, &o->lock);
}

void tacho__rules_stuck(struct tacho__explaining *x)
{
	for (uint32_t i = 0; i < x->gathered.stuck_count; i++)
		find_deadlock(x, &x->gathered.stuck[i]);
	for (const struct tacho__open_poll *o = NULL;
	     (o = tacho__table_next(&x->gathered.open, o));)
		find_open(x, o);
}
