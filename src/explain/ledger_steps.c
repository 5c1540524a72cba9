/* What threads do, step by step: when a stretch of time ends, and what begins. */

#include <string.h>

#include "explain/ledger_book.h"

#define READY_MAX 65536u
#define SHORT_NS 100000u
#define LONG_NS 1000000u
/* So much of what is usual is taken for it: where one thing takes longer, that is what is wrong. */
#define USUAL_MAX 2000000u
#define UNUSUAL_NS 30000000u /* three samples */
#define USUAL_TIMES 3u	     /* a turn in which each thing took no longer just had many */

/* It serves this loop from now on. */
static void serve(struct tacho__ledger_book *b, struct tacho__worker *w,
		  const struct tacho__step *s, enum tacho__standing standing, uint64_t ns)
{
	struct tacho__ledger_thread *t = &b->l->threads[w->thread];
	struct tacho__queue *q;

	if (s->loop && s->loop == w->loop && (w->queue != TACHO__NONE || w->own)) {
		q = tacho__queue_at(b, w);
	} else {
		q = tacho__queue_served(b, w, s->loop);
		w->loop = s->loop;
		w->level = s->level;
		if (w->depth == 0)
			w->open[0].owned = TACHO__NONE;
	}
	if (s->loop) {
		t->is_loop = 1;
		t->loop = s->loop;
		t->level = s->level;
	}
	tacho__queue_stand(b, w, q, standing, ns);
}

/* ----------------------------------------------------------- polls and turns */

/* What one thing takes: the median of those of the last turns. */
static uint64_t usual(const struct tacho__worker *w)
{
	uint32_t n = w->each_count < TACHO__BOOK_TURNS ? w->each_count : TACHO__BOOK_TURNS, i = 0;
	struct tacho__each sorted[TACHO__BOOK_TURNS];
	uint64_t things = 0, before = 0;

	for (; i < n; i++) {
		uint32_t at = i;

		for (; at && sorted[at - 1].ns > w->each[i].ns; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = w->each[i];
		things += w->each[i].things;
	}
	for (i = 0; i < n && (before += sorted[i].things) * 2 <= things;)
		i++;
	return i < n ? sorted[i].ns : 0;
}

/* Of the things that were ready in a turn, all but one took what they usually do. */
static uint64_t size_of_turn(struct tacho__worker *w, const struct tacho__paid *p)
{
	uint32_t ready = p->ready ? p->ready : 1;
	uint64_t each = p->ns / ready, others, size = p->ns;

	/* What others may have left to it is no reason to call what it did usual. */
	w->each[w->each_count++ % TACHO__BOOK_TURNS] =
		(struct tacho__each){each, p->got ? p->got : 1};
	if (size >= LONG_NS && ready > 1) {
		uint64_t often = usual(w);

		others = (ready - 1) * (often < USUAL_MAX ? often : USUAL_MAX);
		size = each <= USUAL_TIMES * often ? each : size - (others < size ? others : size);
	}
	return size;
}

/* Whether samples say that the turn was another one than usual: they are in a function that has less than
   half of those of the thread. */
static int is_unusual(const struct tacho__ledger_book *b, const struct tacho__paid *p)
{
	const struct tacho__function *f =
		p->function ? tacho__table_at(&b->l->functions, p->function - 1) : NULL;

	return f && p->owned != TACHO__NONE && p->votes_ns >= UNUSUAL_NS &&
	       2 * f->ns < tacho__owned_at(b->l, p->owned)->sample_ns;
}

/*
 * How many things there were to do in the turn that ends, beside those that its wait reported. What waits
 * of one thread report, others that serve the same queue may do: their part of that counts as well.
 */
static uint32_t things_of_others(const struct tacho__ledger_book *b, const struct tacho__worker *w)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);
	uint64_t others;

	if (!q || q->serving < 2 || is_unusual(b, &w->open[0]))
		return 0;
	others = (q->reported - w->turn_reported) / q->serving;
	return (uint32_t)(others < READY_MAX ? others : READY_MAX);
}

