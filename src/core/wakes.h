/* Tasks that were woken and not polled since, for the sentinel that watches how long that takes. */
#ifndef TACHO_CORE_WAKES_H
#define TACHO_CORE_WAKES_H

#include <stdint.h>

/* From now on wakes are noted, and none is yet; 0 or a negative errno. */
int tacho__wakes_begin(void);

/* The task was woken at `ticks` (0: not recorded). */
void tacho__wake_noted(uint64_t task, uint64_t ticks);
/* It will not be polled for that: it ended, or what woke it was taken back. */
void tacho__wake_forgotten(uint64_t task);
/* A poll of the task, of kind `id`, began at `ticks`. */
void tacho__wake_polled(uint64_t task, uint64_t ticks, uint32_t id);

#endif
