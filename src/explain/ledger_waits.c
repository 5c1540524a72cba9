/* Where threads wait in the middle of work: locks, conditions, calls; and where nothing was
   recorded. */
#include <string.h>

#include "explain/ledger_book.h"

#define ROOM_NS UINT64_C(1000000) /* from when a thread takes work until it says so */

/* Blocked until then, of which a diary says more. */
static void block_with(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t index,
		       uint64_t to, struct tacho__passage with)
{
	if (b->diary)
		b->diary->with = with;
	tacho__book_block(b, w, index, to);
	if (b->diary)
		b->diary->with = (struct tacho__passage){.from = 0};
}

/* ---------------------------------------------------------------------- locks */

/* Whether that is where threads wait for each other to hand them something is known at the end. */
static void signalled(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t place,
		      uint64_t ns)
{
	uint32_t index;

	if (w->doing != TACHO__RUNNING || ns <= w->at)
		return;
	/* Before it serves anything it waits for that. */
	if (w->queue == TACHO__NONE) {
		tacho__book_give(b, w, tacho__book_owned(b, w, TACHO__OWNS_IDLE, 0, 0), ns);
		return;
	}
	index = tacho__book_owned(b, w, TACHO__OWNS_LOCK, TACHO__NONE, place);
	if (index != TACHO__NONE) {
		struct tacho__owned *o = tacho__owned_at(b->l, index);

		o->is_signal = 1;
		if (!o->place)
			o->place = place;
	}
	tacho__book_block(b, w, index, ns);
	w->signal_owned = index;
	/* One of those that serve a queue may have been waiting to be handed something. */
	if (w->standing == TACHO__IDLING)
		tacho__book_turns(w, ns);
}

void tacho__book_waits(struct tacho__ledger_book *b, struct tacho__worker *w,
		       const struct tacho__step *s, uint64_t ns)
{
	struct tacho__queue *q = tacho__queue_at(b, w);

	int is_signal = s->value && s->lock != w->of->interpreter_lock;

	w->waits_for = s->lock;
	w->signal_owned = TACHO__NONE;
	if (is_signal && tacho__book_idles(b, w, s->lock, ns))
		return;
	w->in_lock = 1;
	w->signal_guess = (uint8_t)is_signal;
	if (is_signal && q && q->serving > 1 && !w->depth && w->standing == TACHO__BUSY)
		tacho__queue_stand(b, w, q, TACHO__IDLING, ns);
}

void tacho__book_waited(struct tacho__ledger_book *b, struct tacho__worker *w,
			const struct tacho__step *s, uint64_t ns)
{
	int is_signal = s->value && s->lock != w->of->interpreter_lock;

	w->waits_for = 0;
	if (tacho__book_idled(b, w, s->lock, ns))
		return;
	w->in_lock = !is_signal;
	if (is_signal)
		signalled(b, w, s->place, ns);
	if (w->standing == TACHO__IDLING)
		tacho__queue_stand(b, w, tacho__queue_at(b, w), TACHO__BUSY, ns);
	if (is_signal)
		tacho__book_home(b, w, s->lock, ns);
}

/* From the release on it could have gone on. */
static void know_woken(struct tacho__worker *w, uint32_t index, const struct tacho__lock *l)
{
	struct tacho__blocked *last = &w->last_block, *largest = &w->open[w->depth].block;
	uint64_t woken = l->release_ns < l->end_ns ? l->end_ns - l->release_ns : 0;

	if (!l->release_ns || last->owned != index || last->end_ns != l->end_ns)
		return;
	last->is_told = 1;
	last->woken_ns = woken < last->ns ? woken : last->ns;
	if (largest->owned == last->owned && largest->end_ns == last->end_ns)
		*largest = *last;
}

/*
 * A thread of a pool that signals right after it has come for work says that there is room in its queue:
 * whoever waited for that has too much for the pool. One that is done with a piece of work signals before.
 */
static void know_room(struct tacho__ledger_book *b, struct tacho__owned *o,
		      const struct tacho__worker *by, const struct tacho__lock *l)
{
	const struct tacho__ledger_thread *t = &b->l->threads[by->thread];

	if (t->is_loop || !t->pool || !by->took_ns || l->release_ns < by->took_ns ||
	    l->release_ns - by->took_ns >= ROOM_NS)
		return;
	o->room_ns += l->end_ns - l->begin_ns;
	o->room_of = t->pool;
}

