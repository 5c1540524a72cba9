/*
 * The one file of a recording: each window becomes a part of it (format/trace.h). The first makes
 * the file, which gets its name when that part is whole; others are appended. So what is there
 * can be read at any time, also if this process is killed.
 */
#ifndef TACHO_AGENT_RECORDING_H
#define TACHO_AGENT_RECORDING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/voice.h"
#include "write/new_file.h"

struct tacho_process;
struct tacho__trace_result;

/* What one process has in it. */
struct tacho__recorded {
	uint32_t pid;
	char comm[17];
	uint64_t created_ns; /* with the pid: which process */
	uint32_t parts;
	uint64_t events;
};

struct tacho__recording {
	const struct tacho__voice *voice;
	const char *folder;
	const char *file; /* name that was asked for; NULL: one in the folder */
	bool replace;
	struct tacho__new_file first;
	char path[PATH_MAX]; /* once it has a name */
	int fd;		     /* of the file, which others may rename; -1: there is none yet */
	off_t whole;	     /* bytes of it, before the part that is being written */
	uint64_t bytes, first_ns, last_ns;
	struct tacho__recorded *processes;
	size_t count;
	char why[256]; /* of the last window that had a reason */
};

void tacho__recording_init(struct tacho__recording *r, const struct tacho__voice *voice);
/* A descriptor for a part, or a negative errno with a sentence. `named` says what a file that
   nobody gave a name is called after. */
int tacho__recording_begin(struct tacho__recording *r, const struct tacho_process *named,
			   char *message, size_t message_size);
/* The part is whole. 0 or a negative errno with a sentence. */
int tacho__recording_commit(struct tacho__recording *r, const struct tacho_process *process,
			    const struct tacho__trace_result *part, const char *why, char *message,
			    size_t message_size);
/* The part is not wanted, or could not be written. */
void tacho__recording_abandon(struct tacho__recording *r);
/* Says what is in it, and frees it. */
void tacho__recording_end(struct tacho__recording *r);

#endif
