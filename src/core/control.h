/* Starting, stopping, and the state of recording as a whole. */
#ifndef TACHO_CORE_CONTROL_H
#define TACHO_CORE_CONTROL_H

#include <stdint.h>

/*
 * 1 when there is a box to record into. Makes one where recording is on and there is
 * none yet: in a child after fork. Waits a bounded time for another thread that is
 * making it.
 */
int tacho__recorder_ready(void);

/*
 * Around what uses the box and is no store of a record: signals of this thread are held,
 * so that no handler forks or jumps in the middle of it, and tacho_stop waits for it.
 * The box may be used if tacho__enter gives 1; tacho__leave is called in any case.
 */
int tacho__enter(uint64_t *mask);
void tacho__leave(uint64_t mask);

/* A record found no writer. */
void tacho__recorder_lost(void);

#endif
