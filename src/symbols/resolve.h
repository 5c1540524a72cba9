/* Looking up one code address: in an ELF file with libdw, or in a perf map. */
#ifndef TACHO_SYMBOLS_RESOLVE_H
#define TACHO_SYMBOLS_RESOLVE_H

#include <stdint.h>
#include <sys/types.h>

#include "tacho_read.h"

struct tacho__resolver;

#define TACHO__SYMBOL_TEXT_MAX 4096u /* of a name that is kept; templates have no bounds */

/* One function that an address lies in. Texts live until the next call for the resolver. */
struct tacho__resolved {
	const char *function; /* NULL: not known */
	const char *file;     /* NULL: not known */
	uint32_t line;
};

/* NULL: out of memory. */
struct tacho__resolver *tacho__resolver_new(const struct tacho_process *process);
void tacho__resolver_free(struct tacho__resolver *r);

/* Does what tacho__resolve would need this process's rights for: reads the kernel's names. */
void tacho__resolver_prepare(struct tacho__resolver *r, const struct tacho_definition *module,
			     uint64_t address);

/*
 * The functions that `address` lies in, the innermost first, at most `most`; how many.
 * `module` is what held it, or NULL.
 */
uint32_t tacho__resolve(struct tacho__resolver *r, const struct tacho_definition *module,
			uint64_t address, struct tacho__resolved *out, uint32_t most);

/* Deletes the perf map of a process that has ended, if it is that user's. */
void tacho__perf_map_remove(uint32_t pid, uid_t uid);

#endif
