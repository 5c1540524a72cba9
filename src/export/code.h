/*
 * Places of code that stacks run through: looked up once, numbered in the order of appearance.
 *
 * An address stands for its function and those that it was inlined into. Memory: one entry for
 * each address that occurs, up to a bound; what is beyond has no entry.
 */
#ifndef TACHO_EXPORT_CODE_H
#define TACHO_EXPORT_CODE_H

#include <stdint.h>

#include "model/language.h"
#include "model/model.h"
#include "model/table.h"

#define TACHO__CODES_MAX (1u << 18)
#define TACHO__STACK_MAX 512u /* frames of one stack that are looked at */

struct tacho__code_line {
	const char *function; /* "": not known */
	const char *file;
	uint32_t line;
};

struct tacho__code {
	struct tacho__entry entry;
	uint32_t id;		/* from 1 */
	uint32_t first, count;	/* of its lines, innermost first; 0: nothing is known */
	uint32_t kernel;	/* 1: code of the kernel */
	uint32_t tachos;	/* 1: tacho's own, that no stack shows */
	uint32_t process, mark; /* mark: for whoever uses it, 0 at first */
	uint64_t address;	/* inside of the call, not behind it */
	const struct tacho_definition *module; /* NULL: not known */
};

struct tacho__codes {
	const struct tacho_reader *reader;
	struct tacho__table table;
	struct tacho__code_line *lines;
	uint32_t line_count, line_room;
	char advice
		[TACHO__LANGUAGE_TEXT]; /* how to see functions of a script; "": none is hidden */
	int scripts;			/* 1: some of these are there */
};

/* A stack as the model hands it out. */
struct tacho__stack {
	uint32_t process;
	const uint64_t *frames; /* innermost first */
	uint32_t count, kernel; /* of these the first `kernel` are the kernel's */
	int exact;		/* the first is no return address */
	uint64_t ns;
};

void tacho__codes_init(struct tacho__codes *c, const struct tacho_reader *reader);
void tacho__codes_free(struct tacho__codes *c);
/* Forgets all, and goes on. */
void tacho__codes_clear(struct tacho__codes *c);

/* The code of frame `index`. NULL: there is no room for it, or no memory (*error). It lives
   until the next call. */
struct tacho__code *tacho__code_of(struct tacho__codes *c, const struct tacho__stack *stack,
				   uint32_t index, int *error);
const struct tacho__code_line *tacho__code_line(const struct tacho__codes *c,
						const struct tacho__code *code, uint32_t index);

/* 0 when it has none. */
int tacho__stack_of_sample(const struct tacho_reader *reader, const struct tacho__sample *sample,
			   struct tacho__stack *stack);
int tacho__stack_of_id(const struct tacho_reader *reader, uint32_t process, uint32_t id,
		       uint64_t ns, struct tacho__stack *stack);
/* Two independent hashes of its addresses. */
void tacho__stack_hash(const struct tacho__stack *stack, uint64_t hash[2]);

/*
 * Which samples count. Where a thread has samples from perf, those of its own timer tell the
 * same time again.
 */
struct tacho__samplers {
	struct tacho__table threads;
};
void tacho__samplers_init(struct tacho__samplers *s);
void tacho__samplers_free(struct tacho__samplers *s);
/* *error: -ENOMEM when there is no memory. */
int tacho__sample_counts(struct tacho__samplers *s, const struct tacho__sample *sample, int *error);

#endif
