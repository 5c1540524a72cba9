/* What is wrong with an input, in sentences. */
#ifndef TACHO_TEXT_PROBLEMS_H
#define TACHO_TEXT_PROBLEMS_H

#include <stdint.h>

struct tacho_reader;

/* A sentence for each problem of the input; at most `limit`, then how many more there are. */
void text_problems(const struct tacho_reader *reader, uint32_t limit,
		   void (*tell)(void *arg, const char *sentence), void *arg);

#endif
