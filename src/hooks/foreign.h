/*
 * The library in a process of the other C library.
 *
 * A program between tacho and that process may pass LD_PRELOAD on without looking: a static shell, or
 * system(3) inside libc. An undefined name would then be fatal, as musl's dynamic linker ends a
 * process with status 127. So each name that only one C library has is a weak reference, and
 * tests/run.py (suite elf) compares all others with both. In such a process nothing is recorded:
 * every hook calls the real function, but for exec and spawn, which choose the library that the
 * next program can use.
 */
#ifndef TACHO_HOOKS_FOREIGN_H
#define TACHO_HOOKS_FOREIGN_H

#include "core/weak.h"

/* 1: the process does not run on the C library that this was built for. */
int tacho__is_foreign(void);

#endif
