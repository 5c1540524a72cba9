/* Parts that a box and a trace file share: thread table, histograms, triggers, crashes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/reader.h"

static uint64_t to_ns(const struct tacho__source *s, uint64_t ticks)
{
	uint32_t hint = 0;

	return tacho__timebase_ns(&s->timebase, ticks, &hint);
}

int tacho__parts_threads(struct tacho_reader *r, uint32_t source, const struct tacho__parts *p)
{
	const struct tacho__source *s = &r->sources[source];
	struct tacho__process *process = r->processes[s->process];
	uint64_t dropped = 0;

	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct tacho_box_thread *t = &p->threads[i];
		char name[sizeof(t->name) + 1] = "";
		struct tacho_thread thread = {
			.process = s->process,
			.number = t->number,
			.tid = t->tid,
			.live = t->state == TACHO_THREAD_LIVE,
			.start_ns = t->start_ticks ? to_ns(s, t->start_ticks) : 0,
			.name = name,
		};

		if (t->state == TACHO_THREAD_FREE)
			continue;
		memcpy(name, t->name, sizeof(t->name));
		if (tacho__thread_add(r, &thread))
			return -ENOMEM;
		dropped += t->drops;
	}
	if (dropped > process->dropped_at_end)
		process->dropped_at_end = dropped;
	return 0;
}

/* ------------------------------------------------------------------- tails */

static int compare_seen(const void *va, const void *vb)
{
	const struct tacho__seen_hist *a = va, *b = vb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->loop != b->loop)
		return a->loop < b->loop ? -1 : 1;
	return a->since < b->since ? -1 : a->since > b->since;
}

/* Something that the recorder would record next, if it were asked. */
static int words_tail(struct tacho_reader *r, struct tacho__source *s, uint32_t thread,
		      uint32_t head, uint64_t ticks, const uint64_t *words, uint32_t count)
{
	struct tacho__tail tail = {.thread = thread, .words = count, .type_arg = head};
	uint64_t *copy = tacho__arena_get(&r->arena, count * sizeof(*copy));

	if (!copy || TACHO__GROW(s->tails, s->tail_capacity, s->tail_count + 1))
		return -ENOMEM;
	memcpy(copy, words, count * sizeof(*copy));
	tail.ns = to_ns(s, ticks);
	tail.word = copy;
	s->tails[s->tail_count++] = tail;
	return 0;
}

/* What the recorder would store if the histogram were closed now. */
static int hist_tail(struct tacho_reader *r, struct tacho__source *s, uint32_t slot,
		     const struct tacho_box_hist *h)
{
	uint64_t word[4 + TACHO_HIST_BUCKETS];
	uint32_t n = 4;

	for (uint32_t b = 0; b < TACHO_HIST_BUCKETS; b++)
		if (h->count[b])
			word[n++] = (uint64_t)b << 48 | h->count[b];
	if (n == 4)
		return 0;
	word[0] = n | (uint64_t)h->loop << 16;
	word[1] = slot;
	word[2] = to_ns(s, h->since);
	word[3] = tacho__timebase_span(&s->timebase, h->total);
	return words_tail(r, s, h->thread,
			  tacho_record_head(TACHO_REC_POLL_HIST, h->kind & TACHO_ARG_MAX), h->since,
			  word, n);
}

static int hist_tails(struct tacho_reader *r, struct tacho__source *s, struct tacho__parts *p)
{
	TACHO__SORT(p->seen, p->seen_count, compare_seen);
	for (uint32_t i = 0; i < p->hist_count; i++) {
		const struct tacho_box_hist *h = &p->hists[i];
		/* Not its slot: that is not known where a block before it is lost. */
		struct tacho__seen_hist key = {h->thread, h->kind, h->loop, h->since};

		if (!h->kind || h->kind > TACHO_ARG_MAX ||
		    (p->seen_count &&
		     bsearch(&key, p->seen, p->seen_count, sizeof(*p->seen), compare_seen)))
			continue;
		if (hist_tail(r, s, i, h))
			return -ENOMEM;
	}
	return 0;
}

static int compare_polls(const void *va, const void *vb)
{
	const struct tacho__seen_poll *a = va, *b = vb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->last_ticks < b->last_ticks ? -1 : a->last_ticks > b->last_ticks;
}

/*
 * A pending poll is recorded before anything else is, and only then no longer pending. So
 * it stands in the records already if a later record is there, or itself.
 */
static int is_recorded(const struct tacho__parts *p, const struct tacho_box_thread *t)
{
	uint32_t low = 0, high = p->poll_count;
	const struct tacho__seen_poll *last;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->polls[mid].thread <= t->number)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || p->polls[low - 1].thread != t->number)
		return 0;
	last = &p->polls[low - 1];
	return last->last_ticks > t->pending_ticks ||
	       (last->ticks == t->pending_ticks && last->kind == t->pending_kind &&
		last->task == t->pending_task);
}

