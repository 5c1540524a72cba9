/* Starting, stopping, and the state of recording as a whole. */
#ifndef TACHO_CORE_CONTROL_H
#define TACHO_CORE_CONTROL_H

/*
 * 1 when there is a box to record into. Makes one where recording is on and there is
 * none yet: in a child after fork. Waits a bounded time for another thread that is
 * making it.
 */
int tacho__recorder_ready(void);

/* A record found no writer. */
void tacho__recorder_lost(void);

#endif
