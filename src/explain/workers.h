/*
 * Workers: processes and threads that do the same kind of work, so that a finding can say how many of
 * them it is in: "6 of 6 workers".
 */
#ifndef TACHO_EXPLAIN_WORKERS_H
#define TACHO_EXPLAIN_WORKERS_H

#include "explain/group.h"

/* Those of all processes, by the ledger. 0 or -ENOMEM. */
int tacho__workers_make(const struct tacho__explaining *x, struct tacho__grouping *g);
void tacho__workers_free(struct tacho__grouping *g);
/* How many there are of the kind of which the finding's are. */
void tacho__workers_count(const struct tacho__explaining *x, const struct tacho__grouping *g,
			  struct tacho__finding *f);
/* The summary of a finding that several are in. */
void tacho__workers_say(struct tacho__finding *f);
/* Processes of one program are of one class. */
uint64_t tacho__program_class(const struct tacho_reader *reader, uint32_t process);

#endif
