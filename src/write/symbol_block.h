/* SYMBOLS blocks: what code addresses are called, one after the other until a block is full. */
#ifndef TACHO_WRITE_SYMBOL_BLOCK_H
#define TACHO_WRITE_SYMBOL_BLOCK_H

#include "symbols/resolve.h"
#include "write/trace_output.h"

/* Begins all zero. */
struct tacho__symbol_block {
	struct tacho_trace_symbols head;
	struct tacho__bytes entries, frames, texts;
	uint32_t *table; /* offset of a text + 1, by its hash; 0: none */
	uint32_t capacity, used;
};

/* The functions that `address` lies in, the innermost first; `module`: definition of what held it,
   0: code that no file holds. */
void tacho__symbols_put(struct tacho__output *o, struct tacho__symbol_block *b, uint32_t module,
			uint64_t address, const struct tacho__resolved *found, uint32_t count);
/* The last block, after which `b` holds nothing. Returns o->error. */
int tacho__symbols_end(struct tacho__output *o, struct tacho__symbol_block *b);

void tacho__symbols_no_memory(struct tacho__output *o);

#endif
