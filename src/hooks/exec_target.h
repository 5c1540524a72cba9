/*
 * A program that is about to be started: which C library it will run on.
 *
 * The file is found and read as the kernel and execvp(3) do it. This runs in children of vfork and of
 * programs with threads: nothing is allocated or locked, and only the stack is written to.
 */
#ifndef TACHO_HOOKS_EXEC_TARGET_H
#define TACHO_HOOKS_EXEC_TARGET_H

#include "base/libc_kind.h"

struct tacho__exec_target {
	int fd; /* of the program, or the folder that `path` starts from */
	const char *path;
	int search; /* 1: in the folders of PATH */
};

#define TACHO__LIBC_UNKNOWN (-1) /* the file cannot be read, or is not there */

/* An enum tacho__libc_kind, or TACHO__LIBC_UNKNOWN. A static program loads nothing itself. It counts
   as one of the C library that this file system has, for the programs that it starts. */
int tacho__exec_libc(const struct tacho__exec_target *target);

#endif
