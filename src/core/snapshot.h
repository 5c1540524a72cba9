/* Writing the window as a trace file from inside the process. */
#ifndef TACHO_CORE_SNAPSHOT_H
#define TACHO_CORE_SNAPSHOT_H

#include <stdint.h>

#include "format/box.h"

/* Room for one block at a time. Large, so never on a stack. */
struct tacho__snapshot_room {
	uint64_t words[(TACHO_SLOT_SIZE + 4096) / 8];
};

/*
 * Writes the trace to `fd` with write(2) alone; 0 or a negative errno. taken_by: enum
 * tacho_taken_by. Async-signal-safe; nothing but the box and `room` is used.
 */
int tacho__snapshot_write(int fd, uint32_t taken_by, struct tacho__snapshot_room *room);

#endif
