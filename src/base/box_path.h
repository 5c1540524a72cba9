/* Where the folders of boxes are that any user can make, and another user before them. */
#ifndef TACHO_BASE_BOX_PATH_H
#define TACHO_BASE_BOX_PATH_H

#include <stddef.h>
#include <string.h>

#define TACHO__RUN_USER "/run/user/"

static inline size_t tacho__digits(const char *text)
{
	return strspn(text, "0123456789");
}

/*
 * How much of `path` is the folder in which a user's folder of boxes lies, with the slash at its end, if it
 * is that or in that; else 0. It is a folder that all users share, or the user's own of this session. Whoever
 * may make a folder there can also mount a file system on it.
 */
static inline size_t tacho__box_parent(const char *path)
{
	static const char *const all[] = {"/dev/shm/", "/tmp/"};
	const size_t run = sizeof(TACHO__RUN_USER) - 1;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		size_t n = strlen(all[i]);

		if (!strncmp(path, all[i], n) && !strncmp(path + n, "tacho-", 6) &&
		    tacho__digits(path + n + 6))
			return n;
	}
	if (!strncmp(path, TACHO__RUN_USER, run)) {
		size_t n = run + tacho__digits(path + run);

		if (n > run && !strncmp(path + n, "/tacho", 6) &&
		    (!path[n + 6] || path[n + 6] == '/'))
			return n + 1;
	}
	return 0;
}

#endif
