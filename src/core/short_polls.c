/*
 * A poll that begins under a threshold is not recorded but noted as pending, in the
 * writer and, for readers, in the thread table. If anything else is recorded before
 * it ends, the begin is recorded first, with its own time. If it ends below the
 * threshold with nothing in between, it is counted in a histogram of its thread,
 * kind and loop. A histogram is recorded once a second, and at the end of the
 * thread, so its counts belong to a window as records do.
 */
#include "core/short_polls.h"

#include <string.h>

#include "core/box.h"
#include "core/control.h"
#include "core/pool.h"
#include "core/record.h"
#include "core/testpoint.h"
#include "core/writer.h"

#define RECORD_EVERY_NS 1000000000ull
/* A pending poll keeps room for: TIME, POLL_BEGIN, TIME, POLL_END. */
#define PENDING_ROOM 64u

TACHO__HOT uint64_t tacho__threshold_ticks;
static uint64_t second_ticks;

void tacho__short_polls_start(uint64_t threshold_ns)
{
	tacho__threshold_ticks = 0;
	if (!threshold_ns)
		return;
	while ((second_ticks = tacho__ticks_of_ns(RECORD_EVERY_NS)) == UINT64_MAX)
		;
	tacho__threshold_ticks = tacho__ticks_of_ns(threshold_ns);
}

/* The writer with its stream 0 made busy, or NULL when a record is being stored there. */
static struct tacho__writer *claim(uintptr_t frame)
{
	for (;;) {
		struct tacho__writer *w = tacho__writer_get();

		if (!w || tacho__load(&w->stream[0].busy))
			return NULL;
		tacho__store(&w->stream[0].busy, frame);
		tacho__signal_fence();
		if (tacho__likely(w == tacho__self))
			return w;
		/* A handler forked in between, and this is the child. */
		tacho__store(&w->stream[0].busy, (uintptr_t)0);
	}
}

static void unclaim(struct tacho__writer *w)
{
	tacho__signal_fence();
	tacho__store(&w->stream[0].busy, (uintptr_t)0);
}

static void hist_record(struct tacho__writer *w, uint32_t slot)
{
	struct tacho_box_hist *h = &w->hists[slot];
	uint64_t words[4 + TACHO_HIST_BUCKETS];
	uint32_t n = 4;

	for (uint32_t b = 0; b < TACHO_HIST_BUCKETS; b++)
		if (h->count[b])
			words[n++] = (uint64_t)b << 48 | h->count[b];
	if (n == 4)
		return;
	words[0] = n | (uint64_t)h->loop << 16;
	words[1] = slot;
	words[2] = h->since;
	words[3] = h->total;
	tacho__stream_put(w, 0, 0, tacho_record_head(TACHO_REC_POLL_HIST, h->kind), words, n);
	/* Until `since` changes, readers see that the record holds these counts already: so it
	   changes last. */
	TACHO_TESTPOINT("hist-recorded");
	memset(h->count, 0, sizeof(h->count));
	h->total = 0;
	TACHO_TESTPOINT("hist-cleared");
	__atomic_store_n(&h->since, tacho__ticks(), __ATOMIC_RELEASE);
}

void tacho__short_polls_flush(struct tacho__writer *w, int keep)
{
	for (uint32_t i = 0; i < w->hist_count; i++) {
		hist_record(w, w->hist[i]);
		if (!keep)
			__atomic_store_n(&w->hists[w->hist[i]].kind, 0, __ATOMIC_RELEASE);
	}
	if (!keep)
		w->hist_count = 0;
}

