/* What a trace that is being made (made.h) consists of: for made.c and made_write.c alone. */
#ifndef TACHO_IMPORT_MAKING_H
#define TACHO_IMPORT_MAKING_H

#include "format/underway.h"
#include "import/made.h"
#include "read/memory.h"
#include "read/records.h"
#include "write/trace_output.h"

#define TACHO__MADE_SAID 1024u
#define TACHO__MADE_GAPS 4096u

struct tacho__made_thread {
	struct tacho__records records;
	uint32_t tid;
	int unsorted, ends;
	struct tacho_underway at_first;
	char name[16];
};

struct tacho__made_frame {
	const char *function, *file; /* of the arena */
	uint32_t line;
	uint32_t module; /* definition; 0: of the program */
};

/* Numbers by the hash of what they stand for; open addressing, 0 is none. */
struct tacho__made_table {
	uint32_t *at;
	uint32_t capacity, used;
};

struct tacho__made {
	int error;
	uint8_t once;
	uint8_t full;		      /* there are as many events as there may be */
	struct tacho_process process; /* texts are of the arena */
	struct tacho__arena arena;
	struct tacho_anchor first, last; /* on the wall clock; real_ns 0: none */
	struct tacho_box_source sources[TACHO_SOURCE_MAX];
	uint64_t losses[TACHO_LOSS_COUNT];
	char said[TACHO__MADE_SAID];
	uint64_t bytes; /* of the files that they come from */
	uint64_t events;
	uint64_t lost; /* events that could not be put */

	struct tacho__made_thread *threads;
	uint32_t thread_count, thread_capacity;

	struct tacho_trace_gap *gaps;
	uint32_t gap_count, gap_capacity;

	struct tacho__bytes definitions;		/* entries as in DEFINITIONS blocks */
	size_t *definition_at;				/* by id */
	uint32_t definition_count, definition_capacity; /* ids are below definition_count */
	struct tacho__made_table definition_table;

	struct tacho__made_frame *frames;
	uint32_t frame_count, frame_capacity;
	struct tacho__made_table frame_table;
	uint32_t library; /* module of frames that are not the program's; 0: there are none */
};

/* Frames are given addresses in a row, far from those of code; those of libraries elsewhere. What is
   looked up for a return address is the byte before it. */
#define TACHO__MADE_FRAME_BASE 0x7a00000000000000ull
#define TACHO__MADE_LIBRARY_BASE 0x7b00000000000000ull
#define TACHO__MADE_LIBRARY_END 0x7c00000000000000ull
#define TACHO__MADE_FRAME_STEP 16u

/* What is looked up for frame `n`, from 1. */
static inline uint64_t tacho__made_address(const struct tacho__made_frame *f, uint32_t n)
{
	return (f->module ? TACHO__MADE_LIBRARY_BASE : TACHO__MADE_FRAME_BASE) +
	       (uint64_t)n * TACHO__MADE_FRAME_STEP;
}

#endif
