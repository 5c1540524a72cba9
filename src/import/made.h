/*
 * A trace being made of the events of another recorder: in memory, then written by the same
 * writer as all traces (write/), so that src/read opens it as any other.
 *
 *   m = tacho__made_new();
 *   tacho__made_about(m, &about);
 *   thread = tacho__made_thread(m, tid, "worker-0");
 *   kind = tacho__made_name(m, TACHO_DEF_KIND, "main.handle");
 *   tacho__made_put(m, thread, ns, TACHO_REC_POLL_BEGIN, kind, &task, 1);
 *   ...
 *   tacho__made_write(m, fd, &result, message, sizeof(message));
 *   tacho__made_free(m);
 *
 * Threads may come in any order, and their events too: those of a thread are sorted by time
 * when the trace is written; what is at one time keeps its order. What is given may be hostile:
 * texts, stacks and numbers of things are cut where the format ends, and that is counted in the
 * trace. Only a lack of memory is an error: it stays, and tacho__made_write says it; until then
 * nothing has to be checked.
 *
 * What the source does not know is left out, never given as 0.
 */
#ifndef TACHO_IMPORT_MADE_H
#define TACHO_IMPORT_MADE_H

#include <stddef.h>
#include <stdint.h>

#include "format/box.h"
#include "format/definition.h"
#include "tacho_read.h"
#include "write/trace_write.h"

struct tacho__made;

#define TACHO__LIBRARY_MODULE "[library]" /* model/place.c knows it */
#define TACHO__MADE_THREADS_MAX 65536u
#define TACHO__MADE_EVENTS_MAX (1u << 27) /* however long the files are */
#define TACHO__MADE_NO_THREAD UINT32_MAX  /* events of it are counted as lost */

/* NULL: out of memory. */
struct tacho__made *tacho__made_new(void);
void tacho__made_free(struct tacho__made *m);

/* The events come from a file of so many bytes, as it lies on the disk. There are no more than such files
   can hold (read/records.h): others are counted as lost. */
void tacho__made_bytes(struct tacho__made *m, uint64_t bytes);

/* What is known of the process; NULL and 0: not known. Copied; a later call adds what it knows. */
struct tacho__made_about {
	uint32_t pid;
	const char *imported; /* "a Go 1.26 execution trace" */
	const char *name;     /* of the program, at most 15 bytes are kept */
	const char *command_line, *exe, *service, *host;
};
void tacho__made_about(struct tacho__made *m, const struct tacho__made_about *about);
/* The same instant on CLOCK_MONOTONIC, or what the source has instead, and on the wall clock. */
void tacho__made_anchor(struct tacho__made *m, uint64_t mono_ns, uint64_t real_ns);
/* A source of the recording (enum tacho_source) was on. */
void tacho__made_source(struct tacho__made *m, uint32_t source);
/* A sentence about what this trace lacks, for who reads it: "the file is cut after ...". The same
   sentence again is not kept, nor what is too much. */
void tacho__made_say(struct tacho__made *m, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Something is missing from `from_ns` to `to_ns`; events: how many, 0 not known. */
void tacho__made_lost(struct tacho__made *m, uint64_t from_ns, uint64_t to_ns, uint64_t events);

/*
 * Definitions; each returns its id, the same for the same. `d->id` is ignored, texts may be NULL. Without
 * room for another it is that of "(names full)".
 */
uint32_t tacho__made_define(struct tacho__made *m, const struct tacho_definition *d);
uint32_t tacho__made_name(struct tacho__made *m, enum tacho_definition_class class,
			  const char *name);
/* Of a KIND or PLACE, with its place in the code. */
uint32_t tacho__made_place(struct tacho__made *m, enum tacho_definition_class class,
			   const char *name, const char *file, uint32_t line);
/* A number for a frame of a stack, whose name goes with it into the trace. */
uint64_t tacho__made_frame(struct tacho__made *m, const char *function, const char *file,
			   uint32_t line);
/* The same for one that the program only calls: the library of its language, its runtime. What is to
   blame is looked for elsewhere. */
uint64_t tacho__made_library_frame(struct tacho__made *m, const char *function, const char *file,
				   uint32_t line);
/* A stack of such frames, innermost first. `cut`: there were more. 0: no frames. */
uint32_t tacho__made_stack(struct tacho__made *m, const uint64_t *frames, uint32_t count, int cut);

/* A new thread, whose number it returns. tid 0: the source does not say. */
uint32_t tacho__made_thread(struct tacho__made *m, uint32_t tid, const char *name);
void tacho__made_thread_name(struct tacho__made *m, uint32_t thread, const char *name);
/* Nothing is known of it after its last event: what it does then is not said. */
void tacho__made_thread_ends(struct tacho__made *m, uint32_t thread);

/* What a thread was in when the source begins to tell of it, and since when is not known: it ran
   `loop`, or was parked there; then, if it was in one, a poll. */
void tacho__made_ran(struct tacho__made *m, uint32_t thread, uint32_t loop, int parked);
void tacho__made_polled(struct tacho__made *m, uint32_t thread, uint32_t kind, uint64_t task);

/*
 * An event: a record of format/record.h with its argument and `count` payload words. Of a variable
 * record the low 16 bits of words[0] are set here. What is no record of the format is counted as
 * lost.
 */
void tacho__made_put(struct tacho__made *m, uint32_t thread, uint64_t ns, unsigned type,
		     uint32_t arg, const uint64_t *words, uint32_t count);
/* The kind of a poll that is known only later: the argument of the event of the thread that was put
   as number `index`, from 0, or of what it was in at first. */
#define TACHO__MADE_POLLED UINT32_MAX
uint32_t tacho__made_index(const struct tacho__made *m, uint32_t thread);
void tacho__made_learn(struct tacho__made *m, uint32_t thread, uint32_t index, uint32_t kind);
/* A LOG event. */
void tacho__made_log(struct tacho__made *m, uint32_t thread, uint64_t ns, uint32_t level,
		     const char *text);
/* A text as it stands in records, from its word of length on: how many words, at most
   TACHO__MADE_TEXT_WORDS. */
#define TACHO__MADE_TEXT_WORDS (1u + TACHO_TEXT_MAX / 8u)
uint32_t tacho__made_pack(uint64_t *words, const char *text, size_t size);

uint64_t tacho__made_events(const struct tacho__made *m);
/* 0 or -ENOMEM. */
int tacho__made_error(const struct tacho__made *m);
/* An importer has no memory for what it has to remember: returns -ENOMEM, which stays. */
int tacho__made_no_memory(struct tacho__made *m);

/* It will be read once and thrown away: what is written is not compressed. */
void tacho__made_for_once(struct tacho__made *m);
/* Writes it to `fd`; once. 0 or a negative errno with a sentence. */
int tacho__made_write(struct tacho__made *m, int fd, struct tacho__trace_result *result,
		      char *message, size_t message_size);

#endif
