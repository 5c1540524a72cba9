#include "explain/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "explain/ledger_book.h"
#include "read/memory.h"
#include "read/records.h"

#define WORKERS 8192u
#define OWNED (1u << 16)
#define FUNCTIONS (1u << 15)
#define BESIDE (1u << 14)
#define RESOLVED (1u << 15)
#define MOVES 65536u

/* --------------------------------------------------------------------- life */

static void open_page(struct tacho__ledger_book *b)
{
	tacho__table_init(&b->workers, sizeof(struct tacho__worker), WORKERS);
	tacho__table_init(&b->queues, sizeof(struct tacho__queue), TACHO__BOOK_QUEUES);
	tacho__table_init(&b->resolved, sizeof(struct tacho__resolved), RESOLVED);
	tacho__table_init(&b->moves, sizeof(struct tacho__entry), MOVES);
	memset(b->kinds, 0, sizeof(b->kinds));
	memset(b->counters, 0, sizeof(b->counters));
	memset(b->loops, 0, sizeof(b->loops));
	memset(b->recent, 0, sizeof(b->recent));
	b->by_index_count = 0;
	b->halves = b->waited = b->relieved = 0;
}

static void close_page(struct tacho__ledger_book *b)
{
	b->l->missed += b->workers.missed + b->queues.missed;
	tacho__table_free(&b->workers);
	tacho__table_free(&b->queues);
	tacho__table_free(&b->resolved);
	tacho__table_free(&b->moves);
}

struct tacho__ledger *tacho__ledger_new(struct tacho_reader *reader)
{
	struct tacho__ledger *l = calloc(1, sizeof(*l));
	struct tacho__ledger_book *b = calloc(1, sizeof(*b));
	uint32_t processes = tacho_read_process_count(reader);
	struct tacho__book_process *p = calloc(processes + 1, sizeof(*p));

	if (l)
		l->stops = calloc(processes + 1, sizeof(*l->stops));
	if (!l || !l->stops || !b || !p) {
		if (l)
			free(l->stops);
		free(l);
		free(b);
		free(p);
		return NULL;
	}
	l->book = b;
	l->reader = reader;
	b->l = l;
	b->reader = reader;
	b->processes = p;
	b->process_count = processes;
	tacho__table_init(&l->owned, sizeof(struct tacho__owned), OWNED);
	tacho__table_init(&l->functions, sizeof(struct tacho__function), FUNCTIONS);
	tacho__table_init(&l->beside, sizeof(struct tacho__beside), BESIDE);
	open_page(b);
	return l;
}

void tacho__ledger_free(struct tacho__ledger *l)
{
	if (!l)
		return;
	if (l->book) {
		close_page(l->book);
		free(l->book->by_index);
		free(l->book->processes);
		free(l->book);
	}
	tacho__table_free(&l->owned);
	tacho__table_free(&l->functions);
	tacho__table_free(&l->beside);
	free(l->threads);
	for (uint32_t i = 0; i < l->pool_count; i++)
		tacho__hist_free(&l->pools[i].wait);
	free(l->pools);
	free(l->lines);
	free(l->owners);
	free(l->stops);
	free(l);
}

void tacho__ledger_watch(struct tacho__ledger *l, const struct tacho__waits *waits)
{
	l->book->waits = waits;
}

struct tacho__facts tacho__ledger_facts(struct tacho__ledger *l)
{
	uint64_t last;

	l->book->first_ns = 0;
	tacho_read_window(l->book->reader, &l->book->first_ns, &last);
	return (struct tacho__facts){
		.arg = l->book,
		.error = &l->book->error,
		.step = tacho__book_step,
		.call = tacho__book_call,
		.lock = tacho__book_lock,
		.sample = tacho__book_sample,
		.off_cpu = tacho__book_off_cpu,
		.counter = tacho__book_counter,
		.hole = tacho__book_hole,
		.other = tacho__book_other,
	};
}

/* -------------------------------------------------------------------- a page */

/* Waiting that belongs to no time of the thread. */
static void charge(struct tacho__ledger_book *b, const struct tacho__worker *w,
		   enum tacho__owns owns, enum tacho__owns_reason reason, uint64_t waiting)
{
	uint32_t index;
	struct tacho__owned *o = &b->l->threads[w->thread].rest;

