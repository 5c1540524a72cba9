/* What /proc says of another process. */
#ifndef TACHO_BASE_PROCESS_H
#define TACHO_BASE_PROCESS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/sys.h"

/* The user ids of a process: real, effective, saved, of files. Whether they can be told; who owns its
   folder in /proc says less: root, where the process may not be traced. */
static inline int tacho__process_uids(uint32_t pid, uint32_t ids[4])
{
	char path[32], text[1024];
	const char *at = NULL;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	if (tacho__read_small(path, text, sizeof(text)) > 0)
		at = strstr(text, "\nUid:");
	return at && sscanf(at + 5, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &ids[0],
			    &ids[1], &ids[2], &ids[3]) == 4;
}

/* Whether one of them is that: 1, 0; -1: cannot be told. */
static inline int tacho__process_has_uid(uint32_t pid, uint32_t uid)
{
	uint32_t ids[4];

	if (!tacho__process_uids(pid, ids))
		return -1;
	return uid == ids[0] || uid == ids[1] || uid == ids[2] || uid == ids[3];
}

/* Whether a box that belongs to `owner` may be that of a process: it is that user's, or root says
   so. A process that is gone may have been anybody's. */
static inline int tacho__process_may_own(uint32_t pid, uint32_t owner)
{
	return owner == 0 || tacho__process_has_uid(pid, owner) != 0;
}

#endif
