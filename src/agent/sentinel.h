/*
 * Sentinels: conditions under which a window is kept.
 *
 *   expression  any { "or" any }           also "," and "||"; several --on are joined by "or"
 *   any         condition { "and" condition }   also "&&"
 *   condition   poll|wake|lag|sched|stall ">" TIME
 *               queue ">" NUMBER
 *               exit "!=" STATUS | exit "=" STATUS
 *
 * The recorder watches for poll, wake, lag, sched and queue (format/box.h), the agent for
 * stall and exit. Conditions joined by "and" hold together when each of them held in the
 * same process within TACHO__TOGETHER_NS.
 */
#ifndef TACHO_AGENT_SENTINEL_H
#define TACHO_AGENT_SENTINEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/box.h"

#define TACHO__CONDITIONS_MAX 16u
#define TACHO__TOGETHER_NS UINT64_C(1000000000)

enum tacho__watched {
	TACHO__WATCH_POLL = TACHO_SENTINEL_POLL,
	TACHO__WATCH_WAKE = TACHO_SENTINEL_WAKE,
	TACHO__WATCH_LAG = TACHO_SENTINEL_LAG,
	TACHO__WATCH_SCHED = TACHO_SENTINEL_SCHED,
	TACHO__WATCH_QUEUE = TACHO_SENTINEL_QUEUE,
	TACHO__WATCH_STALL = TACHO_SENTINEL_COUNT,
	TACHO__WATCH_EXIT,
};

struct tacho__condition {
	uint8_t watched;   /* enum tacho__watched */
	uint8_t group;	   /* conditions of one group are joined by "and" */
	bool equal;	   /* exit: "=", else "!=" */
	uint64_t limit;	   /* ns, depth or status */
	uint16_t from, to; /* its text in the expression */
};

struct tacho__sentinels {
	char text[512]; /* as given */
	struct tacho__condition conditions[TACHO__CONDITIONS_MAX];
	uint32_t count;
};

/*
 * Adds an expression. -EINVAL: `message` says what is wrong in one sentence, and *at is the
 * offset in `text` of the character that it is about.
 */
int tacho__sentinels_add(struct tacho__sentinels *s, const char *text, size_t *at, char *message,
			 size_t message_size);

/* The least limit of any condition on `watched`; 0: none. */
uint64_t tacho__sentinels_limit(const struct tacho__sentinels *s, enum tacho__watched watched);

/* Whether there is a condition on it. */
bool tacho__sentinels_watch(const struct tacho__sentinels *s, enum tacho__watched watched);

/* What one process did lately, by condition. Begins all zero. */
struct tacho__watch {
	uint64_t held_ns[TACHO__CONDITIONS_MAX]; /* when it held last; 0: never */
	uint64_t value[TACHO__CONDITIONS_MAX];
};

/*
 * `watched` had this value at `ns`. Returns the number of the group + 1 that now holds in
 * whole, with its reason, such as "poll>50ms: a poll took 73.2 ms" in `why`, else 0.
 */
unsigned tacho__watch_value(const struct tacho__sentinels *s, struct tacho__watch *w,
			    enum tacho__watched watched, uint64_t ns, uint64_t value, char *why,
			    size_t why_size);

#endif
