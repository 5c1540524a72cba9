/* Who gets a stretch of a thread's time, and what waited in it. */
#include "base/hash.h"
#include "explain/ledger_book.h"

#define MS UINT64_C(1000000)
#define UNSAMPLED_NS (20 * MS) /* that runs longer has been sampled */

/* ------------------------------------------------------------------- owners */

uint32_t tacho__book_owned(struct tacho__ledger_book *b, const struct tacho__worker *w,
			   enum tacho__owns owns, uint32_t what, uint64_t key)
{
	uint64_t first = (uint64_t)w->thread << 36 | (uint64_t)owns << 32 | what;
	struct tacho__known_owned *k =
		&b->owned[tacho__mix(first ^ key) >> (64 - TACHO__BOOK_OWNED_BITS)];
	struct tacho__owned *o;

	if (k->index && k->key[0] == first && k->key[1] == key)
		return k->index - 1;
	o = tacho__table_get(&b->l->owned, first, key, &b->error);
	if (!o)
		return TACHO__NONE;
	*k = (struct tacho__known_owned){{first, key}, o->entry.index + 1};
	if (!o->owns) {
		o->owns = owns;
		o->thread = w->thread;
		o->process = w->process;
	}
	return o->entry.index;
}

uint32_t tacho__book_reasoned(struct tacho__ledger_book *b, const struct tacho__worker *w,
			      enum tacho__owns owns, enum tacho__owns_reason reason)
{
	uint32_t index = tacho__book_owned(b, w, owns, reason, 0);

	if (index != TACHO__NONE)
		tacho__owned_at(b->l, index)->reason = reason;
	return index;
}

static struct tacho__owned *owned_of(const struct tacho__ledger_book *b,
				     const struct tacho__worker *w, uint32_t index)
{
	return index == TACHO__NONE ? &b->l->threads[w->thread].rest : tacho__owned_at(b->l, index);
}

static uint32_t idle_of(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	if (w->idle_owned == TACHO__NONE)
		w->idle_owned = tacho__book_owned(b, w, TACHO__OWNS_IDLE, 0, 0);
	return w->idle_owned;
}

uint32_t tacho__book_code(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t kind)
{
	uint32_t i = kind % TACHO__BOOK_KINDS;
	struct tacho__owned *o;

	if (w->known[i].owned && w->known[i].kind == kind && w->known[i].loop == w->loop)
		return w->known[i].owned - 1;
	w->known[i].kind = kind;
	w->known[i].loop = w->loop;
	w->known[i].owned = tacho__book_owned(b, w, TACHO__OWNS_CODE, kind, w->loop) + 1;
	if (!w->known[i].owned)
		return TACHO__NONE;
	o = tacho__owned_at(b->l, w->known[i].owned - 1);
	o->kind = kind;
	o->loop = w->loop;
	return w->known[i].owned - 1;
}

/* --------------------------------------------------------------------- time */

/* What of the waiting until `to` is the worker's to pay. */
static TACHO__INLINED uint64_t pay(struct tacho__ledger_book *b, struct tacho__worker *w,
				   uint64_t to, uint64_t *estimated)
{
	struct tacho__queue *q = tacho__queue_at(b, w);
	uint64_t sum = w->owed;

	w->owed = 0;
	*estimated = 0;
	if (w->halves) {
		uint64_t all = tacho__times(w->halves, to - w->at);

		b->halves = tacho__add(b->halves, all);
		all += w->half;
		w->half = all & 1;
		sum = tacho__add(sum, all / 2);
		*estimated = w->halves_estimated ? all / 2 : 0;
	}
	if (q) {
		struct tacho__point then;

		if (to >= q->at) {
			tacho__queue_move(b, q, to);
			then = (struct tacho__point){to, q->cost, q->parked_ns};
		} else {
			then = tacho__queue_then(b, q, w, to);
		}
		if (then.cost > w->cost) {
			if (w->standing == TACHO__BUSY)
				sum = tacho__sum(sum, then.cost - w->cost);
			w->cost = then.cost;
		}
		if (then.parked_ns > w->parked_ns)
			w->parked_ns = then.parked_ns;
	}
	return sum;
}

