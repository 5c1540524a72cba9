/*
 * The limits on the memory of this process: those of its memory cgroup and of every cgroup
 * around it that can be seen, and the memory of the machine. Files are read by direct system
 * calls and nothing is allocated, because this runs inside the recorded process.
 */
#ifndef TACHO_CORE_MEMORY_LIMITS_H
#define TACHO_CORE_MEMORY_LIMITS_H

#include <stdint.h>

#define TACHO__MEMORY_LIMITS 8u
#define TACHO__MEMORY_OF_MACHINE UINT64_MAX /* in place of the inode of a cgroup */

struct tacho__memory_limit {
	uint64_t id;   /* inode of the cgroup's folder; the same for every process in it */
	uint64_t size; /* bytes */
	uint64_t left; /* bytes until the limit; page cache of files counts as free */
};

/* The innermost first. A list that is too long lacks the outermost ones. */
struct tacho__memory_limits {
	uint32_t count;
	struct tacho__memory_limit limit[TACHO__MEMORY_LIMITS];
};

/* Room to work in, which a signal handler's stack does not have. */
struct tacho__memory_work {
	char list[2048];
	char path[1024];
	char stat[4096];
};

void tacho__memory_limits(struct tacho__memory_work *work, struct tacho__memory_limits *out);

/* Adds the limits of the cgroups that work->list, a text such as /proc/self/cgroup, names. The
   cgroups are mounted below `mount`, such as /sys/fs/cgroup, where version 1 has its memory
   controller in a folder "memory". */
void tacho__memory_limits_of(struct tacho__memory_work *work, const char *mount,
			     struct tacho__memory_limits *out);

#endif