/* Who signalled what it waited for: one that serves the same queue has handed it what there is to do;
   so has any that serves one, before it did itself. */
static void know_signal(struct tacho__ledger_book *b, struct tacho__worker *w,
			const struct tacho__lock *l)
{
	struct tacho__owned *o = tacho__owned_at(b->l, w->signal_owned);
	const struct tacho__worker *by;

	/* Functions of a library wait for many things: the stack of the longest tells. */
	if (l->stack && (l->end_ns - l->begin_ns >= o->longest_ns || o->place == l->place))
		o->place = l->stack;
	if (!l->got && !l->cut)
		o->gave_up_ns += l->end_ns - l->begin_ns;
	if (!l->release_ns)
		return;
	know_woken(w, w->signal_owned, l);
	by = tacho__table_find(&b->workers, l->releaser.process, l->releaser.thread);
	if (by && by != w)
		know_room(b, o, by, l);
	if (!by || by == w)
		return;
	if (by->queue == TACHO__NONE ||
	    (w->queue != TACHO__NONE && tacho__queue_at(b, by) != tacho__queue_at(b, w))) {
		b->l->threads[by->thread].answers++;
		return;
	}
	o->handed_ns += l->end_ns - l->begin_ns;
	if (w->last_block.owned == w->signal_owned)
		w->last_block.is_handed = 1;
	if (w->open[w->depth].block.end_ns == w->last_block.end_ns)
		w->open[w->depth].block.is_handed = w->last_block.is_handed;
	/* What has become ready since then waits for it. */
	if (w->turn_from == l->end_ns && l->release_ns > l->begin_ns)
		w->turn_from = l->release_ns;
}

/* Of a wait from..to for what the holder had: the part in which the kernel did not run it. */
static void holder_lacked(struct tacho__ledger_book *b, uint32_t owned, uint64_t from, uint64_t to,
			  uint64_t since, uint64_t until, uint64_t off)
{
	uint64_t begin = from > since ? from : since, end = to < until ? to : until;

	if (end > begin)
		tacho__owned_at(b->l, owned)->holder_off_ns +=
			(uint64_t)((double)(end - begin) * ((double)off / (double)(until - since)));
}

void tacho__book_lacked(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			uint64_t to, uint64_t off)
{
	uint32_t at = w->lacked_count % TACHO__BOOK_KEPT;

	if (!off || to <= from)
		return;
	w->lacked[at].from = from;
	w->lacked[at].to = to;
	w->lacked[at].off = off;
	w->lacked_count++;
	for (uint32_t i = 0; i < TACHO__BOOK_KEPT && i < w->kept_count; i++)
		holder_lacked(b, w->kept[i].owned, w->kept[i].from, w->kept[i].to, from, to, off);
}

/* Another thread waited for a lock that this one had: what the kernel says of that time it has said
   already, or it will. */
static void kept(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
		 const struct tacho__lock *l)
{
	uint32_t at = w->kept_count++ % TACHO__BOOK_KEPT;

	w->kept[at].owned = owned;
	w->kept[at].from = l->begin_ns;
	w->kept[at].to = l->release_ns;
	for (uint32_t i = 0; i < TACHO__BOOK_KEPT && i < w->lacked_count; i++)
		holder_lacked(b, owned, l->begin_ns, l->release_ns, w->lacked[i].from,
			      w->lacked[i].to, w->lacked[i].off);
}

