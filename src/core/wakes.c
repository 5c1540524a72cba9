/*
 * A table with one place for each value of a hash of the task. Of two tasks that meet there,
 * the one woken later has it, and the other is not watched this time; of several wakes of one
 * task, the first counts. A wake that is recorded only after the poll that it caused began
 * counts for the poll after that.
 *
 * A place is two words, stored by whoever comes, without order: the second is the task mixed
 * with the first, so that words of two different wakes are found to be neither.
 */
#include "core/wakes.h"

#include <stddef.h>

#include "base/hash.h"
#include "core/recorder.h"
#include "core/sentinel.h"

#define PLACES_BITS 13u /* 128 KiB */

struct place {
	uint64_t ticks; /* 0: free */
	uint64_t mixed;
};

/* Emptied in a child by the kernel. Mapped when it is first needed, and then for good. */
static struct place *places;

int tacho__wakes_begin(void)
{
	void *at;
	int err;

	if (places) {
		for (uint32_t i = 0; i < 1u << PLACES_BITS; i++)
			tacho__store(&places[i].ticks, 0);
		return 0;
	}
	err = tacho__map_emptied(sizeof(struct place) << PLACES_BITS, &at);
	if (!err)
		__atomic_store_n(&places, at, __ATOMIC_RELEASE);
	return err;
}

/* NULL: wakes are not noted. */
static struct place *place_of(uint64_t task)
{
	struct place *all = __atomic_load_n(&places, __ATOMIC_ACQUIRE);

	return all ? &all[tacho__mix(task) >> (64 - PLACES_BITS)] : NULL;
}

/* Ticks of the wake that stands there, if it is one of the task; else 0. */
static uint64_t woken_at(const struct place *p, uint64_t task)
{
	uint64_t ticks = tacho__load(&p->ticks);

	return ticks && (tacho__load(&p->mixed) ^ ticks) == task ? ticks : 0;
}

void tacho__wake_noted(uint64_t task, uint64_t ticks)
{
	struct place *p = place_of(task);

	if (!p || !ticks || woken_at(p, task))
		return;
	tacho__store(&p->mixed, task ^ ticks);
	tacho__store(&p->ticks, ticks);
}

void tacho__wake_forgotten(uint64_t task)
{
	struct place *p = place_of(task);

	if (p && woken_at(p, task))
		tacho__store(&p->ticks, 0);
}

void tacho__wake_polled(uint64_t task, uint64_t ticks, uint32_t id)
{
	struct place *p = place_of(task);
	uint64_t woken = p ? woken_at(p, task) : 0;

	if (!woken)
		return;
	tacho__store(&p->ticks, 0);
	if (ticks > woken)
		tacho__took(TACHO_SENTINEL_WAKE, ticks - woken, id);
}
