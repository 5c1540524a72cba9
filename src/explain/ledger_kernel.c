/*
 * What the kernel took away: time in which a thread could run and did not. Switches say when that
 * was; else it is a sum, of what has just ended, without a place in its time.
 */
#include <string.h>

#include "explain/ledger_book.h"
#include "format/definition.h"

#define LONG_NS 1000000u

/* ------------------------------------------------------- from code, blocks and waits */

/* Where in its time that was is not known: the last that `from` had of it. */
static void repiece(struct tacho__worker *w, uint32_t from, uint32_t to, uint64_t ns)
{
	uint32_t kept = w->piece_count < TACHO__BOOK_PIECES ? w->piece_count : TACHO__BOOK_PIECES;

	for (uint32_t i = 1; i < kept && ns; i++) {
		uint32_t at = (w->piece_count - i) % TACHO__BOOK_PIECES;
		uint64_t begin = w->pieces[(w->piece_count - i - 1) % TACHO__BOOK_PIECES].to;
		uint64_t length = w->pieces[at].to - begin;

		if (w->pieces[at].owned != from)
			continue;
		if (length > ns) {
			/* The oldest makes room for the part that stays. */
			for (uint32_t k = 0; k < i; k++)
				w->pieces[(w->piece_count - k) % TACHO__BOOK_PIECES] =
					w->pieces[(w->piece_count - k - 1) % TACHO__BOOK_PIECES];
			w->piece_count++;
			w->pieces[at].to -= ns;
			at = (at + 1) % TACHO__BOOK_PIECES;
			length = ns;
		}
		w->pieces[at].owned = to;
		ns -= length;
	}
}

/* Of `whole`, which `owned` has and for which `waiting` waited, a part: `off` has it. What that cost. */
static uint64_t off_from(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t off,
			 uint32_t owned, uint64_t part, uint64_t whole, uint64_t waiting,
			 uint64_t end_ns)
{
	uint64_t cost = whole ? (uint64_t)((double)waiting * ((double)part / (double)whole)) : 0;

	if (off == TACHO__NONE || owned == TACHO__NONE || !part)
		return 0;
	cost = cost < waiting ? cost : waiting;
	tacho__book_shift(b, owned, off, part, cost);
	repiece(w, owned, off, part);
	tacho__book_note_sum(tacho__owned_at(b->l, off), part, cost, end_ns);
	return cost;
}

/* The same for the owner of what the kernel took; it was between `from` and `to`. */
static uint64_t descheduled(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
			    uint64_t part, uint64_t whole, uint64_t waiting, uint64_t from,
			    uint64_t to)
{
	uint32_t off = tacho__book_owned(b, w, TACHO__OWNS_DESCHEDULED, 0, 0);
	uint64_t cost = off_from(b, w, off, owned, part, whole, waiting, to);

	w->off_ns += part;
	w->off_waiting = tacho__add(w->off_waiting, cost);
	tacho__book_lacks(b, w, off, from, to, part, cost);
	return cost;
}

/* Of what it had in code (of `p`), the kernel ran others for `ns`. */
static void off_code(struct tacho__ledger_book *b, struct tacho__worker *w, struct tacho__paid *p,
		     uint64_t ns)
{
	p->waiting_ns -=
		descheduled(b, w, p->owned, ns, p->ns, p->waiting_ns, p->from_ns, p->end_ns);
	p->ns -= ns;
}

/* It is an occurrence of its owner by what is left of it. */
static void renote(struct tacho__ledger_book *b, const struct tacho__blocked *was,
		   const struct tacho__blocked *is)
{
	struct tacho__owned *o = tacho__owned_at(b->l, is->owned);

	tacho__book_unnote(o, was->ns, was->waiting_ns);
	if (o->longest_ns == was->ns) {
		o->longest_ns = was->before;
		o->longest_at_ns = was->before_at_ns;
	}
	if (is->ns)
		tacho__book_note(o, is->ns, is->waiting_ns, is->end_ns);
}

/* The same of a block. */
static void off_block(struct tacho__ledger_book *b, struct tacho__worker *w,
		      struct tacho__blocked *block, uint64_t ns, uint64_t end_ns)
{
	struct tacho__blocked was = *block;
	/* What was there already, it lacked a CPU to take. */
	uint64_t length = was.woken_ns ? tacho__least(was.ns, was.woken_ns) : was.ns, cost;

