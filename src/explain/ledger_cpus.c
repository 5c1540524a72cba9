/*
 * Who had the CPUs while a thread could run and did not.
 *
 * As long as a thread lacks a CPU, all of those that it may run on are with others. Where these are
 * threads of its own process, the code that they run keeps it waiting, not the kernel. What that
 * is known from: callbacks and turns of a millisecond and more, whose time on a CPU the kernel told
 * when they ended, against stretches in which a thread lacked one. Each of the CPUs has an equal part
 * of the blame; what others than those threads had stays with the kernel. The time stays where it is:
 * the thread did not run. What waited meanwhile goes to the code.
 *
 * Both kinds of stretches are kept for a while by process, so that each pair of them meets once,
 * whichever ends first.
 */
#include "explain/ledger_book.h"

#define LONG_NS 1000000u /* what waits for less is not kept waiting */

/* What it has of a part of its length, evenly. */
static double part_of(const struct tacho__cpu_time *s, uint64_t length)
{
	return (double)s->ns * ((double)length / (double)(s->to - s->from));
}

static void take(struct tacho__owned *o, uint64_t size_ns, uint64_t amount)
{
	struct tacho__size *s = &o->size[tacho__size_of(size_ns)];

	o->waiting_ns -= amount;
	s->waiting_ns -= tacho__least(amount, s->waiting_ns);
	o->estimated_ns = tacho__least(o->estimated_ns, o->waiting_ns);
}

static void put(struct tacho__ledger_book *b, const struct tacho__cpu_time *ran, uint64_t amount)
{
	struct tacho__owned *o = tacho__owned_at(b->l, ran->owned);
	uint32_t size = tacho__size_of(ran->size_ns);
	struct tacho__function *f =
		ran->function ? tacho__table_at(&b->l->functions, ran->function - 1) : NULL;

	o->waiting_ns = tacho__add(o->waiting_ns, amount);
	o->size[size].waiting_ns = tacho__add(o->size[size].waiting_ns, amount);
	if (!f)
		return;
	o->sample_cost += (double)amount;
	f->cost += (double)amount;
	f->size[size].waiting_ns = tacho__add(f->size[size].waiting_ns, amount);
}

/* How much of what is lacked they have in common: in that, a thread of the process had a CPU. */
static double own_of(const struct tacho__cpu_time *lacked, const struct tacho__cpu_time *ran)
{
	uint64_t from = lacked->from > ran->from ? lacked->from : ran->from;
	uint64_t to = tacho__least(lacked->to, ran->to);
	double a, c;

	if (to <= from || lacked->worker == ran->worker)
		return 0;
	a = part_of(lacked, to - from);
	c = part_of(ran, to - from);
	return (a < c ? a : c) / lacked->cpus;
}

/* Of what waited because of a lack, the part that is the code's. */
static void blame(struct tacho__ledger_book *b, const struct tacho__cpu_time *lacked,
		  const struct tacho__cpu_time *ran, double own, uint64_t waiting, uint64_t size_ns)
{
	struct tacho__owned *off = tacho__owned_at(b->l, lacked->owned);
	uint64_t amount = (uint64_t)((double)waiting * (own / (double)lacked->ns));

	amount = tacho__least(amount, off->waiting_ns);
	take(off, size_ns, amount);
	put(b, ran, amount);
}

static void meet(struct tacho__ledger_book *b, struct tacho__cpu_time *lacked,
		 const struct tacho__cpu_time *ran)
{
	double own = own_of(lacked, ran);

	if (own > (double)lacked->left_ns)
		own = (double)lacked->left_ns;
	if (own < 1)
		return;
	lacked->left_ns -= (uint64_t)own;
	tacho__owned_at(b->l, lacked->owned)->own_ns += (uint64_t)own;
	blame(b, lacked, ran, own, lacked->waiting_ns, lacked->ns);
}