void tacho__book_count(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	struct tacho__paid *e = &w->ended;
	uint64_t size;

	if (w->silent_count && e->kind != TACHO__NONE)
		tacho__book_silent(b, w, e, 0);
	size = e->ns;
	if (e->kind != TACHO__NONE && e->owned != TACHO__NONE && e->ns) {
		if (!e->kind)
			w->turn_size = size = size_of_turn(w, e);
		tacho__book_note_as(tacho__owned_at(b->l, e->owned), e->ns, size, e->waiting_ns,
				    e->begin_ns + e->ns,
				    e->end_ns > e->begin_ns ? e->end_ns - e->begin_ns : 0);
		if (size >= LONG_NS)
			tacho__book_dominated(b, w, e, size);
		if (e->ns >= LONG_NS)
			tacho__book_ran(b, w, e, size);
	}
	w->ended.kind = TACHO__NONE;
}

static void begin_paid(struct tacho__paid *p, uint32_t kind, uint64_t ns)
{
	/* Copied: compilers clear so much with an instruction that is slow to begin. */
	static const struct tacho__paid none;

	*p = none;
	p->kind = kind;
	p->owned = p->block.owned = TACHO__NONE;
	p->begin_ns = ns;
}

static void open_frame(struct tacho__worker *w, uint32_t kind, uint64_t ns)
{
	if (w->depth + 1 < TACHO__BOOK_FRAMES)
		w->depth++;
	begin_paid(&w->open[w->depth], kind, ns);
}

/* What is left of it is known when the next one ends. */
static void close_frame(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	const struct tacho__paid *p = &w->open[w->depth];

	if (w->ended.kind != TACHO__NONE)
		tacho__book_count(b, w);
	/* The kernel is asked about long ones alone. */
	if (p->ns + p->block.ns + p->off_ns >= SHORT_NS) {
		w->ended = *p;
		w->ended.from_ns = w->depth ? p->begin_ns : w->wait_to;
		w->ended.end_ns = ns;
	} else if (p->ns && p->owned != TACHO__NONE) {
		tacho__book_note(tacho__owned_at(b->l, p->owned), p->ns, p->waiting_ns, ns);
		if (!p->kind)
			w->turn_size = size_of_turn(w, p);
	}
	if (w->depth)
		w->depth--;
	else
		begin_paid(&w->open[0], 0, ns);
}

void tacho__book_turn_ends(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	w->open[0].got = w->open[0].ready = 1;
	close_frame(b, w, ns);
	tacho__book_count(b, w);
}

/* No wait reports that a timer is due. */
static int is_timer(struct tacho__ledger_book *b, uint32_t process, uint32_t kind)
{
	struct tacho__known_id *k = &b->kinds[kind % TACHO__BOOK_KNOWN];
	const struct tacho_definition *d;

	if (k->process != process || k->id != kind) {
		d = tacho_read_definition(b->l->reader, process, kind);
		*k = (struct tacho__known_id){process, kind, d && strstr(d->name, "timer")};
	}
	return (int)k->value;
}

/* So late that it did not run; unless its clock is behind by what the turn before took. */
static enum tacho__owns_reason overslept(const struct tacho__worker *w, uint64_t late)
{
	uint64_t turn = w->wait_from > w->turn_before ? w->wait_from - w->turn_before : 0;

	return late >= 2 * TACHO__QUIET_NS + turn ? TACHO__LATE_STOPPED : TACHO__LATE_TIMER;
}

