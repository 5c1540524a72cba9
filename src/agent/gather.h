/* Signals of this process reach the thread that reads them. */
#ifndef TACHO_AGENT_GATHER_H
#define TACHO_AGENT_GATHER_H

/*
 * The caller blocks all signals and reads them from a signalfd. Threads that exist already, because a
 * library of LD_PRELOAD has made them, block none: the kernel may give them a signal of the process,
 * which is then lost or ends it. From here on they pass signals on to the caller, as they came.
 */
void tacho__gather_signals(void);

#endif
