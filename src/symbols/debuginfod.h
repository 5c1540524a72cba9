/*
 * Debug files from debuginfod servers, for those who ask for it: the network is used only after
 * tacho__debuginfod_allow. Which servers, $DEBUGINFOD_URLS says, as for other tools.
 *
 * Whether it may be used is decided once for the whole process, as the variable is.
 */
#ifndef TACHO_SYMBOLS_DEBUGINFOD_H
#define TACHO_SYMBOLS_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

/*
 * 0, or a negative errno and one sentence: no servers are named (-EDESTADDRREQ), the library
 * is not on this host (-ENOENT). `progress` may be NULL; its total is 0
 * while it is not known, and done is UINT64_MAX when a file is there, or was given up.
 */
int tacho__debuginfod_allow(void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
			    char *message, size_t message_size);

enum tacho__debuginfod_file {
	TACHO__DEBUGINFOD_EXECUTABLE,
	TACHO__DEBUGINFOD_DEBUG,
};

/*
 * A descriptor of the file of that build-id, from the cache or a server; or a negative errno,
 * -EPERM when nobody allowed it. Takes at most $DEBUGINFOD_TIMEOUT seconds, else ten. When nobody
 * answered, or that was not enough, no server is asked again.
 */
int tacho__debuginfod_find(enum tacho__debuginfod_file what, const uint8_t *build_id, size_t size);

/* Whether somebody has allowed it. */
int tacho__debuginfod_is_allowed(void);

/* Time that has been spent waiting for servers. */
uint64_t tacho__debuginfod_spent_ns(void);

#endif
