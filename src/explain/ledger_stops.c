/*
 * Stops of a whole process, which somebody saw from outside. When one began and ended is not known
 * to the instant, but what the process records it does not record while it is stopped.
 */
#include "explain/ledger_book.h"

/* What comes out of a wait that much of the stop's length after it became ready in the stop: there
   was ten times as much time for it. */
#define SOON 10u

void tacho__book_stop_cost(struct tacho__worker *w, struct tacho__owned *o, uint64_t waiting)
{
	struct tacho__book_process *p = w->of;
	struct tacho__size *s = &o->size[tacho__size_of(p->stop_ns)];

	s->waiting_ns = tacho__add(s->waiting_ns, waiting);
	/* One occurrence, whatever number of threads it keeps. */
	if (!waiting || p->stop_cost)
		return;
	p->stop_cost = 1;
	tacho__size_more(s, p->stop_ns, 0, p->stop.from_ns, p->stop_ns);
}

void tacho__book_stopped(struct tacho__ledger_book *b, struct tacho__worker *w,
			 enum tacho__owns_reason reason, uint64_t to)
{
	uint32_t index = tacho__book_owned(b, w, TACHO__OWNS_STOPPED, reason, 0);
	uint64_t from = w->at, waiting = tacho__book_give(b, w, index, to);
	struct tacho__owned *o;

	if (to <= from || index == TACHO__NONE)
		return;
	o = tacho__owned_at(b->l, index);
	o->reason = reason;
	o->count++;
	if (to - from > o->longest_ns) {
		o->longest_ns = to - from;
		o->longest_at_ns = from;
	}
	tacho__book_stop_cost(w, o, waiting);
}

static struct tacho__queue_stop *stop_of(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	struct tacho__queue *q = tacho__queue_at(b, w);

	return q ? &q->stop : &w->stop;
}

/* What a thread that runs does is known when that ends. */
static void stop_worker(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t from,
			uint64_t to)
{
	from = from > w->at ? from : w->at;
	if (to <= from || w->gone)
		return;
	if (w->doing == TACHO__WAITING) {
		tacho__book_settle(b, w, from);
		tacho__book_stopped(b, w, w->of->stop.reason, to);
		w->wait_stopped += to - from;
		*stop_of(b, w) = (struct tacho__queue_stop){from, to, 0};
	} else if (w->doing == TACHO__RUNNING && w->off_count < TACHO__BOOK_OFFS) {
		if (w->off_count && from < w->offs[w->off_count - 1].to)
			from = w->offs[w->off_count - 1].to;
		w->offs[w->off_count].from = from;
		w->offs[w->off_count].to = to > from ? to : from;
		w->offs[w->off_count++].stopped = w->of->stop.reason;
	}
}

static void add_stop(struct tacho__ledger_stops *s, enum tacho__owns_reason reason, uint64_t from,
		     uint64_t to)
{
	if (!s->count++)
		s->first_ns = from;
	s->reason = reason;
	s->from_ns = from;
	s->to_ns = to;
	s->ns += to - from;
	if (to - from > s->longest_ns) {
		s->longest_ns = to - from;
		s->longest_at_ns = from;
	}
}

void tacho__book_stop_ends(struct tacho__ledger_book *b, uint32_t process, uint64_t ns)
{
	struct tacho__book_process *p = tacho__book_process(b, process);
	uint64_t from = p->stop.from_ns, to = p->stop.until_ns < ns ? p->stop.until_ns : ns;

	p->stop.until_ns = 0;
	if (to <= from)
		return;
	p->stop_ns = to - from;
	p->stop_cost = 0;
	if (process < b->process_count)
		add_stop(&b->l->stops[process], p->stop.reason, from, to);
	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));)
		if (w->process == process)
			stop_worker(b, w, from, to);
}

void tacho__book_stop_seen(struct tacho__ledger_book *b, uint32_t process, uint64_t ns)
{
	struct tacho__book_process *p = tacho__book_process(b, process);

	if (ns <= p->stop.seen_ns)
		p->stop.from_ns = ns;
	else
		tacho__book_stop_ends(b, process, ns);
}

void tacho__book_stop(struct tacho__ledger_book *b, const struct tacho_event *e)
{
	struct tacho__book_process *p = tacho__book_process(b, e->process);
	uint64_t until_ns = TACHO_GET(e, STOPPED, until_ns);

	if (until_ns <= e->ns)
		return;
	/* The rest of one in the middle of which a window was written. */
	if (p->stop.until_ns && e->ns <= p->stop.until_ns) {
		p->stop.seen_ns = TACHO_GET(e, STOPPED, seen_ns);
		p->stop.until_ns = until_ns;
		return;
	}
	if (p->stop.until_ns)
		tacho__book_stop_ends(b, e->process, e->ns);
	p->stop.from_ns = e->ns;
	p->stop.seen_ns = TACHO_GET(e, STOPPED, seen_ns);
	p->stop.until_ns = until_ns;
	p->stop.reason = TACHO_GET(e, STOPPED, traced)	 ? TACHO__STOPPED_TRACED
			 : TACHO_GET(e, STOPPED, frozen) ? TACHO__STOPPED_FROZEN
							 : TACHO__STOPPED_SIGNAL;
}

/* As of turns: short by itself, or beside the stop. */
static int is_short(uint64_t waited, uint64_t length)
{
	return waited < TACHO__AT_ONCE_NS ||
	       (waited < length / 50 && waited < 10 * TACHO__AT_ONCE_NS);
}

void tacho__book_stop_waited(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ready,
			     uint64_t ns)
{
	struct tacho__queue_stop *s = stop_of(b, w);
	uint64_t length = s->to - s->from;
	int is_next = w->wait_from >= s->to, soon = ns <= s->to + length / SOON;
	int at_once = is_next && is_short(ns - w->wait_from, length);

	if (!s->to)
		return;
	if (ready && (is_next ? at_once && (soon || !s->told) : soon)) {
		tacho__book_charge(b, w, s->from, s->to, tacho__times(ready, length) / 2,
				   TACHO__ESTIMATED);
		s->told = 1;
	}
	/* A stop ends some waits with EINTR: then the next one returns what is ready, as much as it
	   has room for. One that returns less, or waits, has left nothing. */
	if ((is_next && !at_once) || (s->told && !soon) ||
	    (ready ? w->own || ready < b->l->threads[w->thread].most_ready : is_next))
		s->to = 0;
}
