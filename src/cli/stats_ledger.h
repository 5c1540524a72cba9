/* What stats take from the ledger: the time of threads, and what of it is waiting for work. */
#ifndef TACHO_CLI_STATS_LEDGER_H
#define TACHO_CLI_STATS_LEDGER_H

#include "explain/ledger.h"
#include "model/summary.h"
#include "text/json.h"

/* Summary and ledger of the reader's events. 0 or a negative errno. */
int stats_read(struct tacho_reader *reader, void (*progress)(void *arg, uint64_t ns), void *arg,
	       struct tacho__summary **sum, struct tacho__ledger **ledger);

/* Threads that are of interest, and who had their time. */
void stats_threads(const struct tacho_reader *reader, const struct tacho__ledger *l, uint64_t top);
void stats_threads_json(struct json *j, const struct tacho_reader *reader,
			const struct tacho__ledger *l);
/* Of the thread; NULL: not known. */
const struct tacho__ledger_thread *stats_thread(const struct tacho__ledger *l, uint32_t process,
						uint32_t thread);
/* The part of its time in which it did not wait for work, 0..1. */
double stats_busy(const struct tacho__ledger_thread *t);
/* The waits for a lock that are none for work; NULL: all are. `ns`: what threads of interest lost. */
const struct tacho__hist *stats_lock(const struct tacho_reader *reader,
				     const struct tacho__ledger *l, const struct tacho__lock_sum *k,
				     uint64_t *ns);
/* Whether the call is where threads wait for work. */
int stats_is_work_place(const struct tacho__ledger *l, const struct tacho__call_sum *k);

#endif