	if (was.owned == TACHO__NONE || !ns)
		return;
	if (was.is_handed) {
		uint32_t late = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_RUNNABLE);

		cost = off_from(b, w, late, was.owned, ns, was.ns, was.waiting_ns, end_ns);
		tacho__book_lacks(b, w, late, was.end_ns - length, was.end_ns, ns, cost);
		w->late_off_ns += ns;
	} else {
		cost = descheduled(b, w, was.owned, ns, was.ns, was.waiting_ns, was.end_ns - length,
				   was.end_ns);
	}
	block->woken_ns -= ns < was.woken_ns ? ns : was.woken_ns;
	/* Who sleeps may come back late: that is as long as it was blocked. */
	if (ns < was.ns - ns || !was.is_told)
		return;
	block->ns -= ns;
	block->waiting_ns -= cost;
	renote(b, &was, block);
	for (uint32_t i = 0; i < w->block_count; i++)
		if (w->blocks[i].owned == was.owned && w->blocks[i].end_ns == was.end_ns)
			w->blocks[i] = *block;
}

/* The same where what was woken meanwhile waited: of that, so much because others ran. */
static void woken_off(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	uint32_t late = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_RUNNABLE);
	uint32_t woken = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_WOKEN);
	uint64_t part = ns < w->wait_late ? ns : w->wait_late;
	uint64_t cost = w->woken_late;

	if (late == TACHO__NONE || woken == TACHO__NONE)
		return;
	if (w->wait_late)
		cost = (uint64_t)((double)cost * ((double)part / (double)w->wait_late));
	tacho__book_shift(b, woken, late, part, cost);
	tacho__book_unnote(tacho__owned_at(b->l, woken), w->wait_late, w->woken_late);
	tacho__book_note(tacho__owned_at(b->l, woken), w->wait_late - part, w->woken_late - cost,
			 w->wait_to);
	tacho__book_note(tacho__owned_at(b->l, late), part, cost, w->wait_to);
	tacho__book_lacks(b, w, late, w->wait_to - part, w->wait_to, part, cost);
	w->late_off_ns += part;
	w->woken_late = 0;
	tacho__book_late(b, w, ns, TACHO__LATE_RUNNABLE, 0);
}

/* A part of what was late for lack of a CPU was a quota's doing. */
static void requota(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	uint32_t late = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_RUNNABLE);
	uint32_t quota = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_QUOTA);

	tacho__book_shift(b, late, quota, ns, 0);
	if (quota != TACHO__NONE)
		tacho__book_note(tacho__owned_at(b->l, quota), ns, 0, w->at);
}

/* ------------------------------------------------------------------- as it is told */

/*
 * It was ready to run for so long before it came out of its wait: the first thing that was ready,
 * or the time-out that was due, waited for all of that, the others came in between; but not since
 * before another thread came to the same queue, which would have got it. Where wakes are seen, these
 * say what was woken before; if nothing was, what it will wake itself waits.
 */
static void wait_delayed(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);
	uint64_t waited = ns, others;
	struct tacho__owned *late;
	uint32_t index;

	if (!ns)
		return;
	if (w->woken_late) {
		woken_off(b, w, ns);
		return;
	}
	if (q && q->serving > 1 && w->doing == TACHO__RUNNING)
		waited = tacho__least(ns, w->wait_to > q->asked_ns ? w->wait_to - q->asked_ns : 0);
	others = w->ready > 1 ? tacho__times(w->ready - 1, waited) / 2 : 0;
	b->waited = tacho__add(b->waited, tacho__add(waited, others));
	index = tacho__book_late(b, w, ns, TACHO__LATE_RUNNABLE, tacho__add(waited, others));
	if (index == TACHO__NONE)
		return;
	/* Some of it may be with the code that had the CPU by now. */
	late = tacho__owned_at(b->l, index);
	late->estimated_ns = tacho__least(tacho__add(late->estimated_ns, others), late->waiting_ns);
}

/* Whether next to nothing of the process was seen between them. */
static int was_quiet(const struct tacho__book_process *p, uint64_t from, uint64_t to)
{
	uint32_t kept = p->gap_count < TACHO__BOOK_GAPS ? p->gap_count : TACHO__BOOK_GAPS;
	uint64_t quiet = 0;

	for (uint32_t i = 0; i < kept; i++) {
		uint64_t begin = p->gaps[i].from > from ? p->gaps[i].from : from;
		uint64_t end = tacho__least(p->gaps[i].to, to);

		quiet += end > begin ? end - begin : 0;
	}
	return quiet >= (to - from) / 2;
}

