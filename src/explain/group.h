/*
 * One finding per cause.
 *
 * Each process is judged by itself. Findings are one cause when they have the same rule and the same
 * place in the code, whatever process, worker or thread it happened in; without a place, the same kind of
 * callback; else the same subject in the same program. A cause is weighed as a whole, because what is
 * small in each of many workers may not be small. There are three steps, and fold.c does the second:
 *
 *   tacho__group        decides which findings are one cause, and how severe it is
 *   (fold.c)            decides which finding explains which, in each process
 *   tacho__group_merge  leaves one finding for each cause: the worst, with the sums of all
 *
 * n findings take n log n.
 */
#ifndef TACHO_EXPLAIN_GROUP_H
#define TACHO_EXPLAIN_GROUP_H

#include "explain/rules.h"

/* From the first step to the last. */
struct tacho__grouping {
	struct tacho__table causes; /* by index: `cause` of findings */
	struct tacho__table workers, threads;
};

/* Sets `cause` and `severity` of all findings. 0 or -ENOMEM; the grouping is to be freed in any case. */
int tacho__group(struct tacho__explaining *x, struct tacho__grouping *g);
/*
 * Then: findings become one for each cause, and those of severity none are dropped. `folded_into` is an
 * index of these: of the cause that explains a finding in most processes, or -1. 0 or -ENOMEM.
 */
int tacho__group_merge(struct tacho__explaining *x, const struct tacho__grouping *g);
void tacho__grouping_free(struct tacho__grouping *g);

/* Loops whose names differ in numbers alone ("epoll 3", "epoll 5") are of one class. */
uint64_t tacho__loop_class(const struct tacho_reader *reader, uint32_t process, uint32_t loop);

#endif
