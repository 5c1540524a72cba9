/*
 * Two traces compared: which kinds of callback and which spans got slower or faster.
 *
 * What is compared is the time that a callback took by itself: without callbacks inside of it, and
 * without the time in which the kernel let others run, where that was recorded. Durations of one
 * run scatter, and a whole run may be slower because of its neighbours. So each window is cut into
 * blocks of time, and a change counts only when
 *
 *   - the medians of the blocks differ by more than `least` (a share of the first), after what most
 *     kinds have in common was taken out (where there are at least three);
 *   - and by more than diff_spreads times the distance of their quartiles from block to
 *     block, on the side where that is larger: what the machine does to a callback within one run
 *     it may do from one run to the next, too;
 *   - and by more than diff_floor_ns, which is what cold caches do to any code;
 *   - and the difference is not one that chance makes: the test of Mann and Whitney over the
 *     blocks, at a level that allows for the number of comparisons made;
 *   - and all of this holds as well for the lower quartiles of the blocks, which others on the
 *     machine disturb less.
 *
 * A kind with so few blocks that no difference could pass the test is told apart as "too few".
 *
 * What is called by the same name in both is the same: kinds by their name, function and file,
 * spans by their name and file. Of a file only the name counts, and so many of its folders as tell
 * it from others of that trace: a build may lie elsewhere. Code without symbols is known by its
 * offset in its module.
 */
#ifndef TACHO_EXPLAIN_DIFF_H
#define TACHO_EXPLAIN_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "model/hist.h"
#include "tacho_read.h"

#define TACHO__DIFF_BLOCKS 24u
#define TACHO__DIFF_VALUES 64u /* kept of a block, drawn by lot when there are more */
#define TACHO__DIFF_NAME 200u

enum tacho__change {
	TACHO__CHANGE_NONE = 0, /* no more than chance makes */
	TACHO__CHANGE_SLOWER = 1,
	TACHO__CHANGE_FASTER = 2,
	TACHO__CHANGE_NEW = 3,	   /* only in the second */
	TACHO__CHANGE_GONE = 4,	   /* only in the first */
	TACHO__CHANGE_TOO_FEW = 5, /* too few to tell */
};

struct tacho__diff_block {
	uint32_t count;
	float ns[TACHO__DIFF_VALUES];
};

struct tacho__diff_side {
	struct tacho__hist ns;
	double per_second;
	struct tacho__diff_block *blocks; /* TACHO__DIFF_BLOCKS of them; NULL: none yet */
	double median;			  /* of the medians of the blocks; 0: none has enough */
};

struct tacho__diff_row {
	char name[TACHO__DIFF_NAME];
	int is_span;
	struct tacho__diff_side a, b;
	enum tacho__change change;
	double ratio;  /* of the medians, b to a; 0: one is missing */
	double chance; /* that two equal programs differ so much or more: 0..1 */
};

struct tacho__diff {
	struct tacho__diff_row *rows; /* those that changed first, the largest in time first */
	uint32_t count, capacity;
	double common;		   /* factor that kinds have in common; 1: none, or not told */
	uint32_t compared;	   /* rows that had enough on both sides */
	uint32_t changed;	   /* slower or faster */
	uint64_t a_ns, b_ns;	   /* windows */
	uint64_t a_count, b_count; /* polls in them */
	uint64_t missed;	   /* kinds and spans that found no room */
};

struct tacho__diff_options {
	double least;  /* relative change that counts; 0: diff_least */
	double chance; /* level for all comparisons together; 0: diff_chance */
	bool absolute; /* take out nothing that kinds have in common */
};

/* From where the readers are. NULL with a negative errno in *error. */
struct tacho__diff *tacho__diff_make(struct tacho_reader *a, struct tacho_reader *b,
				     const struct tacho__diff_options *options, int *error);
void tacho__diff_free(struct tacho__diff *d);
const char *tacho__change_name(enum tacho__change change);

#endif