/* Its last wait overslept its time-out; where callbacks are seen, timers say so themselves. */
void tacho__book_overslept(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	enum tacho__owns_reason reason = TACHO__LATE_STOPPED;

	if (w->wait_stopped) {
		tacho__book_charge(b, w, w->wait_to - (ns < w->wait_to ? ns : w->wait_to),
				   w->wait_to, ns, TACHO__EXACT);
		return;
	}
	/* Others of the process went on: it was ready, and they or others ran. */
	if (ns >= 2 * TACHO__QUIET_NS &&
	    !was_quiet(w->of, w->wait_to - tacho__least(ns, w->wait_to), w->wait_to))
		reason = TACHO__LATE_RUNNABLE;
	b->waited = tacho__add(b->waited, ns);
	tacho__book_late(b, w, ns, reason, ns);
}

/* It neither ran nor was it ready to, and pages came from a disk. */
static void faulted(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	struct tacho__paid *e = &w->ended;
	uint64_t asleep = e->ns > e->sample_ns ? e->ns - e->sample_ns : 0, waiting;
	uint32_t fault;

	if (!w->of->is_sampled || asleep < e->ns / 2 || asleep < LONG_NS)
		return;
	fault = tacho__book_owned(b, w, TACHO__OWNS_FAULTING, 0, 0);
	waiting = (uint64_t)((double)e->waiting_ns * ((double)asleep / (double)e->ns));
	tacho__book_shift(b, e->owned, fault, asleep, waiting);
	if (fault != TACHO__NONE)
		tacho__book_note(tacho__owned_at(b->l, fault), asleep, waiting, ns);
	e->ns -= asleep;
	e->waiting_ns -= tacho__least(waiting, e->waiting_ns);
}

/* `ns` of the code of `p` were a stop, until `to`. */
static void stop_code(struct tacho__ledger_book *b, struct tacho__worker *w, struct tacho__paid *p,
		      uint64_t ns, uint64_t to, int is_cut)
{
	uint32_t stopped = tacho__book_owned(b, w, TACHO__OWNS_STOPPED, 0, 0);
	uint64_t cost = (uint64_t)((double)p->waiting_ns * ((double)ns / (double)p->ns));
	struct tacho__owned *o;

	if (stopped == TACHO__NONE || p->owned == TACHO__NONE)
		return;
	cost = tacho__least(cost, p->waiting_ns);
	tacho__book_shift_at(b, p->owned, stopped, ns, cost, to);
	repiece(w, p->owned, stopped, ns);
	p->ns -= ns;
	p->waiting_ns -= cost;
	o = tacho__owned_at(b->l, stopped);
	/* The only client of a thread waits as long. */
	if (w->own) {
		cost = tacho__add(cost, ns);
		o->waiting_ns = tacho__add(o->waiting_ns, ns);
		b->waited = tacho__add(b->waited, ns);
	}
	if (!is_cut)
		tacho__book_note(o, ns, cost, to);
}

void tacho__book_silent(struct tacho__ledger_book *b, struct tacho__worker *w,
			struct tacho__paid *p, int is_cut)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->silent_count; i++) {
		uint64_t room = p->ns > p->sample_ns ? p->ns - p->sample_ns : 0;
		uint64_t ns = tacho__least(w->silent[i].to - w->silent[i].from, room);

		/* Of one around it, or after it. */
		if (w->silent[i].from < p->begin_ns || (!is_cut && w->silent[i].from >= p->end_ns))
			w->silent[kept++] = w->silent[i];
		else if (ns >= TACHO__QUIET_NS)
			stop_code(b, w, p, ns, w->silent[i].to, is_cut);
	}
	w->silent_count = kept;
}

/*
 * Of a delay that the kernel tells of the poll or turn which ended last, the part that was in its
 * largest block: the end of a wait for what was there already; and where it is told neither of a call nor
 * when a wait should have ended, what its length has of both.
 */
static uint64_t part_of_block(const struct tacho__paid *e, uint64_t delay)
{
	uint64_t woken = tacho__least(delay, e->block.woken_ns);

	if (e->block.owned == TACHO__NONE || !e->block.ns)
		return 0;
	if (!e->block.is_told)
		woken = (uint64_t)((double)delay *
				   ((double)e->block.ns / (double)(e->ns + e->block.ns)));
	/* Code has no room for more. */
	if (delay - woken > e->ns)
		woken = delay - e->ns;
	return tacho__least(woken, e->block.ns);
}

