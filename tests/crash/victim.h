/*
 * Processes that record and die, each with a folder of its own for boxes, and the
 * comparison of what they leave behind with what they did.
 */
#ifndef TACHO_TESTS_CRASH_VICTIM_H
#define TACHO_TESTS_CRASH_VICTIM_H

#include <stdint.h>
#include <sys/types.h>

#include "truth.h"

#define VICTIM_SECONDS 30u /* after that it counts as hung */

/* Where a victim leaves what it leaves. */
struct victim_folder {
	char boxes[128];
	char file[160]; /* for a crash file or snapshot; not there at first */
};

/* Makes the folder, on tmpfs, and points TACHO_BOX_DIR to it; exits the program if it cannot. */
void victim_folder_make(struct victim_folder *folder);
/* Deletes it with all that is in it. */
void victim_folder_remove(const struct victim_folder *folder);

/* Runs in a child process; what it returns is its exit status. */
typedef int victim_main(struct truth *truth, void *arg);

/* Starts a victim; its pid. */
pid_t victim_start(victim_main *run, struct truth *truth, void *arg);
/* Waits for it and all that it left behind; the status of waitpid(2), SIGALRM if it hung. */
int victim_wait(pid_t pid);

/* Compares all boxes of the folder with the truth; NULL or what is wrong. `events`, if not
   NULL, grows by what was read. */
const char *victim_verify(const struct victim_folder *folder, const struct truth *truth,
			  unsigned flags, uint64_t *events);

/* In the victim: starts recording into a box that stays, and notes it. */
void victim_record(struct truth *truth, uint64_t max_bytes, uint64_t threshold_ns);

/* In the victim: a thread that records `count` records of the pattern. */
struct victim_thread {
	struct truth *truth;
	uint64_t count;
	void *handle; /* of the thread */
};
void victim_thread_start(struct victim_thread *thread, struct truth *truth, uint64_t count);
void victim_thread_join(struct victim_thread *thread);

/* "ok NAME", or "not ok NAME: why" and the program's status becomes 1. */
void report(const char *name, const char *why);
int report_status(void);

#endif
