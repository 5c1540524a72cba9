/*
 * Symbols: which function, file and line the code addresses of a trace belong to.
 *
 * Addresses are collected while a trace is written and looked up at the end, in the files
 * that the process had mapped: by path, as far as the build-id says that it is still the
 * same file, else by build-id among the system's separate debug files, and on debuginfod
 * servers when that was allowed (debuginfod.h); code that no file
 * holds in the perf map of the process; the kernel's in /proc/kallsyms, as long as it is
 * the kernel that ran then.
 */
#ifndef TACHO_AGENT_SYMBOLS_H
#define TACHO_AGENT_SYMBOLS_H

#include <stdint.h>

#include "agent/trace_output.h"
#include "read/records.h"

struct tacho_reader;

/* Addresses that wait for being looked up. Begins all zero. */
struct tacho__addresses {
	uint64_t *at;
	size_t count, capacity;
};

/* Both 0 or -ENOMEM. */
int tacho__addresses_of_facts(struct tacho__addresses *a, const struct tacho_reader *reader,
			      uint32_t process);
int tacho__addresses_of_records(struct tacho__addresses *a, const struct tacho__records *records);
void tacho__addresses_free(struct tacho__addresses *a);

/*
 * Writes SYMBOLS blocks for what can be found out about the addresses, which are sorted on
 * the way. 0 or a negative errno with a sentence in o->message.
 */
int tacho__put_symbols(struct tacho__output *o, const struct tacho_reader *reader, uint32_t process,
		       struct tacho__addresses *a);

#endif
