/* The blocks of a trace file that are not records, from what a reader tells. */
#ifndef TACHO_WRITE_TRACE_PARTS_H
#define TACHO_WRITE_TRACE_PARTS_H

#include "symbols/addresses.h"
#include "write/trace_output.h"
#include "write/trace_write.h"

/* All return o->error. */

struct tacho_definition;
struct tacho_process;

int tacho__put_meta(struct tacho__output *o, const struct tacho_process *p,
		    const struct tacho__trace_options *options);
/* What is known only once all records were read, where there is something to tell. */
int tacho__put_meta_after(struct tacho__output *o, uint64_t unread, uint64_t cut_before_ns);
/* Why some code addresses have no names. */
int tacho__put_meta_names(struct tacho__output *o, const char *why);
int tacho__put_clock(struct tacho__output *o, struct tacho_reader *reader, uint32_t process);
int tacho__put_sources(struct tacho__output *o, const struct tacho_reader *reader,
		       uint32_t process);
int tacho__put_threads(struct tacho__output *o, const struct tacho_reader *reader,
		       uint32_t process);
int tacho__put_losses(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process);
int tacho__put_triggers(struct tacho__output *o, const struct tacho_reader *reader,
			uint32_t process);
int tacho__put_crashes(struct tacho__output *o, const struct tacho_reader *reader,
		       uint32_t process);
/* An array of what a block of `type` holds; what a block has no room for is left out. */
int tacho__put_array(struct tacho__output *o, enum tacho_block_type type, const void *entries,
		     size_t entry_size, uint32_t count);
/* Gaps sorted by from_ns; without any, no block. */
int tacho__put_gaps(struct tacho__output *o, const struct tacho_trace_gap *gaps, uint32_t count);
/* Those that the reader knows of the process, and those of the options. */
int tacho__put_all_gaps(struct tacho__output *o, const struct tacho_reader *reader,
			const struct tacho__trace_options *options);
/* Processes that were not recorded; without any, no block. */
int tacho__put_absent(struct tacho__output *o, const struct tacho_reader *reader,
		      const struct tacho__trace_options *options);
/* trace_definitions.c. One entry of a DEFINITIONS block, head and payload; of a schema with too many
   fields nothing. */
void tacho__definition_put(struct tacho__bytes *b, const struct tacho_definition *d);
/* Definitions of one block: few enough that one damaged block does not take them all. */
#define TACHO__DEFINITIONS_BYTES (128u << 10)
int tacho__put_definitions(struct tacho__output *o, const struct tacho_reader *reader,
			   uint32_t process);
/* trace_symbols.c: SYMBOLS blocks for what can be found out about the addresses, which are sorted
   on the way. */
int tacho__put_symbols(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process,
		       struct tacho__addresses *a);

#endif
