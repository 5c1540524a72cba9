/*
 * How a process that is followed ends: its status, and whether memory had run out.
 */
#ifndef TACHO_AGENT_END_H
#define TACHO_AGENT_END_H

#include <stdbool.h>
#include <stdint.h>

#include "write/trace_write.h"

/* How often the out-of-memory killer has struck; both may be unknown (UINT64_MAX). */
struct tacho__kills {
	char *cgroup;	       /* file that counts them for the cgroup of the process; NULL: none */
	uint64_t in_cgroup;    /* of processes in it */
	uint64_t on_host;      /* of all */
	uint64_t looked_at_ns; /* when these were read, CLOCK_MONOTONIC */
};

/* While the process lives; again later, so that kills of long ago are not taken for its end. */
void tacho__kills_look(struct tacho__kills *k, uint32_t pid);
/* Whether there were more since. */
bool tacho__kills_rose(const struct tacho__kills *k);
void tacho__kills_free(struct tacho__kills *k);

/*
 * Wait status of a process that has ended and is somebody else's child: from /proc as long as its
 * parent has not asked for it, then from `pidfd` (Linux 6.15 and later). False: not known.
 */
bool tacho__end_status(uint32_t pid, uint64_t start_time, int pidfd, int *status);

/* Of a process that ended at `ns` with this wait status. */
struct tacho__trace_end tacho__end_of(int status, uint64_t ns, const struct tacho__kills *k);

/*
 * What its box tells of it, which is read once the process is gone: a host that went down since;
 * when it crashed, as a parent hears of that only when the core is written.
 */
struct tacho_process;
void tacho__end_settle(struct tacho__trace_end *end, const struct tacho_process *box);

#endif
