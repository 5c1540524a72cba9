/*
 * Whether what a thread serves comes whatever the thread does, or as answers let it come.
 *
 * A wait that reports one descriptor does not say how many wait behind it: one client that asks again when
 * it has its answer, or a queue of which others know nothing of each other. What follows a turn that took
 * long tells the two apart. Who waits for an answer needs as long for the next question as after any
 * other turn. Where things come by themselves, some came meanwhile: the next wait returns at once, and so
 * does the next but one; or the turn itself goes on with more callbacks than others have.
 */
#include "explain/ledger_book.h"
#include "model/judgement.h"

int tacho__was_at_once(const struct tacho__worker *w, uint64_t ns)
{
	uint64_t turn = (w->wait_from - w->turn_from) / 50, waited = ns - w->wait_from;

	return waited < TACHO__AT_ONCE_NS || (waited < turn && waited < 10 * TACHO__AT_ONCE_NS);
}

void tacho__book_arrives(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ready,
			 uint64_t ns)
{
	struct tacho__arrivals *a = &b->l->threads[w->thread].arrivals;
	uint64_t polls = w->turn_polls, waited = ns - w->wait_from;

	w->turn_polls = 0;
	/* What the turn before was for is not known, or nothing. */
	if (!w->ready || !w->turn_from || w->wait_from <= w->turn_from) {
		w->is_behind = 0;
		return;
	}
	if (w->wait_from - w->turn_from >= tacho__kept_waiting_ns) {
		/* After these the recorder itself takes a moment. */
		w->is_behind = ready && tacho__was_at_once(w, ns);
		a->kept++;
		a->kept_polls += polls;
		a->found += w->is_behind;
		return;
	}
	w->is_behind &= ready && waited < tacho__short_wait_ns;
	if (w->is_behind) {
		a->found++;
		return;
	}
	a->brief++;
	a->brief_polls += polls;
	a->soon += ready && waited < tacho__asks_again_ns;
}

int tacho__arrive_by_themselves(const struct tacho__arrivals *a)
{
	double brief = (double)a->brief, kept = (double)a->kept;
	double usual = a->brief_polls ? (double)a->brief_polls / brief : 0;
	double more = usual > 0 ? (double)a->kept_polls / usual - kept : 0;
	double found = (double)a->found + (more > 0 ? more : 0);
	/* How many follow at once after other turns, in a row. */
	double follow = ((double)a->soon + 1) / (brief - (double)a->soon + 1);

	return found >= (double)tacho__arrivals_least && found >= tacho__arrivals_share * kept &&
	       found >= tacho__arrivals_times * follow * kept;
}