/* A histogram that nobody uses; UINT32_MAX if there is none. */
static uint32_t hist_take(struct tacho__writer *w, uint32_t kind)
{
	struct tacho__recorder *r = tacho__rec;
	uint32_t most = r->super->regions[TACHO_REGION_HISTOGRAMS].count;
	uint32_t start = w->index % most;

	for (uint32_t k = 0; k < most; k++) {
		uint32_t i = (start + k) % most;
		struct tacho_box_hist *h = &r->hists[i];
		uint32_t used = tacho__load(&r->super->hists_used);
		uint32_t none = 0;

		if (tacho__box_fill(TACHO_REGION_HISTOGRAMS, (i + 1) * sizeof(*h)))
			return UINT32_MAX;
		while (used <= i &&
		       !__atomic_compare_exchange_n(&r->super->hists_used, &used, i + 1, 0,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		if (tacho__load(&h->kind))
			continue;
		/* Claimed by a kind that no one has, described, then named. */
		if (!__atomic_compare_exchange_n(&h->kind, &none, UINT32_MAX, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		h->loop = w->now.loop;
		h->thread = w->number;
		h->total = 0;
		memset(h->count, 0, sizeof(h->count));
		h->since = tacho__ticks();
		__atomic_store_n(&h->kind, kind, __ATOMIC_RELEASE);
		return i;
	}
	return UINT32_MAX;
}

/* The histogram of this thread for kind and the loop that it runs, or UINT32_MAX. */
static uint32_t hist_find(struct tacho__writer *w, uint32_t kind)
{
	uint64_t mask;
	uint32_t slot;

	for (uint32_t i = 0; i < w->hist_count; i++) {
		struct tacho_box_hist *h = &w->hists[w->hist[i]];

		if (h->kind == kind && h->loop == w->now.loop)
			return w->hist[i];
	}
	if (w->hist_count == TACHO__HIST_WAYS) {
		/* More kinds than a thread has places for: the first one goes. */
		hist_record(w, w->hist[0]);
		__atomic_store_n(&w->hists[w->hist[0]].kind, 0, __ATOMIC_RELEASE);
		memmove(w->hist, w->hist + 1, sizeof(w->hist) - sizeof(w->hist[0]));
		w->hist_count--;
	}
	slot = tacho__enter_as(w, &mask) ? hist_take(w, kind) : UINT32_MAX;
	tacho__leave(mask);
	if (slot != UINT32_MAX)
		w->hist[w->hist_count++] = slot;
	return slot;
}

static uint32_t bucket_of(uint64_t ticks)
{
	/* In nanoseconds: a second's ticks are known. */
	uint64_t ns = (uint64_t)((unsigned __int128)ticks * RECORD_EVERY_NS / second_ticks);
	uint32_t b = ns ? 63u - (uint32_t)__builtin_clzll(ns) : 0;

	return b < TACHO_HIST_BUCKETS ? b : TACHO_HIST_BUCKETS - 1;
}

static void pending_clear(struct tacho__writer *w)
{
	w->pending_kind = 0;
	__atomic_store_n(&w->entry->pending_kind, 0, __ATOMIC_RELEASE);
	tacho__store(&w->stream[0].end, w->stream[0].limit);
}

/* A poll that is recorded, and no longer pending, ends. */
static void put_end(struct tacho__writer *w, uint64_t t, uint32_t result)
{
	tacho__stream_put(w, 0, t, tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0);
	tacho_underway_pop_poll(&w->now);
}

/* A poll that cannot be pending, for want of room, begins. */
static uint64_t put_begin(struct tacho__writer *w, uint32_t kind, uint64_t task)
{
	uint32_t head = tacho_record_head(TACHO_REC_POLL_BEGIN, kind);
	uint64_t t = tacho__stream_put(w, 0, 0, head, &task, 1);

	tacho__apply(w, head, task, t ? t : tacho__ticks());
	return t;
}

/* The pending poll ended at `t`: counts or records it. */
static void pending_end(struct tacho__writer *w, uint64_t t, uint32_t result)
{
	uint64_t took = t - w->pending_ticks;
	uint32_t slot = UINT32_MAX;

	if (took < tacho__threshold_ticks) {
		slot = hist_find(w, w->pending_kind);
		if (slot == UINT32_MAX)
			tacho__count(TACHO_LOSS_HIST_FULL, 1);
	}
	if (slot != UINT32_MAX) {
		struct tacho_box_hist *h = &w->hists[slot];
		uint32_t *n = &h->count[bucket_of(took)];

		tacho__store(n, *n + 1);
		tacho__store(&h->total, h->total + took);
		pending_clear(w);
		if (t - h->since > second_ticks)
			hist_record(w, slot);
		return;
	}
	tacho__pending_flush(w);
	put_end(w, t, result);
}

static uint64_t pending_begin(struct tacho__writer *w, uint64_t t, uint32_t kind, uint64_t task)
{
	struct tacho_box_thread *entry = w->entry;

	w->pending_kind = kind;
	w->pending_task = task;
	w->pending_ticks = t;
	tacho__store(&entry->pending_task, task);
	tacho__store(&entry->pending_ticks, t);
	__atomic_store_n(&entry->pending_kind, kind, __ATOMIC_RELEASE);
	tacho__store(&w->stream[0].end, NULL);
	return t;
}

uint64_t tacho__short_poll_begin(uint32_t kind, uint64_t task, uintptr_t frame)
{
	struct tacho__writer *w = claim(frame);
	uint64_t t;

	if (!w || !kind) {
		if (w)
			unclaim(w);
		return tacho__record_slow(tacho_record_head(TACHO_REC_POLL_BEGIN, kind), &task, 1,
					  frame);
	}
	tacho__pending_flush(w);
	if (tacho__stream_room(w, 0, PENDING_ROOM))
		t = pending_begin(w, tacho__ticks(), kind, task);
	else
		t = put_begin(w, kind, task);
	unclaim(w);
	return t;
}

uint64_t tacho__short_poll_end(uint32_t result, uintptr_t frame)
{
	struct tacho__writer *w = claim(frame);
	uint64_t t;

	if (!w || !w->pending_kind) {
		if (w)
			unclaim(w);
		return tacho__record_slow(tacho_record_head(TACHO_REC_POLL_END, result), NULL, 0,
					  frame);
	}
	t = tacho__ticks();
	pending_end(w, t, result);
	unclaim(w);
	return t;
}

uint64_t tacho__short_poll_switch(uint32_t kind, uint64_t task, uintptr_t frame)
{
	struct tacho__writer *w = claim(frame);
	uint64_t t;

	if (!w || !kind) {
		if (w)
			unclaim(w);
		return tacho__record_slow(tacho_record_head(TACHO_REC_POLL_SWITCH, kind), &task, 1,
					  frame);
	}
	t = tacho__ticks();
	if (w->pending_kind)
		pending_end(w, t, 0);
	else if (w->now.depth)
		put_end(w, t, 0); /* of a poll that was recorded; the next may be short again */
	/* A record of its histogram may have come after t. */
	if (t < w->stream[0].last)
		t = w->stream[0].last;
	if (tacho__stream_room(w, 0, PENDING_ROOM) && t >= w->stream[0].last)
		t = pending_begin(w, t, kind, task);
	else
		t = put_begin(w, kind, task);
	unclaim(w);
	return t;
}
