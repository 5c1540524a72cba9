/* What the import of a dial9 trace consists of: for the files dial9*.c alone. */
#ifndef TACHO_IMPORT_DIAL9_MAKING_H
#define TACHO_IMPORT_DIAL9_MAKING_H

#include "import/dial9_wire.h"
#include "import/import.h"

#define TACHO__DIAL9_BLOCKING \
	254u			  /* numbers of workers that stand for none, unless a runtime ... */
#define TACHO__DIAL9_UNKNOWN 255u /* ... says that one of its workers has it */
#define TACHO__DIAL9_SLOTS 10u
#define TACHO__DIAL9_NO_SLOT 0xffu
#define TACHO__DIAL9_POLLS 16u /* in each other */
#define TACHO__DIAL9_MOVES 8u  /* threads of a worker */

struct tacho__dial9;
struct tacho__dial9_known;

/* An event that dial9 itself writes: how it is called, and the fields of it that are used. */
struct tacho__dial9_kind {
	const char *name;
	void (*put)(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
		    struct tacho__dial9_known *k);
	const char *fields[TACHO__DIAL9_SLOTS];
};

/* What is known of a schema; kept with it. */
struct tacho__dial9_known {
	const struct tacho__dial9_kind *kind; /* NULL: an event of the program */
	uint8_t slot[TACHO__DIAL9_SLOTS];     /* where the fields are */
	uint8_t is_span;		      /* enum tacho__dial9_span_step + 1 */
	uint8_t plain;			      /* its annotations make no span of it */
	uint32_t id;	    /* definition: schema of its events, or of its attributes */
	uint32_t span;	    /* definition of the span that it named last */
	uint64_t span_hash; /* of its name */
	uint32_t ids[TACHO__DIAL9_SLOTS]; /* definitions of counters */
};

/* A thread of the recorded process. */
struct tacho__dial9_thread {
	uint32_t thread; /* of the trace */
	uint32_t loop;	 /* that it runs; 0 none */
	uint32_t tid;
	uint32_t named;
	uint64_t seen_ns; /* with a worker, last */
	uint64_t park_ns; /* of its last park; 0: none */
	/* Runnable but not running, in waits since the first of these; too little for a record. */
	uint64_t wait_since_ns, wait_ns;
	uint64_t cpu_ns; /* when its CPU time was told last */
	uint64_t ended;	 /* the task of the innermost poll, when it has ended in it */
	uint32_t depth, lost;
	uint64_t open[TACHO__DIAL9_POLLS]; /* tasks */
	uint64_t busy_until_ns;		   /* by the batches that are known to be its own */
	uint64_t next_ns;		   /* the next of those begins */
};

struct tacho__dial9_worker {
	uint64_t number;
	uint32_t loop, cpu;		 /* definitions, 0: not made yet */
	uint32_t listed;		 /* a runtime says that it is its own */
	uint32_t thread;		 /* by which it was seen last: index + 1; 0: not known */
	uint32_t on[TACHO__DIAL9_MOVES]; /* all that it was seen on; 0 ends it */
	uint32_t queue;			 /* depth that was told last, + 1 ... */
	uint64_t queue_ns;		 /* ... and when */
	uint32_t moves;			 /* seen on more than one thread */
	char runtime[64];
};

enum tacho__dial9_span_step { TACHO__DIAL9_ENTER, TACHO__DIAL9_EXIT, TACHO__DIAL9_CLOSE };

struct tacho__dial9_span_event {
	uint64_t ns, id, parent;
	uint32_t span;	     /* definition */
	uint32_t thread;     /* of the trace */
	uint32_t attributes; /* of d->words: an EVENT, + 1; 0 none */
	uint32_t step;
};

/* An event whose stack gets its names later. */
struct tacho__dial9_stacked {
	uint64_t ns;
	uint64_t number[2]; /* of the task; of memory: size and address */
	uint32_t thread;
	uint32_t stack, count; /* of d->words */
	uint32_t what;	       /* enum tacho__dial9_stacked_what */
};
enum tacho__dial9_stacked_what {
	TACHO__DIAL9_CPU,
	TACHO__DIAL9_SWITCH,
	TACHO__DIAL9_DUMP,
	TACHO__DIAL9_ALLOC,
};

struct tacho__dial9_batch {
	size_t at;		    /* its header */
	uint64_t first_ns, last_ns; /* of its workers' events */
	uint64_t next_ns;	    /* the next one of its thread begins */
	uint64_t worker;
	uint32_t tid;	 /* 0: it does not say */
	uint32_t thread; /* index + 1; 0: not known, and without any event of a worker */
	uint32_t events; /* of workers */
	int whole;	 /* it is looked at until its end */
};

/* When a worker was on which thread. */
struct tacho__dial9_seen {
	uint64_t ns;
	uint32_t worker, thread; /* indices */
};

struct tacho__dial9_symbol {
	uint64_t address;
	uint32_t depth, line;
	uint32_t next; /* of the same address: index + 1 */
	const char *function, *file;
};

