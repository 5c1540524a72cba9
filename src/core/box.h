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

/* Fills in all of the superblock but state, magic and regions. `before`: the process whose box was made
   before this one, this one or its parent; 0: none. */
void tacho__box_describe(struct tacho_box_super *super, const struct tacho__options *options,
			 uint32_t before);

/* Leaves a superblock without regions that says why there is no recording, where it can. */
void tacho__box_make_off(const struct tacho__options *options, int error, const char *reason);

/* Removes the file of the box, if it is still there. 0 or a negative errno. */
int tacho__box_unlink(void);
/* Gives back the memory of its records. Nobody stores any more: that might find no memory. */
void tacho__box_empty(void);

/* Lets go of the memory of the box. Threads that are storing a record at this moment store
   it into nothing. */
void tacho__box_let_go(void);

/* Puts memory behind `size` bytes at `at`; 0, or a negative errno when there is none or the box may
   not have it. */
int tacho__box_populate(uint8_t *at, uint64_t size);

/* The same for the first `end` bytes of a region that fills up from its start. */
int tacho__box_fill(enum tacho_region region, uint64_t end);

/* Path of the box into `buf`. */
void tacho__box_path(char *buf, size_t size);

/* Whether the last box that was made is of this process, and not of one that it was forked from. */
int tacho__box_is_own(void);

/* Whether the process can still act for the user and group that the last box was made for; 1 also when
   nothing of that box is mapped. The other is quick, and may suspect what is right. */
int tacho__box_is_of_user(void);
int tacho__box_is_suspect(void);
/* Puts a private copy of the definitions in the place of what is mapped of the last box, its pool aside.
   No other thread uses it. 0, or -ENOMEM: the definitions are lost, and there can be no other box. */
int tacho__box_renounce(void);

/*
 * In a handler of a fault that code of the recorder ran into: if there was a box at `address`, somebody
 * has unmapped, protected or truncated it. Then recording ends, memory of nobody takes the place of that
 * page, and the result is 1: the code goes on.
 */
int tacho__box_is_gone(const void *address);

/* After fork, in the child, before anything else: see box.c. */
void tacho__box_forked(int storing);

void tacho__set_reason(struct tacho_box_super *super, const char *reason);

#endif
