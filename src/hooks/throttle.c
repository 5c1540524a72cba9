/*
 * For how long a CPU quota stopped this process: the counter "cgroup throttled", in microseconds,
 * from cpu.stat of its cgroup (version 1 or 2).
 *
 * It is read when the process begins to run a loop, and at the end of each slow poll or wait that
 * came back late, which is when a quota matters; a value that has not changed is not recorded. Where there is no such
 * file, or no quota is kept count of, nothing is read again.
 */
#include <string.h>

#include "base/sys.h"
#include "base/text.h"
#include "core/control.h"
#include "core/define.h"
#include "core/record.h"
#include "hooks/hooks.h"

#define FOLDER "/sys/fs/cgroup"

enum { UNKNOWN, BEING_LOOKED_FOR, KNOWN, NONE };

static uint32_t state; /* of path */
static char path[256];
static uint64_t recorded = UINT64_MAX; /* the last value; UINT64_MAX: none yet */

static uint64_t number_at(const char *p)
{
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

/* 0, or -1: the file does not say it. */
static int read_throttled(const char *name, uint64_t *us)
{
	char text[512]; /* the stack of the thread may be small; the file has 300 bytes */
	const char *found;

	if (tacho__read_small(name, text, sizeof(text)) <= 0)
		return -1;
	found = strstr(text, "throttled_usec ");
	if (found) {
		*us = number_at(found + 15);
		return 0;
	}
	found = strstr(text, "throttled_time ");
	if (!found)
		return -1;
	*us = number_at(found + 15) / 1000;
	return 0;
}

/* Tries FOLDER/controller/group/cpu.stat, which stays in path if that is it. */
static int try_path(const char *controller, const char *group, size_t size)
{
	struct tacho__text t;
	uint64_t us;

	tacho__text_init(&t, path, sizeof(path));
	tacho__text_put(&t, FOLDER);
	tacho__text_put(&t, controller);
	tacho__text_put_n(&t, group, size);
	tacho__text_put(&t, "/cpu.stat");
	return !t.cut && !read_throttled(path, &us);
}

/* Lines such as "4:cpu,cpuacct:/system.slice/x.service" and "0::/x". */
static int find_path(void)
{
	static char text[2048]; /* of the one thread that looks for it */
	const char *line = text;

	if (tacho__read_small("/proc/self/cgroup", text, sizeof(text)) <= 0)
		return 0;
	while (*line) {
		const char *end = strchrnul(line, '\n');
		const char *names = strchr(line, ':'),
			   *group = names ? strchr(names + 1, ':') : NULL;
		size_t size;

		if (group && group < end) {
			size = (size_t)(end - group - 1);
			/* The root's name is "/", which would double the slash. */
			if (size == 1)
				size = 0;
			if (!strncmp(names, "::", 2) && try_path("", group + 1, size))
				return 1;
			if ((!strncmp(names, ":cpu,", 5) &&
			     try_path("/cpu,cpuacct", group + 1, size)) ||
			    (!strncmp(names, ":cpu:", 5) && try_path("/cpu", group + 1, size)))
				return 1;
		}
		line = *end ? end + 1 : end;
	}
	/* In a container whose cgroup is mounted as the root. */
	return try_path("", "", 0) || try_path("/cpu", "", 0);
}

void tacho__throttle_read(void)
{
	uint32_t unknown = UNKNOWN, id;
	uint64_t us;

	if (tacho__load(&state) == NONE || !tacho__recorder_ready())
		return;
	if (__atomic_compare_exchange_n(&state, &unknown, BEING_LOOKED_FOR, 0, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		__atomic_store_n(&state, find_path() ? KNOWN : NONE, __ATOMIC_RELEASE);
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != KNOWN || read_throttled(path, &us) ||
	    __atomic_exchange_n(&recorded, us, __ATOMIC_RELAXED) == us)
		return;
	id = tacho__define_name(TACHO_DEF_COUNTER, "cgroup throttled", NULL, 0, 0, 1, "us");
	tacho__put1(TACHO_REC_COUNTER, id, us);
}
