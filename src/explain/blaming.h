/* Blame being laid: the facts around a subject, and the pieces made of them. */
#ifndef TACHO_EXPLAIN_BLAMING_H
#define TACHO_EXPLAIN_BLAMING_H

#include "explain/blame.h"

#define TACHO__BLAME_FACTS (1u << 20) /* of one type */
#define TACHO__BLAME_DEPTH 4u	      /* edges that are followed, one after the other */

/* Where a fact lies. */
struct tacho__extent {
	uint32_t thread, fact; /* index in its list */
	uint64_t begin, end;
	uint64_t reach; /* latest end of all of its thread that stand before it, and of itself */
};

/* A growing list of facts of one type. */
struct tacho__fact_list {
	void *at;
	uint32_t count, capacity;
	struct tacho__extent *extents; /* of all of them, by thread and begin */
};

struct tacho__blaming {
	struct tacho_reader *reader;
	const struct tacho__subject *subject;
	struct tacho__fact_list polls, turns, locks, calls, works, offs, wakes;
	struct tacho__fact_list pieces; /* struct tacho__piece */
	int samples, switches;		/* whether there are any of the subject's process */
	int error;
};

#define TACHO__FACT_AT(list, type, i) (&((const struct type *)(list)->at)[i])

/* blame_facts.c */

/* Room for one more of `size` bytes; NULL after noting the error: there is none. */
void *tacho__blame_add(struct tacho__blaming *b, struct tacho__fact_list *l, size_t size);
/* All facts that have to do with the time of the subject. 0 or a negative errno. */
int tacho__blame_gather(struct tacho__blaming *b);
void tacho__blame_forget(struct tacho__blaming *b);
/* How many extents come before those of `thread` that begin at `ns` or later. */
uint32_t tacho__facts_before(const struct tacho__fact_list *l, uint32_t thread, uint64_t ns);

/* paint.c */

/*
 * What thread did from `from` to `to`, as pieces of `depth`. `self`: a poll of that thread
 * that is the subject, whose code is its own; NULL: whatever runs there is another's.
 */
void tacho__blame_thread(struct tacho__blaming *b, uint32_t thread, uint64_t from, uint64_t to,
			 uint32_t depth, const struct tacho__poll *self);
struct tacho__piece *tacho__blame_piece(struct tacho__blaming *b, enum tacho__owner owner,
					uint32_t depth, uint32_t thread, uint64_t from,
					uint64_t to);

#endif
