/*
 * Blame: where the time of one poll, wake, span or task went, in pieces that add up.
 *
 * Each piece has one owner: that which the ledger (ledger.h) gives the time of the thread to, in the
 * same words. From a wake to its poll that is what the thread that ran it did meanwhile. A piece in
 * which the subject waited for another thread (for a lock, for a wake, for work of a pool) has pieces
 * of its own: what that other one did meanwhile, as far as the edge leads.
 */
#ifndef TACHO_EXPLAIN_BLAME_H
#define TACHO_EXPLAIN_BLAME_H

#include <stdint.h>

#include "explain/finding.h"
#include "explain/ledger.h"
#include "model/model.h"

/* Owners beside those of the ledger (enum tacho__owns): of time that it spends on no thread. */
enum tacho__owner {
	TACHO__OWNER_POOL = TACHO__OWNS_COUNT, /* queued for a thread of a pool */
	TACHO__OWNER_WORK,		       /* a pool works for it */
	TACHO__OWNER_IO,		       /* it waits for the outside, or to be woken */
};

struct tacho__piece {
	uint32_t owner; /* enum tacho__owns or enum tacho__owner */
	uint32_t depth; /* 0: of the subject; deeper: what a piece above it consists of */
	uint32_t process, thread;
	uint64_t from_ns, to_ns;
	uint64_t ns;	/* its length; less than to - from where it was in parts */
	uint32_t parts; /* how many small ones it was made of; 1: it is one */
	uint32_t kind;	/* poll or work that it was in; 0 none */
	uint64_t task, lock;
	uint8_t own;		      /* 1: in the subject's own poll */
	struct tacho__place where[4]; /* innermost of the program first */
	uint32_t where_count;
	char text[400];
};

enum tacho__subject_type {
	TACHO__SUBJECT_POLL = 1,
	TACHO__SUBJECT_WAKE = 2, /* from the wake to the end of the poll that it led to */
	TACHO__SUBJECT_SPAN = 3,
	TACHO__SUBJECT_TASK = 4,    /* from spawn or first sight to its end */
	TACHO__SUBJECT_STRETCH = 5, /* of the time of a thread */
};

struct tacho__subject {
	uint64_t from_ns, to_ns;
	uint64_t task, span;
	uint64_t trace_high, trace_low;
	enum tacho__subject_type type;
	uint32_t process, thread;
	uint32_t kind, name;
	uint8_t cut;
};

struct tacho__blame {
	struct tacho__subject subject;
	struct tacho__piece *pieces; /* those of depth 0, by when they begin, add up to the whole */
	uint32_t count;
	uint64_t not_observed_ns;
};

/* What began so long before a subject may still matter to it, and what the kernel counted is
   recorded a little after its end: a reader of less than the whole trace is limited to that. */
#define TACHO__BLAME_BEFORE_NS UINT64_C(2000000000)
#define TACHO__BLAME_AFTER_NS UINT64_C(10000000)

/* The time of `subject`, from a reader that holds it and is where its reading begins. NULL with a
   negative errno in *error. */
struct tacho__blame *tacho__blame_make(struct tacho_reader *reader,
				       const struct tacho__subject *subject, int *error);
void tacho__blame_free(struct tacho__blame *b);
const char *tacho__owner_name(uint32_t owner);

/*
 * Finds subjects: the slowest (wakes and polls on loops, spans), or all of one task, span name or
 * trace id. At most `most`, slowest first. How many, or a negative errno.
 */
struct tacho__subject_filter {
	enum tacho__subject_type type; /* 0: any */
	uint64_t task;		       /* 0: any */
	const char *span;	       /* name; NULL: any */
	uint64_t trace_high, trace_low;
};
int tacho__blame_find(struct tacho_reader *reader, const struct tacho__subject_filter *filter,
		      struct tacho__subject *out, uint32_t most);

#endif
