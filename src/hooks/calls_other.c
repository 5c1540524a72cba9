/*
 * Calls that wait for time, for processes, for threads, for messages and for memory. Those that start
 * programs are in exec.c.
 */
#include "hooks/calls.h"

#include <mqueue.h>
#include <pthread.h>
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

#define WAIT_CALL(name, params, args, process)                                     \
	TACHO__CALL_ON(pid_t, name, params, args, process, result < 0 ? errno : 0, \
		       TACHO__NUMBER(result > 0 ? result : (process)))

WAIT_CALL(wait, (int *status), (status), -1)
WAIT_CALL(wait3, (int *status, int flags, void *usage), (status, flags, usage), -1)
WAIT_CALL(waitpid, (pid_t pid, int *status, int flags), (pid, status, flags), pid)
WAIT_CALL(wait4, (pid_t pid, int *status, int flags, void *usage), (pid, status, flags, usage), pid)
TACHO__CALL(int, waitid, (int which, unsigned id, void *info, int flags), (which, id, info, flags),
	    TACHO__NUMBER((int)id ? (int)id : -1))

/* In the child it is no call of a loop's: see has_loop_here in calls.c. */
TACHO__CALL(pid_t, fork, (void), (), TACHO__NUMBER(result))

TACHO__OUTER_CALL(int, system, (const char *command), (tacho__shell_begins(command)),
		  result < 0 ? errno : 0, TACHO__COMMAND(command))
TACHO__OUTER_CALL(FILE *, popen, (const char *command, const char *mode),
		  (tacho__shell_begins(command), mode), result ? 0 : errno, TACHO__COMMAND(command))
TACHO__OUTER_CALL(int, pclose, (FILE * stream), (stream), result < 0 ? errno : 0, TACHO__NOTHING)

/* --------------------------------------------------------------- threads */

/* Which thread it was can't be asked when it has been joined. */
#define JOIN_CALL(name, params, args, wrong)                                                   \
	TACHO__HOOKED(int, name, params)                                                       \
	{                                                                                      \
		int counts = tacho__call_counts();                                             \
		uint32_t tid = counts ? tacho__tid_of(thread) : 0;                             \
		uint64_t since = TACHO__CALL_BEGINS(counts, #name, tid ? (int64_t)tid : -1);   \
		int result = TACHO__NEXT(name) args;                                           \
                                                                                               \
		TACHO__CALL_ENDS(since, #name, wrong, TACHO__NUMBER(tid ? (int64_t)tid : -1)); \
		return result;                                                                 \
	}
JOIN_CALL(pthread_join, (pthread_t thread, void **value), (thread, value), result)
JOIN_CALL(pthread_timedjoin_np, (pthread_t thread, void **value, const struct timespec *until),
	  (thread, value, until), result)
JOIN_CALL(pthread_clockjoin_np,
	  (pthread_t thread, void **value, clockid_t clock, const struct timespec *until),
	  (thread, value, clock, until), result)
JOIN_CALL(thrd_join, (pthread_t thread, int *value), (thread, value), 0)

/* -------------------------------------------- messages and semaphores */

TACHO__CALL(int, msgsnd, (int queue, const void *message, size_t size, int flags),
	    (queue, message, size, flags), TACHO__NOTHING)
TACHO__CALL(ssize_t, msgrcv, (int queue, void *message, size_t size, long type, int flags),
	    (queue, message, size, type, flags), TACHO__NOTHING)
TACHO__CALL(int, semop, (int set, void *what, size_t count), (set, what, count), TACHO__NOTHING)
TACHO__CALL(int, semtimedop, (int set, void *what, size_t count, const struct timespec *time),
	    (set, what, count, time), TACHO__NOTHING)
TACHO__CALL(int, mq_send, (mqd_t queue, const char *message, size_t size, unsigned priority),
	    (queue, message, size, priority), TACHO__FD(queue))
TACHO__CALL(int, mq_timedsend,
	    (mqd_t queue, const char *message, size_t size, unsigned priority,
	     const struct timespec *until),
	    (queue, message, size, priority, until), TACHO__FD(queue))
TACHO__CALL(ssize_t, mq_receive, (mqd_t queue, char *message, size_t size, unsigned *priority),
	    (queue, message, size, priority), TACHO__FD(queue))
TACHO__CALL(ssize_t, mq_timedreceive,
	    (mqd_t queue, char *message, size_t size, unsigned *priority,
	     const struct timespec *until),
	    (queue, message, size, priority, until), TACHO__FD(queue))

/* ---------------------------------------------------------------- memory */

TACHO__CALL_ERROR(int, malloc_trim, (size_t keep), (keep), 0, TACHO__NOTHING)