/* `to` is after all that the worker has paid. */
static TACHO__INLINED uint64_t give(struct tacho__ledger_book *b, struct tacho__worker *w,
				    uint32_t index, uint64_t to)
{
	uint64_t estimated, waiting = pay(b, w, to, &estimated);
	struct tacho__owned *o = owned_of(b, w, index);
	uint32_t last = (w->piece_count - 1) % TACHO__BOOK_PIECES;

	if (!o->ns)
		o->first_ns = w->at;
	o->last_ns = to;
	o->ns += to - w->at;
	o->waiting_ns = tacho__sum(o->waiting_ns, waiting);
	if (estimated)
		o->estimated_ns = tacho__add(o->estimated_ns, estimated);
	if (!w->piece_count)
		w->first_piece = w->at;
	if (!w->piece_count || w->pieces[last].owned != index)
		last = w->piece_count++ % TACHO__BOOK_PIECES;
	w->pieces[last].owned = index;
	w->pieces[last].to = to;
	if (b->diary)
		tacho__book_write(b, w, index, to);
	w->at = to;
	return waiting;
}

uint64_t tacho__book_give(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index,
			  uint64_t to)
{
	return to > w->at ? give(b, w, index, to) : 0;
}

static struct tacho__size *size_of(struct tacho__owned *o, uint64_t ns)
{
	return &o->size[tacho__size_of(ns)];
}

void tacho__size_less(struct tacho__size *sizes, uint64_t ns, uint64_t waiting)
{
	struct tacho__size *s = &sizes[tacho__size_of(ns)];

	s->count -= s->count > 0;
	s->ns -= ns < s->ns ? ns : s->ns;
	s->waiting_ns -= waiting < s->waiting_ns ? waiting : s->waiting_ns;
	if (ns == s->longest_ns) {
		s->longest_ns = s->wall_ns = s->next_ns;
		s->longest_at_ns = s->next_at_ns;
		s->next_ns = 0;
	} else if (ns == s->next_ns) {
		s->next_ns = 0;
	}
	if (s->longest_ns > s->ns)
		s->longest_ns = s->wall_ns = s->ns;
}

void tacho__book_unnote(struct tacho__owned *o, uint64_t ns, uint64_t waiting)
{
	o->count -= o->count > 0;
	tacho__size_less(o->size, ns, waiting);
}

void tacho__book_unblock(struct tacho__ledger_book *b, const struct tacho__blocked *blocks,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (blocks[i].owned != TACHO__NONE)
			tacho__book_unnote(tacho__owned_at(b->l, blocks[i].owned), blocks[i].ns,
					   blocks[i].waiting_ns);
}

void tacho__book_shift(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
		       uint64_t waiting)
{
	tacho__book_shift_at(b, from, to, ns, waiting, UINT64_MAX);
}

void tacho__book_shift_at(struct tacho__ledger_book *b, uint32_t from, uint32_t to, uint64_t ns,
			  uint64_t waiting, uint64_t until)
{
	struct tacho__owned *f, *t;

	if (from == TACHO__NONE || to == TACHO__NONE || from == to)
		return;
	f = tacho__owned_at(b->l, from);
	t = tacho__owned_at(b->l, to);
	if (ns > f->ns)
		ns = f->ns;
	if (waiting > f->waiting_ns)
		waiting = f->waiting_ns;
	if (!t->ns)
		t->first_ns = f->last_ns - (f->last_ns > ns ? ns : f->last_ns);
	t->last_ns = f->last_ns;
	f->ns -= ns;
	f->waiting_ns -= waiting;
	/* None that it had is longer than what is left of all. */
	if (f->longest_ns > f->ns)
		f->longest_ns = f->ns;
	if (f->estimated_ns > f->waiting_ns)
		f->estimated_ns = f->waiting_ns;
	t->ns += ns;
	t->waiting_ns = tacho__add(t->waiting_ns, waiting);
	if (b->diary)
		tacho__book_rewrite(b, from, to, ns, until);
}

/* ---------------------------------------------------------------- what it does */

/* Runnable until `to`, and others ran. */
static void give_off(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to)
{
	uint32_t index = tacho__book_owned(b, w, TACHO__OWNS_DESCHEDULED, 0, 0);
	uint64_t from = w->at, waiting = tacho__book_give(b, w, index, to);

	if (to <= from)
		return;
	w->open[w->depth].off_ns += to - from;
	w->off_ns += to - from;
	w->off_waiting = tacho__add(w->off_waiting, waiting);
	tacho__book_note(owned_of(b, w, index), to - from, waiting, to);
	tacho__book_lacks(b, w, index, from, to, to - from, waiting);
}

