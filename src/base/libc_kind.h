/*
 * Which C library a program was built for: the file name of its dynamic linker tells. A program
 * gets the recording library that was built for the same one.
 */
#ifndef TACHO_BASE_LIBC_KIND_H
#define TACHO_BASE_LIBC_KIND_H

#include <string.h>

enum tacho__libc_kind {
	TACHO__GLIBC,
	TACHO__MUSL,
	TACHO__LIBC_KINDS,
	TACHO__LIBC_OTHER = TACHO__LIBC_KINDS, /* no library of ours is built for it */
};

/* Files of the recording libraries. They lie in the same folder. */
#define TACHO__PRELOAD_FILE(kind) \
	((kind) == TACHO__MUSL ? "libtacho-preload-musl.so" : "libtacho-preload.so")

#if defined(__x86_64__)
#define TACHO__LINKER_GLIBC "/lib64/ld-linux-x86-64.so.2"
#define TACHO__LINKER_MUSL "/lib/ld-musl-x86_64.so.1"
#else
#define TACHO__LINKER_GLIBC "/lib/ld-linux-aarch64.so.1"
#define TACHO__LINKER_MUSL "/lib/ld-musl-aarch64.so.1"
#endif

static inline const char *tacho__last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Of a dynamic linker for this architecture, by its path: distributions differ in the folder. */
static inline enum tacho__libc_kind tacho__libc_of_linker(const char *path)
{
	const char *name = tacho__last_part(path);

	if (!strcmp(name, tacho__last_part(TACHO__LINKER_GLIBC)))
		return TACHO__GLIBC;
	if (!strcmp(name, tacho__last_part(TACHO__LINKER_MUSL)))
		return TACHO__MUSL;
	return TACHO__LIBC_OTHER;
}

#endif