static void begins(struct tacho__ledger_book *b, struct tacho__worker *w,
		   const struct tacho__step *s, uint64_t ns)
{
	if (w->doing == TACHO__WAITING && w->standing == TACHO__PARKED)
		w->wait_from = w->wait_to = ns;
	w->doing = TACHO__RUNNING;
	if (s->from && s->from != s->loop && s->loop)
		tacho__queue_migrates(b, w->process, s->from, s->loop, ns);
	if (s->loop != w->loop || w->standing != TACHO__BUSY)
		serve(b, w, s, TACHO__BUSY, ns);
	if (w->late_next) {
		uint64_t due = ns - (w->late_next < ns ? w->late_next : ns);

		if (due < w->wait_to)
			tacho__book_late(b, w, w->wait_to - due, overslept(w, w->wait_to - due), 0);
		tacho__book_charge(b, w, due, ns, w->late_next, TACHO__EXACT);
		w->late_next = 0;
	} else if (!w->depth && w->halves > 1 && !w->halves_estimated) {
		w->halves -= is_timer(b, w->process, s->kind) ? 0 : 2;
		tacho__own_waits(b, w, ns);
	}
	w->turn_polls += !w->depth && !is_timer(b, w->process, s->kind);
	open_frame(w, s->kind, ns);
}

/*
 * A thread waits for work where it waits most often. Another wait, as with poll for one descriptor
 * in the middle of a callback, is a call that blocks.
 */
static int is_in_the_middle(struct tacho__worker *w, uint32_t loop)
{
	if (loop == w->main_loop || !w->main_waits) {
		w->main_loop = loop;
		w->main_waits++;
		return 0;
	}
	if (++w->other_waits * 4 < w->main_waits)
		return 1;
	w->main_loop = loop;
	w->main_waits = 1;
	w->other_waits = 0;
	return 0;
}

/* From a turn of one loop to a wait of another; or back. */
static void leave(struct tacho__worker *w, uint32_t to)
{
	const struct tacho__paid *p = &w->open[0];

	if (w->left.owned != TACHO__NONE && to == w->left.loop)
		w->left.owned = TACHO__NONE;
	if (w->depth || to == w->turn_loop)
		return;
	w->left = (struct tacho__left_turn){.loop = w->turn_loop,
					    .owned = p->owned,
					    .function = p->function,
					    .ns = p->ns,
					    .waiting_ns = p->waiting_ns,
					    .block_count = w->block_count};
	memcpy(w->left.blocks, w->blocks, sizeof(w->left.blocks));
}

void tacho__book_forget_left(struct tacho__ledger_book *b, struct tacho__worker *w)
{
	if (w->left.owned == TACHO__NONE)
		return;
	tacho__book_unnote(tacho__owned_at(b->l, w->left.owned), w->left.ns, w->left.waiting_ns);
	if (w->left.function)
		tacho__size_less(((struct tacho__function *)tacho__table_at(&b->l->functions,
									    w->left.function - 1))
					 ->size,
				 w->left.ns, w->left.waiting_ns);
	tacho__book_unblock(b, w->left.blocks, w->left.block_count);
}

static void parks(struct tacho__ledger_book *b, struct tacho__worker *w,
		  const struct tacho__step *s, uint64_t ns)
{
	if (s->level == TACHO_LEVEL_WAITS && is_in_the_middle(w, s->loop)) {
		w->blocked_on = s->loop;
		return;
	}
	/* What never had a callback was not waiting for one. */
	if (w->halves > 1 && !w->halves_estimated && w->turn_from) {
		uint64_t relief = tacho__times(w->halves / 2, ns - w->turn_from);

		tacho__book_charge(b, w, w->turn_from, ns, relief, TACHO__RELIEVED);
		w->open[0].waiting_ns -= tacho__least(relief, w->open[0].waiting_ns);
	}
	tacho__own_waits_end(b, w, ns);
	leave(w, s->loop);
	w->ended_blocks = w->block_count;
	w->block_count = 0;
	w->turn_size = UINT64_MAX;
	w->turn_parked =
		w->parked_ns > w->turn_parked_then ? w->parked_ns - w->turn_parked_then : 0;
	if (!w->depth) {
		w->itself_ns = w->open[0].ns;
		w->itself_waiting = w->open[0].waiting_ns;
		w->open[0].got = w->ready + w->left_ready;
		if (w->open[0].got < w->accepted)
			w->open[0].got = w->accepted;
		w->open[0].ready = w->open[0].got + things_of_others(b, w);
		close_frame(b, w, ns);
		/* Else the kernel's part is told next. */
		if (!s->value)
			tacho__book_count(b, w);
	}
	serve(b, w, s, TACHO__PARKED, ns);
	if (w->queue != TACHO__NONE)
		tacho__queue_at(b, w)->asked_ns = ns;
	w->doing = TACHO__WAITING;
	w->wait_ns = w->wait_to > w->wait_from ? w->wait_to - w->wait_from : 0;
	w->wait_from = ns;
	w->wait_off = w->wait_stopped = 0;
	w->wait_woke = 0;
}