/* Gives all until `to` that the kernel did not take away to it; how much that was. */
static uint64_t give_on(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index,
			uint64_t to, uint64_t *waiting)
{
	uint64_t sum = 0, from;
	uint32_t n = 0;

	*waiting = 0;
	for (uint32_t i = 0; i < w->off_count; i++) {
		if (w->offs[i].from >= to) {
			w->offs[n++] = w->offs[i];
			continue;
		}
		from = w->at;
		*waiting = tacho__add(*waiting, tacho__book_give(b, w, index, w->offs[i].from));
		sum += w->at - from;
		if (w->offs[i].stopped)
			tacho__book_stopped(b, w, w->offs[i].stopped,
					    w->offs[i].to < to ? w->offs[i].to : to);
		else
			give_off(b, w, w->offs[i].to < to ? w->offs[i].to : to);
	}
	w->off_count = n;
	from = w->at;
	*waiting = tacho__add(*waiting, tacho__book_give(b, w, index, to));
	return sum + (w->at - from);
}

uint64_t tacho__book_block(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index,
			   uint64_t to)
{
	struct tacho__paid *p = &w->open[w->depth];
	uint64_t waiting, ns;
	struct tacho__owned *o;

	if (to <= w->at)
		return 0;
	ns = give_on(b, w, index, to, &waiting);
	o = owned_of(b, w, index);
	/* The only client of a thread waits for what others hold, and while all are stopped. */
	if (w->own &&
	    (o->owns == TACHO__OWNS_STOPPED || (o->owns == TACHO__OWNS_LOCK && !o->is_signal))) {
		waiting = tacho__add(waiting, ns);
		o->waiting_ns = tacho__add(o->waiting_ns, ns);
		b->waited = tacho__add(b->waited, ns);
	}
	if (ns > o->longest_ns) {
		o->kind = p->kind;
		o->loop = w->loop;
	}
	w->last_block = (struct tacho__blocked){.owned = index,
						.ns = ns,
						.waiting_ns = waiting,
						.end_ns = to,
						.before = o->longest_ns,
						.before_at_ns = o->longest_at_ns};
	if (!w->is_cut) {
		tacho__book_note(o, ns, waiting, to);
		if (w->block_count < TACHO__BOOK_BLOCKS)
			w->blocks[w->block_count++] = w->last_block;
	}
	if (ns >= p->block.ns)
		p->block = w->last_block;
	return ns;
}

/* It ran all of the time until `to`. */
static TACHO__INLINED void give_run(struct tacho__ledger_book *b, struct tacho__worker *w,
				    uint64_t to)
{
	struct tacho__paid *p = tacho__book_open(b, w);
	uint64_t parked = w->parked_ns;

	p->ns += to - w->at;
	p->waiting_ns = tacho__sum(p->waiting_ns, give(b, w, p->owned, to));
	w->code_parked += w->parked_ns - parked;
}

static void give_code(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to)
{
	struct tacho__paid *p = tacho__book_open(b, w);
	uint64_t waiting;

	if (!w->off_count) {
		if (to > w->at)
			give_run(b, w, to);
		return;
	}
	p->ns += give_on(b, w, p->owned, to, &waiting);
	p->waiting_ns = tacho__add(p->waiting_ns, waiting);
}

/* Nothing of the process was seen meanwhile, and it was sampled: it did not run. Whether it was ready to
   run is known later. Before a thread has a loop it is not sampled, and its calls are not seen. */
static void note_silent(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to)
{
	const struct tacho__book_process *p = w->of;
	uint32_t kept = p->gap_count < TACHO__BOOK_GAPS ? p->gap_count : TACHO__BOOK_GAPS;

	for (uint32_t i = kept; p->is_sampled && b->l->threads[w->thread].is_loop && i--;) {
		uint64_t from = p->gaps[(p->gap_count - 1 - i) % TACHO__BOOK_GAPS].from;
		uint64_t end = p->gaps[(p->gap_count - 1 - i) % TACHO__BOOK_GAPS].to;

		end = end < to ? end : to;
		from = from > w->at ? from : w->at;
		if (end <= from || end - from < TACHO__QUIET_NS ||
		    w->silent_count == TACHO__BOOK_SILENT)
			continue;
		w->silent[w->silent_count].from = from;
		w->silent[w->silent_count++].to = end;
	}
}

/*
 * A thread that serves a queue with others and neither ran nor was seen to be blocked waits for
 * these to hand it something, as far as one of them was parked.
 */
