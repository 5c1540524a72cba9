#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#define TIMEOUT_S 10u
#define TIMEOUT_MAX_S 3600u
#define LIBRARY "libdebuginfod.so.1"

/* As <elfutils/debuginfod.h> declares them; the library is optional, and so is its header. */
typedef struct debuginfod_client client;
typedef int progress_function(client *c, long a, long b);
typedef int find_function(client *c, const unsigned char *build_id, int size, char **path);

static struct {
	client *client; /* NULL: not allowed */
	find_function *find[2];
	void (*progress)(void *arg, uint64_t done, uint64_t total);
	void *progress_arg;
	uint64_t timeout_ns, began_ns, spent_ns;
	int gave_up; /* no answer, or not all of it in time */
} all;

static uint64_t timeout_ns(void)
{
	const char *text = getenv("DEBUGINFOD_TIMEOUT");
	char *end = NULL;
	unsigned long seconds = text ? strtoul(text, &end, 10) : 0;

	if (!text || end == text || *end || !seconds || seconds > TIMEOUT_MAX_S)
		seconds = TIMEOUT_S;
	return (uint64_t)seconds * 1000000000u;
}

/* Called about once a second and after each piece. Not 0: the library gives the file up. */
static int on_progress(client *c, long a, long b)
{
	(void)c;
	if (all.progress)
		all.progress(all.progress_arg, a > 0 ? (uint64_t)a : 0, b > 0 ? (uint64_t)b : 0);
	if (tacho__clock_ns(CLOCK_MONOTONIC) - all.began_ns < all.timeout_ns)
		return 0;
	all.gave_up = 1;
	return 1;
}

int tacho__debuginfod_allow(void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
			    char *message, size_t message_size)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	void (*set_progress)(client *, progress_function *);
	client *(*begin)(void);
	void *library;

	if (all.client)
		return 0;
	if (!urls || !urls[0]) {
		snprintf(
			message, message_size,
			"no debuginfod server can be asked: DEBUGINFOD_URLS does not name any; set "
			"it, for example to https://debuginfod.debian.net");
		return -EDESTADDRREQ;
	}
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(message, message_size,
			 "no debuginfod server can be asked: " LIBRARY
			 " is not on this host; install it (Debian: libdebuginfod1)");
		return -ENOENT;
	}
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&set_progress = dlsym(library, "debuginfod_set_progressfn");
	*(void **)&all.find[TACHO__DEBUGINFOD_EXECUTABLE] =
		dlsym(library, "debuginfod_find_executable");
	*(void **)&all.find[TACHO__DEBUGINFOD_DEBUG] = dlsym(library, "debuginfod_find_debuginfo");
	if (begin && set_progress && all.find[0] && all.find[1])
		all.client = begin();
	if (!all.client) {
		dlclose(library);
		snprintf(message, message_size,
			 "no debuginfod server can be asked: " LIBRARY
			 " does not work as it should");
		return -ENOENT;
	}
	all.timeout_ns = timeout_ns();
	all.progress = progress;
	all.progress_arg = arg;
	set_progress(all.client, on_progress);
	return 0;
}

int tacho__debuginfod_find(enum tacho__debuginfod_file what, const uint8_t *build_id, size_t size)
{
	int fd;

	if (!all.client)
		return -EPERM;
	if (all.gave_up)
		return -ETIMEDOUT;
	if (!size || size > INT_MAX)
		return -EINVAL;
	all.began_ns = tacho__clock_ns(CLOCK_MONOTONIC);
	fd = all.find[what](all.client, build_id, (int)size, NULL);
	all.spent_ns += tacho__clock_ns(CLOCK_MONOTONIC) - all.began_ns;
	if (all.progress)
		all.progress(all.progress_arg, UINT64_MAX, 0);
	/* Where nobody answers now, nobody will for the next file. */
	if (fd == -ETIME || fd == -ETIMEDOUT || fd == -ECONNREFUSED || fd == -EHOSTUNREACH)
		all.gave_up = 1;
	return fd;
}

int tacho__debuginfod_is_allowed(void)
{
	return all.client != NULL;
}

uint64_t tacho__debuginfod_spent_ns(void)
{
	return all.spent_ns;
}
