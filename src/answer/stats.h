/*
 * Numbers of a trace: the time of threads by who had it, and tables of how long callbacks, waits,
 * calls and the rest took. The same for `tacho stats` and for the page.
 *
 * No OS calls, as src/model.
 */
#ifndef TACHO_ANSWER_STATS_H
#define TACHO_ANSWER_STATS_H

#include "explain/ledger.h"
#include "model/summary.h"
#include "text/json.h"

/* One line of a table: what it is called, and its durations. */
struct stats_row {
	char name[160];
	char distinct[160]; /* of a loop: told apart from others of its name */
	char more[64];	    /* what stands behind the numbers, for people */
	const struct tacho__hist *hist;
	uint64_t rank;
	uint32_t order; /* in which it was added: of those of one rank */
	/* For programs. */
	uint32_t process, id;
	const char *extra_name[5];
	double extra[5];
	uint32_t extras;
};

/* The largest total first. */
struct stats_table {
	const char *title, *key; /* for people and for programs */
	struct stats_row *rows;
	uint32_t count, capacity;
};

#define STATS_TABLES 9u

struct stats {
	const struct tacho_reader *reader;
	struct tacho__summary *sum;
	struct tacho__ledger *ledger;
	struct stats_table tables[STATS_TABLES];
	int error; /* a row has no memory */
};

/* All of it, from the reader's events; to be freed also after an error. 0 or a negative errno. */
int stats_read(struct stats *s, struct tacho_reader *reader,
	       void (*progress)(void *arg, uint64_t ns), void *arg);
void stats_free(struct stats *s);

/* By owner, of the thread with that index in the ledger. */
void stats_add_up(const struct tacho__ledger *l, uint32_t thread, uint64_t ns[TACHO__OWNS_COUNT]);

/* An object, with `top` rows of each table. */
void answer_stats(struct json *j, const struct stats *s, uint64_t top);

#endif
