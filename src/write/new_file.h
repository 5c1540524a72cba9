/*
 * A new file that gets its name only when it is complete: the bytes go to a temporary name in the
 * same folder and reach the disk, then the file is renamed.
 */
#ifndef TACHO_WRITE_NEW_FILE_H
#define TACHO_WRITE_NEW_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "text/text.h"

struct tacho_process;

struct tacho__new_file {
	int fd;
	int folder;
	char path[PATH_MAX]; /* as a person reads it */
	char name[NAME_MAX + 1];
	char temporary[NAME_MAX + 1];
	bool replace;  /* what has the name already; else it is kept as NAME.old */
	bool kept_old; /* that was done */
	bool unique;   /* a name that is taken gets a number */
	/* `temporary` in `folder` may be there: for a signal handler that removes it. */
	volatile sig_atomic_t pending;
	char message[TEXT_SENTENCE]; /* the sentence behind a negative return value */
};

/* To `path`. A file that has the name gets NAME.old when this one is complete, and what was
   called so is gone; with `replace` it is gone itself. This and the next: 0 or a negative errno, and then
   nothing is left to end. */
int tacho__new_file_begin(struct tacho__new_file *f, const char *path, bool replace);
/* To a new file: `path`, which ends in .tacho, or with a number where that is taken. */
int tacho__new_file_begin_unique(struct tacho__new_file *f, const char *path);
/* To a new file tacho-COMM-PID-TIME.tacho in `folder`. */
int tacho__new_file_begin_in(struct tacho__new_file *f, const char *folder,
			     const struct tacho_process *process);
/* The file is complete: to the disk and under its name. 0 or a negative errno. */
int tacho__new_file_commit(struct tacho__new_file *f);
void tacho__new_file_abandon(struct tacho__new_file *f);

/* What a process or service is called, as a part of a name of a file: it chooses its name, and must
   not choose the folder. */
void tacho__plain_name(char *out, size_t size, const char *name);

#endif
