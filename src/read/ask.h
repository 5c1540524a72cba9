/*
 * Questions that may never be answered.
 *
 * Some files of /proc (cmdline, environ, maps) need the lock of a process's memory. A process may hold
 * it and wait: for a file system of its user's that does not answer, or for a server that is gone. Whoever
 * reads these files waits as long, be it root; so does whoever opens a file on such a file system. Here a thread
 * asks, and is left behind when it has not come back in time: it ends with the answer, or with the
 * process.
 *
 * Each such question costs the asker that time. So a user whose process left one unanswered is not asked
 * again for a while, and not at all while several of theirs are open.
 */
#ifndef TACHO_READ_ASK_H
#define TACHO_READ_ASK_H

#include <stddef.h>
#include <stdint.h>

/* How long an answer is waited for; tests change it. */
extern uint64_t tacho__ask_limit_ns;

/*
 * Reads /proc/PID/NAME to its end, at most `most` bytes, and gives it to `use`, ended by a zero that
 * is not counted. What that returns, or -errno: -ETIMEDOUT, no answer; -EBUSY, the user of the process is
 * not asked.
 */
long tacho__ask_process(uint32_t pid, const char *name, size_t most,
			long (*use)(void *arg, char *text, size_t size), void *arg);

/* The same into memory of the caller's: bytes, less than `room`, and a zero behind them. */
long tacho__ask_process_small(uint32_t pid, const char *name, char *to, size_t room);
/* The arguments of a process as one line, "": not known. `keep`: credentials among them too. */
void tacho__ask_command_line(uint32_t pid, char *line, size_t room, int keep);

/* Opens what a process has mapped, for reading: a regular file, and as root on no file system that a program
   makes (FUSE), which may say of its files what it likes. A descriptor, or -errno as above. */
int tacho__ask_open(uint32_t pid, const char *path);

#endif
