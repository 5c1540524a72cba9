/*
 * Looking up addresses in a child process, which has no more rights than whoever's process it is
 * about and little memory and time: the files that are read are that user's, and may be anything, or
 * change while they are read. What it says is believed as little.
 */
#ifndef TACHO_SYMBOLS_CHILD_H
#define TACHO_SYMBOLS_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/rights.h"
#include "symbols/resolve.h"

#define TACHO__INLINED_MAX 16u

/* An address and what held it, or NULL. */
struct tacho__asked {
	const struct tacho_definition *module;
	uint64_t address;
};

struct tacho__child;

/* For all that is asked at once; and of the time of who serves others, for one user. Tests are less
   patient. */
extern uint64_t tacho__child_time_ns, tacho__child_allowed_ns;
/* Whether many users are served, one after the other: then also the time of those that succeed counts.
   Set once, by the agent of a host. */
extern int tacho__child_divides;

/*
 * `process` and `asked` outlive the child, as do the texts of the modules. `rights`: with these, where this
 * process may choose. NULL: out of memory.
 */
struct tacho__child *tacho__child_new(const struct tacho_process *process,
				      const struct tacho__rights *rights,
				      const struct tacho__asked *asked, size_t count);

/* The functions of the next one that was asked for, as tacho__resolve: 0 where nothing is known.
   `out` has room for TACHO__INLINED_MAX; texts live until the next call. */
uint32_t tacho__child_next(struct tacho__child *c, struct tacho__resolved *out);

/* Why some were not looked up, as a sentence without its end; "": all were. */
const char *tacho__child_why(const struct tacho__child *c);
void tacho__child_free(struct tacho__child *c);

#endif
