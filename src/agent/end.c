#define _GNU_SOURCE 1 /* memmem */
#include "agent/end.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tacho_read.h"

/* Of <linux/pidfd.h>, which is younger than what we build with: its first version, in which
   exit_code was spare. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
#define PIDFD_GET_INFO _IOWR(0xFF, 11, struct pidfd_info)
#define PIDFD_INFO_EXIT UINT64_C(8)

#define STAT_START 22	  /* number of the field in /proc/PID/stat */
#define STAT_EXIT_CODE 52 /* 0 for those who may not know */

/* ------------------------------------------------------------------- status */

/* Only while it is a zombie, which keeps its number from others. */
static bool status_of_zombie(uint32_t pid, uint64_t start_time, int *status)
{
	char path[32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	/* The name in parentheses may hold anything. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] != 'Z')
		return false;
	at += 2;
	for (int field = 3; field < STAT_EXIT_CODE; field++) {
		if (field == STAT_START && strtoull(at, NULL, 10) != start_time)
			return false;
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
	}
	*status = (int)strtol(at, NULL, 10);
	/* 0 may also mean that it is kept from us: who may read this may ask for that. */
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/io", pid);
	return *status != 0 || access(path, R_OK) == 0;
}

bool tacho__end_status(uint32_t pid, uint64_t start_time, int pidfd, int *status)
{
	struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};

	if (status_of_zombie(pid, start_time, status))
		return true;
	if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_INFO, &info) < 0 || !(info.mask & PIDFD_INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

struct tacho__trace_end tacho__end_of(int status, uint64_t ns, const struct tacho__kills *k)
{
	struct tacho__trace_end end = {.ns = ns};

	if (WIFSIGNALED(status)) {
		end.how = TACHO_END_KILLED;
		end.status = (uint32_t)WTERMSIG(status);
		end.flags = WCOREDUMP(status) ? TACHO_END_CORE : 0;
		if (end.status == SIGKILL && tacho__kills_rose(k))
			end.flags |= TACHO_END_NO_MEMORY;
	} else {
		end.how = TACHO_END_EXITED;
		end.status = (uint32_t)WEXITSTATUS(status);
	}
	return end;
}

void tacho__end_settle(struct tacho__trace_end *end, const struct tacho_process *box)
{
	if (end->how != box->end_how)
		return;
	if (end->how == TACHO_END_GONE)
		end->flags |= box->end_flags;
	else if (end->how == TACHO_END_KILLED && end->status == box->end_status && box->end_ns)
		end->ns = box->end_ns;
}

/* ------------------------------------------------------------ out of memory */

/* The number behind `oom_kill` in a file of lines of that form. */
static uint64_t read_kills(const char *path)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	uint64_t count = UINT64_MAX;
	char line[256];

	while (file && count == UINT64_MAX && fgets(line, sizeof(line), file))
		if (sscanf(line, "oom_kill %" SCNu64, &count) != 1)
			count = UINT64_MAX;
	if (file)
		fclose(file);
	return count;
}

/* Whether the list of controllers, between commas, has that of memory. */
static bool has_memory(const char *list, size_t size)
{
	return (size == 6 && strncmp(list, "memory", 6) == 0) ||
	       (size > 7 && (strncmp(list, "memory,", 7) == 0 ||
			     strncmp(list + size - 7, ",memory", 7) == 0)) ||
	       memmem(list, size, ",memory,", 8);
}

/* Version 1 has a hierarchy for memory, version 2 one for all, where it is usually mounted or
   beside those of version 1. A line of the file is "ID:CONTROLLERS:PATH". */
static char *find_cgroup(uint32_t pid)
{
	static const char *const unified[] = {"/sys/fs/cgroup%s/memory.events",
					      "/sys/fs/cgroup/unified%s/memory.events"};
	char line[PATH_MAX + 64], path[PATH_MAX + 128];
	char *found = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup", pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		char *list = strchr(line, ':'), *at = list ? strchr(list + 1, ':') : NULL;
		bool first = at && has_memory(list + 1, (size_t)(at - list - 1));

		if (!at || (!first && at != list + 1))
			continue;
		line[strcspn(line, "\n")] = 0;
		for (unsigned i = 0; !found && i < (first ? 1 : 2); i++) {
			snprintf(path, sizeof(path),
				 first ? "/sys/fs/cgroup/memory%s/memory.oom_control" : unified[i],
				 at + 1);
			if (read_kills(path) != UINT64_MAX)
				found = strdup(path);
		}
	}
	if (file)
		fclose(file);
	return found;
}

void tacho__kills_look(struct tacho__kills *k, uint32_t pid)
{
	if (!k->looked_at_ns)
		k->cgroup = find_cgroup(pid);
	k->looked_at_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	k->in_cgroup = read_kills(k->cgroup);
	k->on_host = read_kills("/proc/vmstat");
}

static bool rose(uint64_t before, uint64_t now)
{
	return before != UINT64_MAX && now != UINT64_MAX && now > before;
}

bool tacho__kills_rose(const struct tacho__kills *k)
{
	uint64_t now;

	if (!k->looked_at_ns)
		return false;
	/* Empty cgroups may be gone by now. */
	now = read_kills(k->cgroup);
	if (now != UINT64_MAX && k->in_cgroup != UINT64_MAX)
		return now > k->in_cgroup;
	return rose(k->on_host, read_kills("/proc/vmstat"));
}

void tacho__kills_free(struct tacho__kills *k)
{
	free(k->cgroup);
	*k = (struct tacho__kills){0};
}