/* What neither its largest block nor its code has room for was in the others. What is left of it. */
static uint64_t off_others(struct tacho__ledger_book *b, struct tacho__worker *w,
			   const struct tacho__paid *e, uint64_t ns, uint64_t end_ns)
{
	uint64_t from = e->kind ? e->begin_ns : w->turn_from, largest = e->block.end_ns;
	uint32_t count = w->block_count ? w->block_count : w->ended_blocks;

	for (uint32_t i = 0; i < count && ns; i++) {
		struct tacho__blocked *block = &w->blocks[i];
		uint64_t part = tacho__least(ns, block->ns);

		if (block->owned == TACHO__NONE || block->end_ns <= from ||
		    block->end_ns == largest)
			continue;
		block->is_told = 1;
		off_block(b, w, block, part, end_ns);
		ns -= part;
	}
	return ns;
}

/* What none of it has room for was at the end of the wait before. */
static void delayed(struct tacho__ledger_book *b, struct tacho__worker *w,
		    const struct tacho__step *s)
{
	struct tacho__paid *e = &w->ended;
	uint64_t delay = s->value > e->off_ns ? s->value - e->off_ns : 0, of_block, of_code, rest;

	if (e->kind == TACHO__NONE || e->owned == TACHO__NONE)
		return;
	of_block = part_of_block(e, delay);
	of_code = tacho__least(delay - of_block, e->ns);
	tacho__book_lacked(b, w, e->kind ? e->begin_ns : w->turn_from, s->ns, of_block + of_code);
	off_code(b, w, e, of_code);
	off_block(b, w, &e->block, of_block, s->ns);
	rest = off_others(b, w, e, delay - of_block - of_code, s->ns);
	if (!w->depth)
		wait_delayed(b, w, rest);
	if (s->faults)
		faulted(b, w, s->ns);
}

/* The same of what the last turn did outside of its polls, which has been counted. */
static void turn_delayed(struct tacho__ledger_book *b, struct tacho__worker *w,
			 const struct tacho__step *s)
{
	struct tacho__paid itself = {.owned = tacho__book_code(b, w, 0),
				     .ns = w->itself_ns,
				     .waiting_ns = w->itself_waiting,
				     .from_ns = w->wait_to,
				     .end_ns = s->ns,
				     .block.owned = TACHO__NONE};
	uint64_t part = tacho__least(s->value, itself.ns);

	if (w->depth || w->doing != TACHO__WAITING)
		return;
	off_code(b, w, &itself, part);
	w->itself_ns = itself.ns;
	w->itself_waiting = itself.waiting_ns;
	wait_delayed(b, w, off_others(b, w, &itself, s->value - part, s->ns));
}

/* The same of the call that has just returned, or of a wait in the middle of a turn. */
static void call_delayed(struct tacho__ledger_book *b, struct tacho__worker *w,
			 const struct tacho__step *s)
{
	struct tacho__blocked *last = &w->last_block;
	struct tacho__paid *p = &w->open[w->depth];
	uint64_t part = tacho__least(s->value, last->ns);
	int is_largest = p->block.owned == last->owned && p->block.end_ns == last->end_ns;

	if (last->owned == TACHO__NONE || last->end_ns != w->at)
		return;
	last->is_told = 1;
	off_block(b, w, last, part, s->ns);
	if (is_largest)
		p->block = *last;
}

void tacho__book_delayed(struct tacho__ledger_book *b, struct tacho__worker *w,
			 const struct tacho__step *s)
{
	if (s->type == TACHO__STEP_DELAYED)
		delayed(b, w, s);
	else if (s->type == TACHO__STEP_TURN_DELAYED)
		turn_delayed(b, w, s);
	else if (s->type == TACHO__STEP_CALL_DELAYED || w->unblocked)
		call_delayed(b, w, s);
	else
		wait_delayed(b, w, s->value);
}

/* ------------------------------------------------------------- switches, quotas */

