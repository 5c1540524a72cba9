/*
 * The diary of a ledger: which stretch of time each owner had, of the threads of one process from a
 * time on. The ledger adds these up; blame looks at them one by one.
 *
 * What the ledger gives to another owner later on (the kernel ran others, a wait was late) is the
 * end of what the first one had.
 */
#ifndef TACHO_EXPLAIN_DIARY_H
#define TACHO_EXPLAIN_DIARY_H

#include "explain/ledger.h"

struct tacho__passage {
	uint64_t from, to;
	uint32_t thread;     /* number */
	uint32_t line;	     /* index in `threads` of the ledger */
	uint32_t owned;	     /* index; TACHO__NONE: the rest */
	uint32_t kind;	     /* of the poll that was open; 0: none */
	uint32_t place;	     /* call, lock: where, this time; 0 */
	uint32_t path;	     /* call: of what; 0 */
	uint32_t held_place; /* lock: where it was released; 0 */
	uint32_t before;     /* the one before it of the thread: index + 1; 0 */
	uint64_t poll_ns;    /* when that poll began; 0: none was open */
	uint64_t release_ns; /* lock: when; 0: not seen */
};

struct tacho__diary {
	uint32_t process;
	uint32_t thread; /* number; 0: all */
	uint32_t most;	 /* stretches that it keeps, after which it is an error; 0: very many */
	uint64_t from_ns;
	struct tacho__passage *at; /* once closed, by thread and time */
	uint32_t count, capacity;
	struct tacho__passage with; /* of the call or lock that is given time now */
	uint32_t *last;		    /* of each thread of the ledger: index + 1; 0: none */
	uint32_t last_count, last_capacity;
	/* Functions that were sampled. */
	struct tacho__diary_sample {
		uint64_t ns;
		uint32_t thread, owned, function;
	} * samples;
	uint32_t sample_count, sample_capacity;
};

/* Before the ledger's facts: keeps one of what ends after `from_ns`. It stays the caller's. */
void tacho__diary_keep(struct tacho__ledger *l, struct tacho__diary *d);
/* After the page is turned. */
void tacho__diary_close(struct tacho__diary *d);
void tacho__diary_free(struct tacho__diary *d);
/* The first stretch of the thread that ends after `ns`; `count`: none. */
uint32_t tacho__diary_find(const struct tacho__diary *d, uint32_t thread, uint64_t ns);

#endif
