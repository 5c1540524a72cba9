/*
 * One followed box: what an agent says to its recorder, and hears from it.
 *
 * Who follows a box holds a lock on the file. The kernel ends it with the process that holds
 * it, however that ends, so the next agent can go on. A listener waits at the box's futex and
 * passes on that it was woken.
 *
 * The program owns the file and may truncate it at any moment. So it is read and written with
 * pread(2) and pwrite(2) only; what is mapped, one page, is for the kernel's futex alone and
 * never touched here.
 */
#ifndef TACHO_AGENT_FOLLOW_H
#define TACHO_AGENT_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/box.h"

struct stat;
struct tacho__follow;
struct tacho__listener;

/*
 * Opens a box and reads what it says of itself; nothing is changed by that. -ENODATA: it is
 * being made; -EBADMSG: it is no box; or as of open(2).
 */
int tacho__follow_open(struct tacho__follow **out, const char *path);
const struct tacho_box_super *tacho__follow_super(const struct tacho__follow *f);
/* The file as it was opened; its descriptor, for reading. */
const struct stat *tacho__follow_file(const struct tacho__follow *f);
int tacho__follow_fd(const struct tacho__follow *f);
/* State of the box by now, enum tacho_state. */
uint32_t tacho__follow_state(const struct tacho__follow *f);

/* Takes the lock: -EWOULDBLOCK: another one follows it, or makes a trace file of it. */
int tacho__follow_lock(struct tacho__follow *f);
/* Process that says in the box that it looks after it; 0: none. It may be long gone. */
uint32_t tacho__follow_agent(const struct tacho__follow *f);

/*
 * Begins to listen: the recorder is told that an agent is there, and the eventfd `poke` gets 1
 * whenever it wants attention. `past`: triggers that were there before count. 0; -ENOTSUP: the
 * box has nothing to listen to; -EAGAIN and kin: no thread. The box can still be read.
 */
int tacho__follow_begin(struct tacho__follow *f, struct tacho__listener *listener, int poke,
			bool past);
/* Whether it was poked since the last call. */
bool tacho__follow_poked(struct tacho__follow *f);

int tacho__follow_control(const struct tacho__follow *f, struct tacho_box_control *out);
/* What the recorder shall watch for, TACHO_SENTINEL_COUNT of them, 0: not; and after how many
   sealed chunks it shall wake us, 0: never. Arms all. */
void tacho__follow_limits(struct tacho__follow *f, const uint64_t *limit, uint32_t chunks);
/* To be heard again. */
void tacho__follow_arm(struct tacho__follow *f);
/* To be woken when a loop unparks. */
void tacho__follow_idle(struct tacho__follow *f);
/* The next trigger: 1, or 0: there is none. *missed: older ones that were overwritten. */
int tacho__follow_trigger(struct tacho__follow *f, struct tacho_box_trigger *out, uint32_t *missed);

/* Since when the box holds all that was recorded, CLOCK_MONOTONIC; 0: since it was made, or that
   cannot be told. Costs a look at every chunk. */
uint64_t tacho__follow_window(const struct tacho__follow *f);
/* The threads of the box, for free(3); NULL: none. */
struct tacho_box_thread *tacho__follow_threads(const struct tacho__follow *f, uint32_t *count);

/* Takes back what the recorder was told, lets go of the box. NULL is allowed. */
void tacho__follow_end(struct tacho__follow *f);

#endif