void tacho__book_off_cpu(void *arg, const struct tacho__switch *o)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w = tacho__table_find(&b->workers, o->at.process, o->at.thread);
	uint64_t from;

	if (!w || !o->runnable || o->cut)
		return;
	if (w->doing == TACHO__WAITING) {
		w->wait_off += o->end_ns - o->begin_ns;
		return;
	}
	from = o->begin_ns > w->at ? o->begin_ns : w->at;
	if (w->doing != TACHO__RUNNING || o->end_ns <= from)
		return;
	/* No room: what came before is not in a call. */
	if (w->off_count == TACHO__BOOK_OFFS && !w->in_lock)
		tacho__book_settle(b, w, w->offs[w->off_count - 1].to);
	if (w->off_count == TACHO__BOOK_OFFS)
		return;
	if (w->off_count && from < w->offs[w->off_count - 1].to)
		from = w->offs[w->off_count - 1].to;
	w->offs[w->off_count].from = from;
	w->offs[w->off_count].to = o->end_ns > from ? o->end_ns : from;
	w->offs[w->off_count].stopped = (enum tacho__owns_reason)0;
	w->off_count++;
}

/* A quota took so much since it was read last: of what the thread was ready to run in. */
static void throttle(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	uint64_t part = ns < w->off_ns ? ns : w->off_ns, waiting;
	uint32_t off = tacho__book_owned(b, w, TACHO__OWNS_DESCHEDULED, 0, 0);
	uint32_t throttled = tacho__book_owned(b, w, TACHO__OWNS_THROTTLED, 0, 0);

	if (part && throttled != TACHO__NONE) {
		waiting = (uint64_t)((double)w->off_waiting * ((double)part / (double)w->off_ns));
		tacho__book_shift(b, off, throttled, part, waiting);
		tacho__book_note(tacho__owned_at(b->l, throttled), part, waiting, w->at);
	}
	part = ns < w->late_off_ns ? ns : w->late_off_ns;
	if (part)
		requota(b, w, part);
	w->off_ns = w->off_waiting = w->late_off_ns = 0;
}

enum { COUNTS_OTHERS, COUNTS_QUOTA, COUNTS_CPUS };

static uint32_t what_counts(const struct tacho__ledger_book *b, uint32_t process, uint32_t id)
{
	const struct tacho_definition *d = tacho_read_definition(b->l->reader, process, id);

	if (d && d->def_class == TACHO_DEF_COUNTER && strcmp(d->name, "cgroup throttled") == 0)
		return COUNTS_QUOTA;
	return d && d->def_class == TACHO_DEF_GAUGE && strcmp(d->name, TACHO_GAUGE_CPUS) == 0
		       ? COUNTS_CPUS
		       : COUNTS_OTHERS;
}

/* The thread may run on so many CPUs from now on. */
static void allow(struct tacho__ledger_book *b, const struct tacho__counter *c)
{
	struct tacho__worker *w = tacho__book_worker(b, c->at.process, c->at.thread);

	if (w && c->value <= UINT32_MAX)
		w->cpus = (uint32_t)c->value;
}

/* Each connection is one more thing to do, of which its wait reported no more than the first. */
static void count_accepted(struct tacho__ledger_book *b, const struct tacho__counter *c)
{
	struct tacho__worker *w = tacho__table_find(&b->workers, c->at.process, c->at.thread);

	if (w && w->doing == TACHO__RUNNING && c->name == w->loop && w->level == TACHO_LEVEL_WAITS)
		w->accepted++;
}

void tacho__book_counter(void *arg, const struct tacho__counter *c)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__book_process *p = tacho__book_process(b, c->at.process);
	struct tacho__known_id *k = &b->counters[c->name % TACHO__BOOK_KNOWN];
	uint64_t us;

	tacho__book_seen(b, p, c->at.process, c->ns);
	if (c->depth) {
		count_accepted(b, c);
		return;
	}
	if (k->process != c->at.process || k->id != c->name)
		*k = (struct tacho__known_id){c->at.process, c->name,
					      what_counts(b, c->at.process, c->name)};
	if (k->value == COUNTS_CPUS)
		allow(b, c);
	if (k->value != COUNTS_QUOTA)
		return;
	us = c->value > p->throttled_us ? c->value - p->throttled_us : 0;
	if (!p->throttle_known || us > UINT64_C(1) << 50)
		us = 0;
	p->throttle_known = 1;
	p->throttled_us = c->value;
	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));)
		if (w->process == c->at.process && (w->off_ns || w->late_off_ns))
			throttle(b, w, us * 1000);
}
