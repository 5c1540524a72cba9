/*
 * --exec COMMAND: runs `sh -c COMMAND` for a finished file, with the path as $1 and in
 * TACHO_FILE, and TACHO_PID, TACHO_WHY; stdin /dev/null. One at a time, in the order of the
 * files; the rest waits here, TACHO__EXEC_WAITING of them at most. Never blocks the caller:
 * the caller reaps children and tells tacho__exec_ended.
 */
#ifndef TACHO_AGENT_EXEC_H
#define TACHO_AGENT_EXEC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TACHO__EXEC_WAITING 1024u

struct tacho__exec;

/* `environment` is what commands get besides; both must outlive it. NULL without memory. */
struct tacho__exec *tacho__exec_new(const char *command, char *const *environment);
/* 0; -ENOBUFS: too many wait, this one is not run; -ENOMEM; or why it could not be started. */
int tacho__exec_file(struct tacho__exec *x, const char *path, uint32_t pid, const char *why);
/* A child of this process has ended. 1: it was a command; `message` gets a sentence when it
   failed, or the next one could not be started, else "". 0: it was another. */
int tacho__exec_ended(struct tacho__exec *x, pid_t pid, int status, char *message,
		      size_t message_size);
/* How many are running or waiting. */
unsigned tacho__exec_pending(const struct tacho__exec *x);
/* The process of the one that is running, or 0: for a caller that waits no longer. */
pid_t tacho__exec_pid(const struct tacho__exec *x);
/* What waits is not run; what runs is left alone. */
void tacho__exec_free(struct tacho__exec *x);

#endif