static void give_unseen(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to)
{
	struct tacho__queue *q = tacho__queue_at(b, w);
	uint64_t parked, waiting, ran = 0, ns = to - w->at;
	uint32_t kept =
		w->sample_count < TACHO__BOOK_SAMPLES ? w->sample_count : TACHO__BOOK_SAMPLES;

	if (!q || q->serving < 2 || !w->of->is_sampled)
		return;
	for (uint32_t i = 0; i < kept; i++)
		if (w->samples[i].at > w->at && w->samples[i].at <= to)
			ran += w->samples[i].ns;
	parked = tacho__queue_then(b, q, w, to).parked_ns;
	parked = parked > w->parked_ns ? parked - w->parked_ns : 0;
	if (ran >= ns / 4 || parked < ns / 4)
		return;
	ran = ns - ran < parked ? ns - ran : parked;
	waiting = tacho__book_give(b, w, idle_of(b, w), w->at + ran);
	tacho__book_note(owned_of(b, w, idle_of(b, w)), ran, waiting, w->at);
	tacho__book_turns(w, w->at);
}

/* The same for waits that are too short to miss a sample each, all together: no diary could say
   which. */
void tacho__book_unsampled(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	if (!w->code_parked || !w->of->is_sampled || b->diary)
		return;
	for (uint32_t i = 0; i < b->l->owned.used; i++) {
		struct tacho__owned *o = tacho__table_at(&b->l->owned, i);
		uint64_t ran, more;

		if (!o || o->thread != w->thread || o->owns != TACHO__OWNS_CODE || o->kind)
			continue;
		ran = 2 * o->sample_ns + 2 * UNSAMPLED_NS;
		if (o->ns < 10 * UNSAMPLED_NS || ran >= o->ns / 2)
			continue;
		more = o->ns - ran < w->code_parked ? o->ns - ran : w->code_parked;
		w->code_parked -= more;
		tacho__book_shift(b, i, idle_of(b, w), more, 0);
	}
}

void tacho__book_settle(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t to)
{
	if (to <= w->at)
		return;
	/* Most often. */
	if (w->doing == TACHO__RUNNING && to - w->at < UNSAMPLED_NS && !w->off_count) {
		give_run(b, w, to);
		return;
	}
	switch (w->doing) {
	case TACHO__UNBORN:
		break;
	case TACHO__UNSEEN:
		tacho__book_give(b, w, tacho__book_reasoned(b, w, TACHO__OWNS_NOT_OBSERVED, w->why),
				 to);
		break;
	case TACHO__WAITING:
		tacho__book_give(b, w, idle_of(b, w), to);
		break;
	case TACHO__RUNNING:
		if (to - w->at >= UNSAMPLED_NS && !w->off_count) {
			give_unseen(b, w, to);
			/* Where hooks are not known to see its calls, it may be in one. */
			if (to - w->at >= TACHO__QUIET_NS &&
			    (w->level != TACHO_LEVEL_API || w->of->sees_calls))
				note_silent(b, w, to);
		}
		give_code(b, w, to);
		break;
	}
}

/* ------------------------------------------------------------------ afterwards */

/* Of the last wait, so much more. */
uint32_t tacho__book_late(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns,
			  enum tacho__owns_reason reason, uint64_t waiting)
{
	uint64_t length = w->wait_to > w->wait_from ? w->wait_to - w->wait_from : w->wait_ns, more;
	uint32_t late = tacho__book_reasoned(b, w, TACHO__OWNS_LATE, reason);
	struct tacho__owned *o;

	ns = ns < length ? ns : length;
	more = ns > w->wait_late ? ns - w->wait_late : 0;
	if (more > owned_of(b, w, idle_of(b, w))->ns || w->idle_owned == TACHO__NONE ||
	    late == TACHO__NONE)
		more = 0;
	o = owned_of(b, w, late);
	o->waiting_ns = tacho__add(o->waiting_ns, waiting);
	if (more)
		tacho__book_shift(b, w->idle_owned, late, more, 0);
	w->wait_late += more;
	if (more || waiting)
		tacho__book_note(o, more, waiting, w->wait_to);
	if (reason == TACHO__LATE_RUNNABLE) {
		w->late_off_ns += more;
		tacho__book_lacks(b, w, late, w->wait_to - tacho__least(more, w->wait_to),
				  w->wait_to, more, waiting);
	}
	return late;
}

static uint64_t less(uint64_t from, uint64_t amount)
{
	return from - (amount < from ? amount : from);
}

/* Things that never had a callback did not wait for one. */
static void relieve_one(struct tacho__ledger_book *b, struct tacho__owned *o, uint64_t ns,
			uint64_t amount)
{
	struct tacho__size *s = size_of(o, ns);

	amount = amount < o->waiting_ns ? amount : o->waiting_ns;
	o->waiting_ns -= amount;
	s->waiting_ns = less(s->waiting_ns, amount);
	if (o->estimated_ns > o->waiting_ns)
		o->estimated_ns = o->waiting_ns;
	b->relieved = tacho__add(b->relieved, amount);
}

