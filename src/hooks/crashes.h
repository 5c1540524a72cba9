/* Between crashes.c, which notes crashes, and signals.c, which keeps that to itself. */
#ifndef TACHO_HOOKS_CRASHES_H
#define TACHO_HOOKS_CRASHES_H

#include <signal.h>

#define TACHO__CRASH_SIGNALS 7
extern const int tacho__crash_signals[TACHO__CRASH_SIGNALS];

/* Place of the signal among these; -1: it is none. */
int tacho__crash_index(int sig);

/* In the constructor, once recording may begin. */
void tacho__crashes_begin(void);

/* Crashes are no longer noted: signals have the actions that the program believes them to have. */
void tacho__crashes_end(void);

/*
 * The action of the signal may have changed: where it is the default one now, or that of a handler
 * which the kernel takes away when it is called, crashes are noted from here on. errno stays.
 */
void tacho__crash_settle(int sig);

/* Of an action that the kernel told: what the program believes it to be. */
void tacho__crash_believed(int sig, struct sigaction *action);

#endif