	if (!waiting)
		return;
	index = tacho__book_owned(b, w, owns, reason, 0);
	if (index != TACHO__NONE) {
		o = tacho__owned_at(b->l, index);
		o->reason = reason;
	}
	o->waiting_ns = tacho__add(o->waiting_ns, waiting);
}

static int has_ended_in_order(const struct tacho__ledger_book *b, uint32_t process)
{
	const struct tacho_process *p = tacho_read_process(b->l->reader, process);

	return p && p->state == TACHO_STATE_STOPPED;
}

static void end_workers(struct tacho__ledger_book *b)
{
	uint64_t halves = b->halves, none = b->relieved;

	for (struct tacho__worker *w = NULL; (w = tacho__table_next(&b->workers, w));) {
		const struct tacho__queue *q = tacho__queue_at(b, w);
		uint64_t owed = w->owed;
		uint32_t idle;

		tacho__book_count(b, w);
		if (has_ended_in_order(b, w->process))
			tacho__book_forget_left(b, w);
		/* A thread that had ended, and was taken to be busy still. */
		if (q && w->standing == TACHO__BUSY && q->cost > w->cost)
			owed = tacho__add(owed, q->cost - w->cost);
		charge(b, w, TACHO__OWNS_NOT_OBSERVED, TACHO__UNSEEN_EDGE, owed);
		halves -= w->half < halves ? w->half : halves;
		b->l->threads[w->thread].last_ns = w->at > b->l->threads[w->thread].first_ns
							   ? w->at
							   : b->l->threads[w->thread].first_ns;
		none = tacho__add(none, tacho__book_idle_place(b, w));
		tacho__book_unsampled(b, w);
		idle = tacho__book_owned(b, w, TACHO__OWNS_IDLE, 0, 0);
		if (idle != TACHO__NONE)
			b->l->threads[w->thread].idle_ns = tacho__owned_at(b->l, idle)->ns;
	}
	halves = tacho__add(b->waited, halves / 2);
	b->l->waiting_ns = tacho__add(b->l->waiting_ns, halves - (none < halves ? none : halves));
}

/* What nobody came for. */
static void end_queues(struct tacho__ledger_book *b)
{
	for (struct tacho__queue *q = NULL; (q = tacho__table_next(&b->queues, q));) {
		const struct tacho__worker *w =
			q->last_worker == TACHO__NONE
				? NULL
				: tacho__table_at(&b->workers, q->last_worker);
		uint64_t left = tacho__add(q->late, q->carried);

		if (q->joined)
			continue;
		if (q->pool)
			tacho__book_end_pool(b, q);
		if (w)
			charge(b, w, TACHO__OWNS_LATE, TACHO__LATE_WOKEN, left);
		else
			b->l->unserved_ns = tacho__add(b->l->unserved_ns, left);
	}
}

/* Nothing was seen any more of those that are still stopped. */
static void end_stops(struct tacho__ledger_book *b)
{
	uint64_t first, last = 0;

	tacho_read_window(b->reader, &first, &last);
	for (uint32_t i = 0; i < b->process_count; i++)
		if (b->processes[i].stop.until_ns)
			tacho__book_stop_ends(b, i, last);
}

int tacho__ledger_turn_page(struct tacho__ledger *l)
{
	struct tacho__ledger_book *b = l->book;

	end_stops(b);
	end_workers(b);
	end_queues(b);
	close_page(b);
	open_page(b);
	return b->error;
}

/* -------------------------------------------------------------------- lines */

static struct tacho__ledger_line *new_line(struct tacho__ledger *l, const struct tacho__owned *o,
					   uint32_t owned)
{
	struct tacho__ledger_line *line;

	if (TACHO__GROW(l->lines, l->line_capacity, l->line_count + 1))
		return NULL;
	line = &l->lines[l->line_count++];
	*line = (struct tacho__ledger_line){
		.owns = o->owns,
		.thread = o->thread,
		.owned = owned,
		.ns = o->ns,
		.count = o->count,
		.longest_ns = tacho__least(o->longest_ns, o->ns),
		.waiting_ns = o->waiting_ns,
		.estimated_ns = o->estimated_ns,
	};
	return line;
}