/* A piece of the time that `amount` is part of. */
static void charge_one(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index,
		       uint64_t ns, uint64_t amount, enum tacho__charge how)
{
	struct tacho__owned *o = owned_of(b, w, index);
	struct tacho__size *s;

	if (how == TACHO__RELIEVED) {
		relieve_one(b, o, ns, amount);
		return;
	}
	/* Idle is nobody who could be charged. */
	if (o->owns == TACHO__OWNS_IDLE)
		o = owned_of(b, w, tacho__book_reasoned(b, w, TACHO__OWNS_LATE, TACHO__LATE_TIMER));
	if (o->owns == TACHO__OWNS_STOPPED && o->reason) {
		tacho__book_stop_cost(w, o, amount);
	} else {
		/* With the turn that it is of, which counts as one of what it did. */
		if (o->owns == TACHO__OWNS_CODE && !o->kind && w->turn_size < ns)
			ns = w->turn_size;
		s = size_of(o, ns);
		s->waiting_ns = tacho__add(s->waiting_ns, amount);
	}
	o->waiting_ns = tacho__add(o->waiting_ns, amount);
	if (how == TACHO__ESTIMATED)
		o->estimated_ns = tacho__add(o->estimated_ns, amount);
}

void tacho__book_charge(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			uint64_t to, uint64_t amount, enum tacho__charge how)
{
	uint32_t kept = w->piece_count < TACHO__BOOK_PIECES ? w->piece_count : TACHO__BOOK_PIECES;
	uint64_t left = amount, end, begin, oldest;
	uint32_t first = (w->piece_count - kept) % TACHO__BOOK_PIECES;

	if (!kept || !amount)
		return;
	if (how != TACHO__RELIEVED)
		b->waited = tacho__add(b->waited, amount);
	oldest = w->piece_count == kept ? w->first_piece : w->pieces[first].to;
	from = from > oldest ? from : oldest;
	/* Newest first: what lies before those that are kept goes to the last that is. */
	for (uint32_t i = 1; i <= kept && left; i++) {
		uint32_t at = (w->piece_count - i) % TACHO__BOOK_PIECES;
		uint64_t part, length;

		end = w->pieces[at].to;
		begin = i < kept ? w->pieces[(w->piece_count - i - 1) % TACHO__BOOK_PIECES].to
				 : oldest;
		if (begin >= to && i < kept)
			continue;
		length = end - begin;
		end = end < to ? end : to;
		begin = begin > from ? begin : from;
		if (i == kept || begin == from || end <= begin)
			part = left;
		else
			part = (uint64_t)((double)amount *
					  ((double)(end - begin) / (double)(to - from)));
		part = part < left ? part : left;
		charge_one(b, w, w->pieces[at].owned, length, part, how);
		if (how != TACHO__RELIEVED)
			tacho__book_lack_costs(b, w, w->pieces[at].owned, begin, length, part);
		left -= part;
	}
	if (how == TACHO__ESTIMATED && to > from)
		tacho__book_sample_costs(b, w, from, to, (double)amount / (double)(to - from));
}

uint32_t tacho__book_did(const struct tacho__ledger_book *b, const struct tacho__worker *w,
			 uint64_t from, uint64_t to, uint64_t lock)
{
	uint32_t kept = w->piece_count < TACHO__BOOK_PIECES ? w->piece_count : TACHO__BOOK_PIECES;
	uint32_t best = TACHO__NONE;
	uint64_t most = 0;

	if (w->doing == TACHO__RUNNING && to > w->at && w->at >= from) {
		best = w->open[w->depth].owned;
		most = to - w->at;
	}
	for (uint32_t i = 1; i < kept; i++) {
		uint32_t at = (w->piece_count - i) % TACHO__BOOK_PIECES;
		uint64_t end = w->pieces[at].to;
		uint64_t begin = w->pieces[(w->piece_count - i - 1) % TACHO__BOOK_PIECES].to;
		const struct tacho__owned *o = owned_of(b, w, w->pieces[at].owned);

		/* Until it got the lock, others had it. */
		if (end <= from || (o->owns == TACHO__OWNS_LOCK && o->lock == lock))
			break;
		end = end < to ? end : to;
		begin = begin > from ? begin : from;
		if (end > begin && end - begin > most) {
			most = end - begin;
			best = w->pieces[at].owned;
		}
	}
	return best;
}
