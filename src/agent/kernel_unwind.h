/*
 * The stack of a thread of another process, from its registers and a copy of its stack's end.
 *
 * The tables that describe frames are those of the files that the process has mapped. The
 * process itself is not touched.
 */
#ifndef TACHO_AGENT_KERNEL_UNWIND_H
#define TACHO_AGENT_KERNEL_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/perf_record.h"

struct tacho__unwinder;

#if defined(TACHO_HAVE_LIBDW)

/* NULL: out of memory. */
struct tacho__unwinder *tacho__unwinder_new(uint32_t pid);
/* Program counters, innermost first, at most `most`; how many. *more: there were more. */
uint32_t tacho__unwinder_frames(struct tacho__unwinder *u, const struct tacho__perf_record *sample,
				uint64_t *frames, uint32_t most, bool *more);
void tacho__unwinder_free(struct tacho__unwinder *u);

#else

static inline struct tacho__unwinder *tacho__unwinder_new(uint32_t pid)
{
	(void)pid;
	return NULL;
}

static inline uint32_t tacho__unwinder_frames(struct tacho__unwinder *u,
					      const struct tacho__perf_record *sample,
					      uint64_t *frames, uint32_t most, bool *more)
{
	(void)u;
	(void)sample;
	(void)frames;
	(void)most;
	(void)more;
	return 0;
}

static inline void tacho__unwinder_free(struct tacho__unwinder *u)
{
	(void)u;
}

#endif
#endif