/* A part of a whole, which keeps the rest for the next. */
static uint64_t part(uint64_t *left, uint64_t whole, double share, int last)
{
	uint64_t n = last ? *left : (uint64_t)((double)whole * share);

	n = n < *left ? n : *left;
	*left -= n;
	return n;
}

/* Code in the proportion of its samples. `functions`: those of this owner. */
static int split(struct tacho__ledger *l, const struct tacho__owned *o,
		 struct tacho__function *const *functions, uint32_t count)
{
	uint64_t ns = o->ns, waiting = o->waiting_ns, estimated = o->estimated_ns;
	double sum_ns = 0, sum_cost = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum_ns += (double)functions[i]->ns;
		sum_cost += functions[i]->cost;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct tacho__function *f = functions[i];
		struct tacho__ledger_line *line = new_line(l, o, o->entry.index + 1);
		double time = sum_ns > 0 ? (double)f->ns / sum_ns : 0;
		double cost = sum_cost > 0 ? f->cost / sum_cost : time;
		int last = i + 1 == count;

		if (!line)
			return -ENOMEM;
		line->owns = f->is_recorder ? TACHO__OWNS_RECORDER : o->owns;
		line->function = f->entry.index + 1;
		line->ns = part(&ns, o->ns, time, last);
		line->longest_ns = tacho__least(line->longest_ns, line->ns);
		line->waiting_ns = part(&waiting, o->waiting_ns, cost, last);
		line->estimated_ns = part(&estimated, o->estimated_ns, cost, last);
		if (line->estimated_ns > line->waiting_ns)
			line->estimated_ns = line->waiting_ns;
	}
	return 0;
}

static int by_owner(const void *a, const void *b)
{
	const struct tacho__function *x = *(const struct tacho__function *const *)a;
	const struct tacho__function *y = *(const struct tacho__function *const *)b;

	if (x->owned != y->owned)
		return x->owned < y->owned ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static int make_lines(struct tacho__ledger *l, struct tacho__function **functions, uint32_t count)
{
	uint32_t next = 0, first;
	int error = 0;

	for (uint32_t i = 0; i < l->owned.used && !error; i++) {
		const struct tacho__owned *o = tacho__table_at(&l->owned, i);

		for (first = next; next < count && functions[next]->owned == i;)
			next++;
		if (!o || (!o->ns && !o->waiting_ns))
			continue;
		if (next > first && o->owns == TACHO__OWNS_CODE)
			error = split(l, o, functions + first, next - first);
		else if (!new_line(l, o, i + 1))
			error = -ENOMEM;
	}
	for (uint32_t i = 0; i < l->thread_count && !error; i++)
		if ((l->threads[i].rest.ns || l->threads[i].rest.waiting_ns) &&
		    !new_line(l, &l->threads[i].rest, 0))
			error = -ENOMEM;
	return error;
}

static int by_thread(const void *a, const void *b)
{
	const struct tacho__ledger_line *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->owned > y->owned) - (x->owned < y->owned);
}

/* ------------------------------------------------------------------- owners */

struct merged {
	struct tacho__entry entry; /* key: process << 8 | owner, what */
	uint32_t owner;		   /* index + 1 */
	uint32_t last_thread;	   /* + 1 */
	uint64_t most;
};

static uint64_t key_of(const struct tacho__ledger *l, const struct tacho__ledger_line *line)
{
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	struct tacho__place place;

	switch (line->owns) {
	case TACHO__OWNS_CODE:
		if (line->function)
			return ((const struct tacho__function *)tacho__table_at(&l->functions,
										line->function - 1))
				->entry.key[1];
		return tacho__hash_words(o->kind, o->kind ? 0 : o->loop, 1);
	case TACHO__OWNS_CALL:
		if (tacho__ledger_place(l, line, &place) && place.function[0])
			return tacho__hash_words(
				o->name,
				tacho__hash_bytes(place.function, strlen(place.function), 0),
				place.line);
		return tacho__hash_words(o->name, o->place, o->code);
	case TACHO__OWNS_LOCK:
		return o->is_signal ? tacho__hash_words(0, o->entry.key[1], 2) : o->lock;
	default:
		return o->reason;
	}
}

