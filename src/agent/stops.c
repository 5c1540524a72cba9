#include "agent/stops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"

#define NS_PER_MS UINT64_C(1000000)
#define LOOK_NS (20 * NS_PER_MS)
#define AWAKE_NS (1000 * NS_PER_MS)

/* ------------------------------------------------------------------- freezer */

/* A line of /proc/PID/cgroup: number, controllers, path. */
static bool find_freezer_of(struct tacho__stops *s, char *line)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return false;
	*path++ = 0;
	if (strcmp(controllers, ":freezer") == 0) {
		snprintf(s->freezer, sizeof(s->freezer), "%s/freezer%s/freezer.state", roots[0],
			 path);
		return access(s->freezer, R_OK) == 0;
	}
	for (unsigned i = 0; strcmp(controllers, ":") == 0 && i < 2; i++) {
		snprintf(s->freezer, sizeof(s->freezer), "%s%s/cgroup.events", roots[i], path);
		if (access(s->freezer, R_OK) == 0)
			return true;
	}
	return false;
}

/* The root has none: nothing freezes it. */
static void find_freezer(struct tacho__stops *s)
{
	char name[32], text[4096], *rest = text, *line;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", s->pid);
	tacho__read_small(name, text, sizeof(text));
	while ((line = strsep(&rest, "\n")))
		if (find_freezer_of(s, line))
			return;
	s->freezer[0] = 0;
}

static bool is_frozen(const struct tacho__stops *s)
{
	char text[256];

	return s->freezer[0] && tacho__read_small(s->freezer, text, sizeof(text)) > 0 &&
	       (strncmp(text, "FROZEN", 6) == 0 || strstr(text, "frozen 1"));
}

/* --------------------------------------------------------------------- looks */

/* Of its first thread: that of the process sums up all threads before it says so. */
static enum tacho__stop_how look(const struct tacho__stops *s)
{
	char path[64], text[512];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", s->pid, s->pid);
	tacho__read_small(path, text, sizeof(text));
	/* The name in brackets may hold anything. */
	at = strrchr(text, ')');
	if (at && strncmp(at, ") T", 3) == 0)
		return TACHO__STOP_SIGNAL;
	if (at && strncmp(at, ") t", 3) == 0)
		return TACHO__STOP_TRACED;
	return is_frozen(s) ? TACHO__STOP_FROZEN : TACHO__STOP_NONE;
}

static bool is_over(struct tacho__stops *s, uint64_t now, struct tacho__stop *over)
{
	*over = s->now;
	over->until_ns = now;
	s->now.how = TACHO__STOP_NONE;
	return over->until_ns > over->from_ns;
}

void tacho__stops_begin(struct tacho__stops *s, uint32_t pid, bool is_told, uint64_t now)
{
	*s = (struct tacho__stops){.pid = pid, .is_told = is_told};
	tacho__stops_poked(s, now);
}

void tacho__stops_poked(struct tacho__stops *s, uint64_t now)
{
	if (s->is_told) {
		s->look_ns = UINT64_MAX;
		return;
	}
	if (s->look_ns == UINT64_MAX || !s->look_ns) {
		s->look_ns = now;
		s->ran_ns = now;
		find_freezer(s);
	}
	s->awake_ns = now + AWAKE_NS;
}

bool tacho__stops_look(struct tacho__stops *s, uint64_t now, bool *idle, struct tacho__stop *over)
{
	enum tacho__stop_how how;
	bool result = false;

	*idle = false;
	if (now < s->look_ns)
		return false;
	how = look(s);
	if (how == TACHO__STOP_NONE) {
		if (s->now.how != TACHO__STOP_NONE)
			result = is_over(s, now, over);
		s->ran_ns = now;
	} else if (s->now.how == TACHO__STOP_NONE) {
		/* Somewhere in between. */
		s->now = (struct tacho__stop){how, s->ran_ns + (now - s->ran_ns) / 2, now, 0, now};
	} else {
		s->now.seen_ns = now;
	}
	*idle = how == TACHO__STOP_NONE && now >= s->awake_ns;
	s->look_ns = *idle ? UINT64_MAX : now + LOOK_NS;
	return result;
}

bool tacho__stops_told(struct tacho__stops *s, bool stopped, uint64_t now, struct tacho__stop *over)
{
	bool was = s->now.how != TACHO__STOP_NONE;

	if (stopped && !was)
		s->now = (struct tacho__stop){TACHO__STOP_SIGNAL, now, now, 0, now};
	if (stopped || !was)
		return false;
	s->ran_ns = now;
	return is_over(s, now, over);
}

bool tacho__stops_cut(struct tacho__stops *s, uint64_t now, struct tacho__stop *over)
{
	struct tacho__stop rest = {s->now.how, now, now, 0, now};
	bool result;

	if (s->now.how == TACHO__STOP_NONE)
		return false;
	s->now.seen_ns = now;
	result = is_over(s, now, over);
	s->now = rest;
	return result;
}
