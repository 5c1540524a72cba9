/* Crashes: their records in the box, and how the process ends of them. */
#ifndef TACHO_CORE_CRASH_H
#define TACHO_CORE_CRASH_H

#include <signal.h>
#include <stdint.h>

#include "format/box.h"

/* Says in a new box how the crash handler stands. */
void tacho__crash_describe(void);

/* The hooks note crashes, or no longer do. */
void tacho__crash_hooked(int on);

/* Of the C library: a text with its size in front, or NULL where it has said nothing. NULL: it is not
   known where that is. */
extern const uint32_t *const *tacho__crash_said;

/* The process ends in order: it has survived what was noted so far. */
void tacho__crash_survived(void);

/*
 * A record in the box, with the registers, and the program counter as its only frame; NULL: there
 * is no box, or no room in it. Who called it stores `frames` frames and then calls
 * tacho__crash_end; 0: the stack could not be had. `interrupted`: see TACHO_CRASH_INTERRUPTED.
 */
struct tacho_box_crash *tacho__crash_begin(int sig, const siginfo_t *info, const void *context);
void tacho__crash_end(struct tacho_box_crash *c, uint32_t frames, uint32_t interrupted);

/*
 * In a handler: when that has returned, the default action of the signal ends the process, with
 * the registers and the siginfo of the crash in its core.
 */
void tacho__crash_default(int sig, const siginfo_t *info, void *context);

#endif
