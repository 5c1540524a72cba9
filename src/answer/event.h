/*
 * One event as words, and as members of a JSON object: the fields that tacho_events.h lists for
 * its type, each printed as its role asks.
 */
#ifndef TACHO_ANSWER_EVENT_H
#define TACHO_ANSWER_EVENT_H

#include <stdint.h>
#include <stdio.h>

#include "tacho_read.h"
#include "text/json.h"

/* Without time, thread, type and newline. `zero_ns`: what times inside are relative to. */
void event_put_text(FILE *out, const struct tacho_reader *reader, const struct tacho_event *event,
		    uint64_t zero_ns);
void event_put_json(struct json *j, const struct tacho_reader *reader,
		    const struct tacho_event *event);

/* Roles that both print alike. */

/* An id that stands in a word; ids have 24 bits, others name nothing. */
static inline uint32_t event_id(uint64_t value)
{
	return value <= 0xffffff ? (uint32_t)value : 0xffffffu;
}

/* The value of a counter; of type 0 where its definition does not say what it is. */
static inline struct tacho_field_value event_value(const struct tacho_definition *counter,
						   uint64_t bits)
{
	struct tacho_field_value value = {.number.u64 = bits};

	if (counter && counter->value_type == TACHO_VALUE_I64)
		value.type = TACHO_FIELD_I64;
	else if (counter && counter->value_type == TACHO_VALUE_F64)
		value.type = TACHO_FIELD_F64;
	return value;
}

/* Shortest duration that a bucket counts; saturates for buckets that cannot be. */
static inline uint64_t event_bucket_ns(uint64_t word)
{
	unsigned bucket = tacho_bucket(word);

	return bucket == 0 ? 0 : bucket < 64 ? 1ull << bucket : UINT64_MAX;
}

/* Of all buckets, which begin at word `first`. */
static inline uint64_t event_bucket_sum(const struct tacho_event *event, uint32_t first)
{
	uint64_t sum = 0;

	for (uint32_t i = first; i < event->words; i++)
		sum += tacho_bucket_count(event->word[i]);
	return sum;
}

/* What TACHO_ROLE_READY_FD and _DATA tell apart. */
#define EVENT_READY_IS_DATA (UINT64_C(1) << 63)
#define EVENT_ON_NOTHING UINT64_MAX /* TACHO_ROLE_ON */

#endif
