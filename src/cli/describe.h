/*
 * What ids, addresses and threads of a trace are called, as text and as JSON.
 */
#ifndef TACHO_CLI_DESCRIBE_H
#define TACHO_CLI_DESCRIBE_H

#include <stdint.h>
#include <stdio.h>

#include "cli/json.h"
#include "tacho_read.h"

/* "name (file:line)", "(not given)" for id 0, "(id 5 is not in the trace)". */
void describe_id(FILE *out, const struct tacho_reader *reader, uint32_t process, uint32_t id,
		 uint64_t ns);
/* {"id", "class", "name", ...}; null for id 0. Stacks have frames. */
void describe_id_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
		      uint32_t id, uint64_t ns);

/* "libfoo.so+0x123", or the address where no module holds it. */
void describe_address(FILE *out, const struct tacho_reader *reader, uint32_t process,
		      uint64_t address, uint64_t ns);
/* {"address", "module", "offset"} */
void describe_address_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			   uint64_t address, uint64_t ns);

#endif
