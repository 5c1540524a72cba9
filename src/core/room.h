/*
 * How much memory the box may take.
 *
 * The pages of a box are taken from a file system that the program may use as well, and count
 * against the memory limit of its cgroup, where the kernel kills when there is none left. So
 * before a box grows, somebody has to say that it may. See room.c for the rules.
 */
#ifndef TACHO_CORE_ROOM_H
#define TACHO_CORE_ROOM_H

#include <stddef.h>
#include <stdint.h>

#include "core/options.h"

/* A box that may not take this much is not made. */
#define TACHO__ROOM_LEAST (128u << 10)

/*
 * Before the box is made in the folder `dir`, which is at `path`: the size to lay it out for, at
 * most options->max_bytes. 0 when not even the smallest fits, with a sentence in `reason`. A
 * sentence is there also when the box will not become as large as max_bytes; it is "" else.
 */
uint64_t tacho__room_plan(const struct tacho__options *options, int dir, const char *path,
			  char *reason, size_t reason_size);

/* Claims the first `size` bytes, once the superblock can be stored to; 0 or -EDQUOT with a sentence
   in `reason`. */
int tacho__room_claim(int dir, uint64_t size, char *reason, size_t reason_size);

/* Where all the memory must be taken at once: the size to take, at most `size`; 0 when not even the
   smallest box fits, with a sentence in `reason`. */
uint64_t tacho__room_whole(int dir, uint64_t size, char *reason, size_t reason_size);

/* Counts `size` more bytes as taken; 0, or -EDQUOT when the box may not grow by them. */
int tacho__room_take(uint64_t size);
/* They could not be had. */
void tacho__room_give_back(uint64_t size);

/* Whether the pool may grow by `size` bytes. */
int tacho__room_for(uint64_t size);

#endif
