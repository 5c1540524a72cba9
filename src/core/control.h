/* Starting, stopping, and the state of recording as a whole. */
#ifndef TACHO_CORE_CONTROL_H
#define TACHO_CORE_CONTROL_H

#include <stdint.h>

struct tacho__writer;

/*
 * 1 when there is a box to record into. Makes one where recording is on and there is
 * none yet: in a child after fork. Waits a bounded time for another thread that is
 * making it.
 */
int tacho__recorder_ready(void);

/*
 * Around what uses the box and is no store of a record: signals of this thread are held,
 * so that no handler forks or jumps in the middle of it, and tacho_stop waits for it.
 * The box may be used if tacho__enter gives 1; tacho__leave is called in any case.
 */
int tacho__enter(uint64_t *mask);
/* The same for the box that `w` writes to: 0 when that was stopped. */
int tacho__enter_as(const struct tacho__writer *w, uint64_t *mask);
void tacho__leave(uint64_t mask);

/*
 * For hooks: recording is on, with the options of the environment; the box is made by
 * the first record, so that programs in which nothing happens cost nothing. 0 or a
 * negative errno, with the reason where tacho_status and `tacho ls` find it.
 */
int tacho__arm(void);
/* Before all others: every start fails from now on, with this reason (a literal). */
void tacho__refuse(const char *reason);

/* In a signal handler: nothing is recorded any more, and nothing in the box is touched. */
void tacho__stop_at_once(void);

/*
 * For hooks: recording is not possible any more, for this `reason`, and ends for good, in order.
 * 0, or a negative errno: the caller is a process that only shares the memory of ours.
 */
int tacho__give_up(int error, const char *reason);

/* For hooks: how long a call or a wait for a lock must take to be recorded. */
uint64_t tacho__call_threshold_ns(void);
/* For hooks: how long a poll must take for its scheduling to be recorded; 0: never. */
uint64_t tacho__slow_poll_ns(void);
/* For hooks: whether crashes are noted in the box. */
int tacho__crash_wanted(void);

/*
 * The user of the process may have changed. If it cannot act for the user of its box any more, nothing of
 * that box stays mapped, and recording goes on in a box of the new user. Nothing waits for long, and errno
 * stays. In a child of vfork it does nothing. 1: there is another box now, or none.
 */
int tacho__user_changed(void);

/* A record found no writer. */
void tacho__recorder_lost(void);

#endif
