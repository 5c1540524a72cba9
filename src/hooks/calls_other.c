/*
 * Calls that wait for time, for processes and for memory.
 */
#include "hooks/calls.h"

#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/* ------------------------------------------------------------------ time */

TACHO__CALL(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left),
	    TACHO__NOTHING)
TACHO__CALL_ERROR(int, clock_nanosleep,
		  (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
		  (clock, flags, time, left), result, TACHO__NOTHING)
TACHO__CALL(int, usleep, (unsigned us), (us), TACHO__NOTHING)
TACHO__CALL_ERROR(unsigned, sleep, (unsigned seconds), (seconds), 0, TACHO__NOTHING)

/* ------------------------------------------------------------- processes */

#define WAIT_CALL(name, params, args, process) \
	TACHO__CALL(pid_t, name, params, args, TACHO__NUMBER(result > 0 ? result : (process)))

WAIT_CALL(wait, (int *status), (status), -1)
WAIT_CALL(wait3, (int *status, int flags, void *usage), (status, flags, usage), -1)
WAIT_CALL(waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), pid)
WAIT_CALL(wait4, (pid_t pid, int *status, int flags, void *usage), (pid, status, flags, usage), pid)
TACHO__CALL(int, waitid, (int which, unsigned id, void *info, int flags), (which, id, info, flags),
	    TACHO__NUMBER((int)id ? (int)id : -1))

/* In the child it is no call of a loop's: see has_loop_here in calls.c. */
TACHO__CALL(pid_t, fork, (void), (), TACHO__NUMBER(result))

TACHO__OUTER_CALL(int, system, (const char *command), (command), result < 0 ? errno : 0,
		  TACHO__PATH(command))
TACHO__OUTER_CALL(FILE *, popen, (const char *command, const char *mode), (command, mode),
		  result ? 0 : errno, TACHO__PATH(command))
TACHO__OUTER_CALL(int, pclose, (FILE * stream), (stream), result < 0 ? errno : 0, TACHO__NOTHING)

/* ---------------------------------------------------------------- memory */

TACHO__CALL_ERROR(int, malloc_trim, (size_t keep), (keep), 0, TACHO__NOTHING)
