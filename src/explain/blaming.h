/* Blame being laid: the diary of the time of a subject, the facts around it, and the pieces. */
#ifndef TACHO_EXPLAIN_BLAMING_H
#define TACHO_EXPLAIN_BLAMING_H

#include <stddef.h>

#include "explain/blame.h"
#include "explain/diary.h"

#define TACHO__BLAME_FACTS (1u << 20) /* of one type */
#define TACHO__BLAME_DEPTH 4u	      /* edges that are followed, one after the other */

/* A growing list of facts of one type. */
struct tacho__fact_list {
	void *at;
	uint32_t count, capacity;
};

struct tacho__blaming {
	struct tacho_reader *reader;
	const struct tacho__subject *subject;
	struct tacho__ledger *ledger;
	struct tacho__diary diary;
	struct tacho__fact_list polls; /* by thread and begin, outer ones first */
	struct tacho__fact_list wakes; /* by time */
	struct tacho__fact_list works;
	struct tacho__fact_list waits;	/* of the subject's task, what it said; by time */
	struct tacho__fact_list pieces; /* struct tacho__piece */
	int error;
};

#define TACHO__FACT_AT(list, type, i) (&((const struct type *)(list)->at)[i])

/* Room for one more of `size` bytes; NULL after noting the error: there is none. */
void *tacho__blame_add(struct tacho__blaming *b, struct tacho__fact_list *l, size_t size);

/* blame_pieces.c */

/* What a thread did from `from` to `to`, as pieces of `depth`. `own`: in a poll of the subject. */
void tacho__blame_thread(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			 uint32_t depth, int own);
/* The same from a wake to its poll: its loop should not have waited then. */
void tacho__blame_delay(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			uint32_t depth);
struct tacho__piece *tacho__blame_piece(struct tacho__blaming *b, uint32_t owner, uint32_t depth,
					uint32_t thread, uint64_t from, uint64_t to);
/* Small pieces of one owner become one. */
void tacho__blame_join(struct tacho__blaming *b);

#endif
