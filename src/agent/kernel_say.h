/* Why the kernel tells nothing of a process, in a sentence that says what to do. */
#ifndef TACHO_AGENT_KERNEL_SAY_H
#define TACHO_AGENT_KERNEL_SAY_H

#include "agent/kernel.h"
#include "kernel/perf.h"

/* What was asked for, of whom, how far it came, and what it met (-errno). */
void tacho__kernel_say(const struct tacho__kernel_options *o, uint32_t pid,
		       enum tacho__perf_step step, int err, char *m, size_t size);
/* Not perf is refused, but this process to us. */
void tacho__kernel_say_whose(uint32_t pid, char *m, size_t size);

#endif
