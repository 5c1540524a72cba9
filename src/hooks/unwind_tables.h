/*
 * .eh_frame: which bytes describe the frame of a function, and how they are read.
 *
 * The tables are those of the program and its libraries, as the unwinder of their compiler
 * uses them. Found without a lock, and nothing is allocated.
 */
#ifndef TACHO_HOOKS_UNWIND_TABLES_H
#define TACHO_HOOKS_UNWIND_TABLES_H

#include <stdint.h>

/* Bytes that are taken from the front; beyond the end there are zeros. */
struct tacho__cursor {
	const uint8_t *at, *end;
};

/* A number of so many bytes, at most eight. */
uint64_t tacho__table_get(struct tacho__cursor *c, unsigned size);
/* Numbers of any length, seven bits a byte (LEB128). */
uint64_t tacho__table_uleb(struct tacho__cursor *c);
int64_t tacho__table_sleb(struct tacho__cursor *c);

/* What describes the frame of one function. */
struct tacho__frame_table {
	uint64_t begin; /* of the function */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	int is_signal;			  /* the frame that the kernel makes for a handler */
	struct tacho__cursor common, own; /* instructions */
};

/* A module: its addresses, and where its tables are (.eh_frame_hdr). */
struct tacho__tables {
	uint64_t start, end;
	const void *header; /* NULL: it has none */
};

/* Libraries may have been loaded: their tables become known. In the constructor and after dlopen. */
void tacho__tables_refresh(void);
/* Finds the module that holds `pc`, unless it is this one already; 0: there is none. */
int tacho__tables_find(struct tacho__tables *t, uint64_t pc);
/* The table for the function that holds `pc`; 0: there is none. */
int tacho__table_describe(struct tacho__frame_table *d, const struct tacho__tables *t, uint64_t pc);

#endif
