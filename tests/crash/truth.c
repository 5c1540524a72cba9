#include "truth.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pattern.h"
#include "tacho.h"

struct truth *truth_map(void)
{
	void *at = mmap(NULL, sizeof(struct truth), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return at;
}

void truth_clear(struct truth *truth)
{
	uint32_t used = truth->used < TRUTH_SEQUENCES ? truth->used : TRUTH_SEQUENCES;

	memset(truth->sequence, 0, used * sizeof(truth->sequence[0]));
	memset(truth, 0, offsetof(struct truth, sequence));
}

uint32_t truth_take(struct truth *truth, int tid)
{
	uint32_t first = __atomic_fetch_add(&truth->used, 3, __ATOMIC_RELAXED);

	if (first + 3 > TRUTH_SEQUENCES)
		return TRUTH_SEQUENCES;
	truth->sequence[first].tid = (uint32_t)tid;
	return first;
}

void truth_put(struct truth *truth, uint32_t sequence)
{
	struct truth_sequence *s = &truth->sequence[sequence];
	uint64_t n = s->begun;

	/* Whoever sees the record sees that it was begun; whoever sees that it is done finds it. */
	__atomic_store_n(&s->begun, n + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	pattern_put(sequence, n);
	__atomic_store_n(&s->done, n + 1, __ATOMIC_RELEASE);
}

/* In bytes of the box: what records take on average, and the slot that a thread may take
   for a few of them. The smallest box has about 850 KB for all. */
#define PACE_EVERY 256u
#define PACE_RECORDS (PACE_EVERY * 25u)
#define PACE_THREAD (65536u + 4096u)
#define PACE_LIMIT 250000u

static int is_behind(const struct truth_sequence *s, uint64_t now)
{
	uint64_t pace = __atomic_load_n(&s->pace, __ATOMIC_RELAXED);

	return pace && !__atomic_load_n(&s->ended, __ATOMIC_RELAXED) && now > pace + PACE_LIMIT;
}

void truth_wait(struct truth *truth, uint32_t sequence)
{
	struct truth_sequence *own = &truth->sequence[sequence];
	uint64_t now;

	if (own->begun % PACE_EVERY)
		return;
	now = __atomic_add_fetch(&truth->pace, own->begun ? PACE_RECORDS : PACE_THREAD,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&own->pace, now, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < truth->used && i < TRUTH_SEQUENCES; i += 3)
		while (is_behind(&truth->sequence[i], now))
			sched_yield();
}

void truth_box_begin(struct truth *truth)
{
	struct truth_box *box = &truth->box[truth->boxes];

	box->first = truth->used;
	box->end = TRUTH_SEQUENCES;
	if (truth->boxes)
		box[-1].end = truth->used;
	__atomic_store_n(&truth->boxes, truth->boxes + 1, __ATOMIC_SEQ_CST);
}

void truth_box_made(struct truth *truth)
{
	struct tacho_status_info status = {.size = sizeof(status)};

	if (tacho_status(&status) || status.state != TACHO_STATE_RECORDING || !status.box[0]) {
		fprintf(stderr, "the victim does not record: %s\n", status.reason);
		_Exit(3);
	}
	memcpy(truth->box[truth->boxes - 1].path, status.box, sizeof(status.box));
}
