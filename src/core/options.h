/* Options of tacho_start, with the environment applied. */
#ifndef TACHO_CORE_OPTIONS_H
#define TACHO_CORE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "format/box.h"
#include "tacho.h"

#define TACHO__PATH_MAX 200u

struct tacho__options {
	uint64_t max_bytes;
	uint32_t size_given; /* 1: somebody has asked for max_bytes */
	uint64_t min_age_ns;
	uint64_t poll_threshold_ns;
	uint64_t call_threshold_ns; /* hooks: shorter blocking calls are not recorded */
	uint64_t slow_poll_ns;	    /* hooks: what scheduling did to longer polls is recorded */
	uint32_t clock;
	uint32_t keep_box;
	uint32_t no_crash;  /* hooks: crashes are not noted */
	uint32_t no_redact; /* credentials among the arguments are not replaced */
	uint32_t dead_boxes;
	uint32_t memory_share; /* percent of a memory limit that all boxes take at most */
	uint64_t recording;
	uint64_t limit[TACHO_SENTINEL_COUNT]; /* sentinels of `tacho run`; 0: off */
	char box_dir[TACHO__PATH_MAX];	      /* "": the default places */
	char runtime_dir[TACHO__PATH_MAX];    /* $XDG_RUNTIME_DIR or "" */
	char service[64];
	char crash_file[TACHO__PATH_MAX];
};

/*
 * Takes `given` (may be NULL) and the environment together. 0, or a negative errno
 * with a sentence in `reason`; *out is then filled as far as it was understood.
 */
int tacho__options_read(const struct tacho_options *given, struct tacho__options *out, char *reason,
			size_t reason_size);

#endif
