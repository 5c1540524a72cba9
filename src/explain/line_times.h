/*
 * When a line of the ledger had the time of its thread: all of its stretches.
 *
 * The ledger keeps sums only, so the trace is read again, in pieces where it is long. Of one of several
 * functions of a callback these are the stretches in which it was sampled, from half way between two
 * samples.
 */
#ifndef TACHO_EXPLAIN_LINE_TIMES_H
#define TACHO_EXPLAIN_LINE_TIMES_H

#include "explain/ledger.h"

struct tacho__line_time {
	uint64_t from_ns, to_ns;
};

struct tacho__line_times {
	struct tacho__line_time *at; /* in the order of time; of more than `most`, the longest */
	uint32_t count, capacity, most;
	uint64_t all, all_ns; /* how many there were, and how long all of them together */
};

/*
 * Of a line of the closed ledger `l`, from another reader of the same trace. The limits of that
 * reader are forgotten. 0 or a negative errno; `out` is to be freed in any case.
 */
int tacho__line_times_make(struct tacho__line_times *out, struct tacho_reader *reader,
			   const struct tacho__ledger *l, const struct tacho__ledger_line *line,
			   uint32_t most);
void tacho__line_times_free(struct tacho__line_times *t);

#endif
