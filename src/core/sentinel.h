/*
 * Sentinels: conditions that an agent asks for in the control area of the box and the recorder
 * watches, because what they compare is at hand where it records (format/box.h).
 *
 * A recorder for which nobody asked anything pays a compare with `tacho__watching` or with
 * a limit that nothing is above. What is asked for is read when a loop unparks and when a
 * chunk is taken, turned into ticks, and kept in memory of the process: the control area is
 * written by others, and looked at only here.
 */
#ifndef TACHO_CORE_SENTINEL_H
#define TACHO_CORE_SENTINEL_H

#include <stdint.h>

#include "core/recorder.h"

#define TACHO__WATCH(sentinel) (1u << TACHO_SENTINEL_##sentinel)
#define TACHO__WATCH_SHORT (1u << 31) /* there is a poll threshold */
#define TACHO__WATCH_HOOKS (1u << 30) /* hooks look at threads that call the API (core/watched.h) */

#define TACHO__WATCH_CLOCK (1u << 29) /* the clock of the box is not the counter */

/* What calls of the API have to look at besides storing their record; 0: nothing, and the clock is
   the counter. Set when a box is made, before its first record. */
extern uint32_t tacho__watching;
/* What is above is of interest: ticks, of QUEUE a depth; UINT64_MAX: nothing is. */
extern uint64_t tacho__limit[TACHO_SENTINEL_COUNT];

/*
 * Something took `ticks`, which is above tacho__limit. `id` is the definition that it is
 * about: the kind of a poll, or a loop. The sentinel fires, or was not armed anew since it
 * did: then it is counted. Changes no errno.
 */
void tacho__above_ticks(enum tacho_sentinel which, uint64_t ticks, uint32_t id)
	__attribute__((cold, noinline));
/* The same for what is in the unit of the limit; finds out itself whether it is above. */
void tacho__above(enum tacho_sentinel which, uint64_t value, uint32_t id)
	__attribute__((cold, noinline));

static inline void tacho__took(enum tacho_sentinel which, uint64_t ticks, uint32_t id)
{
	if (tacho__unlikely(ticks > tacho__load(&tacho__limit[which])))
		tacho__above_ticks(which, ticks, id);
}

/*
 * A turn of `loop` that lasted from `since` until `until`, at which the thread parks, has ended.
 * `whole`: its callbacks are not seen, so that it counts as one poll. Threads that wait with the same
 * loop serve one queue of work: what one of them did while another was parked in it kept nothing
 * waiting, and may have been idling; as a poll counts at least what it `ran`, on a CPU.
 */
void tacho__turn_above(uint64_t since, uint64_t until, uint32_t loop, int whole, uint64_t ran)
	__attribute__((cold, noinline));

static inline int tacho__turn_is_above(uint64_t ticks, int whole)
{
	return ticks > tacho__load(&tacho__limit[TACHO_SENTINEL_LAG]) ||
	       (whole && ticks > tacho__load(&tacho__limit[TACHO_SENTINEL_POLL]));
}

/* ------------------------------------------------------- control area */

static inline const tacho__calls *tacho__calls_of(const struct tacho_box_control *c)
{
	return (const tacho__calls *)(const void *)&c->config;
}

/* Wakes the agent if it waits for a loop to unpark, and reads what it asks for. */
void tacho__heed(void) __attribute__((cold, noinline));

/* After a record of UNPARK. */
static inline void tacho__unparked(void)
{
	if (tacho__unlikely(tacho__self->called))
		tacho__heed();
}

/* The writer of this thread has a new chunk. Its stream is busy, signals are held. */
void tacho__heed_config(struct tacho__writer *w);
/* A chunk was sealed. Signals are held. */
void tacho__chunk_sealed(void);

/* What `tacho run` gives in the environment, such as "poll>50ms,queue>1000": TACHO_SENTINEL_COUNT
   limits, those that are not named stay. 0 or -EINVAL. */
int tacho__sentinels_parse(const char *text, uint64_t *limit);
/* Asks for them in a box that no agent can know of yet, so that it is deaf at no time. */
void tacho__sentinels_ask(struct tacho_box_control *c, const uint64_t *limit);
/* A box was made. What it was made with is watched for from its first record on. */
void tacho__sentinels_begin(void);

#endif