static int pending_tails(struct tacho_reader *r, struct tacho__source *s,
			 const struct tacho__parts *p)
{
	TACHO__SORT(p->polls, p->poll_count, compare_polls);
	for (uint32_t i = 0; i < p->thread_count; i++) {
		const struct tacho_box_thread *t = &p->threads[i];

		if (t->state != TACHO_THREAD_LIVE || !t->pending_kind || is_recorded(p, t))
			continue;
		if (words_tail(r, s, t->number,
			       tacho_record_head(TACHO_REC_POLL_BEGIN,
						 t->pending_kind & TACHO_ARG_MAX),
			       t->pending_ticks, &t->pending_task, 1))
			return -ENOMEM;
	}
	return 0;
}

/* Of LOCK_OWNER: nobody has what is waited for, it is a condition variable or semaphore. */
#define OWNER_SIGNAL (1u << 23)

/* The call that a thread is in, and who has the lock that it waits for. */
static int underway_tails(struct tacho_reader *r, struct tacho__source *s,
			  const struct tacho__parts *p)
{
	for (uint32_t i = 0; i < p->thread_count && i < p->underway_count; i++) {
		const struct tacho_box_underway *u = &p->underway[i];
		uint32_t thread = p->threads[i].number;
		int timed = u->call_since != TACHO_UNDERWAY_UNTIMED;
		uint64_t since = timed ? u->call_since : p->threads[i].start_ticks;
		uint64_t words[4] = {4, timed ? to_ns(s, since) : 0, u->call_on, u->call_at};
		uint32_t owner = u->wait_owner == TACHO_UNDERWAY_SIGNAL
					 ? OWNER_SIGNAL
					 : u->wait_owner & (OWNER_SIGNAL - 1);

		if (p->threads[i].state != TACHO_THREAD_LIVE)
			continue;
		if (u->call_since &&
		    words_tail(r, s, thread,
			       tacho_record_head(TACHO_REC_CALL_OPEN, u->call & TACHO_ARG_MAX),
			       since, words, 4))
			return -ENOMEM;
		if (u->wait_since && u->wait_owner &&
		    words_tail(r, s, thread, tacho_record_head(TACHO_REC_LOCK_OWNER, owner),
			       u->wait_since, &u->wait_lock, 1))
			return -ENOMEM;
	}
	return 0;
}

/* Counts come before the poll that is pending, for they were made before it; what that is in comes
   last. */
static int rank_of(const struct tacho__tail *t)
{
	switch (tacho_record_type(t->type_arg)) {
	case TACHO_REC_POLL_HIST:
		return 0;
	case TACHO_REC_POLL_BEGIN:
		return 1;
	default:
		return 2;
	}
}

static int compare_tails(const void *va, const void *vb)
{
	const struct tacho__tail *a = va, *b = vb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* The last stretch of each thread's stream 0, by thread. */
struct last {
	uint32_t thread, stretch;
	uint64_t first_ns, last_ns;
};

static int compare_last(const void *va, const void *vb)
{
	const struct last *a = va, *b = vb;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	if (a->last_ns != b->last_ns)
		return a->last_ns < b->last_ns ? -1 : 1;
	return a->stretch < b->stretch ? -1 : a->stretch > b->stretch;
}

static const struct last *find_last(const struct last *last, uint32_t count, uint32_t thread)
{
	uint32_t low = 0, high = count;

	/* The last one of this thread is before the first one of a later thread. */
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (last[mid].thread <= thread)
			low = mid + 1;
		else
			high = mid;
	}
	return low && last[low - 1].thread == thread ? &last[low - 1] : NULL;
}

/* Puts the tails [from, to) of one thread behind its stream. What a thread without records is in may
   have begun long before all that is there: that does not make the window longer. */
static int attach(struct tacho_reader *r, uint32_t source, uint32_t from, uint32_t to,
		  const struct last *last, uint64_t first_ns)
{
	struct tacho__source *s = &r->sources[source];
	struct tacho__stretch_info fresh = {.source = source, .kind = TACHO__STRETCH_TAIL};
	struct tacho__stretch_info *stretch;
	uint64_t ns = first_ns;

	if (!last) {
		fresh.pub.thread = s->tails[from].thread;
		fresh.pub.first_ns = s->tails[from].ns;
		fresh.known = 1;
		if (tacho__stretch_add(r, &fresh))
			return -ENOMEM;
		stretch = &r->stretches[r->stretch_count - 1];
	} else {
		stretch = &r->stretches[last->stretch];
		ns = stretch->pub.last_ns;
	}
	/* Counting went on until the newest of these instants. */
	for (uint32_t i = from; i < to; i++)
		if (s->tails[i].ns > ns)
			ns = s->tails[i].ns;
	for (uint32_t i = from; i < to; i++)
		s->tails[i].ns = ns;
	if (!last)
		stretch->pub.first_ns = ns;
	stretch->pub.last_ns = ns;
	stretch->tail_first = from;
	stretch->tail_count = to - from;
	stretch->count += to - from;
	return 0;
}

