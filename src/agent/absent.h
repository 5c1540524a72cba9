/*
 * Processes of `tacho run` that are not recorded, and why.
 *
 * What the command started are descendants of this process, as it inherits those that are left
 * behind. They are looked at when boxes are made and children end, and now and then: less often
 * the longer nothing was new. One that lives shorter than a moment is not seen.
 */
#ifndef TACHO_AGENT_ABSENT_H
#define TACHO_AGENT_ABSENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "format/trace.h"

struct tacho__absent_process; /* that runs */

struct tacho__absent {
	const char *preload; /* file name of the library that records; NULL: nobody looks, and
				there are only those whose recorder left a note */
	const char *exclude; /* names that are not recorded; NULL: none */
	struct tacho__absent_process *running;
	size_t running_count;
	struct tacho_trace_absent *list; /* those that were not recorded */
	uint32_t count;
	uint32_t most;	 /* the last ones are in the list; 0: the first */
	uint64_t due_ns; /* when they are looked at next, CLOCK_MONOTONIC */
	uint64_t last_ns, interval_ns;
};

/* When it is due. `ours`: a child of this process that is not the command's; 0: none. */
void tacho__absent_look(struct tacho__absent *a, pid_t ours);
/* Something happened to processes: it is due soon. */
void tacho__absent_news(struct tacho__absent *a);
/* A process is about to start another that will not be recorded: it is due in a moment. */
void tacho__absent_started(struct tacho__absent *a);
/* The process has a box. */
void tacho__absent_boxed(struct tacho__absent *a, uint32_t pid);
/* Its recorder left a note instead. */
void tacho__absent_refused(struct tacho__absent *a, const struct tacho_box_super *note);
/* The last look: those that run on without a box are remembered. */
void tacho__absent_end(struct tacho__absent *a, pid_t ours);
/* "squid (17), pinger (18): rights ...; busybox (19): linked statically": those that could not be
   recorded, but for `known`. Returns out; "" for none. */
const char *tacho__absent_names(const struct tacho__absent *a, uint32_t known, char *out,
				size_t size);
void tacho__absent_free(struct tacho__absent *a);

#endif
