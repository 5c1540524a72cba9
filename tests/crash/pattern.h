/*
 * What the victims of the crash tests record: record n of sequence s is a function of
 * s and n alone, so whoever reads a box can tell of every record whether it is right.
 *
 * Sequences come in threes. The first of three is what a thread records in its normal
 * course, one record after the other in all the sizes that there are. The other two
 * are what two signal handlers record in that thread: wakes only.
 */
#ifndef TACHO_TESTS_CRASH_PATTERN_H
#define TACHO_TESTS_CRASH_PATTERN_H

#include <stdint.h>

#include "tacho.h"
#include "tacho_read.h"

#define PATTERN_LENGTH 12u
#define PATTERN_HELD 4u /* records in a row that do not tell their number: fewer than this */
#define PATTERN_IS_MAIN(sequence) ((sequence) % 3 == 0)

/* How many names the pattern defines in the course of its records; at most 1024. */
void pattern_init(uint32_t names);

/* Makes record n of the sequence. */
void pattern_put(uint32_t sequence, uint64_t n);

/* 1 and which record of which sequence an event is, if it tells; else 0. */
int pattern_tells(const struct tacho_reader *reader, const struct tacho_event *event,
		  uint32_t *sequence, uint64_t *n);

/*
 * NULL when the event is record n of the sequence, else what is wrong. Without `names` the
 * definitions are not looked at: a file cut short may lack them.
 */
const char *pattern_differs(const struct tacho_reader *reader, const struct tacho_event *event,
			    uint32_t sequence, uint64_t n, int names);

#endif
