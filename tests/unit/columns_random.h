/* Random records of all types, for the tests of the columns. */
#ifndef TACHO_TESTS_COLUMNS_RANDOM_H
#define TACHO_TESTS_COLUMNS_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/record.h"
#include "read/records.h"

struct random {
	uint64_t state;
	int meaningful; /* records have the words that their type needs, as for a reader */
};

static inline uint64_t random_next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

static inline uint32_t random_below(struct random *r, uint32_t limit)
{
	return (uint32_t)(random_next(r) >> 20) % limit;
}

/* Small, repeated, pointer-like and extreme values. */
static inline uint64_t random_word(struct random *r)
{
	switch (random_below(r, 8)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return random_next(r);
	case 3:
		return random_below(r, 4);
	case 4:
		return random_next(r) >> random_below(r, 64);
	default:
		return 0x55d0c0a00000u + 416u * random_below(r, 40);
	}
}

static inline uint8_t random_type(struct random *r)
{
	static const uint8_t known[] = {
		TACHO_REC_PARK,	       TACHO_REC_UNPARK,       TACHO_REC_POLL_END,
		TACHO_REC_SPAN_BEGIN,  TACHO_REC_SPAN_END,     TACHO_REC_PAUSE,
		TACHO_REC_POLL_BEGIN,  TACHO_REC_POLL_SWITCH,  TACHO_REC_WAKE,
		TACHO_REC_TASK_END,    TACHO_REC_LOCK_WAIT,    TACHO_REC_LOCK_WAITED,
		TACHO_REC_QUEUE_DEPTH, TACHO_REC_COUNTER,      TACHO_REC_ASYNC_END,
		TACHO_REC_TRIGGER,     TACHO_REC_LOCK_RELEASE, TACHO_REC_STEAL,
		TACHO_REC_ASYNC_BEGIN, TACHO_REC_SPAWN,	       TACHO_REC_TASK_WAITS,
		TACHO_REC_TRACE_ID,    TACHO_REC_LOG,	       TACHO_REC_EVENT,
		TACHO_REC_POLL_HIST,   TACHO_REC_NO_WAKER,     TACHO_REC_SCHED_INTERVAL,
	};
	uint8_t type;

	if (random_below(r, 20))
		return known[random_below(r, sizeof(known))];
	/* One that a later recorder may have. */
	do {
		type = (uint8_t)random_next(r);
	} while (type == TACHO_REC_NONE || type == TACHO_REC_TIME ||
		 (r->meaningful && type == 0x3f)); /* what a reader calls RESUME */
	return type;
}

static inline uint64_t random_delta(struct random *r)
{
	static const uint64_t scale[] = {1, 100, 50000, 5000000000u};

	return random_next(r) % scale[random_below(r, 4)];
}

static inline void random_put(struct random *rnd, struct tacho__records *r, uint64_t ns,
			      uint8_t type)
{
	uint64_t words[TACHO_RECORD_MAX_WORDS];
	uint32_t arg = random_below(rnd, 3) ? random_below(rnd, 6)
					    : (uint32_t)random_next(rnd) & TACHO_ARG_MAX;
	uint32_t n = TACHO_REC_CLASS(type);

	if (n == TACHO_REC_CLASS_VARIABLE)
		n = random_below(rnd, 4) ? 1 + random_below(rnd, 6)
					 : 1 + random_below(rnd, TACHO_RECORD_MAX_WORDS);
	if (rnd->meaningful && TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE && n < 5)
		n = 5;
	for (uint32_t i = 0; i < n; i++)
		words[i] = random_word(rnd);
	if (TACHO_REC_CLASS(type) == TACHO_REC_CLASS_VARIABLE)
		words[0] = (words[0] << 16) | n;
	tacho__records_put(r, ns, tacho_record_head(type, arg), words, n);
}

/* `types`: 0 for all of them, else only so many different ones. */
static inline void random_records(struct random *rnd, struct tacho__records *r, uint32_t count,
				  uint32_t types)
{
	uint64_t ns = 1 + random_next(rnd) % 1000000000000u;
	uint8_t few[16];

	for (uint32_t i = 0; i < sizeof(few); i++)
		few[i] = random_type(rnd);
	tacho__records_reserve(r, count, count * TACHO_RECORD_MAX_WORDS);
	memset(&r->head, 0, sizeof(r->head));
	memset(r->open, 0, sizeof(r->open));
	r->word_at[0] = 0;
	r->head.size = sizeof(r->head);
	r->head.thread = random_below(rnd, 5000);
	r->head.sequence = random_below(rnd, 5000);
	r->head.open_listed = random_below(rnd, TACHO_OPEN_MAX + 1);
	r->head.open_count = (uint16_t)r->head.open_listed;
	for (uint32_t i = 0; i < r->head.open_listed; i++)
		r->open[i] = (struct tacho_open){random_below(rnd, 99), TACHO_REC_POLL_BEGIN,
						 random_word(rnd), random_next(rnd)};
	for (uint32_t i = 0; i < count; i++) {
		random_put(rnd, r, ns, types ? few[random_below(rnd, types)] : random_type(rnd));
		ns += random_delta(rnd);
	}
	if (count) {
		r->head.first_ns = r->ns[0];
		r->head.last_ns = r->ns[count - 1];
	}
}

#endif
