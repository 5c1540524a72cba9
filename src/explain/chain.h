/*
 * Chains: who waits for a lock, who holds it, and what the holder did meanwhile. They are parts of one
 * finding, because the last of them is the reason of the first.
 */
#ifndef TACHO_EXPLAIN_CHAIN_H
#define TACHO_EXPLAIN_CHAIN_H

#include "explain/rules.h"

/* A new part, of which nothing is known yet but its role and thread; one that is not kept where there is
   no room for more. */
struct tacho__part *tacho__add_part(struct tacho__finding *f, enum tacho__role role,
				    uint32_t thread);
/* As the ledger has it: who waits longest, and one who waited for the holder; NULL: it was not seen. The
   advice names what the holder did, where that is known. */
void tacho__chain_owned(struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__owned *waiter, const struct tacho__owned *held);
/* Of a wait that has not ended: as threads were at the end, from holder to holder. What the last of them
   was in, NULL: it is not known. */
const struct tacho__at_end *tacho__chain_open(struct tacho__explaining *x, struct tacho__finding *f,
					      const struct tacho__lock *l);

#endif
