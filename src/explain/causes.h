/*
 * Causes: owners of the ledger that are one to a person, with what of them counts and how much it
 * matters.
 *
 * One notion of what matters for all of them. What waits for less than a millisecond is not kept
 * waiting. An owner matters when what waited because of it sums up to a share of the window, or when
 * it stalled a loop for long several times. Where threads are blocked in the middle of work, the
 * capacity that is lost matters by itself, whatever waited; less of it is a note, where what those
 * threads serve waited for a share of the window. A process that has one client,
 * who waits for each answer (ledger_arrivals.c), has its time told, and nobody is to blame.
 */
#ifndef TACHO_EXPLAIN_CAUSES_H
#define TACHO_EXPLAIN_CAUSES_H

#include "explain/rules.h"

#define TACHO__CAUSES 256u
#define TACHO__CAUSE_THREADS 1024u	       /* that are told apart */
#define TACHO__BY_FUNCTION (UINT64_C(1) << 63) /* in keys of code */

/* Owners that are one to a person. */
struct tacho__cause {
	enum tacho__owns owns;
	uint64_t key;
	const struct tacho__owned *worst; /* with the longest */
	/* Of code, where it was sampled: the function that had most of these. */
	const struct tacho__function *function;
	uint64_t cpu_ns, function_ns; /* of these; of the function in all */
	uint32_t samples;
	uint32_t into;	   /* index + 1 of the one that it is a part of; 0: none */
	uint8_t is_joined; /* others are a part of it */
	/* At first of all; in the end of those that count. */
	uint64_t longest_ns, longest_at_ns;
	uint64_t wall_ns; /* of the longest: from its begin to its end, whoever had the time */
	uint64_t threads[TACHO__CAUSE_THREADS / 64]; /* whose time it is of: bits */
	uint64_t first_ns, last_ns;
	int several; /* clients wait for it, or may */
	struct tacho__size size[TACHO__SIZES];
	uint32_t from; /* the least size that counts; of those: */
	uint64_t count, ns, waiting_ns;
	uint64_t holder_off_ns; /* of a lock: of its time, the kernel did not run the holder */
	uint64_t
		kept_waiting_ns; /* of the kernel: for locks, because it did not run their holders */
	uint64_t served_ns;	 /* of the kernel: in the middle of work, which waited as well */
	uint64_t own_ns;	 /* of the kernel: threads of the process had the CPUs */
	uint64_t estimated_ns;	 /* of what waited, for those of all sizes */
	enum tacho__severity severity; /* 0: it does not matter */
};

/* Those of the process that is looked at, into `causes`, which has room for TACHO__CAUSES; how many.
   Without memory the error is noted, and there are none. */
uint32_t tacho__causes(struct tacho__explaining *x, struct tacho__cause *causes);
/* Whether what it owns may keep others waiting without need. */
int tacho__may_be_cause(const struct tacho__ledger *l, const struct tacho__owned *o);
/* What is in one belongs to the other. */
void tacho__cause_add(struct tacho__cause *to, struct tacho__cause *from);
/* A function and line as a number. */
uint64_t tacho__cause_place(const struct tacho__explaining *x, const struct tacho__owned *o,
			    uint32_t id);
/* causes_join.c: those that are one cause, whose parts are left empty. */
void tacho__causes_join(const struct tacho__explaining *x, struct tacho__cause *groups,
			uint32_t count);
/* Of such a cause, the place that its parts have in common. 0: there is none. */
int tacho__where_joined(const struct tacho__explaining *x, struct tacho__finding *f,
			const struct tacho__cause *causes, uint32_t count, uint32_t cause);
/* considered.c: it is no finding; because it is small: of the window, and of the capacity, in %. */
void tacho__drop_cause(const struct tacho__explaining *x, const struct tacho__cause *g,
		       const char *format, ...) __attribute__((format(printf, 3, 4)));
void tacho__drop_small(const struct tacho__explaining *x, const struct tacho__cause *g,
		       double share, double lost);
/* Owners of a process with the same key are one, beside what they own. */
uint64_t tacho__cause_key(const struct tacho__explaining *x, const struct tacho__owned *o);
/* Of a lock: who has it while others wait, and did not wait for it as well. NULL: not seen. */
const struct tacho__owned *tacho__keeper(const struct tacho__explaining *x,
					 const struct tacho__cause *g);

#endif
