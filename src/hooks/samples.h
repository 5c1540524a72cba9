/* Between samples.c, which owns the signal, and signals.c, which keeps it to itself. */
#ifndef TACHO_HOOKS_SAMPLES_H
#define TACHO_HOOKS_SAMPLES_H

#include <signal.h>

/* The signal of the samples of the calling process; 0: none. */
int tacho__samples_signal(void);

/*
 * The program wants that signal for itself: samples use another from now on, or none. When it
 * returns, no timer of ours sends the old one, and its action is the default one again.
 */
void tacho__samples_yield(int sig);

/* No more samples in this process: when it returns, no timer of ours sends any signal. */
void tacho__samples_end(void);

/* The function of libc, found in the constructor: handlers need it. */
int tacho__real_sigaction(int sig, const struct sigaction *act, struct sigaction *old);

/* Samples have a signal, or another one: it shall not interrupt what handles crashes. */
void tacho__samples_chosen(void);

/* Whether the program named this signal in a set of some: no signal for samples. */
int tacho__signal_named(int sig);

/* What the program believes to be the action of our signal: the default one, or to ignore it. */
void tacho__samples_believed(const struct sigaction *set, struct sigaction *old);

#endif