int tacho__parts_tails(struct tacho_reader *r, uint32_t source, struct tacho__parts *p,
		       uint32_t first)
{
	struct tacho__source *s = &r->sources[source];
	uint32_t stretches = r->stretch_count - first;
	uint32_t count = 0;
	uint64_t first_ns = 0;
	struct last *last;
	int err = hist_tails(r, s, p);

	if (!err)
		err = pending_tails(r, s, p);
	if (!err)
		err = underway_tails(r, s, p);
	if (err || !s->tail_count)
		return err;
	last = malloc(((size_t)stretches + 1) * sizeof(*last));
	if (!last)
		return -ENOMEM;
	for (uint32_t i = first; i < r->stretch_count; i++) {
		const struct tacho__stretch_info *x = &r->stretches[i];

		if (!first_ns || x->pub.first_ns < first_ns)
			first_ns = x->pub.first_ns;
		/* Blocks of events come from a writer that has already put tails there. */
		if (x->pub.stream == TACHO_STREAM_NORMAL && x->kind != TACHO__STRETCH_EVENTS)
			last[count++] =
				(struct last){x->pub.thread, i, x->pub.first_ns, x->pub.last_ns};
	}
	TACHO__SORT(last, count, compare_last);
	TACHO__SORT(s->tails, s->tail_count, compare_tails);
	for (uint32_t from = 0, to; !err && from < s->tail_count; from = to) {
		uint32_t thread = s->tails[from].thread;

		for (to = from + 1; to < s->tail_count && s->tails[to].thread == thread; to++)
			;
		err = attach(r, source, from, to, find_last(last, count, thread), first_ns);
	}
	free(last);
	return err;
}

/* --------------------------------------------------------------- incidents */

int tacho__parts_trigger(struct tacho_reader *r, uint32_t source, const struct tacho_box_trigger *t)
{
	const struct tacho__source *s = &r->sources[source];
	struct tacho_trigger_info *info;
	uint32_t size = t->size < TACHO_REASON_MAX ? t->size : TACHO_REASON_MAX;

	if (!t->number)
		return 0;
	info = tacho__arena_get(&r->arena, sizeof(*info));
	if (!info || TACHO__GROW(r->triggers, r->trigger_capacity, r->trigger_count + 1))
		return -ENOMEM;
	info->process = s->process;
	info->number = t->number;
	info->tid = t->tid;
	info->ns = to_ns(s, t->ticks);
	info->reason = tacho__arena_text(&r->arena, t->reason, size);
	info->sentinel = tacho__sentinel_name(TACHO_TRIGGER_SENTINEL(t->flags));
	info->value = info->sentinel[0] ? t->value : 0;
	if (!info->reason)
		return -ENOMEM;
	r->triggers[r->trigger_count++] = info;
	return 0;
}

int tacho__parts_crash(struct tacho_reader *r, uint32_t source,
		       const struct tacho_trace_crash *crash)
{
	const struct tacho_box_crash *c = &crash->crash;
	const struct tacho__source *s = &r->sources[source];
	struct tacho_crash_info *info;
	uint64_t *numbers;
	char *name, *said;

	if (c->state < TACHO_CRASH_BEGUN || c->state > TACHO_CRASH_STACK_DONE)
		return 0;
	info = tacho__arena_get(&r->arena, sizeof(*info));
	numbers = tacho__arena_get(&r->arena, sizeof(c->reg) + sizeof(c->frame));
	name = tacho__arena_text(&r->arena, c->thread_name, sizeof(c->thread_name));
	said = tacho__arena_text(&r->arena, crash->said, sizeof(crash->said));
	if (!info || !numbers || !name || !said ||
	    TACHO__GROW(r->crashes, r->crash_capacity, r->crash_count + 1))
		return -ENOMEM;
	memcpy(numbers, c->reg, sizeof(c->reg));
	memcpy(numbers + TACHO_CRASH_REGS, c->frame, sizeof(c->frame));
	info->process = s->process;
	info->tid = c->tid;
	info->signal = c->signal;
	info->code = c->code;
	info->address = c->address;
	info->ns = to_ns(s, c->ticks);
	info->thread_name = name;
	info->arch = c->arch;
	if (c->state >= TACHO_CRASH_REGS_DONE)
		info->reg_count = c->regs < TACHO_CRASH_REGS ? c->regs : TACHO_CRASH_REGS;
	if (c->state >= TACHO_CRASH_STACK_DONE)
		info->frame_count = c->frames < TACHO_CRASH_FRAMES ? c->frames : TACHO_CRASH_FRAMES;
	/* A handler that never finished its stack failed at it, too. */
	info->unwind_failed =
		(c->flags & TACHO_CRASH_UNWIND_FAILED) != 0 || c->state < TACHO_CRASH_STACK_DONE;
	info->survived = (c->flags & TACHO_CRASH_SURVIVED) != 0;
	info->said = said;
	if (TACHO_CRASH_INTERRUPTED(c->flags) < info->frame_count)
		info->interrupted = TACHO_CRASH_INTERRUPTED(c->flags);
	info->regs = numbers;
	info->frames = numbers + TACHO_CRASH_REGS;
	r->crashes[r->crash_count++] = info;
	return 0;
}

void tacho__parts_free(struct tacho__parts *p)
{
	free(p->threads);
	free(p->underway);
	free(p->hists);
	free(p->seen);
	free(p->polls);
}
