/* A summary being made. */
#ifndef TACHO_MODEL_SUMMING_H
#define TACHO_MODEL_SUMMING_H

#include "base/hash.h"
#include "model/summary.h"

/* What was looked up lately: few keys come again and again. Entries of a summary are never removed,
   so an index stays good. */
#define TACHO__LOOKED_UP_BITS 7u
struct tacho__looked_up {
	const struct tacho__table *table;
	uint64_t a, b;
	uint32_t index;
};

/* What the wait before the turn that a thread is in said to be ready. */
#define TACHO__READY_NOW 16u
struct tacho__ready_now {
	uint32_t process, thread;
	uint64_t ns;
	uint32_t count; /* of which the first TACHO__READY_NOW are in `index` */
	uint32_t index[TACHO__READY_NOW];
};

struct tacho__summing {
	struct tacho__summary *sum;
	const struct tacho_reader *reader;
	uint64_t step_ns;
	/* The step that was looked up last: events come in the order of time. */
	uint64_t step_from;
	uint32_t step_at;
	int error; /* -ENOMEM */
	struct tacho__tracker *tracker;
	struct tacho__facts facts[1 + TACHO__SUMMARY_MORE]; /* of all who are subscribed to it */
	struct tacho__looked_up looked_up[1u << TACHO__LOOKED_UP_BITS];
	/* By thread; where two share a place, the turn of one is not shared out. */
	struct tacho__ready_now ready[64];
};

void *tacho__sum_look_up(struct tacho__summing *g, struct tacho__table *t, uint64_t a, uint64_t b,
			 struct tacho__looked_up *l);
/* The entry for a key. NULL: there are too many, or no memory; either is noted. */
static inline void *tacho__sum_get(struct tacho__summing *g, struct tacho__table *t, uint64_t a,
				   uint64_t b)
{
	uint64_t mixed = tacho__mix(a ^ b << 20 ^ (uintptr_t)t);
	struct tacho__looked_up *l = &g->looked_up[mixed >> (64 - TACHO__LOOKED_UP_BITS)];

	if (l->table == t && l->a == a && l->b == b)
		return t->entries + (size_t)l->index * t->entry_size;
	return tacho__sum_look_up(g, t, a, b, l);
}

static inline void tacho__sum_hist(struct tacho__summing *g, struct tacho__hist *h, uint64_t value)
{
	int err = tacho__hist_add(h, value);

	if (err)
		g->error = err;
}
static inline uint64_t tacho__key(uint32_t process, uint32_t id)
{
	return (uint64_t)process << 32 | id;
}
uint32_t tacho__sum_step(struct tacho__summing *g, uint64_t ns);
/* Adds the time from `from` to `to` to the steps that it covers. */
void tacho__sum_range(struct tacho__summing *g, struct tacho__series *s, uint64_t from,
		      uint64_t to);
/* loop_names.c: at the end. So many addresses at which loops listen are known. */
#define TACHO__LISTENERS 4096u
void tacho__sum_loop_names(struct tacho__summing *g);
struct tacho__process_sum *tacho__sum_process(const struct tacho__summing *g, uint32_t process);

/*
 * Puts `item` into the list of the worst, which is sorted by `value`, largest first.
 * VALUE is an expression of `x`, a pointer to an item.
 */
#define TACHO__WORST_ADD(list, item, VALUE)                                      \
	do {                                                                     \
		uint32_t tacho__i, tacho__n = (list)->count;                     \
		__typeof__(&(list)->at[0]) x = (__typeof__(x))(uintptr_t)(item); \
		uint64_t tacho__v = (VALUE);                                     \
		if (tacho__n == TACHO__WORST) {                                  \
			x = &(list)->at[TACHO__WORST - 1];                       \
			if ((VALUE) >= tacho__v)                                 \
				break;                                           \
			tacho__n--;                                              \
		} else {                                                         \
			(list)->count++;                                         \
		}                                                                \
		for (tacho__i = tacho__n; tacho__i; tacho__i--) {                \
			x = &(list)->at[tacho__i - 1];                           \
			if ((VALUE) >= tacho__v)                                 \
				break;                                           \
			(list)->at[tacho__i] = *x;                               \
		}                                                                \
		(list)->at[tacho__i] = *(item);                                  \
	} while (0)

/* sum_loops.c */
void tacho__sum_poll(void *arg, const struct tacho__poll *poll);
/* Polls that were only counted, if the event tells of such. */
void tacho__sum_short_polls(void *arg, const struct tacho__at *at, const struct tacho_event *event);
void tacho__sum_turn(void *arg, const struct tacho__turn *turn);
void tacho__sum_ready(void *arg, const struct tacho__ready *ready);

/* sum_waits.c */
void tacho__sum_wake(void *arg, const struct tacho__wake *wake);
void tacho__sum_lock(void *arg, const struct tacho__lock *lock);
void tacho__sum_call(void *arg, const struct tacho__call *call);
void tacho__sum_work(void *arg, const struct tacho__work *work);

/* sum_program.c */
void tacho__sum_task(void *arg, const struct tacho__task *task);
void tacho__sum_task_wait(void *arg, const struct tacho__task_wait *wait);
void tacho__sum_span(void *arg, const struct tacho__span *span);
void tacho__sum_counter(void *arg, const struct tacho__counter *counter);

#endif