struct tacho__dial9 {
	struct tacho__made *made;
	struct tacho__dial9_wire wire;
	struct tacho__arena arena;
	int error;
	struct tacho__dial9_thread *threads;
	uint32_t thread_count, thread_capacity;
	struct tacho__map by_tid; /* to index + 1 */
	struct tacho__dial9_worker *workers;
	uint32_t worker_count, worker_capacity;
	struct tacho__map worker_at;
	struct tacho__dial9_batch *batches; /* of this file, with workers in them */
	uint32_t batch_count, batch_capacity;
	struct tacho__map owners;	 /* of them, by where they begin: thread, index + 1 */
	struct tacho__dial9_batch *look; /* one that is only looked at; NULL: all is put */
	uint32_t owner; /* thread of the batch that is put; 0: not one of a worker */
	int owner_seen;
	int has_tids;	 /* batches say their threads */
	uint32_t others; /* thread of the trace for what is of no worker */
	struct tacho__dial9_seen *seen;
	uint32_t seen_count, seen_capacity;

	struct tacho__dial9_span_event *spans;
	uint32_t span_count, span_capacity;
	struct tacho__map entered; /* spans of this batch whose attributes are kept */
	uint64_t single;	   /* numbers of spans that are one event */
	struct tacho__dial9_stacked *stacked;
	uint32_t stacked_count, stacked_capacity;
	uint64_t *words;
	uint32_t word_count, word_capacity;
	struct tacho__dial9_symbol *symbols;
	uint32_t symbol_count, symbol_capacity;
	struct tacho__map symbol_at; /* by address: index + 1 */
	struct tacho__map texts;     /* of metadata that was told: hash */

	char version[32], service[64], host[256];
	uint64_t sample_ns;	    /* CPU time of a sample; 0 not known */
	uint64_t first_ns, last_ns; /* of all events; of the last one that was read */
	uint64_t legacy_real_ns;    /* of versions without ClockSyncEvent */
	int anchored, tracked, no_queue, spawns_only;
	uint64_t spawned, bare;		     /* tasks, and those not spawned through dial9 */
	uint64_t unended, moved, incomplete; /* polls; workers; segments */
	uint64_t dropped_allocs, dropped_frees;
};

/* dial9.c */
const struct tacho__dial9_value *tacho__dial9_get(const struct tacho__dial9_event *e,
						  const struct tacho__dial9_known *k,
						  unsigned slot);
/* A number, or what to take where there is none. */
uint64_t tacho__dial9_number(const struct tacho__dial9_event *e, const struct tacho__dial9_known *k,
			     unsigned slot, uint64_t otherwise);
int tacho__dial9_is_number(unsigned type);
/* Room for `count` words at the end of d->words; NULL: no memory, which is an error from then on. */
uint64_t *tacho__dial9_words(struct tacho__dial9 *d, uint32_t count);
#define TACHO__DIAL9_ROOM(d, array, count, capacity)                                         \
	(!TACHO__GROW((d)->array, (d)->capacity, (d)->count + 1) ? &(d)->array[(d)->count++] \
								 : ((d)->error = -ENOMEM, NULL))

/* Puts an event, or looks at it. Other than 0: no more is wanted. */
int tacho__dial9_take_event(void *arg, const struct tacho__dial9_event *e);

/* dial9_batches.c: which thread a batch is of, for all of the file */
void tacho__dial9_look(struct tacho__dial9 *d);

/* dial9_tokio.c: threads, workers, tasks */
extern const struct tacho__dial9_kind tacho__dial9_tokio[];
/* The thread of this batch, as one of the trace. */
uint32_t tacho__dial9_here(struct tacho__dial9 *d);
uint32_t tacho__dial9_by_tid(struct tacho__dial9 *d, uint32_t tid);
/* The same, its index + 1; tid 0: a new one of which that is not known. 0: no memory. */
uint32_t tacho__dial9_thread(struct tacho__dial9 *d, uint32_t tid);
struct tacho__dial9_worker *tacho__dial9_worker(struct tacho__dial9 *d, uint64_t number);
void tacho__dial9_tokio_end(struct tacho__dial9 *d);

/* dial9_stacks.c: symbols, and what carries stacks */
extern const struct tacho__dial9_kind tacho__dial9_stacks[];
void tacho__dial9_stacks_end(struct tacho__dial9 *d);

/* dial9_spans.c */
/* Of a schema that is not one of dial9's own: whether it is a step of a span. */
void tacho__dial9_span_know(struct tacho__dial9_known *k, const struct tacho__dial9_schema *s);
void tacho__dial9_span_put(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			   struct tacho__dial9_known *k);
/* Whether annotations of its schema make it a span, which is then put. */
int tacho__dial9_span_single(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			     struct tacho__dial9_known *k);
void tacho__dial9_spans_end(struct tacho__dial9 *d);

/* dial9_events.c: the program's own, metadata, counters */
extern const struct tacho__dial9_kind tacho__dial9_events[];
/* The words of an EVENT of all fields that `skip` does not name, into words[TACHO_RECORD_MAX_WORDS];
   how many. */
uint32_t tacho__dial9_event_words(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
				  const char *const *skip, uint64_t *words);
/* The definition of a schema of these fields. */
uint32_t tacho__dial9_event_schema(struct tacho__dial9 *d, const struct tacho__dial9_schema *s,
				   const char *name, const char *const *skip);
void tacho__dial9_event_put(struct tacho__dial9 *d, const struct tacho__dial9_event *e,
			    struct tacho__dial9_known *k);

#endif
