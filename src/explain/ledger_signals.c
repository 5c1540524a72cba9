/*
 * Waits for conditions, by whose code is in the middle of them. The place of such a wait is often in a
 * library that waits for everybody: all of Rust's waits are in two or three functions, those of the
 * workers of Tokio as well as those of the program. The stack of a long one tells them apart, and
 * whether what looks like a condition from outside is a lock.
 */
#include <string.h>

#include "base/hash.h"
#include "explain/ledger_book.h"
#include "model/language.h"

static void look(struct tacho__ledger_book *b, const struct tacho__lock *l,
		 struct tacho__resolved *r)
{
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n = tacho__places_of_id(b->l->reader, l->at.process, l->stack, l->end_ns, places,
					 TACHO__PLACES_MAX);
	uint32_t own = tacho__places_own(places, n);

	r->known = 1;
	r->is_interpreters = (uint8_t)tacho__places_of_interpreter_lock(places, n);
	r->is_lock = r->is_interpreters || (own < n && tacho__places_of_lock(places, own));
	if (own < n)
		r->function = places[own].function[0]
				      ? tacho__hash_bytes(places[own].function,
							  strlen(places[own].function), 0)
				      : places[own].address;
}

/* Whether the program itself waits at that place, so that it tells enough. */
static int is_own_place(struct tacho__ledger_book *b, const struct tacho__lock *l)
{
	struct tacho__resolved *r =
		tacho__table_get(&b->resolved, l->at.process, (uint64_t)l->place << 32, &b->error);
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n;

	if (!r)
		return 1;
	if (!r->known) {
		n = tacho__places_of_id(b->l->reader, l->at.process, l->place, l->end_ns, places,
					TACHO__PLACES_MAX);
		r->known = 1;
		r->function = tacho__places_own(places, n) < n;
	}
	return r->function != 0;
}

/* What is charged for its time later finds its owner by the piece. */
static void move_piece(struct tacho__worker *w, uint32_t to, uint64_t begin_ns)
{
	const struct tacho__blocked *last = &w->last_block;
	uint32_t at = (w->piece_count - 1) % TACHO__BOOK_PIECES;
	uint64_t from = w->piece_count > 1 ? w->pieces[(w->piece_count - 2) % TACHO__BOOK_PIECES].to
					   : w->first_piece;

	if (!w->piece_count || w->pieces[at].owned != last->owned ||
	    w->pieces[at].to != last->end_ns)
		return;
	/* With one before it that has the same owner. */
	if (from < begin_ns) {
		w->pieces[at].to = begin_ns;
		at = w->piece_count++ % TACHO__BOOK_PIECES;
		w->pieces[at].to = last->end_ns;
	}
	w->pieces[at].owned = to;
}

static void move_block(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t to,
		       uint64_t begin_ns)
{
	struct tacho__blocked *last = &w->last_block, *largest = &w->open[w->depth].block;
	struct tacho__owned *from = tacho__owned_at(b->l, last->owned);
	struct tacho__owned *o = tacho__owned_at(b->l, to);

	move_piece(w, to, begin_ns);
	if (from->longest_at_ns + from->longest_ns == last->end_ns) {
		from->longest_ns = last->before;
		from->longest_at_ns = last->before_at_ns;
	}
	tacho__book_unnote(from, last->ns, last->waiting_ns);
	tacho__book_shift(b, last->owned, to, last->ns, last->waiting_ns);
	last->before = o->longest_ns;
	last->before_at_ns = o->longest_at_ns;
	if (last->ns > o->longest_ns) {
		o->kind = w->open[w->depth].kind;
		o->loop = w->loop;
	}
	tacho__book_note(o, last->ns, last->waiting_ns, last->end_ns);
	if (largest->owned == last->owned && largest->end_ns == last->end_ns)
		largest->owned = to;
	for (uint32_t i = 0; i < w->block_count; i++)
		if (w->blocks[i].owned == last->owned && w->blocks[i].end_ns == last->end_ns)
			w->blocks[i].owned = to;
	last->owned = to;
}

static uint32_t locked(struct tacho__ledger_book *b, struct tacho__worker *w,
		       const struct tacho__lock *l)
{
	struct tacho__worker *holder =
		l->release_ns
			? tacho__table_find(&b->workers, l->releaser.process, l->releaser.thread)
			: NULL;
	uint32_t did = holder && holder != w
			       ? tacho__book_did(b, holder, l->begin_ns, l->release_ns, l->lock)
			       : TACHO__NONE;
	uint32_t to =
		tacho__book_owned(b, w, TACHO__OWNS_LOCK, holder ? holder->number : 0, l->lock);
	struct tacho__owned *o;

	if (to == TACHO__NONE)
		return to;
	o = tacho__owned_at(b->l, to);
	o->lock = l->lock;
	if (w->last_block.ns > o->longest_ns || !o->place) {
		o->place = l->stack;
		o->holder = l->release_ns ? l->releaser.thread : 0;
		o->held_place = l->release_place;
		o->did = did == TACHO__NONE ? 0 : did + 1;
	}
	return to;
}

/* A short wait has no stack; its place tells where the interpreter has names for its own functions. */
void tacho__book_interpreter_lock(struct tacho__ledger_book *b, struct tacho__worker *w,
				  const struct tacho__lock *l)
{
	uint32_t id = l->stack ? l->stack : l->place;
	struct tacho__resolved *r;
	struct tacho__place places[TACHO__PLACES_MAX];
	uint32_t n;

	if (l->lock == w->of->interpreter_lock)
		return;
	r = tacho__table_get(&b->resolved, l->at.process, (uint64_t)id << 32 | 2, &b->error);
	if (!r)
		return;
	if (!r->known) {
		n = tacho__places_of_id(b->l->reader, l->at.process, id, l->end_ns, places,
					TACHO__PLACES_MAX);
		r->known = 1;
		r->is_interpreters = (uint8_t)tacho__places_of_interpreter_lock(places, n);
	}
	if (!r->is_interpreters)
		return;
	w->of->interpreter_lock = l->lock;
	tacho__book_no_pool(b, w->process, l->lock, l->end_ns);
}

void tacho__book_inside(struct tacho__ledger_book *b, struct tacho__worker *w,
			const struct tacho__lock *l)
{
	struct tacho__resolved *r;
	uint32_t to;

	if (!l->stack || w->last_block.owned != w->signal_owned ||
	    w->last_block.end_ns != l->end_ns)
		return;
	r = tacho__table_get(&b->resolved, l->at.process, (uint64_t)l->stack << 32 | 1, &b->error);
	if (!r)
		return;
	if (!r->known)
		look(b, l, r);
	if (!r->is_interpreters && is_own_place(b, l))
		return;
	if (!r->function) {
		tacho__owned_at(b->l, w->signal_owned)->is_librarys = 1;
		return;
	}
	to = r->is_lock ? locked(b, w, l)
			: tacho__book_owned(b, w, TACHO__OWNS_LOCK, TACHO__NONE, r->function);
	if (to == TACHO__NONE)
		return;
	tacho__owned_at(b->l, to)->is_signal = !r->is_lock;
	move_block(b, w, to, l->begin_ns);
	w->signal_owned = r->is_lock ? TACHO__NONE : to;
}
