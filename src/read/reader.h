/*
 * What an open reader holds. Its parts, in the order in which opening uses them:
 *
 *   open.c, input.c   bytes
 *   split.c           the parts of a trace file
 *   box.c, trace.c    take a box or a trace file apart
 *   box_chunks.c      chunks of a box, copied while its process stores on
 *   block.c           one block of a trace file (block.h)
 *   contents.c        what its blocks say
 *   parts.c           thread table, histograms, triggers, crashes of either
 *   chunk.c           records of a chunk
 *   timebase.c        ticks to nanoseconds
 *   definitions.c     what ids mean
 *   stretch.c         the stretches of records of all inputs, in order
 *   cut.c             leaving out records at the ends of a stretch
 *   merge.c           events in the order of time
 *   event.c           what stands in an event
 *   facts.c           processes, threads, losses, triggers, crashes
 *   agent.c           what an agent adds: gaps, sentinels, who was not recorded
 *   symbols.c         what code addresses are called
 *   problem.c         what is wrong with the input
 *   damage.c          how much of it cannot be read
 */
#ifndef TACHO_READ_READER_H
#define TACHO_READ_READER_H

#include <stddef.h>
#include <stdint.h>

#include "format/box.h"
#include "format/trace.h"
#include "read/block.h"
#include "read/definitions.h"
#include "read/input.h"
#include "read/memory.h"
#include "read/news.h"
#include "read/records.h"
#include "read/timebase.h"
#include "tacho_read.h"

#define TACHO__PROBLEMS_MAX 1000u

/* CLOCK_REALTIME and CLOCK_MONOTONIC at one instant. */
struct tacho__wall {
	uint64_t mono_ns, real_ns;
};

/* Of one code address, from a SYMBOLS block. */
struct tacho__symbol {
	uint64_t address;
	uint32_t module;
	uint32_t count;
	const struct tacho_symbol *frames;
};

struct tacho__process {
	struct tacho_process pub;
	int known;	  /* its identity is: files of one process can be told to be that */
	int clock_back;	  /* told that times of a stream went back */
	uint64_t last_ns; /* of its records */
	struct tacho__definitions definitions;
	uint64_t losses[TACHO_LOSS_MAX];
	uint64_t dropped_at_end; /* records, after the last that a thread found room for */
	uint64_t limits[TACHO_SENTINEL_MAX]; /* of a box: what an agent asked to hear of */
	struct tacho_box_source sources[TACHO_SOURCE_MAX];
	struct tacho__wall *walls;
	uint32_t wall_count, wall_capacity;
	struct tacho__symbol *symbols; /* sorted once all are there */
	uint32_t symbol_count, symbol_capacity;
};

/* A record that stands in no chunk: a poll still pending, counts still open. They come
   after all records of their thread's stream 0. */
struct tacho__tail {
	uint32_t thread;
	uint32_t type_arg;
	uint64_t ns;
	uint32_t words;
	const uint64_t *word;
};

/* One box, or one part of a trace file. */
struct tacho__source {
	struct tacho__input *input;
	uint32_t process; /* UINT32_MAX: not known yet, or not wanted */
	uint32_t tag;	  /* of a trace file */
	uint64_t segment; /* its number; 0: it is none */
	struct tacho__timebase timebase;
	struct tacho__tail *tails;
	uint32_t tail_count, tail_capacity;
	uint32_t bad_definitions;
	uint32_t dense_blocks; /* left out, see contents.c */
	uint64_t dense_events;
};

enum tacho__stretch_kind {
	TACHO__STRETCH_EVENTS, /* block of columns */
	TACHO__STRETCH_CHUNK,  /* block that holds a chunk */
	TACHO__STRETCH_COPY,   /* chunk of a box, copied */
	TACHO__STRETCH_TAIL,   /* nothing but tails */
};

