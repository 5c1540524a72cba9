/* Threads and their streams: who stores where. */
#ifndef TACHO_CORE_WRITER_H
#define TACHO_CORE_WRITER_H

#include <stdint.h>

#include "core/recorder.h"

/*
 * The writer of this thread for the present box, made if need be (and the box with
 * it, after fork). NULL when there can be none.
 */
struct tacho__writer *tacho__writer_get(void);

/* What the thread holds is sealed and given back. */
void tacho__writer_release(struct tacho__writer *w);

/* Every thread finds at its next record that something changed; waits, for a bounded
   time, until none is storing. */
void tacho__writers_interrupt(void);

/* After that: whether no other thread stores. Takes a millisecond. */
int tacho__writers_idle(void);

/* Stores a record into a stream that the caller made busy, at ticks `t`, or now if `t` is 0. The
   ticks, or 0 if it found no room. */
uint64_t tacho__stream_put(struct tacho__writer *w, unsigned level, uint64_t t, uint32_t head,
			   const uint64_t *words, uint32_t count);

/* Makes sure that the stream has a chunk with `bytes` free; 0 if it cannot be had. */
int tacho__stream_room(struct tacho__writer *w, unsigned level, uint32_t bytes);

/* Records the poll that is pending (poll threshold), if there is one. The stream is busy. */
void tacho__pending_flush(struct tacho__writer *w);

int tacho__writer_init(void);

#endif