void tacho__book_lacks(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
		       uint64_t from, uint64_t to, uint64_t ns, uint64_t waiting)
{
	struct tacho__book_process *p = w->of;
	struct tacho__cpu_time *s = &p->lacked[p->lacked_count % TACHO__BOOK_STRETCHES];

	if (!w->cpus || ns < LONG_NS || to <= from || owned == TACHO__NONE)
		return;
	*s = (struct tacho__cpu_time){.from = from,
				      .to = to,
				      .ns = ns,
				      .left_ns = ns,
				      .waiting_ns = waiting,
				      .owned = owned,
				      .worker = w->entry.index,
				      .cpus = w->cpus};
	p->lacked_count++;
	for (uint32_t i = 0; i < p->ran_count && i < TACHO__BOOK_STRETCHES; i++)
		meet(b, s, &p->ran[i]);
}

void tacho__book_lack_costs(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t owned,
			    uint64_t at, uint64_t length, uint64_t waiting)
{
	struct tacho__book_process *p = w->of;
	struct tacho__cpu_time *s = NULL;
	double left, own;

	for (uint32_t i = 0; i < p->lacked_count && i < TACHO__BOOK_STRETCHES; i++)
		if (p->lacked[i].worker == w->entry.index && p->lacked[i].owned == owned &&
		    p->lacked[i].from <= at && p->lacked[i].to > at)
			s = &p->lacked[i];
	if (!s)
		return;
	s->waiting_ns = tacho__add(s->waiting_ns, waiting);
	left = (double)s->ns;
	for (uint32_t i = 0; i < p->ran_count && i < TACHO__BOOK_STRETCHES; i++) {
		own = own_of(s, &p->ran[i]);
		own = own < left ? own : left;
		left -= own;
		blame(b, s, &p->ran[i], own, waiting, length);
	}
}

static void ran(struct tacho__ledger_book *b, struct tacho__book_process *p,
		const struct tacho__cpu_time *s)
{
	for (uint32_t i = 0; i < p->lacked_count && i < TACHO__BOOK_STRETCHES; i++)
		meet(b, &p->lacked[i], s);
	p->ran[p->ran_count++ % TACHO__BOOK_STRETCHES] = *s;
}

/* The code of a turn, stretch by stretch: between them it may have waited for long. What the kernel took
   of one is behind it, but was anywhere in both. */
void tacho__book_ran(struct tacho__ledger_book *b, struct tacho__worker *w,
		     const struct tacho__paid *e, uint64_t size_ns)
{
	uint32_t kept = w->piece_count < TACHO__BOOK_PIECES ? w->piece_count : TACHO__BOOK_PIECES;
	struct tacho__cpu_time s = {.from = e->from_ns,
				    .to = e->end_ns,
				    .ns = e->ns,
				    .size_ns = size_ns,
				    .owned = e->owned,
				    .function = e->function,
				    .worker = w->entry.index};
	uint64_t off_to = 0;

	if (e->kind) {
		if (s.to > s.from)
			ran(b, w->of, &s);
		return;
	}
	for (uint32_t i = 1; i < kept; i++) {
		uint32_t owned = w->pieces[(w->piece_count - i) % TACHO__BOOK_PIECES].owned;
		uint64_t to = w->pieces[(w->piece_count - i) % TACHO__BOOK_PIECES].to;
		uint64_t from = w->pieces[(w->piece_count - i - 1) % TACHO__BOOK_PIECES].to;

		if (to <= e->from_ns)
			break;
		from = from > e->from_ns ? from : e->from_ns;
		if (owned == e->owned && to - from >= LONG_NS) {
			s.from = from;
			s.to = off_to ? off_to : to;
			s.ns = to - from;
			ran(b, w->of, &s);
		}
		off_to = owned != TACHO__NONE && tacho__owned_at(b->l, owned)->owns ==
							 TACHO__OWNS_DESCHEDULED
				 ? to
				 : 0;
	}
}