static void add_line(struct tacho__ledger *l, struct merged *m, uint32_t index)
{
	const struct tacho__ledger_line *line = &l->lines[index];
	const struct tacho__owned *o = tacho__ledger_owned(l, line);
	struct tacho__ledger_owner *x;

	if (!m->owner) {
		m->owner = ++l->owner_count;
		l->owners[m->owner - 1] = (struct tacho__ledger_owner){
			.owns = line->owns, .process = o->process, .line = index};
		m->most = line->waiting_ns;
	}
	x = &l->owners[m->owner - 1];
	if (line->waiting_ns > m->most) {
		m->most = line->waiting_ns;
		x->line = index;
	}
	x->threads += m->last_thread != line->thread + 1;
	m->last_thread = line->thread + 1;
	x->ns += line->ns;
	x->count += line->count;
	x->waiting_ns = tacho__add(x->waiting_ns, line->waiting_ns);
	x->estimated_ns = tacho__add(x->estimated_ns, line->estimated_ns);
	if (line->longest_ns > x->longest_ns)
		x->longest_ns = line->longest_ns;
	if (line->owns == TACHO__OWNS_CALL || line->owns == TACHO__OWNS_LOCK)
		x->lost_ns += line->ns;
	for (uint32_t i = 0; i < TACHO__SIZES; i++) {
		x->size[i].count += o->size[i].count;
		x->size[i].ns += o->size[i].ns;
		x->size[i].waiting_ns = tacho__add(x->size[i].waiting_ns, o->size[i].waiting_ns);
	}
}

static int by_cost(const void *a, const void *b)
{
	const struct tacho__ledger_owner *x = a, *y = b;

	if (x->waiting_ns != y->waiting_ns)
		return x->waiting_ns > y->waiting_ns ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int make_owners(struct tacho__ledger *l)
{
	struct tacho__table merged;
	int error = 0;

	l->owners = calloc(l->line_count + 1u, sizeof(*l->owners));
	if (!l->owners)
		return -ENOMEM;
	tacho__table_init(&merged, sizeof(struct merged), UINT32_MAX >> 1);
	for (uint32_t i = 0; i < l->line_count && !error; i++) {
		const struct tacho__ledger_line *line = &l->lines[i];
		struct tacho__ledger_thread *t = &l->threads[line->thread];
		struct merged *m;

		t->waiting_ns = tacho__add(t->waiting_ns, line->waiting_ns);
		if (!t->is_loop && !t->is_pool && !line->waiting_ns)
			continue;
		m = tacho__table_get(&merged, (uint64_t)t->process << 8 | line->owns,
				     key_of(l, line), &error);
		if (m)
			add_line(l, m, i);
	}
	tacho__table_free(&merged);
	TACHO__SORT(l->owners, l->owner_count, by_cost);
	return error;
}

int tacho__ledger_close(struct tacho__ledger *l)
{
	struct tacho__function **functions = calloc(l->functions.count + 1u, sizeof(*functions));
	uint32_t count = 0;
	int error = functions ? l->book->error : -ENOMEM;

	for (struct tacho__function *f = NULL; !error && (f = tacho__table_next(&l->functions, f));)
		if (f->ns)
			functions[count++] = f;
	if (!error) {
		TACHO__SORT(functions, count, by_owner);
		error = make_lines(l, functions, count);
	}
	free(functions);
	if (error)
		return error;
	TACHO__SORT(l->lines, l->line_count, by_thread);
	l->missed += l->owned.missed + l->functions.missed;
	return make_owners(l);
}

struct tacho__ledger *tacho__ledger_make(struct tacho_reader *reader, int *error)
{
	struct tacho__ledger *l = tacho__ledger_new(reader);
	uint32_t processes = tacho_read_process_count(reader);

	*error = l ? 0 : -ENOMEM;
	for (uint32_t p = 0; p < processes && !*error; p++) {
		struct tacho__facts facts;

		tacho__read_only(reader, p);
		facts = tacho__ledger_facts(l);
		*error = tacho__model_run(reader, &facts, NULL, NULL, NULL);
		if (!*error)
			*error = tacho__ledger_turn_page(l);
	}
	tacho__read_only(reader, UINT32_MAX);
	if (!*error)
		*error = tacho__ledger_close(l);
	if (*error) {
		tacho__ledger_free(l);
		return NULL;
	}
	return l;
}
