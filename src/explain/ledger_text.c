/* Names and places of owners; and which of a thread's waits is where it waits for work. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "explain/ledger_book.h"
#include "model/judgement.h"

#define LEAST_WAITS 3u /* to be where a thread waits for work */

const char *tacho__owns_name(enum tacho__owns owns)
{
	static const char *const names[TACHO__OWNS_COUNT] = {
		"",	   "idle",     "late",	      "code",
		"call",	   "lock",     "descheduled", "throttled",
		"stopped", "faulting", "recorder",    "not observed"};

	return names[owns];
}

const char *tacho__ledger_reason(enum tacho__owns_reason reason)
{
	static const char *const texts[] = {
		"",
		"woken, and others ran",
		"woken, and held back by a CPU quota",
		"overslept: the process did not run",
		"a timer was due",
		"something was woken, and it had not come back yet",
		"recording was paused",
		"records are missing",
		"before its first record, or after its last",
		"more owners than are told apart",
		"by a signal",
		"by a debugger",
		"by the freezer of its cgroup",
	};

	return texts[reason];
}

const struct tacho__owned *tacho__ledger_owned(const struct tacho__ledger *l,
					       const struct tacho__ledger_line *line)
{
	return line->owned ? tacho__owned_at(l, line->owned - 1) : &l->threads[line->thread].rest;
}

static const struct tacho__function *function_of(const struct tacho__ledger *l,
						 const struct tacho__ledger_line *line)
{
	return line->function ? tacho__table_at(&l->functions, line->function - 1) : NULL;
}

static void code_key(const struct tacho__ledger *l, const struct tacho__owned *o, char *out,
		     size_t size)
{
	uint64_t ns = o->last_ns;
	char name[160];

	if (o->kind) {
		tacho__name_of(out, size, l->reader, o->process, o->kind, ns);
		return;
	}
	tacho__name_of(name, sizeof(name), l->reader, o->process, o->loop, ns);
	if (o->loop)
		snprintf(out, size, "%s itself", name);
	else
		snprintf(out, size, "outside of loops");
}

static void thread_name(const struct tacho__ledger *l, uint32_t process, uint32_t number, char *out,
			size_t size)
{
	const struct tacho_thread *t = tacho_read_thread_by_number(l->reader, process, number);

	snprintf(out, size, "%s (%" PRIu32 ")", t && t->name[0] ? t->name : "thread",
		 t ? t->tid : number);
}

/* What an owner is called, in few words: of one that another waits for. */
static void did_text(const struct tacho__ledger *l, const struct tacho__owned *o, char *out,
		     size_t size)
{
	char name[160] = "";

	if (o->owns == TACHO__OWNS_CODE)
		code_key(l, o, name, sizeof(name));
	else if (o->owns == TACHO__OWNS_CALL)
		tacho__name_of(name, sizeof(name), l->reader, o->process, o->name, o->last_ns);
	snprintf(out, size, "%s%s%s", tacho__owns_name(o->owns), name[0] ? " " : "", name);
}

static void lock_key(const struct tacho__ledger *l, const struct tacho__owned *o, char *out,
		     size_t size)
{
	char holder[64], did[192] = "";

	if (o->is_signal) {
		snprintf(out, size, "a condition or semaphore");
	} else if (!o->holder) {
		snprintf(out, size, "0x%" PRIx64, o->lock);
	} else {
		thread_name(l, o->process, o->holder, holder, sizeof(holder));
		if (o->did)
			did_text(l, tacho__owned_at(l, o->did - 1), did, sizeof(did));
		snprintf(out, size, "0x%" PRIx64 ", held by %s%s%s", o->lock, holder,
			 did[0] ? " in " : "", did);
	}
}

const char *tacho__ledger_key(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			      char *out, size_t size)
{
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	const struct tacho__function *f = function_of(l, line);

	out[0] = 0;
	switch (line->owns) {
	case TACHO__OWNS_CODE:
		if (f)
			tacho__place_name(out, size, &f->place);
		else
			code_key(l, o, out, size);
		break;
	case TACHO__OWNS_CALL:
		tacho__name_of(out, size, l->reader, o->process, o->name, o->last_ns);
		break;
	case TACHO__OWNS_LOCK:
		lock_key(l, o, out, size);
		break;
	case TACHO__OWNS_LATE:
	case TACHO__OWNS_STOPPED:
	case TACHO__OWNS_NOT_OBSERVED:
		snprintf(out, size, "%s", tacho__ledger_reason(o->reason));
		break;
	default:
		break;
	}
	return out;
}

int tacho__ledger_place(const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			struct tacho__place *place)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	const struct tacho__function *f = function_of(l, line);
	uint64_t ns = o->last_ns;
	uint32_t n = 0;

	if (f) {
		*place = f->place;
		return 1;
	}
	if (line->owns == TACHO__OWNS_CODE)
		return o->kind && tacho__place_of_kind(l->reader, o->process, o->kind, ns, place);
	if (line->owns != TACHO__OWNS_CALL && line->owns != TACHO__OWNS_LOCK)
		return 0;
	if (o->holder && o->held_place)
		n = tacho__places_of_id(l->reader, o->process, o->held_place, ns, places,
					TACHO__PLACES_MAX);
	if (!n && o->place)
		n = tacho__places_of_id(l->reader, o->process, o->place, ns, places,
					TACHO__PLACES_MAX);
	if (!n && o->code)
		n = tacho__places_of_frames(l->reader, o->process, &o->code, 1, 0, ns, places,
					    TACHO__PLACES_MAX);
	*place = tacho__places_best(places, n);
	return n != 0;
}

/* --------------------------------------------------------- where it waits for work */