/* What the wait returned at once became ready in the turn before. */
static void at_once(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ready)
{
	const struct tacho__queue *q = tacho__queue_at(b, w);
	uint64_t length = w->wait_from - w->turn_from, amount;
	uint64_t parked = w->turn_parked;

	/* Tasks that were woken meanwhile are counted by their wakes; not those that the wait itself
	   woke, for what had been ready before. */
	if (q && w->of->wakes) {
		uint64_t before = q->waiting - tacho__least(w->wait_woke, q->waiting);

		ready -= tacho__least(before, ready);
	}
	length -= parked < length ? parked : length;
	amount = tacho__times(ready, length) / 2;
	tacho__book_charge(b, w, w->turn_from, w->wait_from, amount, TACHO__ESTIMATED);
	if (b->waits && ready)
		b->waits->more(b->waits->arg, w->process, w->number, w->turn_from, w->wait_from, 0,
			       (double)ready);
}

static void unblocks(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	uint32_t index = tacho__book_owned(b, w, TACHO__OWNS_CALL, w->blocked_on, 0);

	if (index != TACHO__NONE)
		tacho__owned_at(b->l, index)->name = w->blocked_on;
	w->blocked_on = 0;
	if (w->doing != TACHO__RUNNING)
		return;
	tacho__book_block(b, w, index, ns);
	w->unblocked = 1;
}

static void unparks(struct tacho__ledger_book *b, struct tacho__worker *w,
		    const struct tacho__step *s, uint64_t ns)
{
	uint64_t ready = s->value < READY_MAX ? s->value : READY_MAX;
	struct tacho__queue *q;
	int waited = w->doing == TACHO__WAITING;

	/* It only asked: it has something left to do, as asyncio has after it took what there was. */
	w->left_ready = waited && ns - w->wait_from < TACHO__AT_ONCE_NS ? w->ready : 0;
	tacho__book_count(b, w);
	if (waited)
		tacho__book_arrives(b, w, ready, ns);
	w->wait_to = ns;
	w->ready = (uint32_t)ready;
	w->accepted = 0;
	if (ready > b->l->threads[w->thread].most_ready)
		b->l->threads[w->thread].most_ready = (uint32_t)ready;
	if (waited) {
		if (w->idle_owned != TACHO__NONE)
			tacho__book_note(tacho__owned_at(b->l, w->idle_owned), ns - w->wait_from, 0,
					 ns);
		w->wait_late = w->wait_stopped;
		if (w->wait_off)
			tacho__book_late(b, w, w->wait_off, TACHO__LATE_RUNNABLE, 0);
		b->l->threads[w->thread].turns++;
		w->empty_turns += !ready;
	} else {
		w->wait_from = ns;
	}
	w->woken_late = 0;
	serve(b, w, s, TACHO__BUSY, ns);
	/* An only client that waits for its answers asks for one thing after the other. */
	if (waited && ready && w->turn_from && w->wait_from > w->turn_from &&
	    tacho__was_at_once(w, ns) &&
	    (!w->own || tacho__arrive_by_themselves(&b->l->threads[w->thread].arrivals)))
		at_once(b, w, ready);
	q = tacho__queue_at(b, w);
	if (waited && w->of->stop_ns)
		tacho__book_stop_waited(b, w, ready, ns);
	w->doing = TACHO__RUNNING;
	if (waited) {
		w->turn_before = w->turn_from;
		w->turn_loop = s->loop;
		w->turn_from = ns;
	}
	w->turn_parked_then = q ? q->parked_ns : 0;
	if (q)
		w->turn_reported = q->reported += ready;
	w->halves_estimated = s->level == TACHO_LEVEL_WAITS;
	if (w->halves_estimated)
		w->halves = ready ? (uint32_t)ready - 1 : 0;
	else if (s->level == TACHO_LEVEL_API && w->of->wakes)
		w->halves = 0;
	else
		w->halves = (uint32_t)ready * 2;
	tacho__own_waits(b, w, ns);
}

