/*
 * Calls that make descriptors and never wait, or end some where close is not called: how many are open is
 * counted by the place that makes them (alive.h). Those that may wait, as open and accept, are in
 * calls_files.c, calls_sockets.c and calls_streams.c; eventfd is in
 * eventfds.c.
 *
 * Not here: what closes many at once (close_range, closefrom). A program does that when it begins, or in
 * a child on its way to another program, which may share the memory of its parent. Numbers that are free
 * again come again.
 */
#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hooks/calls.h"

#define MAKES(name, params, args)                                            \
	TACHO__HOOKED(int, name, params)                                     \
	{                                                                    \
		int result = TACHO__NEXT(name) args;                         \
                                                                             \
		tacho__descriptor_made(result, __builtin_return_address(0)); \
		return result;                                               \
	}

MAKES(socket, (int domain, int type, int protocol), (domain, type, protocol))
MAKES(dup, (int fd), (fd))
MAKES(epoll_create, (int size), (size))
MAKES(epoll_create1, (int flags), (flags))
MAKES(timerfd_create, (int clock, int flags), (clock, flags))
MAKES(inotify_init, (void), ())
MAKES(inotify_init1, (int flags), (flags))
MAKES(memfd_create, (const char *name, unsigned flags), (name, flags))
MAKES(mkstemp, (char *path), (path))
TACHO__LARGE(MAKES(mkstemp64, (char *path), (path)))
MAKES(mkostemp, (char *path, int flags), (path, flags))
TACHO__LARGE(MAKES(mkostemp64, (char *path, int flags), (path, flags)))

#define MAKES_TWO(name, params, args)                                                \
	TACHO__HOOKED(int, name, params)                                             \
	{                                                                            \
		int result = TACHO__NEXT(name) args;                                 \
                                                                                     \
		for (int i = 0; result == 0 && i < 2; i++)                           \
			tacho__descriptor_made(two[i], __builtin_return_address(0)); \
		return result;                                                       \
	}

MAKES_TWO(pipe, (int two[2]), (two))
MAKES_TWO(pipe2, (int two[2], int flags), (two, flags))
MAKES_TWO(socketpair, (int domain, int type, int protocol, int two[2]),
	  (domain, type, protocol, two))

/* The program has chosen the number, and counts by it what it has. */
#define BECOMES(name, params, args)                   \
	TACHO__HOOKED(int, name, params)              \
	{                                             \
		int result = TACHO__NEXT(name) args;  \
                                                      \
		if (result >= 0 && from != to)        \
			tacho__descriptor_closed(to); \
		return result;                        \
	}
BECOMES(dup2, (int from, int to), (from, to))
BECOMES(dup3, (int from, int to, int flags), (from, to, flags))

TACHO__HOOKED(int, closedir, (DIR * folder))
{
	if (folder)
		tacho__descriptor_closed(dirfd(folder));
	return TACHO__NEXT(closedir)(folder);
}
