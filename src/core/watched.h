/*
 * Calls of the API while something is watched besides: a sentinel, or whether polls are shorter
 * than a threshold. `frame`: that of the function which the program called.
 */
#ifndef TACHO_CORE_WATCHED_H
#define TACHO_CORE_WATCHED_H

#include <stdint.h>

void tacho__watched_park(uint32_t loop, uintptr_t frame);
void tacho__watched_poll_begin(uint32_t kind, uint64_t task, uintptr_t frame);
void tacho__watched_poll_switch(uint32_t kind, uint64_t task, uintptr_t frame);
void tacho__watched_poll_end(uint32_t result, uintptr_t frame);
void tacho__watched_put1(uint32_t type, uint32_t arg, uint64_t a, uintptr_t frame);

#endif
