/*
 * What a loop runs for the descriptor that has most of its turns to itself.
 *
 * A loop that dispatches to handlers it does not know looks the same for all of them. But what it runs in a
 * turn for which one descriptor alone was ready, it runs for that one. Of each loop, the descriptor that has
 * most of the time of such turns is kept, with samples taken in them since it is: one of a turn, because what
 * it does in a single long one is not what it does most of the time.
 */
#ifndef TACHO_EXPLAIN_SOLE_H
#define TACHO_EXPLAIN_SOLE_H

#include "explain/sampled.h"
#include "model/model.h"
#include "model/table.h"

struct tacho__sole {
	struct tacho__entry entry; /* key: process << 32 | loop, thread */
	uint64_t what;		   /* as in struct tacho__ready */
	uint64_t votes_ns;	   /* that it has more than all others */
	uint64_t now, now_ns;	   /* what was ready last, and when */
	uint32_t ready;		   /* so many were; 0: no turn is under way */
	uint64_t sampled_ns;	   /* now_ns of the turn that was sampled last */
	struct tacho__samples samples;
};

void tacho__soles_init(struct tacho__table *soles);
void tacho__soles_ready(struct tacho__table *soles, const struct tacho__ready *r, int *error);
void tacho__soles_sample(struct tacho__table *soles, const struct tacho__at *at,
			 const struct tacho__sampled *s);
void tacho__soles_turn(struct tacho__table *soles, const struct tacho__turn *u);
/* NULL: none, or it is another descriptor. */
const struct tacho__samples *tacho__soles_of(const struct tacho__table *soles, uint32_t process,
					     uint32_t loop, uint32_t thread, uint64_t what);

#endif
