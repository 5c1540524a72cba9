/*
 * Which recorder this program records with: the one that is compiled into it, or one that the
 * process has already.
 *
 * Under `tacho run` that is libtacho-preload, else it may be a libtacho.so that another part of the
 * program is linked with. Two recorders would be two boxes, and neither would tell the whole story. So
 * the calls go through a table, which is filled before main and never changes afterwards.
 */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "tacho.h"

/* The order is that of `Calls` in src/sys.rs: first what a poll and a wake need, in one line of the
   cache with `on`. */
#define CALLS(X)                 \
	X(tacho__poll_begin)     \
	X(tacho__poll_end)       \
	X(tacho__put1)           \
	X(tacho__park)           \
	X(tacho__unpark)         \
	X(tacho__put)            \
	X(tacho__span_begin)     \
	X(tacho_start)           \
	X(tacho_stop)            \
	X(tacho_pause)           \
	X(tacho_resume)          \
	X(tacho_status)          \
	X(tacho_task_new)        \
	X(tacho_trigger)         \
	X(tacho_snapshot)        \
	X(tacho_crash_handler)   \
	X(tacho_crash_stack)     \
	X(tacho_stacks_prepare)  \
	X(tacho_modules_changed) \
	X(tacho_version)         \
	X(tacho__define)         \
	X(tacho__define_schema)  \
	X(tacho__loop)           \
	X(tacho__poll_switch)    \
	X(tacho__poll_end_park)  \
	X(tacho__unpark_poll)    \
	X(tacho__span_end)       \
	X(tacho__put2)           \
	X(tacho__log)            \
	X(tacho__stack)          \
	X(tacho__stack_of)       \
	X(tacho__event_string)   \
	X(tacho__event_put)

#define MEMBER(name) __typeof__(&name) at_##name;
#define OWN(name) name,
#define LOOK_UP(name)                                                                   \
	theirs.at_##name = __extension__(__typeof__(&name)) dlsym(RTLD_DEFAULT, #name); \
	if (!theirs.at_##name)                                                          \
		return 0;

struct calls {
	int *on;
	CALLS(MEMBER)
};
extern struct calls tachors_calls;
_Alignas(64) struct calls tachors_calls = {&tacho__on, CALLS(OWN)};

/* The first two numbers: until 1.0 they say what fits together. */
static int is_same_version(const char *theirs)
{
	const char *ours = TACHO_VERSION;
	int dots = 0;

	for (; *ours && *ours == *theirs; ours++, theirs++)
		if (*ours == '.' && ++dots == 2)
			return 1;
	return 0;
}

/* 1 when the process has a recorder that fits. This crate's own is not found: its names have another
   ending (build.rs). */
static int join(void)
{
	struct calls theirs;

	theirs.on = dlsym(RTLD_DEFAULT, "tacho__on");
	if (!theirs.on)
		return 0;
	CALLS(LOOK_UP)
	if (!is_same_version(theirs.at_tacho_version()))
		return 0;
	tachors_calls = theirs;
	return 1;
}

/* A library that has this recorder in it is never unloaded: threads may be storing, and tell it when
   they end. */
static void stay(void)
{
	struct link_map *map;
	Dl_info info;

	/* The program itself has no name. */
	if (dladdr1(&tachors_calls, &info, (void **)&map, RTLD_DL_LINKMAP) && map->l_name[0])
		dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

/* Before main; of a library that is loaded later, then. */
__attribute__((constructor)) static void begin(void)
{
	if (!join())
		stay();
}