static void cut(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	if (w->doing == TACHO__UNBORN)
		return;
	/* How long what is cut took is not known. */
	if (w->silent_count && w->ended.kind != TACHO__NONE)
		tacho__book_silent(b, w, &w->ended, w->ended.end_ns == ns);
	tacho__book_count(b, w);
	tacho__book_unblock(b, w->blocks, w->block_count);
	w->block_count = 0;
	for (uint32_t i = w->depth + 1; w->silent_count && i--;)
		tacho__book_silent(b, w, &w->open[i], 1);
	w->silent_count = 0;
	w->depth = 0;
	close_frame(b, w, ns);
	w->ended.kind = TACHO__NONE;
	w->doing = TACHO__UNSEEN;
	tacho__own_waits_end(b, w, ns);
	w->in_lock = 0;
	w->late_next = w->turn_from = 0;
	w->blocked_on = 0;
	if (w->queue != TACHO__NONE)
		tacho__queue_stand(b, w, tacho__queue_at(b, w), TACHO__BUSY, ns);
}

/* ----------------------------------------------------------------- pool, wakes */

static void works(struct tacho__ledger_book *b, struct tacho__worker *w, uint32_t kind, uint64_t ns)
{
	struct tacho__ledger_thread *t = &b->l->threads[w->thread];

	if (!t->is_loop && w->home)
		tacho__book_no_pool(b, w->process, w->home, ns);
	t->is_pool = 1;
	t->works++;
	w->wait_to = ns;
	w->wait_late = 0;
	if (w->doing != TACHO__WAITING)
		w->wait_from = ns;
	else if (w->idle_owned != TACHO__NONE)
		tacho__book_note(tacho__owned_at(b->l, w->idle_owned), ns - w->wait_from, 0, ns);
	w->doing = TACHO__RUNNING;
	if (!t->is_loop)
		tacho__queue_stand(b, w, tacho__queue_of_pool(b, w->process), TACHO__BUSY, ns);
	open_frame(w, kind, ns);
}

static void worked(struct tacho__ledger_book *b, struct tacho__worker *w, uint64_t ns)
{
	const struct tacho__ledger_thread *t = &b->l->threads[w->thread];

	/* Done on the loop, of which only that is seen. */
	if (!t->is_pool || !w->depth)
		return;
	close_frame(b, w, ns);
	w->block_count = 0;
	if (t->is_loop || w->depth)
		return;
	w->doing = TACHO__WAITING;
	w->wait_from = ns;
	tacho__queue_stand(b, w, tacho__queue_of_pool(b, w->process), TACHO__PARKED, ns);
}

static void queue_changes(struct tacho__ledger_book *b, struct tacho__worker *w,
			  const struct tacho__step *s, uint64_t ns)
{
	int is_task = s->type == TACHO__STEP_WOKEN || s->type == TACHO__STEP_SERVED;
	struct tacho__queue *q = is_task ? tacho__queue_of(b, s->process, s->from)
					 : tacho__queue_of_pool(b, s->process);

	if (s->type == TACHO__STEP_WOKEN) {
		tacho__book_process(b, s->process)->wakes = 1;
		b->l->threads[w->thread].answers++;
	}
	if (s->type == TACHO__STEP_SUBMITTED) {
		w->submitted_ns = ns;
		if (!s->value)
			return;
	}
	if (!q)
		return;
	if (s->type == TACHO__STEP_WOKEN && w->doing == TACHO__WAITING)
		w->wait_woke += q == tacho__queue_at(b, w);
	if (s->type == TACHO__STEP_WOKEN || s->type == TACHO__STEP_SUBMITTED)
		tacho__queue_adds(b, q, ns);
	else
		tacho__queue_takes(b, q, ns, s->value);
}

