/*
 * What ids, addresses and threads of a trace are called, as text and as JSON.
 */
#ifndef TACHO_ANSWER_DESCRIBE_H
#define TACHO_ANSWER_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "text/json.h"
#include "model/place.h"
#include "tacho_read.h"

/* "name (file:line)", "(not given)" for id 0, "(id 5 is not in the trace)". */
void describe_id(FILE *out, const struct tacho_reader *reader, uint32_t process, uint32_t id,
		 uint64_t ns);
/* {"id", "class", "name", ...}; null for id 0. Stacks have frames. */
void describe_id_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
		      uint32_t id, uint64_t ns);

/*
 * "function (file:line)", with the functions that it was inlined into; "libfoo.so+0x123" where
 * the trace has no symbols for it; the address where no module holds it. A return address
 * (`is_return`) stands for the call before it.
 */
void describe_address(FILE *out, const struct tacho_reader *reader, uint32_t process,
		      uint64_t address, uint64_t ns, bool is_return);
/* {"address", "module", "offset"}, and "function", "file", "line", "inlined_into" as known */
void describe_address_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			   uint64_t address, uint64_t ns, bool is_return);

/* The same; with "kernel": true for code of the kernel. */
void describe_frame_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			 uint64_t address, uint64_t ns, bool is_return, bool kernel);

/* Members of a place: "function", "file", "line", "module", "offset". */
void describe_place_json(struct json *j, const struct tacho__place *p);
/* The tid; null for NULL. */
void describe_thread_json(struct json *j, const char *key, const struct tacho_thread *t);
/* The member "alive"; null: not known. */
void describe_alive_json(struct json *j, int alive);

struct describe_stack {
	const uint64_t *frames;
	uint32_t count;
	bool exact; /* the first was interrupted, and is no return address */
	bool cut;
};
/* "[f < g < h]" */
void describe_stack(FILE *out, const struct tacho_reader *reader, uint32_t process,
		    const struct describe_stack *stack, uint64_t ns);
/* The member "frames". */
void describe_stack_json(struct json *j, const struct tacho_reader *reader, uint32_t process,
			 const struct describe_stack *stack, uint64_t ns);

/* The trigger of that number; NULL: the trace does not hold it (any more). */
const struct tacho_trigger_info *describe_trigger(const struct tacho_reader *reader,
						  uint32_t process, uint64_t number);
/* What a sentinel compares, in its unit; fills `out` (TEXT_SMALL bytes) and returns it. */
const char *describe_sentinel_value(char *out, const char *sentinel, uint64_t value);
/* Members `sentinel` and `value`; NULL: they are null. */
void describe_trigger_json(struct json *j, const struct tacho_trigger_info *trigger);

#endif
