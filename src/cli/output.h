/*
 * Writing a trace file so that its name never stands for half a file: the bytes
 * go to a temporary name in the same folder, reach the disk, and only then get
 * their name. An interrupt removes the temporary file.
 */
#ifndef TACHO_CLI_OUTPUT_H
#define TACHO_CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct tacho_process;

struct output {
	int fd;
	int folder;
	char path[PATH_MAX]; /* as a person reads it */
	char name[NAME_MAX + 1];
	char temporary[NAME_MAX + 1];
	bool replace;
	bool unique; /* a name that is taken gets a number */
};

/* To `path`. Existing files only with `replace`. Returns 0 or -errno, after saying why. */
int output_begin(struct output *o, const char *path, bool replace);
/* To a new file: `path`, which ends in .tacho, or with a number where that is taken. */
int output_begin_unique(struct output *o, const char *path);
/* To a new file tacho-COMM-PID-TIME.tacho in `folder`. */
int output_begin_in(struct output *o, const char *folder, const struct tacho_process *process);
/* The file is complete: to the disk and under its name. 0 or -errno, after saying why. */
int output_commit(struct output *o);
void output_abandon(struct output *o);

#endif
