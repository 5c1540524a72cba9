#ifndef TACHO_HOOKS_CALLERS_H
#define TACHO_HOOKS_CALLERS_H

/*
 * `returns`: where a hook returns to. Gives places in the functions that jumped to the hook, innermost
 * first, and how many these are: 0 when none did, as far as one can see. `taken`: where the lock was
 * taken that the hook releases, NULL: not known, or it is none. errno stays, nothing is allocated and
 * nothing locked.
 */
unsigned tacho__tail_callers(const void *returns, const void *taken, const void *callers[2]);

#endif
