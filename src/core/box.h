/* Making the box: its folder, its file, its memory. */
#ifndef TACHO_CORE_BOX_H
#define TACHO_CORE_BOX_H

#include <stdint.h>

#include "core/options.h"
#include "core/recorder.h"

/*
 * Makes the box of this process by `options` and fills in tacho__rec; 0 or a negative
 * errno with a sentence in `reason`. Definitions of an earlier box of this process,
 * or of the process that it was forked from, are carried over with their ids.
 */
int tacho__box_make(const struct tacho__options *options, char *reason, size_t reason_size);

/* Leaves a superblock without regions that says why there is no recording, where it can. */
void tacho__box_make_off(const struct tacho__options *options, int error, const char *reason);

/* Removes the file of the box, if it is still there. */
void tacho__box_unlink(void);

/* Lets go of the memory of the box. Threads that are storing a record at this moment store
   it into nothing. */
void tacho__box_let_go(void);

/* Puts memory behind `size` bytes at `at`; 0, or a negative errno when there is none. */
int tacho__box_populate(uint8_t *at, uint64_t size);

/* The same for the first `end` bytes of a region that fills up from its start. */
int tacho__box_fill(enum tacho_region region, uint64_t end);

/* tmpfs has no more memory: the box says so, once, and stays at its size. */
void tacho__box_is_full(int error);

/* Path of the box into `buf`. */
void tacho__box_path(char *buf, size_t size);

/* Whether the last box that was made is of this process, and not of one that it was forked from. */
int tacho__box_is_own(void);

/* After fork, in the child, before anything else: see box.c. */
void tacho__box_forked(int storing);

void tacho__set_reason(struct tacho_box_super *super, const char *reason);

#endif
