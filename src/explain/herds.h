/*
 * Tasks that are woken at once: as many as one poll wakes. Each of their polls is short, but whatever else
 * is ready meanwhile waits until all of them have run, as it would for one long poll.
 */
#ifndef TACHO_EXPLAIN_HERDS_H
#define TACHO_EXPLAIN_HERDS_H

#include "model/model.h"
#include "model/table.h"

#define TACHO__HERDS_OPEN 16u

/* Those that one kind of poll woke. */
struct tacho__herds {
	struct tacho__entry entry; /* key: process << 32 | kind of the waker, kind of the woken */
	uint32_t process, waker, woken;
	uint64_t count, tasks, most; /* herds; tasks in all, and in the largest */
	uint64_t ns, longest_ns, longest_at_ns;
	uint64_t others, others_ns; /* that waited for a millisecond or more meanwhile */
	uint64_t late; /* of the tasks: those that waited for late_ns or more, for each other */
};

struct tacho__herd {
	uint32_t process, thread, waker, woken;
	uint64_t from_ns, to_ns, tasks, late;
	uint64_t others, others_ns;
};

struct tacho__herding {
	struct tacho__table herds; /* struct tacho__herds */
	/* Of the waker, 0: free. For itself, because every wake looks for it. */
	uint64_t poll_ns[TACHO__HERDS_OPEN];
	struct tacho__herd open[TACHO__HERDS_OPEN];
	uint8_t recent
		[TACHO__HERDS_OPEN]; /* indices of these, the last one that got a task first */
	uint64_t late_ns;
};

void tacho__herds_init(struct tacho__herding *h, uint64_t late_ns);
void tacho__herds_free(struct tacho__herding *h);
/* In the order of the polls that wakes lead to. */
void tacho__herds_wake(struct tacho__herding *h, const struct tacho__wake *w, int *error);
void tacho__herds_end(struct tacho__herding *h, int *error);

#endif