struct tacho__stretch_info {
	struct tacho__stretch pub;
	uint32_t source;
	uint8_t kind;
	uint8_t known;	  /* sequence, prior and count are */
	uint8_t bad;	  /* found to be damaged, and reported */
	uint8_t listed;	  /* EVENTS: thread, stream and bounds are from the index */
	uint8_t hidden;	  /* by the limits */
	uint8_t is_state; /* it lies before the limits, and tells the state where they begin */
	uint32_t count;
	uint32_t kept; /* not 0: of the records so many; another stretch has the others */
	uint64_t prior;
	uint64_t first_ns, last_ns;		/* EVENTS: what the block must say */
	uint64_t state_first_ns, state_last_ns; /* if is_state: its bounds without limits */
	uint32_t tid;				/* of its thread; 0 while only the index was read */
	char name[16];
	uint64_t offset; /* of the block, or of the chunk in the box */
	uint32_t size;	 /* of the block, or of the copy */
	uint32_t tail_first, tail_count;
	uint8_t *copy;
};

struct tacho__merge;

/* Two files of one process compare their clocks apart: the same record may lie this far
   from itself. */
#define TACHO__SAME_NS 1000000u

struct tacho_reader {
	struct tacho_read_options options;
	/* Processes that the options leave out: how many parts, and the names of some. */
	uint32_t unwanted;
	char unwanted_names[200];
	uint32_t unwanted_pid;		/* the last of them */
	uint32_t only;			/* process whose events are read; UINT32_MAX: all */
	const struct tacho__news *news; /* while a box is opened: what is wanted of it; else NULL */
	uint64_t from_ns, to_ns;	/* of all three limits together */
	uint64_t progress_done, progress_at;
	struct tacho__arena arena;
	uint64_t input_bytes;	/* backed, of all inputs: measure for what may be held */
	uint64_t events_excess; /* beyond TACHO__EVENTS_PER_BYTE, of all blocks */

	struct tacho__source *sources;
	uint32_t source_count, source_capacity;
	struct tacho__process **processes;
	uint32_t process_count, process_capacity;
	struct tacho_thread **threads;
	uint32_t thread_count, thread_capacity;
	struct tacho_trigger_info **triggers;
	uint32_t trigger_count, trigger_capacity;
	struct tacho_crash_info **crashes;
	uint32_t crash_count, crash_capacity;
	struct tacho_gap *gaps; /* sorted once all are there */
	uint32_t gap_count, gap_capacity;
	struct tacho_absent *absent; /* sorted once all are there */
	uint32_t absent_count, absent_capacity;
	uint32_t loss_count; /* those that are known, and all before the last one counted */
	const char *unknown_losses[TACHO_LOSS_MAX]; /* names of those that are not */
	struct tacho_problem **problems;
	uint32_t problem_count, problem_capacity;

	struct tacho__stretch_info *stretches;
	uint32_t stretch_count, stretch_capacity;
	uint32_t stretch_hidden; /* so many more lie behind the others */
	struct tacho__merge *merge;
	struct tacho_event event; /* that was handed out last */

	struct tacho__block_room room;
};

/* What only the host on which a box lies can tell, see open.c. */
struct tacho__host {
	int alive;     /* enum tacho_alive */
	int same_boot; /* `now` is on the clocks of the box */
	int earlier;   /* the host was restarted since */
	uint32_t arch; /* ELF e_machine of this host */
	/* Of a process that runs: its parent, 0 not known; its arguments, "" not known. */
	uint32_t parent_pid;
	char command_line[TACHO_COMMAND_LINE_MAX];
	struct tacho_anchor now;
};

/* ---------------------------------------------------------------- reader.c */

/* Both take the input over, also when they fail. */
int tacho__reader_add(struct tacho_reader *r, struct tacho__input *in,
		      const struct tacho__host *host, char *message, size_t message_size);
int tacho__reader_new(struct tacho_reader **out, const struct tacho_read_options *options,
		      char *message, size_t message_size);
/* 1: the options do not leave the process out. */
int tacho__reader_wants(struct tacho_reader *r, const struct tacho_process *p);
/* Once all inputs were added. */
int tacho__reader_settle(struct tacho_reader *r, char *message, size_t message_size);

