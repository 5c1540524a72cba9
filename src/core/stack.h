/* Taking the stack of the calling thread. */
#ifndef TACHO_CORE_STACK_H
#define TACHO_CORE_STACK_H

#include <stdint.h>

/*
 * Up to `most` program counters, innermost first, from the caller's caller on. Uses the
 * unwinder that libc loads on demand: see tacho_stacks_prepare. *more: there were more.
 */
uint32_t tacho__stack_take(uint64_t *frames, uint32_t most, int *more);

#if !defined(__GLIBC__)
/* As backtrace(3): the first frame is that of its caller. NULL: there are no stacks. */
extern int (*tacho__backtrace)(void **pc, int most);
#endif

#endif
