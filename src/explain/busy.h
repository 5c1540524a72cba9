/*
 * How busy a loop is, of the time that it had.
 *
 * While others have its CPU, a loop neither works nor rests. So a busy loop that gets little of a CPU is
 * busy, and one that always waits for a CPU and rests in between is not: that it lacks a CPU is another
 * finding.
 */
#ifndef TACHO_EXPLAIN_BUSY_H
#define TACHO_EXPLAIN_BUSY_H

#include "explain/rules.h"

/* Of a thread's time: its own code, what of that was sampled, and what waited meanwhile. */
struct tacho__own_time {
	double code_ns, cpu_ns, waiting_ns;
	double all_ns, idle_ns; /* as far as it was observed */
	double off_ns;		/* what others took of it, while it worked or should have */
};

struct tacho__own_time tacho__own_time_of(const struct tacho__explaining *x, uint32_t thread);
/* In which it waited for something to do. Waits that return at once, as those of a loop do that always has
   something to do, are a part of its work. */
double tacho__rest_ns(struct tacho__own_time t, const struct tacho__loop_sum *l);
/* The part of the window in which it did not rest, 0..1; or, if that is less, of the time that it had, from
   when it is busy until it is no longer: a loop that gets little of a CPU has soon rested for as long as it
   ran. */
double tacho__utilisation(const struct tacho__explaining *x, struct tacho__own_time t,
			  const struct tacho__loop_sum *l);
/* The part of a step of the window in which it did not rest, in %: the median of those in which the loop was
   seen. */
double tacho__median_busy(const struct tacho__explaining *x, const struct tacho__loop_sum *l);
/* How often something would have been had nobody taken its CPU. What a loop does that rests in between is
   not more often then: only one that is full does more when it gets more. `l` may be NULL. */
double tacho__undisturbed(const struct tacho__explaining *x, struct tacho__own_time t,
			  const struct tacho__loop_sum *l, double times);
/* Of what waited while the thread ran its code: for that part of it. */
double tacho__waited_in(struct tacho__own_time t, double ns);

#endif