/* Gives an answer of `size` bytes to a caller who may have been built with an older or newer
   struct; `out` is its member `size`. -EINVAL: that is less than `least`. The macro asks for room
   for one member: `second` is the one behind it. */
int tacho__answer(size_t *out, const void *answer, size_t size, size_t least);
#define TACHO__ANSWER(out, answer, second) \
	tacho__answer(&(out)->size, answer, sizeof(*(out)), offsetof(__typeof__(*(out)), second))

void tacho__say(char *message, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A problem of a source; `name` is a literal. */
void tacho__problem(struct tacho_reader *r, uint32_t source, const char *name, uint64_t offset,
		    uint64_t size, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same for a file that could not be added. */
void tacho__problem_path(struct tacho_reader *r, const char *path, const char *name,
			 const char *text);
void tacho__progress(struct tacho_reader *r, uint64_t done, uint64_t total);

/* ------------------------------------------------------- box.c and trace.c */

/* 1: it is one (or was, and can still be told to be). */
int tacho__is_box(struct tacho__input *in);
int tacho__box_add(struct tacho_reader *r, uint32_t source, const struct tacho__host *host,
		   char *message, size_t message_size);
int tacho__trace_add(struct tacho_reader *r, uint32_t source, char *message, size_t message_size);

/* ----------------------------------------------------------------- split.c */

struct tacho__split {
	uint64_t *from; /* where parts begin, in order; each goes on to the next. To free */
	uint32_t count, capacity;
	int cut; /* there are more before the first */
};
int tacho__split(struct tacho__split *s, struct tacho__input *in);

/* ----------------------------------------------------------------- block.c */

/*
 * Reads, checks and decodes the block of `type` at `offset`. *data lives until the next
 * block is loaded. -EBADMSG: damaged, and the problem is noted.
 */
int tacho__block_load(struct tacho_reader *r, uint32_t source, uint64_t offset, uint64_t size,
		      uint16_t type, const uint8_t **data, uint32_t *data_size);

/* ----------------------------------------------------------------- parts.c */

/* The raw parts of a box or a trace file that are turned into facts once its clock is known. */
struct tacho__parts {
	struct tacho_box_thread *threads;
	uint32_t thread_count;
	struct tacho_box_underway *underway; /* of threads[i]; there may be fewer, or none */
	uint32_t underway_count;
	struct tacho_box_hist *hists;
	uint32_t hist_count;
	/* Histograms that already stand in records. */
	struct tacho__seen_hist {
		uint32_t thread, kind, loop;
		uint64_t since;
	} * seen;
	uint32_t seen_count, seen_capacity;
	/* The last poll that began in each chunk of stream 0, and the last record there. */
	struct tacho__seen_poll {
		uint32_t thread, kind;
		uint64_t task, ticks, last_ticks;
	} * polls;
	uint32_t poll_count, poll_capacity;
	/* Of the two lists above: a file may blow up to many times its size. */
	uint64_t limit;
};

int tacho__parts_threads(struct tacho_reader *r, uint32_t source, const struct tacho__parts *p);
/* Makes tails of pending polls and open histograms and puts them behind their streams;
   the source's stretches are [first, stretch_count). */
int tacho__parts_tails(struct tacho_reader *r, uint32_t source, struct tacho__parts *p,
		       uint32_t first);
int tacho__parts_trigger(struct tacho_reader *r, uint32_t source,
			 const struct tacho_box_trigger *t);
int tacho__parts_crash(struct tacho_reader *r, uint32_t source,
		       const struct tacho_trace_crash *crash);
void tacho__parts_free(struct tacho__parts *p);

/* ----------------------------------------------------------------- facts.c */

/* A process like `p`, or that of the same identity: *index. `p` is newer than what is
   known if its taken_mono_ns says so. */
int tacho__process_add(struct tacho_reader *r, const struct tacho_process *p, int known,
		       uint32_t *index);
int tacho__process_wall(struct tacho__process *p, uint64_t mono_ns, uint64_t real_ns);
/* The thread is there afterwards; with what `t` knows. Its name is copied. */
int tacho__thread_add(struct tacho_reader *r, const struct tacho_thread *t);
int tacho__facts_settle(struct tacho_reader *r);

/* ----------------------------------------------------------------- agent.c */

/* Entries of a GAPS block. 0 or -ENOMEM; those that cannot be are left out and reported. */
int tacho__gaps_add(struct tacho_reader *r, uint32_t source, const struct tacho__array *gaps);
/* Sorts them and leaves out what several files tell of one. */
void tacho__gaps_settle(struct tacho_reader *r);
/* The same of an ABSENT block. */
int tacho__absent_add(struct tacho_reader *r, const struct tacho__array *absent);
void tacho__absent_settle(struct tacho_reader *r);
/* Of enum tacho_sentinel + 1; "" for 0, "unknown" for one of a newer tacho. */
const char *tacho__sentinel_name(uint32_t sentinel);

/* --------------------------------------------------------------- symbols.c */

/* A SYMBOLS block. 0, -EBADMSG: it does not hold what it says; -ENOMEM. */
int tacho__symbols_add(struct tacho_reader *r, struct tacho__process *p, const uint8_t *data,
		       uint32_t size);
void tacho__symbols_settle(struct tacho__process *p);

/* ----------------------------------------------------------------- chunk.c */

struct tacho__chunk_cursor {
	const uint8_t *data;
	uint32_t at, end;
	uint64_t ticks;
	uint32_t item, items; /* of a packed record: offsets of its next item, and of their end */
	uint32_t park;	      /* of END_PARK: 1 + the loop whose PARK comes next; 0: none */
};

struct tacho__raw_record {
	uint32_t type, arg, words;
	uint64_t ticks;
	uint64_t word[TACHO_RECORD_MAX_WORDS];
};

void tacho__chunk_begin(struct tacho__chunk_cursor *c, const uint8_t *chunk, uint32_t size);
/* 1: *record is the next (TIME dissolved, packed ones as those that they stand for); 0: the end;
   -EBADMSG: c->at is no record. */
int tacho__chunk_next(struct tacho__chunk_cursor *c, struct tacho__raw_record *record);

/* What walking through a chunk finds out. */
struct tacho__chunk_facts {
	uint32_t records, words;
	uint32_t valid; /* bytes, header included */
	uint64_t first_ticks, last_ticks;
	int bad; /* a record that is none ended it */
};

/* 0, -EBADMSG: `size` bytes at `chunk` are not a chunk; -ENOMEM. What histograms and
   pending polls are compared with is put into `p` if it is given. */
int tacho__chunk_walk(const uint8_t *chunk, uint32_t size, struct tacho__chunk_facts *facts,
		      struct tacho__parts *p);
int tacho__chunk_decode(const uint8_t *chunk, uint32_t size, const struct tacho__timebase *t,
			uint32_t extra_records, uint32_t extra_words, struct tacho__records *out);
/* 1: a record of this type must not be handed out: it is none, or lacks words. */
int tacho__record_is_bad(unsigned type, uint32_t words);
/* Fills in what the header and the facts of a chunk say; its times stay ticks until the
   clock is settled and the second call turns those of [first, stretch_count) into ns. */
void tacho__chunk_describe(const uint8_t *chunk, const struct tacho__chunk_facts *facts,
			   struct tacho__stretch_info *s);
void tacho__chunk_times(struct tacho_reader *r, uint32_t source, uint32_t first);

/* --------------------------------------------------------------- stretch.c */

int tacho__stretch_add(struct tacho_reader *r, const struct tacho__stretch_info *s);
/* Orders all stretches, leaves out what is there twice, applies the limits. */
int tacho__stretches_settle(struct tacho_reader *r);
/* Leaves only the records of [from_ns, to_ns]; what is open at from_ns goes into the head. */
void tacho__records_cut(struct tacho__records *r, uint64_t from_ns, uint64_t to_ns);
/* Leaves only the first n, of which there are more. */
void tacho__records_keep(struct tacho__records *r, uint32_t n);

/* ----------------------------------------------------------------- merge.c */

void tacho__merge_free(struct tacho_reader *r);

#endif
