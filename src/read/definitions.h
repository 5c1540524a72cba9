/* Definitions of one process (format/definition.h), by id. */
#ifndef TACHO_READ_DEFINITIONS_H
#define TACHO_READ_DEFINITIONS_H

#include <stdint.h>

#include "read/memory.h"
#include "read/timebase.h"
#include "tacho_read.h"

struct tacho__definitions {
	struct tacho_definition **table; /* open addressing: as large as there are many */
	uint32_t count, capacity;	 /* capacity is a power of two or 0 */
	uint32_t limit;			 /* ids are below */
	const struct tacho_definition **modules;
	uint32_t module_count, module_capacity;
};

/* As it stands in a box or a DEFINITIONS block. */
struct tacho__raw_definition {
	uint32_t id;
	uint8_t def_class, flags;
	uint16_t size;
	const uint8_t *payload;
};

/*
 * 1: added; 0: nothing to add (there is one of this id already, and definitions never
 * change; or a class of a newer recorder); -EBADMSG: it is not well-formed; -ENOMEM.
 */
int tacho__definitions_add(struct tacho__definitions *d, struct tacho__arena *arena,
			   const struct tacho__timebase *timebase,
			   const struct tacho__raw_definition *raw);
const struct tacho_definition *tacho__definitions_get(const struct tacho__definitions *d,
						      uint32_t id);
/* Once all are there. */
void tacho__definitions_settle(struct tacho__definitions *d);
const struct tacho_definition *tacho__definitions_module(const struct tacho__definitions *d,
							 uint64_t address, uint64_t ns);
void tacho__definitions_free(struct tacho__definitions *d);

#endif