/* --------------------------------------------------------------------- all steps */

static void step(struct tacho__ledger_book *b, struct tacho__worker *w, const struct tacho__step *s)
{
	uint64_t ns = s->ns > w->at ? s->ns : w->at;

	switch (s->type) {
	case TACHO__STEP_PARKS:
		tacho__book_settle(b, w, ns);
		parks(b, w, s, ns);
		break;
	case TACHO__STEP_UNPARKS:
		if (w->blocked_on) {
			unblocks(b, w, ns);
			break;
		}
		tacho__book_settle(b, w, ns);
		unparks(b, w, s, ns);
		break;
	case TACHO__STEP_LOOP:
		tacho__book_settle(b, w, ns);
		serve(b, w, s, w->standing == TACHO__PARKED ? TACHO__PARKED : TACHO__BUSY, ns);
		break;
	case TACHO__STEP_BEGINS:
		tacho__book_settle(b, w, ns);
		begins(b, w, s, ns);
		break;
	case TACHO__STEP_ENDS:
		tacho__book_settle(b, w, ns);
		if (w->depth)
			close_frame(b, w, ns);
		break;
	case TACHO__STEP_WAITS:
		tacho__book_settle(b, w, ns);
		tacho__book_waits(b, w, s, ns);
		break;
	case TACHO__STEP_WAITED:
		tacho__book_waited(b, w, s, ns);
		break;
	case TACHO__STEP_WORKS:
		tacho__book_settle(b, w, ns);
		works(b, w, s->kind, ns);
		break;
	case TACHO__STEP_WORKED:
		tacho__book_settle(b, w, ns);
		worked(b, w, ns);
		break;
	case TACHO__STEP_DELAYED:
	case TACHO__STEP_WAIT_DELAYED:
	case TACHO__STEP_TURN_DELAYED:
	case TACHO__STEP_CALL_DELAYED:
		tacho__book_delayed(b, w, s);
		break;
	case TACHO__STEP_LATE:
		w->late_next = s->value;
		if (s->level == TACHO_LEVEL_WAITS) {
			w->late_next = 0;
			tacho__book_overslept(b, w, s->value);
		}
		break;
	case TACHO__STEP_CUT:
		tacho__book_settle(b, w, ns);
		cut(b, w, ns);
		break;
	default:
		break;
	}
}

void tacho__book_step(void *arg, const struct tacho__step *s)
{
	struct tacho__ledger_book *b = arg;
	struct tacho__worker *w;

	if (s->index < b->by_index_count && b->by_index[s->index])
		w = tacho__worker_at(b, b->by_index[s->index] - 1);
	else
		w = tacho__book_worker_of(b, s);
	if (!w)
		return;
	if (s->type != TACHO__STEP_CUT)
		tacho__book_lives(b, w, s->ns);
	else if (w->of->stop.until_ns && s->ns > w->of->stop.from_ns)
		tacho__book_stop_ends(b, s->process, s->ns);
	switch (s->type) {
	case TACHO__STEP_WOKEN:
	case TACHO__STEP_SERVED:
	case TACHO__STEP_SUBMITTED:
	case TACHO__STEP_TAKEN:
		queue_changes(b, w, s, s->ns);
		break;
	case TACHO__STEP_QUEUED:
		w->took_ns = s->ns;
		tacho__book_queued(b, s);
		break;
	default:
		step(b, w, s);
		w->unblocked &= s->type == TACHO__STEP_UNPARKS;
		break;
	}
}
