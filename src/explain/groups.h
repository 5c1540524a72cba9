/*
 * Cases (gather.h) that are one finding: those with the same cause at the same place in the code.
 */
#ifndef TACHO_EXPLAIN_GROUPS_H
#define TACHO_EXPLAIN_GROUPS_H

#include "explain/rules.h"

#define TACHO__GROUPS 64u
#define TACHO__SHOWN 3u /* polls that a finding has as evidence */

struct tacho__group {
	uint32_t process, cause;
	const struct tacho__case *worst;   /* with the longest poll */
	const struct tacho__case *dearest; /* whose place it is */
	struct tacho__place place;	   /* that tells it from others */
	uint64_t sum_ns, cause_ns, longest_ns;
	uint64_t own_ns, longest_own_ns, sample_ns;
	uint32_t count, unsure;
	/* The longest of all; NULL: there are no more. The first is NULL when the threads of all
	   that are remembered had left their loops: it is no finding then. */
	const struct tacho__poll *top[TACHO__SHOWN];
};

static inline uint64_t tacho__length(const struct tacho__poll *p)
{
	return p->end_ns - p->begin_ns;
}

/* Whether what its samples have in common is code of its own, and not of the loop that runs it. */
static inline int tacho__has_code(const struct tacho__case *c)
{
	return c->by_code || c->worst.at[0].kind;
}

/* Into `groups`, which has room for TACHO__GROUPS; returns how many there are. */
uint32_t tacho__group_cases(const struct tacho__explaining *x, struct tacho__group *groups);

#endif
