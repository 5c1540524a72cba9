/*
 * Limits how many of the windows that were saved stay on disk, and how many bytes. Whoever has most
 * of them loses the oldest of theirs first: nobody's are pushed out by another's.
 *
 * Only files that it was told of are ever deleted, and only while the path still leads to the
 * very file that was there then: one that was moved away, replaced or made a link of is left
 * alone, and no longer counted.
 */
#ifndef TACHO_AGENT_KEEP_H
#define TACHO_AGENT_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct tacho__keep; /* files, by their paths */

/* files, bytes: 0 for no limit. NULL without memory. */
struct tacho__keep *tacho__keep_new(uint32_t files, uint64_t bytes);
/* A file was written about a process of user `uid`. Deletes the oldest ones above the limits, never
   this one; how many. */
unsigned tacho__keep_add(struct tacho__keep *k, const char *path, uint64_t bytes, uint32_t uid);
void tacho__keep_free(struct tacho__keep *k);

#endif