/* Calls in which a thread waits until there is something to do. */
static int is_wait(const struct tacho_definition *d, int *sleeps)
{
	static const char *const names[] = {"accept", "accept4",	 "nanosleep", "usleep",
					    "sleep",  "clock_nanosleep", "sigwait",   "sigwaitinfo",
					    "pause",  "sigtimedwait"};

	for (uint32_t i = 0; d && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(d->name, names[i]) == 0) {
			*sleeps = i >= 2 && i <= 5;
			return 1;
		}
	return 0;
}

/*
 * The place where a thread waits for work is the wait that most of its turns begin with. For one
 * that takes connections and looks at each with poll that is accept; for one that looks each second
 * whether there is something to do, its sleep: what it calls poll for finds nothing then.
 */
/* All that it had is time in which its thread had nothing to do. What was taken to wait for it. */
static uint64_t make_idle(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index)
{
	uint32_t idle = tacho__book_owned(b, w, TACHO__OWNS_IDLE, 0, 0);
	struct tacho__owned *o = tacho__owned_at(b->l, index);
	uint64_t waiting = o->waiting_ns;

	if (idle == TACHO__NONE)
		return 0;
	o->waiting_ns = o->estimated_ns = 0;
	memset(o->size, 0, sizeof(o->size));
	o->work_place_ns += o->ns;
	tacho__book_shift(b, index, idle, o->ns, 0);
	return waiting;
}

/* Its peers signal it there, most of the time; or it does nothing for the program then. */
static int is_known_rest(const struct tacho__owned *o)
{
	return o->handed_ns * 2 > o->ns || o->is_librarys;
}

/* The condition that a thread waits for most often; TACHO__NONE: it waits for none, or where it is handed
   something is known, as it is of a pool. */
static uint32_t usual_signal(const struct tacho__ledger_book *b, const struct tacho__worker *w)
{
	const struct tacho__ledger_thread *t = &b->l->threads[w->thread];
	uint64_t most = 0;
	uint32_t usual = TACHO__NONE;

	if (t->pool && !t->is_loop)
		return usual;
	for (const struct tacho__owned *o = NULL; (o = tacho__table_next(&b->l->owned, o));) {
		if (o->thread != w->thread || o->owns != TACHO__OWNS_LOCK || !o->is_signal)
			continue;
		if (o->count >= LEAST_WAITS && is_known_rest(o))
			return TACHO__NONE;
		if (o->count > most) {
			most = o->count;
			usual = o->entry.index;
		}
	}
	return usual;
}

/*
 * Threads that serve one queue hand each other what there is to do: one of them signals the condition,
 * or, where that is not seen, turn after turn begins with a wait for it. Such a wait is no work that
 * is held up: while one of them is parked nothing is, else what that one does has the cost.
 */
static int is_handed(const struct tacho__ledger_book *b, const struct tacho__worker *w,
		     const struct tacho__owned *o, uint32_t usual)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);

	return q && (q->most_serving > 1 || q->pool) &&
	       (is_known_rest(o) || (o->entry.index == usual && o->count >= LEAST_WAITS &&
				     o->count * 10 >= b->l->threads[w->thread].turns));
}

/* A thread that is signalled at a condition far more often than it waits in its loop has no loop: it is a
   worker that asked once what was ready. */
static int is_home(const struct tacho__ledger_book *b, const struct tacho__worker *w,
		   const struct tacho__owned *o, uint32_t usual)
{
	return o->entry.index == usual && o->count >= LEAST_WAITS && !o->kind &&
	       w->level == TACHO_LEVEL_WAITS && 2 * o->gave_up_ns < o->ns &&
	       (double)o->count >= tacho__home_times * (double)b->l->threads[w->thread].turns;
}

static int waits_for_work(const struct tacho__ledger_book *b, const struct tacho__worker *w,
			  const struct tacho__owned *o, uint32_t usual)
{
	return o->owns == TACHO__OWNS_LOCK && o->is_signal &&
	       (is_handed(b, w, o, usual) || is_home(b, w, o, usual));
}

/*
 * A call that turns consist of, where the loop itself hardly waits: most of them a sleep, or many
 * an accept, which is not recorded where somebody is there soon.
 */
static int is_pace(const struct tacho__ledger_book *b, const struct tacho__worker *w,
		   const struct tacho__owned *o, uint64_t parked)
{
	const struct tacho__ledger_thread *t = &b->l->threads[w->thread];
	int sleeps = 0;

	return o->owns == TACHO__OWNS_CALL && t->turns && w->level == TACHO_LEVEL_WAITS &&
	       o->count >= LEAST_WAITS && o->ns >= 4 * parked && o->count * 10 >= t->turns &&
	       is_wait(tacho_read_definition(b->l->reader, o->process, o->name), &sleeps) &&
	       !(sleeps && (o->count * 2 < t->turns || w->empty_turns * 2 < t->turns));
}

uint64_t tacho__book_idle_place(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	struct tacho__ledger *l = b->l;
	uint64_t parked = w->idle_owned == TACHO__NONE ? 0 : tacho__owned_at(l, w->idle_owned)->ns;
	uint64_t waiting = 0;
	uint32_t usual = usual_signal(b, w), place = TACHO__NONE;

	for (struct tacho__owned *o = NULL; (o = tacho__table_next(&l->owned, o));) {
		if (o->thread != w->thread)
			continue;
		if (waits_for_work(b, w, o, usual)) {
			uint32_t index = o->entry.index;

			waiting = tacho__add(waiting, make_idle(b, w, index));
			o = tacho__owned_at(l, index);
		} else if (is_pace(b, w, o, parked)) {
			place = o->entry.index;
			parked = o->ns / 4;
		}
	}
	if (place != TACHO__NONE)
		waiting = tacho__add(waiting, make_idle(b, w, place));
	return waiting;
}
