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
#ifndef TACHO_SYMBOLS_ADDRESSES_H
#define TACHO_SYMBOLS_ADDRESSES_H

#include <stddef.h>
#include <stdint.h>

#include "read/records.h"

struct tacho_reader;

/* Addresses that wait for being looked up. Begins all zero. */
struct tacho__addresses {
	uint64_t *at;
	size_t count, capacity;
};

#define TACHO__ADDRESSES_MAX (1u << 20) /* more are not looked up */

/* Both 0 or -ENOMEM. */
int tacho__addresses_of_facts(struct tacho__addresses *a, const struct tacho_reader *reader,
			      uint32_t process);
int tacho__addresses_of_records(struct tacho__addresses *a, const struct tacho__records *records);
/* By address, each once. */
void tacho__addresses_sort(struct tacho__addresses *a);
void tacho__addresses_free(struct tacho__addresses *a);

#endif
