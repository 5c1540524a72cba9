/* The folder in which boxes lie. */
#ifndef TACHO_CORE_BOX_DIR_H
#define TACHO_CORE_BOX_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "core/options.h"

/*
 * Opens the folder for boxes, making it if need be: options->box_dir, or the first of
 * the default places that will do. Returns the descriptor with the path in `path`,
 * or a negative errno with a sentence in `reason`; one is there too, else "", when somebody else has
 * the place where the folder should be.
 */
int tacho__box_dir_open(const struct tacho__options *options, char *path, size_t path_size,
			char *reason, size_t reason_size);

#define TACHO__NOTE_DIRS 3
/* A folder for the note of a process that could not record, the nth that there may be. -errno if
   that is none; also one that it opens may not be writable. */
int tacho__note_dir_open(const struct tacho__options *options, int nth);

/* Deletes the oldest boxes of dead processes in the folder, so that at most `keep` stay. */
void tacho__box_dir_prune(int dir, uint32_t keep);

/*
 * The number of this process for others that see the same /proc, and its start time. In a pid
 * namespace of its own, with the /proc of the one around it, its own number is another process
 * there.
 */
uint32_t tacho__known_pid(uint64_t *start_time);

#endif
