/*
 * The hot path: storing one record.
 *
 *   s->busy = frame       from here on, a signal handler that records uses the next stream
 *   room? else slow path
 *   t = clock             most of the cost; or ticks that were read for what happened just before
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
#include "core/testpoint.h"

/* The same, step by step, for whatever the hot path does not handle: no writer yet, no room,
   a long time since the last record, a poll that is pending, a signal handler in the middle of
   a record. Returns the ticks of the record, 0 if it was not stored. */
uint64_t tacho__record_slow(uint32_t head, const uint64_t *words, uint32_t count, uintptr_t frame);
/* For something that happened at ticks `at`, or 0: now. */
uint64_t tacho__record_slow_at(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
			       uintptr_t frame);
/* With one word, which need not be in memory: what calls it last needs no room on the stack. */
uint64_t tacho__record_slow_word(uint32_t head, uint64_t word, uint64_t at, uintptr_t frame);

/* How a hot path reads the clock: as the box wants it, or the counter, as is right where nothing is
   watched (TACHO__WATCH_CLOCK). Then it has no call in its middle, and saves no registers for one. */
enum tacho__clock { TACHO__ANY_CLOCK, TACHO__COUNTER };

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
	if (type == TACHO_REC_UNPARK || type == TACHO_REC_UNPARK_READY ||
	    type == TACHO_REC_UNPARK_LIST)
		w->called = tacho__load(w->calls) != w->calls_heeded;
}

/*
 * Makes the stream busy, for `frame`, and finds room for `bytes`. `at`: ticks that were read just
 * before, when the same thing was recorded, or a constant 0: the clock is read. 0: it is not busy,
 * and the slow path is to be taken. 1: *t is when it happened; what is stored at s->cur is to be
 * handed to tacho__commit.
 */
static inline __attribute__((always_inline)) int tacho__claim(struct tacho__stream *s,
							      uint32_t bytes, uint64_t at,
							      enum tacho__clock clock,
							      uintptr_t frame, uint64_t *t)
{
	if (tacho__unlikely(tacho__load(&s->busy)))
		return 0;
	tacho__store(&s->busy, frame);
	tacho__signal_fence();
	if (tacho__unlikely((uintptr_t)s->cur + bytes > (uintptr_t)tacho__load(&s->end)))
		goto slow;
	*t = at ? at : clock == TACHO__COUNTER ? tacho__counter() : tacho__ticks();
	/* A handler may have recorded since `at`: ticks never run backwards. */
	if (at && tacho__unlikely(*t < s->last))
		*t = s->last;
	if (tacho__unlikely(*t - s->last > UINT32_MAX))
		goto slow;
	return 1;
slow:
	tacho__store(&s->busy, 0);
	return 0;
}

/* What was stored up to `next`, for `events` events, is there for readers. */
static inline __attribute__((always_inline)) void
tacho__commit(struct tacho__stream *s, uint64_t *next, uint64_t t, uint32_t events)
{
	s->cur = (uint8_t *)next;
	s->last = t;
	s->records += events;
	TACHO_TESTPOINT("hot-stored");
	__atomic_store_n(&s->chunk->commit, (uint64_t)((uint8_t *)next - (uint8_t *)s->chunk),
			 __ATOMIC_RELEASE);
	TACHO_TESTPOINT("hot-committed");
}

static inline __attribute__((always_inline)) void tacho__unclaim(struct tacho__stream *s)
{
	tacho__signal_fence();
	tacho__store(&s->busy, 0);
}

/* Stores a record with `count` payload words; the ticks at which it happened, or 0. */
static inline __attribute__((always_inline)) uint64_t
tacho__record_by(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
		 enum tacho__clock clock, uintptr_t frame)
{
	struct tacho__writer *w = tacho__self;
	struct tacho__stream *s = &w->stream[0];
	unsigned type = tacho_record_type(head);
	uint64_t *p;
	uint64_t t;

	if (tacho__unlikely(!tacho__claim(s, 8 + 8 * count, at, clock, frame, &t)))
		return tacho__record_slow_at(head, words, count, at, frame);
	p = (uint64_t *)s->cur;
	p[0] = head | (t - s->last) << 32;
	TACHO_TESTPOINT("hot-begun");
	for (uint32_t i = 0; i < count; i++)
		p[1 + i] = words[i];
	tacho__commit(s, p + 1 + count, t, tacho_record_events(type, count));
	if (tacho_record_is_stateful(type))
		tacho__apply(w, head, count ? words[0] : 0, t);
	tacho__unclaim(s);
	return t;
}

static inline __attribute__((always_inline)) uint64_t
tacho__record_from(uint32_t head, const uint64_t *words, uint32_t count, uint64_t at,
		   uintptr_t frame)
{
	return tacho__record_by(head, words, count, at, TACHO__ANY_CLOCK, frame);
}

static inline __attribute__((always_inline)) uint64_t
tacho__record(uint32_t head, const uint64_t *words, uint32_t count)
{
	return tacho__record_from(head, words, count, 0, tacho__frame());
}

/* A record with one payload word, or where that is small the `packed` one that has it as its
   argument; 0: there is none. The ticks, or 0. */
static inline __attribute__((always_inline)) uint64_t
tacho__record_word(uint32_t head, uint64_t word, uint32_t packed, enum tacho__clock clock,
		   uintptr_t frame)
{
	struct tacho__stream *s = &tacho__self->stream[0];
	uint32_t small = packed && word - 1 < TACHO_ARG_MAX;
	uint64_t *p;
	uint64_t t;

	if (tacho__unlikely(!tacho__claim(s, 16, 0, clock, frame, &t)))
		return tacho__record_slow_word(head, word, 0, frame);
	p = (uint64_t *)s->cur;
	p[0] = (small ? tacho_record_head(packed, (uint32_t)word) : head) | (t - s->last) << 32;
	TACHO_TESTPOINT("hot-word-begun");
	p[1] = word; /* behind what is committed, where it is small */
	tacho__commit(s, p + 2 - small, t, 1);
	tacho__unclaim(s);
	return t;
}

/* The begin of a poll, in one word where that holds it. */
static inline __attribute__((always_inline)) uint64_t
tacho__record_poll_begin(uint32_t kind, uint64_t task, uint64_t at, enum tacho__clock clock,
			 uintptr_t frame)
{
	struct tacho__writer *w = tacho__self;
	struct tacho__stream *s = &w->stream[0];
	uint32_t head = tacho_record_head(TACHO_REC_POLL_BEGIN, kind);
	uint64_t *p;
	uint64_t t, delta;
	uint32_t small;

	if (tacho__unlikely(!tacho__claim(s, 16, at, clock, frame, &t)))
		return tacho__record_slow_word(head, task, at, frame);
	p = (uint64_t *)s->cur;
	delta = t - s->last;
	small = !(task >> TACHO_SMALL_TASK_BITS | kind >> TACHO_SMALL_KIND_BITS |
		  delta >> TACHO_SMALL_DELTA_BITS);
	p[0] = small ? TACHO_REC_POLL_BEGIN_SMALL | kind << 8 | task << TACHO_SMALL_TASK_AT |
			       delta << TACHO_SMALL_DELTA_AT
		     : head | delta << 32;
	TACHO_TESTPOINT("hot-poll-begun");
	p[1] = task;
	tacho__commit(s, p + 2 - small, t, 1);
	tacho__apply(w, head, task, t);
	tacho__unclaim(s);
	return t;
}

#endif
