/*
 * When the window of one process is wanted: what its sentinels, its own triggers and the time
 * since the last window make of it. Knows no files and no clock but what it is told.
 *
 * A condition that holds, or a trigger of the program, wants a window `after_ns` later, so that
 * the file shows also what followed. From then on nothing wants another one for `cooldown_ns`;
 * how often it would have been wanted is counted, and told with the next.
 */
#ifndef TACHO_AGENT_DEMAND_H
#define TACHO_AGENT_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sentinel.h"

#define TACHO__WHY_MAX 512u

struct tacho__demand_rules {
	struct tacho__sentinels sentinels;
	uint64_t cooldown_ns, after_ns;
};

/* Begins all zero. Times are CLOCK_MONOTONIC. */
struct tacho__demand {
	struct tacho__watch watch;
	bool wanted;
	uint64_t due_ns;  /* to be taken then */
	uint64_t why_ns;  /* what wanted it was noticed */
	uint32_t trigger; /* its number in the box; 0: none */
	char why[TACHO__WHY_MAX];
	uint64_t quiet_ns;   /* cooldown until then; 0: none */
	uint64_t arm_ns;     /* when the recorder is listened to again; 0: it is now */
	uint64_t unheard;    /* in the cooldown, that we know of */
	uint64_t suppressed; /* what the recorder had counted by the last one */
};

struct tacho_box_trigger;
struct tacho_box_control;

/* Of a box that earlier agents may have followed. */
void tacho__demand_begin(const struct tacho__demand_rules *r, struct tacho__demand *d,
			 const struct tacho_box_control *control);
/* A trigger of the box: a sentinel that fired, or a request of the program. */
void tacho__demand_trigger(const struct tacho__demand_rules *r, struct tacho__demand *d,
			   uint64_t now_ns, const struct tacho_box_trigger *trigger,
			   const struct tacho_box_control *control);
/* What is watched from outside: a stall, the exit status. `what` (or NULL) is added to the
   reason. Whether a condition holds by it. */
bool tacho__demand_value(const struct tacho__demand_rules *r, struct tacho__demand *d,
			 enum tacho__watched watched, uint64_t now_ns, uint64_t value,
			 const char *what);
/* The window is to be taken now. */
bool tacho__demand_due(const struct tacho__demand *d, uint64_t now_ns);
/* It was taken. */
void tacho__demand_taken(struct tacho__demand *d);
/* It is time to arm the recorder again; once. */
bool tacho__demand_arm(struct tacho__demand *d, uint64_t now_ns);
/* When to look again; UINT64_MAX: not before something happens. */
uint64_t tacho__demand_next(const struct tacho__demand *d);

#endif
