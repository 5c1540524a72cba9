/* Triggers: requests that the window be kept, and the agent that is told of them. */
#ifndef TACHO_CORE_TRIGGER_H
#define TACHO_CORE_TRIGGER_H

#include <stdint.h>

#include "core/recorder.h"

/*
 * Stores a trigger and wakes the agent. `name`: what the record of it is defined as; `flags`
 * and `value`: as in struct tacho_box_trigger. Its number, or 0 without a box.
 */
uint32_t tacho__trigger(const char *name, const char *reason, uint32_t flags, uint64_t value);

/* Something wants attention. The box is there: between tacho__enter and tacho__leave, or with a
   stream busy. */
void tacho__wake_agent(void);

#endif
