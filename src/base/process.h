/* What /proc says of another process. The texts are large enough: before what is looked for in them stands
   nothing that a process chooses but its name. */
#ifndef TACHO_BASE_PROCESS_H
#define TACHO_BASE_PROCESS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/rights.h"
#include "base/sys.h"

#define TACHO__STATUS_MAX 4096u

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

/* Whether they are in the same user namespace as we are: elsewhere capabilities count for nothing here. */
static inline int tacho__process_is_in_our_space(uint32_t pid)
{
	struct stat ours, theirs;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/user", pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
	       theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev;
}

/* Whether it is one of its groups. */
static inline int tacho__status_has_group(const char *status, const uint32_t ids[4], uint32_t gid)
{
	const char *at = strstr(status, "\nGroups:");
	uint32_t one;
	int n;

	if (gid == ids[0] || gid == ids[1] || gid == ids[2] || gid == ids[3])
		return 1;
	for (at = at ? at + 8 : ""; sscanf(at, "%*[ \t]%" SCNu32 "%n", &one, &n) == 1; at += n)
		if (one == gid)
			return 1;
	return 0;
}

/* Takes from `r` what the process has not got. What cannot be told changes nothing. */
static inline void tacho__process_lower(uint32_t pid, struct tacho__rights *r)
{
	struct tacho__rights its = {0, 0, 0};
	uint32_t uids[4], gids[4];
	char path[32], text[TACHO__STATUS_MAX];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	if (!tacho__process_uids(pid, uids) || tacho__read_small(path, text, sizeof(text)) <= 0)
		return;
	at = strstr(text, "\nGid:");
	if (!at || sscanf(at + 5, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &gids[0],
			  &gids[1], &gids[2], &gids[3]) != 4)
		return;
	/* The effective one comes first, then whichever is not root's. */
	for (int i = 0; i < 4 && !its.uid; i++)
		its.uid = uids[(i + 1) % 4];
	its.gid = gids[1];
	at = strstr(text, "\nCapPrm:");
	if (at && tacho__process_is_in_our_space(pid))
		(void)sscanf(at + 8, "%" SCNx64, &its.capabilities);
	if (r->uid != 0 && !tacho__status_has_group(text, gids, r->gid))
		r->gid = its.gid;
	tacho__rights_lower(r, &its);
}

/* When it started, in the kernel's ticks since boot: with its number it is one process for good. 0:
   cannot be told. */
static inline uint64_t tacho__process_start_time(uint32_t pid)
{
	char path[32], text[1024];
	const char *at = NULL;
	uint64_t ticks = 0;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	/* The name in parentheses may hold anything. */
	if (tacho__read_small(path, text, sizeof(text)) > 0)
		at = strrchr(text, ')');
	for (int field = 3; at && field <= 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at && sscanf(at, "%" SCNu64, &ticks) == 1 ? ticks : 0;
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
