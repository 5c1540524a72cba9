#include "text/problems.h"

#include <inttypes.h>
#include <stdio.h>

#include "tacho_read.h"
#include "text/text.h"

void text_problems(const struct tacho_reader *reader, uint32_t limit,
		   void (*tell)(void *arg, const char *sentence), void *arg)
{
	uint32_t count = tacho_read_problem_count(reader);
	char sentence[TEXT_SENTENCE];

	for (uint32_t i = 0; i < count && i < limit; i++) {
		const struct tacho_problem *p = tacho_read_problem(reader, i);

		if (!p)
			continue;
		if (p->size > 0)
			snprintf(sentence, sizeof(sentence),
				 "%s: at byte %" PRIu64 ", %" PRIu64 " bytes: %s", p->path,
				 p->offset, p->size, p->text);
		else
			snprintf(sentence, sizeof(sentence), "%s%s%s", p->path ? p->path : "",
				 p->path && p->path[0] ? ": " : "", p->text);
		tell(arg, sentence);
	}
	if (count > limit) {
		snprintf(sentence, sizeof(sentence),
			 "and %" PRIu32 " more problems; 'tacho info' lists them all.",
			 count - limit);
		tell(arg, sentence);
	}
}
