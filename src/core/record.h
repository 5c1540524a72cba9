/*
 * The hot path: storing one record.
 *
 *   s->busy = frame       from here on, a signal handler that records uses the next stream
 *   room? else slow path
 *   t = clock             the cost of it all
 *   header and payload stored at s->cur
 *   s->cur, s->last       for the next record
 *   chunk->commit = ...   release: readers in other processes that see this commit see the
 *                         record as well. On x86-64 a plain store, as stores are not
 *                         reordered; on arm64 stlr.
 *   s->busy = 0
 *
 * Only this thread writes any of these, so nothing is locked and nothing is retried.
 * `busy` and the rest are ordered against signal handlers of the same thread by
 * compiler fences alone.
 */
#ifndef TACHO_CORE_RECORD_H
#define TACHO_CORE_RECORD_H

#include <stdint.h>

#include "core/recorder.h"

/* The same, step by step, for whatever the hot path does not handle: no writer yet, no room,
   a long time since the last record, a poll that is pending, a signal handler in the middle of
   a record. Returns the ticks of the record, 0 if it was not stored. */
uint64_t tacho__record_slow(uint32_t head, const uint64_t *words, uint32_t count, uintptr_t frame);
/* For something that happened at ticks `at`, or 0: now. */
uint64_t tacho__record_slow_at(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
			       uintptr_t frame);

/* The frame of the function that a program calls. A signal handler that interrupts it calls from
   deeper in the stack; a call from as deep or less deep means that it is gone. */
#define tacho__frame() ((uintptr_t)__builtin_frame_address(0))

/*
 * What a record of stream 0 changes in the state that the next chunk begins with.
 * On the hot path `head` has a constant type, and this is a few stores or nothing.
 */
static inline __attribute__((always_inline)) void
tacho__apply(struct tacho__writer *w, uint32_t head, uint64_t task, uint64_t t)
{
	unsigned type = tacho_record_type(head);

	tacho_underway_apply(&w->now, type, tacho_record_arg(head), task, t);
	/* Here, where the stream is busy: a handler that forks leaves the memory of the box mapped
	   in the child. */
	if (type == TACHO_REC_UNPARK)
		w->called = tacho__load(w->calls) != w->calls_heeded;
}

/*
 * Stores a record with `count` payload words; the ticks at which it happened, or 0. `at`: ticks
 * that were read just before, when the same thing was recorded, or a constant 0: the clock is
 * read.
 */
static inline __attribute__((always_inline)) uint64_t
tacho__record_from(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
		   uintptr_t frame)
{
	struct tacho__writer *w = tacho__self;
	struct tacho__stream *s = &w->stream[0];
	uint32_t bytes = 8 + 8 * count;
	uint64_t t, delta;
	uint64_t *p;

	if (tacho__unlikely(tacho__load(&s->busy)))
		return tacho__record_slow_at(head, words, count, at, frame);
	tacho__store(&s->busy, frame);
	tacho__signal_fence();
	p = (uint64_t *)s->cur;
	if (tacho__unlikely((uintptr_t)p + bytes > (uintptr_t)tacho__load(&s->end)))
		goto slow;
	t = at ? at : tacho__ticks();
	/* A handler may have recorded since `at`: ticks never run backwards. */
	if (at && tacho__unlikely(t < s->last))
		t = s->last;
	delta = t - s->last;
	if (tacho__unlikely(delta > UINT32_MAX))
		goto slow;
	p[0] = head | delta << 32;
	for (uint32_t i = 0; i < count; i++)
		p[1 + i] = words[i];
	s->cur = (uint8_t *)p + bytes;
	s->last = t;
	s->records++;
	__atomic_store_n(&s->chunk->commit, (uint64_t)(s->cur - (uint8_t *)s->chunk),
			 __ATOMIC_RELEASE);
	if (tacho_record_is_stateful(tacho_record_type(head)))
		tacho__apply(w, head, count ? words[0] : 0, t);
	tacho__signal_fence();
	tacho__store(&s->busy, 0);
	return t;
slow:
	tacho__store(&s->busy, 0);
	return tacho__record_slow_at(head, words, count, at, frame);
}

static inline __attribute__((always_inline)) uint64_t
tacho__record(uint32_t head, const uint64_t *words, uint32_t count)
{
	return tacho__record_from(head, words, count, 0, tacho__frame());
}

#endif
