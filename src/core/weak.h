/*
 * Names that not every C library has. libtacho-preload refers to them weakly, because a foreign C
 * library may load it (hooks/foreign.h). Elsewhere they are ordinary: weak references do not take
 * a function out of a static library.
 */
#ifndef TACHO_CORE_WEAK_H
#define TACHO_CORE_WEAK_H

#if defined(TACHO_PRELOAD)
#define TACHO__WEAK(name) extern __typeof__(name) name __attribute__((weak))
#else
#define TACHO__WEAK(name) _Static_assert(1, "")
#endif

#endif