void tacho__book_lock(void *arg, const struct tacho__lock *l)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w = tacho__book_worker(b, l->at.process, l->at.thread), *holder;
	uint32_t index, did = TACHO__NONE;
	struct tacho__owned *o;
	uint64_t longest;

	if (!w || w->doing != TACHO__RUNNING)
		return;
	/* What an open wait is for shows when it ends. */
	if (w->in_lock && l->cut && (w->signal_guess || l->for_signal)) {
		w->in_lock = 0;
		signalled(b, w, l->place, l->end_ns);
	}
	if (l->is_signal)
		tacho__book_interpreter_lock(b, w, l);
	if (!w->in_lock) {
		if (l->is_signal)
			tacho__book_fed(b, w, l);
		if (l->is_signal && w->signal_owned != TACHO__NONE)
			tacho__book_inside(b, w, l);
		if (l->is_signal && w->signal_owned != TACHO__NONE)
			know_signal(b, w, l);
		return;
	}
	w->in_lock = 0;
	holder = l->release_ns
			 ? tacho__table_find(&b->workers, l->releaser.process, l->releaser.thread)
			 : NULL;
	index = tacho__book_owned(b, w, TACHO__OWNS_LOCK, holder ? holder->number : 0, l->lock);
	if (holder && holder != w)
		did = tacho__book_did(b, holder, l->begin_ns, l->release_ns, l->lock);
	longest = index == TACHO__NONE ? 0 : tacho__owned_at(b->l, index)->longest_ns;
	w->is_cut = (l->cut & TACHO__CUT_END) != 0;
	block_with(b, w, index, l->end_ns,
		   (struct tacho__passage){.place = l->stack ? l->stack : l->place,
					   .held_place = l->release_place,
					   .release_ns = l->release_ns});
	w->is_cut = 0;
	know_woken(w, index, l);
	if (index == TACHO__NONE)
		return;
	if (holder && holder != w)
		kept(b, holder, index, l);
	o = tacho__owned_at(b->l, index);
	o->lock = l->lock;
	if (o->longest_ns > longest || !o->place) {
		o->place = l->stack ? l->stack : l->place;
		o->holder = l->release_ns ? l->releaser.thread : 0;
		o->held_place = l->release_place;
		o->did = did == TACHO__NONE ? 0 : did + 1;
	}
}

/* --------------------------------------------------------------------- calls */

void tacho__book_call(void *arg, const struct tacho__call *c)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w = tacho__book_worker(b, c->at.process, c->at.thread);
	struct tacho__owned *o;
	uint32_t index;
	uint64_t longest;

	if (!w)
		return;
	tacho__book_lives(b, w, c->cut ? c->begin_ns : c->end_ns);
	if (w->doing != TACHO__RUNNING || c->end_ns <= w->at)
		return;
	w->calls++;
	tacho__book_settle(b, w, c->begin_ns);
	index = tacho__book_owned(b, w, TACHO__OWNS_CALL, c->name,
				  c->stack ? c->stack : c->code | UINT64_C(1) << 63);
	longest = index == TACHO__NONE ? 0 : tacho__owned_at(b->l, index)->longest_ns;
	w->is_cut = (c->cut & TACHO__CUT_END) != 0;
	block_with(b, w, index, c->end_ns,
		   (struct tacho__passage){.place = c->stack, .path = c->path});
	w->is_cut = 0;
	if (index == TACHO__NONE)
		return;
	o = tacho__owned_at(b->l, index);
	o->name = c->name;
	o->place = c->stack;
	if (o->longest_ns > longest || c->cut & TACHO__CUT_END) {
		o->is_open = (c->cut & TACHO__CUT_END) != 0;
		o->code = c->code;
	}
}

/* --------------------------------------------------------------------- holes */

void tacho__book_hole(void *arg, const struct tacho__hole *h)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w = tacho__table_find(&b->workers, h->process, h->thread);

	if (w)
		w->why = TACHO__UNSEEN_LOSS;
	tacho__queues_forget(b, h->process, h->to_ns);
}

void tacho__book_other(void *arg, const struct tacho__at *at, const struct tacho_event *e)
{
	struct tacho__ledger_book *b = arg;

	(void)at;
	if (e->type == TACHO_EV_STOPPED) {
		tacho__book_stop(b, e);
		return;
	}
	tacho__book_seen(b, tacho__book_process(b, e->process), e->process, e->ns);
	if (e->type == TACHO_EV_PAUSE)
		tacho__queues_forget(b, e->process, e->ns);
	else if (e->type == TACHO_EV_STEAL)
		tacho__queue_steals(b, e->process, e->arg, (uint32_t)TACHO_GET(e, STEAL, victim),
				    e->ns);
}
